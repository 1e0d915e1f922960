"""A learner's file that is the solution but for some text, and what the checks say of it."""

from __future__ import annotations

from pathlib import Path

from autograder.bank import SOLUTIONS
from course_lib.checks.kit import Result, run_lesson


def results_of(folder: Path, lesson: str, *edits: tuple[str, str]) -> dict[str, Result]:
    """The results of a lesson's visible checks by name, for the solution with (old, new) edits."""
    source = (SOLUTIONS / f"{lesson}.py").read_text(encoding="utf-8")
    for old, new in edits:
        assert source.count(old) == 1, f"solutions/{lesson}.py has not once: {old!r}"
        source = source.replace(old, new)
    (folder / f"{lesson}.py").write_text(source, encoding="utf-8")
    results = run_lesson(lesson, folder=folder)
    return {result.id.removeprefix(f"{lesson}-"): result for result in results}


def failed(results: dict[str, Result]) -> set[str]:
    """The names of the checks that are not passed."""
    return {name for name, result in results.items() if not result.passed}
