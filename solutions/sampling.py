"""Lesson 5: sampling, how a token is drawn."""

import math
from bisect import bisect_right
from itertools import accumulate

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .temperature import apply_temperature
from .top_k import top_k_filter
from .top_p import top_p_filter


def greedy(logits: Float[Tensor, "batch vocab"]) -> Int[Tensor, "batch 1"]:
    """The id with the highest logit in each row; the lowest id on a tie.

    Raises ValueError unless logits is (batch, vocab).

    >>> greedy(torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])).tolist()
    [[1], [0]]
    """
    ### BEGIN SOLUTION
    if logits.ndim != 2:
        raise ValueError(f"logits has shape {tuple(logits.shape)}; it must be (batch, vocab)")
    return logits.argmax(dim=-1, keepdim=True)
    ### END SOLUTION


def inverse_cdf(
    probs: Float[Tensor, "batch vocab"], u: Float[Tensor, " batch"]
) -> Int[Tensor, "batch 1"]:
    """The id on whose stretch of [0, 1) u falls: the first whose cumulative mass is above u.

    Lay the probabilities end to end in the order of ids, as a roulette wheel cut open; u in [0, 1)
    is where the ball lies. `probs` need not sum to 1: mass is normalised, in float64. An id of
    probability 0 has no stretch, so it is never the answer, neither at u = 0 nor at the largest u.

    Raises ValueError if a row of probs has NaN, a negative or infinite value, or no mass; if u is
    outside [0, 1]; or if the shapes do not belong together.

    >>> probs = torch.tensor([[0.25, 0.25, 0.5]] * 3)
    >>> inverse_cdf(probs, torch.tensor([0.0, 0.25, 0.99])).tolist()
    [[0], [1], [2]]

    Source: Devroye 1986, "Non-uniform random variate generation", chapter II.2.
    """
    ### BEGIN SOLUTION
    if probs.ndim != 2 or u.shape != probs.shape[:1]:
        raise ValueError(
            f"probs {tuple(probs.shape)} and u {tuple(u.shape)} do not belong together: they must "
            "be (batch, vocab) and (batch,)"
        )
    if not ((u >= 0) & (u <= 1)).all():
        raise ValueError(f"u={u.tolist()} is not allowed: each must lie in [0, 1)")
    cdf = probs.double().cumsum(dim=-1)
    cdf = cdf / cdf[:, -1:]
    # the line ends at 1, or at NaN if its mass is none, infinite or NaN
    allowed = (probs.amin(dim=-1) >= 0) & (cdf[:, -1] == 1)
    if not allowed.all():
        row = (~allowed).nonzero()[0, 0].item()
        raise ValueError(
            f"probs row {row} is no distribution: it needs values that are 0 or more, none of them "
            "NaN or infinite, and some mass"
        )
    # a u that was rounded up to 1 means the largest number below it
    u = u.double().clamp(max=1 - 2**-53)
    return torch.searchsorted(cdf, u[:, None], right=True)
    ### END SOLUTION


def sample(
    probs: Float[Tensor, "batch vocab"], generator: torch.Generator | None = None
) -> Int[Tensor, "batch 1"]:
    """Draw one id a row, each with its probability: `inverse_cdf` at a random u.

    One u is drawn a row, in order, from `generator` (torch's global one if None), so the same seed
    gives the same ids.

    Raises ValueError if a row has NaN, a negative value or no mass.

    >>> sample(torch.tensor([[0.0, 1.0, 0.0]])).tolist()
    [[1]]
    """
    ### BEGIN SOLUTION
    if probs.ndim != 2:
        raise ValueError(f"probs has shape {tuple(probs.shape)}; it must be (batch, vocab)")
    u = torch.rand(probs.shape[0], dtype=torch.float64, generator=generator, device=probs.device)
    return inverse_cdf(probs, u)
    ### END SOLUTION


