"""What a class's verdicts say about the checks and about the mistakes that were made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..judge.verdict import CheckVerdict
from ..records import Record

NOT_ATTEMPTED = "not attempted"


@dataclass(frozen=True)
class Item:
    """One check, over a class."""

    id: str
    hidden: bool
    of: str
    claim: str
    points: float
    count: int  # learners to whom it was put
    passed: int
    causes: dict[str, int]  # why it failed, most frequent first
    discrimination: float | None

    @property
    def rate(self) -> float:
        """The share that passed."""
        return self.passed / self.count


@dataclass(frozen=True)
class Mistake:
    """A known mistake, over a class."""

    name: str
    of: str
    hint: str
    students: list[str]
    checks: list[str]  # that it failed, most frequent first


@dataclass
class _Tally:
    first: CheckVerdict
    passed: list[bool] = field(default_factory=list)
    earned: list[float] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)


def items(records: Sequence[Record]) -> list[Item]:
    """Every check that the records hold, in the order in which it is met first."""
    tallies: dict[str, _Tally] = {}
    for record in records:
        total = record.verdict.score
        for check in record.verdict.checks:
            tally = tallies.setdefault(check.id, _Tally(check))
            tally.passed.append(check.passed)
            tally.earned.append(check.earned)
            tally.totals.append(total)
            if not check.passed:
                tally.causes[check.cause] += 1
    return [
        Item(
            identifier,
            tally.first.hidden,
            tally.first.of,
            tally.first.claim,
            tally.first.points,
            len(tally.passed),
            sum(tally.passed),
            dict(sorted(tally.causes.items(), key=lambda cause: (-cause[1], cause[0]))),
            discrimination(tally.passed, np.subtract(tally.totals, tally.earned)),
        )
        for identifier, tally in tallies.items()
    ]


def discrimination(passed: Sequence[bool], rest: Sequence[float] | np.ndarray) -> float | None:
    """The point-biserial correlation of passing a check with the score of all others, -1 to 1.

    The check's own points are left out of `rest`: they would agree with it by themselves. None
    where all passed, all failed or all scores are alike.
    """
    ones, scores = np.asarray(passed, dtype=float), np.asarray(rest, dtype=float)
    # a spread of rounding errors is none
    if len(ones) < 2 or ones.std() < 1e-9 or scores.std() < 1e-9:
        return None
    return float(np.corrcoef(ones, scores)[0, 1])


def mistakes(records: Sequence[Record]) -> list[Mistake]:
    """The known mistakes that were named, most frequent first."""
    students: dict[str, list[str]] = defaultdict(list)
    checks: dict[str, Counter[str]] = defaultdict(Counter)
    first: dict[str, CheckVerdict] = {}
    for record in records:
        named = [check for check in record.verdict.checks if check.mistake]
        for name in dict.fromkeys(check.mistake for check in named):
            students[name].append(record.student)
        for check in named:
            checks[check.mistake][check.id] += 1
            first.setdefault(check.mistake, check)
    found = [
        Mistake(
            name,
            first[name].of,
            first[name].hint,
            who,
            [check for check, _ in checks[name].most_common()],
        )
        for name, who in students.items()
    ]
    return sorted(found, key=lambda mistake: (-len(mistake.students), mistake.name))


def untouched(record: Record) -> bool:
    """Whether nothing of the lesson was attempted."""
    return all(check.cause == NOT_ATTEMPTED for check in record.verdict.checks)


def not_run(record: Record) -> str:
    """The one cause that all checks share if the learner's file could not be run, else ""."""
    causes = {check.cause for check in record.verdict.checks}
    cause = next(iter(causes)) if len(causes) == 1 else ""
    return "" if cause == NOT_ATTEMPTED else cause
