"""Prove the checks: the stub earns nothing, right answers earn all, wrong ones are refused and
named.

    autograder proof

For every lesson: the stub scores 0; the reference and every variant score full, on several seeds;
every mistake fails at least one visible check and is named by its own hint, or its family's; each
check is the only one of its kind (visible, hidden) to catch some mistake, or says what it teaches;
no check that goes by chance raises a false alarm more often than once in 10^9.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

from course_lib.checks.diagnose import known_mistake
from course_lib.checks.kit import Check, Result, Suite, find_suite, lessons, run_check
from course_lib.checks.load import load_fresh
from course_lib.given.lessons import COURSE_LIB

from ..bank import SOLUTIONS, Implementation, find_bank

SEEDS = (1, 2, 3)
LARGEST_FALSE_ALARM = 1e-9


@dataclass
class LessonProof:
    """What was found for one lesson; it holds if `faults` is empty."""

    lesson: str
    visible: int = 0
    hidden: int = 0
    mistakes: int = 0
    rejected: int = 0
    diagnosed: int = 0  # by its own hint
    by_family: int = 0
    variants: int = 0
    accepted: int = 0
    visible_ms: float = 0.0
    hidden_ms: float = 0.0
    faults: list[str] = field(default_factory=list)


def hidden_suite(lesson: str) -> Suite:
    """The hidden checks of a lesson."""
    suite: Suite = importlib.import_module(f"autograder.hidden.{lesson}").suite
    return suite


def prove(lesson: str) -> LessonProof:
    """Try the checks of a lesson on everything that is known."""
    shown = find_suite(lesson)
    if shown is None:
        raise KeyError(f"lesson {lesson} has no checks")
    visible, hidden = list(shown.checks.values()), list(hidden_suite(lesson).checks.values())
    proof = LessonProof(lesson, visible=len(visible), hidden=len(hidden))
    prove_ends(proof, visible, hidden)
    prove_variants(proof, visible + hidden)
    caught = prove_mistakes(proof, visible, hidden)
    for group in (visible, hidden):
        prove_use(proof, group, caught)
    for check in visible + hidden:
        if check.false_alarm > LARGEST_FALSE_ALARM:
            proof.faults.append(f"{check.id}: false alarms at a rate of {check.false_alarm:.1e}")
    return proof


def failures(checks: Sequence[Check], module: ModuleType, seeds: Sequence[int]) -> list[Result]:
    """The results that are not passed, on each seed."""
    results = [run_check(check, module, seed) for seed in seeds for check in checks]
    return [result for result in results if not result.passed]


def prove_ends(proof: LessonProof, visible: list[Check], hidden: list[Check]) -> None:
    """The stub earns nothing, the reference everything; the reference is timed."""
    stub = load_fresh(proof.lesson, COURSE_LIB)
    for check in visible + hidden:
        if run_check(check, stub).passed:
            proof.faults.append(f"{check.id}: passed by the stub")
    reference = load_fresh(proof.lesson, SOLUTIONS)
    for name, checks in (("visible_ms", visible), ("hidden_ms", hidden)):
        failures(checks, reference, SEEDS[:1])  # warm
        began = time.perf_counter()
        failures(checks, reference, SEEDS[:1])
        setattr(proof, name, 1000 * (time.perf_counter() - began))
    default_and_drawn = [run_check(check, reference) for check in visible]
    wrong = [r for r in default_and_drawn if not r.passed]
    for result in [*wrong, *failures(visible + hidden, reference, SEEDS)]:
        proof.faults.append(f"{result.id}: refuses the reference: {result.message}")


def prove_variants(proof: LessonProof, checks: list[Check]) -> None:
    """Every right implementation earns everything."""
    for variant in find_bank("variants", proof.lesson).implementations.values():
        proof.variants += 1
        refused = failures(checks, variant.build(), SEEDS)
        proof.accepted += not refused
        for result in refused:
            proof.faults.append(f"{result.id}: refuses variant {variant.name}: {result.message}")


def prove_mistakes(
    proof: LessonProof, visible: list[Check], hidden: list[Check]
) -> dict[str, set[str]]:
    """Every mistake is refused and named; returns which checks caught which mistake."""
    caught: dict[str, set[str]] = {}
    for mistake in find_bank("mistakes", proof.lesson).implementations.values():
        proof.mistakes += 1
        module = mistake.build()
        results = [run_check(check, module) for check in visible]
        caught[mistake.name] = {r.id for r in results if not r.passed}
        if caught[mistake.name]:
            proof.rejected += 1
            prove_name(proof, mistake, results)
        else:
            proof.faults.append(f"mistake {mistake.name}: passes every visible check")
        caught[mistake.name] |= {r.id for r in failures(hidden, module, SEEDS[:1])}
    return caught


def prove_name(proof: LessonProof, mistake: Implementation, results: list[Result]) -> None:
    """The diagnosis finds this mistake, or one of its family."""
    found = known_mistake(proof.lesson, mistake.of, results)
    if found is not None and found.name == mistake.name:
        proof.diagnosed += 1
    elif found is not None and found.family is not None and found.family == mistake.family:
        proof.by_family += 1
    else:
        named = found.name if found else "nothing"
        proof.faults.append(f"mistake {mistake.name}: diagnosed as {named}")


def prove_use(proof: LessonProof, group: list[Check], caught: dict[str, set[str]]) -> None:
    """Each check of the group alone catches something, or says what it teaches."""
    ids = {check.id for check in group}
    alone = {next(iter(found & ids)) for found in caught.values() if len(found & ids) == 1}
    for check in group:
        if check.id not in alone and not check.teaching:
            proof.faults.append(f"{check.id}: catches nothing that no other check of its kind does")


def prove_all() -> list[LessonProof]:
    """All lessons that have checks."""
    return [prove(lesson) for lesson in lessons()]
