"""The instructor's command line: makes the lessons, the checks and the learner's editions."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from .errors import CourseError

if TYPE_CHECKING:
    from .authoring.delivery import Report

# the commands import what they need themselves: nbgrader and jupytext take their time, and an
# instructor who only studies needs no jupytext at all

SHOWN = 6  # names in a line before "and 12 more"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Make and grade the course.",
)
# an id such as `:cat:` is told as it is
console = Console(highlight=False, soft_wrap=True, emoji=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

Check = Annotated[bool, typer.Option("--check", help="Write nothing; fail if something is stale.")]


class Edition(StrEnum):
    """For whom a release is."""

    SELF_STUDY = "self-study"
    CLASS = "class"


class ExportFormat(StrEnum):
    """What an export is for."""

    CSV = "csv"
    CANVAS = "canvas"
    MOODLE = "moodle"
    JSON = "json"


class DependenciesOn(StrEnum):
    """Whose functions of other lessons a graded lesson calls."""

    REFERENCE = "reference"
    OWN = "own"


Dependencies = Annotated[
    DependenciesOn, typer.Option(help="Whose functions of other lessons a lesson calls.")
]
Unsandboxed = Annotated[
    bool, typer.Option("--unsandboxed", help="Run students' code unguarded, as you.")
]


@app.command()
def stubs(check: Check = False) -> None:
    """Cut the stubs in course_lib/ from solutions/."""
    from .authoring.stubs import stale_stubs, write_stubs

    if check:
        _refuse_stale([f"course_lib/{name}.py" for name in stale_stubs()], "make stubs")
        return
    _say("cut anew", [f"course_lib/{name}.py" for name in write_stubs()])


@app.command()
def lessons(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Lessons; all if none is named.")
    ] = None,
    check: Check = False,
) -> None:
    """Build the notebooks from their sources, and run them with the solutions in place."""
    from .authoring.layout import find_lesson
    from .authoring.layout import lessons as all_lessons
    from .authoring.notebooks import stale_notebooks, write_lesson

    chosen = [find_lesson(name) for name in names] if names else all_lessons()
    if check:
        stale = stale_notebooks()
        if names:
            stale = [slug for slug in stale if slug in {lesson.slug for lesson in chosen}]
        _refuse_stale([f"lessons/{slug}" for slug in stale], "make lessons")
        return
    for lesson in chosen:
        began = time.perf_counter()
        write_lesson(lesson)
        seconds = time.perf_counter() - began
        console.print(f"{escape(lesson.slug)}: built and run in {seconds:.0f} s")


@app.command()
def known(check: Check = False) -> None:
    """Cut what each known mistake answers in the visible checks into course_lib/checks/known/."""
    from course_lib.checks.kit import lessons as lessons_with_checks

    from .authoring.known import known_path, stale, write_known

    if check:
        names = [known_path(lesson).name for lesson in lessons_with_checks() if stale(lesson)]
        _refuse_stale([f"course_lib/checks/known/{name}" for name in names], "make known")
        return
    _say("cut anew", [f"course_lib/checks/known/{name}.json" for name in write_known()])


@app.command()
def proof(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Lessons; all if none is named.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Put the table into CONTRIBUTING.md.")
    ] = False,
    judge: Annotated[
        bool, typer.Option("--judge", help="Judge it all in the sandbox too, and compare.")
    ] = False,
) -> None:
    """Prove the checks: right answers earn all, wrong ones are refused and named."""
    from course_lib.checks.kit import lessons as lessons_with_checks

    from .authoring.layout import ROOT, find_lesson
    from .authoring.proof import prove
    from .authoring.proof_table import as_table, with_table

    chosen = [find_lesson(name).name for name in names or []] or lessons_with_checks()
    proofs = [prove(lesson) for lesson in chosen]
    Console(width=140).print(as_table(proofs))
    if write:
        if names:
            raise CourseError("the table is about all lessons: leave the names out with --write")
        page = ROOT / "CONTRIBUTING.md"
        page.write_text(with_table(page.read_text(encoding="utf-8"), proofs), encoding="utf-8")
    faults = [fault for proof in proofs for fault in proof.faults]
    faults += _judge_faults(chosen) if judge else []
    for fault in faults:
        errors.print(escape(fault))
    if faults:
        raise CourseError(f"the proof does not hold: {len(faults)} faults")


def _judge_faults(names: Sequence[str]) -> list[str]:
    """What the judge finds otherwise than one process does, said lesson by lesson."""
    from .authoring.judge_proof import prove_judge
    from .judge.sandbox import WarmParent

    faults = []
    with WarmParent() as parent:
        for name in names:
            proof = prove_judge(name, parent)
            faults += [f"{name}: {fault}" for fault in proof.faults]
            console.print(
                f"{name}: {proof.compared} files judged in the sandbox ({parent.level}) as in one "
                f"process; {proof.withheld} are right nowhere but in printed examples or manners"
            )
    return faults


@app.command()
def site(
    folder: Annotated[Path, typer.Argument(help="Where the pages go.")] = Path("site"),
) -> None:
    """Render all lessons as a static site with search, to be opened from the disk."""
    from .authoring.site import build_site

    pages = build_site(folder)
    console.print(f"{escape(str(folder))}/index.html: {len(pages)} lessons")


@app.command()
def study(
    folder: Annotated[Path, typer.Argument(help="Where the learner's edition goes.")] = Path(
        "workspace"
    ),
) -> None:
    """Cut a learner's edition, or bring one up to date without touching the learner's work."""
    from .authoring.edition import cut_edition

    _tell(cut_edition(folder), folder)


@app.command()
def release(
    folder: Annotated[Path, typer.Argument(help="Where it goes.")],
    edition: Annotated[
        Edition,
        typer.Option(help="self-study: one folder, with solutions. class: one a lesson, without."),
    ],
) -> None:
    """Make what goes out: a self-study edition, or nbgrader's release folder for a class."""
    from .authoring.release import release_class, release_self_study
    from .classroom import find_classroom

    if edition is Edition.SELF_STUDY:
        _tell(release_self_study(folder), folder)
        return
    # its settings say who may change what is made in a class
    find_classroom()
    for slug, report in release_class(folder).items():
        _tell(report, folder / slug)


