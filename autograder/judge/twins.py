"""Twins of printed examples: the same call or the same life of an object, with other numbers.

Whoever has understood the examples is right on most of their twins. A table is right on none, not
even one that looks for the nearest example: numbers and their order differ, then sizes too.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

AskedCall = tuple[str, tuple[Any, ...], dict[str, Any]]  # name, arguments
Session = list[AskedCall]  # what an object was asked in its life; the first is "__init__"

MODES = ("values", "last", "rows")
FAR = 7  # whole numbers leave the small ones, of which a table may have all
HALVES = (torch.float16, torch.bfloat16)
LARGEST = 1 << 16  # a model's numbers are left alone where there are more


@dataclass(frozen=True)
class Change:
    """What is done to the values of one call, or to those of a whole life.

    "values" gives other numbers in another order, "last" a longer last axis too, "rows" more rows,
    "positions" more positions.
    """

    mode: str
    more: int  # by how much axes, and whole numbers that stand alone, grow
    chance: torch.Generator


def change(mode: str, seed: int) -> Change:
    chance = torch.Generator().manual_seed(seed)
    return Change(mode, int(torch.randint(1, 4, (), generator=chance)), chance)


def twin_of_call(
    call: AskedCall, function: Callable[..., Any], how: Change, *, refused: bool
) -> AskedCall:
    """Arguments of the same kinds; `refused` says that they were wrong ones, as they shall stay."""
    name, args, kwargs = call
    names = [*list(inspect.signature(function).parameters)[: len(args)], *kwargs]
    values = [*args, *kwargs.values()]
    tensors = [value for value in values if isinstance(value, Tensor)]
    vocab = next(filter(None, map(vocabulary, values)), None)
    # whole numbers are sizes where nothing else is, and grow together, to fit each other as before
    sizes = not tensors and vocab is None
    if how.mode == "values" and tensors and is_constant(tensors[0]):
        how = replace(how, mode="last")  # of numbers that are all alike the order is no news
    moved: list[Any] = []
    for title, value in zip(names, values, strict=True):
        if isinstance(value, Tensor):
            moved.append(twin_of_tensor(value, title, tensors[0], vocab, how))
        elif type(value) in (int, float) and (refused or (sizes and type(value) is int)):
            moved.append(further(value, how))
        elif title == "prompt" and isinstance(value, str) and value.isascii():
            letters = 97 + torch.randint(26, (len(value),), generator=how.chance)
            moved.append(bytes(letters.tolist()).decode())
        else:
            moved.append(twin_of_value(value, how))
    return name, tuple(moved[: len(args)]), dict(zip(kwargs, moved[len(args) :], strict=True))


def further(value: float, how: Change) -> float:
    """A number further from 0, on its side: what was too large or too small stays so."""
    if type(value) is int:
        return value + (how.more + FAR) * (-1 if value < 0 else 1)
    return value * (1 + float(torch.rand((), generator=how.chance)))


def twin_of_tensor(
    value: Tensor, title: str, first: Tensor, vocab: int | None, how: Change
) -> Tensor:
    """The twin of an argument; `first` is the first tensor of the call, whose axes lead."""
    if not value.ndim:
        return value
    if how.mode == "rows" and first.ndim > 1 and value.shape[0] == first.shape[0]:
        value = resampled(value, 0, how)
    is_mask = "mask" in title or value.dtype == torch.bool
    if value.is_floating_point():
        grows = how.mode == "last" and first.ndim and value.shape[-1] == first.shape[-1]
        if grows and (first.dtype not in HALVES or is_constant(first)):
            value = resampled(value, -1, how)
        return other_numbers(value, how)
    if is_mask or value.dtype != torch.int64:
        return value
    if vocab is not None:
        return torch.randint(vocab, value.shape, generator=how.chance)
    return value if how.mode == "values" else shuffled(value, how)


def resampled(value: Tensor, axis: int, how: Change) -> Tensor:
    """A longer tensor, of the entries that are there along an axis."""
    size = value.shape[axis]
    if not size:
        return value
    places = torch.randint(size, (how.more,), generator=torch.Generator().manual_seed(how.more))
    return value.index_select(axis, torch.cat([torch.arange(size), places]))


def shuffled(value: Tensor, how: Change) -> Tensor:
    return value[..., torch.randperm(value.shape[-1], generator=how.chance)]


def other_numbers(value: Tensor, how: Change) -> Tensor:
    """Other numbers in another order along the last axis; all alike they stay alike."""
    if is_constant(value):
        factor = 0.5 + 0.5 * float(torch.rand((), generator=how.chance))
        return value * factor if bool(value.any()) else value + factor
    if value.dtype in HALVES:
        return shuffled(value, how) / 2  # what is rounded more makes ties
    factors = 0.5 + 0.5 * torch.rand(value.shape, generator=how.chance)
    return shuffled(value, how) * factors.to(value.dtype)


def is_constant(value: Tensor) -> bool:
    return value.numel() > 0 and bool((value == value.flatten()[0]).all())


def twin_of_value(value: Any, how: Change) -> Any:
    """The twin of what is no tensor: a list, a model."""
    if isinstance(value, list | tuple):
        return type(value)(
            item * (0.5 + 0.5 * float(torch.rand((), generator=how.chance)))
            if isinstance(item, float)
            else twin_of_value(item, how)
            for item in value
        )
    return value if vocabulary(value) is None else twin_of_model(value, how)


def vocabulary(value: Any) -> int | None:
    """Of a model; None for what is none. A learner's own object is asked nothing here."""
    found = inspect.getattr_static(value, "vocab_size", None)
    return found if isinstance(found, int) else None


