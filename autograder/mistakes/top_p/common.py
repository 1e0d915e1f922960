"""What most mistakes of lesson 4 get right."""

from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor

from ...bank import Bank

bank = Bank("top_p")

BANNED = -torch.inf

Cut = Callable[[Tensor, float], Tensor]
Filter = Callable[[Tensor, float | None], Tensor]


def prepared(logits: Tensor, p: float | None, name: str = "p") -> Tensor:
    """The logits in float32, after a look at p."""
    if p is not None and not 0 <= p <= 1:
        raise ValueError(f"{name}={p}")
    return logits.float()


def when_on(cut: Cut) -> Filter:
    """The filter that takes its arguments as it should, and makes its mistake where it cuts."""

    @wraps(cut)
    def top_p_filter(logits: Tensor, p: float | None) -> Tensor:
        logits = prepared(logits, p)
        return logits if p is None or p == 1 else cut(logits, p)

    return top_p_filter


def ranked(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The mass up to each rank, and the ids by rank, the best first."""
    probs, order = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    return probs.cumsum(dim=-1), order


def mass_before(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The mass before each rank (0 before the best), and the ids by rank."""
    mass, order = ranked(logits)
    before = mass.roll(1, dims=-1)
    before[..., 0] = 0
    return before, order


def nucleus_mask(before: Tensor, p: float) -> Tensor:
    """Which ranks belong to the nucleus."""
    keep = before < p
    keep[..., 0] = True
    return keep


def ban(logits: Tensor, order: Tensor, keep_sorted: Tensor) -> Tensor:
    """The logits, those that are not to be kept banned."""
    keep = torch.zeros_like(keep_sorted).scatter(-1, order, keep_sorted)
    return logits.masked_fill(~keep, BANNED)
