"""What `autograder export` and `autograder report` do and say: they read the class, run nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from .authoring.files import write_atomically
from .authoring.layout import ROOT, Lesson, find_lesson, solution_path, stub_path
from .classroom import Classroom, blob_name, find_classroom, graded_lessons
from .collect import platform_numbers
from .errors import CourseError
from .export.by_hand import read_by_hand
from .export.canvas import as_canvas
from .export.cells import safe
from .export.data import as_json
from .export.moodle import as_moodle
from .export.rows import ByHand, Row, as_row
from .export.table import as_csv
from .journal import Grade, Journal
from .late import FILE, DueDates, When, read_due_dates
from .members import BrokenPack
from .packs import CANVAS, MOODLE
from .records import Record
from .report.instructor import Findings, instructor_page
from .report.learner import learner_page
from .report.page import GENERATOR, plural
from .similarity import Leads, find_leads
from .submission import Submission, read_submission

SHOWN = 6  # ids in a line before "and 12 more"
SQLITE = "sqlite:///"

WRITERS = {"csv": as_csv, "moodle": as_moodle}


def run_export(console: Console, kind: str, out: Path, names: Sequence[str]) -> None:
    """Write the grades of a class into one file. Raises CourseError if it is there already."""
    classroom = find_classroom()
    lessons = _lessons(names)
    due = _due_dates(classroom)
    assignments = {lesson.slug: lesson.name for lesson in lessons}
    hand = read_by_hand(_book(classroom), assignments)
    graded = _with_rows(classroom, lessons, due, hand)
    # ids that are a platform's own numbers
    numbers = platform_numbers(classroom, {"canvas": CANVAS, "moodle": MOODLE}.get(kind, ""))
    rows: list[Row] = []
    if kind == "json":
        data = as_json(_noting(graded, rows))
    else:
        rows = [row for _, row in graded]
        data = as_canvas(rows, numbers) if kind == "canvas" else WRITERS[kind](rows)
    if not rows:
        raise CourseError("there are no grades yet: run `autograder grade` first")
    if out.exists() and out.read_bytes() != data:
        raise CourseError(f"{out} is there already and holds something else: name another with -o")
    write_atomically(out, data)
    students = {row.student for row in rows}
    console.print(f"{escape(str(out))}: {plural(len(rows), 'grade')} of {len(students):,} learners")
    _say(console, f"extensions in {FILE} of ids without a grade", due.unknown(students))
    _say(console, "not graded by hand yet", sorted({row.student for row in rows if row.waiting}))
    closed = sorted({row.student for row in rows if row.late == When.CLOSED})
    _say(console, "came after the lesson closed, so that it counts nothing", closed)
    if kind == "moodle":
        told = "numbers of one assignment, which its import does not know: collect with --roster"
        _say(console, told, sorted(students & numbers))
    if kind in ("canvas", "moodle"):
        guarded = sorted(student for student in students if safe(student) != student)
        _say(console, "ids like formulas got an apostrophe: mend their lines", guarded)


def run_report(console: Console, names: Sequence[str], out: Path, students: Sequence[str]) -> None:
    """Write the instructor's page of each lesson and a page for each learner."""
    classroom = find_classroom()
    due = _due_dates(classroom)
    journal = Journal(classroom.kept)
    written = 0
    for lesson in _lessons(names):
        grades = list(journal.grades(lesson.name))
        handed = classroom.students(lesson)
        if not grades and not handed:
            continue
        written += 1
        pages = 0
        for grade in grades:
            if students and grade.student not in students:
                continue
            late = due.judge(grade.student, lesson.name, grade.received)
            page = learner_page(grade.record, late, _earlier(classroom, journal, lesson, grade))
            _write(out / lesson.slug / grade.student / "report.html", page)
            pages += 1
        told = f"{escape(str(out / lesson.slug))}: {plural(pages, 'page')} for learners"
        if not students:
            findings = _findings(classroom, lesson, grades, handed)
            records = [grade.record for grade in grades]
            page = instructor_page(lesson.name, records, due, findings)
            _write(out / f"{lesson.slug}.html", page)
            told += f"; {escape(str(out / lesson.slug))}.html: for the instructor"
        console.print(told)
    if not written:
        raise CourseError("there is nothing to report: run `autograder collect` and `grade` first")


