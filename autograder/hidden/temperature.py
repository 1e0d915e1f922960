"""Lesson 2, hidden: both functions against the reference, where slips hide."""

import math
from typing import Any

import torch
from torch import Tensor

from course_lib.checks import expect
from course_lib.checks.draw import Draw
from course_lib.checks.kit import Suite
from solutions import temperature as reference

suite = Suite("temperature", hidden=True)


def expect_scaled(student: Any, logits: Tensor, temperature: float, atol: float = 1e-5) -> None:
    """The answer stands for the reference's distribution, and bans what it bans."""
    right = reference.apply_temperature(logits, temperature)
    answer = student.apply_temperature(logits, temperature)
    expect.probabilities(answer, right.double().softmax(dim=-1), atol=atol)
    expect.same(answer == -torch.inf, right == -torch.inf, "where it is -inf")
    expect.full_precision(answer)


@suite.check(
    "hidden_any_batch",
    of="apply_temperature",
    points=1,
    claim="equals the reference for any batch and vocabulary, B = 1, V = 1 and B = V included",
    teaching="secret inputs: catches answers made for the visible ones",
)
def any_batch(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (3, 40)]:
        logits = draw.logits(batch, vocab)
        for temperature in (draw.uniform(0.2, 0.9), 1.0, 1, draw.integer(2, 9)):
            expect_scaled(student, logits, temperature)


@suite.check(
    "hidden_range",
    of="apply_temperature",
    points=0.5,
    claim="means what it says from 0.001 to a million, and refuses all but finite numbers above 0",
)
def any_temperature(student: Any, draw: Draw) -> None:
    logits = draw.logits(3, 12)
    for exponent in (-3, -2, -1, 1, 2, 3, 6):
        temperature = draw.uniform(1.0, 2.0) * 10.0**exponent
        # gaps of the temperature's own size, so that it neither decides nor levels everything
        expect_scaled(student, logits * temperature, temperature, atol=1e-3)
        with expect.raises(ValueError, "a negative temperature"):
            student.apply_temperature(logits, -temperature)
    # also where there is nothing to overflow: a row of zeros, a single token, all banned but one
    for row in (logits, torch.zeros(2, 5), torch.zeros(1, 1)):
        for temperature in (0, 0.0, -0.0, math.nan, math.inf, -math.inf, -draw.integer(1, 9)):
            with expect.raises(ValueError, "a temperature that is not allowed"):
                student.apply_temperature(row, temperature)


@suite.check(
    "hidden_banned_and_half",
    of="apply_temperature",
    points=0.5,
    claim="keeps bans, and computes float16 and bfloat16 in float32",
)
def banned_and_half(student: Any, draw: Draw) -> None:
    logits = draw.logits(6, 20)
    banned = draw.ids(6, 20, 3) > 0
    banned[:, draw.integer(0, 19)] = False
    logits = logits.masked_fill(banned, -torch.inf)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for temperature in (1e-4, draw.uniform(0.2, 0.9), 1.0, draw.uniform(1.1, 3.0), 1000.0):
            expect_scaled(student, logits.to(dtype), temperature)


@suite.check(
    "hidden_any_memory",
    of="apply_temperature",
    points=0.5,
    claim="takes slices, transposes and 50,000 tokens, any number of axes, and mutates nothing",
)
def any_memory(student: Any, draw: Draw) -> None:
    temperature = draw.uniform(0.3, 2.0)
    block = draw.logits(12, 9).view(3, 4, 9)
    for logits in (
        block.transpose(0, 1),
        block[:, -1],
        block[0, 0],
        block.permute(2, 0, 1),
        draw.logits(2, 50_000),
    ):
        before = logits.clone()
        expect_scaled(student, logits, temperature)
        expect.unchanged(logits, before, "logits")


@suite.check(
    "hidden_entropy_any_batch",
    of="entropy",
    points=1,
    claim="equals the reference for any batch and vocabulary, B = 1, V = 1 and B = V included",
    teaching="secret inputs: catches answers made for the visible ones",
)
def entropy_any_batch(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (3, 40)]:
        logits = draw.normal(batch, vocab, spread=draw.uniform(0.2, 4.0))
        expect.close(student.entropy(logits), reference.entropy(logits))
        # a constant changes nothing
        shift = draw.uniform(90.0, 120.0)
        for shifted in (logits + shift, logits - shift):
            expect.close(student.entropy(shifted), reference.entropy(shifted), atol=1e-4)


@suite.check(
    "hidden_entropy_edges",
    of="entropy",
    points=1,
    claim="counts banned and hopeless tokens as nothing, in half precision too",
)
def entropy_edges(student: Any, draw: Draw) -> None:
    banned = draw.ids(6, 20, 3) > 0
    banned[:, draw.integer(0, 19)] = False
    for spread in (1.0, 60.0, 5000.0):
        logits = draw.normal(6, 20, spread=spread)
        for values in (logits, logits.masked_fill(banned, -torch.inf)):
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                answer = expect.full_precision(student.entropy(values.to(dtype)))
                # a difference of logits as large as these has so many digits, and no more
                expect.close(answer, reference.entropy(values.to(dtype)), atol=1e-4 + 1e-6 * spread)


@suite.check(
    "hidden_entropy_any_memory",
    of="entropy",
    points=0.5,
    claim="takes slices, transposes and 50,000 tokens, any number of axes, and mutates nothing",
)
def entropy_any_memory(student: Any, draw: Draw) -> None:
    block = draw.normal(3, 4, 9)
    for logits in (
        block.transpose(0, 1),
        block[:, -1],
        block[0, 0],
        block.permute(2, 0, 1),
        # a flat row, and one where most tokens are hopeless and together still count
        draw.normal(2, 50_000) * torch.tensor([[0.5], [3.0]]),
    ):
        before = logits.clone()
        expect.close(student.entropy(logits), reference.entropy(before))
        expect.unchanged(logits, before, "logits")
