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
    ### BEGIN SOLUTION
    if p is not None and not 0 <= p <= 1:
        raise ValueError(f"p={p} is not allowed: it must lie in [0, 1], or be None for off")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if p is None or p == 1:
        return logits
    sorted_logits, order = logits.sort(dim=-1, descending=True, stable=True)
    # the softmax but for its division; float64, so that adding up a large vocabulary loses nothing
    mass = (sorted_logits - sorted_logits[..., :1]).exp().double().cumsum(dim=-1)
    # a token stays if the mass BEFORE it is still below p: so the one that crosses p stays
    keep_sorted = torch.ones_like(mass, dtype=torch.bool)
    keep_sorted[..., 1:] = mass[..., :-1] < p * mass[..., -1:]
    # the mask is in sorted order; carry it back to the order of ids
    keep = torch.zeros_like(keep_sorted).scatter(-1, order, keep_sorted)
    return logits.masked_fill(~keep, -torch.inf)
    ### END SOLUTION


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
    ### BEGIN SOLUTION
    if min_p is not None and not 0 <= min_p <= 1:
        raise ValueError(f"min_p={min_p} is not allowed: it must lie in [0, 1], or be None for off")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), -torch.inf)
    ### END SOLUTION
