"""Wrong ways to write inverse_cdf: where u falls, and on which line."""

import torch
from torch import Tensor

from .common import bank, line, look_at, look_at_rows, look_at_u

# --- where u falls ---


@bank.mistake("inverse_cdf", family="a step belongs to both sides")
def searches_the_left_side(probs: Tensor, u: Tensor) -> Tensor:
    """A u just at the end of a stretch was given to that stretch, and u = 0 to an id of probability
    0. Stretches are half open: wanted is the first id whose cumulative mass is ABOVE u.
    """
    look_at(probs, u)
    cdf = line(probs)
    return torch.searchsorted(cdf, u.double().clamp(max=1 - 2**-53)[:, None])


@bank.mistake("inverse_cdf", family="a step belongs to both sides")
def at_least_u(probs: Tensor, u: Tensor) -> Tensor:
    """A u just at the end of a stretch was given to that stretch, and u = 0 to an id of probability
    0. Stretches are half open: wanted is the first id whose cumulative mass is ABOVE u.
    """
    look_at(probs, u)
    reached = line(probs) >= u.double()[:, None].contiguous()
    return reached.int().argmax(dim=-1, keepdim=True)


@bank.mistake("inverse_cdf")
def last_step_before_u(probs: Tensor, u: Tensor) -> Tensor:
    """The answer is one id too low: you take the last step that u has passed, which is the end of
    the stretch BEFORE the one where u lies.
    """
    look_at(probs, u)
    found = torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    return (found - 1).clamp(min=0)


@bank.mistake("inverse_cdf")
def one_id_too_far(probs: Tensor, u: Tensor) -> Tensor:
    """The answer is one id too high. The number of steps that u has passed IS the id, since ids
    start at 0; nothing needs adding.
    """
    look_at(probs, u)
    found = torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    return (found + 1).clamp(max=probs.shape[-1] - 1)


@bank.mistake("inverse_cdf")
def nearest_step(probs: Tensor, u: Tensor) -> Tensor:
    """You take the step NEAREST to u. u lies on one stretch, whichever of its two ends is nearer:
    the first step above u ends it.
    """
    look_at(probs, u)
    distance = (line(probs) - u.double()[:, None].contiguous()).abs()
    return distance.argmin(dim=-1, keepdim=True)


@bank.mistake("inverse_cdf")
def from_the_other_end(probs: Tensor, u: Tensor) -> Tensor:
    """The line is laid from its other end: 1 - u for u, or the ids in reverse. As a sampler that is
    as good, but the same u must give everyone the same id.
    """
    look_at(probs, u)
    turned = (1 - u.double()).clamp(max=1 - 2**-53)
    return torch.searchsorted(line(probs), turned[:, None], right=True)


@bank.mistake("inverse_cdf")
def in_order_of_probability(probs: Tensor, u: Tensor) -> Tensor:
    """The stretches are laid in order of probability instead of id. As a sampler that is as good,
    but the same u must give everyone the same id; no sort is needed here.
    """
    look_at(probs, u)
    ordered, ids = probs.sort(dim=-1, descending=True, stable=True)
    rank = torch.searchsorted(line(ordered), u.double()[:, None].contiguous(), right=True)
    return ids.gather(-1, rank)


@bank.mistake("inverse_cdf")
def cdf_rank_for_an_id(probs: Tensor, u: Tensor) -> Tensor:
    """What came back is a rank in the sorted row, and a rank is no id. Why sort at all? Any order
    gives each id its share, so take that of the ids.
    """
    look_at(probs, u)
    ordered = probs.sort(dim=-1, descending=True).values
    return torch.searchsorted(line(ordered), u.double()[:, None].contiguous(), right=True)


@bank.mistake("inverse_cdf")
def counts_the_possible_only(probs: Tensor, u: Tensor) -> Tensor:
    """Ids of probability 0 were taken out first, so the answer counts the others only and is too
    low behind each gap. They need no special care: a stretch of length 0 is never hit.
    """
    look_at(probs, u)
    answers = []
    for row, at in zip(probs, u.double(), strict=True):
        possible = row[row > 0]
        answers.append(torch.searchsorted(line(possible[None])[0], at, right=True))
    return torch.stack(answers)[:, None]


