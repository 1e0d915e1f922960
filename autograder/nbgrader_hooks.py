"""Puts the judge into nbgrader: `nbgrader autograde`, NbGraderAPI and formgrader's button.

nbgrader runs notebooks to grade them. Here none is ever run: a notebook is read as data, put in
order by the released one, and its graded cells get their outputs from the judge's verdict. From
there on everything is nbgrader's own: SaveAutoGrades, gradebook.db, formgrader, the feedback.

What its settings cannot reach is set in `_patch`: it looks only at folders that hold a notebook of
the right name, and copies whatever else lies there.
"""

from __future__ import annotations

import atexit
import glob
import os
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import nbgrader.apps.api
import nbgrader.converters.base
import nbgrader.exchange.default.release_feedback
import nbgrader.utils
from nbconvert.exporters import NotebookExporter
from nbgrader.apps import NbGraderAPI
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets.config import Config

from . import exchange
from .authoring.layout import ROOT, Lesson
from .class_grading import ClassGrading
from .classroom import Classroom, classroom_of, lesson_of, shared, student_id
from .errors import CourseError
from .gradebook import Gradebook
from .grading import Settings, grade, local_pool
from .judge.verdict import LessonVerdict
from .members import BrokenPack
from .notebook import restored, write_back
from .projection import lay_autograded
from .safe_markdown import safe_markdown
from .submission import Submission, read_submission, read_timestamp

_HERE = __name__
_ORIGINALS = SimpleNamespace(
    init_notebooks=Autograde.init_notebooks, init_assignment=Autograde.init_assignment
)


def configure(c: Config, file: str, course_id: str) -> None:
    """Set nbgrader up for a class; `file` is the configuration that says so, in its folder."""
    root = Path(file).resolve().parent
    c.CourseDirectory.root = str(root)
    c.CourseDirectory.course_id = course_id
    c.CourseDirectory.source_directory = "lessons" if root == ROOT else str(ROOT / "lessons")
    c.Autograde.exporter_class = f"{_HERE}.SubmissionExporter"
    c.Autograde.autograde_preprocessors = [
        f"{_HERE}.WriteVerdict",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.HTMLExporter.filters = {"markdown2html": f"{safe_markdown.__module__}.safe_markdown"}
    if shared(root):
        # several accounts grade one class: each may change what another has made
        c.CourseDirectory.groupshared = True
        os.umask(0o007)
    _patch(root)


# --- what nbgrader calls ---


class SubmissionExporter(NotebookExporter):
    """Reads a submission's notebook as data, and in its place the released one where there is none.

    nbgrader converts twice: first what was submitted, then what came out of that.
    """

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kw: Any
    ) -> Any:
        told = (resources or {}).get("nbgrader", {})
        lesson = lesson_of(told.get("assignment", ""))
        autograde: Any = self.parent
        if lesson is None or not autograde._sanitizing:
            return super().from_filename(filename, resources=resources, **kw)
        submission = _submission(autograde.coursedir, told["student"], lesson)
        notebook, notes = restored(lesson, submission.notebook)
        for note in notes:
            self.log.warning("%s, %s: %s", told["student"], lesson.slug, note)
        node = nbformat.from_dict(notebook)
        return self.from_notebook_node(node, resources=resources, **kw)


class WriteVerdict(NbGraderPreprocessor):
    """Stands where nbgrader has Execute: the outputs of graded cells come from the judge."""

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        told = resources["nbgrader"]
        lesson = lesson_of(told["assignment"])
        if lesson is None:
            raise NbGraderException(
                f"{told['assignment']} is no lesson of this course, and nothing else is graded "
                "with its nbgrader_config.py"
            )
        course = self.parent.parent.coursedir
        verdict = verdict_on(classroom_of(course), _submission(course, told["student"], lesson))
        write_back(nb, {check.id: check for check in verdict.checks})
        return nbformat.from_dict(nb), resources


# --- the verdict ---


def verdict_on(classroom: Classroom, submission: Submission) -> LessonVerdict:
    """What stands for a submission, else what the judge says now, which stands from then on.

    Raises CourseError if it cannot be judged.
    """
    grading = ClassGrading(classroom, Settings(classroom.secret()))
    standing = grading.journal.grade(submission.student, submission.lesson)
    if standing is not None and standing.key.submission == submission.sha256:
        # with checks of today it might be another: `autograder grade --regrade` asks first
        return standing.lesson
    key = grading.key(submission)
    verdict = grading.journal.find(key)
    if verdict is None:
        (outcome,) = grade([submission], _pool(), grading.settings, ahead=1)
        if outcome.verdict is None:
            if isinstance(outcome.failure, BrokenExecutor):
                _pool.cache_clear()  # the next submission gets a pool of its own
            raise CourseError(f"{submission.student}, {submission.lesson}: {outcome.why}")
        verdict = outcome.verdict
        grading.journal.keep(key, verdict)
    grading.journal.stand(submission.student, key, submission.received)
    return verdict.lessons[submission.lesson]


