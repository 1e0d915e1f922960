"""Lesson 4: what top_p_filter must do, and min_p_filter (stretch)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import expect
from .draw import Draw
from .kit import Suite
from .record import surviving

suite = Suite("top_p")

Filter = Callable[[Tensor, float | None], Tensor]

BANNED = -torch.inf
NAN = float("nan")


def keeps(filtered: Filter, rows: list[list[float]], p: float, expected: list[set[int]]) -> None:
    """The filter keeps the expected ids of rows of probabilities, and leaves their logits."""
    # the softmax of log-probabilities is the probabilities themselves
    logits = torch.tensor(rows).log()
    answer = filtered(logits, p)
    try:
        expect.kept(answer, expected, logits)
    except expect.Mismatch as mismatch:
        # logits are hard to add up in the head
        raise expect.Mismatch(f"{mismatch}; probabilities {rows}", mismatch.cause) from None


def ranked(probs: list[float]) -> list[int]:
    """The ids of a row, the most probable first."""
    return sorted(range(len(probs)), key=lambda i: -probs[i])


def nucleus(probs: list[float], p: float) -> set[int]:
    """The nucleus by its definition: take the best tokens until their mass is p."""
    taken: set[int] = set()
    mass = 0.0
    for i in ranked(probs):
        if taken and mass >= p:
            break
        taken.add(i)
        mass += probs[i]
    return taken


def inside(probs: list[float], size: int) -> float:
    """A p whose nucleus has `size` tokens, far from the p of any other size."""
    best = [probs[i] for i in ranked(probs)[:size]]
    # halfway along the stretch of the last token: no rounding can move it to a neighbour
    return sum(best) - best[-1] / 2


# --- top_p_filter ---


@suite.check(
    "smallest_set",
    of="top_p_filter",
    points=1,
    claim="keeps the fewest of the best tokens whose probabilities add up to p",
    teaching="the worked example of the lesson, and the first check that a learner meets",
)
def smallest_set(student: Any) -> None:
    # probabilities .57, .21, .13, .09: the sums are .57, .79, .91, so three tokens make up .9
    logits = torch.tensor([[1.0, 2.0, 0.5, 0.1]])
    expect.kept(student.top_p_filter(logits, 0.9), [{0, 1, 2}], logits)
    # temperature .5 makes them .83, .11, .04, .02: two are enough; at temperature 2 it takes all
    sharp, flat = torch.tensor([[2.0, 4.0, 1.0, 0.2]]), torch.tensor([[0.5, 1.0, 0.25, 0.05]])
    expect.kept(student.top_p_filter(sharp, 0.9), [{0, 1}], sharp)
    expect.kept(student.top_p_filter(flat, 0.9), [{0, 1, 2, 3}], flat)


@suite.check(
    "probability_zero",
    of="top_p_filter",
    points=0.5,
    claim="gives tokens outside the nucleus probability 0, and those inside share the whole",
    teaching="shows why the ban must be -inf: the distribution is what matters",
)
def probability_zero(student: Any) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
    expect.probabilities(
        student.top_p_filter(logits, 0.9), [[0.659001, 0.242433, 0.098566, 0.0, 0.0]]
    )
    # every logit below zero: a ban by 0, or by any small number, would put these tokens on top
    logits = torch.tensor([[-1.0, -3.0, -5.0]])
    expect.probabilities(student.top_p_filter(logits, 0.5), [[1.0, 0.0, 0.0]])


@suite.check(
    "crossing_token",
    of="top_p_filter",
    points=1.5,
    claim="keeps the token with which the mass crosses p",
    teaching="the mistake seen most often in the wild, told on rows that a person can add up",
)
def crossing_token(student: Any) -> None:
    # .5 + .35 is not yet .9: the third token takes the mass across
    keeps(student.top_p_filter, [[0.5, 0.35, 0.1, 0.05]], 0.9, [{0, 1, 2}])
    keeps(student.top_p_filter, [[0.5, 0.3, 0.15, 0.05]], 0.6, [{0, 1}])
    # here the best token crosses p all by itself
    keeps(student.top_p_filter, [[0.9, 0.06, 0.04]], 0.5, [{0}])


@suite.check(
    "mass_equal_to_p",
    of="top_p_filter",
    points=0.5,
    claim="stops when the mass is exactly p",
    exact=True,
)
def mass_equal_to_p(student: Any) -> None:
    # powers of 1/2, which floating point adds without rounding: here equal means equal
    keeps(student.top_p_filter, [[0.5, 0.25, 0.125, 0.0625, 0.0625]], 0.75, [{0, 1}])
    keeps(student.top_p_filter, [[0.5, 0.25, 0.125, 0.0625, 0.0625]], 0.5, [{0}])


@suite.check(
    "back_to_ids",
    of="top_p_filter",
    points=1,
    claim="finds the nucleus by rank and keeps it by id, whatever the order of the tokens",
    teaching="the mistake of sorted order, told on rows that a person can read",
)
def back_to_ids(student: Any) -> None:
    keeps(student.top_p_filter, [[0.125, 0.125, 0.25, 0.5]], 0.7, [{2, 3}])
    # ranks are ids 1, 2, 0: an order that differs from its own inverse, which a mix-up of the two
    # does not survive
    keeps(student.top_p_filter, [[0.2, 0.5, 0.3]], 0.6, [{1, 2}])
    keeps(student.top_p_filter, [[0.1, 0.2, 0.7]], 0.6, [{2}])


@suite.check(
    "rows_apart",
    of="top_p_filter",
    points=1,
    claim="treats each row of a batch by itself",
    teaching="the mistake of batches, told on rows that a person can read",
    exact=True,
)
def rows_apart(student: Any) -> None:
    # the same p: one token in a sharp row, two in a flat one
    rows = [[0.9, 0.05, 0.03, 0.02], [0.1, 0.2, 0.3, 0.4]]
    keeps(student.top_p_filter, rows, 0.5, [{0}, {2, 3}])
    # as many rows as tokens: sums or masks along the wrong axis fit, and no error says so
    rows = [[0.1, 0.2, 0.7], [0.2, 0.5, 0.3], [0.45, 0.15, 0.4]]
    keeps(student.top_p_filter, rows, 0.6, [{2}, {1, 2}, {0, 2}])


@suite.check(
    "any_shape", of="top_p_filter", points=0.25, claim="works along the last axis of any shape"
)
def any_shape(student: Any) -> None:
    row = torch.tensor([0.1, 0.55, 0.05, 0.3]).log()
    block = torch.stack([row, row.roll(1), row.flip(0)]).view(3, 1, 4)
    answer = expect.tensor(student.top_p_filter(row, 0.6), (4,), "for a single row what came back")
    expect.kept(answer[None], [{1, 3}])
    answer = expect.tensor(student.top_p_filter(block, 0.6), (3, 1, 4), "what came back")
    expect.kept(answer[:, 0], [{1, 3}, {0, 2}, {0, 2}])


@suite.check(
    "off",
    of="top_p_filter",
    points=0.5,
    claim="p = None and p = 1 keep every token; half-precision logits become float32 all the same",
)
def off(student: Any) -> None:
    logits = torch.tensor([[0.5, -1.2, 3.1]])
    expect.kept(student.top_p_filter(logits, None), [{0, 1, 2}], logits)
    expect.kept(student.top_p_filter(logits, 1.0), [{0, 1, 2}], logits)
    # two tokens so improbable that the best one's probability is rounded to 1
    logits = torch.tensor([[-60.0, -80.0, 3.0]])
    expect.kept(student.top_p_filter(logits, 1.0), [{0, 1, 2}], logits)
    # what comes next gets float32 from a filter that is off too
    logits = torch.tensor([[1.0, 3.0, 2.0]], dtype=torch.bfloat16)
    answer = expect.full_precision(student.top_p_filter(logits, None), "what came back")
    expect.kept(answer, [{0, 1, 2}], logits)


@suite.check(
    "best_token_stays",
    of="top_p_filter",
    points=0.5,
    claim="keeps the best token of each row however small p is, p = 0 included",
)
def best_token_stays(student: Any) -> None:
    # with nothing kept, the softmax that follows would be NaN
    rows = [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]
    keeps(student.top_p_filter, rows, 1e-8, [{1}, {0}])
    keeps(student.top_p_filter, rows, 0.0, [{1}, {0}])


@suite.check(
    "banned_stay_banned",
    of="top_p_filter",
    points=0.5,
    claim="leaves banned tokens (-inf) banned, and measures the mass on the others",
)
def banned_stay_banned(student: Any) -> None:
    # what top-k with k = 3 makes of .4, .3, .2, .1: the survivors hold .444, .333 and .222
    keeps(student.top_p_filter, [[0.4, 0.3, 0.2, 0.0]], 0.72, [{0, 1}])
    # p close to 1 takes all tokens that have a probability, and none that has not
    logits = torch.tensor([[BANNED, 2.0, BANNED, 1.0]])
    expect.kept(student.top_p_filter(logits, 0.99), [{1, 3}], logits)


@suite.check(
    "ties",
    of="top_p_filter",
    points=0.25,
    claim="counts tokens of equal probability one by one: no more of them than p needs",
    # which of the equal ones stay is up to the sort, so they are only counted
    remember=surviving,
)
def ties(student: Any) -> None:
    answer = expect.tensor(student.top_p_filter(torch.zeros(1, 8), 0.45), (1, 8), "what came back")
    expect.same((answer != BANNED).sum().item(), 4, "the number of kept ids")


@suite.check(
    "half_precision",
    of="top_p_filter",
    points=0.5,
    claim="takes half-precision logits, and adds up their probabilities in float32",
)
def half_precision(student: Any) -> None:
    # bfloat16 holds these logits exactly, but their 256 small probabilities in three digits only
    logits = (torch.arange(256) / 64).to(torch.bfloat16)[None]
    size = 140
    p = inside(logits[0].double().softmax(dim=-1).tolist(), size)
    answer = expect.full_precision(student.top_p_filter(logits, p), "what came back")
    expect.same((answer != BANNED).sum().item(), size, "the number of kept ids")


@suite.check(
    "input_untouched", of="top_p_filter", points=0.5, claim="leaves the caller's logits as they are"
)
def input_untouched(student: Any) -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0]])
    before = logits.clone()
    student.top_p_filter(logits, 0.5)
    expect.unchanged(logits, before, "logits")


@suite.check(
    "p_outside", of="top_p_filter", points=0.25, claim="a p outside [0, 1], or NaN, raises"
)
def p_outside(student: Any) -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    with expect.raises(ValueError, "p=-0.1"):
        student.top_p_filter(logits, -0.1)
    with expect.raises(ValueError, "p=1.5"):
        student.top_p_filter(logits, 1.5)
    # every comparison with NaN is false, so it slips through `p < 0 or p > 1`
    with expect.raises(ValueError, "p=nan"):
        student.top_p_filter(logits, NAN)


@suite.check(
    "against_the_definition",
    of="top_p_filter",
    points=0.25,
    claim="agrees with the definition on random rows",
)
def against_the_definition(student: Any, draw: Draw) -> None:
    for vocab in (1, 2, 7, 50):
        # scores may be large, of which no naive softmax can take the exponential
        logits = draw.logits(1, vocab) + 200
        probs = logits[0].double().softmax(dim=-1).tolist()
        p = inside(probs, draw.integer(1, vocab))
        expect.kept(student.top_p_filter(logits, p), [nucleus(probs, p)], logits)


# --- min_p_filter (stretch) ---


@suite.check(
    "min_p_share",
    of="min_p_filter",
    points=0.25,
    claim="keeps tokens with at least min_p times the probability of their row's best one",
)
def min_p_share(student: Any) -> None:
    # the best has .5, so with min_p = .3 the threshold is .15: below it stands only .125
    keeps(student.min_p_filter, [[0.125, 0.5, 0.2, 0.175]], 0.3, [{1, 2, 3}])
    # each row has a best token of its own; one that is banned (probability 0) stays so
    rows = [[0.05, 0.9, 0.05], [0.3, 0.36, 0.34], [0.6, 0.0, 0.4]]
    keeps(student.min_p_filter, rows, 0.5, [{1}, {0, 1, 2}, {0, 2}])
    row = torch.tensor([0.125, 0.5, 0.2, 0.175]).log()
    answer = expect.tensor(student.min_p_filter(row, 0.3), (4,), "for a single row what came back")
    expect.kept(answer[None], [{1, 2, 3}])


@suite.check(
    "min_p_edges",
    of="min_p_filter",
    points=0.25,
    claim="min_p = None and 0 keep every token, 1 keeps the best and its ties",
    exact=True,
)
def min_p_edges(student: Any) -> None:
    logits = torch.tensor([[3.0, 1.0, 3.0, -60.0]])
    expect.kept(student.min_p_filter(logits, None), [{0, 1, 2, 3}], logits)
    expect.kept(student.min_p_filter(logits, 0.0), [{0, 1, 2, 3}], logits)
    expect.kept(student.min_p_filter(logits, 1.0), [{0, 2}], logits)


@suite.check(
    "min_p_careful",
    of="min_p_filter",
    points=0.25,
    claim="answers half-precision logits in float32, and leaves the caller's logits as they are",
)
def min_p_careful(student: Any) -> None:
    logits = torch.tensor([[1.0, 3.0, 2.5]], dtype=torch.bfloat16)
    before = logits.clone()
    answer = expect.full_precision(student.min_p_filter(logits, 0.4), "what came back")
    expect.kept(answer, [{1, 2}], before)
    logits = torch.tensor([[1.0, 3.0, 2.5]], dtype=torch.bfloat16)
    expect.full_precision(
        student.min_p_filter(logits, 0), "what came back from a filter that is off"
    )
    logits = torch.tensor([[1.0, 3.0, 2.5]])
    before = logits.clone()
    student.min_p_filter(logits, 0.4)
    expect.unchanged(logits, before, "logits")


@suite.check(
    "min_p_outside", of="min_p_filter", points=0.25, claim="a min_p outside [0, 1], or NaN, raises"
)
def min_p_outside(student: Any) -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    with expect.raises(ValueError, "min_p=-0.1"):
        student.min_p_filter(logits, -0.1)
    with expect.raises(ValueError, "min_p=1.5"):
        student.min_p_filter(logits, 1.5)
    with expect.raises(ValueError, "min_p=nan"):
        student.min_p_filter(logits, NAN)
