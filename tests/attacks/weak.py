"""Judges weakened on purpose: what an attack earns here shows that it is one.

They run the file in a process that has everything: the checks, the solutions, all that is
installed.
"""

from __future__ import annotations

import inspect
import json
import pickle
import socket
import struct
import sys
from typing import Any

from autograder.judge.sandbox import Limits, WarmParent
from autograder.judge.sandbox.children import try_out

from .forms.base import Files

FREE = Limits(file_size=1 << 20)


def run(how: str, source: str, lesson: str, path: list[str]) -> Any:
    """What one weak judge finds; this function's text is run in the child, without this module."""
    import contextlib
    import importlib
    import io
    import os
    import sys
    import tempfile
    from pathlib import Path

    sys.path[:] = path
    if how == "in process":
        from course_lib.checks import kit
        from course_lib.checks.load import load_fresh

        importlib.import_module(f"solutions.{lesson}")  # what hidden checks compare with
        suite = kit.find_suite(lesson)
        folder = Path(tempfile.mkdtemp())
        (folder / f"{lesson}.py").write_text(source)
        student = load_fresh(lesson, folder)
        results = [kit.run_check(check, student) for check in suite.checks.values()]
        earned = sum(result.points for result in results if result.passed)
        return earned / sum(check.points for check in suite.checks.values())
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, f"{lesson}.py", "exec"), {"__name__": lesson})
    except SystemExit as ending:
        os._exit(ending.code)
    return printed.getvalue()


def _run(how: str, files: Files, lesson: str, parent: WarmParent) -> Any:
    given = {"how": how, "source": files[lesson].decode(), "lesson": lesson, "path": sys.path}
    return try_out(parent._process, inspect.getsource(run), given, FREE)


def in_process(files: Files, lesson: str, parent: WarmParent) -> float:
    """The share of the visible points that a judge gives who imports what it judges."""
    return float(_run("in process", files, lesson, parent))


def believes_the_exit_code(files: Files, lesson: str, parent: WarmParent) -> bool:
    """Whether a judge who looks at the exit code alone takes the checks for passed."""
    try:
        _run("exit code", files, lesson, parent)
    except EOFError as ended:
        return "exit_code=0" in str(ended)
    return False


def believes_what_is_printed(files: Files, lesson: str, parent: WarmParent) -> float:
    """The score that the last line of JSON on stdout claims."""
    printed: str = _run("printed", files, lesson, parent)
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    return float(json.loads(lines[-1])["lessons"][lesson]["score"]) if lines else 0.0


# --- weak drivers ---


def serves_pickles(connection: socket.socket) -> object:
    """A driver that unpickles the reply, as multiprocessing does."""
    length, size = struct.unpack("!II", connection.recv(8, socket.MSG_WAITALL))
    return pickle.loads(connection.recv(length + size, socket.MSG_WAITALL))


def takes_any_frame_for_a_verdict(connection: socket.socket) -> float:
    """A driver that takes from a frame whatever score it claims."""
    length, _ = struct.unpack("!II", connection.recv(8, socket.MSG_WAITALL))
    return float(json.loads(connection.recv(length, socket.MSG_WAITALL)).get("score", 0))
