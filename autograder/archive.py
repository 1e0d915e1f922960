"""Reads what was handed in, a zip or a folder, as if it were made to harm.

Nothing is ever unpacked: the few files that a pack may hold are read into memory, up to a size that
is counted while reading, and everything else is only named.
"""

from __future__ import annotations

import io
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from .errors import CourseError

MEMBERS = 20_000
DEPTH = 40
TOTAL = 100 * 2**20  # bytes of one pack that are read
MODULE = 2**20
NOTEBOOK = 20 * 2**20
INNER_ZIP = 64 * 2**20
LIMITS = {".ipynb": NOTEBOOK, ".zip": INNER_ZIP}
ZIP = 4 * 2**30  # a whole class's download, which holds packs
CHUNK = 2**16
RATIO = 300  # a notebook of repeated text is far below it
SMALL = 2**20  # below it a ratio says nothing

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


Wanted = Callable[[PurePosixPath], bool]
Entry = tuple[zipfile.ZipInfo, PurePosixPath]


def read_pack(path: Path, wanted: Wanted) -> Pack:
    """The files of a zip or folder for whose path `wanted` says yes; zips in it are opened too.

    Raises BrokenPack.
    """
    if path.is_dir():
        return with_inner_zips(_read_folder(path, wanted), wanted)
    with opened_zip(path) as archive:
        return with_inner_zips(archive.read(archive.files, wanted), wanted)


def read_one(path: Path) -> bytes:
    """The bytes of one file that lies alone. Raises BrokenPack."""
    with _broken_packs():
        return _read_file(str(path), path.name, _Budget())


def with_inner_zips(pack: Pack, wanted: Wanted) -> Pack:
    """`pack` with the members of the zips in it; a zip within those is ignored."""
    flat = Pack(ignored=list(pack.ignored))
    for member in pack.members:
        if member.path.suffix.lower() != ".zip":
            flat.members.append(member)
            continue
        with opened_zip(io.BytesIO(member.data)) as archive:
            inner = archive.read(archive.files, lambda path: not _is_zip(path) and wanted(path))
        flat.members += [Member(member.path / one.path, one.data) for one in inner.members]
        flat.ignored += [Ignored(f"{member.path}/{one.path}", one.why) for one in inner.ignored]
    return flat


class Archive:
    """An open zip: the list of its files, of which some can be read."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        # zips made on Windows may hold its slashes
        named = [
            (info, PurePosixPath(info.filename.replace("\\", "/"))) for info in archive.infolist()
        ]
        self.files: list[Entry] = [(info, name) for info, name in named if not info.is_dir()]

    def read(self, files: Iterable[Entry], wanted: Wanted, below: int = 0) -> Pack:
        """Some of the files, as a pack; of their paths the first `below` parts are dropped.

        Raises BrokenPack.
        """
        pack, budget = Pack(), _Budget()
        with _broken_packs():
            for info, whole in files:
                name = PurePosixPath(*whole.parts[below:]) if below else whole
                why = _refusal(info, whole)
                if why is None and (_is_zip(name) or wanted(name)):
                    pack.members.append(Member(name, _read_member(self._archive, info, budget)))
                else:
                    pack.ignored.append(Ignored(_legible(str(name)), why or ""))
        return pack


@contextmanager
def opened_zip(source: Path | BinaryIO, members: int = MEMBERS) -> Iterator[Archive]:
    """Open a zip, which may be a file within another. Raises BrokenPack."""
    with _broken_packs():
        archive = _opened(source, members)
    with archive:
        yield Archive(archive)


@contextmanager
def _broken_packs() -> Iterator[None]:
    """Turn what zipfile raises on a damaged zip into BrokenPack."""
    try:
        yield
    except (zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise BrokenPack(f"damaged zip: {_legible(str(error))}") from error
    except (RuntimeError, NotImplementedError) as error:  # a password, a method unknown here
        raise BrokenPack(f"zip that cannot be opened: {_legible(str(error))}") from error
    except OSError as error:
        raise BrokenPack(f"cannot be read: {error.strerror or error}") from error


def _is_zip(path: PurePosixPath) -> bool:
    return path.suffix.lower() == ".zip"


class _Budget:
    """What may still be read of a pack."""

    def __init__(self) -> None:
        self.left = TOTAL

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise BrokenPack(f"too large: more than {TOTAL >> 20} MiB of notebooks and modules")


def _opened(source: Path | BinaryIO, members: int) -> zipfile.ZipFile:
    if isinstance(source, Path):
        size = source.stat().st_size
        if not stat.S_ISREG(source.lstat().st_mode):
            raise BrokenPack("no ordinary file")
        with source.open("rb") as file:
            _refuse_crowd(file, members)
    else:
        size = source.seek(0, os.SEEK_END)
        _refuse_crowd(source, members)
    if size == 0:
        raise BrokenPack("empty file")
    if size > ZIP:
        raise BrokenPack(f"too large: {size >> 20} MiB")
    return zipfile.ZipFile(source)


def _refuse_crowd(file: IO[bytes], members: int) -> None:
    """Raise BrokenPack if a zip has too many members: reading the list alone would cost memory."""
    file.seek(0)
    count, tail = 0, b""
    while chunk := file.read(2**20):
        text = tail + chunk
        count += text.count(b"PK\x01\x02")
        tail = text[-3:]
    file.seek(0)
    if count > members:
        raise BrokenPack(f"holds {count} files, more than {members}")


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
    return None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: _Budget) -> bytes:
    """A member's bytes, counted while they are unpacked: what its header claims is not believed."""
    name = _legible(info.filename)
    if info.flag_bits & 1:
        raise BrokenPack(f"encrypted: {name}")
    with archive.open(info) as file:
        data = _read_capped(file, name, budget)
    if len(data) > SMALL and len(data) > RATIO * max(1, info.compress_size):
        raise BrokenPack(f"zip bomb: {name} unpacks to more than {RATIO} times its size")
    return data


