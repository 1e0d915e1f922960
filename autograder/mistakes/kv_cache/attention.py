"""Wrong ways to write attend."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ...bank import Bank

bank = Bank("kv_cache")


LOWEST = torch.finfo(torch.float32).min


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def lowest(scores: Tensor) -> float:
    return torch.finfo(scores.dtype).min


@bank.mistake("attend")
def not_scaled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The scores are not divided by sqrt(head_dim). Without it they grow with the size of the
    heads, the softmax turns into an argmax, and a trained model sees other weights than it learned.
    """
    scores = q @ k.transpose(-2, -1)
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def scaled_by_head_dim(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The scores are divided by head_dim itself. A sum of D random products is about sqrt(D) large,
    so it is the root that brings them back to size.
    """
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def scaled_up(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The scores are multiplied by sqrt(head_dim) instead of divided by it."""
    scores = q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def scaled_by_the_number_of_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The scores are divided by the root of the number of KEYS, so they change with each new token.
    Which axis of q is the size of a head?
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-2])
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def mask_ignored(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The mask is not used: each query sees every key, the future and the padding too."""
    return scores_of(q, k).softmax(dim=-1) @ v


@bank.mistake("attend")
def mask_the_wrong_way_round(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The allowed keys were banned, and the forbidden ones were used: True in the mask means that a
    query may look.
    """
    scores = scores_of(q, k)
    return scores.masked_fill(mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def is_causal_with_a_cache(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """`is_causal=True` puts the triangle in the TOP LEFT corner: with one new query and a full
    cache only the first key is seen. Use the mask that came as an argument.
    """
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@bank.mistake("attend")
def mask_added_as_a_number(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The bool mask was added to the scores, as 1 and 0, which forbids nothing. A forbidden score
    has to become so low that nothing is left of it after the softmax.
    """
    return (scores_of(q, k) + mask).softmax(dim=-1) @ v


@bank.mistake("attend")
def mask_multiplied(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Forbidden scores became 0. That is no ban: e to the 0 is 1, and 0 beats every negative score.
    Which score does the softmax turn into weight 0?
    """
    return (scores_of(q, k) * mask).softmax(dim=-1) @ v


@bank.mistake("attend")
def fills_with_tiny_number(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Forbidden scores are filled with a number that is not low enough: a very bad fit among the
    allowed keys may score lower still. Take the lowest number that the dtype has.
    """
    return scores_of(q, k).masked_fill(~mask, -100.0).softmax(dim=-1) @ v


@bank.mistake("attend")
def masked_after_the_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The forbidden weights were set to 0 AFTER the softmax, so the others no longer sum to 1. Ban
    the scores first, and let the softmax share out the whole among what is left.
    """
    return scores_of(q, k).softmax(dim=-1).masked_fill(~mask, 0.0) @ v


@bank.mistake("attend")
def renormalised_after_the_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The softmax ran over all keys and its weights were made to sum to 1 again. If a forbidden key
    fits by far the best, the allowed weights are rounded to 0 before, and 0 / 0 is NaN. Ban the
    scores first.
    """
    weights = scores_of(q, k).softmax(dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True) @ v


@bank.mistake("attend")
def nan_where_nothing_is_allowed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """A query that may look at nothing gives NaN: with -inf everywhere the softmax divides 0 by 0.
    In a padded batch there are such queries, and NaN spreads through the layers. What if the ban
    were a very low finite number?
    """
    return scores_of(q, k).masked_fill(~mask, -torch.inf).softmax(dim=-1) @ v


@bank.mistake("attend")
def too_low_for_half_precision(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """-1e9 is no number in float16, which ends at 65,504. Ask `torch.finfo` for the lowest number
    of the dtype that the scores have.
    """
    return scores_of(q, k).masked_fill(~mask, -1e9).softmax(dim=-1) @ v


@bank.mistake("attend")
def float32_lowest_for_all(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The lowest float32 does not fit into bfloat16 or float16. Ask `torch.finfo` for the dtype
    that the scores have.
    """
    return scores_of(q, k).masked_fill(~mask, LOWEST).softmax(dim=-1) @ v


@bank.mistake("attend")
def softmax_over_the_queries(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The softmax runs over the queries. Each QUERY shares out a whole among its keys, so the
    weights of a row sum to 1: which axis of the scores are the keys?
    """
    scores = scores_of(q, k)
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-2) @ v


@bank.mistake("attend")
def keys_reshaped(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """k was brought to the other shape by `view` or `reshape`, which only reads the same numbers in
    the same order: keys get mixed up. Swapping two axes is `transpose`.
    """
    batch, heads, keys, size = k.shape
    scores = q @ k.reshape(batch, heads, size, keys) / math.sqrt(size)
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def keys_for_values(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The weights were applied to the keys. A key says how well a position fits; what is handed on
    is its value.
    """
    scores = scores_of(q, k)
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ k


@bank.mistake("attend")
def values_for_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The scores were computed with the values. Queries are compared with KEYS; values come in
    after the softmax.
    """
    scores = scores_of(q, v)
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def no_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The raw scores were used as weights. A softmax makes them positive and sum to 1, so that the
    result is a mean of the values.
    """
    return scores_of(q, k).masked_fill(~mask, 0.0) @ v


@bank.mistake("attend")
def best_key_only(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Only the best key counts. Attention is a weighted mean over all allowed keys, not a choice of
    one.
    """
    scores = scores_of(q, k)
    best = scores.masked_fill(~mask, lowest(scores)).argmax(dim=-1)
    return F.one_hot(best, k.shape[-2]).to(v.dtype) @ v


@bank.mistake("attend")
def returns_the_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The weights came back, a number a key. What is wanted is the mean of the values under these
    weights: one more product.
    """
    scores = scores_of(q, k)
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1)


@bank.mistake("attend")
def heads_merged(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The heads came back glued together, (batch, queries, heads x head_dim). The model does that
    itself; here the four axes stay.
    """
    scores = scores_of(q, k)
    answer = scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v
    return answer.transpose(1, 2).flatten(-2)


@bank.mistake("attend")
def weights_shared_by_the_heads(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """All heads use the same weights: the scores were summed over the heads. Each head looks for
    something of its own; multiply the last two axes only.
    """
    scores = scores_of(q, k).mean(dim=1, keepdim=True).expand(-1, q.shape[1], -1, -1)
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def row_zero_for_all(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Row 0's keys serve the whole batch. With one row that is right, which is why it went unseen;
    look for a fixed index 0.
    """
    scores = q @ k[:1].transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def mask_of_row_zero(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """One row's mask is used for the whole batch, so the padding of one text hides the words of
    another. Let the mask broadcast against the scores as it is.
    """
    scores = scores_of(q, k)
    one = mask.reshape(-1, *mask.shape[-2:])[0]
    return scores.masked_fill(~one, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def mask_of_two_axes_only(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """A mask with axes for rows and heads does not fit any more once axes are added in front of it.
    torch lines shapes up from the END: (queries, keys) needs no help, and (batch, 1, queries, keys)
    fits as it is.
    """
    scores = scores_of(q, k)
    return scores.masked_fill(~mask[None, None], lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def scales_q_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The answer is right, but the caller's q was divided with it: `/=` writes into the tensor that
    was handed in. Make a new one.
    """
    q /= math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-2, -1)
    return scores.masked_fill(~mask, lowest(scores)).softmax(dim=-1) @ v


@bank.mistake("attend")
def flips_the_mask_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The answer is right, but the caller's mask is now upside down. The model uses the same mask
    in its next layer; `~` makes a new one.
    """
    scores = scores_of(q, k)
    forbidden = mask.logical_not_()
    return scores.masked_fill(forbidden, lowest(scores)).softmax(dim=-1) @ v
