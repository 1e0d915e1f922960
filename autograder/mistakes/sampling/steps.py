"""Wrong ways from the logits to a draw, in next_token."""

from dataclasses import replace

import torch
from torch import Generator, Tensor

from solutions.sampling import sample
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter

from .common import Knobs, bank, drawn, filtered, when_sampling

# --- the temperature ---


@bank.mistake("next_token")
@when_sampling
def temperature_after_the_filters(logits: Tensor, knobs: Knobs) -> Tensor:
    """The temperature comes after top-p, so the nucleus was measured on the distribution of the
    model and not on the one you draw from: it ends too early or too late. Which step is the first?
    """
    kept = top_p_filter(top_k_filter(logits, knobs.top_k), knobs.top_p)
    return drawn(apply_temperature(kept, knobs.temperature), knobs)


@bank.mistake("next_token")
@when_sampling
def temperature_ignored(logits: Tensor, knobs: Knobs) -> Tensor:
    """The temperature has no effect. It is looked at, perhaps compared with 0, but never used on
    the logits; or the result of using it is dropped.
    """
    apply_temperature(logits, knobs.temperature)
    return drawn(top_p_filter(top_k_filter(logits, knobs.top_k), knobs.top_p), knobs)


@bank.mistake("next_token")
@when_sampling
def temperature_upside_down(logits: Tensor, knobs: Knobs) -> Tensor:
    """A high temperature makes the draw sharper, a low one wilder: the logits are multiplied where
    they should be divided. Lesson 2 has the function for it.
    """
    apply_temperature(logits, knobs.temperature)
    return drawn(filtered(logits, replace(knobs, temperature=1 / knobs.temperature)), knobs)


@bank.mistake("next_token")
@when_sampling
def temperature_twice(logits: Tensor, knobs: Knobs) -> Tensor:
    """The temperature was applied twice, which is the same as its square. Look for a second
    division, perhaps beside the softmax.
    """
    logits = apply_temperature(logits, knobs.temperature)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@when_sampling
def temperature_on_the_mass(logits: Tensor, knobs: Knobs) -> Tensor:
    """Probabilities were divided by the temperature and went through a second softmax. Temperature
    is for logits: it comes before the only softmax, which comes last.
    """
    return drawn(filtered(logits.softmax(dim=-1), knobs), knobs)


# --- the filters ---


@bank.mistake("next_token", family="mass of the whole row")
@when_sampling
def top_p_before_top_k(logits: Tensor, knobs: Knobs) -> Tensor:
    """Top-p measured its mass on the whole row, tokens included that top-k bans. What top-k leaves
    is the whole then, renormalised: so top-k comes first, and top-p sees its result.
    """
    logits = apply_temperature(logits, knobs.temperature)
    return drawn(top_k_filter(top_p_filter(logits, knobs.top_p), knobs.top_k), knobs)


@bank.mistake("next_token", family="mass of the whole row")
@when_sampling
def filters_side_by_side(logits: Tensor, knobs: Knobs) -> Tensor:
    """Top-p measured its mass on the whole row, tokens included that top-k bans. What top-k leaves
    is the whole then, renormalised: so top-k comes first, and top-p sees its result.
    """
    logits = apply_temperature(logits, knobs.temperature)
    kept = (top_k_filter(logits, knobs.top_k) != -torch.inf) & (
        top_p_filter(logits, knobs.top_p) != -torch.inf
    )
    return drawn(logits.masked_fill(~kept, -torch.inf), knobs)


@bank.mistake("next_token")
@when_sampling
def top_k_ignored(logits: Tensor, knobs: Knobs) -> Tensor:
    """top_k has no effect: ids come that it bans. Is the filter called, and is it its result that
    goes on to the next step?
    """
    logits = apply_temperature(logits, knobs.temperature)
    top_k_filter(logits, knobs.top_k)
    return drawn(top_p_filter(logits, knobs.top_p), knobs)


