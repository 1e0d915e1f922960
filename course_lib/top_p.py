"""Lesson 4: top-p, a short list that fits."""

import torch
from jaxtyping import Float
from torch import Tensor


def top_p_filter(
    logits: Float[Tensor, "*batch vocab"], p: float | None
) -> Float[Tensor, "*batch vocab"]:
    """Keep the nucleus: the fewest tokens, by descending probability, whose mass is at least p.

    The token that crosses p belongs to the nucleus; mass exactly p is enough. The best token always
    stays, so p = 0 keeps it alone. None and 1.0 switch the filter off. Among equal probabilities
    the lower id comes first. Banned tokens (-inf) stay banned. Half-precision logits are computed
    in float32, and give float32 when the filter is off too.

    Raises ValueError for a p outside [0, 1] or NaN.

    >>> logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    >>> top_p_filter(logits, 0.75).softmax(-1)[0, 2:].tolist()
    [0.0, 0.0]

    Source: Holtzman et al. 2020, "The curious case of neural text degeneration", arXiv 1904.09751.
    """
    raise NotImplementedError("lesson 4: top_p_filter is yours to write")


def min_p_filter(
    logits: Float[Tensor, "*batch vocab"], min_p: float | None
) -> Float[Tensor, "*batch vocab"]:
    """Stretch: keep tokens at least `min_p` times as probable as the best one.

    None or 0 switches the filter off; 1 keeps the best and its ties. Banned tokens (-inf) stay
    banned. Half-precision logits are computed in float32, and give float32 when the filter is off
    too.

    Raises ValueError for a min_p outside [0, 1] or NaN.

    >>> min_p_filter(torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log(), 0.5).isfinite().tolist()
    [[True, True, False, False]]

    Source: Nguyen et al. 2024, "Turning up the heat: min-p sampling", arXiv 2407.01082.
    """
    raise NotImplementedError("lesson 4: min_p_filter is yours to write")
