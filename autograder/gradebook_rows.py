"""Writes submissions into the gradebook's tables, many in one transaction.

nbgrader's own way is a transaction for each cell and a computed sum for each object that is
touched: a second and more for a submission of twenty cells on a slow disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nbgrader.api import (
    Assignment,
    Comment,
    Grade,
    GradeCell,
    Notebook,
    SolutionCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    new_uuid,
)
from sqlalchemy import Connection, bindparam, insert, select, update

NO_RESPONSE = "No response."

# the tables, not the classes: those load sums over all cells
_STUDENT, _HANDED, _BOOK = (
    kind.__table__ for kind in (Student, SubmittedAssignment, SubmittedNotebook)
)
_GRADE, _COMMENT = Grade.__table__, Comment.__table__


@dataclass(frozen=True)
class Entry:
    """What the gradebook is to hold of one submission."""

    student: str
    timestamp: datetime | None  # aware
    scores: Mapping[str, float | None]  # by graded cell; None: a person has to look
    changed_answers: frozenset[str] = frozenset()  # to be looked at again, if they were graded


class Rows:
    """The rows of one lesson; `book` is the name of its assignment and of its notebook."""

    def __init__(self, connection: Connection, book: str) -> None:
        self._do = connection.execute
        self._assignment, self._notebook = self._do(
            select(Assignment.__table__.c.id, Notebook.__table__.c.id)
            .join(Notebook.__table__)
            .where(Assignment.__table__.c.name == book, Notebook.__table__.c.name == book)
        ).one()
        self._graded, self._answers = (self._cells(kind) for kind in (GradeCell, SolutionCell))

    def write(self, entries: Sequence[Entry]) -> None:
        """Bring the submissions of some students up to date, each student once."""
        by_student = {entry.student: entry for entry in entries}
        books = self._books(by_student)
        fresh = [entry for entry in entries if entry.student not in books]
        self._add(fresh)
        self._update({books[name]: entry for name, entry in by_student.items() if name in books})
        for entry in entries:
            if entry.timestamp is not None:
                self._do(
                    update(_HANDED)
                    .where(_HANDED.c.assignment_id == self._assignment)
                    .where(_HANDED.c.student_id == entry.student)
                    .values(timestamp=entry.timestamp.astimezone(UTC).replace(tzinfo=None))
                )

    def _cells(self, kind: Any) -> dict[str, str]:
        """The cells of a kind: name by id."""
        rows = self._do(select(kind.id, kind.name).where(kind.notebook_id == self._notebook))
        return {row[0]: row[1] for row in rows}

    def _books(self, students: Mapping[str, Entry]) -> dict[str, str]:
        """The submitted notebooks of those who have one, by student."""
        rows = self._do(
            select(_HANDED.c.student_id, _BOOK.c.id)
            .join(_BOOK, _BOOK.c.assignment_id == _HANDED.c.id)
            .where(_HANDED.c.assignment_id == self._assignment)
            .where(_HANDED.c.student_id.in_(list(students)))
        )
        return {row[0]: row[1] for row in rows}

    def _add(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        names = [entry.student for entry in entries]
        known = set(self._do(select(_STUDENT.c.id).where(_STUDENT.c.id.in_(names))).scalars())
        strangers = [{"id": name} for name in names if name not in known]
        if strangers:
            self._do(insert(_STUDENT), strangers)
        handed, books, grades, comments = [], [], [], []
        for entry in entries:
            submission, book = new_uuid(), new_uuid()
            handed.append(
                {"id": submission, "assignment_id": self._assignment, "student_id": entry.student}
            )
            books.append({"id": book, "assignment_id": submission, "notebook_id": self._notebook})
            for cell, name in self._graded.items():
                score = entry.scores[name]
                given = {"auto_score": score, "needs_manual_grade": score is None}
                grades.append({"notebook_id": book, "cell_id": cell, **given})
            for cell, name in self._answers.items():
                said = {"auto_comment": _comment(entry, name)}
                comments.append({"notebook_id": book, "cell_id": cell, **said})
        for table, rows in ((_HANDED, handed), (_BOOK, books), (_GRADE, grades)):
            self._do(insert(table), rows)
        if comments:
            self._do(insert(_COMMENT), comments)

    def _update(self, entries: Mapping[str, Entry]) -> None:
        """Write what is new into submissions that are there; what people entered stays."""
        if not entries:
            return
        grades = []
        for row in self._do(select(_GRADE).where(_GRADE.c.notebook_id.in_(list(entries)))):
            entry, name = entries[row.notebook_id], self._graded.get(row.cell_id)
            if name is None:
                continue
            score = entry.scores[name]
            needs = row.needs_manual_grade
            if row.manual_score is None:
                needs = score is None
            elif row.auto_score != score or name in entry.changed_answers:
                needs = True  # somebody graded what is not there any more
            grades.append({"row": row.id, "auto": score, "needs": needs})
        if grades:
            self._do(
                update(_GRADE)
                .where(_GRADE.c.id == bindparam("row"))
                .values(auto_score=bindparam("auto"), needs_manual_grade=bindparam("needs")),
                grades,
            )
        comments = [
            {"row": row.id, "auto": _comment(entries[row.notebook_id], self._answers[row.cell_id])}
            for row in self._do(select(_COMMENT).where(_COMMENT.c.notebook_id.in_(list(entries))))
            if row.cell_id in self._answers
        ]
        if comments:
            self._do(
                update(_COMMENT)
                .where(_COMMENT.c.id == bindparam("row"))
                .values(auto_comment=bindparam("auto")),
                comments,
            )


def _comment(entry: Entry, answer: str) -> str | None:
    return NO_RESPONSE if entry.scores.get(answer) == 0 else None