@bank.mistake("inverse_cdf")
def most_probable(probs: Tensor, u: Tensor) -> Tensor:
    """The most probable id comes whatever u is. That is greedy; here u decides, and each id has as
    much of the line as its probability.
    """
    look_at(probs, u)
    return probs.argmax(dim=-1, keepdim=True)


@bank.mistake("inverse_cdf")
def share_of_the_count(probs: Tensor, u: Tensor) -> Tensor:
    """u was multiplied by the number of ids, which gives each the same length. The lengths are the
    probabilities.
    """
    look_at(probs, u)
    return (u.double() * probs.shape[-1]).long().clamp(max=probs.shape[-1] - 1)[:, None]


@bank.mistake("inverse_cdf")
def compares_single_probabilities(probs: Tensor, u: Tensor) -> Tensor:
    """u is compared with each probability by itself. It lies on a LINE of stretches: what counts is
    where each one ends, the sum of all up to it.
    """
    look_at(probs, u)
    return (probs.double() > u.double()[:, None].contiguous()).int().argmax(dim=-1, keepdim=True)


@bank.mistake("inverse_cdf")
def takes_a_softmax(probs: Tensor, u: Tensor) -> Tensor:
    """The probabilities went through a softmax, which flattens them and gives the impossible ids a
    share. They are a distribution already; at most divide by their sum.
    """
    look_at(probs, u)
    cdf = line(probs.double().softmax(dim=-1))
    return torch.searchsorted(cdf, u.double()[:, None].contiguous(), right=True)


# --- which line ---


@bank.mistake("inverse_cdf")
def does_not_normalise(probs: Tensor, u: Tensor) -> Tensor:
    """The mass of a row is hardly ever 1, and yours is taken as if it were: where it is less, a
    high u falls off the end, and the answer is no id. Measure u against the whole that there is.
    """
    look_at(probs, u)
    return torch.searchsorted(
        probs.double().cumsum(dim=-1), u.double()[:, None].contiguous(), right=True
    )


@bank.mistake("inverse_cdf")
def clamps_to_the_last_id(probs: Tensor, u: Tensor) -> Tensor:
    """A u beyond the mass was given to the LAST id, which may have probability 0, and weights of a
    larger sum are cut off. It is the mass that must fit the line, not the answer the vocabulary.
    """
    look_at(probs, u)
    found = torch.searchsorted(
        probs.double().cumsum(dim=-1), u.double()[:, None].contiguous(), right=True
    )
    return found.clamp(max=probs.shape[-1] - 1)


@bank.mistake("inverse_cdf")
def compares_bare_sums(probs: Tensor, u: Tensor) -> Tensor:
    """Where no sum is above u, `argmax` of nothing but False is 0: the first id, whoever it is. The
    line must reach to 1 whatever the weights add up to: normalise, and do it in float64.
    """
    look_at(probs, u)
    return (probs.cumsum(dim=-1) > u[:, None]).int().argmax(dim=-1, keepdim=True)


@bank.mistake("inverse_cdf", family="float32")
def adds_up_in_float32(probs: Tensor, u: Tensor) -> Tensor:
    """The mass was added up, or divided by, in float32, which has seven digits: next to a large
    weight the small ones get lost. Change to float64 before anything else.
    """
    look_at(probs, u)
    cdf = probs.float().cumsum(dim=-1)
    cdf = cdf / cdf[:, -1:]
    return torch.searchsorted(cdf, u.float().clamp(max=1 - 2**-24)[:, None], right=True)


@bank.mistake("inverse_cdf", family="float32")
def normalises_in_float32(probs: Tensor, u: Tensor) -> Tensor:
    """The mass was added up, or divided by, in float32, which has seven digits: next to a large
    weight the small ones get lost. Change to float64 before anything else.
    """
    look_at(probs, u)
    shares = probs.float() / probs.float().sum(dim=-1, keepdim=True)
    cdf = shares.double().cumsum(dim=-1).contiguous()
    return torch.searchsorted(cdf, u.double()[:, None].contiguous(), right=True).clamp(
        max=probs.shape[-1] - 1
    )


