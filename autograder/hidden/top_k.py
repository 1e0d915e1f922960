"""Lesson 3, hidden: top_k_filter against the reference, where slips hide."""

from typing import Any

import torch

from course_lib.checks import expect
from course_lib.checks.draw import Draw
from course_lib.checks.kit import Suite
from solutions import top_k as reference

suite = Suite("top_k", hidden=True)


@suite.check(
    "hidden_any_batch",
    of="top_k_filter",
    points=1.5,
    claim="equals the reference for any batch and vocabulary, B = 1, V = 1 and B = V included",
    teaching="secret inputs: catches answers made for the visible ones",
)
def any_batch(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (3, 40)]:
        logits = draw.logits(batch, vocab)
        for k in {1, draw.integer(1, vocab), vocab}:
            expect.close(student.top_k_filter(logits, k), reference.top_k_filter(logits, k))


@suite.check(
    "hidden_edges_of_k",
    of="top_k_filter",
    points=1,
    claim="treats k at its edges as the contract says: off, 1, V - 1, V, far above V, negative",
)
def edges_of_k(student: Any, draw: Draw) -> None:
    vocab = draw.integer(3, 30)
    logits = draw.logits(draw.integer(2, 6), vocab)
    for k in (None, 0, 1, vocab - 1, vocab, vocab + 1, 10**9):
        expect.close(student.top_k_filter(logits, k), reference.top_k_filter(logits, k))
    for k in (-1, -vocab, -(10**9)):
        with expect.raises(ValueError, "a negative k"):
            student.top_k_filter(logits, k)


@suite.check(
    "hidden_banned_tokens",
    of="top_k_filter",
    points=0.5,
    claim="keeps banned tokens banned, also where fewer than k are left",
    teaching="secret inputs: catches answers made for the visible ones",
)
def banned_tokens(student: Any, draw: Draw) -> None:
    logits = draw.logits(6, 20)
    banned = draw.ids(6, 20, 3) > 0
    banned[0] = True
    logits = logits.masked_fill(banned, -torch.inf)
    for k in (1, draw.integer(2, 19), 20):
        expect.close(student.top_k_filter(logits, k), reference.top_k_filter(logits, k))


@suite.check(
    "hidden_half_precision",
    of="top_k_filter",
    points=0.5,
    claim="float16 and bfloat16 logits give float32 results",
)
def half_precision(student: Any, draw: Draw) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        # whole numbers: half precision holds them exactly, so no two of them tie
        logits = draw.logits(4, 60).argsort(dim=-1).to(dtype)
        for k in (draw.integer(1, 59), None, 0, 60, 1000):
            answer = expect.full_precision(student.top_k_filter(logits, k))
            expect.close(answer, reference.top_k_filter(logits, k))


@suite.check(
    "hidden_big_vocabulary",
    of="top_k_filter",
    points=0.5,
    claim="equals the reference at a vocabulary of 50,000",
    teaching="secret inputs: catches answers made for the visible ones",
)
def big_vocabulary(student: Any, draw: Draw) -> None:
    logits = draw.logits(2, 50_000)
    k = draw.integer(2, 60)
    expect.close(student.top_k_filter(logits, k), reference.top_k_filter(logits, k))


@suite.check(
    "hidden_not_contiguous",
    of="top_k_filter",
    points=0.5,
    claim="takes slices and transposes, any number of axes, and leaves them as they are",
)
def not_contiguous(student: Any, draw: Draw) -> None:
    k = draw.integer(1, 8)
    block = draw.logits(12, 9).view(3, 4, 9)
    for logits in (
        block.transpose(0, 1),
        block[:, -1, :],
        block[0, 0],
        draw.logits(5, 9).T.contiguous().T,
    ):
        before = logits.clone()
        expect.close(student.top_k_filter(logits, k), reference.top_k_filter(before, k))
        expect.unchanged(logits, before, "logits")


@suite.check(
    "hidden_ties",
    of="top_k_filter",
    points=0.5,
    claim="keeps at least k tokens of a row with ties, none of them below a banned one",
    teaching="secret inputs: catches answers made for the visible ones",
)
def ties(student: Any, draw: Draw) -> None:
    logits = draw.ids(8, 12, 4).float()
    k = draw.integer(2, 11)
    answer = expect.tensor(student.top_k_filter(logits, k), logits.shape)
    kept = answer != -torch.inf
    all_ties = reference.top_k_filter(logits, k) != -torch.inf
    expect.true(bool((kept.sum(-1) >= k).all()), "a row keeps fewer than k")
    expect.true(bool((~kept | all_ties).all()), "a token below the k-th is kept")
