"""What the test cells of the notebooks call."""

from __future__ import annotations

import os
import sys

from ..given import progress
from .kit import CheckFailed, Result, run_lesson
from .show import Panel


class NotEarned(CheckFailed):
    """CheckFailed as a notebook shows it, below the panel that says why: a line, no traceback."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"no points yet for {result.id}")

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(identifier: str) -> None:
    """Run one visible check on the file as it is saved now; shows the result.

    Raises CheckFailed if the check is not passed: a cell that is not earned must not look done.
    """
    lesson = identifier.partition("-")[0]
    (result,) = run_lesson(lesson, [identifier])
    progress.record([result])
    display(Panel([result]))
    if not result.passed:
        raise NotEarned(result)


def hidden(identifier: str) -> None:
    """Stand where a check runs that only the instructor's grader has.

    Raises CheckFailed under nbgrader without the course's grader, lest the cell earn its points
    unrun.
    """
    if os.environ.get("NBGRADER_EXECUTION"):
        raise CheckFailed(
            f"{identifier} was not run: grade with this course's nbgrader_config.py, which brings "
            "the grader that has the hidden checks"
        )
    print(f"{identifier}: a hidden check, run when the lesson is graded; visible checks come first")


def display(panel: Panel) -> None:
    """Show a panel in a notebook, or its text anywhere else."""
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        from IPython.display import display as show

        show(panel)
    else:
        print(panel)