@bank.mistake("inverse_cdf")
def rounds_u_to_float32(probs: Tensor, u: Tensor) -> Tensor:
    """u was rounded to float32, where the largest number below 1 becomes 1 itself, and falls off
    the line. Bring both, the mass and u, to float64.
    """
    look_at(probs, u)
    return torch.searchsorted(line(probs), u.float().double()[:, None], right=True)


@bank.mistake("inverse_cdf")
def u_of_row_zero(probs: Tensor, u: Tensor) -> Tensor:
    """The u of row 0 decided for every row. Each row has its own; which axis must be added to u so
    that it lines up with the rows?
    """
    look_at(probs, u)
    return torch.searchsorted(line(probs), u.double()[:1].repeat(len(u))[:, None], right=True)


@bank.mistake("inverse_cdf")
def line_of_row_zero(probs: Tensor, u: Tensor) -> Tensor:
    """All rows were looked up on the line of row 0. With equal rows that is right, which is why it
    went unseen.
    """
    look_at(probs, u)
    return torch.searchsorted(line(probs)[0], u.double()[:, None].contiguous(), right=True)


@bank.mistake("inverse_cdf")
def adds_up_down_the_batch(probs: Tensor, u: Tensor) -> Tensor:
    """The sums run down the batch, from row to row. Each row is a line of its own: along which axis
    lie its probabilities?
    """
    look_at(probs, u)
    cdf = probs.double().cumsum(dim=0)
    cdf = cdf / cdf[:, -1:]
    return (cdf > u.double()[:, None].contiguous()).int().argmax(dim=-1, keepdim=True)


@bank.mistake("inverse_cdf")
def u_along_the_columns(probs: Tensor, u: Tensor) -> Tensor:
    """u of shape (batch,) was lined up with the COLUMNS of the sums. With as many rows as tokens no
    error says so; give it an axis of length 1 at its end.
    """
    look_at(probs, u)
    return (line(probs) > u.double()).int().argmax(dim=-1, keepdim=True)


# --- what comes back ---


@bank.mistake("inverse_cdf")
def cdf_loses_an_axis(probs: Tensor, u: Tensor) -> Tensor:
    """The ids are right, but in shape (batch,). The next step appends them to (batch, positions),
    so the answer has a second axis, of length 1.
    """
    look_at(probs, u)
    return torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)[:, 0]


@bank.mistake("inverse_cdf")
def cdf_counts_and_loses_an_axis(probs: Tensor, u: Tensor) -> Tensor:
    """What came back has shape (batch,). The next step appends it to (batch, positions), so the
    answer has a second axis, of length 1: many functions keep an axis with `keepdim=True`.
    """
    look_at(probs, u)
    return (probs.cumsum(dim=-1) > u[:, None]).int().argmax(dim=-1)


@bank.mistake("inverse_cdf")
def cdf_probability_for_an_id(probs: Tensor, u: Tensor) -> Tensor:
    """What came back is the probability of the id, not the id. The place at which you found it is
    the answer.
    """
    look_at(probs, u)
    return probs.gather(
        -1, torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    )


@bank.mistake("inverse_cdf", family="ids that are no int64")
def cdf_ids_of_int32(probs: Tensor, u: Tensor) -> Tensor:
    """The ids are right, but not int64, in which torch keeps indices: an embedding or a `gather`
    will not take them. Look for `.int()`, or `out_int32`.
    """
    look_at(probs, u)
    return torch.searchsorted(
        line(probs), u.double()[:, None].contiguous(), right=True, out_int32=True
    )


@bank.mistake("inverse_cdf")
def cdf_normalises_in_place(probs: Tensor, u: Tensor) -> Tensor:
    """The ids are right, but the caller's probabilities were divided in place. An operation that
    writes into its argument is seen wherever that tensor is used; make a new one.
    """
    look_at(probs, u)
    probs /= probs.sum(dim=-1, keepdim=True)
    return torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)


@bank.mistake("inverse_cdf")
def scales_u_in_place(probs: Tensor, u: Tensor) -> Tensor:
    """The ids are right, but the caller's u was changed. Methods with an underscore at the end, and
    `*=`, write into the tensor itself; make a new one.
    """
    look_at(probs, u)
    cdf = probs.double().cumsum(dim=-1)
    scaled = u.double().mul_(cdf[:, -1]).minimum(cdf[:, -1] * (1 - 2**-52))
    return torch.searchsorted(cdf, scaled[:, None], right=True)


