"""A check's verdict as the outputs of its cell, from which nbgrader reads the points."""

from __future__ import annotations

from html import escape
from typing import Any

from .judge.verdict import CheckVerdict

LONGEST_MESSAGE = 4_000
# one mark and one word each, so that colour is never the only sign
_PASSED, _FAILED = ("✓", "passed", "#009e73"), ("✗", "failed", "#d55e00")


def outputs(identifier: str, check: CheckVerdict | None) -> list[dict[str, Any]]:
    """The outputs of the cell `identifier`: an error where nothing is earned."""
    if check is None:
        return [_error("not judged", f"{identifier} was not judged: grade this lesson again")]
    lines = told(check)
    panel = {"text/plain": "\n".join(lines), "text/html": _panel(check, lines[1:])}
    if check.passed and check.earned == check.points:
        return [{"output_type": "display_data", "metadata": {}, "data": panel}]
    shown = {"output_type": "display_data", "metadata": {}, "data": panel}
    if check.earned > 0:
        # nbgrader takes the number as it stands for a part of the points
        part = {"text/plain": repr(float(check.earned))}
        result = {
            "output_type": "execute_result",
            "metadata": {},
            "execution_count": None,
            "data": part,
        }
        return [shown, result]
    return [shown, _error(check.cause, f"no points for {check.id}: {check.cause}")]


def told(check: CheckVerdict) -> list[str]:
    """A verdict in lines, the claim first; of a hidden check nothing but claim and cause."""
    mark, word, _ = _PASSED if check.passed else _FAILED
    points = f"{check.earned:g} of {check.points:g} points"
    lines = [f"{mark} {word}: {check.claim} ({points})"]
    if check.passed:
        return lines
    lines.append(f"cause: {check.cause}")
    if check.hidden:
        return [*lines, "a hidden check: its inputs are not shown"]
    lines += legible(check.message).splitlines()
    if check.hint:
        lines += legible(check.hint).splitlines()
    return lines


def legible(text: str) -> str:
    """Text of a learner's function, without what a terminal or a page would take for orders."""
    kept = "".join(sign for sign in text if sign.isprintable() or sign in "\n\t")
    kept = kept.encode("utf-8", "replace").decode("utf-8")
    return kept if len(kept) <= LONGEST_MESSAGE else f"{kept[:LONGEST_MESSAGE]}\n... (cut here)"


def _panel(check: CheckVerdict, lines: list[str]) -> str:
    mark, word, colour = _PASSED if check.passed else _FAILED
    details = "".join(
        f'<div style="font-family:monospace;white-space:pre-wrap">{escape(line)}</div>'
        for line in lines
    )
    return (
        f'<div role="status" style="border-left:4px solid {colour};padding:.3em .8em">'
        f'<strong><span aria-hidden="true" style="color:{colour}">{mark}</span> {word}</strong>: '
        f"{escape(check.claim)} <code>{escape(check.id)}</code> "
        f"({check.earned:g} of {check.points:g} points){details}</div>"
    )


def _error(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [text]}
