"""Lesson 1: training and inference, one pass to learn and a loop to speak.

In training every position predicts its next token, all in one pass. At inference only the last
position's answer is wanted, one token a step.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def next_token_loss(
    logits: Float[Tensor, "batch pos vocab"],
    tokens: Int[Tensor, "batch pos"],
    ignore_index: int = -100,
) -> Float[Tensor, ""]:
    """Mean cross-entropy, in nats, of predicting token t+1 from position t.

    The shift happens in here: pass `tokens` as the model read them. The last position has no target
    and the first token is nobody's target. Targets equal to `ignore_index` do not count, neither
    above nor below the fraction bar; if none is left the loss is NaN, as in torch. Computed in
    float32.

    Raises ValueError if the shapes do not belong together or a target is no id of the vocabulary.

    >>> logits = torch.tensor([[[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]]])
    >>> f"{next_token_loss(logits, torch.tensor([[0, 1, 2]])):.4f}"
    '1.4076'

    Source: Bengio et al. 2003, "A neural probabilistic language model".
    """
    raise NotImplementedError("lesson 1: next_token_loss is yours to write")


def perplexity(batches: Iterable[tuple[float, int]]) -> float:
    """exp of the mean negative log-likelihood a token, over all batches together.

    `batches` are pairs (summed nll in nats, number of tokens). Long batches weigh more than short
    ones: the sums are added up first, and divided once.

    Raises ValueError if there is no token at all, or a negative count.

    >>> round(perplexity([(6.0, 1), (2.0, 3)]), 3)
    7.389

    Source: Jelinek et al. 1977, "Perplexity: a measure of the difficulty of speech recognition
    tasks".
    """
    raise NotImplementedError("lesson 1: perplexity is yours to write")


def last_logits(
    logits: Float[Tensor, "batch pos vocab"],
    attention_mask: Int[Tensor, "batch pos"] | None = None,
) -> Float[Tensor, "batch vocab"]:
    """The logits that decide the next token: those of each row's last real position.

    Without a mask that is the last position. With one (1 real, 0 padding) it is the last 1 of the
    row, whichever side the padding is on. Half-precision logits come back in float32.

    Raises ValueError if the mask's shape is not (batch, pos) or a row has no real position.

    >>> logits = torch.arange(12.0).view(2, 3, 2)
    >>> last_logits(logits).tolist()
    [[4.0, 5.0], [10.0, 11.0]]
    >>> last_logits(logits, torch.tensor([[1, 1, 0], [0, 1, 1]])).tolist()
    [[2.0, 3.0], [10.0, 11.0]]
    """
    raise NotImplementedError("lesson 1: last_logits is yours to write")
