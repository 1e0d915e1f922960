"""Fewer, larger pages: a fork copies the table of pages, and that is most of what it costs.

Torch and its friends take some 200 MB, 50,000 small pages. As 100 large ones they are forked in a
quarter of the time, and stay shared: a child that writes splits its own table, not the page.
See https://docs.kernel.org/admin-guide/mm/transhuge.html.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

LARGE = 2 << 20  # bytes; with another size of pages the kernel refuses, and all stays as it is
COLLAPSE = 25  # advice to madvise, from Linux 6.1 on: <linux/mman.h>


def enlarge() -> None:
    """Let the kernel make large pages of this process's own memory, where it can."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except FileNotFoundError:
        return  # not Linux
    madvise = ctypes.CDLL(None).madvise
    for line in maps.splitlines():
        span, rights, _, _, inode, *name = line.split(maxsplit=5)
        if inode != "0" or not rights.startswith("rw-p") or name == ["[stack]"]:
            continue
        begin, end = (int(address, 16) for address in span.split("-"))
        begin, end = -(-begin // LARGE) * LARGE, end // LARGE * LARGE
        if begin < end:
            # it may say no: it is older, or has no memory in one piece
            madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), ctypes.c_int(COLLAPSE))
