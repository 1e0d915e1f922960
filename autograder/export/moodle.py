"""Grades as Moodle's "Import > CSV file" takes them.

The import page asks which column tells who it is: `ID number`, headed as in Moodle's own export
(https://docs.moodle.org/en/Grade_import, https://docs.moodle.org/en/Grade_export). Its loader
(moodle, grade/import/csv/classes/load_data.php) reads "-" as no grade, in columns for new items and
for old ones alike, so that stands where nothing was handed in.
"""

from __future__ import annotations

from collections.abc import Sequence

from .cells import number, safe, write_table
from .rows import Row, assignments, by_student

WHO = "ID number"
NO_GRADE = "-"


def as_moodle(rows: Sequence[Row]) -> bytes:
    """The scores that count, a row a student, a column an assignment."""
    columns = list(assignments(rows))
    lines = [[WHO, *columns]]
    for student, own in by_student(rows).items():
        scores = [number(own[column].score) if column in own else NO_GRADE for column in columns]
        lines.append([safe(student), *scores])
    return write_table(lines, bom=False)
