"""Grades as Canvas' gradebook imports them.

Headings and the row of points are those of Canvas' own export ("How do I import grades in the
Gradebook?", Canvas Instructor Guide). Its importer (canvas-lms, lib/gradebook_importer.rb) finds a
student by `ID`, which is Canvas' own number, then by `SIS User ID`, then by `SIS Login ID`. Our
student id is that number where it was read from the names in Canvas' download (canvas-lms,
lib/content_zipper.rb, puts the user's there), and one of the others elsewhere. An assignment it
finds by its title. It reads the first heading without looking for a byte order mark, so there is
none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .cells import number, safe, write_table
from .rows import Row, assignments, by_student

COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS = "    Points Possible"


def as_canvas(rows: Sequence[Row], own_numbers: Collection[str] = ()) -> bytes:
    """The scores that count, a row a student, a column an assignment; empty where nothing is.

    `own_numbers` are the students whose id is Canvas' own number.
    """
    columns = assignments(rows)
    points = [number(most) for most in columns.values()]
    lines = [[*COLUMNS, *columns], [POINTS, "", "", "", "", *points]]
    for student, own in by_student(rows).items():
        name = safe(student)
        scores = [number(own[column].score) if column in own else "" for column in columns]
        who = [name, "", ""] if student in own_numbers else ["", name, name]
        lines.append([name, *who, "", *scores])
    return write_table(lines, bom=False)