@bank.mistake("next_token")
@when_sampling
def top_p_ignored(logits: Tensor, knobs: Knobs) -> Tensor:
    """top_p has no effect: ids come from outside the nucleus. Is the filter called, and is it its
    result that goes on to the softmax?
    """
    logits = top_k_filter(apply_temperature(logits, knobs.temperature), knobs.top_k)
    top_p_filter(logits, knobs.top_p)
    return drawn(logits, knobs)


@bank.mistake("next_token")
@when_sampling
def filters_ignored(logits: Tensor, knobs: Knobs) -> Tensor:
    """Neither filter has any effect: what they return goes nowhere. They make new tensors and leave
    the one they are given as it is.
    """
    logits = apply_temperature(logits, knobs.temperature)
    filtered(logits, knobs)
    return drawn(logits, knobs)


@bank.mistake("next_token")
@when_sampling
def one_filter_or_the_other(logits: Tensor, knobs: Knobs) -> Tensor:
    """With both knobs set, only top-k works: an `elif`, where both filters should come one after
    the other. Each knows itself what None means.
    """
    logits = apply_temperature(logits, knobs.temperature)
    top_p_filter(logits, knobs.top_p)
    logits = (
        top_p_filter(logits, knobs.top_p)
        if knobs.top_k is None
        else top_k_filter(logits, knobs.top_k)
    )
    return drawn(logits, knobs)


@bank.mistake("next_token")
@when_sampling
def knobs_exchanged(logits: Tensor, knobs: Knobs) -> Tensor:
    """top_k went to top_p_filter, and top_p to top_k_filter, which rightly refuse them. Follow each
    knob to the function whose name it bears.
    """
    logits = apply_temperature(logits, knobs.temperature)
    return drawn(top_p_filter(top_k_filter(logits, knobs.top_p), knobs.top_k), knobs)  # type: ignore[arg-type]


# --- softmax and draw ---


@bank.mistake("next_token")
@when_sampling
def draws_from_logits(logits: Tensor, knobs: Knobs) -> Tensor:
    """The draw got logits. They may be negative, and are no shares of anything; what makes
    probabilities of them?
    """
    return sample(filtered(logits, knobs), knobs.generator)


@bank.mistake("next_token")
@when_sampling
def multinomial_on_logits(logits: Tensor, knobs: Knobs) -> Tensor:
    """`multinomial` got logits. It takes weights, and stumbles over the first negative one; what
    makes probabilities of logits?
    """
    return torch.multinomial(filtered(logits, knobs), 1, generator=knobs.generator)


@bank.mistake("next_token")
@when_sampling
def draws_from_log_probabilities(logits: Tensor, knobs: Knobs) -> Tensor:
    """The draw got LOG-probabilities, none of which is above 0. It wants the probabilities
    themselves.
    """
    return sample(filtered(logits, knobs).log_softmax(dim=-1), knobs.generator)


@bank.mistake("next_token")
@when_sampling
def softmax_twice(logits: Tensor, knobs: Knobs) -> Tensor:
    """Softmax was taken twice. The second time a probability of 0 counts as a logit of 0, so banned
    tokens come back, and all shares are flattened.
    """
    probs = filtered(logits, knobs).softmax(dim=-1)
    return drawn(probs, knobs)


@bank.mistake("next_token")
@when_sampling
def sigmoid_for_softmax(logits: Tensor, knobs: Knobs) -> Tensor:
    """A sigmoid looks at each logit alone, so the best token is hardly ahead of a poor one. Softmax
    weighs them against each other.
    """
    return sample(filtered(logits, knobs).sigmoid(), knobs.generator)


@bank.mistake("next_token")
@when_sampling
def softmax_down_the_batch(logits: Tensor, knobs: Knobs) -> Tensor:
    """The softmax ran down the batch: each column sums to 1, not each row. With one row every
    probability became 1. The vocabulary is the last axis.
    """
    probs = filtered(logits, knobs).softmax(dim=0).nan_to_num(nan=0.0)
    return sample(probs, knobs.generator)


