"""Reads what was handed in, a zip or a folder, as if it were made to harm.

Nothing is ever unpacked: the few files that a pack may hold are read into memory, up to a size that
is counted while reading, and everything else is only named.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from .errors import CourseError

MEMBERS = 20_000
DEPTH = 40
TOTAL = 100 * 2**20  # bytes of one pack that are read
MODULE = 2**20
NOTEBOOK = 20 * 2**20
INNER_ZIP = 64 * 2**20
LIMITS = {".ipynb": NOTEBOOK, ".zip": INNER_ZIP}
ZIP = 4 * 2**30  # a whole class's download, which holds packs
LONGEST_NAME = 1_000  # signs
LONGEST_ENTRY = 2_000  # bytes that a file takes in a zip's list, on the average
CHUNK = 2**16
RATIO = 300  # a notebook of repeated text is far below it
SMALL = 2**20  # below it a ratio says nothing
# of the other methods zipfile unpacks a block at once, and a block may stand for gigabytes
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

# of these not even the names are wanted
SKIPPED = {
    ".git",
    ".ipynb_checkpoints",
    ".venv",
    "__MACOSX",
    "__pycache__",
    "node_modules",
    "site-packages",
    "venv",
}


class BrokenPack(CourseError):
    """A pack that cannot be read; the message says why, in a few words."""


@dataclass(frozen=True)
class Member:
    """One file of a pack: its path with forward slashes, and what it holds."""

    path: PurePosixPath
    data: bytes


@dataclass(frozen=True)
class Ignored:
    """Something in a pack that was not read."""

    path: str
    why: str


@dataclass
class Pack:
    """What was read of a pack."""

    members: list[Member] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)


LONGEST_QUOTED = 80
# words with a blank between them: many would fill a line of a screen, and then the next begins
_PLAIN = re.compile(r"(?=.{1,80}$)[\w./()+-]+(?: [\w./()+-]+)*")

Wanted = Callable[[PurePosixPath], bool]
Entry = tuple[zipfile.ZipInfo, PurePosixPath]


class Budget:
    """What may still be read of one student's pack: zips within it share it."""

    def __init__(self) -> None:
        self.bytes, self.files = TOTAL, MEMBERS

    def take(self, count: int) -> None:
        """Raises BrokenPack when nothing is left."""
        self.bytes -= count
        if self.bytes < 0:
            raise BrokenPack(f"too large: more than {TOTAL >> 20} MiB of notebooks and modules")

    def list(self, count: int) -> None:
        """Raises BrokenPack when there are too many."""
        self.files -= count
        if self.files < 0:
            raise BrokenPack(f"holds more than {MEMBERS} files")


def read_pack(
    path: Path, wanted: Wanted, budget: Budget | None = None, *, follow: bool = True
) -> Pack:
    """The files of a zip or folder for whose path `wanted` says yes; zips in it are opened too.

    Without `follow` a link is no folder, even if it took a folder's place a moment ago. Raises
    BrokenPack.
    """
    budget = budget or Budget()
    if path.is_dir():
        return with_inner_zips(_read_folder(path, wanted, budget, follow), wanted, budget)
    with opened_zip(path) as archive:
        return with_inner_zips(archive.read(archive.files, wanted, budget), wanted, budget)


def read_one(path: Path, budget: Budget | None = None) -> bytes:
    """The bytes of one file that lies alone. Raises BrokenPack."""
    with _broken_packs():
        name = PurePosixPath(printable(path.name))
        return _read_file(path, name, budget or Budget(), None)


def with_inner_zips(pack: Pack, wanted: Wanted, budget: Budget) -> Pack:
    """`pack` with the members of the zips in it; a zip within those is ignored."""
    flat = Pack(ignored=list(pack.ignored))
    for member in pack.members:
        if not _is_zip(member.path):
            flat.members.append(member)
            continue
        with opened_zip(member.data) as archive:
            inner = archive.read(
                archive.files, lambda path: not _is_zip(path) and wanted(path), budget
            )
        flat.members += [Member(member.path / one.path, one.data) for one in inner.members]
        flat.ignored += [Ignored(f"{member.path}/{one.path}", one.why) for one in inner.ignored]
    return flat


