"""Wrong ways to write greedy."""

import torch
from torch import Tensor

from .common import bank, look_at_shape


@bank.mistake("greedy")
def argmax_of_the_batch(logits: Tensor) -> Tensor:
    """`argmax` without an axis flattens the batch: one number came back, the place of the best
    logit among ALL rows. Each row chooses for itself; along which axis?
    """
    look_at_shape(logits)
    return logits.argmax()


@bank.mistake("greedy")
def argmax_of_the_batch_in_shape(logits: Tensor) -> Tensor:
    """The best logit of the whole batch decides: its place in the flattened batch is no token id.
    Each row chooses for itself; along which axis?
    """
    look_at_shape(logits)
    return logits.argmax().expand(len(logits), 1)


@bank.mistake("greedy")
def greedy_loses_an_axis(logits: Tensor) -> Tensor:
    """The ids are right, but in shape (batch,). The next step appends them to (batch, positions),
    so the axis must stay, with length 1: what does `argmax` offer for that?
    """
    look_at_shape(logits)
    return logits.argmax(dim=-1)


@bank.mistake("greedy")
def argmax_down_the_batch(logits: Tensor) -> Tensor:
    """For each TOKEN you chose the best row, not for each row the best token: the maximum runs down
    the batch. The vocabulary is the last axis.
    """
    look_at_shape(logits)
    return logits.argmax(dim=0, keepdim=True)


@bank.mistake("greedy")
def argmax_down_the_batch_turned(logits: Tensor) -> Tensor:
    """The maximum runs down the batch, so each answer is the number of a ROW. With as many rows as
    tokens no error says so. The vocabulary is the last axis.
    """
    look_at_shape(logits)
    return logits.argmax(dim=0)[:, None]


@bank.mistake("greedy")
def last_of_equals(logits: Tensor) -> Tensor:
    """Of several best tokens the LAST was taken. The course promises the lowest id, so that greedy
    text is the same everywhere; which end does your search start from?
    """
    look_at_shape(logits)
    return logits.shape[-1] - 1 - logits.flip(-1).argmax(dim=-1, keepdim=True)


@bank.mistake("greedy")
def worst_token(logits: Tensor) -> Tensor:
    """The WORST token was taken. Greedy takes the highest logit; look for a min, or for a sort that
    is ascending.
    """
    look_at_shape(logits)
    return logits.argmin(dim=-1, keepdim=True)


@bank.mistake("greedy")
def value_for_an_id(logits: Tensor) -> Tensor:
    """What came back is the highest LOGIT, not the id that has it. `max` returns two things, values
    and indices; which one is the token?
    """
    look_at_shape(logits)
    return logits.max(dim=-1, keepdim=True).values


@bank.mistake("greedy")
def greedy_rank_for_an_id(logits: Tensor) -> Tensor:
    """The answer is 0 for every row: the best token stands at rank 0 after a sort, but a rank is no
    id. The sort also returns which id stands at each rank.
    """
    look_at_shape(logits)
    return logits.sort(dim=-1, descending=True).values.argmax(dim=-1, keepdim=True)


@bank.mistake("greedy")
def probabilities_for_ids(logits: Tensor) -> Tensor:
    """A distribution came back. Greedy chooses: one id a row, for which no softmax is needed, since
    it keeps the order.
    """
    look_at_shape(logits)
    return logits.softmax(dim=-1)


@bank.mistake("greedy")
def highest_magnitude(logits: Tensor) -> Tensor:
    """The logit farthest from 0 was taken. A logit of -4 is a poor token, not a strong one: the
    sign counts.
    """
    look_at_shape(logits)
    return logits.masked_fill(logits == -torch.inf, 0).abs().argmax(dim=-1, keepdim=True)


@bank.mistake("greedy")
def takes_any_shape(logits: Tensor) -> Tensor:
    """Logits that are not (batch, vocab) passed. With (batch, positions, vocab) it would choose a
    token for every position; whoever hands those in forgot a step, so tell them: ValueError.
    """
    return logits.argmax(dim=-1, keepdim=True)


@bank.mistake("greedy")
def refuses_three_axes_only(logits: Tensor) -> Tensor:
    """A single row without a batch axis passed. What comes back has lost its batch axis too, and
    the next step cannot append it: exactly two axes are allowed.
    """
    if logits.ndim > 2:
        raise ValueError(f"logits has shape {tuple(logits.shape)}")
    return logits.argmax(dim=-1, keepdim=True)


@bank.mistake("greedy")
def asserts_the_shape(logits: Tensor) -> Tensor:
    """An assert guards the shape. Asserts vanish under `python -O` and tell the caller nothing; a
    wrong argument is a ValueError that names it.
    """
    assert logits.ndim == 2
    return logits.argmax(dim=-1, keepdim=True)


@bank.mistake("greedy", family="ids that are no int64")
def greedy_ids_of_int32(logits: Tensor) -> Tensor:
    """The ids are right, but not int64, in which torch keeps indices: an embedding or a `gather`
    will not take them, or turns the whole sequence into another dtype.
    """
    look_at_shape(logits)
    return logits.argmax(dim=-1, keepdim=True).int()


@bank.mistake("greedy")
def ids_of_float(logits: Tensor) -> Tensor:
    """The ids came back as floats, which no embedding can look up. Where was a tensor of floats
    filled with them? Ids are int64.
    """
    look_at_shape(logits)
    return logits.argmax(dim=-1, keepdim=True).float()
