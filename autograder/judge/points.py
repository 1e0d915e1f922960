"""Which points count: none for manners alone, none for printed examples alone."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from course_lib.checks.kit import Check, run_check

from .verdict import CheckVerdict


@dataclass(frozen=True)
class Groups:
    """The checks of a lesson."""

    visible: list[Check]
    hidden: list[Check]

    @property
    def secret(self) -> set[str]:
        """The checks whose inputs the grader draws."""
        drawn = {check.id for check in self.visible if check.draws}
        return drawn | {check.id for check in self.hidden}

    @property
    def manners(self) -> set[str]:
        """The checks that a function passes which gives no answer."""
        return {check.id for check in (*self.visible, *self.hidden) if asks_no_answer(check)}


def root(verdict: CheckVerdict) -> str:
    """The function or class that a check is about."""
    return verdict.of.split(".")[0]


def only_with_answers(
    checks: Groups, verdicts: list[CheckVerdict], shown: Set[str]
) -> list[CheckVerdict]:
    """Take away what functions earned that are not among those `shown` to give right answers.

    Manners (the input left alone, wrong arguments refused) can be kept by a function that does
    nothing, and printed examples can be answered by a table of them.
    """
    manners = checks.manners

    def counted(verdict: CheckVerdict) -> CheckVerdict:
        if not verdict.passed or root(verdict) in shown:
            return verdict
        if verdict.id in manners:
            message = f"{verdict.of} gives no right answer, so this is worth nothing yet"
            return replace(verdict, earned=0.0, cause="no right answer", message=message)
        message = f"right on printed examples, but {verdict.of} is right on no other input"
        return replace(verdict, earned=0.0, cause="only the examples", message=message)

    return [counted(verdict) for verdict in verdicts]


def shown_by_drawn_inputs(checks: Groups, verdicts: list[CheckVerdict]) -> set[str]:
    """The functions that pass a check with inputs that the grader draws, by an answer."""
    answering = checks.secret - checks.manners
    return {root(verdict) for verdict in verdicts if verdict.passed and verdict.id in answering}


@cache
def asks_no_answer(check: Check) -> bool:
    """Whether a function passes that returns nothing, or one that refuses everything."""
    return any(run_check(check, idle).passed for idle in (Idle(None), Idle(ValueError)))


class Idle:
    """A module whose functions, and the methods of whose classes, do nothing but one thing."""

    def __init__(self, raised: type[Exception] | None) -> None:
        self._raised = raised

    def __getattr__(self, name: str) -> Any:
        def idle(*args: Any, **kwargs: Any) -> None:
            if self._raised is not None:
                raise self._raised(name)

        return idle