# --- what is refused ---


@bank.mistake("inverse_cdf")
def takes_any_row(probs: Tensor, u: Tensor) -> Tensor:
    """A row that is no distribution gave an id, as if nothing were wrong. Nonsense must stop here,
    where it can still be named: a negative value, NaN, infinity, or no mass is a ValueError.
    """
    look_at_u(probs, u)
    found = torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    return found.clamp(max=probs.shape[-1] - 1)


@bank.mistake("inverse_cdf")
def takes_negative_values(probs: Tensor, u: Tensor) -> Tensor:
    """A row with a negative value passed. Its sum may look right and its line runs back and forth;
    ask each value, not only the sum.
    """
    total = probs.double().sum(dim=-1)
    look_at_u(probs, u)
    if not (total.isfinite() & (total > 0)).all():
        raise ValueError("a row has no mass")
    return torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)


@bank.mistake("inverse_cdf")
def cdf_lets_nan_through(probs: Tensor, u: Tensor) -> Tensor:
    """A row with NaN passed: NaN is neither below 0 nor is its sum equal to 0, for every comparison
    with it is false. Ask what each value must BE instead of what it must not be.
    """
    look_at_u(probs, u)
    if (probs < 0).any() or (probs.sum(dim=-1) == 0).any():
        raise ValueError("a row is no distribution")
    found = torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    return found.clamp(max=probs.shape[-1] - 1)


@bank.mistake("inverse_cdf")
def takes_rows_without_mass(probs: Tensor, u: Tensor) -> Tensor:
    """A row of zeros gave an id, though every id is impossible. Before you divide by the mass, look
    whether there is any.
    """
    look_at_u(probs, u)
    if not ((probs >= 0) & probs.isfinite()).all():
        raise ValueError("a row is no distribution")
    found = torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    return found.clamp(max=probs.shape[-1] - 1)


@bank.mistake("inverse_cdf")
def takes_infinite_weights(probs: Tensor, u: Tensor) -> Tensor:
    """A row with an infinite weight passed. Divided by an infinite mass all others are 0 and it is
    NaN itself: ask whether the mass is finite.
    """
    look_at_u(probs, u)
    if not (probs >= 0).all() or not (probs.sum(dim=-1) > 0).all():
        raise ValueError("a row is no distribution")
    found = torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    return found.clamp(max=probs.shape[-1] - 1)


@bank.mistake("inverse_cdf")
def takes_any_u(probs: Tensor, u: Tensor) -> Tensor:
    """A u off the line passed, and was given the nearest id or none. u comes from [0, 1): anything
    else is a slip of the caller's, and a ValueError that shows it.
    """
    look_at_rows(probs)
    found = torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    return found.clamp(max=probs.shape[-1] - 1)


@bank.mistake("inverse_cdf")
def lets_nan_u_through(probs: Tensor, u: Tensor) -> Tensor:
    """A u of NaN passed: it is neither below 0 nor above 1, for every comparison with it is false.
    Ask what u must BE instead of what it must not be.
    """
    if (u < 0).any() or (u > 1).any():
        raise ValueError(f"u={u.tolist()}")
    look_at(probs, u.nan_to_num())
    found = torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
    return found.clamp(max=probs.shape[-1] - 1)


@bank.mistake("inverse_cdf")
def does_not_compare_lengths(probs: Tensor, u: Tensor) -> Tensor:
    """Three u for two rows: torch stumbles over that somewhere inside, in words that name neither.
    Compare the shapes first, and say both in a ValueError.
    """
    look_at(probs, u[: len(probs)])
    if not ((u >= 0) & (u <= 1)).all():
        raise ValueError(f"u={u.tolist()}")
    return torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)


@bank.mistake("inverse_cdf")
def asserts_its_arguments(probs: Tensor, u: Tensor) -> Tensor:
    """Asserts guard the arguments. They vanish under `python -O` and tell the caller nothing; a
    wrong argument is a ValueError that names it.
    """
    try:
        look_at(probs, u)
    except ValueError as error:
        raise AssertionError from error
    return torch.searchsorted(line(probs), u.double()[:, None].contiguous(), right=True)
