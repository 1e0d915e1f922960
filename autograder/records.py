"""One graded lesson of one student: what the journal keeps and the reports and exports read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from autograder.judge.verdict import LessonVerdict


@dataclass(frozen=True)
class Record:
    """The latest verdict on what one student handed in for one lesson."""

    student: str
    lesson: str
    verdict: LessonVerdict
    sandbox: str  # how the code was held: "none" if it was not
    submission: str  # sha256 of what was handed in
    received: datetime  # aware, in UTC
    graded_with: str  # sha256 of the checks