def printable(text: str) -> str:
    """`text` without what a terminal takes for an order, or what turns the way that it is read.

    A line stays one line: with a name of two somebody could write another student's receipt.
    """
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def quoted(text: str) -> str:
    """A name within a line: in quotes, and not whole, where it could be taken for more of that."""
    return text if _PLAIN.fullmatch(text) else repr(text[:LONGEST_QUOTED])


class Archive:
    """An open zip: the list of its files, of which some can be read."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        # zips made on Windows may hold its slashes
        named = [
            (info, PurePosixPath(printable(info.filename.replace("\\", "/"))))
            for info in archive.infolist()
        ]
        self.files: list[Entry] = [(info, name) for info, name in named if not info.is_dir()]

    def read(self, files: Iterable[Entry], wanted: Wanted, budget: Budget, below: int = 0) -> Pack:
        """Some of the files, as a pack; of their paths the first `below` parts are dropped.

        Raises BrokenPack.
        """
        pack = Pack()
        with _broken_packs():
            for info, whole in files:
                budget.list(1)
                name = PurePosixPath(*whole.parts[below:]) if below else whole
                why = _refusal(info, whole)
                if why is None and (_is_zip(name) or wanted(name)):
                    data = _read_member(self._archive, info, name, budget)
                    pack.members.append(Member(name, data))
                else:
                    pack.ignored.append(Ignored(_short(name), why or ""))
        return pack


@contextmanager
def opened_zip(source: Path | bytes, members: int = MEMBERS) -> Iterator[Archive]:
    """Open a zip, which may be a file within another. Raises BrokenPack."""
    with _broken_packs():
        file = _Listing(io.BytesIO(source) if isinstance(source, bytes) else _raw(source), members)
    with file:
        with _broken_packs():
            archive = _opened(file)
        with archive:
            yield Archive(archive)


@contextmanager
def _broken_packs() -> Iterator[None]:
    """Turn what zipfile and the system raise on what cannot be read into BrokenPack."""
    try:
        yield
    except (zipfile.BadZipFile, EOFError, zlib.error, ValueError) as error:
        raise BrokenPack(f"damaged zip: {_short(error)}") from error
    except (RuntimeError, NotImplementedError) as error:  # a password, a method unknown here
        raise BrokenPack(f"zip that cannot be opened: {_short(error)}") from error
    except OSError as error:
        why = "a link" if error.errno == errno.ELOOP else error.strerror or error
        raise BrokenPack(f"cannot be read: {why}") from error
    except MemoryError as error:
        raise BrokenPack("cannot be read: it takes more memory than there is") from error


class _Listing(io.BufferedReader):
    """A zip's file, which gives a list of at most so many files: to read it would cost memory.

    What zipfile reads while it opens a zip is its end and its list; in what the members hold, the
    same signs may stand as often as they like.
    """

    def __init__(self, raw: io.FileIO | io.BytesIO, members: int) -> None:
        super().__init__(raw)
        self.members: int | None = members

    def read(self, size: int | None = -1, /) -> bytes:
        if self.members is not None and (size or 0) > self.members * LONGEST_ENTRY:
            raise BrokenPack(f"its list of files has {size} bytes")
        data = super().read(size)
        if self.members is not None and (count := data.count(b"PK\x01\x02")) > self.members:
            raise BrokenPack(f"holds {count} files, more than {self.members}")
        return data


def _opened(file: _Listing) -> zipfile.ZipFile:
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        raise BrokenPack("empty file")
    if size > ZIP:
        raise BrokenPack(f"too large: {size >> 20} MiB")
    archive = zipfile.ZipFile(file)
    file.members = None
    return archive


def _is_zip(path: PurePosixPath) -> bool:
    return path.suffix.lower() == ".zip"


def _refusal(info: zipfile.ZipInfo, name: PurePosixPath) -> str | None:
    """Why a member is not even looked at, None if it may be."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "a link or a device"
    if name.is_absolute() or ".." in name.parts or (name.parts and ":" in name.parts[0]):
        return "its path leads out of the pack"
    if SKIPPED & set(name.parts):
        return "a cache or a tool's folder"
    if len(name.parts) > DEPTH:
        return "too deep"
    if len(str(name)) > LONGEST_NAME:
        return "its name is too long"
    return None


