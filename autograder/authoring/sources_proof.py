"""Prove that files made of the bank do in the checks what the bank's own modules do."""

from __future__ import annotations

from types import ModuleType

from course_lib.checks.kit import run_check
from course_lib.checks.load import load_source

from ..bank import SOLUTIONS, find_bank
from ..judge.judging import checks_of
from .sources import as_source


def differing_sources(lesson: str) -> list[str]:
    """The implementations of a lesson whose file does otherwise, each with a check that tells."""
    found = []
    for kind in ("mistakes", "variants"):
        for name, one in find_bank(kind, lesson).implementations.items():
            built = _causes(lesson, one.build())
            written = _causes(lesson, load_source(lesson, SOLUTIONS, as_source(one)))
            differing = [check for check in built if built[check] != written[check]]
            found += [f"{name}: its file does otherwise in {check}" for check in differing[:1]]
    return found


def _causes(lesson: str, module: ModuleType) -> dict[str, str]:
    groups = checks_of(lesson)
    checks = (*groups.visible, *groups.hidden)
    return {check.id: run_check(check, module).cause for check in checks}
