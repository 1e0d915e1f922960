"""The warm parent: a process that has torch imported and no secret, and forks a child per run.

Run as `python -I -S -c BOOTSTRAP settings`: isolated, without site-packages. What may be imported
is told by name, so that every kind of sandbox has the same modules.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import signal
import site
import socket
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from typing import Any

from .control import Gone, receive, send
from .limits import Limits
from .limits import apply as apply_limits

FAULT = 70  # exit code of a child that could not be locked down


class OnlyThese:
    """Finds the top-level modules that the sandbox shows, and no others."""

    def __init__(self, places: dict[str, list[str]]) -> None:
        self.places = places

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if path is not None or name not in self.places:
            return None
        return PathFinder.find_spec(name, self.places[name], target)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[Distribution]:
        """For packages that ask for their own version."""
        folders = sorted({folder for folders in self.places.values() for folder in folders})
        name = None if context is None else context.name
        asked = DistributionFinder.Context(name=name, path=folders)
        return iter(MetadataPathFinder.find_distributions(asked))


def main() -> None:
    """Import, tell that it is done, then serve the driver until it hangs up."""
    settings = json.loads(sys.argv[1])
    control = socket.socket(fileno=settings["control"])
    try:
        warm_up(settings)
    except Exception as error:
        send(control, {"error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    parent = Parent(control, settings)
    try:
        send(control, {"ready": sorted(sys.modules.keys() & {"torch", "numpy"})})
        while True:
            parent.answer()
    except Gone:
        parent.end()


def warm_up(settings: dict[str, Any]) -> None:
    sys.path = [path for path in sys.path if path and not path.endswith("-packages")]
    sys.meta_path.append(OnlyThese(settings["places"]))
    sys.dont_write_bytecode = True
    site.setquit()  # `exit()` in a learner's file is what it is everywhere
    for name in settings["imports"]:
        importlib.import_module(name)
        if name == "torch":
            # at once: a pool of threads would not be there after a fork, and all would wait for it
            sys.modules["torch"].set_num_threads(1)
    # the collector leaves what is here alone, so that the children's pages stay shared
    gc.collect()
    gc.freeze()


class Parent:
    """Forks children and ends them, one request at a time."""

    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        self.control = control
        self.limits = Limits(**settings["limits"])
        self.living: set[int] = set()

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
        pid = os.fork()
        if pid == 0:
            os.close(told)
            self.child(serve, connection, tells)
        os.close(tells)
        os.close(connection)
        self.living.add(pid)
        with open(told, "rb") as pipe:
            word = pipe.read()
        if word == b"locked":
            return {"pid": pid, "resident": resident}
        self.stop(pid)
        return {"error": word.decode(errors="replace") or "a child died before it was locked down"}

    def child(self, serve: str, connection: int, tells: int) -> None:
        """What the child does; never returns."""
        code = FAULT
        try:
            try:
                connection, tells = keep_only(connection, tells)
                apply_limits(self.limits, address_space())
                reseed()
                os.environ.clear()
                run = importlib.import_module(serve).serve
            except BaseException as error:
                os.write(tells, f"{type(error).__name__}: {error}".encode())
                os._exit(FAULT)
            os.write(tells, b"locked")
            os.close(tells)
            run(socket.socket(fileno=connection))
            code = 0
        finally:
            os._exit(code)

    def stop(self, pid: int) -> dict[str, Any]:
        """End a child, however it is; tells how it ended, or had ended."""
        if pid not in self.living:
            return {"error": f"there is no child {pid}"}
        # it has not been waited for, so the number is still its own, even if it is dead
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        self.living.discard(pid)
        # macOS counts in bytes
        unit = 1 if sys.platform == "darwin" else 1024
        return {
            "exit": os.waitstatus_to_exitcode(status),
            "peak": usage.ru_maxrss * unit,
            "cpu": usage.ru_utime + usage.ru_stime,
        }

    def end(self) -> None:
        for pid in self.living:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


def keep_only(connection: int, tells: int) -> tuple[int, int]:
    """Close every descriptor but these two and /dev/null as 0, 1, 2; their new numbers."""
    null = os.open(os.devnull, os.O_RDWR)
    # first to numbers that nothing else has, then down
    high = [os.dup2(fd, 100 + i, inheritable=False) for i, fd in enumerate((connection, tells))]
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    low = [os.dup2(fd, 3 + i, inheritable=False) for i, fd in enumerate(high)]
    os.closerange(5, 1 << 20)
    return low[0], low[1]


def reseed() -> None:
    """Each child has generators of its own, not copies of the parent's."""
    random.seed()
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(int.from_bytes(os.urandom(8)) >> 1)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(int.from_bytes(os.urandom(4)))


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
