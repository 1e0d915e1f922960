"""Twins of printed examples: the same call, with other numbers in other places.

A function that is right on the examples is right on most of their twins, and a wrong one on some. A
table is right on none, not even one that looks for the nearest example.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from course_lib.checks.record import alike, encode

from .wire import WireError

MOST_TWINS = 24

AskedCall = tuple[tuple[Any, ...], dict[str, Any]]


def right_and_wrong(
    calls: Iterable[AskedCall],
    student: Callable[..., Any],
    reference: Callable[..., Any],
    babble: Callable[..., Any],
    seed: int,
) -> tuple[int, int]:
    """On how many twins of the calls `student` is right, and on how many it is wrong.

    Calls that draw by chance, that the reference refuses or that it answers with an argument have
    no twin, nor have those that `babble`, which knows nothing, answers as well. Raises WireError
    when the student's process ends.
    """
    chance = torch.Generator().manual_seed(seed)
    right = wrong = 0
    for args, kwargs in list(calls)[:MOST_TWINS]:
        printed = encode([*args, *kwargs.values()])
        args, kwargs = twin_of_call(args, kwargs, chance)
        if encode([*args, *kwargs.values()]) == printed:
            continue  # a prompt of 0 and 1 looks like a mask
        try:
            wanted, again = (answer(reference, args, kwargs) for _ in range(2))
            said = answer(babble, args, kwargs)
        except Exception:  # not every number may stand everywhere
            continue
        is_no_evidence = not alike(wanted, again) or alike(wanted, said)
        if is_no_evidence or any(alike(wanted, encode(v)) for v in (*args, *kwargs.values())):
            continue
        try:
            found = answer(student, args, kwargs)
        except WireError:
            raise
        except Exception:  # whatever the learner's function raises where the reference does not
            found = None
        right, wrong = (right + 1, wrong) if alike(found, wanted) else (right, wrong + 1)
    return right, wrong


def answer(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function answers on copies of the arguments, models and caches included."""
    returned = function(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    return encode(list(returned) if isinstance(returned, Iterator) else returned)


def twin_of_call(
    args: tuple[Any, ...], kwargs: dict[str, Any], chance: torch.Generator
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of the same kinds and shapes, but for whole numbers that stand alone."""
    values = [*args, *kwargs.values()]
    vocab = next((v.vocab_size for v in values if hasattr(v, "vocab_size")), None)
    # sizes grow together, so that they fit each other as before
    more = int(torch.randint(1, 6, (), generator=chance))
    grow = not any(isinstance(value, Tensor) or hasattr(value, "vocab_size") for value in values)
    moved = [
        value + more if grow and type(value) is int else twin(value, vocab, chance)
        for value in values
    ]
    return tuple(moved[: len(args)]), dict(zip(kwargs, moved[len(args) :], strict=True))


def twin(value: Any, vocab: int | None, chance: torch.Generator) -> Any:
    """Other numbers, in another order along the last axis; other ids where there is a model."""
    if isinstance(value, Tensor) and value.ndim:
        order = torch.randperm(value.shape[-1], generator=chance)
        if value.is_floating_point():
            factors = 0.5 + 0.5 * torch.rand(value.shape, generator=chance)
            return value[..., order] * factors.to(value.dtype)
        # a mask of 0 and 1 says which ids are real, and stays
        if vocab is not None and value.dtype == torch.int64 and bool((value > 1).any()):
            return torch.randint(vocab, value.shape, generator=chance)
        return value
    if isinstance(value, list | tuple):
        return type(value)(
            item * (0.5 + 0.5 * float(torch.rand((), generator=chance)))
            if isinstance(item, float)
            else twin(item, vocab, chance)
            for item in value
        )
    return value