def _read_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: PurePosixPath, budget: Budget
) -> bytes:
    """A member's bytes, counted while they are unpacked: what its header claims is not believed."""
    if info.flag_bits & 1:
        raise BrokenPack(f"encrypted: {_short(name)}")
    if info.compress_type not in METHODS:
        raise BrokenPack(f"packed by a rare method: {_short(name)}: make an ordinary zip of it")
    with archive.open(info) as file:
        data = _read_capped(file, name, budget)
    if len(data) > SMALL and len(data) > RATIO * max(1, info.compress_size):
        raise BrokenPack(f"zip bomb: {_short(name)} unpacks to more than {RATIO} times its size")
    return data


def _read_capped(file: IO[bytes], name: PurePosixPath, budget: Budget) -> bytes:
    most = LIMITS.get(name.suffix.lower(), MODULE)
    chunks, size = [], 0
    while chunk := file.read(CHUNK):
        size += len(chunk)
        budget.take(len(chunk))
        if size > most:
            raise BrokenPack(f"too large: {_short(name)} has more than {most >> 20} MiB")
        chunks.append(chunk)
    return b"".join(chunks)


# --- folders ---

# a student may put a link or a pipe in the place of what was looked at a moment ago
_NO_LINK = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _read_folder(folder: Path, wanted: Wanted, budget: Budget, follow: bool) -> Pack:
    """Ordinary files only, links never followed."""
    pack = Pack()
    with _broken_packs():
        flags = os.O_RDONLY if follow else _NO_LINK
        _read_within(os.open(folder, flags | os.O_DIRECTORY), PurePosixPath(), wanted, budget, pack)
    pack.members.sort(key=lambda member: str(member.path))
    return pack


def _read_within(
    folder: int, within: PurePosixPath, wanted: Wanted, budget: Budget, pack: Pack
) -> None:
    """Read an open folder, and close it.

    What is in it is opened from it, not by a path: the parts of a path can be exchanged meanwhile.
    """
    try:
        listed = []
        with os.scandir(folder) as entries:
            for entry in entries:
                budget.list(1)
                listed.append(entry)
        for entry in sorted(listed, key=lambda entry: entry.name):
            name = within / printable(entry.name)
            if entry.is_symlink():
                pack.ignored.append(Ignored(_short(name), "a link or a device"))
            elif entry.is_dir(follow_symlinks=False):
                if entry.name in SKIPPED:
                    pack.ignored.append(Ignored(_short(f"{name}/"), "a cache or a tool's folder"))
                elif len(name.parts) > DEPTH:
                    pack.ignored.append(Ignored(_short(f"{name}/"), "too deep"))
                else:
                    inner = os.open(entry.name, _NO_LINK | os.O_DIRECTORY, dir_fd=folder)
                    _read_within(inner, name, wanted, budget, pack)
            elif not entry.is_file(follow_symlinks=False):
                pack.ignored.append(Ignored(_short(name), "a link or a device"))
            elif _is_zip(name) or wanted(name):
                pack.members.append(Member(name, _read_file(entry.name, name, budget, folder)))
            else:
                pack.ignored.append(Ignored(_short(name), ""))
    finally:
        os.close(folder)


def _read_file(path: Path | str, name: PurePosixPath, budget: Budget, folder: int | None) -> bytes:
    """An ordinary file's bytes; `path` may be one within the open `folder`."""
    with _raw(path, folder) as file:
        return _read_capped(file, name, budget)


def _raw(path: Path | str, folder: int | None = None) -> io.FileIO:
    """An ordinary file, opened; never a link, a pipe or a device."""
    descriptor = os.open(path, _NO_LINK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BrokenPack(f"no ordinary file: {_short(path)}")
    return io.FileIO(descriptor)


def _short(text: object) -> str:
    """`text` so that a terminal can show it, cut where it gets long."""
    shown = printable(str(text))
    return shown if len(shown) <= 200 else f"{shown[:200]}..."
