"""One child of a warm parent: started, tried, ended."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import control, trial
from .limits import Limits
from .process import SandboxError, WarmProcess

LONGEST_TRIAL = 60  # seconds
ABORTED, BUS_ERROR, KILLED, SEGMENT_FAULT = 6, 7, 9, 11


@dataclass(frozen=True)
class Ended:
    """How a child ended: an exit code or a signal; neither if its warm parent died before it.

    In that case the child is no more to blame than anyone, and the run is to be done again.
    """

    exit_code: int | None
    signal: int | None
    peak_memory: int  # bytes above what the warm parent had
    out_of_memory: bool


class Child:
    """One locked child. `connection` is the driver's end of the socket that it serves."""

    def __init__(
        self, process: WarmProcess, pid: int, connection: socket.socket, limits: Limits
    ) -> None:
        self.connection = connection
        self._process, self._pid, self._limits = process, pid, limits
        self._ended: Ended | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> Ended:
        """Kill it if it is alive; how it ended. May be called again."""
        if self._ended is None:
            try:
                told = self._process.ask({"op": "stop", "pid": self._pid})
                self._ended = how_it_ended(told, self._limits)
            except control.Gone:
                self._ended = Ended(None, None, 0, False)
            # not before: one that sees the other end closed might end in a way of its own
            self.connection.close()
        return self._ended


def spawn(process: WarmProcess, limits: Limits, serve: str = "autograder.judge.child") -> Child:
    """A child that serves with the module `serve`. Raises control.Gone, SandboxError."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            told = process.ask({"op": "spawn", "serve": serve}, [theirs.fileno()])
        if "error" in told:
            raise SandboxError(f"a child could not be locked down: {told['error']}")
    except BaseException:
        ours.close()
        raise
    return Child(process, told["pid"], ours, limits)


def try_out(process: WarmProcess, source: str, arguments: dict[str, Any], limits: Limits) -> Any:
    """What `run(**arguments)` of this source gives in a child of its own.

    Raises control.Gone; SandboxError when it raised; EOFError when the child ended instead.
    """
    with spawn(process, limits, trial.__name__) as child:
        child.connection.settimeout(LONGEST_TRIAL)
        try:
            trial.send(child.connection, {"source": source, "arguments": arguments})
            told = trial.receive(child.connection)
        except (OSError, EOFError) as error:
            raise EOFError(f"{error}; {child.stop()}") from error
    if "raised" in told:
        raise SandboxError(f"a trial raised: {told['raised']}")
    return told["result"]


def how_it_ended(told: dict[str, Any], limits: Limits) -> Ended:
    """Of what the warm parent tells when it has waited for a child."""
    code, peak = told["exit"], max(0, told["peak"] - told["resident"])
    killed = -code if code < 0 else None
    out_of_memory = False
    if told["had_ended"]:
        # nobody here killed it, and its time was not up: it was the system, for want of memory
        out_of_memory = killed == KILLED and told["cpu"] < limits.cpu_seconds
        # a library that gets no memory may end in a crash
        crashed = killed in (ABORTED, BUS_ERROR, SEGMENT_FAULT)
        out_of_memory |= crashed and peak > limits.memory * 3 // 4
    return Ended(code if code >= 0 else None, killed, peak, out_of_memory)
