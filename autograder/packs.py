"""Who handed in what: finds the packs of a class in downloads of any shape.

A pack is a zip, a folder, or loose files that a learning platform named after the student:

    Jane Doe_12345_assignsubmission_file_/...     Moodle: the student is 12345, Jane Doe; the number
                                                  is another in each assignment
    doejane_12345_678_top_k.py                    Canvas: the student is 12345, doejane
    doejane_LATE_12345_678_03_top_k.ipynb
    alice.zip, alice/                             anything else: the student is alice

Many packs may lie together in a folder, or in the one zip that a platform makes of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from .archive import Archive, Entry, opened_zip, read_one, read_pack, with_inner_zips
from .members import BrokenPack, Budget, Ignored, Member, Pack, printable
from .submission import wanted

MOODLE, CANVAS = "Moodle", "Canvas"
# names of students hold no underscores there (Moodle puts blanks in their place, see
# download_submissions in mod/assign/locallib.php): nobody's name can bring along another's number
_MOODLE = re.compile(
    r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<rest>.*)", re.DOTALL
)
_CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_(?P<rest>.+)", re.DOTALL)
CLASS_MEMBERS = 1_000_000  # files in a class's download


@dataclass(frozen=True)
class Found:
    """One student's pack, read when it is asked for."""

    student: str
    name: str  # as the learning platform has it, "" elsewhere
    origin: str  # what to call it in a message
    read: Callable[[], Pack]  # raises BrokenPack
    platform: str = ""  # whose number `student` is: MOODLE or CANVAS


@dataclass(frozen=True)
class Owner:
    """Whom a file or folder belongs to, by its name, and what is left of that name."""

    student: str
    name: str = ""
    rest: str = ""
    platform: str = ""


def platform_owner(filename: str) -> Owner | None:
    """The owner that a learning platform put into a name, None if it is no such name.

    What a student called the file comes last in it, and may look like a platform's name too.
    """
    for platform, pattern in ((CANVAS, _CANVAS), (MOODLE, _MOODLE)):
        if match := pattern.fullmatch(filename):
            return Owner(match["id"], printable(match["name"]), match["rest"], platform)
    return None


def one_pack(path: Path, student: str | None = None) -> Found:
    """A zip or folder as the pack of one student, whatever is in it."""
    if student is not None:
        return _found(Owner(student), str(path), lambda: read_pack(path, wanted))
    return _whole(path)


def find_packs(path: Path) -> Iterator[Found]:
    """The packs in a folder, or in the zip that a platform makes of a class.

    Only for what a teacher or a platform put together: in a zip of a student's there could be packs
    with the names of others.

    Never raises for what is in it: a pack that cannot be read says so when it is read.
    """
    if path.is_dir():
        yield from _in_folder(path)
    elif path.is_file():
        yield from _in_zip(path)
    else:
        yield _broken(path.name, str(path), BrokenPack("there is no such file or folder"))


# --- folders ---


def _in_folder(folder: Path) -> Iterator[Found]:
    children = sorted(folder.iterdir())
    if platform_owner(folder.name) or any(map(_is_work, children)):
        yield _whole(folder)
        return
    loose: dict[Owner, list[tuple[str, Path]]] = {}
    for child in children:
        owner = platform_owner(child.name)
        if child.is_symlink():
            yield _broken(child.name, str(child), BrokenPack("a link"))
        elif child.is_dir():
            if not child.name.startswith((".", "__MACOSX")) and not _is_empty(child):
                yield _whole(child, follow=False)
        elif owner is not None:
            loose.setdefault(replace(owner, rest=""), []).append((owner.rest, child))
        elif child.suffix.lower() == ".zip":
            yield _whole(child)
        elif not child.name.startswith("."):
            # a class list, a readme, or somebody's pack in a format that is not read
            yield _broken(child.name, str(child), BrokenPack("neither a zip nor a folder"))
    for owner, files in loose.items():
        yield _loose(owner, files)


def _is_empty(folder: Path) -> bool:
    """Whether nothing was put into a folder, such as the inbox of somebody who hands in nothing."""
    try:
        return next(folder.iterdir(), None) is None
    except OSError:
        return False  # reading it says why


