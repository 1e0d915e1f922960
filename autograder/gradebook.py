"""nbgrader's gradebook as a projection of the grades: made from them, again whenever it is wanted.

What people enter in formgrader (manual grades, extra credit, comments) is theirs, and stays.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from nbgrader.api import Assignment as GradebookAssignment
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    GradeCell,
    MissingEntry,
    SolutionCell,
    SourceCell,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.api import Gradebook as NbgraderGradebook
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import select

from .authoring.layout import Lesson
from .classroom import Classroom, shared
from .errors import CourseError
from .gradebook_rows import Entry, Rows
from .notebook import release


def _share(classroom: Classroom) -> None:
    """Let the group of a shared class write: SQLite makes files for their owner alone."""
    path = Path(classroom.db_url.removeprefix("sqlite:///"))
    if shared(classroom.root) and path.is_file() and path.stat().st_uid == os.getuid():
        path.chmod(0o660)


class Gradebook(AbstractContextManager["Gradebook"]):
    """The gradebook of a class, open for one writer."""

    def __init__(self, classroom: Classroom) -> None:
        _let_alembic_be_found()
        self._book = NbgraderGradebook(classroom.db_url, classroom.course_id or "default_course")
        self._db = self._book.db
        _share(classroom)
        self._penalties = AssignLatePenalties(config=classroom.config)
        self._penalties.init_plugin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._book.close()

    # --- the lesson ---

    def register(self, lesson: Lesson) -> None:
        """Let the gradebook know a lesson's graded cells as they are now.

        nbgrader's own command refuses once there are submissions; here cells that are new get
        their place in those too, and cells that are gone go, unless somebody graded them by hand.
        """
        book, slug = self._book, lesson.slug
        book.update_or_create_assignment(slug)
        notebook = release(lesson)
        try:
            book.find_notebook(slug, slug)
        except MissingEntry:
            kernel = json.dumps(notebook["metadata"]["kernelspec"])
            book.add_notebook(slug, slug, kernelspec=kernel)
        wanted = {
            cell["id"]: cell
            for cell in notebook["cells"]
            if cell["metadata"].get("nbgrader", {}).get("grade")
        }
        known = {cell.name: cell for cell in book.find_notebook(slug, slug).source_cells}
        if known.keys() == wanted.keys() and all(
            _same(known[name], cell) for name, cell in wanted.items()
        ):
            return
        for name, cell in wanted.items():
            told = cell["metadata"]["nbgrader"]
            kind = {"cell_type": cell["cell_type"]}
            points = float(told["points"])
            book.update_or_create_grade_cell(name, slug, slug, max_score=points, **kind)
            if told["solution"]:
                book.update_or_create_solution_cell(name, slug, slug)
            book.update_or_create_source_cell(
                name,
                slug,
                slug,
                locked=not told["solution"],
                source=cell["source"],
                checksum=told["checksum"],
                **kind,
            )
        self._remove_cells(lesson, known.keys() - wanted.keys())
        self._complete_submissions(lesson)

    def _remove_cells(self, lesson: Lesson, names: set[str]) -> None:
        notebook = self._book.find_notebook(lesson.slug, lesson.slug)
        for cell in [*notebook.grade_cells, *notebook.solution_cells]:
            if cell.name not in names:
                continue
            for grade in list(cell.grades) if isinstance(cell, GradeCell) else []:
                if grade.manual_score is not None or grade.extra_credit is not None:
                    raise CourseError(
                        f"{cell.name} is no cell of {lesson.slug} any more, but somebody graded it "
                        "by hand: clear those grades in formgrader first"
                    )
                self._db.delete(grade)
            for comment in list(cell.comments) if isinstance(cell, SolutionCell) else []:
                self._db.delete(comment)
            self._db.delete(cell)
        for source in [one for one in notebook.source_cells if one.name in names]:
            self._db.delete(source)
        self._db.commit()

    def _complete_submissions(self, lesson: Lesson) -> None:
        notebook = self._book.find_notebook(lesson.slug, lesson.slug)
        for submitted in notebook.submissions:
            graded = {grade.cell_id for grade in submitted.grades}
            commented = {comment.cell_id for comment in submitted.comments}
            for cell in notebook.grade_cells:
                if cell.id not in graded:
                    self._db.add(Grade(cell_id=cell.id, notebook=submitted))
            for cell in notebook.solution_cells:
                if cell.id not in commented:
                    self._db.add(Comment(cell_id=cell.id, notebook=submitted))
        self._db.commit()

    # --- submissions ---

    def scores(self, lesson: Lesson) -> dict[str, tuple[datetime | None, dict[str, float | None]]]:
        """When each student handed in, and the automatic scores, as the gradebook has them."""
        rows = self._db.execute(
            select(
                SubmittedAssignment.student_id,
                SubmittedAssignment.timestamp,
                BaseCell.name,
                Grade.auto_score,
            )
            .join(GradebookAssignment, GradebookAssignment.id == SubmittedAssignment.assignment_id)
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
            .join(BaseCell, BaseCell.id == Grade.cell_id)
            .where(GradebookAssignment.name == lesson.slug)
        )
        found: dict[str, tuple[datetime | None, dict[str, float | None]]] = {}
        for student, timestamp, cell, score in rows:
            moment = None if timestamp is None else timestamp.replace(tzinfo=UTC)
            found.setdefault(student, (moment, {}))[1][cell] = score
        return found

    def write(self, lesson: Lesson, entries: Sequence[Entry]) -> None:
        """Bring submissions up to date, in one transaction, as nbgrader's autograding would."""
        Rows(self._db.connection(), lesson.slug).write(entries)
        self._db.commit()
        self._write_penalties(lesson, [entry.student for entry in entries])

    def _write_penalties(self, lesson: Lesson, students: Sequence[str]) -> None:
        """What nbgrader's plugin takes off late submissions; due dates are set in formgrader."""
        if self._book.find_assignment(lesson.slug).duedate is None:
            return
        for student in students:
            submission = self._book.find_submission(lesson.slug, student)
            (submitted,) = submission.notebooks
            submitted.late_submission_penalty = self._penalty(submission, submitted)
        self._db.commit()
        # else the session holds every submission that it ever wrote
        self._db.expunge_all()

    def _penalty(self, submission: Any, submitted: Any) -> float | None:
        late = submission.total_seconds_late
        if late <= 0:
            return None
        score = submitted.score
        penalty = self._penalties.plugin_inst.late_submission_penalty(
            submission.student.id, score, late
        )
        return None if penalty is None else min(max(0.0, penalty), score)


def _let_alembic_be_found() -> None:
    """nbgrader runs it by name; it lies beside Python, whose folder need not be on the path."""
    if shutil.which("alembic") is None:
        folders = [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
        os.environ["PATH"] = os.pathsep.join(folders)


def _same(known: SourceCell, cell: Mapping[str, Any]) -> bool:
    """Whether the gradebook knows a cell as it is; its points are in the checksum."""
    return bool(
        known.checksum == cell["metadata"]["nbgrader"]["checksum"]
        and known.source == cell["source"]
        and known.cell_type == cell["cell_type"]
    )
