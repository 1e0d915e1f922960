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
    raise NotImplementedError("lesson 5: greedy is yours to write")


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
    raise NotImplementedError("lesson 5: inverse_cdf is yours to write")


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
    raise NotImplementedError("lesson 5: sample is yours to write")


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
    raise NotImplementedError("lesson 5: next_token is yours to write")
