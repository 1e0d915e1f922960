"""Right ways to write top_p_filter and min_p_filter."""

import math

import torch
from torch import Tensor

from ..bank import Bank

bank = Bank("top_p")

BANNED = float("-inf")


def checked(p: float | None) -> float:
    if p is None:
        return 1.0
    if not 0 <= p <= 1:
        raise ValueError(f"p={p} must be from 0 to 1")
    return p


@bank.variant("top_p_filter")
def cuts_the_ascending_tail(logits: Tensor, p: float | None) -> Tensor:
    """From the worst token up, as transformers does it: ban what holds at most 1 - p."""
    p, logits = checked(p), logits.float()
    if p == 1:
        return logits
    ascending, order = logits.sort(descending=False)
    remove = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - p
    remove[..., -1:] = False
    return logits.masked_fill(remove.scatter(-1, order, remove), BANNED)


@bank.variant("top_p_filter")
def subtracts_its_own_mass(logits: Tensor, p: float | None) -> Tensor:
    p, logits = checked(p), logits.float().clone()
    if p == 1:
        return logits
    probs, order = logits.softmax(-1).sort(dim=-1, descending=True)
    drop = probs.cumsum(-1) - probs >= p
    drop[..., 0] = False
    filtered = logits.gather(-1, order).masked_fill(drop, BANNED)
    return torch.empty_like(logits).scatter(-1, order, filtered)


@bank.variant("top_p_filter")
def shifts_the_mask_in_place(logits: Tensor, p: float | None) -> Tensor:
    p, logits = checked(p), logits.to(torch.float32)
    if p == 1:
        return logits
    ordered, ids = torch.sort(logits, descending=True)
    remove = torch.cumsum(ordered.softmax(dim=-1), dim=-1) >= p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    mask = torch.zeros_like(remove).scatter_(-1, ids, remove)
    return torch.where(mask, torch.tensor(BANNED), logits)


@bank.variant("top_p_filter")
def loops_over_rows(logits: Tensor, p: float | None) -> Tensor:
    p = checked(p)
    answer = logits.detach().float().clone(memory_format=torch.contiguous_format)
    if p == 1:
        return answer
    for row in answer.view(-1, answer.shape[-1]):
        probs = row.double().softmax(dim=0)
        kept, mass = [], 0.0
        for i in probs.argsort(descending=True).tolist():
            kept.append(i)
            mass += probs[i].item()
            if mass >= p:
                break
        banned = torch.ones_like(row, dtype=torch.bool)
        banned[kept] = False
        row[banned] = BANNED
    return answer


@bank.variant("top_p_filter")
def counts_then_ranks(logits: Tensor, p: float | None) -> Tensor:
    """The size of the nucleus by counting, then a mask over double argsort."""
    p, logits = checked(p), logits.float()
    if p == 1:
        return logits
    order = logits.argsort(dim=-1, descending=True, stable=True)
    mass = logits.softmax(dim=-1).gather(-1, order).cumsum(dim=-1)
    size = (mass < p).sum(dim=-1, keepdim=True) + 1
    return logits.masked_fill(order.argsort(dim=-1) >= size, BANNED)


@bank.variant("top_p_filter")
def searches_the_sums(logits: Tensor, p: float | None) -> Tensor:
    p, logits = checked(p), logits.float()
    if p == 1:
        return logits
    probs, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    threshold = torch.full_like(probs[..., :1], p)
    last = torch.searchsorted(probs.cumsum(dim=-1).contiguous(), threshold.contiguous())
    keep = torch.arange(logits.shape[-1]) <= last
    return logits.masked_fill(~torch.zeros_like(keep).scatter(-1, order, keep), BANNED)


@bank.variant("top_p_filter")
def adds_a_mask(logits: Tensor, p: float | None) -> Tensor:
    p, logits = checked(p), logits.float()
    if p == 1:
        return logits + 0
    probs = (logits - logits.amax(dim=-1, keepdim=True)).exp()
    probs = probs / probs.sum(dim=-1, keepdim=True)
    probs, order = probs.sort(dim=-1, descending=True, stable=True)
    before = torch.nn.functional.pad(probs.cumsum(dim=-1)[..., :-1], (1, 0))
    bans = torch.zeros_like(before).masked_fill(before >= p, BANNED)
    bans[..., 0] = 0
    return logits + torch.zeros_like(bans).scatter(-1, order, bans)


@bank.variant("top_p_filter")
def works_in_float64(logits: Tensor, p: float | None) -> Tensor:
    p, logits = checked(p), logits.double()
    if p == 1:
        return logits
    ordered, order = logits.log_softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    probs = ordered.exp()
    keep = probs.cumsum(dim=-1) - probs < p
    keep[..., 0] = True
    return logits.masked_fill(~torch.zeros_like(keep).scatter(-1, order, keep), BANNED)


@bank.variant("top_p_filter")
def takes_topk_of_all(logits: Tensor, p: float | None) -> Tensor:
    """topk over the whole vocabulary for a sort: on ties its order is its own."""
    p, logits = checked(p), logits.float()
    if p == 1:
        return logits
    best, order = logits.topk(logits.shape[-1], dim=-1)
    mass = best.softmax(dim=-1).cumsum(dim=-1)
    keep = torch.cat([torch.ones_like(mass[..., :1]) > 0, mass[..., :-1] < p], dim=-1)
    return torch.full_like(logits, BANNED).scatter(-1, order, best.masked_fill(~keep, BANNED))


@bank.variant("min_p_filter")
def min_p_in_logits(logits: Tensor, min_p: float | None) -> Tensor:
    """A share of probability is a distance of logits."""
    if min_p is not None and not 0 <= min_p <= 1:
        raise ValueError(f"min_p={min_p} must be from 0 to 1")
    logits = logits.float()
    if not min_p:
        return logits
    threshold = logits.amax(dim=-1, keepdim=True) + math.log(min_p)
    return torch.where(logits >= threshold, logits, BANNED)


@bank.variant("min_p_filter")
def min_p_as_a_ratio(logits: Tensor, min_p: float | None) -> Tensor:
    if min_p is not None and (math.isnan(min_p) or min_p < 0 or min_p > 1):
        raise ValueError(f"min_p={min_p} must be from 0 to 1")
    wide = logits.to(torch.float64)
    share = (wide - wide.amax(dim=-1, keepdim=True)).exp()
    return wide.masked_fill(share < (min_p or 0), BANNED)
