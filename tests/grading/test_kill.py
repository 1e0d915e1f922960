"""Killed at any moment, run again: the same gradebook as without the kill, and nobody left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.authoring.layout import ROOT
from autograder.classroom import Classroom
from tests.grading.dump import dump
from tests.grading.packs import REFERENCE, STUB, notebook, work

STUDENTS = 24
# `make bench` kills at 20 moments
MOMENTS = int(os.environ.get("COURSE_KILLS", "3"))

DRIVER = """
import sys
from rich.console import Console
from autograder.grade_commands import Wishes, run_grade
from tests.grading import fake
print("begins", flush=True)
run_grade(Console(), Wishes(judging=fake.processes(int(sys.argv[1]))))
"""


def fill(hand_in: Callable[..., None]) -> None:
    for number in range(STUDENTS):
        # no two alike, so that none has the verdict of another
        extra = f"# student {number}\n".encode()
        extra += b"# top_k-ties\n" if number % 3 == 0 else b""
        module = STUB if number % 5 == 4 else REFERENCE + extra
        hand_in(f"s{number:02}", work(module, notebook() if number % 4 == 1 else None))


def start(classroom: Classroom, workers: int, token: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(workers)],
        cwd=classroom.root,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COURSE_TEST_TOKEN": token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(classroom: Classroom, workers: int) -> str:
    process = start(classroom, workers)
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return said


def marked(token: str) -> list[int]:
    """The processes that have `token` in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def start_over(classroom: Classroom) -> None:
    """As before the first grading; what was handed in stays."""
    for name in ("journal", "grades"):
        subprocess.run(["rm", "-rf", str(classroom.kept / name)], check=True)
    subprocess.run(["rm", "-rf", str(classroom.autograded)], check=True)
    (classroom.root / "gradebook.db").unlink(missing_ok=True)


def test_one_worker_and_two_give_the_same_gradebook(
    classroom: Classroom, hand_in: Callable[..., None]
) -> None:
    fill(hand_in)
    finish(classroom, 1)
    one = dump(classroom.root)
    assert len(one) == STUDENTS * 21
    start_over(classroom)
    finish(classroom, 2)
    assert dump(classroom.root) == one


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_gradebook(
    classroom: Classroom, hand_in: Callable[..., None]
) -> None:
    fill(hand_in)
    finish(classroom, 2)
    undisturbed = dump(classroom.root)
    chance = random.Random(20_261_130)
    whole = journalled(classroom)
    for moment in range(MOMENTS):
        start_over(classroom)
        token = f"kill-{os.getpid()}-{moment}"
        process = start(classroom, 2, token)
        # moments are told by what was done, not by the clock; some lie in the projection
        at = chance.uniform(0, 1.6)
        while process.poll() is None and progress(classroom) < at * whole:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        deadline = time.monotonic() + 30
        while (left := marked(token)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left == [], "processes stayed behind"
        finish(classroom, 2)
        assert dump(classroom.root) == undisturbed, f"killed after {at:.2f} of the work"


def journalled(classroom: Classroom) -> int:
    return len(list((classroom.kept / "journal").rglob("*.json")))


def progress(classroom: Classroom) -> float:
    """Verdicts written, and after those the submissions in the gradebook's folder."""
    return journalled(classroom) + 0.6 * len(list(classroom.autograded.glob("*/*/verdict.txt")))
