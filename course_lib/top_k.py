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
    raise NotImplementedError("lesson 3: top_k_filter is yours to write")