def _is_work(path: Path) -> bool:
    """Whether a file or folder lies in a student's pack itself."""
    name = PurePosixPath(path.name)
    return path.name == "course_lib" or (wanted(name) and platform_owner(path.name) is None)


def _whole(path: Path, *, follow: bool = True) -> Found:
    owner = platform_owner(path.name) or Owner(path.stem if path.is_file() else path.name)
    return _found(owner, str(path), lambda: read_pack(path, wanted, follow=follow))


def _loose(owner: Owner, files: list[tuple[str, Path]]) -> Found:
    """The files of one student that a platform put beside those of all others."""

    def read() -> Pack:
        pack, budget = Pack(), Budget()
        for rest, path in files:
            name = PurePosixPath(printable(rest))
            if path.suffix.lower() == ".zip":
                inner = read_pack(path, wanted, budget)
                pack.members += [Member(name / one.path, one.data) for one in inner.members]
                pack.ignored += inner.ignored
            elif wanted(name):
                pack.members.append(Member(name, read_one(path, budget)))
            else:
                pack.ignored.append(Ignored(str(name), ""))
        return pack

    return _found(owner, str(files[0][1]), read)


# --- zips ---


def _in_zip(path: Path) -> Iterator[Found]:
    try:
        with opened_zip(path, CLASS_MEMBERS) as archive:
            owners, strangers = _owners(archive)
            if not owners:
                yield _whole(path)
                return
            for owner, (entries, below) in owners.items():
                yield _within(path, archive, owner, entries, below)
            for name in strangers:
                why = BrokenPack("whose it is does not show: neither a zip, nor a platform's name")
                yield _broken(name, f"{path} ({name})", why)
    except BrokenPack as error:
        yield _broken(_whole(path).student, str(path), error)


Owners = dict[Owner, tuple[list[Entry], int]]


def _owners(archive: Archive) -> tuple[Owners, list[str]]:
    """The entries of each student where a zip holds the packs of many; nothing if it is one.

    With them the names of files and folders there that are nobody's.
    """
    files = [entry for entry in archive.files if entry[1].parts[:1] not in ((), ("__MACOSX",))]
    depth = 0
    # downloads may have everything in one folder
    if len({name.parts[0] for _, name in files}) == 1 and all(
        len(name.parts) > 1 for _, name in files
    ):
        depth = 0 if files and platform_owner(files[0][1].parts[0]) else 1
    found: Owners = {}
    strangers: dict[str, None] = {}
    for entry in files:
        parts = entry[1].parts
        top, is_file = parts[depth], len(parts) == depth + 1
        owner = platform_owner(top)
        if owner is None and is_file and top.lower().endswith(".zip"):
            owner = Owner(PurePosixPath(top).stem)
        if owner is None:
            if not top.startswith("."):
                strangers[top] = None
            continue
        key = replace(owner, rest="")
        below = depth if is_file else depth + 1
        found.setdefault(key, ([], below))[0].append(entry)
    return found, list(strangers)


def _within(path: Path, archive: Archive, owner: Owner, entries: list[Entry], below: int) -> Found:
    def read() -> Pack:
        budget = Budget()
        pack = archive.read(entries, lambda name: wanted(_unprefixed(name)), budget, below)
        pack.members = [Member(_unprefixed(one.path), one.data) for one in pack.members]
        return with_inner_zips(pack, wanted, budget)

    return _found(owner, f"{path} ({owner.name or owner.student})", read)


def _unprefixed(path: PurePosixPath) -> PurePosixPath:
    """A path without what a platform put before the name of the file."""
    owner = platform_owner(path.name)
    return path.with_name(owner.rest) if owner and owner.rest else path


def _found(owner: Owner, origin: str, read: Callable[[], Pack]) -> Found:
    return Found(owner.student, owner.name, printable(origin), read, owner.platform)


def _broken(student: str, origin: str, error: BrokenPack) -> Found:
    def read() -> Pack:
        raise error

    return _found(Owner(student), origin, read)
