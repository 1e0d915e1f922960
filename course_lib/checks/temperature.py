"""Lesson 2: what apply_temperature and entropy must do.

Scaled logits are looked at through their softmax: two rows that differ by a constant stand for the
same distribution.
"""

import math
from typing import Any

import torch

from . import expect
from .draw import Draw
from .kit import Suite

suite = Suite("temperature")

BANNED = -torch.inf
# the two rows of logits that the lesson works with
Z = [1.0, 2.0, 0.5, 0.1]
Y = [2.0, 1.0, 0.1, -1.0, -2.0]


def softmax_in_lists(row: list[float], temperature: float = 1.0) -> list[float]:
    """softmax(row / temperature) in plain Python numbers."""
    top = max(row)
    weights = [math.exp((x - top) / temperature) for x in row]
    return [weight / sum(weights) for weight in weights]


def entropy_in_lists(row: list[float]) -> float:
    """The entropy of softmax(row), in nats; a probability of 0 adds nothing."""
    return -sum(p * math.log(p) for p in softmax_in_lists(row) if p > 0)


# --- apply_temperature ---


@suite.check(
    "worked_numbers",
    of="apply_temperature",
    points=2,
    claim="sharpens below 1, flattens above 1 and changes nothing at 1, by the right amount",
    teaching="the worked example of the lesson, and the first check that a learner meets",
)
def worked_numbers(student: Any) -> None:
    for row, temperature, probs in [
        (Z, 1.0, [0.211355, 0.574522, 0.128193, 0.085930]),
        # a whole number is as good a temperature as any
        (Z, 2, [0.245993, 0.405575, 0.191580, 0.156852]),
        (Z, 0.5, [0.112080, 0.828162, 0.041232, 0.018527]),
        (Y, 0.5, [0.861682, 0.116616, 0.019277, 0.002136, 0.000289]),
        (Y, 2.0, [0.425218, 0.257908, 0.164449, 0.094879, 0.057547]),
    ]:
        answer = student.apply_temperature(torch.tensor([row]), temperature)
        expect.probabilities(answer, [probs], atol=1e-5)


@suite.check(
    "hot_and_cold",
    of="apply_temperature",
    points=0.5,
    claim="comes near greedy when cold and near uniform when hot, and never changes the order",
)
def hot_and_cold(student: Any) -> None:
    for temperature, probs in [
        (0.1, [0.000045, 0.999954, 0.0, 0.0]),
        (100, [0.250247, 0.252762, 0.248999, 0.248005]),
    ]:
        answer = student.apply_temperature(torch.tensor([Z]), temperature)
        expect.probabilities(answer, [probs], atol=1e-5)
        order = answer.argsort(dim=-1, descending=True)
        expect.true(order.tolist() == [[1, 0, 2, 3]], "the order of the tokens is not kept")
    # how cold is cold depends on the gaps: these are as small as the temperature
    answer = student.apply_temperature(torch.tensor([[0.0, 0.01, 0.02]]), 0.01)
    expect.probabilities(answer, [[0.090031, 0.244728, 0.665241]])


@suite.check(
    "any_shape",
    of="apply_temperature",
    points=0.5,
    claim="treats each row by itself, along the last axis of any shape",
)
def any_shape(student: Any) -> None:
    row = torch.tensor(Z)
    cold = torch.tensor(softmax_in_lists(Z, 0.5))
    expect.probabilities(student.apply_temperature(row.clone(), 0.5), cold)
    # as many rows as tokens, none like another: a row that leaks into its neighbour shows
    block = torch.stack([row, row.flip(0) * 3, row + 5, row - 5])
    expected = torch.tensor([softmax_in_lists(r, 0.5) for r in block.tolist()])
    expect.probabilities(student.apply_temperature(block.clone(), 0.5), expected)
    answer = student.apply_temperature(block.view(2, 2, 1, 4), 0.5)
    expect.probabilities(answer, expected.view(2, 2, 1, 4))


