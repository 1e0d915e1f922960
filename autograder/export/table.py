"""Grades as one table, a row for each lesson of each student; columns named as nbgrader's are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..errors import CourseError
from .cells import number, plain, read_table, safe, write_table
from .rows import Row

COLUMNS = (
    "assignment",
    "lesson",
    "student_id",
    "timestamp",
    "duedate",
    "late",
    "judged_score",
    "manual_score",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "needs_manual_grade",
    "sandbox",
    "submission",
    "graded_with",
)


def as_csv(rows: Sequence[Row]) -> bytes:
    """The table, with the mark that lets Excel read names of any script."""
    return write_table([COLUMNS, *(_cells(row) for row in rows)], bom=True)


def read_csv(data: bytes) -> list[Row]:
    """The rows that `as_csv` was given. Raises CourseError for another table."""
    head, *lines = read_table(data) or [[]]
    if tuple(head) != COLUMNS:
        raise CourseError("this is no table of `autograder export --format csv`")
    return [_row(dict(zip(COLUMNS, line, strict=True))) for line in lines]


def _cells(row: Row) -> list[str]:
    return [
        safe(row.assignment),
        safe(row.lesson),
        safe(row.student),
        row.received.isoformat(),
        row.due.isoformat() if row.due else "",
        safe(row.late),
        number(row.judged),
        number(row.by_hand),
        number(row.raw),
        number(row.penalty),
        number(row.score),
        number(row.max),
        str(row.waiting),
        safe(row.sandbox),
        row.submission,
        row.graded_with,
    ]


def _row(cells: dict[str, str]) -> Row:
    return Row(
        lesson=plain(cells["lesson"]),
        assignment=plain(cells["assignment"]),
        student=plain(cells["student_id"]),
        received=datetime.fromisoformat(cells["timestamp"]),
        due=datetime.fromisoformat(cells["duedate"]) if cells["duedate"] else None,
        late=plain(cells["late"]),
        judged=float(cells["judged_score"]),
        by_hand=float(cells["manual_score"]),
        penalty=float(cells["late_submission_penalty"]),
        max=float(cells["max_score"]),
        waiting=int(cells["needs_manual_grade"]),
        sandbox=plain(cells["sandbox"]),
        submission=cells["submission"],
        graded_with=cells["graded_with"],
    )