@app.command()
def unlock(
    lesson: Annotated[str, typer.Argument(help="A lesson such as top_k or 3.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file; by default unlock_NAME.json.")
    ] = None,
) -> None:
    """Write a file that gives one lesson's solution to a learner: `course adopt FILE` takes it."""
    from course_lib.given.reference import Reference, as_handout

    from .authoring.files import write_atomically
    from .authoring.layout import ROOT, find_lesson, solution_path

    found = find_lesson(lesson)
    if not found.graded:
        raise CourseError(f"{found.name} is a stretch lesson: it has no solution to hand out")
    path = out or Path(f"unlock_{found.name}.json")
    # `course adopt` tells a file from a lesson by it
    if path.suffix != ".json":
        raise CourseError(f"{path} must end in .json: name it {path.name}.json")
    module = solution_path(ROOT, found.name).read_text(encoding="utf-8")
    data = as_handout(Reference(found.name, module)).encode()
    if path.exists() and path.read_bytes() != data:
        raise CourseError(f"{path} is there already and holds something else: name another with -o")
    write_atomically(path, data)
    console.print(f"{escape(str(path))}: hand it out; `course adopt {escape(path.name)}` takes it")


@app.command()
def simulate(
    out: Annotated[Path, typer.Option(help="Where it goes; must be empty or not there yet.")],
    students: Annotated[int, typer.Option(min=1, help="How many there are.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Lessons; all if none is named.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same class.")] = 0,
) -> None:
    """Make up a class and all that it hands in, to try the grading on."""
    from .authoring.layout import find_lesson
    from .classroom import graded_lessons
    from .simulate import simulate as make_class

    graded = graded_lessons()
    chosen = [find_lesson(name) for name in names] if names else list(graded.values())
    for lesson in chosen:
        if lesson.name not in graded:
            raise CourseError(f"{lesson.name} is a stretch lesson: nothing of it is handed in")
    truths = make_class(out, students, chosen, seed)
    came = [truth for truth in truths if truth.pack]
    broken = sum(bool(truth.broken) for truth in came)
    shown = escape(str(out))
    console.print(f"{shown}/packs: {len(came)} packs of {students} students, {broken} broken")
    console.print(f"{shown}/received: when each came, for `autograder collect --times`")
    console.print(f"{shown}/worksheets: who Moodle's numbers are, for `collect --roster`")
    console.print(f"{shown}/truth.json: what each of them is")


