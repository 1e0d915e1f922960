"""A class that is not there, with all that it hands in, to try the grading on.

    OUT/packs/03_top_k/          what students handed in for a lesson, as zips and folders
    OUT/received/03_top_k.csv    when each pack came, for `autograder collect --times`
    OUT/worksheets/03_top_k.csv  who Moodle's numbers are, for `autograder collect --roster`
    OUT/roster.csv               ids and names, as `nbgrader db student import` reads them
    OUT/due.toml                 when they were due
    OUT/truth.json               what each one is: for tests and benchmarks, not for the grader

The same seed gives the same bytes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

from ..authoring.layout import Lesson
from ..classroom import Classroom, graded_lessons
from ..collect import Receipt, Refused, collect
from ..errors import CourseError
from ..lists import RECEIVED, STUDENT, read_roster, read_times
from ..notebook import release, to_bytes
from .packing import BREAKAGES, broken_pack, form_for, pack
from .people import Person, people
from .work import MIX, do_work

BERLIN = ZoneInfo("Europe/Berlin")
FIRST_DUE = datetime(2026, 10, 12, 23, 59)  # by the clock; the clocks change between two lessons
WORKSHEET = ("Identifier", "Full name", "ID number", "Email address")
_PLACEHOLDER = "the answer goes here"
_ANSWERS = (
    "The filter keeps the best ones, so the text stays on topic.",
    "A low value makes it repeat itself; a high one makes it ramble. I tried 0.2 and 1.5.",
    "Two rows of a batch do not see each other, so each has a threshold of its own.\n\nWith $k=1$ "
    "it is greedy.",
    "I am not sure, but I think it is because the probabilities have to sum to 1 again.",
    "Größer heißt mutiger: « plus chaud », 更随机. ✓",
)


@dataclass(frozen=True)
class Shares:
    """What a class is made of; `mix` is the share of each kind of work."""

    mix: Mapping[str, float] = field(default_factory=lambda: MIX)
    broken: float = 0.02
    late: float = 0.12
    absent: float = 0.03  # on the roster, and nothing came


@dataclass(frozen=True)
class Truth:
    """What one student's pack for one lesson really is; `broken` says how, "" if it is not."""

    student: str
    lesson: str
    pack: str  # path from OUT, "" if nothing was handed in
    received: str = ""  # ISO, UTC
    broken: str = ""
    kind: str = ""  # of the work
    names: tuple[str, ...] = ()  # of its mistakes, of what is undone, of its crash


def simulate(
    out: Path, count: int, lessons: Sequence[Lesson], seed: int = 0, shares: Shares | None = None
) -> list[Truth]:
    """Write a class of `count` students into `out`, which must not be there yet or be empty.

    Raises CourseError if it is not.
    """
    shares = shares or Shares()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CourseError(f"{out} is there already: name a folder that is not, or delete it")
    students = people(count, Random(seed))
    truths = []
    for lesson in lessons:
        notebooks = _notebooks(lesson)
        (out / "packs" / lesson.slug).mkdir(parents=True)
        for place, person in enumerate(students):
            # each pack has a chance of its own, so that a change of one leaves the others
            random = Random(f"{seed}/{lesson.name}/{person.id}")
            if random.random() < shares.absent:
                truths.append(Truth(person.id, lesson.name, ""))
            else:
                number = _number(lesson, place)
                truths.append(_hand_in(out, person, lesson, notebooks, number, random, shares))
    _write_lists(out, students, truths, lessons)
    return truths


def read_truth(out: Path) -> list[Truth]:
    """What `simulate` wrote down beside the packs."""
    rows = json.loads((out / "truth.json").read_text(encoding="utf-8"))
    return [Truth(**{**row, "names": tuple(row["names"])}) for row in rows]


def hand_over(out: Path, classroom: Classroom) -> Iterator[Receipt | Refused]:
    """Collect all packs, each at the time when it was handed in."""
    for lesson in graded_lessons().values():
        packs = out / "packs" / lesson.slug
        if packs.is_dir():
            times = read_times(out / "received" / f"{lesson.slug}.csv", None)
            roster = read_roster(out / "worksheets" / f"{lesson.slug}.csv")
            yield from collect(classroom, [packs], lesson=lesson, times=times, roster=roster)


def due(lesson: Lesson) -> datetime:
    """When a lesson is due, in Berlin: one a week."""
    return (FIRST_DUE + timedelta(weeks=lesson.number - 1)).replace(tzinfo=BERLIN)


