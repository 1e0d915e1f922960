"""What attacks find around them: an instructor's folder with secrets, and somebody who listens."""

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.authoring.layout import ROOT

from .forms import Scene


@contextmanager
def scene_in(folder: Path) -> Iterator[tuple[Scene, socket.socket]]:
    """A scene in an empty folder, and the socket on which a stolen input would arrive."""
    secret = folder / "alice-has-handed-in.txt"
    secret.write_text("swordfish-12345")
    gradebook = folder / "gradebook.db"
    with sqlite3.connect(gradebook) as book:
        book.execute("CREATE TABLE grade (student TEXT, auto_score REAL)")
        book.executemany("INSERT INTO grade VALUES (?, ?)", [("alice", 15), ("mallory", 0)])
    book.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        yield Scene(folder, secret, secret.read_text(), gradebook, port, ROOT), listener


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")}


def descendants() -> set[int]:
    """The processes that come from this one, those of a sandbox too."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = status.read_text().split(" ", 1)
        except OSError:  # it has ended in the meantime
            continue
        parents[int(number)] = int(rest.rpartition(")")[2].split()[1])
    found, new = set(), {os.getpid()}
    while new:
        found |= new
        new = {child for child, parent in parents.items() if parent in new} - found
    return found


def left_in_the_kernel(key: int = 4321) -> list[str]:
    """Shared memory, semaphores and queues of a key, which stay when a process ends."""
    rows = [
        (path.name, line.split())
        for path in Path("/proc/sysvipc").glob("*")
        for line in path.read_text().splitlines()
    ]
    return [kind for kind, row in rows if row[:1] == [str(key)]]


def forget_peak() -> int:
    """Begin to measure this process's peak memory anew; bytes that it has now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak() -> int:
    """Bytes of memory that this process has had at most since then."""
    return _status("VmHWM")


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024


def visitors(listener: socket.socket) -> int:
    """How many have connected."""
    count = 0
    while True:
        try:
            listener.accept()[0].close()
        except TimeoutError:
            return count
        count += 1
