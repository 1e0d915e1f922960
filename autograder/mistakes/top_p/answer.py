"""Wrong answers of top_p_filter though the nucleus is found: what comes back, how precise."""

import torch
from torch import Tensor

from .common import BANNED, ban, bank, mass_before, nucleus_mask, prepared, when_on

# --- what comes back ---


@bank.mistake("top_p_filter", family="a number for a ban")
@when_on
def fills_with_zero(logits: Tensor, p: float) -> Tensor:
    """A logit of 0 is not a ban: e to the 0 is 1, so such a token still gets probability, and
    beats every negative logit. What logit does the softmax turn into probability 0?
    """
    before, order = mass_before(logits)
    banned = ban(logits, order, nucleus_mask(before, p)) == BANNED
    return logits.masked_fill(banned, 0.0)


@bank.mistake("top_p_filter", family="a number for a ban")
@when_on
def fills_with_tiny_number(logits: Tensor, p: float) -> Tensor:
    """The banned tokens get a tiny POSITIVE logit, which beats every negative one. Mind the sign:
    a ban must be lower than any logit can be.
    """
    before, order = mass_before(logits)
    banned = ban(logits, order, nucleus_mask(before, p)) == BANNED
    return logits.masked_fill(banned, 1e-10)


@bank.mistake("top_p_filter")
@when_on
def fills_with_a_low_number(logits: Tensor, p: float) -> Tensor:
    """The banned tokens get a low number. It works until a model's logits are lower still, and
    nobody can see any more who was banned: use the one value that no logit can have.
    """
    before, order = mass_before(logits)
    banned = ban(logits, order, nucleus_mask(before, p)) == BANNED
    return logits.masked_fill(banned, -1e4)


@bank.mistake("top_p_filter")
def returns_probabilities(logits: Tensor, p: float | None) -> Tensor:
    """Probabilities came back where logits are wanted: whatever comes next takes a softmax of them
    and flattens them. Filter the scores, and leave the softmax to the end.
    """
    logits = prepared(logits, p)
    if p is None or p == 1:
        return logits.softmax(dim=-1)
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p)).softmax(dim=-1)


@bank.mistake("top_p_filter")
def zeroes_probabilities(logits: Tensor, p: float | None) -> Tensor:
    """What comes back are probabilities, the dropped ones 0. As logits, which they are taken for,
    a 0 is no ban at all: e to the 0 is 1.
    """
    logits = prepared(logits, p)
    if p is None or p == 1:
        return logits.softmax(dim=-1)
    before, order = mass_before(logits)
    keep = ban(logits, order, nucleus_mask(before, p)) != BANNED
    return logits.softmax(dim=-1) * keep


@bank.mistake("top_p_filter")
def returns_log_probabilities(logits: Tensor, p: float | None) -> Tensor:
    """The distribution is right, but the kept logits changed: they came back as log-probabilities.
    A filter bans and leaves the rest as it is, or what comes after it works on other scores.
    """
    logits = prepared(logits, p).log_softmax(dim=-1)
    if p is None or p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p)).log_softmax(dim=-1)


@bank.mistake("top_p_filter", family="nothing is banned")
def drops_the_result(logits: Tensor, p: float | None) -> Tensor:
    """Nothing was banned. Either the filled tensor goes nowhere (`masked_fill` without an
    underscore hands back a new one), or the sum never reaches p: log-probabilities are negative,
    and mass is a sum of probabilities.
    """
    logits = prepared(logits, p)
    if p is not None and p != 1:
        before, order = mass_before(logits)
        ban(logits, order, nucleus_mask(before, p))
    return logits


@bank.mistake("top_p_filter")
def returns_the_mask(logits: Tensor, p: float | None) -> Tensor:
    """The mask came back instead of the logits. It says who stays; the next step needs the scores
    of those who do.
    """
    logits = prepared(logits, p)
    if p is None or p == 1:
        return torch.ones_like(logits, dtype=torch.bool)
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p)) != BANNED


@bank.mistake("top_p_filter")
def forgets_to_return(logits: Tensor, p: float | None) -> Tensor | None:
    """None came back: a path through the function ends without `return`. A call of `masked_fill`
    as the last line is no answer yet.
    """
    logits = prepared(logits, p)
    if p is None or p == 1:
        return logits
    before, order = mass_before(logits)
    ban(logits, order, nucleus_mask(before, p))
    return None


@bank.mistake("top_p_filter")
def writes_into_the_input(logits: Tensor, p: float | None) -> Tensor:
    """The answer is right, but the caller's own logits changed with it. Writing into a tensor that
    was handed in is seen everywhere it is used; make a new one.
    """
    prepared(logits, p)
    if p is None or p == 1:
        return logits.float()
    before, order = mass_before(logits.float())
    keep = nucleus_mask(before, p)
    logits[~torch.zeros_like(keep).scatter(-1, order, keep)] = BANNED
    return logits.float()


# --- half precision ---


@bank.mistake("top_p_filter")
def stays_in_half_precision(logits: Tensor, p: float | None) -> Tensor:
    """Half-precision logits came back in half precision, and their many small probabilities were
    added up in it, where each sum is rounded to three digits. Change to float32 first.
    """
    prepared(logits, p)
    if p is None or p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def off_in_half_precision(logits: Tensor, p: float | None) -> Tensor:
    """Where the filter is off the logits were handed back at once, half precision as they were. A
    shortcut has to keep the other promises too: change to float32 before you leave.
    """
    scores = prepared(logits, p)
    if p is None or p == 1:
        return logits
    before, order = mass_before(scores)
    return ban(scores, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def adds_up_in_half_precision(logits: Tensor, p: float | None) -> Tensor:
    """The answer is float32, but the mass was added up in half precision first: three digits are
    too few for hundreds of small terms. The change to float32 must come before the softmax.
    """
    wide = prepared(logits, p)
    if p is None or p == 1:
        return wide
    before, order = mass_before(logits)
    return ban(wide, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
def answers_in_the_input_dtype(logits: Tensor, p: float | None) -> Tensor:
    """The nucleus is right, but it was cast back to the half precision that came in. What follows
    (softmax, sums) loses digits there: the answer stays in float32.
    """
    wide = prepared(logits, p)
    if p is None or p == 1:
        return logits
    before, order = mass_before(wide)
    return ban(logits, order, nucleus_mask(before, p))
