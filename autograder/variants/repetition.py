"""Right ways to write the penalties of lesson 6."""

import math
from collections import Counter

import torch
from torch import Tensor
from torch.nn import functional as F

from ..bank import Bank

bank = Bank("repetition")

PENALTY, FREQUENCY = "apply_repetition_penalty", "apply_frequency_penalty"


def checked(logits: Tensor, ids: Tensor, mask: Tensor | None, *numbers: float) -> Tensor:
    """The mask, all ones where there was none; raises ValueError for what is not allowed."""
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{numbers} must be finite")
    mask = torch.ones_like(ids) if mask is None else mask
    if ids.shape != mask.shape or ids.shape[0] != logits.shape[0]:
        raise ValueError(f"shapes {logits.shape}, {ids.shape}, {mask.shape} do not fit")
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < logits.shape[-1]:
        raise ValueError("ids outside the vocabulary")
    return mask


def positive(penalty: float) -> float:
    if not penalty > 0:
        raise ValueError(f"penalty={penalty} must be above 0")
    return penalty


@bank.variant(PENALTY)
def loops_over_sets(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    mask = checked(logits, ids, attention_mask, positive(penalty))
    answer = logits.float().clone()
    for scores, tokens, real in zip(answer, ids.tolist(), mask.tolist(), strict=True):
        for token in {t for t, r in zip(tokens, real, strict=True) if r}:
            scores[token] = (
                scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
            )
    return answer


@bank.variant(PENALTY)
def unique_of_each_row(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    mask = checked(logits, ids, attention_mask, positive(penalty))
    answer = logits.to(torch.float32, copy=True)
    for row in range(len(ids)):
        seen = ids[row][mask[row] == 1].unique()
        scores = answer[row, seen]
        answer[row, seen] = torch.where(scores < 0, scores * penalty, scores / penalty)
    return answer


@bank.variant(PENALTY)
def gathers_and_scatters(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    mask = checked(logits, ids, attention_mask, positive(penalty))
    # a spare column takes what padding writes
    wide = F.pad(logits.float(), (0, 1))
    places = torch.where(mask.bool(), ids, logits.shape[-1])
    scores = wide.gather(1, places)
    scores = torch.where(scores < 0, scores * penalty, scores / penalty)
    return wide.scatter(1, places, scores)[:, :-1]


@bank.variant(PENALTY)
def one_hot_histories(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    mask = checked(logits, ids, attention_mask, positive(penalty))
    rows = []
    for scores, tokens, real in zip(logits.double(), ids, mask, strict=True):
        marks = F.one_hot(tokens[real.bool()].unique(), logits.shape[-1])
        seen = marks.sum(dim=0).bool()
        factor = torch.where(scores > 0, 1 / penalty, penalty)
        rows.append(torch.where(seen, scores * factor, scores))
    # in float64, which is harmless
    return torch.stack(rows)


@bank.variant(PENALTY)
def takes_the_lower_of_two(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    mask = checked(logits, ids, attention_mask, positive(penalty))
    logits = logits.float()
    seen = torch.zeros_like(logits, dtype=torch.bool)
    rows, places = mask.nonzero(as_tuple=True)
    seen[rows, ids[rows, places]] = True
    # dividing and multiplying pull apart: a penalty takes the lower, a reward the higher
    choose = torch.minimum if penalty >= 1 else torch.maximum
    return torch.where(seen, choose(logits / penalty, logits * penalty), logits)


@bank.variant(PENALTY)
def returns_early_when_off(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    mask = checked(logits, ids, attention_mask, positive(penalty))
    logits = logits.float()
    if penalty == 1:
        return logits
    counts = torch.zeros_like(logits)
    for column in range(ids.shape[1]):
        amounts = mask[:, column, None].to(counts.dtype)
        counts.scatter_add_(1, ids[:, column, None], amounts)
    penalised = logits.clone()
    penalised[logits > 0] /= penalty
    penalised[logits < 0] *= penalty
    return penalised.where(counts > 0, logits)


@bank.variant(FREQUENCY)
def adds_up_at_indices(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    mask = checked(logits, ids, attention_mask, presence, frequency)
    counts = torch.zeros(logits.shape)
    rows = torch.arange(len(ids))[:, None].expand_as(ids)
    counts.index_put_((rows, ids), mask.float(), accumulate=True)
    return logits.float() - frequency * counts - presence * counts.clamp(max=1)


@bank.variant(FREQUENCY)
def bincounts_of_each_row(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    mask = checked(logits, ids, attention_mask, presence, frequency)
    counts = torch.stack(
        [
            torch.bincount(row[real.bool()], minlength=logits.shape[-1])
            for row, real in zip(ids, mask, strict=True)
        ]
    )
    return logits.to(torch.float32) - (presence * counts.bool() + frequency * counts)


@bank.variant(FREQUENCY)
def counts_with_counter(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    mask = checked(logits, ids, attention_mask, presence, frequency)
    answer = logits.float().clone()
    for scores, tokens, real in zip(answer, ids.tolist(), mask.tolist(), strict=True):
        text = [token for token, r in zip(tokens, real, strict=True) if r]
        for token, count in Counter(text).items():
            scores[token] -= presence + frequency * count
    return answer