@suite.check(
    "banned_stay_banned",
    of="apply_temperature",
    points=0.5,
    claim="a banned token (-inf) stays at -inf, and no other gets there",
)
def banned_stay_banned(student: Any) -> None:
    rows = [[1.0, BANNED, 3.0], [BANNED, BANNED, 0.0]]
    for temperature in (0.5, 1.0, 4.0):
        answer = student.apply_temperature(torch.tensor(rows), temperature)
        expect.probabilities(answer, [softmax_in_lists(row, temperature) for row in rows])
        # a very low number is no ban: a filter that looks for -inf would not find it
        expect.same(answer == BANNED, torch.tensor(rows) == BANNED, "where it is -inf (True)")


@suite.check(
    "half_precision",
    of="apply_temperature",
    points=0.5,
    claim="computes half-precision logits in float32",
)
def half_precision(student: Any) -> None:
    # the largest float16 is 65504: this division leaves it far behind
    logits = torch.tensor([[11.0625, 2.955]], dtype=torch.float16)
    answer = expect.full_precision(student.apply_temperature(logits, 1e-4))
    expect.probabilities(answer, [[1.0, 0.0]])
    # bfloat16 has two to three digits: not enough to divide in
    logits = torch.tensor([[40.0, 39.0, 38.5]], dtype=torch.bfloat16)
    answer = expect.full_precision(student.apply_temperature(logits, 0.7))
    expect.probabilities(answer, [softmax_in_lists([40.0, 39.0, 38.5], 0.7)])
    # a temperature of 1 changes no number, and the dtype all the same
    logits = torch.tensor([[2.0, 1.0]], dtype=torch.bfloat16)
    answer = expect.full_precision(student.apply_temperature(logits, 1.0))
    expect.probabilities(answer, [softmax_in_lists([2.0, 1.0], 1.0)])


@suite.check(
    "input_untouched",
    of="apply_temperature",
    points=0.25,
    claim="leaves the caller's logits as they are",
)
def input_untouched(student: Any) -> None:
    logits = torch.tensor([[1.0, BANNED, 2.0]])
    before = logits.clone()
    student.apply_temperature(logits, 0.5)
    expect.unchanged(logits, before, "logits")


@suite.check(
    "zero",
    of="apply_temperature",
    points=0.5,
    claim="temperature 0 raises ValueError: greedy decoding is another function",
)
def zero(student: Any) -> None:
    for temperature in (0.0, 0):
        with expect.raises(ValueError, f"temperature={temperature}"):
            student.apply_temperature(torch.tensor([[1.0, 3.0]]), temperature)


@suite.check(
    "negative",
    of="apply_temperature",
    points=0.5,
    claim="a negative temperature raises ValueError",
)
def negative(student: Any) -> None:
    for temperature in (-1, -1e-3):
        with expect.raises(ValueError, f"temperature={temperature}"):
            student.apply_temperature(torch.tensor([[1.0, 3.0]]), temperature)


@suite.check(
    "nan",
    of="apply_temperature",
    points=0.25,
    claim="a temperature that is NaN raises ValueError",
)
def nan(student: Any) -> None:
    # every comparison with NaN is False, so `temperature <= 0` lets it through
    with expect.raises(ValueError, "temperature=nan"):
        student.apply_temperature(torch.tensor([[1.0, 3.0]]), math.nan)


@suite.check(
    "infinity",
    of="apply_temperature",
    points=0.25,
    claim="an infinite temperature raises ValueError",
)
def infinity(student: Any) -> None:
    with expect.raises(ValueError, "temperature=inf"):
        student.apply_temperature(torch.tensor([[1.0, 3.0]]), math.inf)


