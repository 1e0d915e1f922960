"""Judges many submissions with any executor, never more at once than it has work for.

`grade` knows nothing of a class: submissions go in, outcomes come out in the order in which they
are ready. What runs in the workers is `judge_in_worker`: bytes go there, data comes back.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from .errors import CourseError
from .judge.verdict import Verdict

if TYPE_CHECKING:
    # workers import this module, and have no use for all that reads submissions
    from .submission import Submission

AHEAD = 2  # submissions that wait for each worker
Judge = Callable[[Mapping[str, bytes], str, bytes, str, bool], Verdict]


@dataclass(frozen=True)
class Settings:
    """How submissions are judged."""

    secret: bytes
    dependencies: str = "reference"
    sandboxed: bool = True


@dataclass(frozen=True)
class Outcome:
    """What came of a submission: a verdict, or why there is none."""

    submission: Submission
    verdict: Verdict | None = None
    failure: BaseException | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the executor is of no more use; the submission may be all right."""
        return isinstance(self.failure, BrokenExecutor)

    @property
    def why(self) -> str:
        if self.is_broken:
            return "the process that judged it died: look at the machine's memory"
        if isinstance(self.failure, CourseError):
            return str(self.failure)
        return f"the judge failed: {self.failure!r}"


def judge_in_worker(
    files: Mapping[str, bytes], lesson: str, secret: bytes, dependencies: str, sandboxed: bool
) -> Verdict:
    """Judge one lesson of a submission, in whatever process this is."""
    # torch takes seconds and memory, and only workers need it
    from .judge.worker import Job, judge_job

    return judge_job(Job(files, [lesson], secret, dependencies, sandboxed))


def grade(
    submissions: Iterable[Submission],
    executor: Executor,
    settings: Settings,
    *,
    ahead: int,
    judge: Judge = judge_in_worker,
) -> Iterator[Outcome]:
    """Judge submissions; at most `ahead` are read and not yet judged.

    A submission that cannot be judged is an outcome like any other. When the executor breaks, those
    that it held come out with BrokenExecutor as their failure, and no more are taken.
    """
    waiting: dict[Future[Verdict], Submission] = {}
    more = iter(submissions)
    broken = False
    while True:
        for submission in islice(more, 0 if broken else ahead - len(waiting)):
            try:
                future = executor.submit(
                    judge,
                    submission.files,
                    submission.lesson,
                    settings.secret,
                    settings.dependencies,
                    settings.sandboxed,
                )
            except RuntimeError as error:  # it is broken, or somebody has shut it down
                broken = True
                yield Outcome(submission, failure=BrokenExecutor(str(error)))
                break
            waiting[future] = submission
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            submission = waiting.pop(future)
            try:
                outcome = Outcome(submission, future.result())
            except CancelledError:
                # nobody here cancels: whoever ran it is gone
                outcome = Outcome(submission, failure=BrokenExecutor("it was cancelled"))
            except Exception as failure:
                outcome = Outcome(submission, failure=failure)
            broken = broken or outcome.is_broken
            yield outcome


def grade_locally(
    submissions: Iterable[Submission],
    workers: int,
    settings: Settings,
    *,
    judge: Judge = judge_in_worker,
) -> Iterator[Outcome]:
    """Judge submissions in `workers` processes of this machine.

    When a process dies, which takes its pool along, those in work are tried again one by one: only
    the one that kills its process a second time fails.
    """
    more = iter(submissions)
    while True:
        lost: list[Submission] = []
        with local_pool(workers) as pool:
            for outcome in grade(more, pool, settings, ahead=AHEAD * workers, judge=judge):
                if outcome.is_broken:
                    lost.append(outcome.submission)
                else:
                    yield outcome
        if not lost:
            return
        yield from _one_by_one(lost, settings, judge)


def _one_by_one(lost: list[Submission], settings: Settings, judge: Judge) -> Iterator[Outcome]:
    more = iter(lost)
    broken = True
    while broken:
        broken = False
        with local_pool(1) as pool:
            for outcome in grade(more, pool, settings, ahead=1, judge=judge):
                broken = broken or outcome.is_broken
                yield outcome


@contextmanager
def local_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, however it ends."""
    pool = ProcessPoolExecutor(
        workers,
        # a fork would copy threads' locks, and whatever else the parent holds
        mp_context=multiprocessing.get_context("spawn"),
        initializer=end_with_parent,
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def end_with_parent() -> None:
    """Let this process end when its parent is gone: a killed parent closes no queue.

    Ctrl-C is the parent's to answer, though the terminal tells everyone; and so is Ctrl-Z, which
    would let the time of whoever is judged here run out.
    """
    for told_to_all in (signal.SIGINT, signal.SIGTSTP):
        signal.signal(told_to_all, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
