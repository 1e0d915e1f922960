"""Lesson 6: repetition penalty, a patch against going round in circles."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


def apply_repetition_penalty(
    logits: Float[Tensor, "batch vocab"],
    ids: Int[Tensor, "batch pos"],
    penalty: float,
    attention_mask: Int[Tensor, "batch pos"] | None = None,
) -> Float[Tensor, "batch vocab"]:
    """Make every id that occurs in its row less likely: a positive logit / penalty, else x penalty.

    The prompt counts, padding (mask 0) does not. Once an id, however often it occurs. 1.0 is off;
    below 1 repetition is encouraged. Banned tokens (-inf) stay banned.

    Raises ValueError for a penalty that is zero, negative, NaN or infinite, for ids outside the
    vocabulary, and for shapes that do not belong together.

    >>> logits = torch.tensor([[4.0, -4.0, 1.0]])
    >>> apply_repetition_penalty(logits, torch.tensor([[0, 1, 0]]), 2.0).tolist()
    [[2.0, -8.0, 1.0]]

    Source: Keskar et al. 2019, "CTRL", arXiv 1909.05858, section 4.1.
    """
    ### BEGIN SOLUTION
    if not (math.isfinite(penalty) and penalty > 0):
        raise ValueError(f"penalty={penalty} is not allowed: it must be a finite number above 0")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    seen = count_tokens(ids, logits, attention_mask) > 0
    # dividing a negative logit would raise it, so the sign decides
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, penalised, logits)
    ### END SOLUTION


def apply_frequency_penalty(
    logits: Float[Tensor, "batch vocab"],
    ids: Int[Tensor, "batch pos"],
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Int[Tensor, "batch pos"] | None = None,
) -> Float[Tensor, "batch vocab"]:
    """Stretch: subtract `presence + frequency x count` from every id that occurs in its row.

    Unlike the repetition penalty it does not depend on where the logits' zero is. Prompt counts,
    padding does not. Negative values encourage repetition.

    Raises ValueError for values that are NaN or infinite, and as `apply_repetition_penalty` for
    ids.

    >>> logits = torch.tensor([[4.0, 4.0, 4.0]])
    >>> ids = torch.tensor([[0, 0, 1]])
    >>> apply_frequency_penalty(logits, ids, presence=0.5, frequency=1.0).tolist()
    [[1.5, 2.5, 4.0]]

    Source: the OpenAI API reference, "frequency and presence penalties".
    """
    ### BEGIN SOLUTION
    for name, value in (("presence", presence), ("frequency", frequency)):
        if not math.isfinite(value):
            raise ValueError(f"{name}={value} is not allowed: it must be a finite number")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    counts = count_tokens(ids, logits, attention_mask)
    return logits - presence * (counts > 0) - frequency * counts
    ### END SOLUTION


### BEGIN SOLUTION
def count_tokens(
    ids: Int[Tensor, "batch pos"],
    logits: Float[Tensor, "batch vocab"],
    attention_mask: Int[Tensor, "batch pos"] | None = None,
) -> Int[Tensor, "batch vocab"]:
    """How often each id of the vocabulary occurs in its row, padding (mask 0) left out.

    Raises ValueError for ids outside the vocabulary and for shapes that do not belong together.

    >>> count_tokens(torch.tensor([[0, 2, 2]]), torch.zeros(1, 4)).tolist()
    [[1, 0, 2, 0]]
    """
    if logits.ndim != 2 or ids.ndim != 2 or len(ids) != len(logits):
        raise ValueError(
            f"logits {tuple(logits.shape)} and ids {tuple(ids.shape)} do not belong together: they "
            "must be (batch, vocab) and (batch, pos)"
        )
    if attention_mask is None:
        attention_mask = torch.ones_like(ids)
    if attention_mask.shape != ids.shape:
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; it must be that of ids, "
            f"{tuple(ids.shape)}"
        )
    real = attention_mask.bool()
    wrong = real & ((ids < 0) | (ids >= logits.shape[-1]))
    if wrong.any():
        raise ValueError(
            f"ids holds {ids[wrong][0].item()}; allowed are 0 to {logits.shape[-1] - 1}"
        )
    counts = torch.zeros(logits.shape, dtype=torch.long, device=logits.device)
    # padding may hold any number: it adds 0 to id 0
    return counts.scatter_add(1, ids.long().masked_fill(~real, 0), real.long())


### END SOLUTION
