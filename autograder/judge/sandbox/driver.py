"""The driver's end: starts a warm parent, asks it for children, ends them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ...errors import CourseError
from . import control
from .limits import Limits
from .packages import closure, entries, top_level

ROOT = Path(__file__).resolve().parents[3]

# what a child has at hand without reading a file
IMPORTS = ("torch", "numpy", "jaxtyping", "course_lib.given.minigpt", "autograder.judge.child")

BOOTSTRAP = (
    "import json, sys; sys.path.insert(0, json.loads(sys.argv[1])['home']); "
    "from autograder.judge.sandbox.warm import main; main()"
)
LONGEST_START = 300  # seconds; torch on a slow network disk takes its time
LONGEST_ANSWER = 60  # seconds


class SandboxError(CourseError):
    """There is no sandbox to be had here, or one does not start."""


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

    def __init__(self, process: WarmProcess, pid: int, connection: socket.socket, resident: int):
        self.connection = connection
        self._process, self._pid, self._resident = process, pid, resident
        self._ended: Ended | None = None

    def stop(self) -> Ended:
        """Kill it if it is alive; how it ended. May be called again."""
        if self._ended is None:
            # killed first: one that sees the other end closed might end in a way of its own
            self._ended = self._stop()
            self.connection.close()
        return self._ended

    def _stop(self) -> Ended:
        try:
            told = self._process.ask({"op": "stop", "pid": self._pid})
        except control.Gone:
            return Ended(None, None, 0, False)
        code, peak = told["exit"], max(0, told["peak"] - self._resident)
        return Ended(code if code >= 0 else None, -code if code < 0 else None, peak, False)


class WarmProcess:
    """One running warm parent."""

    def __init__(self, argv: Sequence[str], settings: dict[str, Any]) -> None:
        self.control, theirs = socket.socketpair()
        self._turn = threading.Lock()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        with theirs:
            settings = {**settings, "control": theirs.fileno()}
            self.process = subprocess.Popen(
                [*argv, json.dumps(settings)],
                env={"OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                pass_fds=[theirs.fileno()],
                cwd="/",
            )
        try:
            self.control.settimeout(LONGEST_START)
            told, _ = control.receive(self.control)
        except control.Gone:
            told = {"error": "it ended before it was ready"}
        if "error" in told:
            self.close()
            raise SandboxError(f"{told['error']} {self.last_words()}".strip())
        self.control.settimeout(LONGEST_ANSWER)

    def ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Raises control.Gone when the process is no more."""
        with self._turn:
            try:
                control.send(self.control, request, descriptors)
                reply, _ = control.receive(self.control)
            except control.Gone:
                self.close()
                raise
        return reply

    def last_words(self) -> str:
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        # it ends when the other end is closed, and its children with it
        self.control.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class WarmParent:
    """Gives a child per run, in the best sandbox that there is here.

    `sandboxed=False` gives children that nothing holds but limits of memory and time. Raises
    SandboxError when there is no sandbox. May be used from several threads.
    """

    def __init__(
        self,
        *,
        sandboxed: bool = True,
        limits: Limits = Limits(),  # noqa: B008
        imports: Sequence[str] = IMPORTS,
    ) -> None:
        self.level = "none"
        self._limits, self._imports = limits, tuple(imports)
        self._starting = threading.Lock()
        self._process = self._start()

    def __enter__(self) -> WarmParent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the warm parent, and with it every child."""
        self._process.close()

    def spawn(self, serve: str = "autograder.judge.child") -> Child:
        """A new child, locked down; a warm parent that has died is replaced by another."""
        for last in (False, True):
            process = self._process
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    told = process.ask({"op": "spawn", "serve": serve}, [theirs.fileno()])
            except control.Gone:
                ours.close()
                if last:
                    raise SandboxError("the sandbox's warm parent died twice") from None
                with self._starting:
                    if self._process is process:
                        self._process = self._start()
                continue
            if "error" in told:
                ours.close()
                raise SandboxError(f"a child could not be locked down: {told['error']}")
            return Child(process, told["pid"], ours, told["resident"])
        raise AssertionError

    def _start(self) -> WarmProcess:
        places = top_level(entries(closure()))
        settings = {
            "home": str(ROOT),
            "places": places,
            "imports": self._imports,
            "limits": asdict(self._limits),
        }
        argv = [str(Path(sys.executable).resolve()), "-I", "-S", "-c", BOOTSTRAP]
        return WarmProcess(argv, settings)
