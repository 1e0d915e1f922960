"""Wrong ways for next_token to take its arguments."""

from dataclasses import replace

import torch
from torch import Tensor

from solutions.sampling import greedy

from .common import (
    Knobs,
    bank,
    drawn,
    filtered,
    look_at_logits,
    look_at_shape,
    look_at_temperature,
    with_knobs,
)


def warm(knobs: Knobs) -> Knobs:
    """Temperature 1 for temperature 0."""
    return replace(knobs, temperature=knobs.temperature or 1.0)


# --- greedy or not ---


@bank.mistake("next_token")
@with_knobs()
def zero_is_refused(logits: Tensor, knobs: Knobs) -> Tensor:
    """Temperature 0 raised: the temperature is applied, or tested, before anyone asks whether this
    is greedy. Nothing can be divided by 0, so greedy must branch off first.
    """
    look_at_logits(logits)
    kept = filtered(logits, knobs)
    return drawn(kept, knobs) if knobs.do_sample else greedy(logits)


@bank.mistake("next_token")
@with_knobs()
def zero_is_off(logits: Tensor, knobs: Knobs) -> Tensor:
    """Temperature 0 was taken for "no temperature", and the draw was that of temperature 1: `if
    temperature` is false for 0. The colder, the nearer to greedy; at 0 it is greedy.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if not knobs.do_sample:
        return greedy(logits)
    return drawn(filtered(logits, warm(knobs)), knobs)


@bank.mistake("next_token")
@with_knobs()
def zero_is_a_small_number(logits: Tensor, knobs: Knobs) -> Tensor:
    """For temperature 0 you draw at a tiny one. That is nearly greedy, but not where two tokens are
    equally good: there chance decides. At 0 the greedy function chooses, and nobody draws.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if not knobs.do_sample:
        return greedy(logits)
    nearly = replace(knobs, temperature=max(knobs.temperature, 1e-5))
    return drawn(filtered(logits, nearly), knobs)


@bank.mistake("next_token")
@with_knobs()
def do_sample_ignored(logits: Tensor, knobs: Knobs) -> Tensor:
    """do_sample=False draws all the same. There are two ways to ask for greedy, temperature 0 and
    this; either is enough.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if knobs.temperature == 0:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs()
def both_or_nothing(logits: Tensor, knobs: Knobs) -> Tensor:
    """Greedy came only with temperature 0 AND do_sample=False together. Either of them is enough:
    which word joins the two in your condition?
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if knobs.temperature == 0 and not knobs.do_sample:
        return greedy(logits)
    return drawn(filtered(logits, warm(knobs)), knobs)


@bank.mistake("next_token")
@with_knobs()
def do_sample_upside_down(logits: Tensor, knobs: Knobs) -> Tensor:
    """With do_sample=True it is greedy, with False it draws: the condition is turned round. Read it
    aloud.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if knobs.temperature == 0 or knobs.do_sample:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs(do_sample=False)
def greedy_by_default(logits: Tensor, knobs: Knobs) -> Tensor:
    """Called without knobs it is greedy. The stub's signature says what the defaults are: it
    samples, at temperature 1, without filters.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if knobs.cold:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs(top_k=50, top_p=0.9)
def filters_by_default(logits: Tensor, knobs: Knobs) -> Tensor:
    """Called without knobs it filters. Defaults of your own surprise those who read the signature:
    a knob that is not set is None, and off.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if knobs.cold:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs()
def greedy_uses_chance(logits: Tensor, knobs: Knobs) -> Tensor:
    """A greedy step drew as well, and threw the draw away: it used up a random number, so whatever
    is drawn next from that generator comes out differently. Decide first, then draw.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    token = drawn(filtered(logits, warm(knobs)), knobs)
    return greedy(logits) if knobs.cold else token


# --- rows of which nothing can be chosen ---


@bank.mistake("next_token", family="greedy takes any row")
@with_knobs()
def greedy_takes_any_row(logits: Tensor, knobs: Knobs) -> Tensor:
    """A greedy step took a row that holds NaN and gave an id, as if nothing were wrong: argmax does
    not complain. The look at the rows must come before the branch.
    """
    look_at_shape(logits)
    look_at_temperature(knobs.temperature)
    if knobs.cold:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs()
def takes_rows_without_a_token(logits: Tensor, knobs: Knobs) -> Tensor:
    """A row in which every token is banned gave an id: a banned one. Where nothing can be chosen,
    NaN or not, say so.
    """
    look_at_shape(logits)
    look_at_temperature(knobs.temperature)
    if logits.isnan().any():
        raise ValueError("a row of logits holds NaN")
    if knobs.cold:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token", family="greedy takes any row")
