"""Right ways to write top_k_filter."""

import torch
from torch import Tensor

from ..bank import Bank

bank = Bank("top_k")

BANNED = float("-inf")


def checked(k: int | None) -> int:
    if k is not None and k < 0:
        raise ValueError(f"k={k} must be 0 or more")
    return k or 0


@bank.variant("top_k_filter")
def scatters_exactly_k(logits: Tensor, k: int | None) -> Tensor:
    k, logits = checked(k), logits.float()
    if not k:
        return logits.clone()
    values, ids = logits.topk(min(k, logits.shape[-1]))
    return torch.full_like(logits, BANNED).scatter(-1, ids, values)


@bank.variant("top_k_filter")
def sorts_everything(logits: Tensor, k: int | None) -> Tensor:
    k, logits = checked(k), logits.float()
    if not k or k >= logits.shape[-1]:
        return logits
    threshold = logits.sort(dim=-1, descending=True).values[..., k - 1, None]
    return torch.where(logits >= threshold, logits, BANNED)


@bank.variant("top_k_filter")
def adds_a_mask(logits: Tensor, k: int | None) -> Tensor:
    k, logits = checked(k), logits.float()
    if not k:
        return logits
    ids = logits.topk(min(k, logits.shape[-1])).indices
    mask = torch.full_like(logits, BANNED).scatter(-1, ids, 0.0)
    return logits + mask


@bank.variant("top_k_filter")
def ranks_by_double_argsort(logits: Tensor, k: int | None) -> Tensor:
    k, logits = checked(k), logits.float()
    if not k:
        return logits
    ranks = logits.argsort(dim=-1, descending=True).argsort(dim=-1)
    return logits.masked_fill(ranks >= k, BANNED)


@bank.variant("top_k_filter")
def loops_over_rows(logits: Tensor, k: int | None) -> Tensor:
    k = checked(k)
    answer = logits.detach().float().clone(memory_format=torch.contiguous_format)
    if k:
        for row in answer.reshape(-1, answer.shape[-1]):
            row[row < row.topk(min(k, len(row))).values.min()] = BANNED
    return answer


@bank.variant("top_k_filter")
def asks_for_the_kth_value(logits: Tensor, k: int | None) -> Tensor:
    k, logits = checked(k), logits.float()
    vocab = logits.shape[-1]
    if not k or k > vocab:
        return logits
    threshold = logits.kthvalue(vocab - k + 1, dim=-1, keepdim=True).values
    return logits.masked_fill(logits.lt(threshold), BANNED)
