"""Takes in what was handed in: checked, receipted, and laid where nbgrader looks for it.

submitted/<student>/03_top_k/      the notebook, course_lib/ with the modules, timestamp.txt
.autograder/receipts/03_top_k/     what arrived, when, with which sha256; what was ignored
.autograder/former/03_top_k/       earlier submissions: none is ever overwritten
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from .authoring.files import sha256, write_atomically
from .authoring.layout import Lesson
from .classroom import Classroom, blob_name, graded_lessons, student_id
from .errors import CourseError
from .members import BrokenPack, printable, quoted
from .notebook import same_words
from .packs import Found, find_packs, one_pack
from .submission import (
    MODULES,
    OURS,
    TIMESTAMP,
    Handed,
    Submission,
    as_json,
    as_timestamp,
    begun,
    read_submission,
    sort_out,
)


@dataclass(frozen=True)
class Receipt:
    """One pack that was taken in, and for which lessons."""

    student: str
    name: str
    origin: str
    received: datetime
    lessons: dict[str, str]  # name of a lesson: sha256 of what was handed in for it
    again: list[str]  # of these the same was there already, with an earlier receipt
    not_begun: list[str]
    ignored: list[dict[str, str]] = field(repr=False)
    notes: list[str]
    platform: str = ""  # whose number `student` is, if it is one of Moodle's or Canvas'
    moved: dict[str, datetime] = field(default_factory=dict)  # lesson: the later time so far

    @property
    def odd(self) -> list[str]:
        """What was ignored and is not the course's own."""
        return [thing["path"] for thing in self.ignored if thing["why"] != OURS]

    def line(self) -> str:
        """The receipt in one line."""
        who = f"{self.student} ({quoted(self.name)})" if self.name else self.student
        what = ", ".join(f"{name} {digest[:12]}" for name, digest in self.lessons.items())
        extra = f"; unchanged: {', '.join(self.again)}" if self.again else ""
        if self.moved:
            extra += (
                f"; received {self.received:%Y-%m-%d %H:%M} UTC already: {', '.join(self.moved)}"
            )
        extra += f"; not begun: {', '.join(self.not_begun)}" if self.not_begun else ""
        extra += f"; ignored: {_some(self.odd)}" if self.odd else ""
        extra += "".join(f"; {note}" for note in self.notes)
        return f"{who}: {what}{extra}"


@dataclass(frozen=True)
class Refused:
    """A pack that could not be taken in."""

    student: str
    origin: str
    why: str


def collect(
    classroom: Classroom,
    paths: Iterable[Path],
    *,
    lesson: Lesson | None = None,
    student: str | None = None,
    received: datetime | None = None,
    times: Mapping[str, datetime] | None = None,
    roster: Mapping[str, str] | None = None,
    whole_class: bool = False,
) -> Iterator[Receipt | Refused]:
    """Take in all packs in `paths`; one that is broken stops no other.

    Several paths are a pack each, a folder alone may be one or hold many; with `whole_class` every
    path is the download of a class. `lesson` says for which lesson they are, where that does not
    show; `student` whose the one pack is; `received` when they were handed in, if not now, and
    `times` when each student's was; `roster` who the numbers of a learning platform are.
    """
    paths = [path.absolute() for path in paths]
    many = whole_class or (len(paths) == 1 and paths[0].is_dir() and student is None)

    def packs() -> Iterator[Found]:
        for path in paths:
            yield from find_packs(path) if many else [one_pack(path, student)]

    origins = _origins(packs(), roster)
    for found in packs():
        pack = found
        try:
            pack = _named(pack, roster)
            if len(claims := origins.get(pack.student, [])) > 1:
                # neither is taken: people who name their own packs may call one as another's
                names = " and ".join(quoted(Path(origin).name) for origin in claims[:3])
                raise CourseError(f"{names} would be the same student's: rename one of them")
            moment = _moment(pack.student, received, times)
            yield take_in(classroom, pack, lesson, moment)
        except CourseError as error:
            yield _refused(pack, str(error))
        except OSError as error:
            yield _refused(pack, f"{error.filename or pack.origin}: {error.strerror}")


