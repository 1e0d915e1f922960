"""Grades as JSON, with everything that is known: every check, its cause, what it told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ..errors import CourseError
from ..judge.verdict import CheckVerdict, LessonVerdict
from ..records import Record
from .rows import Row

FORMAT = "llm-decoding-grades-1"


def as_json(graded: Iterable[tuple[Record, Row]]) -> bytes:
    """Each record and the grade that came of it, in the order given, which may be many."""
    told = (json.dumps(_told(record, row), ensure_ascii=False) for record, row in graded)
    lines = ",\n".join(told)
    # half a character, which a learner's line may hold, cannot be written
    return f'{{"format": "{FORMAT}", "grades": [\n{lines}\n]}}\n'.encode("utf-8", "replace")


def read_json(data: bytes) -> list[Record]:
    """The records that `as_json` was given. Raises CourseError for other data."""
    try:
        stored = json.loads(data)
        if stored["format"] != FORMAT:
            raise ValueError(f"the format is {stored['format']!r}")
        return [_read(grade) for grade in stored["grades"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CourseError(f"these are no grades in the format {FORMAT}: {error}") from error


def _told(record: Record, row: Row) -> dict[str, Any]:
    return {
        "student": record.student,
        "lesson": record.lesson,
        "assignment": row.assignment,
        "received": record.received.isoformat(),
        "due": row.due.isoformat() if row.due else None,
        "late": row.late,
        "judged": row.judged,
        "by_hand": row.by_hand,
        "waiting": row.waiting,
        "raw": row.raw,
        "penalty": row.penalty,
        "score": row.score,
        "max": row.max,
        "sandbox": record.sandbox,
        "submission": record.submission,
        "graded_with": record.graded_with,
        "checks": [asdict(check) for check in record.verdict.checks],
    }


def _read(grade: Mapping[str, Any]) -> Record:
    checks = [CheckVerdict(**check) for check in grade["checks"]]
    return Record(
        student=grade["student"],
        lesson=grade["lesson"],
        verdict=LessonVerdict(grade["lesson"], checks),
        sandbox=grade["sandbox"],
        submission=grade["submission"],
        received=datetime.fromisoformat(grade["received"]),
        graded_with=grade["graded_with"],
    )
