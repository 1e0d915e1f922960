"""Lesson 3: top-k, a short list of fixed length."""

import torch
from jaxtyping import Float
from torch import Tensor


def top_k_filter(
    logits: Float[Tensor, "*batch vocab"], k: int | None
) -> Float[Tensor, "*batch vocab"]:
    """Keep the k highest logits of each row, and ban the others with -inf.

    None or 0 switches the filter off; a k above the vocabulary keeps all. A token that ties with
    the k-th highest is kept too. What was banned before stays banned. Half-precision logits are
    computed in float32.

    Raises ValueError for a k that is negative or no whole number.

    >>> top_k_filter(torch.tensor([[4.0, 3.0, 2.0, 1.0]]), 2).tolist()
    [[4.0, 3.0, -inf, -inf]]

    Source: Fan, Lewis and Dauphin 2018, "Hierarchical neural story generation", arXiv 1805.04833.
    """
    ### BEGIN SOLUTION
    if k is not None and (k < 0 or k % 1 != 0):
        raise ValueError(f"k={k} is not allowed: it must be a whole number from 0, or None for off")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if not k:
        return logits
    # the k-th highest logit of each row is the threshold; a last axis of 1 lines it up with its row
    threshold = logits.topk(min(int(k), logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < threshold, -torch.inf)
    ### END SOLUTION
