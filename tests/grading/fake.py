"""A judge that looks at the text alone: what the other tests need of one, in no time.

The reference earns all, the stub nothing, and any other module fails the check of whose id it holds
the name. A module with `kill the judge` in it does just that.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.grading import Outcome, Settings, grade, grade_locally
from autograder.judge.verdict import CheckVerdict, LessonVerdict, Verdict

if TYPE_CHECKING:
    # worker processes import this module, and should start in no time
    from autograder.class_grading import Judge
    from autograder.submission import Submission

STUB = Path(__file__).resolve().parents[2] / "course_lib/top_k.py"
POINTS = "COURSE_TEST_POINTS"  # environment: the points of each graded cell, as JSON


def judge(
    files: Mapping[str, bytes], lesson: str, secret: bytes, dependencies: str, sandboxed: bool
) -> Verdict:
    """The verdict on lesson 3 by its text."""
    assert lesson == "top_k"
    text = files.get(lesson)
    if text is not None and b"kill the judge" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    if text is not None and b"break the judge" in text:
        raise ArithmeticError("the judge divides by zero")
    checks = [
        check(name, points, cause_of(name, text))
        for name, points in json.loads(os.environ[POINTS]).items()
        if not name.endswith("-written")
    ]
    level = "lock" if sandboxed else "none"
    return Verdict({lesson: LessonVerdict(lesson, checks)}, level, dependencies)


def slow_judge(*job: Any) -> Verdict:
    """The same, slow enough to be killed in the middle."""
    time.sleep(0.02)
    return judge(*job)


def cause_of(name: str, text: bytes | None) -> str:
    if text is None:
        return "missing file"
    if text == STUB.read_bytes():
        return "not attempted"
    return "wrong value" if name.encode() in text else ""


def check(name: str, points: float, cause: str = "", message: str = "") -> CheckVerdict:
    return CheckVerdict(
        id=name,
        hidden="-hidden_" in name,
        of="top_k_filter",
        claim=f"claim of {name}",
        points=points,
        earned=0.0 if cause else points,
        cause=cause,
        message=message or (f"message of {name}" if cause else ""),
    )


class Inline:
    """An executor that runs each job at once, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, function: Callable[..., Any], /, *job: Any, **kw: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        try:
            future.set_result(function(*job, **kw))
        except Exception as error:
            future.set_exception(error)
        return future


def inline(executor: Any = None) -> Callable[[Settings], Judge]:
    """`Wishes.judging` for the fake judge in this process."""

    def judging(settings: Settings) -> Judge:
        def run(submissions: Iterable[Submission]) -> Iterator[Outcome]:
            yield from grade(submissions, executor or Inline(), settings, ahead=1, judge=judge)

        return run

    return judging


def processes(workers: int) -> Callable[[Settings], Judge]:
    """`Wishes.judging` for the slow fake judge in processes of their own."""

    def judging(settings: Settings) -> Judge:
        def run(submissions: Iterable[Submission]) -> Iterator[Outcome]:
            yield from grade_locally(submissions, workers, settings, judge=slow_judge)

        return run

    return judging
