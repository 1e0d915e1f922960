"""Number and title of a lesson, read from its file in `course_lib` without importing it."""

from __future__ import annotations

import json
import re
from pathlib import Path

COURSE_LIB = Path(__file__).resolve().parents[1]
_FIRST_LINE = re.compile(r'"""Lesson (\d+): (.+)')


def number(lesson: str) -> int:
    """The lesson's number; 99, after all others, where neither module nor notebook names one."""
    if found := _first_line(lesson):
        return int(found[1])
    # a learner may have written the whole file anew, without its first line
    path = _notebook(lesson)
    return int(path.name[:2]) if path else 99


def heading(lesson: str) -> str:
    """Number and title, such as `Lesson 3: top-k, a short list of fixed length`.

    The first line of the module, which is the notebook's heading too: a test holds the two to it.
    """
    if found := _first_line(lesson):
        title = found[2].strip('. "')
        return f"Lesson {found[1]}: {title}"
    # a stretch lesson has no module, and a learner may have edited the line
    return _notebook_heading(lesson) or lesson.replace("_", " ")


def find_lesson(word: str, known: list[str]) -> str:
    """The one of `known` that a person means by `top_k`, `3`, `03`, `03_top_k` or a file of it.

    A file is `top_k.py`, `course_lib/top_k.py` or `03_top_k.ipynb`, wherever it lies.

    Raises ValueError that names the lessons there are.
    """
    meant = Path(word.replace("\\", "/")).name
    meant = meant.removesuffix(".py").removesuffix(".ipynb")
    for lesson in known:
        digits = str(number(lesson))
        if meant in (lesson, digits, digits.zfill(2), f"{digits.zfill(2)}_{lesson}"):
            return lesson
    raise ValueError(f"there is no lesson {word!r}: take one of {', '.join(known) or '(none yet)'}")


def _notebook(lesson: str) -> Path | None:
    """The notebook of a lesson in a workspace, which lies beside `course_lib`."""
    return next(iter(sorted(COURSE_LIB.parent.glob(f"[0-9][0-9]_{lesson}.ipynb"))), None)


def _notebook_heading(lesson: str) -> str | None:
    path = _notebook(lesson)
    if path is None:
        return None
    # a notebook may be damaged, or open in an editor that is writing it: its name will do then
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells[:3])
    except (OSError, ValueError, KeyError, TypeError):
        text = ""
    found = re.search(r"^# (Lesson \d+: .+)", text, re.MULTILINE)
    return found[1] if found else f"Lesson {int(path.name[:2])}: {lesson.replace('_', ' ')}"


def _first_line(lesson: str) -> re.Match[str] | None:
    path = COURSE_LIB / f"{lesson}.py"
    if not path.is_file():
        return None
    # a learner's file may hold anything, so bytes that are no text are no reason to stop
    return _FIRST_LINE.match(path.read_text(encoding="utf-8", errors="replace"))
