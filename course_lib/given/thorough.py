"""The thorough checks: those that a grader runs hidden, for people who grade themselves.

They compare with the solutions, on inputs that are drawn anew in each run. An edition for
self-study has them in `thorough/`; a workspace inside of the course takes the grader's own. A class
has none.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from ..checks.kit import Result, Suite, run_on_file
from .lessons import COURSE_LIB


def find_package(home: Path = COURSE_LIB.parent) -> str | None:
    """The package of the thorough checks, ready to be imported; None where there is none."""
    if (home / "thorough" / "__init__.py").is_file():
        return "thorough"
    for folder in (home, home.parent):
        if (folder / "autograder" / "hidden" / "__init__.py").is_file():
            # last, so that `course_lib` stays the learner's
            if str(folder) not in sys.path:
                sys.path.append(str(folder))
            return "autograder.hidden"
    return None


def run_thorough(package: str, lesson: str, seed: int) -> list[Result]:
    """Run the thorough checks of a lesson on the learner's file, with inputs drawn from `seed`."""
    suite: Suite = importlib.import_module(f"{package}.{lesson}").suite
    _, results = run_on_file(lesson, list(suite.checks.values()), seed=seed)
    return results
