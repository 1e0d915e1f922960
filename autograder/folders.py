"""Reads what was handed in as a folder, where a student may still be at work."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path, PurePosixPath

from .members import (
    DEPTH,
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

# a student may put a link or a pipe in the place of what was looked at a moment ago
_NO_LINK = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def read_folder(folder: Path, wanted: Wanted, budget: Budget, follow: bool) -> Pack:
    """Ordinary files only, links never followed."""
    pack = Pack()
    with broken_packs():
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
                pack.ignored.append(Ignored(short(name), "a link or a device"))
            elif entry.is_dir(follow_symlinks=False):
                if entry.name in SKIPPED:
                    pack.ignored.append(Ignored(short(f"{name}/"), "a cache or a tool's folder"))
                elif len(name.parts) > DEPTH:
                    pack.ignored.append(Ignored(short(f"{name}/"), "too deep"))
                else:
                    inner = os.open(entry.name, _NO_LINK | os.O_DIRECTORY, dir_fd=folder)
                    _read_within(inner, name, wanted, budget, pack)
            elif not entry.is_file(follow_symlinks=False):
                pack.ignored.append(Ignored(short(name), "a link or a device"))
            elif is_zip(name) or wanted(name):
                pack.members.append(Member(name, read_file(entry.name, name, budget, folder)))
            else:
                pack.ignored.append(Ignored(short(name), ""))
    finally:
        os.close(folder)


def read_file(path: Path | str, name: PurePosixPath, budget: Budget, folder: int | None) -> bytes:
    """An ordinary file's bytes; `path` may be one within the open `folder`."""
    with open_ordinary(path, folder) as file:
        return read_capped(file, name, budget)


def open_ordinary(path: Path | str, folder: int | None = None) -> io.FileIO:
    """An ordinary file, opened; never a link, a pipe or a device."""
    descriptor = os.open(path, _NO_LINK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BrokenPack(f"no ordinary file: {short(path)}")
    return io.FileIO(descriptor)