def next_token(
    logits: Float[Tensor, "batch vocab"],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    do_sample: bool = True,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "batch 1"]:
    """Choose the next id of each row: temperature, top-k, top-p, softmax, draw, in this order.

    Top-p measures its mass on what top-k left, renormalised. `temperature=0` or `do_sample=False`
    is greedy; then no random number is used.

    Raises ValueError unless logits is (batch, vocab), for a row with NaN or with every logit -inf,
    and for wrong knobs.

    >>> next_token(torch.tensor([[0.0, 50.0, 0.0]]), top_k=2).tolist()
    [[1]]
    """
    ### BEGIN SOLUTION
    if logits.ndim != 2:
        raise ValueError(f"logits has shape {tuple(logits.shape)}; it must be (batch, vocab)")
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ValueError(
            f"temperature={temperature} is not allowed: it must be a finite number from 0"
        )
    # half precision would lose in the shift below what a large temperature brings back
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    # the row's best logit is NaN if any is NaN, and -inf if all are
    best = logits.amax(dim=-1, keepdim=True)
    usable = best > -torch.inf
    if not usable.all():
        row = (~usable).nonzero()[0, 0].item()
        raise ValueError(f"logits row {row} holds NaN or nothing but -inf: no token can be chosen")
    if temperature == 0 or not do_sample:
        # filters never remove the best token, but a wrong knob is told all the same
        top_p_filter(top_k_filter(best, top_k), top_p)
        return greedy(logits)
    if (shortlist := _shortlist(logits, temperature, top_k, top_p)) is not None:
        return _draw(shortlist, logits, generator)
    # softmax does not feel a shift; with the best at 0 no small temperature can overflow
    logits = apply_temperature(logits - best, temperature)
    logits = top_p_filter(top_k_filter(logits, top_k), top_p)
    # exp is the softmax but for its division, and `sample` divides
    return sample(logits.exp(), generator)
    ### END SOLUTION


### BEGIN SOLUTION
def _shortlist(
    logits: Float[Tensor, "batch vocab"],
    temperature: float,
    k: int | None,
    p: float | None,
    largest_nucleus: int = 256,
) -> list[list[tuple[int, float]]] | None:
    """What temperature and both filters leave of each row: (id, weight), by rising id.

    These are the very tokens that `apply_temperature`, `top_k_filter` and `top_p_filter` keep one
    after the other, found without sorting the vocabulary. None where the best few tokens can't
    tell: the filters are off or wrongly set, tokens tie at a border, or the nucleus is very large.

    In Python, since some fifty numbers are sooner looked at than handed to torch, call by call.
    """
    size, p = k or largest_nucleus, 1.0 if p is None else p
    if not (k or p < 1) or not (1 <= size < logits.shape[-1] and size % 1 == 0 and 0 <= p <= 1):
        return None
    size = int(size)
    # one token more than wanted, to see what follows the last
    best, ids = logits.topk(size + 1)
    few = apply_temperature(best - best[:, :1], temperature)
    names, scores, weights = ids.tolist(), few.tolist(), few.exp().tolist()
    totals: list[float] = []
    if not k:
        every = apply_temperature(logits - best[:, :1], temperature)
        totals = every.exp().double().sum(dim=-1).tolist()
    shortlist = []
    for row, score in enumerate(scores):
        ends = list(accumulate(weights[row][:size]))
        total = ends[-1] if k else totals[row]
        # the filter adds up in float64 too, in another order: where that might decide, it has to
        goal, rounding = p * total, 1e-9 * total
        # up to the token that crosses p, and that one; all of them if p is off
        count = bisect_right(ends, goal - rounding) + 1 if p < 1 else size
        crossed = p == 1 or (count <= size and ends[count - 1] > goal + rounding)
        if not (crossed and score[count - 1] > score[count]):
            return None
        if k and score[size - 1] == score[size]:
            return None
        shortlist.append(sorted(zip(names[row][:count], weights[row], strict=False)))
    return shortlist


def _draw(
    shortlist: list[list[tuple[int, float]]],
    logits: Float[Tensor, "batch vocab"],
    generator: torch.Generator | None,
) -> Int[Tensor, "batch 1"]:
    """`sample` from the rows of a shortlist, with the same random numbers and the same result."""
    us = torch.rand(len(shortlist), dtype=torch.float64, generator=generator, device=logits.device)
    drawn = []
    for row, u in zip(shortlist, us.tolist(), strict=True):
        names, weights = zip(*row, strict=True)
        ends = list(accumulate(weights))
        drawn.append(names[bisect_right([end / ends[-1] for end in ends], u)])
    return torch.tensor(drawn, device=logits.device)[:, None]


### END SOLUTION
