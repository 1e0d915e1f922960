"""Wrong ways to write prefill and decode_step."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ...bank import Bank

bank = Bank("kv_cache")


# --- prefill ---


def refuse_empty(ids: Tensor) -> None:
    if ids.shape[1] == 0:
        raise ValueError("ids hold no position")


@bank.mistake("prefill")
def logits_of_the_first(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The logits of the FIRST position came back. The next token follows the last one that was
    read.
    """
    refuse_empty(ids)
    return model(ids, cache=cache, attention_mask=attention_mask)[:, 0]


@bank.mistake("prefill")
def logits_of_every_position(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The logits of all positions came back, (batch, pos, vocab). Only the last position says what
    comes next; lesson 1 built a function that picks it.
    """
    refuse_empty(ids)
    return model(ids, cache=cache, attention_mask=attention_mask)


@bank.mistake("prefill")
def last_row_of_the_batch(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The last ROW was taken, not the last position: `logits[-1]` indexes the batch. Which axis are
    the positions?
    """
    refuse_empty(ids)
    return model(ids, cache=cache, attention_mask=attention_mask)[-1]


@bank.mistake("prefill")
def axis_kept(model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None) -> Tensor:
    """The answer still has an axis of length 1 for the position. `-1:` keeps it, `-1` drops it, and
    (batch, vocab) is wanted.
    """
    refuse_empty(ids)
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1:]


