"""Grades as Canvas' gradebook imports them.

Headings and the row of points are those of Canvas' own export ("How do I import grades in the
Gradebook?", Canvas Instructor Guide). Its importer (canvas-lms, lib/gradebook_importer.rb) finds a
student by `ID`, which is Canvas' own number and stays empty here, then by `SIS User ID`, then by
`SIS Login ID`, both of which are our student id; an assignment it finds by its title. It reads the
first heading without looking for a byte order mark, so there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from .cells import number, safe, write_table
from .rows import Row, assignments, by_student

COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS = "    Points Possible"


def as_canvas(rows: Sequence[Row]) -> bytes:
    """The scores that count, a row a student, a column an assignment; empty where nothing is."""
    columns = assignments(rows)
    points = [number(most) for most in columns.values()]
    lines = [[*COLUMNS, *columns], [POINTS, "", "", "", "", *points]]
    for student, own in by_student(rows).items():
        name = safe(student)
        scores = [number(own[column].score) if column in own else "" for column in columns]
        lines.append([name, "", name, name, "", *scores])
    return write_table(lines, bom=False)