def _read_capped(file: IO[bytes], name: str, budget: _Budget) -> bytes:
    most = LIMITS.get(PurePosixPath(name).suffix.lower(), MODULE)
    chunks, size = [], 0
    while chunk := file.read(CHUNK):
        size += len(chunk)
        budget.take(len(chunk))
        if size > most:
            raise BrokenPack(f"too large: {name} has more than {most >> 20} MiB")
        chunks.append(chunk)
    return b"".join(chunks)


def _read_folder(folder: Path, wanted: Wanted) -> Pack:
    """Ordinary files only, links never followed; no recursion, whatever the depth."""
    pack, budget, count = Pack(), _Budget(), 0
    waiting = [(str(folder), PurePosixPath())]
    try:
        while waiting:
            place, within = waiting.pop()
            with os.scandir(place) as entries:
                listed = []
                for entry in entries:
                    count += 1
                    if count > MEMBERS:
                        raise BrokenPack(f"holds more than {MEMBERS} files")
                    listed.append(entry)
            for entry in sorted(listed, key=lambda entry: entry.name):
                name = within / entry.name
                if entry.is_symlink():
                    pack.ignored.append(Ignored(_legible(str(name)), "a link or a device"))
                elif entry.is_dir():
                    if entry.name in SKIPPED:
                        why = "a cache or a tool's folder"
                        pack.ignored.append(Ignored(_legible(f"{name}/"), why))
                    elif len(name.parts) > DEPTH:
                        pack.ignored.append(Ignored(_legible(f"{name}/"), "too deep"))
                    else:
                        waiting.append((entry.path, name))
                elif not entry.is_file():
                    pack.ignored.append(Ignored(_legible(str(name)), "a link or a device"))
                elif _is_zip(name) or wanted(name):
                    pack.members.append(Member(name, _read_file(entry.path, str(name), budget)))
                else:
                    pack.ignored.append(Ignored(_legible(str(name)), ""))
    except OSError as error:
        raise BrokenPack(f"cannot be read: {error.strerror or error}") from error
    pack.members.sort(key=lambda member: str(member.path))
    return pack


def _read_file(path: str, name: str, budget: _Budget) -> bytes:
    # somebody may put a link or a pipe in its place in the meantime
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise BrokenPack(f"no ordinary file: {_legible(name)}")
        return _read_capped(file, _legible(name), budget)


def _legible(text: str) -> str:
    """`text` so that a terminal can show it, cut where it gets long."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in text)
    return shown if len(shown) <= 200 else f"{shown[:200]}..."