def _hand_in(
    out: Path,
    person: Person,
    lesson: Lesson,
    notebooks: list[bytes],
    number: int,
    random: Random,
    shares: Shares,
) -> Truth:
    """Write one student's pack for a lesson."""
    work = do_work(lesson.name, random, shares.mix)
    files = {f"course_lib/{lesson.name}.py": work.source.encode()}
    # some forget the notebook; who did nothing hands in what was there
    if work.kind == "stub":
        files[f"{lesson.slug}.ipynb"] = notebooks[0]
    elif random.random() < 0.97:
        files[_notebook_name(lesson, random)] = random.choice(notebooks)
    received = _received(due(lesson), random, shares)
    folder = out / "packs" / lesson.slug
    if random.random() < shares.broken:
        how = random.choice(BREAKAGES)
        path = broken_pack(folder, person, files, received, how)
    else:
        how = ""
        path = pack(folder, person, files, received, form_for(person, random), number, random)
    place, moment = path.relative_to(out).as_posix(), received.astimezone(UTC).isoformat()
    return Truth(person.id, lesson.name, place, moment, how, work.kind, work.names)


def _number(lesson: Lesson, place: int) -> int:
    """A student's number in Moodle, which is another in each assignment."""
    return lesson.number * 1_000_000 + place


def _notebook_name(lesson: Lesson, random: Random) -> str:
    draw = random.random()
    if draw < 0.04:
        return f"{lesson.slug} (1).ipynb"
    return f"Copy of {lesson.slug}.ipynb" if draw < 0.05 else f"{lesson.slug}.ipynb"


def _received(due: datetime, random: Random, shares: Shares) -> datetime:
    """Most come in the last hours, the late ones within days."""
    # hours are counted in UTC: by the clock the last one may come twice
    moment = due.astimezone(UTC)
    if random.random() < shares.late:
        hours = min(random.expovariate(1 / 30), 200)
        return moment + timedelta(seconds=round(hours * 3600) + 1)
    hours = min(random.expovariate(1 / 18), 160)
    return moment - timedelta(seconds=round(hours * 3600))


def _notebooks(lesson: Lesson) -> list[bytes]:
    """The released notebook, and with each of the answers in it."""
    notebook = json.loads(json.dumps(release(lesson)))
    blank = to_bytes(notebook)
    for cell in notebook["cells"]:
        graded = cell["metadata"].get("nbgrader", {})
        if graded.get("grade") and graded.get("solution"):
            cell["source"] = _PLACEHOLDER
    template = to_bytes(notebook).decode()
    told = [json.dumps(answer, ensure_ascii=False) for answer in _ANSWERS]
    return [blank, *(template.replace(f'"{_PLACEHOLDER}"', one).encode() for one in told)]


# --- lists ---


def _write_lists(
    out: Path, students: list[Person], truths: list[Truth], lessons: Sequence[Lesson]
) -> None:
    roster = [[p.id, p.first_name, p.last_name, p.email] for p in students]
    _write_csv(out / "roster.csv", ["id", "first_name", "last_name", "email"], roster)
    for lesson in lessons:
        came = [truth for truth in truths if truth.pack and truth.lesson == lesson.name]
        times = [[truth.student, truth.received] for truth in came]
        _write_csv(out / "received" / f"{lesson.slug}.csv", [STUDENT, RECEIVED], times)
        numbers = [
            [
                f"Participant {_number(lesson, place)}",
                f"{p.first_name} {p.last_name}",
                p.id,
                p.email,
            ]
            for place, p in enumerate(students)
        ]
        _write_csv(out / "worksheets" / f"{lesson.slug}.csv", list(WORKSHEET), numbers)
    dates = "\n".join(_due_lines(lessons))
    (out / "due.toml").write_text(dates, encoding="utf-8")
    told = json.dumps([asdict(truth) for truth in truths], ensure_ascii=False, indent=0)
    (out / "truth.json").write_text(told, encoding="utf-8")


def _write_csv(path: Path, header: list[str], rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.getvalue().encode())


def _due_lines(lessons: Sequence[Lesson]) -> Iterator[str]:
    yield 'timezone = "Europe/Berlin"'
    yield "grace_minutes = 15"
    yield "percent = 10"
    yield 'per = "day"'
    yield "at_most = 50"
    for lesson in lessons:
        yield ""
        yield f"[{lesson.name}]"
        yield f"due = {due(lesson).replace(tzinfo=None).isoformat()}"
        closes = due(lesson) + timedelta(days=7)
        yield f"closes = {closes.replace(tzinfo=None).isoformat()}"
    yield ""