@suite.check(
    "by_hand",
    of="apply_temperature",
    points=0.5,
    claim="agrees with plain arithmetic on random rows",
    teaching="a property on random input: catches answers made for the examples",
)
def by_hand(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (3, 7), (5, 5), (4, 50)]:
        logits, temperature = draw.logits(batch, vocab), draw.uniform(0.2, 4.0)
        expected = [softmax_in_lists(row, temperature) for row in logits.tolist()]
        answer = student.apply_temperature(logits, temperature)
        expect.probabilities(answer, expected, atol=1e-5)


# --- entropy ---


@suite.check(
    "entropy_worked_numbers",
    of="entropy",
    points=1,
    claim="measures in nats how spread out the distribution is: the hotter the more",
    teaching="the worked numbers of the lesson",
)
def entropy_worked_numbers(student: Any) -> None:
    for row, temperature, nats in [
        (Z, 0.5, 0.60683),
        (Z, 1.0, 1.12105),
        (Z, 2.0, 1.31811),
        (Y, 0.5, 0.47048),
        (Y, 1.0, 1.01258),
        (Y, 2.0, 1.39766),
    ]:
        logits = torch.tensor([row]) / temperature
        expect.close(student.entropy(logits), torch.tensor([nats]))


@suite.check(
    "entropy_ends",
    of="entropy",
    points=1,
    claim="is 0 for a certain model and log(vocab) for a uniform one",
    teaching="the two ends of the scale, which one can work out in one's head",
    exact=True,
)
def entropy_ends(student: Any) -> None:
    for vocab in (1, 2, 7, 4096):
        nats = torch.tensor([math.log(vocab)])
        expect.close(student.entropy(torch.zeros(1, vocab)), nats)
        # only differences between logits count: exp(1000) alone would be too large a number
        expect.close(student.entropy(torch.full((1, vocab), 1000.0)), nats)
    # probabilities that a computer rounds to 0, and the log of 0 is no number
    expect.close(student.entropy(torch.tensor([[0.0, 1000.0, 0.0]])), torch.tensor([0.0]))


@suite.check(
    "entropy_banned",
    of="entropy",
    points=0.5,
    claim="banned tokens (-inf) add nothing",
)
def entropy_banned(student: Any) -> None:
    logits = torch.tensor([[0.0, BANNED, 0.0], [BANNED, 2.0, BANNED], [0.0, 0.0, 0.0]])
    nats = torch.tensor([math.log(2), 0.0, math.log(3)])
    expect.close(student.entropy(logits), nats)


@suite.check(
    "entropy_any_shape",
    of="entropy",
    points=0.5,
    claim="gives one number a row, along the last axis of any shape",
    exact=True,
)
def entropy_any_shape(student: Any) -> None:
    row = torch.tensor(Z)
    expect.close(student.entropy(row.clone()), torch.tensor(entropy_in_lists(Z)))
    # rows far apart: whatever is taken off the logits must be taken off row by row
    block = torch.stack([row, row.flip(0) * 3, row * 0, row - 500])
    nats = torch.tensor([entropy_in_lists(r) for r in block.tolist()])
    expect.close(student.entropy(block.clone()), nats)
    expect.close(student.entropy(block.view(2, 2, 1, 4)), nats.view(2, 2, 1))


@suite.check(
    "entropy_half_precision",
    of="entropy",
    points=0.5,
    claim="computes half-precision logits in float32",
)
def entropy_half_precision(student: Any) -> None:
    # a sum of a thousand small numbers: rounding each to bfloat16's few digits spoils it
    logits = (torch.arange(1000).view(1, 1000) % 7).to(torch.bfloat16)
    nats = entropy_in_lists(logits[0].tolist())
    expect.close(expect.full_precision(student.entropy(logits)), torch.tensor([nats]))


@suite.check(
    "entropy_untouched",
    of="entropy",
    points=0.25,
    claim="leaves the caller's logits as they are",
)
def entropy_untouched(student: Any) -> None:
    logits = torch.tensor([[1.0, BANNED, 2.0]])
    before = logits.clone()
    student.entropy(logits)
    expect.unchanged(logits, before, "logits")
