"""One running warm parent, as the driver sees it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

from ...errors import CourseError
from . import control, files

BOOTSTRAP = (
    "import json, sys; sys.path.insert(0, json.loads(sys.argv[1])['home']); "
    "from autograder.judge.sandbox.warm import main; main()"
)
# nothing of the instructor's own
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "PYTHONHASHSEED": "0",  # a set of words has one order in all children, and so one verdict
}
# nothing from the working folder, from the user's folder, from site-packages
FLAGS = ("-P", "-s", "-S")
LONGEST_START = 300  # seconds; torch on a slow network disk takes its time
LONGEST_ANSWER = 60  # seconds
LONGEST_END = 5  # seconds


class SandboxError(CourseError):
    """There is no sandbox to be had here, or one does not start."""


_OPEN: WeakSet[WarmProcess] = WeakSet()


def _let_go() -> None:
    """A driver that is forked leaves its parent's sandboxes alone, and gets its own."""
    for process in _OPEN:
        process.control.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class WarmProcess:
    """Starts it, talks with it, ends it."""

    def __init__(self, prefix: Sequence[str], settings: dict[str, Any]) -> None:
        """`prefix` is what goes before `python` in the command. Raises SandboxError."""
        self.control, theirs = socket.socketpair()
        self._turn = threading.Lock()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        with theirs:
            settings = {**settings, "control": theirs.fileno()}
            python = [str(files.interpreter()), *FLAGS, "-c", BOOTSTRAP]
            self._process = subprocess.Popen(
                [*prefix, *python, json.dumps(settings)],
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                pass_fds=[theirs.fileno()],
                cwd="/",
                # Ctrl-C is for the driver, which may have something to finish first
                start_new_session=True,
            )
        _OPEN.add(self)
        self.control.settimeout(LONGEST_START)
        try:
            told, _ = control.receive(self.control)
        except control.Gone:
            told = {"error": "it ended before it was ready"}
        if "error" in told:
            self.close()
            raise SandboxError(": ".join(filter(None, [told["error"], self._last_words()])))
        self.control.settimeout(LONGEST_ANSWER)

    @property
    def pid(self) -> int:
        """Of the process that was started: bubblewrap's, if it is inside one."""
        return self._process.pid

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

    def close(self) -> None:
        """End it; it ends when the other end is closed, and its children with it."""
        self.control.close()
        try:
            self._process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_words(self) -> str:
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
