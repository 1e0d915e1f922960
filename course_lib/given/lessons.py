"""Number and title of a lesson, read from its file in `course_lib` without importing it."""

from __future__ import annotations

import re
from pathlib import Path

COURSE_LIB = Path(__file__).resolve().parents[1]
_FIRST_LINE = re.compile(r'"""Lesson (\d+): (.+)')


def number(lesson: str) -> int:
    """The lesson's number; 99, after all others, where neither module nor notebook names one."""
    if found := _first_line(lesson):
        return int(found[1])
    # a learner may have written the whole file anew, without its first line
    notebooks = sorted(COURSE_LIB.parent.glob(f"[0-9][0-9]_{lesson}.ipynb"))
    return int(notebooks[0].name[:2]) if notebooks else 99


def heading(lesson: str) -> str:
    """Number and title, such as `Lesson 3: top-k, a short list of fixed length`."""
    found = _first_line(lesson)
    # a stretch lesson has no module, and a learner may have edited the line
    if not found:
        title = lesson.replace("_", " ")
        return f"Lesson {number(lesson)}: {title}" if number(lesson) < 99 else title
    title = found[2].strip('. "')
    return f"Lesson {found[1]}: {title}"


def find_lesson(word: str, known: list[str]) -> str:
    """The one of `known` that a person means by `top_k`, `3`, `03` or `03_top_k`.

    Raises ValueError that names the lessons there are.
    """
    for lesson in known:
        digits = str(number(lesson))
        if word in (lesson, digits, digits.zfill(2), f"{digits.zfill(2)}_{lesson}"):
            return lesson
    raise ValueError(f"there is no lesson {word!r}: take one of {', '.join(known) or '(none yet)'}")


def _first_line(lesson: str) -> re.Match[str] | None:
    path = COURSE_LIB / f"{lesson}.py"
    if not path.is_file():
        return None
    # a learner's file may hold anything, so bytes that are no text are no reason to stop
    return _FIRST_LINE.match(path.read_text(encoding="utf-8", errors="replace"))
