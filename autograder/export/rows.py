"""What every export tells of one lesson of one student: points judged, by hand, and lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..late import DueDates
from ..records import Record


@dataclass(frozen=True)
class ByHand:
    """What a person graded in formgrader: points given (or taken) beside the judge's."""

    points: float
    max: float
    waiting: int  # answers that nobody has graded yet


NOTHING = ByHand(0.0, 0.0, 0)


@dataclass(frozen=True)
class Row:
    """One lesson of one student. Points are rounded to the hundredth."""

    lesson: str
    assignment: str  # the lesson with its number, as nbgrader names it: 03_top_k
    student: str
    received: datetime  # aware, UTC
    due: datetime | None  # aware, with the student's extension
    late: str  # "on time", "2 days late, -20 %"
    judged: float
    by_hand: float
    penalty: float  # what being late costs of judged and by_hand together
    max: float
    waiting: int
    sandbox: str
    submission: str
    graded_with: str

    @property
    def raw(self) -> float:
        """Points before the penalty."""
        return round(self.judged + self.by_hand, 2)

    @property
    def score(self) -> float:
        """Points that count."""
        return round(self.raw - self.penalty, 2)


def as_row(
    record: Record,
    assignment: str,
    due: DueDates,
    by_hand: Mapping[tuple[str, str], ByHand],
) -> Row:
    """The row of one record; `by_hand` is keyed by student and lesson."""
    own = by_hand.get((record.student, record.lesson), NOTHING)
    late = due.judge(record.student, record.lesson, record.received)
    judged = round(record.verdict.score, 2)
    return Row(
        lesson=record.lesson,
        assignment=assignment,
        student=record.student,
        received=record.received,
        due=late.due,
        late=late.told(),
        judged=judged,
        by_hand=round(own.points, 2),
        # a grade by hand may take more than the judge gave
        penalty=late.penalty(max(0.0, judged + own.points)),
        max=round(record.verdict.max + own.max, 2),
        waiting=own.waiting,
        sandbox=record.sandbox,
        submission=record.submission,
        graded_with=record.graded_with,
    )


def assignments(rows: Iterable[Row]) -> dict[str, float]:
    """Each assignment among `rows` with its points, in order.

    Who handed in no notebook has fewer points to earn than the others: the most count.
    """
    found: dict[str, float] = {}
    for row in sorted(rows, key=lambda row: row.assignment):
        found[row.assignment] = max(row.max, found.get(row.assignment, 0.0))
    return found


def by_student(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Each student's rows by assignment, students in order."""
    found: dict[str, dict[str, Row]] = {
        student: {} for student in sorted({r.student for r in rows})
    }
    for row in rows:
        found[row.student][row.assignment] = row
    return found