def _origins(packs: Iterable[Found], roster: Mapping[str, str] | None) -> dict[str, list[str]]:
    """Where each student's packs come from, one for each name: a platform may make several packs
    of what one student handed in, but calls all of them alike.
    """
    found: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for pack in packs:
        try:
            owner = _named(pack, roster).student
        except CourseError:
            continue
        name = (pack.platform, pack.name if pack.platform else pack.origin)
        found[owner].setdefault(name, pack.origin)
    return {owner: list(origins.values()) for owner, origins in found.items()}


def _refused(pack: Found, why: str) -> Refused:
    return Refused(*map(printable, (pack.student, pack.origin, why)))


def _named(pack: Found, roster: Mapping[str, str] | None) -> Found:
    """`pack` under the id of its student."""
    if roster is None or not pack.platform:
        return replace(pack, student=student_id(pack.student))
    if pack.student not in roster:
        raise CourseError(f"the roster has no number {pack.student}: add a line for {pack.name!r}")
    return replace(pack, student=roster[pack.student], platform="")


def _moment(
    student: str, received: datetime | None, times: Mapping[str, datetime] | None
) -> datetime:
    """When a student's pack was received, in UTC."""
    if times is None:
        return (received or datetime.now(UTC)).astimezone(UTC)
    if student not in times:
        raise CourseError("no time is listed: add a line, or collect it alone with --received")
    return times[student]


def take_in(
    classroom: Classroom, pack: Found, lesson: Lesson | None, received: datetime
) -> Receipt:
    """Take in one pack, under the id that it has. Raises CourseError, OSError."""
    student = pack.student
    handed = sort_out(pack.read())
    names, not_begun = _meant(handed, lesson)
    taken: dict[str, str] = {}
    again: list[str] = []
    moved: dict[str, datetime] = {}
    for name in names:
        submission = _submission(student, handed, name, received)
        before = _there(classroom, submission, among_others=lesson is None and len(names) > 1)
        taken[name] = (before or submission).sha256
        if before is None:
            _lay(classroom, submission)
        elif received < before.received and before.sha256 == submission.sha256:
            # it was there earlier than was known: a list of times came after the packs
            _stamp(classroom, submission)
            moved[name] = before.received
        else:
            again.append(name)
    ignored = [{"path": thing.path, "why": thing.why} for thing in handed.ignored]
    receipt = Receipt(
        student,
        pack.name,
        pack.origin,
        received,
        taken,
        again,
        not_begun,
        ignored,
        list(handed.notes),
        pack.platform,
        moved,
    )
    for name in names:
        if name not in again:
            _write_receipt(classroom, receipt, handed, name)
    return receipt


def _meant(handed: Handed, lesson: Lesson | None) -> tuple[list[str], list[str]]:
    """The lessons that a pack is for, and those in it that nobody has begun."""
    if not handed.modules and not handed.notebooks:
        raise BrokenPack("holds neither a lesson's notebook nor a lesson's module")
    if lesson is not None:
        return [lesson.name], []
    # an edition for a class has the notebook of its one lesson, and the modules of all
    there = set(handed.notebooks) or set(handed.modules)
    names = [name for name in graded_lessons() if name in there]
    started = [name for name in names if begun(handed, name)]
    if len(names) == 1 and handed.notebooks:
        return names, []
    if not started:
        raise BrokenPack("no lesson in it is begun: say which it is for with --lesson")
    return started, [name for name in handed.notebooks if name not in started]


def _submission(student: str, handed: Handed, name: str, received: datetime) -> Submission:
    notebook = handed.notebooks.get(name)
    data = None if notebook is None else notebook.data
    return Submission(student, name, handed.files(), data, received)


