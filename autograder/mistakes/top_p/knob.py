"""Wrong ways to take the p of top_p_filter."""

import torch
from torch import Tensor

from .common import ban, bank, mass_before, nucleus_mask, prepared, ranked


@bank.mistake("top_p_filter")
def none_is_not_off(logits: Tensor, p: float) -> Tensor:
    """p = None reaches arithmetic that needs a number. A knob that is not set is None: say what
    happens then before you use it.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p={p}")
    logits = logits.float()
    if p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def one_is_not_off(logits: Tensor, p: float | None) -> Tensor:
    """With p = 1 an improbable token was lost: the others' mass rounds to 1 before its turn comes.
    Exactly 1 means off, so do not leave it to the sum.
    """
    logits = prepared(logits, p)
    if p is None:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def one_keeps_the_best_only(logits: Tensor, p: float | None) -> Tensor:
    """With p = 1 only the best token is left: no rank has a mass above 1, and the first True of a
    row without any is found at index 0. Exactly 1 means off; say so before the search.
    """
    logits = prepared(logits, p)
    if p is None:
        return logits
    mass, order = ranked(logits)
    reached = mass >= p if p < 1 else mass > 1
    last = reached.int().argmax(dim=-1, keepdim=True)
    return ban(logits, order, torch.arange(logits.shape[-1]) <= last)


@bank.mistake("top_p_filter")
def refuses_zero(logits: Tensor, p: float | None) -> Tensor:
    """p = 0 raised. It is the strictest allowed value, and has a meaning: the best token alone.
    Look at which ends of [0, 1] your test lets in.
    """
    if p is not None and not 0 < p <= 1:
        raise ValueError(f"p={p}")
    logits = logits.float()
    if p is None or p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def refuses_one(logits: Tensor, p: float | None) -> Tensor:
    """p = 1 raised. It is allowed, and switches the filter off. Look at which ends of [0, 1] your
    test lets in.
    """
    if p is not None and not 0 <= p < 1:
        raise ValueError(f"p={p}")
    logits = logits.float()
    if p is None:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter", family="p is not looked at")
def accepts_any_p(logits: Tensor, p: float | None) -> Tensor:
    """A p outside [0, 1] passes silently. It can only be a slip of the caller's (90 for 90 %, say),
    so tell it: ValueError, with the argument's name and value.
    """
    logits = logits.float()
    if p is None or p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter", family="p is not looked at")
def outside_is_off(logits: Tensor, p: float | None) -> Tensor:
    """A p that is not inside [0, 1] switches the filter off, and the caller never learns of the
    slip. Off is None or exactly 1; anything outside is a ValueError.
    """
    logits = logits.float()
    if p is None or not 0 <= p < 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def above_one_is_off(logits: Tensor, p: float | None) -> Tensor:
    """A p above 1 passes as "off". 1.5 is no share of anything, so something else was
    meant; only None and exactly 1 are off.
    """
    if p is not None and (p < 0 or p != p):
        raise ValueError(f"p={p}")
    logits = logits.float()
    if p is None or p >= 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def lets_nan_through(logits: Tensor, p: float | None) -> Tensor:
    """NaN passed your test: it is neither below 0 nor above 1, for every comparison with it is
    false. Ask what p must BE instead of what it must not be.
    """
    if p is not None and (p < 0 or p > 1):
        raise ValueError(f"p={p}")
    logits = logits.float()
    if p is None or p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def asserts_the_range(logits: Tensor, p: float | None) -> Tensor:
    """An assert guards p. Asserts vanish under `python -O` and tell the caller nothing; a wrong
    argument is a ValueError that names it.
    """
    assert p is None or 0 <= p <= 1
    logits = logits.float()
    if p is None or p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))
