"""Wrong ways to write causal_mask."""

import torch
from torch import Tensor

from solutions import kv_cache as solution

from ...bank import Bank

bank = Bank("kv_cache")


def refuse_lengths(query_len: int, key_len: int) -> None:
    solution.causal_mask(query_len, key_len)


@bank.mistake("causal_mask", family="top left")
def triangle_top_left(query_len: int, key_len: int) -> Tensor:
    """The triangle starts at the first key, as if the queries were the FIRST positions. With a
    cache they are the last ones: the newest token has to see the whole past. Which key stands at
    the position of query 0?
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len, dtype=torch.bool).tril()


@bank.mistake("causal_mask", family="top left")
def triangle_top_left_unchecked(query_len: int, key_len: int) -> Tensor:
    """The triangle starts at the first key, as if the queries were the FIRST positions. With a
    cache they are the last ones. (And lengths that cannot be have to raise ValueError.)
    """
    return torch.ones(query_len, key_len).tril().bool()


@bank.mistake("causal_mask")
def no_mask_at_all(query_len: int, key_len: int) -> Tensor:
    """Everything is allowed. For one new token that is right, but a prompt of several tokens would
    look into its own future.
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len, dtype=torch.bool)


@bank.mistake("causal_mask")
def no_mask_for_a_prompt(query_len: int, key_len: int) -> Tensor:
    """Without a past everything is allowed. A prompt is read in one pass, but its tokens still may
    not look at what comes after them: the model never did so in training.
    """
    refuse_lengths(query_len, key_len)
    mask = torch.ones(query_len, key_len, dtype=torch.bool)
    return mask if query_len == key_len else mask.tril(key_len - query_len)


@bank.mistake("causal_mask")
def mask_only_without_a_past(query_len: int, key_len: int) -> Tensor:
    """As soon as there is a past, everything is allowed. One new token may see all, but two new
    tokens may not see each other's future: a prompt can come in pieces.
    """
    refuse_lengths(query_len, key_len)
    mask = torch.ones(query_len, key_len, dtype=torch.bool)
    return mask.tril() if query_len == key_len else mask


@bank.mistake("causal_mask")
def not_even_itself(query_len: int, key_len: int) -> Tensor:
    """A position may not look at itself, and the first one at nothing at all. The diagonal belongs
    to what is allowed.
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len - 1)


@bank.mistake("causal_mask")
def sees_one_ahead(query_len: int, key_len: int) -> Tensor:
    """Each query sees one key too many: the very token that it is to predict. In training that
    looks wonderful, and then nothing works. Count which key stands at query 0's own position.
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len + 1)


@bank.mistake("causal_mask")
def allowed_and_forbidden_swapped(query_len: int, key_len: int) -> Tensor:
    """True and False are swapped: here True means "may look". Libraries differ in this, so it is
    worth a look at the docstring each time.
    """
    refuse_lengths(query_len, key_len)
    return ~torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)


@bank.mistake("causal_mask")
def looks_ahead_only(query_len: int, key_len: int) -> Tensor:
    """The upper triangle is allowed: each position sees itself and its future. Which of `tril` and
    `triu` keeps what came before?
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len, dtype=torch.bool).triu(key_len - query_len)


@bank.mistake("causal_mask")
def offset_the_wrong_way(query_len: int, key_len: int) -> Tensor:
    """The triangle was shifted by the past, but to the wrong side: a positive diagonal of `tril`
    lets MORE keys through.
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len, dtype=torch.bool).tril(query_len - key_len)


@bank.mistake("causal_mask")
def keys_by_queries(query_len: int, key_len: int) -> Tensor:
    """The shape is (key_len, query_len). Scores have a row a query and a column a key, and the mask
    lies on top of them.
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len).T


@bank.mistake("causal_mask")
def square_for_all_positions(query_len: int, key_len: int) -> Tensor:
    """The mask has a row for each position, those of the past included. Only the new positions ask:
    which rows of the square are theirs?
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(key_len, key_len, dtype=torch.bool).tril()


@bank.mistake("causal_mask")
def ones_and_zeros(query_len: int, key_len: int) -> Tensor:
    """The mask holds numbers, 1 and 0. `~` makes -2 of a 1, and indexing with numbers picks places
    instead of filtering; make it bool.
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len, dtype=torch.long).tril(key_len - query_len)


@bank.mistake("causal_mask")
def float_ones_and_zeros(query_len: int, key_len: int) -> Tensor:
    """The mask holds floats, 1.0 and 0.0, and many functions ADD a float mask to the scores, where
    0 forbids nothing. Make it bool.
    """
    refuse_lengths(query_len, key_len)
    return torch.ones(query_len, key_len).tril(key_len - query_len)


@bank.mistake("causal_mask")
def minus_infinity_to_add(query_len: int, key_len: int) -> Tensor:
    """This is a mask to be added to the scores, 0 and -inf. Here it is a bool mask: True where a
    query may look. `attend` decides what becomes of it.
    """
    refuse_lengths(query_len, key_len)
    allowed = torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)
    return torch.zeros(query_len, key_len).masked_fill(~allowed, -torch.inf)


@bank.mistake("causal_mask")
def with_batch_and_heads(query_len: int, key_len: int) -> Tensor:
    """The mask came with two more axes in front. It is (query_len, key_len); broadcasting adds rows
    and heads by itself.
    """
    refuse_lengths(query_len, key_len)
    allowed = torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)
    return allowed[None, None]


@bank.mistake("causal_mask")
def lengths_not_checked(query_len: int, key_len: int) -> Tensor:
    """More queries than keys pass without a word, and the first queries may then look at nothing.
    The queries are the last of the keys, so there cannot be more of them: ValueError.
    """
    query_len = max(query_len, 0)
    return torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)


@bank.mistake("causal_mask")
def negative_length_left_to_torch(query_len: int, key_len: int) -> Tensor:
    """A negative length reaches torch, whose RuntimeError does not know your argument's name. Check
    both ends of what is allowed, and raise ValueError.
    """
    if query_len > key_len:
        raise ValueError(f"query_len={query_len}, key_len={key_len}")
    return torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)
