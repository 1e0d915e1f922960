"""Lesson 4, hidden: top_p_filter and min_p_filter against the reference, where slips hide."""

from typing import Any

import torch
from torch import Tensor

from course_lib.checks import expect
from course_lib.checks.draw import Draw
from course_lib.checks.kit import Suite
from solutions import top_p as reference

suite = Suite("top_p", hidden=True)

BANNED = -torch.inf
NAN = float("nan")
INF = float("inf")
MARGIN = 1e-5  # nearer to p than this no mass is graded: right answers round differently


def masses(logits: Tensor) -> Tensor:
    """The mass of the best 1, 2, ... tokens of each row, in float64."""
    probs = logits.double().softmax(dim=-1)
    return probs.sort(dim=-1, descending=True).values.cumsum(dim=-1)


def clear_p(draw: Draw, logits: Tensor, low: float = 0.0, high: float = 1.0) -> float:
    """A p from low to high that no row's mass comes near."""
    steps = masses(logits)
    while True:
        p = draw.uniform(low, high)
        if ((steps - p).abs() > MARGIN).all() and p < 1:
            return p


def agree(student: Any, logits: Tensor, p: float | None) -> None:
    """The student's nucleus is the reference's."""
    expect.close(student.top_p_filter(logits, p), reference.top_p_filter(logits, p))


@suite.check(
    "hidden_any_batch",
    of="top_p_filter",
    points=1,
    claim="equals the reference for any batch and vocabulary, B = 1, V = 1 and B = V included",
    teaching="secret inputs: catches answers made for the visible ones",
)
def any_batch(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (3, 40)]:
        logits = draw.logits(batch, vocab, spread=draw.uniform(0.5, 4))
        agree(student, logits, clear_p(draw, logits))
        agree(student, logits, clear_p(draw, logits, 0.8))


@suite.check(
    "hidden_edges_of_p",
    of="top_p_filter",
    points=1,
    claim="treats p at its edges as the contract says: off, 0, tiny, exact, nearly 1, outside",
)
def edges_of_p(student: Any, draw: Draw) -> None:
    logits = draw.logits(draw.integer(2, 6), draw.integer(3, 30))
    for p in (None, 0, 0.0, 1e-300, 1e-9, 1, 1.0):
        agree(student, logits, p)
    # large scores, and a p that only the last tokens of a sharp row reach
    agree(student, logits + 300, clear_p(draw, logits + 300))
    sharp = draw.logits(3, 30, spread=7)
    agree(student, sharp, clear_p(draw, sharp, 0.999, 0.9999))
    # a far tail, whose mass float32 does not see beside 1: off must keep it all the same
    tail = logits.clone()
    tail[:, draw.integer(0, logits.shape[1] - 1)] = -200.0
    agree(student, tail, 1.0)
    # probabilities 1/2, 1/4, 1/8 and so on, added without rounding, in an order that is drawn
    order = draw.normal(1, 8).argsort(dim=-1)
    halves = (0.5 ** torch.tensor([[1.0, 2, 3, 4, 5, 6, 7, 7]])).log().gather(-1, order)
    for size in (1, 2, 5):
        agree(student, halves, 1 - 0.5**size)
    for p in (-1e-9, -1, 1 + 1e-9, 2, NAN, INF, -INF):
        with expect.raises(ValueError, "a p outside [0, 1]"):
            student.top_p_filter(logits, p)


@suite.check(
    "hidden_banned_tokens",
    of="top_p_filter",
    points=0.5,
    claim="keeps banned tokens banned, and takes the mass of the others as the whole",
    teaching="secret inputs: catches answers made for the visible ones",
)
def banned_tokens(student: Any, draw: Draw) -> None:
    logits = draw.logits(6, 20)
    banned = draw.ids(6, 20, 3) > 0
    # one row with a single token left, and one with all of them
    banned[0], banned[1] = True, False
    banned[0, draw.integer(0, 19)] = False
    banned[2:, 0] = False
    logits = logits.masked_fill(banned, BANNED)
    for p in (0.0, clear_p(draw, logits), clear_p(draw, logits, 0.8), 1.0, None):
        agree(student, logits, p)


@suite.check(
    "hidden_half_precision",
    of="top_p_filter",
    points=0.5,
    claim="float16 and bfloat16 logits give the nucleus and the logits that float32 gives",
    teaching="secret inputs: catches answers made for the visible ones",
)
def half_precision(student: Any, draw: Draw) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        # whole numbers of 64ths up to 4: half precision holds them exactly, so no two of them tie
        logits = (draw.logits(3, 250).argsort(dim=-1) / 64).to(dtype)
        # every row holds the same numbers, so one p is clear of all their masses
        for p in (clear_p(draw, logits, 0.3, 0.9), clear_p(draw, logits, 0.85, 0.98)):
            answer = expect.full_precision(student.top_p_filter(logits, p))
            expect.close(answer, reference.top_p_filter(logits, p))
        expect.full_precision(student.top_p_filter(logits, draw.integer(0, 1)))
        expect.full_precision(student.top_p_filter(logits, None))


