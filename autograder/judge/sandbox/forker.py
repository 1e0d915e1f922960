"""What the warm parent does once it is warm: forks a child when asked, and ends it when asked."""

from __future__ import annotations

import fcntl
import importlib
import os
import random
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import kernel
from .control import receive, send
from .limits import Limits
from .limits import apply as apply_limits

if TYPE_CHECKING:
    from .lock import Lock

FAULT = 70  # exit code of a child that could not be locked down
LOCKED = b"locked"  # what a child says when it is
LOOK = 0.2  # seconds between looks at the children


class Forker:
    """Forks children and ends them, one request at a time."""

    def __init__(self, control: socket.socket, limits: Limits, lock: Lock | None) -> None:
        self.control = control
        self.limits, self.lock = limits, lock
        self.living: dict[int, int] = {}  # number of a child -> bytes resident when it was forked
        self.bombs: set[int] = set()  # children that were killed here, and not yet asked for

    def serve(self) -> None:
        """Answer until the driver hangs up, and have an eye on the children meanwhile."""
        looked = time.monotonic()
        while True:
            ready, _, _ = select.select([self.control], [], [], LOOK if self.living else None)
            if ready:
                self.answer()
            if time.monotonic() - looked >= LOOK:
                self.end_bombs()
                looked = time.monotonic()

    def end_bombs(self) -> None:
        """Kill each child that has too many threads: root's are not counted by the kernel."""
        for pid in self.living.keys() - self.bombs:
            if count_threads(pid) > self.limits.threads:
                os.kill(pid, signal.SIGKILL)
                self.bombs.add(pid)

    def answer(self) -> None:
        request, descriptors = receive(self.control)
        if request["op"] == "spawn":
            reply = self.spawn(request["serve"], descriptors[0])
        else:
            reply = self.stop(request["pid"])
        send(self.control, reply)

    def spawn(self, serve: str, connection: int) -> dict[str, Any]:
        """Fork a child that serves this descriptor; {"pid"} as soon as it is locked down."""
        told, tells = os.pipe()
        resident = resident_memory()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self.child(serve, connection, tells, parent)
        os.close(tells)
        os.close(connection)
        self.living[pid] = resident
        with open(told, "rb") as pipe:
            word = pipe.read()
        if word == LOCKED:
            return {"pid": pid}
        self.stop(pid)
        return {"error": word.decode(errors="replace") or "a child died before it was locked down"}

    def child(self, serve: str, connection: int, tells: int, parent: int) -> None:
        """What the child does; never returns."""
        code = FAULT
        try:
            try:
                run = importlib.import_module(serve).serve
                served, tells = self.confine(connection, tells, parent)
            except BaseException as error:
                os.write(tells, f"{type(error).__name__}: {error}".encode())
                os._exit(FAULT)
            os.write(tells, LOCKED)
            os.close(tells)
            run(served)
            code = 0
        finally:
            os._exit(code)

    def confine(self, connection: int, tells: int, parent: int) -> tuple[socket.socket, int]:
        """Lock this process down; the connection, and the new number of the other descriptor."""
        ruleset = [] if self.lock is None else [self.lock.ruleset.descriptor]
        connection, tells, *ruleset = keep_only([connection, tells, *ruleset])
        # made here, as it asks the kernel what a locked child may not ask
        served = socket.socket(fileno=connection)
        os.environ.clear()
        reseed()
        if self.lock is None:
            if sys.platform == "linux":
                kernel.die_with_parent(parent)
            apply_limits(self.limits, address_space(), own_user=False)
        else:
            self.lock.close(parent, address_space(), ruleset[0])
        return served, tells

    def stop(self, pid: int) -> dict[str, Any]:
        """End a child, however it is; tells how it ended, or had ended."""
        if pid not in self.living:
            return {"error": f"there is no child {pid}"}
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if not ended:
            # it has not been waited for, so the number is still its own
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
        # macOS counts in bytes
        unit = 1 if sys.platform == "darwin" else 1024
        told = {
            "exit": os.waitstatus_to_exitcode(status),
            "had_ended": bool(ended) and pid not in self.bombs,
            "peak": usage.ru_maxrss * unit,
            "resident": self.living.pop(pid),
            "cpu": usage.ru_utime + usage.ru_stime,
        }
        self.bombs.discard(pid)
        return told

    def end(self) -> None:
        """End every child, and then this process."""
        for pid in self.living:
            os.kill(pid, signal.SIGKILL)
        for pid in self.living:
            os.waitpid(pid, 0)
        os._exit(0)


def keep_only(kept: list[int]) -> list[int]:
    """Close every descriptor but these, and /dev/null as 0, 1, 2; their new numbers, from 3 on."""
    null = os.open(os.devnull, os.O_RDWR)
    # first to numbers above all that are wanted, then down
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16) for fd in kept]
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    low = [os.dup2(fd, 3 + i, inheritable=False) for i, fd in enumerate(high)]
    os.closerange(3 + len(low), os.sysconf("SC_OPEN_MAX"))
    return low


def reseed() -> None:
    """Each child has generators of its own, not copies of the parent's."""
    random.seed()
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(int.from_bytes(os.urandom(8)) >> 1)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(int.from_bytes(os.urandom(4)))


def count_threads(pid: int) -> int:
    """Of a process, as far as the system tells."""
    try:
        # what follows the name, which may hold anything: see proc_pid_stat(5)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0
    return int(fields[17])


def resident_memory() -> int:
    """Bytes of this process in memory, shared ones included; 0 where the system does not tell."""
    return _statm(1)


def address_space() -> int:
    """Bytes of this process's address space; 0 where the system does not tell."""
    return _statm(0)


def _statm(field: int) -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[field]) * os.sysconf("SC_PAGESIZE")
    except FileNotFoundError:
        return 0
