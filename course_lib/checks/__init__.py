"""Checks of the learner's functions.

In a notebook: `check("top_k-keeps_k")` runs one visible check, `hidden("top_k-any_batch")` stands
where the instructor's grader runs one that is not shown.
"""

from .cells import check, hidden

__all__ = ["check", "hidden"]
