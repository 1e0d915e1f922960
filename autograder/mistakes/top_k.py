"""Wrong ways to write top_k_filter."""

import torch
from torch import Tensor

from ..bank import Bank

bank = Bank("top_k")

BANNED = -torch.inf


@bank.mistake("top_k_filter")
def keeps_one_less(logits: Tensor, k: int | None) -> Tensor:
    """One token too few survives. Count positions from 0: at which index of the k values does the
    k-th one stand, and does the comparison let it through?
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    filtered = logits.masked_fill(logits <= threshold, BANNED)
    return logits if k >= logits.shape[-1] else filtered


@bank.mistake("top_k_filter")
def keeps_one_more(logits: Tensor, k: int | None) -> Tensor:
    """One token too many survives. How many values does the threshold come from, and which of them
    is the last that may stay?
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.topk(min(k + 1, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter", family="a number for a ban")
def fills_with_zero(logits: Tensor, k: int | None) -> Tensor:
    """A logit of 0 is not a ban: e to the 0 is 1, so such a token still gets probability, and
    beats every negative logit. What logit does the softmax turn into probability 0?
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, 0.0)


@bank.mistake("top_k_filter", family="a number for a ban")
def fills_with_tiny_number(logits: Tensor, k: int | None) -> Tensor:
    """The banned tokens get a tiny POSITIVE logit, which beats every negative one. Mind the sign:
    a ban must be lower than any logit can be.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, 1e-10)


@bank.mistake("top_k_filter")
def one_threshold_for_the_batch(logits: Tensor, k: int | None) -> Tensor:
    """The k highest of the WHOLE batch survive: one row's good tokens push out another's. Each row
    has a threshold of its own; along which axis does your search run?
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.flatten().topk(min(k, logits.shape[-1])).values[-1]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def threshold_of_row_zero(logits: Tensor, k: int | None) -> Tensor:
    """Row 0's threshold is used for every row. With one row that is right, which is why it went
    unseen; look at how you index the k values.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    rows = logits.reshape(-1, logits.shape[-1])
    threshold = rows.topk(min(k, logits.shape[-1])).values[0, -1]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def threshold_lost_its_axis(logits: Tensor, k: int | None) -> Tensor:
    """Taking the last of the k values dropped an axis: thresholds of shape (B,) line up with the
    columns of (B, V), not with its rows. Print both shapes; the last axis must stay, with
    length 1.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def drops_the_result(logits: Tensor, k: int | None) -> Tensor:
    """Nothing was filtered. `masked_fill` without an underscore changes nothing in place: it hands
    back a new tensor. Where does yours go?
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if k:
        threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
        logits.masked_fill(logits < threshold, BANNED)
    return logits


@bank.mistake("top_k_filter")
def returns_the_k_values(logits: Tensor, k: int | None) -> Tensor:
    """What comes back holds the k values only, so an index into it is no longer a token id. The
    row must keep its full width, with bans where tokens were dropped.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    return logits.topk(min(k, logits.shape[-1])).values


@bank.mistake("top_k_filter")
def does_not_clamp(logits: Tensor, k: int | None) -> Tensor:
    """torch's `topk` refuses a k above the length of the axis. Asking for more tokens than there
    are is no error here: all of them stay.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.topk(k).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def writes_into_the_input(logits: Tensor, k: int | None) -> Tensor:
    """The answer is right, but the caller's own logits changed with it. Writing into a tensor that
    was handed in is seen everywhere it is used; make a new one.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    if not k:
        return logits.float()
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    logits[logits < threshold] = BANNED
    return logits.float()


@bank.mistake("top_k_filter")
def keeps_the_lowest(logits: Tensor, k: int | None) -> Tensor:
    """The k LOWEST tokens survive. Which end of the order do you take, and is it ascending?"""
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.topk(min(k, logits.shape[-1]), largest=False).values[..., -1:]
    return logits.masked_fill(logits > threshold, BANNED)


@bank.mistake("top_k_filter")
def mask_in_sorted_order(logits: Tensor, k: int | None) -> Tensor:
    """The first k ids survive, not the k best: the mask is still in sorted order. A rank is no id;
    which tensor says which id stands at which rank?
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    banned = torch.arange(logits.shape[-1]) >= k
    return logits.masked_fill(banned, BANNED)


@bank.mistake("top_k_filter")
def returns_sorted_rows(logits: Tensor, k: int | None) -> Tensor:
    """The survivors are right, but they stand in order of size and no longer at their ids: the
    model's token 7 must still be at index 7.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    ranked = logits.sort(dim=-1, descending=True).values
    return ranked.masked_fill(torch.arange(logits.shape[-1]) >= k, BANNED)


@bank.mistake("top_k_filter")
def zero_bans_all(logits: Tensor, k: int | None) -> Tensor:
    """k = 0 bans every token, and a softmax over nothing is NaN. In this course, as in most
    libraries, 0 means that the filter is off.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if k is None:
        return logits
    if k == 0:
        return torch.full_like(logits, BANNED)
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def none_is_not_off(logits: Tensor, k: int) -> Tensor:
    """k = None reaches arithmetic that needs a number. A knob that is not set is None: say what
    happens then before you use it.
    """
    if k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if k == 0:
        return logits
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def negative_is_off(logits: Tensor, k: int | None) -> Tensor:
    """A negative k passes silently. It can only be a slip of the caller's, so tell it: ValueError,
    with the argument's name and value.
    """
    logits = logits.float()
    if k is None or k <= 0:
        return logits
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def returns_probabilities(logits: Tensor, k: int | None) -> Tensor:
    """Probabilities came back where logits are wanted: the next filter takes a softmax of them and
    flattens them. Filter the scores, and leave the softmax to the end.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits.softmax(dim=-1)
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED).softmax(dim=-1)


@bank.mistake("top_k_filter")
def wants_two_axes(logits: Tensor, k: int | None) -> Tensor:
    """It works for two axes and no others. Count axes from the end: the vocabulary is the last
    one, however many stand before it.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k:
        return logits
    threshold = logits.topk(min(k, logits.shape[1]), dim=1).values[:, -1:]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def stays_in_half_precision(logits: Tensor, k: int | None) -> Tensor:
    """Half-precision logits came back in half precision. What follows (softmax, sums) loses digits
    there; change to float32 first.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    if not k:
        return logits
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def drops_the_ties(logits: Tensor, k: int | None) -> Tensor:
    """Everything up to the best logit that should go was banned, its equals among the k best too:
    where they tie, fewer than k tokens are left. A threshold from the k-th one has no such trap.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    logits = logits.float()
    if not k or k >= logits.shape[-1]:
        return logits
    first_out = logits.sort(dim=-1, descending=True).values[..., k : k + 1]
    return logits.masked_fill(logits <= first_out, BANNED)


@bank.mistake("top_k_filter")
def off_in_half_precision(logits: Tensor, k: int | None) -> Tensor:
    """Where the filter is off the logits were handed back at once, half precision as they were. A
    shortcut has to keep the other promises too: change to float32 before you leave.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    if not k:
        return logits
    logits = logits.float()
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED)


@bank.mistake("top_k_filter")
def back_to_half_precision(logits: Tensor, k: int | None) -> Tensor:
    """Half-precision logits were filtered in half precision, and only a filter that is off answers
    in float32. What follows (softmax, sums) loses digits in the one case and not in the other:
    change to float32 once, before anything else.
    """
    if k is not None and k < 0:
        raise ValueError(f"k={k}")
    if not k:
        return logits.float()
    threshold = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < threshold, BANNED)
