"""Takes in what was handed in: checked, receipted, and laid where nbgrader looks for it.

submitted/<student>/03_top_k/      the notebook, course_lib/ with the modules, timestamp.txt
.autograder/receipts/03_top_k/     what arrived, when, with which sha256; what was ignored
.autograder/former/03_top_k/       earlier submissions: none is ever overwritten
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from .archive import BrokenPack
from .authoring.files import sha256, write_atomically
from .authoring.layout import Lesson
from .classroom import Classroom, blob_name, graded_lessons, student_id
from .errors import CourseError
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

    @property
    def odd(self) -> list[str]:
        """What was ignored and is not the course's own."""
        return [thing["path"] for thing in self.ignored if thing["why"] != OURS]

    def line(self) -> str:
        """The receipt in one line."""
        who = f"{self.student} ({self.name})" if self.name else self.student
        what = ", ".join(f"{name} {digest[:12]}" for name, digest in self.lessons.items())
        extra = f"; unchanged: {', '.join(self.again)}" if self.again else ""
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
    whole_class: bool = False,
) -> Iterator[Receipt | Refused]:
    """Take in all packs in `paths`; one that is broken stops no other.

    Several paths are a pack each, a folder alone may be one or hold many; with `whole_class` every
    path is the download of a class. `lesson` says for which lesson they are, where that does not
    show; `student` whose the one pack is; `received` when they were handed in, if not now.
    """
    paths = [path.absolute() for path in paths]
    many = whole_class or (len(paths) == 1 and paths[0].is_dir() and student is None)
    for path in paths:
        for pack in find_packs(path) if many else [one_pack(path, student)]:
            moment = (received or datetime.now(UTC)).astimezone(UTC)
            try:
                yield _take_in(classroom, pack, lesson, moment)
            except CourseError as error:
                yield Refused(pack.student, pack.origin, str(error))
            except OSError as error:
                why = f"{error.filename or pack.origin}: {error.strerror}"
                yield Refused(pack.student, pack.origin, why)


def _take_in(
    classroom: Classroom, pack: Found, lesson: Lesson | None, received: datetime
) -> Receipt:
    student = student_id(pack.student)
    handed = sort_out(pack.read())
    names, not_begun = _meant(handed, lesson)
    taken: dict[str, str] = {}
    again: list[str] = []
    for name in names:
        submission = _submission(student, handed, name, received)
        fresh = _lay(classroom, submission)
        taken[name] = submission.sha256
        if not fresh:
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


def _lay(classroom: Classroom, submission: Submission) -> bool:
    """Put a submission where nbgrader looks; says whether it is another than what is there."""
    lesson = graded_lessons()[submission.lesson]
    place = classroom.submission(submission.student, lesson)
    if place.exists():
        try:
            if read_submission(classroom, submission.student, lesson).sha256 == submission.sha256:
                return False
        except BrokenPack:
            pass  # it came another way than by this; the new one takes its place
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
    return True


def _former(classroom: Classroom, student: str, lesson: Lesson) -> Path:
    folder = classroom.kept / "former" / lesson.slug / student
    count = len(list(folder.iterdir())) if folder.is_dir() else 0
    return folder / f"{count + 1:03}"


def _write_receipt(classroom: Classroom, receipt: Receipt, handed: Handed, name: str) -> None:
    lesson = graded_lessons()[name]
    files = {f"{MODULES}/{module}.py": one for module, one in handed.modules.items()}
    if name in handed.notebooks:
        files[f"{lesson.slug}.ipynb"] = handed.notebooks[name]
    told = {
        "student": receipt.student,
        "name": receipt.name,
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
    folder = classroom.kept / "receipts" / lesson.slug / blob_name(receipt.student).split(".")[0]
    write_atomically(folder / f"{receipt.lessons[name][:32]}.json", as_json(told))


def remove_arriving(classroom: Classroom) -> None:
    """Remove what a kill in the middle of a collect left; it was in nobody's place yet."""
    shutil.rmtree(classroom.kept / "arriving", ignore_errors=True)


def _some(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