def twin_of_model(model: Any, how: Change) -> Any:
    """A model of the same kind and sizes that says something else."""
    made = copy.deepcopy(model)
    with torch.no_grad():
        for held in numbers_of(made):
            if held.is_floating_point():
                held.data = other_numbers(held, how)
            elif (text := text_of(held)) is None:
                held.data = shuffled(held, how)
            elif text:
                # whole characters change places, so that it stays a text
                order = torch.randperm(len(text), generator=how.chance).tolist()
                held.data = torch.tensor(list("".join(text[i] for i in order).encode()))
    return made


def numbers_of(model: Any) -> list[Tensor]:
    """What makes a model say one thing and not another."""
    if isinstance(model, nn.Module):
        return list(model.parameters())
    held = [value for value in vars(model).values() if isinstance(value, Tensor)]
    return [value for value in held if value.numel() <= LARGEST]


def text_of(ids: Tensor) -> str | None:
    """The text whose bytes these ids are; "" if their bytes are none, None if they are no bytes."""
    if ids.ndim != 1 or len(ids) < 2 or bool((ids > 255).any()) or bool((ids < 32).any()):
        return None
    try:
        return bytes(ids.tolist()).decode()
    except UnicodeDecodeError:
        return ""


# --- objects ---

LIVES = ("values", "positions", "last")


def twin_of_session(session: Session, how: Change) -> Session:
    """The life of another cache: as long, and asked the same in the same order."""
    pieces = sum(name == "append" for name, _, _ in session)
    made = []
    for name, args, kwargs in session:
        values = [twin_of_part(value, how) for value in (*args, *kwargs.values())]
        if name == "__init__" and len(args) > 4 and all(type(size) is int for size in args[:5]):
            layers, batch, heads, width, capacity = values[:5]
            if how.mode == "positions":
                # a piece that was too long stays too long where it came last
                capacity += how.more * max(1, pieces // max(1, layers)) if capacity > 0 else 0
            if how.mode == "last" and width > 0:
                width += how.more
            values[:5] = [layers, batch, heads, width, capacity]
        made.append(
            (name, tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True)))
        )
    return made


def twin_of_part(value: Any, how: Change) -> Any:
    if not isinstance(value, Tensor) or value.ndim != 4 or not value.is_floating_point():
        return value
    if how.mode == "positions":
        value = resampled(value, 2, how)
    if how.mode == "last":
        value = resampled(value, 3, how)
    return value * (0.5 + 0.5 * torch.rand(value.shape, generator=how.chance)).to(value.dtype)


def is_plain(session: Sequence[AskedCall]) -> bool:
    """Whether only its own methods were called: no model has made what it was given."""
    return all(name in ("__init__", "append", "length", "reset") for name, _, _ in session)