@bank.mistake("prefill")
def mean_over_the_prompt(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The logits were averaged over the prompt. Each position answers another question; only the
    last one asks what comes next.
    """
    refuse_empty(ids)
    return model(ids, cache=cache, attention_mask=attention_mask).mean(dim=1)


@bank.mistake("prefill")
def one_by_one(model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None) -> Tensor:
    """The answer is right, but the prompt went through the model token by token. All its tokens are
    known, so one pass can read them in parallel: that is what makes prefill fast.
    """
    refuse_empty(ids)
    past = cache.length
    for t in range(ids.shape[1]):
        mask = None if attention_mask is None else attention_mask[:, : past + t + 1]
        logits = model(ids[:, t : t + 1], cache=cache, attention_mask=mask)
    last: Tensor = logits[:, -1]
    return last


@bank.mistake("prefill")
def all_but_the_last(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The last token of the prompt was not read, so the logits are those for a token that is
    already there. Where does your slice end?
    """
    refuse_empty(ids)
    mask = None if attention_mask is None else attention_mask[:, :-1]
    logits = model(ids[:, :-1], cache=cache, attention_mask=mask)
    last: Tensor = logits[:, -1]
    return last


@bank.mistake("prefill")
def last_token_read_twice(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The last token of the prompt went through the model twice, so the cache holds it twice, and
    every position after it is one too far. The pass over the prompt already gives its logits.
    """
    refuse_empty(ids)
    model(ids, cache=cache, attention_mask=attention_mask)
    if attention_mask is not None:
        attention_mask = F.pad(attention_mask, (0, 1), value=1)
    logits = model(ids[:, -1:], cache=cache, attention_mask=attention_mask)
    last: Tensor = logits[:, -1]
    return last


@bank.mistake("prefill")
def cache_not_passed(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The model ran without the cache: the logits of a first piece are right, but nothing was kept.
    Hand the cache to the model.
    """
    refuse_empty(ids)
    if attention_mask is not None:
        attention_mask = attention_mask[:, -ids.shape[1] :]
    logits = model(ids, attention_mask=attention_mask)
    last: Tensor = logits[:, -1]
    return last


@bank.mistake("prefill")
def starts_over(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The cache was emptied first, and with it the piece of the prompt that it held. Whether a text
    goes on or starts anew is for the caller to say.
    """
    refuse_empty(ids)
    cache.reset()
    logits = model(ids, cache=cache, attention_mask=attention_mask)
    last: Tensor = logits[:, -1]
    return last


@bank.mistake("prefill")
def mask_not_passed(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The attention mask got lost on the way, and padding was read as text. Hand it on to the
    model.
    """
    refuse_empty(ids)
    return model(ids, cache=cache)[:, -1]


@bank.mistake("prefill")
def mask_of_this_piece_only(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The mask was cut to the new positions. It covers all positions so far: the past may hold
    padding too.
    """
    refuse_empty(ids)
    if attention_mask is not None:
        attention_mask = attention_mask[:, -ids.shape[1] :]
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1]


@bank.mistake("prefill")
def mask_swapped(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The mask was turned around on its way to the model: 1 is a real token there too, 0 padding.
    Hand it on as it is.
    """
    refuse_empty(ids)
    if attention_mask is not None:
        attention_mask = 1 - attention_mask
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1]


@bank.mistake("prefill")
def padding_turned_into_zeros(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The masked tokens were replaced by 0 instead of being masked. Id 0 is a token like any other,
    and it still takes a position: the model needs the mask.
    """
    refuse_empty(ids)
    if attention_mask is not None:
        ids = ids * attention_mask[:, -ids.shape[1] :]
    return model(ids, cache=cache)[:, -1]


@bank.mistake("prefill")
def empty_prompt_passes(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """An empty prompt ends in an IndexError, which says nothing to the caller. There is no last
    position to answer from: raise ValueError before the model runs.
    """
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1]


@bank.mistake("prefill")
def empty_prompt_gives_zeros(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """An empty prompt gave logits out of nothing. No token was read, so there is nothing to predict
    from: raise ValueError.
    """
    if ids.shape[1] == 0:
        return torch.zeros(len(ids), model.vocab_size)
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1]


@bank.mistake("prefill")
def next_token_of_the_prompt(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The best token came back instead of the logits. Whether to take the best one or to draw is
    not decided here.
    """
    refuse_empty(ids)
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1].argmax(-1, keepdim=True)


@bank.mistake("prefill")
def probabilities_of_the_prompt(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """Probabilities came back. Penalty, temperature and filters want logits; leave the softmax to
    the end.
    """
    refuse_empty(ids)
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1].softmax(dim=-1)


# --- decode_step ---


def refuse_shape(token: Tensor) -> None:
    if token.ndim != 2 or token.shape[1] != 1:
        raise ValueError(f"token has shape {tuple(token.shape)}")


@bank.mistake("decode_step")
def forgets_the_cache(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The new token went through the model without the cache: it stands at position 0 and sees
    nothing of the text.
    """
    refuse_shape(token)
    mask = None if attention_mask is None else attention_mask[:, -1:]
    logits = model(token, attention_mask=mask)
    last: Tensor = logits[:, -1]
    return last


@bank.mistake("decode_step")
def token_read_twice(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The token went through the model twice and stands in the cache twice. One pass both stores it
    and gives its logits.
    """
    refuse_shape(token)
    model(token, cache=cache, attention_mask=attention_mask)
    mask = None if attention_mask is None else F.pad(attention_mask, (0, 1), value=1)
    logits = model(token, cache=cache, attention_mask=mask)
    last: Tensor = logits[:, -1]
    return last


@bank.mistake("decode_step")
def empties_the_cache(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The cache was emptied before the token was read, so the token stands alone at position 0. The
    past is the point of the cache.
    """
    refuse_shape(token)
    cache.reset()
    mask = None if attention_mask is None else attention_mask[:, -1:]
    logits = model(token, cache=cache, attention_mask=mask)
    last: Tensor = logits[:, -1]
    return last


@bank.mistake("decode_step")
def keeps_the_position_axis(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The answer has an axis for the position, (batch, 1, vocab). What follows wants (batch,
    vocab): take the last position out.
    """
    refuse_shape(token)
    return model(token, cache=cache, attention_mask=attention_mask)


@bank.mistake("decode_step")
def squeezes_everything(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """`squeeze()` drops EVERY axis of length 1, the batch too if it has one row. Name the axis that
    is to go.
    """
    refuse_shape(token)
    logits: Tensor = model(token, cache=cache, attention_mask=attention_mask)
    return logits.squeeze()


@bank.mistake("decode_step")
def first_row_only(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """Only one row's logits came back, for the whole batch: the index in front is the batch, not
    the position.
    """
    refuse_shape(token)
    return model(token, cache=cache, attention_mask=attention_mask)[-1]


@bank.mistake("decode_step")
def mask_left_out(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The attention mask got lost, so the new token sees the padding of its row, and its position
    counts the padding too. Hand it on to the model.
    """
    refuse_shape(token)
    return model(token, cache=cache)[:, -1]


@bank.mistake("decode_step", family="part of the mask")
def mask_of_the_token_only(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The model got a part of the mask only. It covers all positions so far: the past, which may
    hold padding, AND the new token. Hand it on whole.
    """
    refuse_shape(token)
    mask = None if attention_mask is None else attention_mask[:, -1:]
    return model(token, cache=cache, attention_mask=mask)[:, -1]


@bank.mistake("decode_step", family="part of the mask")
def mask_of_the_past_only(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The mask that the model got lacks the column of the new token. It covers all positions so
    far, the new one included: hand it on whole.
    """
    refuse_shape(token)
    mask = None if attention_mask is None else attention_mask[:, :-1]
    return model(token, cache=cache, attention_mask=mask)[:, -1]


@bank.mistake("decode_step")
def any_shape_passes(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """A token of another shape than (batch, 1) passes. It is mostly a whole text, sent by mistake,
    that would be read a second time: raise ValueError.
    """
    return model(token, cache=cache, attention_mask=attention_mask)[:, -1]


@bank.mistake("decode_step")
def takes_the_last_of_many(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """A whole text was accepted, and all but its last token dropped in silence. If the caller sends
    more than one token, something is wrong there: raise ValueError.
    """
    return model(token[:, -1:], cache=cache, attention_mask=attention_mask)[:, -1]


@bank.mistake("decode_step")
def number_of_axes_not_checked(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """A token of shape (batch,) ends in an IndexError: its second axis is asked for before anyone
    knows that there is one. Check the number of axes first.
    """
    if token.shape[1] != 1:
        raise ValueError(f"token has shape {tuple(token.shape)}")
    return model(token, cache=cache, attention_mask=attention_mask)[:, -1]


@bank.mistake("decode_step")
def only_too_many_are_refused(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """More than one token is refused, none at all is not. One is neither."""
    if token.ndim != 2 or token.shape[1] > 1:
        raise ValueError(f"token has shape {tuple(token.shape)}")
    return model(token, cache=cache, attention_mask=attention_mask)[:, -1]


@bank.mistake("decode_step")
def returns_the_next_token(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    """The best token came back instead of the logits. Penalty, temperature and the draw come after
    this step and want logits.
    """
    refuse_shape(token)
    logits: Tensor = model(token, cache=cache, attention_mask=attention_mask)
    return logits[:, -1].argmax(dim=-1, keepdim=True)
