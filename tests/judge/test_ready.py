"""The next child is made ahead of time, and nothing else about children changes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import psutil
import pytest

from autograder.judge.sandbox.ready import ReadyParent, is_there


@pytest.fixture
def parent() -> Iterator[ReadyParent]:
    with ReadyParent(imports=()) as made:
        yield made


def age(process: psutil.Process) -> tuple[float, int]:
    return process.create_time(), process.pid


def gone(process: psutil.Process) -> bool:
    """Whether it ends in time; its parent need not have asked how."""
    for _ in range(3000):
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.01)
    return False


def test_the_child_that_is_ready_is_the_next_to_be_given(parent: ReadyParent) -> None:
    ready = parent._next.result()
    assert parent.spawn() is ready
    assert parent.spawn() is not ready
    assert ready.stop().signal == signal.SIGKILL


def test_a_child_that_went_while_it_waited_is_not_given(parent: ReadyParent) -> None:
    ready = parent._next.result()
    # of bubblewrap, the warm parent and its one child the last
    youngest = max(psutil.Process(parent._process.pid).children(recursive=True), key=age)
    youngest.kill()
    assert gone(youngest)
    given = parent.spawn()
    assert given is not ready
    assert is_there(given)


def test_a_warm_parent_that_dies_costs_no_child_that_was_asked_for(parent: ReadyParent) -> None:
    ready, first = parent._next.result(), parent._process
    below = psutil.Process(first.pid).children(recursive=True)
    os.kill(first.pid, signal.SIGKILL)
    psutil.wait_procs(below, timeout=30)
    given = parent.spawn()
    assert given is not ready
    assert is_there(given)
    assert parent._process is not first


def test_nothing_is_left_when_it_is_closed() -> None:
    with ReadyParent(imports=()) as parent:
        parent.spawn()
        warm = psutil.Process(parent._process.pid)
        below = [warm, *warm.children(recursive=True)]
    assert not psutil.wait_procs(below, timeout=30)[1]
