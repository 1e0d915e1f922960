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
    raise NotImplementedError("lesson 6: apply_repetition_penalty is yours to write")


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
    raise NotImplementedError("lesson 6: apply_frequency_penalty is yours to write")