@app.command()
def collect(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Zips or folders; a folder alone may hold many."),
    ],
    lesson: Annotated[
        str | None, typer.Option(help="For which lesson, where the packs do not show it.")
    ] = None,
    student: Annotated[str | None, typer.Option(help="Whose the one pack is.")] = None,
    received: Annotated[
        str | None,
        typer.Option(help="When they were handed in, if not now: 2026-11-02T23:59+01:00."),
    ] = None,
    times: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="When each was: a CSV with columns student, received."),
    ] = None,
    roster: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Who a platform's numbers are: Moodle's grading worksheet, Canvas' gradebook, or "
            "a CSV with columns number, student.",
        ),
    ] = None,
    whole_class: Annotated[
        bool, typer.Option("--class", help="Each PATH is a platform's download of a whole class.")
    ] = False,
) -> None:
    """Take in what students handed in: checked, receipted, laid where nbgrader looks for it."""
    from .grade_commands import Handover, run_collect

    told = Handover(lesson, student, received, times, roster, whole_class)
    run_collect(console, paths, told)


@app.command()
def grade(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LESSON]...", help="Lessons; all that were handed in by default."),
    ] = None,
    student: Annotated[
        list[str] | None, typer.Option(help="Only this one; may be given several times.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes, some 700 MB each.")
    ] = os.cpu_count() or 1,
    dependencies: Dependencies = DependenciesOn.REFERENCE,
    unsandboxed: Unsandboxed = False,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Judge anew with today's checks; shows who moves.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Move grades without asking.")] = False,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Judge on a Dask cluster: its scheduler's address."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Judge this part only, into shards/, for `merge`."),
    ] = None,
) -> None:
    """Grade what was collected, and bring nbgrader's gradebook up to date."""
    from .cluster import on_cluster
    from .grade_commands import Wishes, run_grade
    from .shard_commands import run_shard

    wishes = Wishes(
        lessons=names or [],
        students=student or [],
        workers=workers,
        dependencies=dependencies.value,
        sandboxed=not unsandboxed,
        regrade=regrade,
        yes=yes,
        judging=None if cluster is None else on_cluster(cluster),
    )
    if shard is None:
        run_grade(console, wishes)
    else:
        run_shard(console, wishes, shard)


@app.command()
def merge(
    shards: Annotated[
        list[Path], typer.Argument(metavar="SHARD...", help="Folders such as shards/3-of-8.")
    ],
) -> None:
    """Unite what `grade --shard` judged, and bring nbgrader's gradebook up to date."""
    from .shard_commands import run_merge

    run_merge(console, shards)


