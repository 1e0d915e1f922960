"""Lists that come beside packs: when each was received, and who a platform's numbers are.

    student,received                    student,number
    00042,2026-11-02T23:58+01:00        jane@example.org,12345

Columns are found by their headings and others are not looked at, so that an export of a platform
will do: Moodle's grading worksheet and Canvas' gradebook are read as they are.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

from .classroom import student_id
from .errors import CourseError
from .late import told_moment

SHOWN = 6  # lines that are wrong, in the one line that tells of them

STUDENT, RECEIVED, NUMBER = "student", "received", "number"
# the number as download names have it: Moodle's is one of the assignment ("Participant 12345"),
# Canvas' one of the student
NUMBERS = (NUMBER, "Identifier", "ID")
# in this order: what every account has comes last
STUDENTS = (STUDENT, "ID number", "SIS User ID", "SIS Login ID", "Email address")

Value = TypeVar("Value")


def read_times(path: Path, zone: ZoneInfo | None) -> dict[str, datetime]:
    """When each student's pack was received, in UTC; times without an offset are of `zone`.

    Raises CourseError that tells the lines which are wrong.
    """

    def read(row: Mapping[str, str]) -> tuple[str, datetime]:
        return student_id(row[STUDENT]), told_moment(row[RECEIVED], zone)

    rows = _rows(path, [(STUDENT,), (RECEIVED,)])
    return _read(path, rows, read, "student")


def read_roster(path: Path) -> dict[str, str]:
    """The id of the student whom a platform's number means.

    A line without a number or without an id is passed over: gradebooks have lines of other kinds.
    Raises CourseError that tells the lines which are wrong.
    """
    owners: dict[str, str] = {}

    def read(row: Mapping[str, str]) -> tuple[str, str]:
        number = _number(_first(row, NUMBERS))
        student = student_id(_first(row, STUDENTS))
        if (other := owners.setdefault(student, number)) != number:
            raise CourseError(f"student {student!r} is number {other} as well")
        return number, student

    rows = _rows(path, [NUMBERS, STUDENTS])
    named = ((line, row) for line, row in rows if _first(row, NUMBERS) and _first(row, STUDENTS))
    return _read(path, named, read, "number")


def _first(row: Mapping[str, str], headings: Sequence[str]) -> str:
    return next((row[name].strip() for name in headings if row.get(name, "").strip()), "")


def _number(text: str) -> str:
    """`12345` of `Participant 12345`, whatever the language."""
    found = re.fullmatch(r"\D*(\d+)", text)
    if found is None:
        raise CourseError(f"{text!r} is no number")
    return found[1]


def _read(
    path: Path,
    rows: Iterator[tuple[int, Mapping[str, str]]],
    read: Callable[[Mapping[str, str]], tuple[str, Value]],
    what: str,
) -> dict[str, Value]:
    """What `read` makes of each row, by its key. Raises CourseError with all that is wrong."""
    found: dict[str, Value] = {}
    lines: dict[str, int] = {}
    wrong = []
    for line, row in rows:
        try:
            key, value = read(row)
            if (first := lines.setdefault(key, line)) != line:
                raise CourseError(f"{what} {key!r} is in line {first} already")
            found[key] = value
        except CourseError as error:
            wrong.append(f"line {line}: {error}")
    if wrong:
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise CourseError(f"{path}, {'; '.join(wrong[:SHOWN])}{more}")
    if not found:
        raise CourseError(f"{path} has no lines below its headings")
    return found


def _rows(path: Path, needed: Sequence[Sequence[str]]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Each row with the line that it ends in; of each group in `needed` one heading is there."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not in UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise CourseError(f"{path} cannot be read: {why}") from error
    head = text.partition("\n")[0]
    # spreadsheets of some countries separate by semicolons
    table = csv.reader(text.splitlines(keepends=True), delimiter=max(",;\t", key=head.count))
    headings = [cell.strip() for cell in next(table, [])]
    for group in needed:
        if not set(group) & set(headings):
            raise CourseError(
                f"{path} has no column {' or '.join(map(repr, group))}: its first line must name it"
            )
    try:
        for cells in table:
            if any(cell.strip() for cell in cells):
                full = [*cells, *[""] * (len(headings) - len(cells))]
                yield table.line_num, dict(zip(headings, full, strict=False))
    except csv.Error as error:
        raise CourseError(f"{path}, line {table.line_num}: no CSV: {error}") from error
