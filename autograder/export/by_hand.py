"""What people graded by hand, read from nbgrader's gradebook: written answers and corrections."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ..errors import CourseError
from .rows import ByHand

FILE = "gradebook.db"

# in one query: nbgrader's own objects take minutes for thousands of students. A grade by hand
# stands in the place of the judge's, so only the difference counts beside that; an answer that
# only a person can grade is a cell of text
QUERY = """
select submitted.student_id, assignment.name,
    sum(coalesce(grade.manual_score - coalesce(grade.auto_score, 0), 0)
        + coalesce(grade.extra_credit, 0)),
    sum(case when cell.cell_type = 'markdown' then cell.max_score else 0 end),
    sum(grade.needs_manual_grade)
from grade
join (
    select id, max_score, cell_type from grade_cells
    union all select id, max_score, cell_type from task_cells
) as cell on cell.id = grade.cell_id
join submitted_notebook as notebook on notebook.id = grade.notebook_id
join submitted_assignment as submitted on submitted.id = notebook.assignment_id
join assignment on assignment.id = submitted.assignment_id
group by submitted.student_id, assignment.name
"""


def read_by_hand(path: Path, lessons: Mapping[str, str]) -> dict[tuple[str, str], ByHand]:
    """What `gradebook.db` holds beside the judge's points, by student and lesson.

    `lessons` gives the lesson of each assignment's name; without a file there is nothing. The
    file is only read. Raises CourseError if it is no gradebook.
    """
    if not path.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            found = database.execute(QUERY).fetchall()
    except sqlite3.Error as error:
        raise CourseError(f"{path} is no gradebook of nbgrader: {error}") from error
    return {
        (student, lessons[assignment]): ByHand(points, most, waiting)
        for student, assignment, points, most, waiting in found
        if assignment in lessons
    }
