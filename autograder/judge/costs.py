"""What a learner's code may have the driver compute.

A few bytes can ask for much: a mask of two numbers, a cache of five, a tensor of one number that
is as long as it likes. Each request is weighed before it is done, whichever way its arguments are
given; what is refused raises MemoryError in the learner's code.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

from torch import Tensor

LARGEST_ARGUMENT = 1 << 20  # elements of one tensor
LARGEST_RESULT = 1 << 23  # numbers that one call makes
LARGEST_CACHES = 1 << 23  # numbers in all caches that are made in one check
SIZES = ("n_layers", "batch", "heads", "head_dim", "capacity")


class Account:
    """What was set aside for a learner's code in one check, and is kept until its end."""

    def __init__(self) -> None:
        self.kept = 0

    def weigh(
        self, target: Any, name: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Raises MemoryError for a call of `target`, or of its method `name`, that is too large."""
        for value in (*args, *kwargs.values()):
            if isinstance(value, Tensor):
                refuse("a tensor", value.numel(), LARGEST_ARGUMENT)
        if inspect.isclass(target):
            self.kept += math.prod(size(given(i, n, args, kwargs)) for i, n in enumerate(SIZES))
            refuse("what it makes", self.kept, LARGEST_CACHES)
        else:
            refuse("the result", result_of(target, name, args, kwargs), LARGEST_RESULT)


def result_of(target: Any, name: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """How many numbers a call makes, 0 where not more than its arguments have."""
    called = name or getattr(target, "__name__", "")
    if called == "causal_mask":
        return size(given(0, "query_len", args, kwargs)) * size(given(1, "key_len", args, kwargs))
    if called == "attend" and name is None:
        q, k, v, mask = (
            shape(given(i, n, args, kwargs)) for i, n in enumerate(("q", "k", "v", "mask"))
        )
        # rows and heads may be those of any of them
        leads = zip(*((1, 1, *sizes)[-4:-2] for sizes in (q, k, v, mask)), strict=True)
        return math.prod(map(max, leads)) * math.prod(q[-2:-1]) * math.prod(k[-2:-1])
    if called == "attend":
        queries = math.prod(shape(given(1, "q", args, kwargs))[:-1])
        return queries * size(getattr(target, "capacity", 1))
    if called in ("prefill", "decode_step"):
        ids = given(1, "ids" if called == "prefill" else "token", args, kwargs)
        return logits_of(given(0, "model", args, kwargs), ids)
    if name is None:
        return logits_of(target, given(0, "ids", args, kwargs))
    return 0


def logits_of(model: Any, ids: Any) -> int:
    """The numbers of a model's widest layer on these ids; 0 for no model of the driver's."""
    # a learner's own object is asked nothing here
    names = ("vocab_size", "n_heads", "head_dim", "block_size")
    sizes = [inspect.getattr_static(model, name, None) for name in names]
    if not all(isinstance(found, int) for found in sizes):
        return 0
    vocabulary, heads, width, block = map(size, sizes)
    return math.prod(shape(ids)) * max(vocabulary, 4 * heads * width, heads * block)


def given(place: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An argument, by place or by name."""
    return args[place] if place < len(args) else kwargs.get(name)


def size(value: Any) -> int:
    return max(1, value) if isinstance(value, int) else 1


def shape(value: Any) -> tuple[int, ...]:
    return tuple(max(1, n) for n in value.shape) if isinstance(value, Tensor) else ()


def refuse(what: str, numbers: int, most: int) -> None:
    if numbers > most:
        raise MemoryError(
            f"{what} would have {numbers} numbers; the grader computes with {most} at most"
        )
