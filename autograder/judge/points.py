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
    checks: Groups, verdicts: list[CheckVerdict], disguised: Set[str], tables: Set[str]
) -> list[CheckVerdict]:
    """Take away what a function earned that is nowhere else right.

    Manners (the input left alone, wrong arguments refused) can be kept by a function that does
    nothing. A few printed examples have no number that could be moved by a hair, as in those of
    `disguised`, so that a table of answers would do. Both count for functions that give a right
    answer elsewhere; nothing counts for those of `tables`.
    """
    manners = checks.manners
    open_to_tables = {check.id for check in checks.visible} - checks.secret - manners
    printed = open_to_tables - disguised
    shown = {
        root(verdict)
        for verdict in verdicts
        if verdict.passed and verdict.id not in manners | printed and root(verdict) not in tables
    }

    def counted(verdict: CheckVerdict) -> CheckVerdict:
        if not verdict.passed or root(verdict) in shown:
            return verdict
        if verdict.id in manners:
            message = f"{verdict.of} gives no right answer, so this is worth nothing yet"
            return replace(verdict, earned=0.0, cause="no right answer", message=message)
        message = f"right on printed examples, but {verdict.of} is right on no other input"
        return replace(verdict, earned=0.0, cause="only the examples", message=message)

    return [counted(verdict) for verdict in verdicts]


def suspects(checks: Groups, verdicts: list[CheckVerdict]) -> set[str]:
    """The functions that pass printed examples, and no check whose inputs the grader draws."""
    answering = [v for v in verdicts if v.passed and v.id not in checks.manners]
    elsewhere = {root(verdict) for verdict in answering if verdict.id in checks.secret}
    asked = {root(verdict) for verdict in verdicts if verdict.id in checks.secret}
    return ({root(verdict) for verdict in answering} & asked) - elsewhere


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
