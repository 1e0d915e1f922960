"""What one student handed in for one lesson, and how it is found in whatever they packed.

Names are taken as people make them: `03_top_k (1).ipynb`, `Copy of 03_top_k.ipynb`, `top_k.py` at
any depth. Where two files could be meant and they differ, nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from pathlib import Path, PurePosixPath

from .archive import read_one, read_pack
from .authoring.files import sha256
from .authoring.layout import ROOT, Lesson, course_files, model_files
from .classroom import Classroom, graded_lessons
from .members import BrokenPack, Ignored, Member, Pack, quoted
from .notebook import has_answers

MODULES = "course_lib"
TIMESTAMP = "timestamp.txt"
EXCHANGE_SECRET = "submission_secret.txt"  # by which nbgrader's exchange names feedback
YEARS = range(2000, 2200)  # in others nobody hands in: what is added to their ends has no date
LONGEST_TIMESTAMP = 100  # bytes: a parser of dates takes minutes for a megabyte of digits
OURS = "the course's own"
STRANGE = "not a part of a submission"
MOST_IGNORED = 1_000  # files in a receipt: each report reads the receipts of all
# folders of an edition that hold files of a lesson's name, none of which is the learner's
_OTHERS = {"checks", "given", "hidden", "known", "lessons", "solutions", "thorough"}


@dataclass(frozen=True)
class Submission:
    """What a student handed in for one lesson."""

    student: str
    lesson: str
    files: dict[str, bytes] = field(repr=False)  # name of a lesson: its module
    notebook: bytes | None = field(repr=False)
    received: datetime  # aware, in UTC
    stamped: bool = True  # whether there is a receipt: else the folder's own time is taken
    notes: tuple[str, ...] = ()

    @cached_property
    def sha256(self) -> str:
        """Of modules and notebook; neither name nor time changes it."""
        lines = [f"{sha256(data)} {name}.py\n" for name, data in sorted(self.files.items())]
        if self.notebook is not None:
            lines.append(f"{sha256(self.notebook)} notebook\n")
        return sha256("".join(lines).encode())


@dataclass
class Handed:
    """The modules and notebooks that were found in a pack, by lesson."""

    modules: dict[str, Member] = field(default_factory=dict)
    notebooks: dict[str, Member] = field(default_factory=dict)
    ignored: list[Ignored] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def files(self) -> dict[str, bytes]:
        return {name: member.data for name, member in sorted(self.modules.items())}


def read_handed(path: Path) -> Handed:
    """What a zip or folder holds of the lessons. Raises BrokenPack."""
    return sort_out(read_pack(path, wanted))


def read_submission(classroom: Classroom, student: str, lesson: Lesson) -> Submission:
    """What lies in nbgrader's folder of a student and lesson. Raises BrokenPack."""
    folder = classroom.submission(student, lesson)
    handed = read_handed(folder)
    notebook = handed.notebooks.get(lesson.name)
    received = read_timestamp(folder)
    return Submission(
        student=student,
        lesson=lesson.name,
        files=handed.files(),
        notebook=None if notebook is None else notebook.data,
        received=received or _modified(folder),
        stamped=received is not None,
        notes=tuple(handed.notes),
    )


def wanted(path: PurePosixPath) -> bool:
    """Whether a file may be a lesson's notebook or module; of no other the content is read."""
    return path.suffix == ".ipynb" or _module_name(path) is not None


def sort_out(pack: Pack) -> Handed:
    """Find the lessons' files among those of a pack.

    Raises BrokenPack if two could be meant for one and they differ.
    """
    handed = Handed()
    modules: dict[str, list[Member]] = {}
    notebooks: dict[str, list[Member]] = {}
    strangers: list[Member] = []
    for member in pack.members:
        name = _module_name(member.path) or _notebook_name(member)
        if name is None:
            strangers.append(member)
        else:
            kind = notebooks if member.path.suffix == ".ipynb" else modules
            kind.setdefault(name, []).append(member)
    for name, found in modules.items():
        handed.modules[name] = _the_one(found, _module_rank, f"{name}.py", handed)
    for name, found in notebooks.items():
        slug = graded_lessons()[name].slug
        one = _the_one(found, partial(_notebook_rank, slug), f"{slug}.ipynb", handed)
        handed.notebooks[name] = one
        if one.path.name != f"{slug}.ipynb":
            handed.notes.append(f"{quoted(str(one.path))} was taken for {slug}.ipynb")
    handed.ignored += [Ignored(str(member.path), STRANGE) for member in strangers]
    known = _own_names()
    for thing in pack.ignored:
        parts = PurePosixPath(thing.path).parts
        own = any("/".join(parts[start:]) in known for start in range(len(parts)))
        handed.ignored.append(Ignored(thing.path, thing.why or (OURS if own else STRANGE)))
    handed.ignored.sort(key=lambda thing: thing.path)
    if (more := len(handed.ignored) - MOST_IGNORED) > 0:
        # the course's own files are known, and what is odd should be seen
        handed.ignored.sort(key=lambda thing: thing.why == OURS)
        handed.ignored[MOST_IGNORED:] = [Ignored(f"and {more} more", STRANGE)]
    return handed


