"""The pages of the warm parent's memory: large ones, and none that its children would share.

A fork copies the table of pages, and that is most of what it costs. Torch and its friends take some
200 MB, 50,000 small pages; as 100 large ones they are forked in a quarter of the time, and stay
shared: a child that writes splits its own table, not the page.
See https://docs.kernel.org/admin-guide/mm/transhuge.html.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

LARGE = 2 << 20  # bytes; with another size of pages the kernel refuses, and all stays as it is
DO_NOT_FORK, COLLAPSE = 10, 25  # advice to madvise, the latter from Linux 6.1 on: <linux/mman.h>


def prepare() -> None:
    """Get this process's memory ready for forks. Does nothing where there is no /proc."""
    madvise = ctypes.CDLL(None).madvise

    def advise(begin: int, end: int, advice: int) -> None:
        madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), ctypes.c_int(advice))

    for begin, end, rights, inode, name in mappings():
        if rights.startswith("rw-s"):
            # what one child writes there, the next one would read
            advise(begin, end, DO_NOT_FORK)
        elif rights.startswith("rw-p") and inode == "0" and name != "[stack]":
            first, last = -(-begin // LARGE) * LARGE, end // LARGE * LARGE
            if first < last:
                # the kernel may say no: it is older, or has no memory in one piece
                advise(first, last, COLLAPSE)


def mappings() -> Iterator[tuple[int, int, str, str, str]]:
    """Begin, end, rights, inode and name of each part of this process's memory."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    for line in maps.read_text().splitlines():
        span, rights, _, _, inode, *name = line.split(maxsplit=5)
        begin, end = (int(address, 16) for address in span.split("-"))
        yield begin, end, rights, inode, name[0] if name else ""
