"""Results for people: as text, and as a small panel in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .kit import NOT_ATTEMPTED, Result

# one mark and one word each, so that colour is never the only sign
PASSED, FAILED, WAITING = ("✓", "passed"), ("✗", "failed"), ("○", "not attempted")
COLOURS = {"passed": "#009e73", "failed": "#d55e00", "not attempted": "#7f7f7f"}


def state(result: Result) -> tuple[str, str]:
    """The mark and the word for a result."""
    if result.passed:
        return PASSED
    return WAITING if result.cause == NOT_ATTEMPTED else FAILED


def points(value: float) -> str:
    return f"{value:g} point" + ("" if value == 1 else "s")


def as_text(result: Result) -> str:
    """A result in a few lines, the claim first, as a screen reader should hear it."""
    mark, word = state(result)
    lines = [f"{mark} {word}: {result.id} ({points(result.points)}): {result.claim}"]
    lines += [f"  {line}" for line in result.message.splitlines()]
    if result.hint:
        lines.append(f"  {result.hint}")
    return "\n".join(lines)


def file_line(result: Result) -> str:
    """`course_lib/top_k.py, saved 18:03:12`: the file that a result is about."""
    return f"{result.file}, saved {result.saved}"


class Panel:
    """Results in a notebook: HTML for the eye, the same words as plain text."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = list(results)

    def __repr__(self) -> str:
        lines = []
        for result in self.results:
            lines.append(as_text(result))
            if result.file and result.attempted:
                lines.append(f"  {file_line(result)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(self._row(result) for result in self.results)

    def _row(self, result: Result) -> str:
        mark, word = state(result)
        colour = COLOURS[word]
        details = "".join(
            f'<div style="font-family:monospace;white-space:pre-wrap">{escape(line)}</div>'
            for line in result.message.splitlines()
        )
        if result.hint:
            details += f'<div style="margin-top:.3em">{escape(result.hint)}</div>'
        if result.file and result.attempted:
            details += f'<div style="opacity:.7;font-size:90%">{escape(file_line(result))}</div>'
        return (
            f'<div role="status" style="border-left:4px solid {colour};padding:.3em .8em;'
            f'margin:.2em 0"><strong><span aria-hidden="true" style="color:{colour}">{mark}</span> '
            f"{word}</strong>: {escape(result.claim)} <code>{escape(result.id)}</code> "
            f"({points(result.points)}){details}</div>"
        )