@bank.mistake("next_token")
@when_sampling
def evenly_among_the_kept(logits: Tensor, knobs: Knobs) -> Tensor:
    """All tokens that the filters left come equally often. The filters say who may come; how often
    is for the softmax of the kept logits to say.
    """
    kept = filtered(logits, knobs) != -torch.inf
    return sample(kept.float(), knobs.generator)


@bank.mistake("next_token")
@when_sampling
def never_draws(logits: Tensor, knobs: Knobs) -> Tensor:
    """The best token comes every time, also where sampling is asked for. After the softmax a draw
    must follow, not an argmax.
    """
    return filtered(logits, knobs).softmax(dim=-1).argmax(dim=-1, keepdim=True)


@bank.mistake("next_token")
@when_sampling
def next_rank_for_an_id(logits: Tensor, knobs: Knobs) -> Tensor:
    """What came back is a place in the sorted list of survivors, and a rank is no id. Either map it
    back, or keep the row at its full width, as the filters do.
    """
    kept = filtered(logits, knobs).sort(dim=-1, descending=True).values
    return drawn(kept, knobs)


@bank.mistake("next_token")
@when_sampling
def row_zero_for_all(logits: Tensor, knobs: Knobs) -> Tensor:
    """Every row of the batch was drawn from the distribution of row 0. With one row that is right,
    which is why it went unseen.
    """
    probs = filtered(logits, knobs).softmax(dim=-1)
    return sample(probs[:1].expand_as(probs), knobs.generator)


@bank.mistake("next_token")
@when_sampling
def one_token_for_the_batch(logits: Tensor, knobs: Knobs) -> Tensor:
    """One id came for the whole batch. Each row goes on by itself, and needs a token of its own."""
    probs = filtered(logits, knobs).softmax(dim=-1)
    return sample(probs[:1], knobs.generator).expand(len(probs), 1)


# --- the generator ---


@bank.mistake("next_token")
@when_sampling
def generator_not_handed_on(logits: Tensor, knobs: Knobs) -> Tensor:
    """The generator is taken but not handed on to the draw, so a seed is without effect and no run
    can be repeated.
    """
    return sample(filtered(logits, knobs).softmax(dim=-1))


@bank.mistake("next_token")
@when_sampling
def generator_wound_back(logits: Tensor, knobs: Knobs) -> Tensor:
    """The generator is seeded anew for every token, so each is drawn with the same u. Seeding is
    for the caller, once; here it is only used.
    """
    if knobs.generator is not None:
        knobs.generator.manual_seed(knobs.generator.initial_seed())
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@when_sampling
def own_seed(logits: Tensor, knobs: Knobs) -> Tensor:
    """The draw starts from a fixed seed each time, whatever generator was handed in, so each token
    is drawn with the same u. Seeding is for the caller, once.
    """
    probs = filtered(logits, knobs).softmax(dim=-1)
    return sample(probs, Generator().manual_seed(0))


# --- what comes back, what is left behind ---


@bank.mistake("next_token")
@when_sampling
def next_loses_an_axis(logits: Tensor, knobs: Knobs) -> Tensor:
    """Sampled ids came in shape (batch,). The loop appends them to (batch, positions), so the
    answer has a second axis, of length 1.
    """
    return drawn(filtered(logits, knobs), knobs)[:, 0]


@bank.mistake("next_token")
@when_sampling
def returns_the_distribution(logits: Tensor, knobs: Knobs) -> Tensor:
    """The distribution came back, and nobody drew from it. Choosing the token is this function's
    work.
    """
    return filtered(logits, knobs).softmax(dim=-1)


@bank.mistake("next_token")
@when_sampling
def divides_in_place(logits: Tensor, knobs: Knobs) -> Tensor:
    """The token is right, but the caller's logits were changed on the way. `/=` writes into the
    tensor itself; make a new one.
    """
    apply_temperature(logits, knobs.temperature)
    logits /= knobs.temperature
    return drawn(filtered(logits, replace(knobs, temperature=1.0)), knobs)
