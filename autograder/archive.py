"""Reads what was handed in, a zip or a folder, as if it were made to harm.

Nothing is ever unpacked: the few files that a pack may hold are read into memory, up to a size that
is counted while reading, and everything else is only named.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from .folders import open_ordinary, read_file, read_folder
from .members import (
    DEPTH,
    MEMBERS,
    SKIPPED,
    BrokenPack,
    Budget,
    Ignored,
    Member,
    Pack,
    Wanted,
    broken_packs,
    is_zip,
    printable,
    read_capped,
    short,
)

ZIP = 4 * 2**30  # a whole class's download, which holds packs
LONGEST_NAME = 1_000  # signs
LONGEST_ENTRY = 2_000  # bytes that a file takes in a zip's list, on the average
RATIO = 300  # a notebook of repeated text is far below it
SMALL = 2**20  # below it a ratio says nothing
# of the other methods zipfile unpacks a block at once, and a block may stand for gigabytes
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

Entry = tuple[zipfile.ZipInfo, PurePosixPath]


def read_pack(
    path: Path, wanted: Wanted, budget: Budget | None = None, *, follow: bool = True
) -> Pack:
    """The files of a zip or folder for whose path `wanted` says yes; zips in it are opened too.

    Without `follow` a link is no folder, even if it took a folder's place a moment ago. Raises
    BrokenPack.
    """
    budget = budget or Budget()
    if path.is_dir():
        return with_inner_zips(read_folder(path, wanted, budget, follow), wanted, budget)
    with opened_zip(path) as archive:
        return with_inner_zips(archive.read(archive.files, wanted, budget), wanted, budget)


def read_one(path: Path, budget: Budget | None = None) -> bytes:
    """The bytes of one file that lies alone. Raises BrokenPack."""
    with broken_packs():
        name = PurePosixPath(printable(path.name))
        return read_file(path, name, budget or Budget(), None)


def with_inner_zips(pack: Pack, wanted: Wanted, budget: Budget) -> Pack:
    """`pack` with the members of the zips in it; a zip within those is ignored."""
    flat = Pack(ignored=list(pack.ignored))
    for member in pack.members:
        if not is_zip(member.path):
            flat.members.append(member)
            continue
        with opened_zip(member.data) as archive:
            inner = archive.read(
                archive.files, lambda path: not is_zip(path) and wanted(path), budget
            )
        flat.members += [Member(member.path / one.path, one.data) for one in inner.members]
        flat.ignored += [Ignored(f"{member.path}/{one.path}", one.why) for one in inner.ignored]
    return flat


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
        with broken_packs():
            for info, whole in files:
                budget.list(1)
                name = PurePosixPath(*whole.parts[below:]) if below else whole
                why = _refusal(info, whole)
                if why is None and (is_zip(name) or wanted(name)):
                    data = _read_member(self._archive, info, name, budget)
                    pack.members.append(Member(name, data))
                else:
                    pack.ignored.append(Ignored(short(name), why or ""))
        return pack


@contextmanager
def opened_zip(source: Path | bytes, members: int = MEMBERS) -> Iterator[Archive]:
    """Open a zip, which may be a file within another. Raises BrokenPack."""
    with broken_packs():
        file = _Listing(
            io.BytesIO(source) if isinstance(source, bytes) else open_ordinary(source), members
        )
    with file:
        with broken_packs():
            archive = _opened(file)
        with archive:
            yield Archive(archive)


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
        raise BrokenPack(f"encrypted: {short(name)}")
    if info.compress_type not in METHODS:
        raise BrokenPack(f"packed by a rare method: {short(name)}: make an ordinary zip of it")
    with archive.open(info) as file:
        data = read_capped(file, name, budget)
    if len(data) > SMALL and len(data) > RATIO * max(1, info.compress_size):
        raise BrokenPack(f"zip bomb: {short(name)} unpacks to more than {RATIO} times its size")
    return data
