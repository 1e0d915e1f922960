"""A class as the explorer's data: small, because learners with the same answers share them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ..judge.verdict import CheckVerdict
from ..late import Lateness
from ..records import Record
from .case import without_middle
from .items import mistakes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# signs of a message, and messages: a page of 2 MB holds them even if each sign takes six bytes
BEGINNING, END = 240, 150
LONGEST_HINT = 900
MOST_EXAMPLES = 300


class Numbered:
    """Values and the numbers that stand for them, in the order in which they came."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of `value`, a new one if it is new."""
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]


def explorer_data(records: Sequence[Record], late: Sequence[Lateness]) -> dict[str, Any]:
    """What the page's script reads; `late` holds one entry a record.

    `checks`: [id, function, hidden]; `kinds` of failure: [check, cause, mistake or -1, example or
    -1]; `patterns`: [score, [kind, ...]]; `rows`: [student, received in seconds, pattern, late,
    points lost, beginning of the sha256].
    """
    checks, causes, kinds, patterns = Numbered(), Numbered(), Numbered(), Numbered()
    told, messages = Numbered(), Numbered()
    known = mistakes(records)
    places = {mistake.name: place for place, mistake in enumerate(known)}
    # of each kind of failure one message
    examples: dict[tuple[str, str, str], int] = {}

    def kind(check: CheckVerdict) -> int:
        number = checks.number((check.id, check.of, check.hidden))
        key = (check.id, check.cause, check.mistake)
        if key not in examples:
            # what a hidden check told is for nobody, and a page has room for so many only
            tellable = check.message and not check.hidden and len(messages.values) < MOST_EXAMPLES
            shown = (
                messages.number(without_middle(check.message, BEGINNING, END)) if tellable else -1
            )
            examples[key] = shown
        cause = causes.number(check.cause)
        return kinds.number((number, cause, places.get(check.mistake, -1), examples[key]))

    rows = []
    for record, lateness in zip(records, late, strict=True):
        score = round(record.verdict.score, 2)
        failures = tuple(kind(check) for check in record.verdict.checks if not check.passed)
        rows.append(
            [
                record.student,
                round((record.received - EPOCH).total_seconds()),
                patterns.number((score, failures)),
                told.number(lateness.told()),
                lateness.penalty(score),
                record.submission[:12],
            ]
        )
    return {
        "checks": checks.values,
        "causes": causes.values,
        "mistakes": [[m.name, m.of, m.hint[:LONGEST_HINT]] for m in known],
        "examples": messages.values,
        "kinds": kinds.values,
        "patterns": patterns.values,
        "late": told.values,
        "rows": rows,
    }