@app.command()
def judge(
    package: Annotated[Path, typer.Argument(metavar="DIR", help="A folder or a zip.")],
    lesson: Annotated[
        list[str] | None, typer.Option(help="Only this one; may be given several times.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
    junit: Annotated[
        Path | None, typer.Option(help="A file for the verdict as JUnit XML.", metavar="FILE")
    ] = None,
    dependencies: Dependencies = DependenciesOn.REFERENCE,
    unsandboxed: Unsandboxed = False,
) -> None:
    """Judge one package without a gradebook; the exit code is 0 whatever its score."""
    from .grade_commands import run_judge

    run_judge(console, package, lesson or [], as_json, junit, dependencies.value, not unsandboxed)


@app.command()
def doctor() -> None:
    """Try each kind of sandbox on this machine, and say how to get what is missing."""
    from .judge.sandbox.doctor import examine

    diagnosis = examine()
    for part in diagnosis.parts:
        sign, said = ("[green]✓[/]", part.found) if part.found else ("[yellow]-[/]", part.mend)
        console.print(f"{sign} {part.name}: {escape(said)}")
    for tried in diagnosis.tried:
        if tried.fault:
            console.print(f"[yellow]-[/] sandbox “{tried.level}”: {escape(tried.fault)}")
            continue
        number = sum(map(len, tried.refused.values()))
        console.print(f"[green]✓[/] sandbox “{tried.level}” refuses {number} of {number} attempts")
    if not diagnosis.used:
        raise CourseError("no sandbox holds here, so that grading would refuse to run any code")
    console.print(f"Grading here uses “{diagnosis.used.level}”. Code in it cannot")
    for group, claims in diagnosis.used.refused.items():
        console.print(f"  {group}: {escape(', '.join(claims))}", soft_wrap=False)


@app.command()
def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="The file; none is overwritten.")],
    form: Annotated[
        ExportFormat, typer.Option("--format", help="json holds every check, with its cause.")
    ] = ExportFormat.CSV,
    lesson: Annotated[
        list[str] | None, typer.Option(help="Only this one; may be given several times.")
    ] = None,
) -> None:
    """Write the grades into a file, with the penalties that due.toml gives; nothing is run."""
    from .report_commands import run_export

    run_export(console, form, out, lesson or [])


@app.command()
def report(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[LESSON]...", help="Lessons; all by default.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder that they go to.")] = Path(
        "reports"
    ),
    student: Annotated[
        list[str] | None,
        typer.Option(help="Only this learner's page; may be given several times."),
    ] = None,
) -> None:
    """Write a page for each learner, and one a lesson for you; nothing is run."""
    from .report_commands import run_report

    run_report(console, names or [], out, student or [])


def _tell(report: Report, folder: Path) -> None:
    """Say in a few lines what a delivery did."""
    if not (report.new or report.updated or report.beside or report.restored):
        console.print(f"{escape(str(folder))}: nothing new")
    elif not (report.updated or report.kept or report.beside or report.unchanged):
        console.print(f"{escape(str(folder))} is ready: {len(report.new)} files")
    else:
        console.print(f"{escape(str(folder))}: brought up to date")
        _say("new", report.new)
        _say("renewed", report.updated)
    _say("changed by you, so the new version lies beside", list(report.beside.values()))
    _say("restored", report.restored)
    _say("in its place was another, kept as", list(report.aside.values()))
    _say("changed by you, left alone", report.kept)
    _say("deleted by you, not brought back", report.deleted)


def _say(what: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        console.print(f"  {what}: {escape(', '.join(names[:SHOWN]))}{more}")


def _refuse_stale(names: Sequence[str], mend: str) -> None:
    if names:
        verb = "is" if len(names) == 1 else "are"
        raise CourseError(f"{', '.join(names)} {verb} not what the source gives: run `{mend}`")


def main() -> None:
    """Run a command; what a person can mend is one line on stderr and exit code 1."""
    try:
        app(prog_name="autograder")
    except CourseError as error:
        told = str(error)
    except PermissionError as error:
        if error.filename is None:
            raise
        told = f"{error.filename} belongs to another account: see who owns it, and which group"
    else:
        return
    errors.print(f"autograder: {escape(told)}")
    sys.exit(1)
