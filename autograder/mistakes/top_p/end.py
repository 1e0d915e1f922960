"""Wrong ways to end the nucleus of top_p_filter."""

import torch
from torch import Tensor

from .common import BANNED, ban, bank, mass_before, nucleus_mask, prepared, ranked, when_on


@bank.mistake("top_p_filter")
@when_on
def drops_the_crossing_token(logits: Tensor, p: float) -> Tensor:
    """The token that takes the mass across p is dropped, so what stays holds LESS than p, and
    nothing at all where the best token crosses alone. Ask of each token how much mass stands before
    it, not up to it.
    """
    mass, order = ranked(logits)
    return ban(logits, order, mass <= p)


@bank.mistake("top_p_filter")
@when_on
def drops_the_crossing_token_but_the_best(logits: Tensor, p: float) -> Tensor:
    """The best token is protected, but any other that takes the mass across p is dropped: what
    stays may hold far less than p. The guard hides the same slip; whose mass does each rank
    compare with p?
    """
    mass, order = ranked(logits)
    keep = mass <= p
    keep[..., 0] = True
    return ban(logits, order, keep)


@bank.mistake("top_p_filter")
@when_on
def keeps_mass_below_p_only(logits: Tensor, p: float) -> Tensor:
    """What stays holds less than p, even where the mass is p exactly: each token is judged by the
    mass that includes itself. The set must REACH p; which token is the last one it needs?
    """
    mass, order = ranked(logits)
    return ban(logits, order, mass < p)


@bank.mistake("top_p_filter")
@when_on
def keeps_mass_below_p_and_the_best(logits: Tensor, p: float) -> Tensor:
    """Beside the best token only those stay whose mass, their own included, is below p. So the set
    never reaches p. Which mass should a rank be judged by?
    """
    mass, order = ranked(logits)
    return ban(logits, order, nucleus_mask(mass, p))


@bank.mistake("top_p_filter")
@when_on
def one_more_at_equality(logits: Tensor, p: float) -> Tensor:
    """Where the mass is p exactly you keep one token more. At least p is reached already, so the
    set is complete; look at your comparison for the case of equality.
    """
    before, order = mass_before(logits)
    return ban(logits, order, before <= p)


@bank.mistake("top_p_filter")
@when_on
def always_one_more(logits: Tensor, p: float) -> Tensor:
    """One token too many stays: the set already holds p without its last member. How often is the
    mask shifted, and by how much?
    """
    before, order = mass_before(logits)
    keep = torch.ones_like(before, dtype=torch.bool)
    keep[..., 1:] = before[..., :-1] < p
    return ban(logits, order, keep)


@bank.mistake("top_p_filter")
@when_on
def shifts_the_wrong_way(logits: Tensor, p: float) -> Tensor:
    """The mask was shifted towards the best token instead of away from it, so two tokens too few
    stay. The question of rank 1 is answered by the mass at rank 0; draw both rows on paper.
    """
    mass, order = ranked(logits)
    keep = torch.zeros_like(mass, dtype=torch.bool)
    keep[..., :-1] = mass[..., 1:] < p
    keep[..., 0] = True
    return ban(logits, order, keep)


@bank.mistake("top_p_filter")
@when_on
def roll_wraps_around(logits: Tensor, p: float) -> Tensor:
    """`roll` carries the last entry round to the front: the best token is judged by the mass of
    the whole row, and banned. What stands before the best token, and who says so in your code?
    """
    mass, order = ranked(logits)
    return ban(logits, order, (mass < p).roll(1, dims=-1))


@bank.mistake("top_p_filter")
@when_on
def zero_keeps_nothing(logits: Tensor, p: float) -> Tensor:
    """With p = 0 no token is left, and a softmax over nothing is NaN. The best token stays whatever
    p is: say so before the mask goes back to the ids.
    """
    before, order = mass_before(logits)
    return ban(logits, order, before < p)


@bank.mistake("top_p_filter")
def zero_is_off(logits: Tensor, p: float | None) -> Tensor:
    """p = 0 switched the filter off. That is the rule for k; here a smaller p is stricter, and 0 is
    the strictest: the best token alone. `if not p` asks about None and 0 at once.
    """
    logits = prepared(logits, p)
    if not p or p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
@when_on
def guards_a_row_instead_of_a_rank(logits: Tensor, p: float) -> Tensor:
    """The guard for the best token fell on the first ROW of the batch, which keeps every token,
    while the others go unguarded. Which axis holds the ranks?
    """
    mass, order = ranked(logits)
    remove = mass > p
    remove[0] = False
    return ban(logits, order, ~remove)


@bank.mistake("top_p_filter")
@when_on
def keeps_all_ties(logits: Tensor, p: float) -> Tensor:
    """Every token as probable as the last of the nucleus stays, though p needs fewer: with eight
    equal tokens half the mass kept all eight. A threshold on the probability cannot count; a mask
    over ranks can.
    """
    before, _ = mass_before(logits)
    probs = logits.softmax(dim=-1)
    in_order = probs.sort(dim=-1, descending=True).values
    threshold = in_order.masked_fill(~nucleus_mask(before, p), 2).amin(dim=-1, keepdim=True)
    return logits.masked_fill(probs < threshold, BANNED)


@bank.mistake("top_p_filter")
@when_on
def drops_all_ties(logits: Tensor, p: float) -> Tensor:
    """Tokens as probable as the last of the nucleus fall with those outside: a strict comparison
    with a probability drops all its equals. Keep by rank, then no two tokens are equal.
    """
    before, _ = mass_before(logits)
    probs = logits.softmax(dim=-1)
    in_order = probs.sort(dim=-1, descending=True).values
    outside = in_order.masked_fill(nucleus_mask(before, p), -1).amax(dim=-1, keepdim=True)
    return logits.masked_fill(probs <= outside, BANNED)
