"""Twins of printed examples: the same call, with other numbers in other places.

A function that is right on the examples is right on most of their twins. A table is right on none,
not even one that looks for the nearest example.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from course_lib.checks.record import alike, encode

from .wire import WireError

MOST_TWINS, FEWEST_TWINS = 24, 3

AskedCall = tuple[tuple[Any, ...], dict[str, Any]]


def is_table(
    calls: Iterable[AskedCall],
    student: Callable[..., Any],
    reference: Callable[..., Any],
    seed: int,
) -> bool:
    """Whether `student` is wrong on the twin of every call, and there are enough to tell.

    Calls that draw by chance, that the reference refuses or that it answers with an argument have
    no twin. Raises WireError when the student's process ends.
    """
    chance = torch.Generator().manual_seed(seed)
    wrong = 0
    for args, kwargs in list(calls)[:MOST_TWINS]:
        values = [*args, *kwargs.values()]
        if any(isinstance(value, torch.Generator) for value in values):
            continue
        moved = [twin(value, chance) for value in values]
        args, kwargs = (
            tuple(moved[: len(args)]),
            dict(zip(kwargs, moved[len(args) :], strict=True)),
        )
        try:
            wanted = encode(reference(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
        except Exception:  # not every number may stand everywhere
            continue
        if any(alike(wanted, encode(value)) for value in moved):
            continue
        try:
            found = encode(student(*args, **kwargs))
        except WireError:
            raise
        except Exception:  # whatever the learner's function raises where the reference does not
            found = None
        if alike(found, wanted):
            return False
        wrong += 1
    return wrong >= FEWEST_TWINS


def twin(value: Any, chance: torch.Generator) -> Any:
    """Other numbers, in another order along the last axis; shapes and whole numbers stay."""
    if isinstance(value, Tensor) and value.is_floating_point() and value.ndim:
        order = torch.randperm(value.shape[-1], generator=chance)
        factors = 0.5 + 0.5 * torch.rand(value.shape, generator=chance)
        return value[..., order] * factors.to(value.dtype)
    if isinstance(value, list | tuple):
        return type(value)(
            item * (0.5 + 0.5 * float(torch.rand((), generator=chance)))
            if isinstance(item, float)
            else twin(item, chance)
            for item in value
        )
    return value