@suite.check(
    "hidden_big_vocabulary",
    of="top_p_filter",
    points=0.5,
    claim="finds the nucleus at a vocabulary of 50,000, in sharp rows and in flat ones",
    teaching="secret inputs: catches answers made for the visible ones",
)
def big_vocabulary(student: Any, draw: Draw) -> None:
    sharp, flat = draw.logits(1, 50_000), draw.normal(1, 50_000)
    logits = torch.cat([sharp, flat])
    p = draw.uniform(0.2, 0.95)
    answer = expect.tensor(student.top_p_filter(logits, p), logits.shape)
    kept = answer != BANNED
    probs = logits.double().softmax(dim=-1)
    mass = probs.masked_fill(~kept, 0).sum(dim=-1)
    # where many thousand terms are added up, sums differ by their rounding: so a margin
    expect.true(bool((mass >= p - MARGIN).all()), "the kept tokens do not reach p")
    last = probs.masked_fill(~kept, 2).amin(dim=-1)
    expect.true(bool((mass - last <= p + MARGIN).all()), "more tokens are kept than p needs")
    better = probs.masked_fill(kept, -1).amax(dim=-1)
    expect.true(bool((better <= last).all()), "a token better than a kept one is banned")
    expect.close(answer[kept], logits[kept])


@suite.check(
    "hidden_not_contiguous",
    of="top_p_filter",
    points=0.5,
    claim="takes slices and transposes, any number of axes, and leaves them as they are",
    teaching="secret inputs: catches answers made for the visible ones",
)
def not_contiguous(student: Any, draw: Draw) -> None:
    block = draw.logits(12, 9).view(3, 4, 9)
    p = clear_p(draw, block, 0.2, 0.95)
    for logits in (
        block.transpose(0, 1),
        block[:, -1, :],
        block[0, 0],
        block.flatten(0, 1).T.contiguous().T,
    ):
        before = logits.clone()
        expect.close(student.top_p_filter(logits, p), reference.top_p_filter(before, p))
        expect.unchanged(logits, before, "logits")


@suite.check(
    "hidden_ties",
    of="top_p_filter",
    points=0.5,
    claim="keeps as many tokens as p needs where many are equal, and none before a better one",
    teaching="secret inputs: catches answers made for the visible ones",
)
def ties(student: Any, draw: Draw) -> None:
    logits = draw.ids(8, 12, 3).float()
    p = clear_p(draw, logits)
    answer = expect.tensor(student.top_p_filter(logits, p), logits.shape)
    kept = answer != BANNED
    wanted = reference.top_p_filter(logits, p) != BANNED
    expect.same(kept.sum(dim=-1), wanted.sum(dim=-1), "the number of kept ids of each row")
    worst_kept = logits.masked_fill(~kept, torch.inf).amin(dim=-1)
    best_banned = logits.masked_fill(kept, -torch.inf).amax(dim=-1)
    expect.true(bool((best_banned <= worst_kept).all()), "a better token is banned")
    # all alike: each token counts for itself
    for size in (1, 5, 16):
        answer = expect.tensor(student.top_p_filter(torch.zeros(2, 16), size / 16), (2, 16))
        expect.same((answer != BANNED).sum(dim=-1), torch.tensor([size, size]), "kept ids")


# --- min_p_filter ---


def clear_share(draw: Draw, logits: Tensor) -> float:
    """A min_p that no token's share of its row's best comes near."""
    shares = (logits.double() - logits.double().amax(dim=-1, keepdim=True)).exp()
    while True:
        min_p = draw.uniform(0.01, 0.99)
        if ((shares - min_p).abs() > MARGIN).all():
            return min_p


@suite.check(
    "hidden_min_p",
    of="min_p_filter",
    points=0.25,
    claim="equals the reference for any batch and shape, with banned tokens, not contiguous",
    teaching="secret inputs: catches answers made for the visible ones",
)
def min_p(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (4, 40)]:
        logits = draw.logits(batch, vocab)
        logits = logits.masked_fill(draw.ids(batch, vocab, 4) == 0, BANNED)
        logits[:, 0] = draw.uniform(-1, 1)
        share = clear_share(draw, logits)
        for shaped in (logits, logits[0], logits.T.contiguous().T[:, None]):
            before = shaped.clone()
            answer = student.min_p_filter(shaped, share)
            expect.close(answer, reference.min_p_filter(before, share))
            expect.unchanged(shaped, before, "logits")


@suite.check(
    "hidden_min_p_edges",
    of="min_p_filter",
    points=0.25,
    claim="treats min_p at its edges as the contract says, and half precision as float32",
    teaching="secret inputs: catches answers made for the visible ones",
)
def min_p_edges(student: Any, draw: Draw) -> None:
    logits = draw.logits(draw.integer(2, 6), draw.integer(3, 30))
    logits[:, draw.integer(0, 2)] = -200.0
    for min_p in (None, 0, 0.0, 1, 1.0):
        expected = reference.min_p_filter(logits, min_p)
        expect.close(student.min_p_filter(logits, min_p), expected)
    large = logits + 300
    share = clear_share(draw, large)
    expect.close(student.min_p_filter(large, share), reference.min_p_filter(large, share))
    for min_p in (-1e-9, -1, 1 + 1e-9, 2, NAN, INF, -INF):
        with expect.raises(ValueError, "a min_p outside [0, 1]"):
            student.min_p_filter(logits, min_p)
    for dtype in (torch.float16, torch.bfloat16):
        half = (draw.logits(3, 250).argsort(dim=-1) / 64).to(dtype)
        # between two tokens, whose logits lie 1/64 apart
        gap = torch.tensor((draw.integer(30, 200) + 0.5) / 64)
        share = float((-gap).exp())
        answer = expect.full_precision(student.min_p_filter(half, share))
        expect.close(answer, reference.min_p_filter(half, share))
        expect.full_precision(student.min_p_filter(half, None))
