"""Brings nbgrader's folder `autograded` and its gradebook to what the grades say.

What is there is compared with what should be, and only what differs is written: so it does not
matter at which moment the last run ended, nor who deleted the gradebook.
"""

from __future__ import annotations

import hmac
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .authoring.files import PART, remove_parts, write_atomically
from .authoring.layout import Lesson
from .classroom import Classroom, graded_lessons
from .gradebook import Gradebook
from .gradebook_rows import Entry
from .journal import Grade, Journal
from .judge.verdict import LessonVerdict
from .members import BrokenPack
from .notebook import Notebook, answers, graded_ids, restored, to_bytes, write_back
from .submission import (
    EXCHANGE_SECRET,
    MODULES,
    TIMESTAMP,
    Submission,
    as_timestamp,
    read_submission,
    stub,
)

BATCH = 50  # submissions in one transaction
LONGEST_SECRET = 1_000
MARK = "verdict.txt"  # in the autograded folder: which verdict its notebook shows


@dataclass(frozen=True)
class Shown:
    """A submission as nbgrader is to show it."""

    notebook: Notebook
    scores: dict[str, float | None]  # by graded cell; None: a person has to look
    notes: list[str]


def shown(lesson: Lesson, data: bytes | None, verdict: LessonVerdict) -> Shown:
    """The notebook for the gradebook, and the scores that nbgrader will read from it."""
    notebook, notes = restored(lesson, data)
    checks = {check.id: check for check in verdict.checks}
    write_back(notebook, checks)
    scores: dict[str, float | None] = {
        name: float(checks[name].earned) if name in checks else 0.0 for name in graded_ids(lesson)
    }
    for name, text in answers(lesson, notebook).items():
        scores[name] = 0.0 if text is None else None
    return Shown(notebook, scores, notes)


def project(
    classroom: Classroom,
    journal: Journal,
    lesson: Lesson,
    book: Gradebook,
    progress: Callable[[], None] = lambda: None,
) -> int:
    """Bring everything of a lesson up to date; returns how many submissions were not."""
    book.register(lesson)
    known = book.scores(lesson)
    written = 0
    laid: list[tuple[Grade, Entry]] = []
    for grade in journal.grades(lesson.name):
        progress()
        moment, scores = known.get(grade.student, (None, {}))
        there = {name: score for name, score in scores.items() if score is not None}
        if _as_it_should_be(classroom, lesson, grade, there) and moment in (None, grade.received):
            continue
        try:
            submission = read_submission(classroom, grade.student, lesson)
        except BrokenPack:
            continue  # handed in anew, and broken: grading says so, the old grade stands
        if submission.sha256 != grade.key.submission:
            continue
        laid.append((grade, _lay(classroom, lesson, grade, submission)))
        written += 1
        if len(laid) == BATCH:
            _enter(classroom, lesson, laid, book)
    _enter(classroom, lesson, laid, book)
    return written


def mark(grade: Grade) -> str:
    """Names what a projected submission shows."""
    return f"{grade.key.digest} {grade.received.isoformat()}\n"


def _as_it_should_be(
    classroom: Classroom, lesson: Lesson, grade: Grade, there: Mapping[str, float]
) -> bool:
    """Whether folder and gradebook show a grade already."""
    folder = classroom.autograded / grade.student / lesson.slug
    try:
        told = (folder / MARK).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    if told != mark(grade) or not (folder / f"{lesson.slug}.ipynb").is_file():
        return False
    earned = {check.id: float(check.earned) for check in grade.lesson.checks}
    return all(there.get(name) == earned.get(name, 0.0) for name in _code_cells(lesson))


@cache
def _code_cells(lesson: Lesson) -> set[str]:
    written = answers(lesson, restored(lesson, None)[0])
    return graded_ids(lesson).keys() - written.keys()


def _lay(classroom: Classroom, lesson: Lesson, grade: Grade, submission: Submission) -> Entry:
    """Fill the autograded folder; gives what the gradebook is to hold."""
    folder = classroom.autograded / grade.student / lesson.slug
    # without its mark nobody knows which answer a person has seen
    marked = (folder / MARK).is_file()
    before = _earlier_answers(folder / f"{lesson.slug}.ipynb", lesson) if marked else None
    result = shown(lesson, submission.notebook, grade.lesson)
    now = answers(lesson, result.notebook)
    # the mark goes first and comes last: between the two nothing is taken for finished
    (folder / MARK).unlink(missing_ok=True)
    lay_autograded(folder, classroom, submission, to_bytes(result.notebook))
    changed = {name for name in now if before is None or before.get(name) != now[name]}
    moment = submission.received if submission.stamped else None
    return Entry(grade.student, moment, result.scores, frozenset(changed))


def _enter(
    classroom: Classroom, lesson: Lesson, laid: list[tuple[Grade, Entry]], book: Gradebook
) -> None:
    """Write a batch into the gradebook, then mark each as finished; the batch is empty then."""
    if laid:
        book.write(lesson, [entry for _, entry in laid])
    for grade, _ in laid:
        folder = classroom.autograded / grade.student / lesson.slug
        write_atomically(folder / MARK, mark(grade).encode())
    laid.clear()


def lay_autograded(
    folder: Path, classroom: Classroom, submission: Submission, notebook: bytes | None
) -> None:
    """Fill an autograded folder: the notebook, the modules as handed in, the time; nothing else.

    Modules of other lessons that nobody has touched are left out.
    """
    lesson = graded_lessons()[submission.lesson]
    files = {
        f"{MODULES}/{name}.py": data
        for name, data in submission.files.items()
        if name == lesson.name or data != stub(name)
    }
    if notebook is not None:
        files[f"{lesson.slug}.ipynb"] = notebook
    if submission.stamped:
        files[TIMESTAMP] = as_timestamp(submission.received).encode()
    files[EXCHANGE_SECRET] = _exchange_secret(classroom, submission.student, lesson)
    if folder.is_dir():
        remove_parts(folder)
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path.relative_to(folder).as_posix() not in files:
                path.unlink()
    for name, data in files.items():
        path = folder / name
        if not (path.is_file() and path.read_bytes() == data):
            # not synced to the disk: it can all be made again, and the mark comes after it
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}{PART}")
            part.write_bytes(data)
            os.replace(part, path)


def _exchange_secret(classroom: Classroom, student: str, lesson: Lesson) -> bytes:
    """What names a learner's feedback in nbgrader's exchange.

    Who handed in a zip has none, and `nbgrader release_feedback` would stop there for the whole
    class: they get one that nobody can guess.
    """
    path = classroom.submission(student, lesson) / EXCHANGE_SECRET
    try:
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_size <= LONGEST_SECRET:
            return path.read_bytes().decode("ascii").encode()
    except (OSError, ValueError):
        pass
    told = f"feedback/{lesson.name}/{student}".encode()
    return hmac.digest(classroom.secret(), told, "sha256").hex().encode()


def _earlier_answers(path: Path, lesson: Lesson) -> dict[str, str | None] | None:
    """The written answers that were there to be graded by hand, None if nothing was."""
    try:
        notebook = json.loads(path.read_bytes())
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
        return answers(lesson, notebook)
    except (OSError, ValueError, KeyError, TypeError):
        return None
