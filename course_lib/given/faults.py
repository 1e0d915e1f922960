"""What went wrong in a learner's code, told in one line instead of a traceback."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import FrameType

from .lessons import COURSE_LIB


def unwritten(error: BaseException) -> str | None:
    """`top_k_filter is not written yet: open course_lib/top_k.py`, if `error` says that.

    None for every other error, and for a NotImplementedError from outside of the lesson modules.
    """
    if not isinstance(error, NotImplementedError):
        return None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames or not _is_lesson_module(frames[-1].f_code.co_filename):
        return None
    file = Path(frames[-1].f_code.co_filename).name
    return f"{_function(frames[-1])} is not written yet: open course_lib/{file}"


def own_line(error: BaseException) -> str | None:
    """`course_lib/top_k.py, line 12`: the last line of the learner's that `error` went through."""
    if isinstance(error, SyntaxError) and _is_lesson_module(error.filename or ""):
        return f"course_lib/{Path(error.filename or '').name}, line {error.lineno}"
    lines = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _is_lesson_module(frame.f_code.co_filename)
    ]
    if not lines:
        return None
    file, line = lines[-1]
    return f"course_lib/{Path(file).name}, line {line}"


def one_line(error: BaseException) -> str:
    """Any error as one line: a stub that is not written, or kind, message and place."""
    if stub := unwritten(error):
        return stub
    # a SyntaxError's text names the place itself, in words of its own
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    said = " ".join(message.split())
    told = f"{type(error).__name__}: {said}" if said else type(error).__name__
    place = own_line(error)
    return f"{place}: {told}" if place else told


def _function(frame: FrameType) -> str:
    """`KVCache.append` for code inside of it, functions within functions included."""
    return frame.f_code.co_qualname.partition(".<locals>")[0]


def _is_lesson_module(filename: str) -> bool:
    path = Path(filename)
    return path.suffix == ".py" and path.name[0] != "_" and path.resolve().parent == COURSE_LIB