# --- names ---


def _module_name(path: PurePosixPath) -> str | None:
    """The lesson whose module a path may be."""
    if path.suffix != ".py" or _OTHERS & set(path.parent.parts):
        return None
    stem = _without_copy_marks(path.stem)
    return stem if stem in graded_lessons() else None


def _notebook_name(member: Member) -> str | None:
    """The lesson of a notebook: by its name, else by the ids of the graded cells in it."""
    stem = _without_copy_marks(member.path.stem)
    by_slug = [name for name, lesson in graded_lessons().items() if _holds(stem, lesson.slug)]
    if len(by_slug) == 1:
        return by_slug[0]
    inside = set(re.findall(rb'"grade_id": *"([a-z][a-z0-9_]*)-', member.data))
    by_ids = [name for name in graded_lessons() if name.encode() in inside]
    if len(by_ids) == 1:
        return by_ids[0]
    by_name = [name for name in graded_lessons() if _holds(stem, name)]
    return by_name[0] if len(by_name) == 1 else None


# a blank behind a mark belongs to a number or to the next mark, never to either: a name that can
# be read in two ways at each of thirty places would be read in all of them
_COPY = re.compile(
    r"^(?:copy of )+|(?:[ _-]*(?:\(\d+\)|(?:copy|kopie)(?: ?\d+)?|final|submitted))+$",
    re.IGNORECASE,
)
LONGEST_STEM = 255  # signs: file systems hold no longer names


def _without_copy_marks(stem: str) -> str:
    return _COPY.sub("", stem) if len(stem) <= LONGEST_STEM else stem


def _holds(stem: str, name: str) -> bool:
    return re.search(rf"(?:^|[^A-Za-z0-9]){re.escape(name)}(?:$|[^A-Za-z0-9])", stem) is not None


Rank = tuple[bool, int, int]


def _module_rank(member: Member) -> Rank:
    """What is in a folder `course_lib` goes first, then what lies highest, then plain names."""
    path = member.path
    return (path.parent.name != MODULES, len(path.parts), len(path.name))


def _notebook_rank(slug: str, member: Member) -> Rank:
    path = member.path
    return (path.name != f"{slug}.ipynb", len(path.parts), len(path.name))


def _the_one(
    found: Sequence[Member], rank: Callable[[Member], Rank], what: str, handed: Handed
) -> Member:
    best = min(map(rank, found))
    first, *others = sorted(found, key=lambda member: (rank(member), str(member.path)))
    for other in others:
        if rank(other) == best and other.data != first.data:
            raise BrokenPack(
                f"{what} is there twice and the two differ: "
                f"{quoted(str(first.path))} and {quoted(str(other.path))}"
            )
        handed.ignored.append(Ignored(str(other.path), f"{first.path} was taken"))
    return first


@cache
def _own_names() -> frozenset[str]:
    """The files of a learner's edition that are not the learner's work."""
    files = [*course_files(), *model_files(), *ROOT.glob("LICENSE*")]
    names = {path.relative_to(ROOT).as_posix() for path in files}
    given = ("README.md", "constraints.txt", "course_launcher.py", "install.py", "pyproject.toml")
    theirs = (TIMESTAMP, EXCHANGE_SECRET)
    return frozenset({*names, *given, *theirs, ".course/edition.json", ".course/progress.json"})


# --- time ---


def read_timestamp(folder: Path) -> datetime | None:
    """The time in nbgrader's file, in UTC; None where there is none or it cannot be read."""
    from nbgrader.utils import parse_utc

    try:
        told = read_one(folder / TIMESTAMP)
        if len(told) > LONGEST_TIMESTAMP:
            return None
        moment: datetime = parse_utc(told.decode().strip())
    except (BrokenPack, ValueError, ArithmeticError, TypeError):
        return None
    return moment.replace(tzinfo=UTC) if moment.year in YEARS else None


def _modified(folder: Path) -> datetime:
    """When a folder was changed; now, if that is no time that Python knows."""
    try:
        moment = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    except (ValueError, ArithmeticError):
        return datetime.now(UTC)
    return moment if moment.year in YEARS else datetime.now(UTC)


def as_timestamp(moment: datetime) -> str:
    """A time as nbgrader writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC\n")


# --- whether anything was done ---


def begun(handed: Handed, name: str) -> bool:
    """Whether the learner wrote anything for a lesson: in its module, or an answer."""
    module = handed.modules.get(name)
    if module is not None and _text(module.data) != _text(stub(name)):
        return True
    notebook = handed.notebooks.get(name)
    return notebook is not None and has_answers(graded_lessons()[name], notebook.data)


@cache
def stub(name: str) -> bytes:
    """The module of a lesson as it was handed out."""
    return (ROOT / MODULES / f"{name}.py").read_bytes()


def _text(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").strip()


def as_json(told: object) -> bytes:
    """JSON for people: indented, and never two ways for the same."""
    return (json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode(
        "utf-8", "replace"
    )