@cache
def _pool() -> ProcessPoolExecutor:
    """One worker for all submissions that this process grades: it starts in seconds."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(local_pool(1))


def _submission(course: CourseDirectory, student: str, lesson: Lesson) -> Submission:
    try:
        return read_submission(classroom_of(course), student, lesson)
    except BrokenPack as error:
        raise CourseError(f"{student}, {lesson.slug}: {error}") from error


# --- what no setting reaches ---


def _patch(root: Path) -> None:
    Autograde.init_notebooks = init_notebooks
    Autograde.init_assignment = init_assignment
    CourseDirectory.get_existing_timestamp = get_existing_timestamp
    NbGraderAPI.get_submitted_timestamp = get_submitted_timestamp
    exchange.set_up()
    if glob.escape(str(root)) != str(root):
        _let_brackets_be(str(root))


def init_notebooks(self: Autograde) -> None:
    """Take every folder of a student for a submission, whether a notebook lies in it or not."""
    course = self.coursedir
    lesson = lesson_of(course.assignment_id)
    if lesson is None:
        _ORIGINALS.init_notebooks(self)
        return
    classroom = classroom_of(course)
    with Gradebook(classroom) as book:
        book.register(lesson)
    self.assignments, self.notebooks = {}, []
    for student in classroom.students(lesson):
        if student == course.student_id or fnmatchcase(student, course.student_id):
            try:
                student_id(student)  # formgrader's pages would take some for markup
            except CourseError as error:
                self.log.error("%s is not graded: %s", ascii(student), error)
                continue
            folder = self._format_source(course.assignment_id, student)
            self.assignments[folder] = [os.path.join(folder, f"{lesson.slug}.ipynb")]
    if not self.assignments:
        message = f"{course.student_id!r} handed in nothing for {lesson.slug}"
        self.log.error(message)
        raise NbGraderException(message)


def init_assignment(self: Autograde, assignment_id: str, student_id: str) -> None:
    """Copy what the judge reads, and nothing else: no weights, no links, no source over it."""
    lesson = lesson_of(assignment_id)
    if lesson is None:
        _ORIGINALS.init_assignment(self, assignment_id, student_id)
        return
    submission = _submission(self.coursedir, student_id, lesson)
    with _copying_nothing(self.coursedir):
        _ORIGINALS.init_assignment(self, assignment_id, student_id)
    folder = Path(self._format_dest(assignment_id, student_id))
    lay_autograded(folder, classroom_of(self.coursedir), submission, None)


def get_existing_timestamp(self: CourseDirectory, dest_path: str) -> datetime | None:
    """The time in a submission's folder, which came from a student through the exchange.

    nbgrader's own stops at what is no time: the command for whoever comes after, and formgrader's
    list for everybody.
    """
    moment = read_timestamp(Path(dest_path))
    return None if moment is None else moment.replace(tzinfo=None)


def get_submitted_timestamp(
    self: NbGraderAPI, assignment_id: str, student_id: str
) -> datetime | None:
    """The same for formgrader."""
    course = self.coursedir
    folder = course.format_path(course.submitted_directory, student_id, assignment_id)
    return get_existing_timestamp(course, folder)


@contextmanager
def _copying_nothing(course: CourseDirectory) -> Iterator[None]:
    ignored = course.ignore
    course.ignore = ["*"]
    try:
        yield
    finally:
        course.ignore = ignored


def _let_brackets_be(root: str) -> None:
    """Let nbgrader find files below a folder such as `[test] a+b (c)`.

    It searches by patterns, and would take the brackets in the class's own folder for a part of
    them.
    """

    def search(pattern: str, *args: Any, **kw: Any) -> list[str]:
        if pattern.startswith(root):
            pattern = glob.escape(root) + pattern.removeprefix(root)
        return glob.glob(pattern, *args, **kw)

    for module in (
        nbgrader.converters.base,
        nbgrader.apps.api,
        nbgrader.utils,
        nbgrader.exchange.default.release_feedback,
    ):
        module.glob = SimpleNamespace(glob=search)
