"""Wrong sums in top_p_filter: of other things than probabilities, or over other rows."""

import torch
from torch import Tensor

from .common import BANNED, ban, bank, mass_before, nucleus_mask, when_on

# --- mass of what ---


@bank.mistake("top_p_filter")
@when_on
def adds_up_logits(logits: Tensor, p: float) -> Tensor:
    """You add up logits. p is a share of probability, and logits are scores of any size and sign:
    their sums mean nothing. What turns the ones into the others?
    """
    scores, order = logits.sort(dim=-1, descending=True, stable=True)
    before = scores.cumsum(dim=-1).roll(1, dims=-1)
    before[..., 0] = 0
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter", family="nothing is banned")
@when_on
def adds_up_log_probabilities(logits: Tensor, p: float) -> Tensor:
    """Nothing was banned. Either the filled tensor goes nowhere (`masked_fill` without an
    underscore hands back a new one), or the sum never reaches p: log-probabilities are negative,
    and mass is a sum of probabilities.
    """
    scores, order = logits.log_softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    before = scores.cumsum(dim=-1).roll(1, dims=-1)
    before[..., 0] = 0
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
@when_on
def softmax_overflows(logits: Tensor, p: float) -> Tensor:
    """Large logits made the mass NaN: e to the 200 is more than float32 holds. A good softmax, and
    torch has one, subtracts the row's best logit first, which changes no probability.
    """
    weights = logits.exp()
    probs, order = (weights / weights.sum(dim=-1, keepdim=True)).sort(dim=-1, descending=True)
    return ban(logits, order, nucleus_mask(probs.cumsum(dim=-1) - probs, p))


@bank.mistake("top_p_filter")
@when_on
def threshold_on_each_token(logits: Tensor, p: float) -> Tensor:
    """Each token is compared with p by itself, and hardly any single token has that much. p is what
    the kept ones hold TOGETHER: where is your sum?
    """
    return logits.masked_fill(logits.softmax(dim=-1) < p, BANNED)


@bank.mistake("top_p_filter")
@when_on
def share_of_the_best(logits: Tensor, p: float) -> Tensor:
    """You keep tokens that have at least p times the probability of the best one. That is another
    filter (min-p, the stretch of this lesson); top-p goes by the sum.
    """
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < p * probs.amax(dim=-1, keepdim=True), BANNED)


@bank.mistake("top_p_filter")
@when_on
def share_of_the_count(logits: Tensor, p: float) -> Tensor:
    """You keep a share p of the NUMBER of tokens, so every row keeps equally many. p is a share of
    the probability: a sharp row needs few tokens for it, a flat one many.
    """
    order = logits.argsort(dim=-1, descending=True, stable=True)
    ranks = torch.arange(logits.shape[-1]).expand_as(order)
    return ban(logits, order, ranks < max(1, round(p * logits.shape[-1])))


@bank.mistake("top_p_filter")
@when_on
def keeps_the_tail(logits: Tensor, p: float) -> Tensor:
    """The nucleus is banned and the tail stays: the mask is upside down. `masked_fill` fills where
    the mask is True; is yours True for the tokens that stay or for those that go?
    """
    before, order = mass_before(logits)
    return ban(logits, order, ~nucleus_mask(before, p))


@bank.mistake("top_p_filter", family="1 - p for p")
@when_on
def nucleus_of_the_rest(logits: Tensor, p: float) -> Tensor:
    """What stays holds about 1 - p of the mass instead of p. Counted from the best token down, p is
    how much stays; counted from the worst one up, 1 - p is how much may go.
    """
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, 1 - p))


@bank.mistake("top_p_filter")
@when_on
def mass_counts_the_banned(logits: Tensor, p: float) -> Tensor:
    """Banned tokens (-inf) get a share of the mass, as if their logit were a number. They have
    probability 0: what the others hold is the whole, and p is measured on that.
    """
    before, order = mass_before(logits.nan_to_num(neginf=0.0))
    return ban(logits, order, nucleus_mask(before, p))


@bank.mistake("top_p_filter")
@when_on
def brings_banned_tokens_back(logits: Tensor, p: float) -> Tensor:
    """A token that came in banned (-inf) has a number again. Filters are chained: whatever one has
    banned must still be banned after the next.
    """
    before, order = mass_before(logits)
    return ban(logits.nan_to_num(neginf=-1e9), order, before <= max(p, 1 - 0.01))


# --- rows ---


@bank.mistake("top_p_filter")
@when_on
def one_nucleus_for_the_batch(logits: Tensor, p: float) -> Tensor:
    """The softmax ran over the whole batch, so one row's good tokens use up the mass of another's.
    Each row is a distribution of its own; along which axis does it sum to 1?
    """
    before, order = mass_before(logits.flatten())
    return ban(logits.flatten(), order, nucleus_mask(before, p)).view_as(logits)


@bank.mistake("top_p_filter")
@when_on
def nucleus_along_the_batch(logits: Tensor, p: float) -> Tensor:
    """Probabilities, sort and sum run along axis 0, down the batch. The vocabulary is the LAST
    axis, however many stand before it.
    """
    before, order = mass_before(logits.movedim(0, -1))
    return ban(logits.movedim(0, -1), order, nucleus_mask(before, p)).movedim(-1, 0)


@bank.mistake("top_p_filter")
@when_on
def nucleus_of_row_zero(logits: Tensor, p: float) -> Tensor:
    """Every row is cut as row 0 is: its ids, or its size, serve for all. With one row that is
    right, which is why it went unseen.
    """
    before, order = mass_before(logits.reshape(-1, logits.shape[-1])[0])
    keep = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, nucleus_mask(before, p))
    return logits.masked_fill(~keep, BANNED)


@bank.mistake("top_p_filter")
@when_on
def size_of_row_zero(logits: Tensor, p: float) -> Tensor:
    """Every row keeps as many tokens as row 0 needs. Sharp rows need few, flat rows many; does the
    number of kept tokens have one entry a row?
    """
    before, order = mass_before(logits)
    keep = nucleus_mask(before, p).reshape(-1, logits.shape[-1])[0]
    return ban(logits, order, keep.expand_as(logits))


@bank.mistake("top_p_filter")
@when_on
def size_of_the_widest_row(logits: Tensor, p: float) -> Tensor:
    """All rows keep as many tokens as the flattest row needs. One number for the whole batch is too
    many for the sharp rows; each row has a size of its own.
    """
    before, order = mass_before(logits)
    size = nucleus_mask(before, p).sum(dim=-1).max()
    return ban(logits, order, (torch.arange(logits.shape[-1]) < size).expand_as(logits))


@bank.mistake("top_p_filter")
@when_on
def wants_two_axes(logits: Tensor, p: float) -> Tensor:
    """It works for two axes and no others. Count axes from the end: the vocabulary is the last
    one, however many stand before it.
    """
    probs, order = logits.softmax(dim=1).sort(dim=1, descending=True, stable=True)
    keep = torch.ones_like(probs, dtype=torch.bool)
    keep[:, 1:] = probs.cumsum(dim=1)[:, :-1] < p
    return logits.masked_fill(~torch.zeros_like(keep).scatter(1, order, keep), BANNED)
