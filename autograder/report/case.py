"""A visible check's message taken apart: what was called, what came back, what was expected."""

from __future__ import annotations

INPUT, YOURS, WHERE, FOUND, EXPECTED = "Input", "Yours", "Where", "Found", "Expected"

_BEGINNINGS = {"called ": INPUT, "it returned ": YOURS, "it raised ": YOURS, "at line ": WHERE}
_AT_THE_END = "; expected "


def as_case(message: str) -> list[tuple[str, str]]:
    """Pairs of label and text, in order; all of the message is in them.

    The checks write `called ...`, then `it returned ...` or `it raised ...` with the line it was
    at, then `what was found; expected ...`. A message of another kind is one pair.
    """
    parts: list[tuple[str, str]] = []
    rest: list[str] = []
    labels = set()
    for line in message.splitlines():
        begun = next((word for word in _BEGINNINGS if line.startswith(word)), None)
        # each once and before the rest: what a learner's function printed may begin alike
        if begun is None or _BEGINNINGS[begun] in labels or rest:
            rest.append(line)
            continue
        label = _BEGINNINGS[begun]
        labels.add(label)
        shown = line if label is WHERE or begun == "it raised " else line.removeprefix(begun)
        parts.append((label, shown))
    last = "\n".join(rest)
    found, _, expected = last.rpartition(_AT_THE_END)
    if found:
        parts += [(FOUND, found), (EXPECTED, expected)]
    elif last.startswith("expected "):
        parts.append((EXPECTED, last.removeprefix("expected ")))
    elif last:
        parts.append((FOUND, last))
    return parts


def without_middle(message: str, beginning: int, end: int) -> str:
    """A message cut in its middle: the call stands at its beginning, what was expected at its end.

    `beginning` and `end` are how many signs stay of each.
    """
    if len(message) <= beginning + end:
        return message
    return f"{message[:beginning]} … {message[-end:]}"