def _lessons(names: Sequence[str]) -> list[Lesson]:
    graded = graded_lessons()
    chosen = [find_lesson(name) for name in names]
    for lesson in chosen:
        if lesson.name not in graded:
            raise CourseError(f"{lesson.name} is a stretch lesson: it is not graded")
    return chosen or list(graded.values())


def _due_dates(classroom: Classroom) -> DueDates:
    return read_due_dates(classroom.root / FILE, graded_lessons())


def _book(classroom: Classroom) -> Path:
    """Where the gradebook lies. Raises CourseError if it is none of SQLite."""
    if not classroom.db_url.startswith(SQLITE):
        raise CourseError(
            f"grades by hand are read from SQLite only, and the gradebook is {classroom.db_url}: "
            "use `nbgrader export`"
        )
    return Path(classroom.db_url.removeprefix(SQLITE))


def _with_rows(
    classroom: Classroom,
    lessons: Sequence[Lesson],
    due: DueDates,
    hand: dict[tuple[str, str], ByHand],
) -> Iterator[tuple[Record, Row]]:
    """Every record with its grade, by lesson and student; one at a time, for they are long."""
    journal = Journal(classroom.kept)
    for lesson in lessons:
        for grade in journal.grades(lesson.name):
            record = grade.record
            yield record, as_row(record, lesson.slug, due, hand)


def _noting(graded: Iterator[tuple[Record, Row]], rows: list[Row]) -> Iterator[tuple[Record, Row]]:
    """The same, and the rows are kept in `rows`."""
    for record, row in graded:
        rows.append(row)
        yield record, row


def _earlier(classroom: Classroom, journal: Journal, lesson: Lesson, grade: Grade) -> Record | None:
    """What the same checks said of what the student handed in before, if anything."""
    folder = classroom.kept / "receipts" / lesson.slug / Path(blob_name(grade.student)).stem
    receipts = []
    for path in folder.glob("*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        received = datetime.fromisoformat(told["received"])
        if received < grade.received and told["sha256"] != grade.key.submission:
            receipts.append((received, told["sha256"]))
    for received, digest in sorted(receipts, reverse=True):
        key = replace(grade.key, submission=digest)
        if (verdict := journal.find(key)) is not None:
            return Grade(grade.student, key, received, verdict).record
    return None


def _findings(
    classroom: Classroom, lesson: Lesson, grades: Sequence[Grade], handed: Sequence[str]
) -> Findings:
    graded = {grade.student for grade in grades}
    failures, files = [], {}
    for student in handed:
        found = _read(classroom, student, lesson)
        if isinstance(found, str):
            failures.append((student, found))
            continue
        if student not in graded:
            failures.append((student, "not graded yet: run `autograder grade`"))
        if lesson.name in found.files:
            files[student] = found.files[lesson.name]
    notes = {grade.student: grade.verdict.notes for grade in grades if grade.verdict.notes}
    return Findings(failures, notes, _leads(lesson, files))


def _read(classroom: Classroom, student: str, lesson: Lesson) -> Submission | str:
    """What a student handed in, or why it cannot be read."""
    try:
        return read_submission(classroom, student, lesson)
    except (BrokenPack, OSError) as error:
        return str(error)


def _leads(lesson: Lesson, files: dict[str, bytes]) -> Leads:
    given = (stub_path(ROOT, lesson.name), solution_path(ROOT, lesson.name))
    return find_leads(files, [path.read_text(encoding="utf-8") for path in given])


def _write(path: Path, page: str) -> None:
    """Write a page, over an older one of ours only."""
    if path.exists() and GENERATOR.encode() not in path.read_bytes()[:2_000]:
        raise CourseError(f"{path} is there already and is no report: name another folder with -o")
    write_atomically(path, page.encode("utf-8", "replace"))


def _say(console: Console, what: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        console.print(f"  {what}: {escape(', '.join(names[:SHOWN]))}{more}")
