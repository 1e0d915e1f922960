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
    ### BEGIN SOLUTION
    if logits.ndim != 3 or logits.shape[:2] != tokens.shape:
        raise ValueError(
            f"logits {tuple(logits.shape)} and tokens {tuple(tokens.shape)} do not belong "
            "together: they must be (batch, pos, vocab) and (batch, pos)"
        )
    # position t answers for token t+1, so the last answer and the first token have no partner
    predictions = logits[:, :-1].float().flatten(0, 1)
    targets = tokens[:, 1:].long().flatten()
    wrong = (targets != ignore_index) & ((targets < 0) | (targets >= logits.shape[-1]))
    if wrong.any():
        raise ValueError(
            f"tokens holds {targets[wrong][0].item()}; allowed are 0 to {logits.shape[-1] - 1} "
            f"and ignore_index={ignore_index}"
        )
    return F.cross_entropy(predictions, targets, ignore_index=ignore_index)
    ### END SOLUTION


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
    ### BEGIN SOLUTION
    total_nll, total_tokens = 0.0, 0
    for nll, tokens in batches:
        if tokens < 0:
            raise ValueError(f"batches holds a token count of {tokens}; it must be 0 or more")
        total_nll += float(nll)
        total_tokens += int(tokens)
    if total_tokens == 0:
        raise ValueError("batches holds 0 tokens; perplexity needs at least one")
    # torch's exp gives inf where math.exp would raise
    return torch.tensor(total_nll / total_tokens, dtype=torch.float64).exp().item()
    ### END SOLUTION


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
    ### BEGIN SOLUTION
    if logits.ndim != 3 or logits.shape[1] == 0:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}; it must be (batch, pos, vocab) with at least "
            "one position"
        )
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if attention_mask is None:
        return logits[:, -1]
    if attention_mask.shape != logits.shape[:2]:
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; it must be (batch, pos), "
            f"here {tuple(logits.shape[:2])}"
        )
    real = attention_mask.bool()
    if not real.any(dim=-1).all():
        row = (~real.any(dim=-1)).nonzero()[0].item()
        raise ValueError(f"attention_mask row {row} is all 0; each row needs a real position")
    # number the positions, blank out the padding, and the largest number left is the last real one
    numbered = torch.arange(logits.shape[1], device=logits.device).masked_fill(~real, -1)
    last = numbered.amax(dim=-1)
    return logits[torch.arange(len(last), device=logits.device), last]
    ### END SOLUTION