def _there(
    classroom: Classroom, submission: Submission, *, among_others: bool
) -> Submission | None:
    """What is there if it is the very same, else None.

    A workspace brings lessons of earlier weeks along, `among_others`: one of them does not come
    anew, and late, because the learner has worked on another since.
    """
    lesson = graded_lessons()[submission.lesson]
    if not classroom.submission(submission.student, lesson).exists():
        return None
    try:
        former = read_submission(classroom, submission.student, lesson)
    except BrokenPack:
        return None  # it came another way than by this; the new one takes its place
    same = former.sha256 == submission.sha256
    if among_others and not same:
        modules = (one.files.get(lesson.name) for one in (submission, former))
        same = len(set(modules)) == 1 and same_words(submission.notebook, former.notebook)
    return former if same else None


def _lay(classroom: Classroom, submission: Submission) -> None:
    """Put a submission where nbgrader looks; what is there is kept."""
    lesson = graded_lessons()[submission.lesson]
    place = classroom.submission(submission.student, lesson)
    new = classroom.kept / "arriving" / secrets.token_hex(8)
    for name, data in submission.files.items():
        write_atomically(new / MODULES / f"{name}.py", data)
    if submission.notebook is not None:
        write_atomically(new / f"{lesson.slug}.ipynb", submission.notebook)
    write_atomically(new / TIMESTAMP, as_timestamp(submission.received).encode())
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        former = _former(classroom, submission.student, lesson)
        former.parent.mkdir(parents=True, exist_ok=True)
        os.rename(place, former)
    os.rename(new, place)


def _stamp(classroom: Classroom, submission: Submission) -> None:
    """Write down another time for what is there."""
    place = classroom.submission(submission.student, graded_lessons()[submission.lesson])
    write_atomically(place / TIMESTAMP, as_timestamp(submission.received).encode())


def _former(classroom: Classroom, student: str, lesson: Lesson) -> Path:
    folder = classroom.kept / "former" / lesson.slug / student
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    # somebody may have taken one away
    last = max((int(name) for name in names if name.isdecimal()), default=0)
    return folder / f"{last + 1:03}"


def _write_receipt(classroom: Classroom, receipt: Receipt, handed: Handed, name: str) -> None:
    lesson = graded_lessons()[name]
    files = {f"{MODULES}/{module}.py": one for module, one in handed.modules.items()}
    if name in handed.notebooks:
        files[f"{lesson.slug}.ipynb"] = handed.notebooks[name]
    told: dict[str, object] = {
        "student": receipt.student,
        "name": receipt.name,
        "platform": receipt.platform,
        "lesson": name,
        "received": receipt.received.isoformat(),
        "sha256": receipt.lessons[name],
        "files": {
            place: {
                "sha256": sha256(one.data),
                "bytes": len(one.data),
                "from": str(one.path),
            }
            for place, one in files.items()
        },
        "ignored": receipt.ignored,
        "notes": receipt.notes,
    }
    if name in receipt.moved:
        told["moved_from"] = receipt.moved[name].isoformat()
    folder = classroom.kept / "receipts" / lesson.slug / blob_name(receipt.student).split(".")[0]
    # who hands in what they had handed in before gets a receipt more, and loses none
    file = f"{receipt.received:%Y%m%dT%H%M%S.%f}-{receipt.lessons[name][:32]}.json"
    write_atomically(folder / file, as_json(told))


def platform_numbers(classroom: Classroom, platform: str) -> set[str]:
    """The ids that are numbers of a platform's own, as receipts tell; none without a platform."""
    found = set()
    for path in (classroom.kept / "receipts").glob("*/*/*.json") if platform else ():
        told = json.loads(path.read_text(encoding="utf-8"))
        if told.get("platform") == platform:
            found.add(told["student"])
    return found


def remove_arriving(classroom: Classroom) -> None:
    """Remove what a kill in the middle of a collect left; it was in nobody's place yet."""
    shutil.rmtree(classroom.kept / "arriving", ignore_errors=True)


def _some(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(quoted, names[:most])) + more
