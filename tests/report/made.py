"""A class that never was: records as the judge makes them, drawn from a fixed seed."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta
from functools import cache

from autograder.bank import find_bank
from autograder.hidden import top_k as hidden_top_k
from autograder.judge.verdict import CheckVerdict, LessonVerdict
from autograder.records import Record
from course_lib.checks.kit import Check, find_suite, run_check

CHECKS_SHA = hashlib.sha256(b"the checks").hexdigest()
BEGINNING = datetime(2026, 11, 2, 8, tzinfo=UTC)
NAMES = ("ada", "Ōoka", "van den Berg", "o'neil", "Zoë-Marie", "李雷", "00{}", "=cmd|{}", "x,y")


def checks() -> list[Check]:
    """The checks of lesson 3, visible and hidden."""
    visible = find_suite("top_k")
    assert visible is not None
    return [*visible.checks.values(), *hidden_top_k.suite.checks.values()]


def passed(check: Check) -> CheckVerdict:
    return CheckVerdict(
        check.id, check.hidden, check.of, check.claim, check.points, earned=check.points
    )


def failed(
    check: Check, cause: str, message: str = "", hint: str = "", mistake: str = ""
) -> CheckVerdict:
    if check.hidden:
        message = check.claim
    return CheckVerdict(
        check.id,
        check.hidden,
        check.of,
        check.claim,
        check.points,
        0.0,
        cause,
        message,
        hint,
        mistake,
    )


@cache
def mistaken(name: str) -> LessonVerdict:
    """What the checks say of one known mistake of lesson 3."""
    implementation = find_bank("mistakes", "top_k").implementations[name]
    module, found = implementation.build(), []
    for check in checks():
        result = run_check(check, module)
        if result.passed:
            found.append(passed(check))
        else:
            found.append(failed(check, result.cause, result.message, implementation.hint, name))
    return LessonVerdict("top_k", found)


@cache
def all_alike(cause: str, message: str) -> LessonVerdict:
    """The verdict if nothing could be run."""
    return LessonVerdict("top_k", [failed(check, cause, message) for check in checks()])


@cache
def right() -> LessonVerdict:
    return LessonVerdict("top_k", [passed(check) for check in checks()])


def verdicts() -> list[tuple[float, LessonVerdict]]:
    """What is handed in, and how often."""
    mistakes = list(find_bank("mistakes", "top_k").implementations)
    return [
        (10.0, right()),
        (1.0, all_alike("not attempted", "open course_lib/top_k.py and write top_k_filter")),
        (0.6, all_alike("import failed", "SyntaxError: '(' was never closed (top_k.py, line 31)")),
        (0.2, all_alike("missing file", "there is no course_lib/top_k.py")),
        (0.3, all_alike("timed out", "top_k_filter took more than 10 s")),
        *((4.0 / (place + 1), mistaken(name)) for place, name in enumerate(mistakes)),
    ]


def a_class(students: int, seed: int = 7, sandbox: str = "namespaces and lock") -> list[Record]:
    """Records of lesson 3, one a student."""
    draw = random.Random(seed)
    weights, kinds = zip(*verdicts(), strict=True)
    records = []
    for number in range(students):
        name = NAMES[number % len(NAMES)]
        student = name.format(f"{number:05}") if "{" in name else f"{name}{number:05}"
        records.append(
            Record(
                student,
                "top_k",
                draw.choices(kinds, weights)[0],
                sandbox,
                hashlib.sha256(f"{seed} {student}".encode()).hexdigest(),
                BEGINNING + timedelta(seconds=round(draw.betavariate(5, 2) * 1_000_000)),
                CHECKS_SHA,
            )
        )
    return records
