"""Everything in a gradebook that means something, so that two can be compared."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_GRADES = """
    select sa.student_id, a.name, sa.timestamp, n.name, bc.name, g.auto_score, g.manual_score,
        g.extra_credit, g.needs_manual_grade, sn.late_submission_penalty
    from grade g
    join submitted_notebook sn on sn.id = g.notebook_id
    join submitted_assignment sa on sa.id = sn.assignment_id
    join assignment a on a.id = sa.assignment_id
    join notebook n on n.id = sn.notebook_id
    join base_cell bc on bc.id = g.cell_id
"""
_COMMENTS = """
    select sa.student_id, bc.name, c.auto_comment, c.manual_comment
    from comment c
    join submitted_notebook sn on sn.id = c.notebook_id
    join submitted_assignment sa on sa.id = sn.assignment_id
    join base_cell bc on bc.id = c.cell_id
"""


def dump(classroom_root: Path) -> list[str]:
    """Grades and comments of all submissions, without the random ids, sorted."""
    with sqlite3.connect(classroom_root / "gradebook.db") as database:
        rows = [*database.execute(_GRADES), *database.execute(_COMMENTS)]
    database.close()
    return sorted(map(repr, rows))


def scores(classroom_root: Path) -> dict[str, float]:
    """The sum of each student's automatic scores."""
    with sqlite3.connect(classroom_root / "gradebook.db") as database:
        rows = database.execute(_GRADES).fetchall()
    database.close()
    found: dict[str, float] = {}
    for student, *_, auto, _manual, _extra, _needs, _penalty in rows:
        found[student] = found.get(student, 0.0) + (auto or 0.0)
    return found
