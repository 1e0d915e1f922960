"""What `autograder collect`, `grade` and `judge` do and say."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from .authoring.files import write_atomically
from .authoring.layout import Lesson, find_lesson
from .class_grading import ClassGrading, Failure, Judge, Move, Report, Standing, Work
from .classroom import Classroom, find_classroom, graded_lessons
from .collect import Receipt, collect, remove_arriving
from .errors import CourseError
from .export.cells import number, safe, write_table
from .grading import Outcome, Settings, grade_locally
from .journal import Journal
from .judge.verdict import LessonVerdict
from .late import FILE, read_due_dates, told_moment
from .lists import read_roster, read_times
from .packs import MOODLE
from .report.page import plural
from .submission import Submission, read_handed
from .verdict_cells import told

SHOWN = 40  # students, or moves, on the screen; more are in the reports
UNSANDBOXED = (
    "WITHOUT A SANDBOX: what students wrote runs as you, and can read and change all you can"
)


# --- collect ---


@dataclass(frozen=True)
class Handover:
    """What `autograder collect` is told about packs, as it was written."""

    lesson: str | None = None
    student: str | None = None
    received: str | None = None
    times: Path | None = None
    roster: Path | None = None
    whole_class: bool = False


def run_collect(console: Console, paths: Sequence[Path], told: Handover) -> None:
    """Take in packs; raises CourseError at the end if some were refused."""
    if told.student is not None and len(paths) != 1:
        raise CourseError(f"--student is for one pack, and {len(paths)} are named")
    if told.received is not None and told.times is not None:
        raise CourseError("--received is one time for all packs, and --times has one for each")
    classroom = find_classroom(packs=paths)
    chosen = None if told.lesson is None else graded_lesson(told.lesson)
    zone = read_due_dates(classroom.root / FILE, graded_lessons()).zone
    moment = None if told.received is None else _received(told.received, zone)
    times = None if told.times is None else read_times(told.times, zone)
    roster = None if told.roster is None else read_roster(told.roster)
    owners, refused, numbered = set(), [], []
    count = 0
    with classroom.only_writer():
        remove_arriving(classroom)
        for result in collect(
            classroom,
            paths,
            lesson=chosen,
            student=told.student,
            received=moment,
            times=times,
            roster=roster,
            whole_class=told.whole_class,
        ):
            owners.add(result.student)
            if isinstance(result, Receipt):
                count += 1
                numbered += [result.student] if result.platform == MOODLE else []
                console.print(escape(result.line()))
            else:
                refused.append(result)
    # at the end, where nobody has to look for them among thousands
    for pack in refused:
        console.print(f"[bold]refused[/] {escape(f'{pack.student}: {pack.why}')}")
    console.print(f"{count} taken in; receipts are in {escape(str(classroom.kept / 'receipts'))}")
    if numbered:
        are = "id is a number" if len(numbered) == 1 else "ids are numbers"
        console.print(
            f"{len(numbered)} {are} that Moodle gave for this assignment alone: for ids that hold "
            f"in all lessons delete their folders in {escape(str(classroom.submitted))} and "
            "collect again, with the grading worksheet as --roster"
        )
    if absent := sorted(set(times or ()) - owners):
        names = f"{', '.join(absent[:SHOWN])}{' and more' if len(absent) > SHOWN else ''}"
        console.print(escape(f"{len(absent)} with a time and without a pack: {names}"))
    if refused:
        names = ", ".join(pack.origin for pack in refused[:SHOWN])
        raise CourseError(f"{len(refused)} of {count + len(refused)} packs refused: {names}")


def _received(text: str, zone: ZoneInfo | None) -> datetime:
    try:
        return told_moment(text, zone)
    except CourseError as error:
        raise CourseError(f"--received: {error}") from error


# --- grade ---


@dataclass(frozen=True)
class Wishes:
    """What `autograder grade` is asked for; `judging` says where, by default here."""

    lessons: Sequence[str] = ()
    students: Sequence[str] = ()
    workers: int = 1
    dependencies: str = "reference"
    sandboxed: bool = True
    regrade: bool = False
    yes: bool = False
    judging: Callable[[Settings], Judge] | None = None


def run_grade(console: Console, wishes: Wishes) -> None:
    """Grade a class. Raises CourseError at the end if some submissions could not be graded."""
    classroom = find_classroom()
    lessons = [graded_lesson(name) for name in wishes.lessons] or list(graded_lessons().values())
    # a lesson that nobody handed in is none of the gradebook's business yet
    lessons = [lesson for lesson in lessons if classroom.students(lesson)]
    _refuse_unknown(classroom, lessons, wishes.students)
    if not wishes.sandboxed:
        console.print(f"[bold]{UNSANDBOXED}[/]")
    with classroom.only_writer():
        settings = Settings(classroom.secret(), wishes.dependencies, wishes.sandboxed)
        grading = ClassGrading(classroom, settings)
        grading.journal.tidy()
        work = [grading.plan(one, wishes.students or None, wishes.regrade) for one in lessons]
        with ThreadPoolExecutor(1) as beside:
            # a new gradebook is laid out by a process that takes seconds, as the workers do to wake
            # up: both at once. A fault is told when the gradebook is written
            beside.submit(grading.lay_out_gradebook)
            report = _judge(console, grading, work, wishes, settings)
        with Live(console, None, "gradebook") as live:
            written = grading.project(lessons, live.step)
    _show_graded(console, grading.journal, report.graded)
    kept = sum(len(one.kept) for one in work)
    console.print(
        f"{len(report.graded)} graded, {kept} unchanged, {len(report.failures)} failed; "
        f"{written} written into the gradebook"
    )
    if older := sum(len(one.older) for one in work):
        console.print(
            f"{older} keep grades that were made with other checks or settings: "
            "`autograder grade --regrade` shows whose would move"
        )
    if not report.committed:
        console.print("no grade was moved; the new verdicts wait for the next --regrade")
    _show_failures(console, report.failures)
    if report.failures:
        count = len(report.failures)
        raise CourseError(
            f"{count} submission{'s' * (count > 1)} could not be graded; all others are done"
        )


def _judge(
    console: Console,
    grading: ClassGrading,
    work: Sequence[Work],
    wishes: Wishes,
    settings: Settings,
) -> Report:
    count = sum(len(one.judge) for one in work)

    def locally(submissions: Iterable[Submission]) -> Iterator[Outcome]:
        return grade_locally(submissions, max(1, min(wishes.workers, count)), settings)

    judge = locally if wishes.judging is None else wishes.judging(settings)
    with Live(console, count, "judged") as live:

        def confirm(moves: list[Move]) -> bool:
            live.stop()
            path = grading.classroom.kept / "moves.csv"
            _write_moves(path, moves)
            _show_moves(console, moves, path)
            return wishes.yes or typer.confirm(f"Move {plural(len(moves), 'grade')}?")

        # without work no process is started
        return grading.run(work, judge if count else _nothing, confirm=confirm, done=live.done)


def _nothing(submissions: Iterable[Submission]) -> Iterator[Outcome]:
    return iter(())


def graded_lesson(word: str) -> Lesson:
    lesson = find_lesson(word)
    if not lesson.graded:
        raise CourseError(f"{lesson.name} is a stretch lesson: it is not graded")
    return lesson


def _refuse_unknown(
    classroom: Classroom, lessons: Sequence[Lesson], students: Sequence[str]
) -> None:
    known = {student for lesson in lessons for student in classroom.students(lesson)}
    for student in students:
        if student not in known:
            raise CourseError(
                f"{student!r} handed in nothing that could be graded: the ids are the names of "
                f"the folders in {classroom.submitted}"
            )
    if not known:
        raise CourseError(f"there is nothing in {classroom.submitted}: `autograder collect` first")


class Live:
    """A bar with done, failed, left and the time left; in a log a line for each tenth."""

    def __init__(self, console: Console, total: int | None, what: str) -> None:
        self._console, self._total, self._what = console, total, what
        self._done = self._failed = 0
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        rest = (TextColumn("{task.fields[note]}"), TimeRemainingColumn())
        self._progress = Progress(
            *columns, *rest, console=console, transient=True, disable=not console.is_terminal
        )
        self._task = self._progress.add_task(what, total=total, note="")

    def __enter__(self) -> Live:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._progress.stop()

    def step(self) -> None:
        self._progress.advance(self._task)

    def done(self, outcome: Outcome) -> None:
        self._done += 1
        self._failed += outcome.verdict is None
        left = (self._total or self._done) - self._done
        note = f"{self._failed} failed, {left} left"
        self._progress.update(self._task, advance=1, note=note)
        if not self._console.is_terminal and self._done % max(1, (self._total or 10) // 10) == 0:
            self._console.print(f"{self._what} {self._done}, {note}")


# --- judge ---


def run_judge(
    console: Console,
    path: Path,
    lessons: Sequence[str],
    as_json: bool,
    junit: Path | None,
    dependencies: str,
    sandboxed: bool,
) -> None:
    """Judge one package without any gradebook; `junit` is a file for the verdict as JUnit XML."""
    handed = read_handed(path.absolute())
    there = [name for name in graded_lessons() if name in handed.modules]
    chosen = [graded_lesson(name).name for name in lessons] or there
    if not chosen:
        raise CourseError(f"{path} holds no lesson's module: name the folder with course_lib/")
    from .judge.worker import Job, judge_job
    from .report.junit import as_junit

    secret = find_classroom(packs=[path]).secret()
    verdict = judge_job(Job(handed.files(), chosen, secret, dependencies, sandboxed))
    if junit is not None:
        write_atomically(junit, as_junit(verdict).encode())
    if as_json:
        # not through the console, which would wrap it
        sys.stdout.write(json.dumps(verdict.as_data()) + "\n")
        return
    for name in chosen:
        console.print(escape(f"{name}: {summary(verdict.lessons[name])}"))
        for check in verdict.lessons[name].checks:
            if not check.passed:
                claim, *rest = told(check)
                console.print(f"  {escape(claim)}")
                # what a learner's code has said stays apart, however long its lines are
                said = Padding(Text("\n".join(rest)), (0, 0, 0, 6))
                console.print(said, soft_wrap=False)
    console.print(escape(f"sandbox: {verdict.sandbox}"))


# --- what is said ---


def summary(lesson: LessonVerdict) -> str:
    """`7 of 16 points; visible 8/12 passed, hidden 3/7 passed`."""
    counts = []
    for word, hidden in (("visible", False), ("hidden", True)):
        group = [check for check in lesson.checks if check.hidden is hidden]
        passed = sum(check.passed for check in group)
        counts.append(f"{word} {passed}/{len(group)} passed" if group else f"{word} not run")
    return f"{lesson.score:g} of {lesson.max:g} points; {', '.join(counts)}"


def _show_graded(console: Console, journal: Journal, graded: Sequence[Standing]) -> None:
    """A line a student, if they are few, and the checks of each lesson."""
    items: dict[str, dict[str, Counter[str]]] = {}
    for standing in sorted(graded, key=lambda one: (one.key.lesson, one.student)):
        verdict = journal.find(standing.key)
        if verdict is None:
            continue
        lesson = verdict.lessons[standing.key.lesson]
        if len(graded) <= SHOWN:
            said = f"{standing.student}, {lesson.lesson}: {summary(lesson)}"
            console.print(escape(said))
        for check in lesson.checks:
            counts = items.setdefault(lesson.lesson, {}).setdefault(check.id, Counter())
            counts[check.cause] += 1
    for name, checks in items.items():
        console.print(_items(name, checks))


def _items(lesson: str, checks: Mapping[str, Counter[str]]) -> Table:
    table = Table(title=lesson, box=None, title_justify="left")
    for column in ("check", "passed", "not passed, by cause"):
        table.add_column(column)
    for name, counts in checks.items():
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        causes = [f"{cause} {count}" for cause, count in ranked if cause]
        table.add_row(name, f"{counts['']}/{counts.total()}", ", ".join(causes))
    return table


def _show_moves(console: Console, moves: Sequence[Move], path: Path) -> None:
    table = Table(title="Grades that would move", box=None, title_justify="left")
    for column in ("student", "lesson", "points", "checks"):
        table.add_column(column)
    for move in moves[:SHOWN]:
        points = f"{move.before:g} -> {move.after:g}"
        table.add_row(escape(move.student), move.lesson, points, "; ".join(move.changes))
    console.print(table)
    up = sum(move.after > move.before for move in moves)
    down = sum(move.after < move.before for move in moves)
    console.print(f"{up} up, {down} down, {len(moves) - up - down} as before in points")
    console.print(f"all of them: {escape(str(path))}")


def _write_moves(path: Path, moves: Sequence[Move]) -> None:
    """All moves as a table, for a screen shows the first of them."""
    rows = [("student", "lesson", "before", "after", "checks")]
    for move in moves:
        points = (number(move.before), number(move.after))
        rows.append((safe(move.student), move.lesson, *points, safe("; ".join(move.changes))))
    write_atomically(path, write_table(rows, bom=True))


def _show_failures(console: Console, failures: Sequence[Failure]) -> None:
    """A line for each cause, with those whose submission could not be graded for it."""
    causes: dict[tuple[str, str], list[str]] = {}
    for failure in failures:
        causes.setdefault((failure.lesson, failure.why), []).append(failure.student)
    for (lesson, why), students in causes.items():
        more = f" and {len(students) - SHOWN:,} more" if len(students) > SHOWN else ""
        told = f"{', '.join(students[:SHOWN])}{more}, {lesson}: {why}"
        console.print(f"[bold]not graded[/] {escape(told)}")
