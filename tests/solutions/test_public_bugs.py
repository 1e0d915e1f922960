"""The reference makes none of the sixty mistakes in public_bugs.py."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch

from .public_bugs import BUGS, Bug, Raises


def alike(result: Any, expected: Any) -> bool:
    """Equal; numbers up to the six digits that the cases are written with."""
    if isinstance(result, torch.Tensor):
        result = result.tolist()
    if isinstance(expected, list):
        return (
            isinstance(result, list)
            and len(result) == len(expected)
            and all(alike(*pair) for pair in zip(result, expected, strict=True))
        )
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(result, float) and math.isnan(result)
    if isinstance(expected, bool | str | Raises):
        return type(result) is type(expected) and result == expected
    return isinstance(result, int | float) and result == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("bug", BUGS, ids=[f"{bug.id}-{bug.source}" for bug in BUGS])
def test_the_reference_does_not_have_the_bug(bug: Bug) -> None:
    if isinstance(bug.right, Raises):
        with pytest.raises(bug.right.kind):
            bug.call()
    else:
        result = bug.call()
        assert alike(result, bug.right), f"{bug.source}: {bug.symptom}; got {result}"
        assert not alike(result, bug.wrong)


def test_none_of_the_sixty_is_missing() -> None:
    assert len(BUGS) == 60
    assert len({bug.id for bug in BUGS}) == 60
    by_lesson = [sum(bug.id[0] == str(lesson) for bug in BUGS) for lesson in range(1, 9)]
    assert by_lesson == [7, 7, 7, 9, 5, 5, 10, 10]


@pytest.mark.parametrize("bug", BUGS, ids=[bug.id for bug in BUGS])
def test_every_bug_says_where_it_was_seen_and_what_went_wrong(bug: Bug) -> None:
    place = re.fullmatch(r"[\w.-]+/[\w.-]+(#\d+|@[0-9a-f]{7})?", bug.source)
    assert place or bug.source.startswith("a "), bug.source
    assert len(bug.symptom.split()) >= 5
    assert not alike(bug.wrong, bug.right), "a case that tells nothing apart"
