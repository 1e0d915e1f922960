"""Wrong ways from ranks to ids, in top_p_filter."""

from torch import Tensor

from .common import BANNED, ban, bank, mass_before, nucleus_mask, when_on


@bank.mistake("top_p_filter")
@when_on
def mask_in_sorted_order(logits: Tensor, p: float) -> Tensor:
    """The first ids survive, not the best ones: the mask is still in sorted order. Entry 0 of it
    speaks of the best token, whose id is another; which tensor says which?
    """
    before, _ = mass_before(logits)
    return logits.masked_fill(~nucleus_mask(before, p), BANNED)


@bank.mistake("top_p_filter")
@when_on
def gathers_instead_of_scattering(logits: Tensor, p: float) -> Tensor:
    """`gather` READS at the ids, and so sorts the mask a second time; what you want is to WRITE
    each rank's answer at its id. For two tokens both look the same, for three they do not.
    """
    before, order = mass_before(logits)
    return logits.masked_fill(~nucleus_mask(before, p).gather(-1, order), BANNED)


@bank.mistake("top_p_filter")
@when_on
def returns_sorted_rows(logits: Tensor, p: float) -> Tensor:
    """The survivors are right, but they stand in order of size and no longer at their ids: the
    model's token 7 must still be at index 7.
    """
    before, order = mass_before(logits)
    return logits.gather(-1, order).masked_fill(~nucleus_mask(before, p), BANNED)


@bank.mistake("top_p_filter")
@when_on
def does_not_sort(logits: Tensor, p: float) -> Tensor:
    """The probabilities are added up in the order of ids, so the set holds the FIRST tokens of the
    vocabulary, good or bad. What must come before the sum?
    """
    mass = logits.softmax(dim=-1).cumsum(dim=-1)
    before = mass.roll(1, dims=-1)
    before[..., 0] = 0
    return logits.masked_fill(~nucleus_mask(before, p), BANNED)


@bank.mistake("top_p_filter")
@when_on
def sorts_ascending(logits: Tensor, p: float) -> Tensor:
    """The set is filled from the WORST token up: the sort is ascending. Either turn it round, or
    turn the rule round as well; half of it is worse than nothing.
    """
    probs, order = logits.softmax(dim=-1).sort(dim=-1, stable=True)
    before = probs.cumsum(dim=-1).roll(1, dims=-1)
    before[..., 0] = 0
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter", family="1 - p for p")
@when_on
def ascending_with_p_for_its_rest(logits: Tensor, p: float) -> Tensor:
    """What stays holds about 1 - p of the mass instead of p. Counted from the best token down, p is
    how much stays; counted from the worst one up, 1 - p is how much may go.
    """
    probs, order = logits.softmax(dim=-1).sort(dim=-1, stable=True)
    keep = probs.cumsum(dim=-1) > p
    keep[..., -1] = True
    return ban(logits, order, keep)
