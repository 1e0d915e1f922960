"""What most mistakes of lesson 5 get right."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch import Generator, Tensor

from solutions.sampling import greedy, sample
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter

from ...bank import Bank

Choice = Callable[[Tensor, "Knobs"], Tensor]

bank = Bank("sampling")


def line(probs: Tensor) -> Tensor:
    """Where the stretches of each row end, in float64, the last at 1."""
    cdf = probs.double().cumsum(dim=-1)
    return cdf / cdf[..., -1:]


def look_at(probs: Tensor, u: Tensor) -> None:
    """Refuse what inverse_cdf refuses."""
    look_at_u(probs, u)
    look_at_rows(probs)


def look_at_u(probs: Tensor, u: Tensor) -> None:
    """Refuse a u off the line, and another number of them than rows."""
    if u.shape != probs.shape[:1] or not ((u >= 0) & (u <= 1)).all():
        raise ValueError(f"u={u.tolist()}")


def look_at_rows(probs: Tensor) -> None:
    """Refuse rows that are no distribution."""
    total = probs.double().sum(dim=-1)
    if not ((probs >= 0).all() and total.isfinite().all() and (total > 0).all()):
        raise ValueError("a row of probs is no distribution")


def look_at_shape(logits: Tensor) -> None:
    """Refuse logits that are not (batch, vocab)."""
    if logits.ndim != 2:
        raise ValueError(f"logits has shape {tuple(logits.shape)}")


def look_at_logits(logits: Tensor) -> None:
    """Refuse logits that are not (batch, vocab), or of which nothing can be chosen."""
    look_at_shape(logits)
    best = logits.amax(dim=-1)
    if best.isnan().any() or (best == -torch.inf).any():
        raise ValueError("a row of logits is unusable")


def look_at_temperature(temperature: float) -> None:
    """Refuse what is no temperature, nor 0."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ValueError(f"temperature={temperature}")


@dataclass(frozen=True)
class Knobs:
    """What next_token is given beside the logits."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    do_sample: bool = True
    generator: Generator | None = None

    @property
    def cold(self) -> bool:
        """Whether to be greedy."""
        return self.temperature == 0 or not self.do_sample


def filtered(logits: Tensor, knobs: Knobs) -> Tensor:
    """Temperature, top-k, top-p, as they should be."""
    logits = apply_temperature(logits, knobs.temperature)
    return top_p_filter(top_k_filter(logits, knobs.top_k), knobs.top_p)


def drawn(logits: Tensor, knobs: Knobs) -> Tensor:
    """Softmax and draw, as they should be."""
    return sample(logits.softmax(dim=-1), knobs.generator)


def with_knobs(**defaults: Any) -> Callable[[Choice], Callable[..., Tensor]]:
    """next_token by a function of the logits and the knobs."""

    def decorate(choose: Choice) -> Callable[..., Tensor]:
        @wraps(choose)
        def next_token(logits: Tensor, **knobs: Any) -> Tensor:
            return choose(logits, Knobs(**defaults | knobs))

        return next_token

    return decorate


def when_sampling(steps: Choice) -> Callable[..., Tensor]:
    """The next_token that makes its mistake on the way from the logits to the draw."""

    @wraps(steps)
    def choose(logits: Tensor, knobs: Knobs) -> Tensor:
        look_at_logits(logits)
        look_at_temperature(knobs.temperature)
        return greedy(logits) if knobs.cold else steps(logits, knobs)

    return with_knobs()(choose)