@with_knobs()
def takes_rows_with_nan(logits: Tensor, knobs: Knobs) -> Tensor:
    """A row that holds NaN gave an id, as if nothing were wrong: argmax takes NaN for the best of
    all. One such number is enough to make the row worthless; look for it before anything else.
    """
    look_at_shape(logits)
    look_at_temperature(knobs.temperature)
    if (logits == -torch.inf).all(dim=-1).any():
        raise ValueError("a row of logits is banned")
    if knobs.cold:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs()
def refuses_banned_tokens(logits: Tensor, knobs: Knobs) -> Tensor:
    """A row with some banned tokens (-inf) was refused. Bans are what filters are for; only a row
    with NaN, or with NO token left, is unusable.
    """
    look_at_shape(logits)
    look_at_temperature(knobs.temperature)
    if not logits.isfinite().all():
        raise ValueError("a row of logits is unusable")
    if knobs.cold:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs()
def makes_the_best_of_any_row(logits: Tensor, knobs: Knobs) -> Tensor:
    """NaN and rows without a token were mended in silence, and an id came out. Whoever made those
    logits has a fault to find, and will not hear of it: ValueError.
    """
    look_at_shape(logits)
    look_at_temperature(knobs.temperature)
    usable = logits.nan_to_num(nan=-1e9, neginf=-1e9)
    if knobs.cold:
        return greedy(usable)
    return drawn(filtered(usable, knobs), knobs)


# --- wrong arguments ---


@bank.mistake("next_token")
@with_knobs()
def takes_a_single_row(logits: Tensor, knobs: Knobs) -> Tensor:
    """A single row without a batch axis passed. The answer then has another shape than everyone
    counts on; logits are (batch, vocab), and anything else is a ValueError.
    """
    look_at_logits(logits if logits.ndim == 2 else logits.reshape(1, -1))
    look_at_temperature(knobs.temperature)
    rows = logits.reshape(-1, logits.shape[-1])
    if knobs.cold:
        return greedy(rows)
    return drawn(filtered(rows, knobs), knobs)


@bank.mistake("next_token")
@with_knobs()
def negative_is_greedy(logits: Tensor, knobs: Knobs) -> Tensor:
    """A negative temperature passed as greedy. Only 0 is; below it there is no temperature, so it
    can only be a slip of the caller's.
    """
    look_at_logits(logits)
    if knobs.temperature <= 0 or not knobs.do_sample:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs()
def any_temperature(logits: Tensor, knobs: Knobs) -> Tensor:
    """A negative temperature passed, and turned the order of the tokens round. You divide by it
    yourself; the function of lesson 2 would have refused it.
    """
    look_at_logits(logits)
    if knobs.cold:
        return greedy(logits)
    divided = logits / knobs.temperature
    return drawn(filtered(divided, replace(knobs, temperature=1.0)), knobs)


@bank.mistake("next_token")
@with_knobs()
def nan_temperature(logits: Tensor, knobs: Knobs) -> Tensor:
    """A temperature of NaN passed: it is not below 0, nor equal to it, for every comparison with it
    is false. Ask what a temperature must BE.
    """
    look_at_logits(logits)
    if knobs.temperature < 0:
        raise ValueError(f"temperature={knobs.temperature}")
    if not knobs.temperature > 0 or not knobs.do_sample:
        return greedy(logits)
    return drawn(filtered(logits, knobs), knobs)


@bank.mistake("next_token")
@with_knobs()
def bends_top_k(logits: Tensor, knobs: Knobs) -> Tensor:
    """A negative top_k was bent or skipped instead of refused: `if top_k and top_k > 0`. The filter
    knows what is off and what is wrong; hand it the knob as it is.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if knobs.cold:
        return greedy(logits)
    return drawn(filtered(logits, replace(knobs, top_k=max(knobs.top_k or 0, 0))), knobs)


@bank.mistake("next_token")
@with_knobs()
def bends_top_p(logits: Tensor, knobs: Knobs) -> Tensor:
    """A top_p above 1 was bent or skipped instead of refused: `if top_p is not None and top_p < 1`.
    The filter knows what is off and what is wrong; hand it the knob as it is.
    """
    look_at_logits(logits)
    look_at_temperature(knobs.temperature)
    if knobs.cold:
        return greedy(logits)
    p = None if knobs.top_p is None or knobs.top_p >= 1 else knobs.top_p
    return drawn(filtered(logits, replace(knobs, top_p=p)), knobs)
