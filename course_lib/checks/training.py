"""Lesson 1: what next_token_loss, perplexity and last_logits must do."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from . import expect
from .draw import Draw
from .kit import Suite

suite = Suite("training")

IGNORED = -100


def sure_of(*ids: int) -> Tensor:
    """Logits (pos, 4) of a model that is all but certain: of `ids[t]` after position t.

    Where it is right its loss is 0, where it is wrong its loss is 20.
    """
    return 20.0 * F.one_hot(torch.tensor(ids), 4)


def loss_in_lists(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> float:
    """The mean loss, position by position and in plain Python numbers."""
    losses = []
    for rows, ids in zip(logits.tolist(), tokens.tolist(), strict=True):
        for row, target in zip(rows, ids[1:], strict=False):
            if target != ignore_index:
                top = max(row)
                losses.append(top + math.log(sum(math.exp(x - top) for x in row)) - row[target])
    return sum(losses) / len(losses)


# --- next_token_loss ---


@suite.check(
    "loss_shift",
    of="next_token_loss",
    points=1.5,
    claim="scores position t by token t+1; the last position has no target",
    teaching="the worked example of the lesson, and the first check that a learner meets",
)
def loss_shift(student: Any) -> None:
    logits = torch.tensor([[[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]]])
    loss = student.next_token_loss(logits, torch.tensor([[0, 1, 2]]))
    expect.close(loss, torch.tensor(1.407606))
    text = torch.tensor([[0, 1, 2, 3]])
    # a model that knows the next token loses nothing, one that repeats its input loses all
    expect.close(student.next_token_loss(sure_of(1, 2, 3, 0)[None], text), torch.tensor(0.0))
    expect.close(student.next_token_loss(sure_of(0, 1, 2, 3)[None], text), torch.tensor(20.0))
    # nobody knows what comes after the end, so it does not matter what the last position says
    expect.close(student.next_token_loss(sure_of(1, 2, 3, 3)[None], text), torch.tensor(0.0))


@suite.check(
    "loss_uniform",
    of="next_token_loss",
    points=0.5,
    claim="is log(vocab) for a model that knows nothing, in nats a token",
    teaching="the number to expect in the first step of every training: log 4096 is 8.318",
)
def loss_uniform(student: Any) -> None:
    for vocab, nats in [(6400, 8.764053), (4096, 8.317766)]:
        tokens = torch.tensor([[5, 1, 4, 1], [0, 2, 2, vocab - 1]])
        loss = student.next_token_loss(torch.zeros(2, 4, vocab), tokens)
        expect.close(loss, torch.tensor(nats))


@suite.check(
    "loss_rows_apart",
    of="next_token_loss",
    points=0.5,
    claim="keeps the rows of a batch apart, and counts every token of every row",
    teaching="the mistakes of batches, told on two rows that a person can read",
)
def loss_rows_apart(student: Any) -> None:
    # one wrong answer among six; what row 0 says last has nothing to do with how row 1 begins
    logits = torch.stack([sure_of(1, 2, 3, 0), sure_of(2, 1, 1, 0)])
    loss = student.next_token_loss(logits, torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]]))
    expect.close(loss, torch.tensor(20.0 / 6))


@suite.check(
    "loss_ignored",
    of="next_token_loss",
    points=0.5,
    claim="leaves targets equal to ignore_index out: of the sum and of the count",
)
def loss_ignored(student: Any) -> None:
    # two targets count: one costs log 3, the other next to nothing
    logits = torch.tensor([[[0.0, 0.0, 0.0], [0.0, 0.0, 9.0], [0.0, 9.0, 0.0], [9.0, 0.0, 0.0]]])
    loss = student.next_token_loss(logits, torch.tensor([[0, 1, 2, IGNORED]]))
    expect.close(loss, torch.tensor(0.549430))
    # a mean over targets, not over rows: row 0 has three of them, row 1 has one
    logits = torch.stack([sure_of(1, 2, 3, 0), sure_of(0, 0, 0, 0)])
    tokens = torch.tensor([[0, 1, 2, 3], [0, 1, IGNORED, IGNORED]])
    expect.close(student.next_token_loss(logits, tokens), torch.tensor(20.0 / 4))
    # any id may stand for padding. On the left it is asked from, but never asked for
    logits = torch.stack([sure_of(3, 1, 2, 0), sure_of(0, 1, 0, 0)])
    tokens = torch.tensor([[0, 0, 1, 2], [3, 3, 0, 0]])
    expect.close(student.next_token_loss(logits, tokens, 0), torch.tensor(20.0 / 3))


@suite.check(
    "loss_nothing_left",
    of="next_token_loss",
    points=0.5,
    claim="is NaN where no target is left, as torch's cross_entropy is",
)
def loss_nothing_left(student: Any) -> None:
    nan = torch.tensor(math.nan)
    tokens = torch.full((1, 3), IGNORED)
    expect.close(student.next_token_loss(torch.zeros(1, 3, 4), tokens), nan)
    # a text of one token holds nothing to predict
    tokens = torch.zeros(2, 1, dtype=torch.int64)
    expect.close(student.next_token_loss(torch.zeros(2, 1, 4), tokens), nan)


@suite.check(
    "loss_extreme_logits",
    of="next_token_loss",
    points=0.5,
    claim="is exact for huge logits and for banned tokens (-inf)",
)
def loss_extreme_logits(student: Any) -> None:
    # to a computer exp(1000) is infinite and exp(-1000) is 0, and neither has a log
    for target, nats in [(0, 0.0), (1, 1000.0)]:
        logits = torch.tensor([[[1000.0, 0.0], [0.0, 0.0]]])
        loss = student.next_token_loss(logits, torch.tensor([[0, target]]))
        expect.close(loss, torch.tensor(nats))
    # a token that the model rules out, and that is not asked for, costs nothing
    logits = torch.tensor([[[-math.inf, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    loss = student.next_token_loss(logits, torch.tensor([[0, 1]]))
    expect.close(loss, torch.tensor(math.log(2)))


@suite.check(
    "loss_half_precision",
    of="next_token_loss",
    points=0.5,
    claim="computes half-precision logits in float32",
)
def loss_half_precision(student: Any) -> None:
    # bfloat16 has two to three digits: enough for a logit, too few for a sum over a vocabulary
    logits = (torch.arange(900).view(1, 3, 300) % 7).to(torch.bfloat16)
    tokens = torch.tensor([[17, 250, 33]])
    expected = torch.tensor(loss_in_lists(logits, tokens))
    expect.close(expect.full_precision(student.next_token_loss(logits, tokens)), expected)


@suite.check(
    "loss_untouched",
    of="next_token_loss",
    points=0.25,
    claim="leaves the caller's logits and tokens as they are",
)
def loss_untouched(student: Any) -> None:
    logits, tokens = sure_of(3, 2, 1, 0)[None], torch.tensor([[0, IGNORED, 2, 1]])
    before = logits.clone(), tokens.clone()
    student.next_token_loss(logits, tokens)
    expect.unchanged(logits, before[0], "logits")
    expect.unchanged(tokens, before[1], "tokens")


@suite.check(
    "loss_bad_shapes",
    of="next_token_loss",
    points=0.5,
    claim="logits and tokens that do not belong together raise ValueError",
)
def loss_bad_shapes(student: Any) -> None:
    # torch itself would take these: each has a number of targets that seems to fit
    for batch, pos in [(1, 4), (2, 3), (3, 3)]:
        with expect.raises(ValueError, f"logits (2, 4, 5) with tokens ({batch}, {pos})"):
            tokens = torch.ones(batch, pos, dtype=torch.int64)
            student.next_token_loss(torch.zeros(2, 4, 5), tokens)


@suite.check(
    "loss_bad_targets",
    of="next_token_loss",
    points=0.5,
    claim="a target that is no id of the vocabulary raises ValueError",
)
def loss_bad_targets(student: Any) -> None:
    for target in (-1, 4):
        with expect.raises(ValueError, f"token {target}, where ids go from 0 to 3"):
            student.next_token_loss(torch.zeros(1, 3, 4), torch.tensor([[0, target, 2]]))


@suite.check(
    "loss_by_hand",
    of="next_token_loss",
    points=0.5,
    claim="agrees with plain arithmetic on random batches",
    teaching="a property on random input: catches answers made for the examples",
)
def loss_by_hand(student: Any, draw: Draw) -> None:
    for batch, pos, vocab in [(1, 2, 1), (3, 3, 3), (2, 3, 2), (4, 6, 20)]:
        logits, tokens = draw.normal(batch, pos, vocab, spread=2.0), draw.ids(batch, pos, vocab)
        tokens[0, 0] = IGNORED
        # the last row ends early, as a padded one does
        tokens[-1, 2:] = IGNORED
        expected = torch.tensor(loss_in_lists(logits, tokens))
        expect.close(student.next_token_loss(logits, tokens), expected)


# --- perplexity ---


@suite.check(
    "perplexity_weighted",
    of="perplexity",
    points=0.5,
    claim="is exp of the mean over all tokens, however they were batched",
    teaching="the worked examples of the lesson",
    exact=True,
)
def perplexity_weighted(student: Any) -> None:
    # a certain model hesitates between 1 token, a clueless one between all of them
    expect.close(student.perplexity([(0.0, 7)]), 1.0)
    expect.close(student.perplexity([(10 * math.log(4096), 10)]), 4096.0)
    # 8 nats over 4 tokens
    expect.close(student.perplexity([(6.0, 1), (2.0, 3)]), 7.389056)
    # four tokens at 1 in 2 and four at 1 in 8: as good as eight at 1 in 4, not at 1 in 5
    expect.close(student.perplexity([(4 * math.log(2), 4), (4 * math.log(8), 4)]), 4.0)


@suite.check(
    "perplexity_any_batches",
    of="perplexity",
    points=0.5,
    claim="takes any iterable of batches, empty ones too, and walks through it once",
)
def perplexity_any_batches(student: Any) -> None:
    # the same five tokens, cut at every place: at either end an empty batch
    nats = [0.5, 1.5, 2.5, 0.1, 3.0]
    for cut in range(6):
        batches = [(sum(nats[:cut]), cut), (sum(nats[cut:]), 5 - cut)]
        expect.close(student.perplexity(batches), math.exp(7.6 / 5))
    # an evaluation yields its batches as they are done: they can be had once
    expect.close(student.perplexity(iter([(6.0, 1), (2.0, 3)])), 7.389056)


@suite.check(
    "perplexity_bad_counts",
    of="perplexity",
    points=0.5,
    claim="no token at all, or a negative count, raises ValueError",
)
def perplexity_bad_counts(student: Any) -> None:
    with expect.raises(ValueError, "no batch, so no token"):
        student.perplexity([])
    with expect.raises(ValueError, "a batch of 0 tokens and no other"):
        student.perplexity([(0.0, 0)])
    with expect.raises(ValueError, "a count of -3"):
        student.perplexity([(1.0, 5), (1.0, -3)])


# --- last_logits ---


@suite.check(
    "last_position",
    of="last_logits",
    points=0.5,
    claim="gives the last position's logits of every row, (batch, vocab)",
    teaching="the worked example of the lesson",
)
def last_position(student: Any) -> None:
    logits = torch.arange(12.0).view(2, 3, 2)
    expect.close(student.last_logits(logits), torch.tensor([[4.0, 5.0], [10.0, 11.0]]))
    # a prompt of one token, and a batch of one
    expect.close(student.last_logits(logits[:, :1]), torch.tensor([[0.0, 1.0], [6.0, 7.0]]))
    expect.close(student.last_logits(logits[:1]), torch.tensor([[4.0, 5.0]]))
    # all axes of one length: an axis taken for another gives the right shape
    cube = torch.arange(8.0).view(2, 2, 2)
    expect.close(student.last_logits(cube), torch.tensor([[2.0, 3.0], [6.0, 7.0]]))


@suite.check(
    "last_real_position",
    of="last_logits",
    points=0.5,
    claim="with a mask, gives each row's last real position, whichever side is padded",
)
def last_real_position(student: Any) -> None:
    for mask, positions in [
        ([[1, 1, 1, 1], [1, 1, 1, 1]], [3, 3]),
        ([[1, 1, 0, 0], [1, 0, 0, 0]], [1, 0]),
        # padded on the left, where the number of real tokens says nothing about the last one
        ([[0, 0, 1, 1], [0, 0, 0, 1]], [3, 3]),
        ([[1, 1, 1, 0], [0, 1, 1, 1]], [2, 3]),
        ([[0, 1, 1, 0], [0, 0, 1, 0]], [2, 2]),
        # a gap inside a row, where neither its start nor its count leads to the end
        ([[1, 0, 1, 0], [1, 0, 0, 1]], [2, 3]),
    ]:
        logits = torch.arange(24.0).view(2, 4, 3)
        expected = [row[at] for row, at in zip(logits.tolist(), positions, strict=True)]
        answer = student.last_logits(logits, torch.tensor(mask))
        expect.close(answer, torch.tensor(expected))


@suite.check(
    "last_half_precision",
    of="last_logits",
    points=0.25,
    claim="gives half-precision logits back in float32",
)
def last_half_precision(student: Any) -> None:
    for mask, expected in [(None, [[3.0, 4.0]]), (torch.tensor([[1, 0]]), [[1.0, 2.0]])]:
        logits = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]], dtype=torch.bfloat16)
        answer = expect.full_precision(student.last_logits(logits, mask))
        expect.close(answer, torch.tensor(expected))


@suite.check(
    "last_mask_length",
    of="last_logits",
    points=0.25,
    claim="a mask of another number of positions raises ValueError",
)
def last_mask_length(student: Any) -> None:
    for pos in (3, 5):
        with expect.raises(ValueError, f"a mask (2, {pos}) for logits (2, 4, 3)"):
            mask = torch.ones(2, pos, dtype=torch.int64)
            student.last_logits(torch.arange(24.0).view(2, 4, 3), mask)


@suite.check(
    "last_mask_rows",
    of="last_logits",
    points=0.25,
    claim="a mask of another number of rows raises ValueError",
)
def last_mask_rows(student: Any) -> None:
    # a single row would spread over the batch without a word
    for shape in [(1, 4), (3, 4), (4,)]:
        with expect.raises(ValueError, f"a mask {shape} for logits (2, 4, 3)"):
            mask = torch.ones(shape, dtype=torch.int64)
            student.last_logits(torch.arange(24.0).view(2, 4, 3), mask)


@suite.check(
    "last_empty_row",
    of="last_logits",
    points=0.25,
    claim="a row that is all padding raises ValueError: it has no last real position",
)
def last_empty_row(student: Any) -> None:
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]])
    with expect.raises(ValueError, "row 1 of attention_mask, which is all 0"):
        student.last_logits(torch.arange(24.0).view(2, 4, 3), mask)


@suite.check(
    "last_untouched",
    of="last_logits",
    points=0.25,
    claim="leaves the caller's logits and mask as they are",
)
def last_untouched(student: Any) -> None:
    logits, mask = torch.arange(12.0).view(2, 3, 2), torch.tensor([[1, 1, 0], [0, 1, 1]])
    before = logits.clone(), mask.clone()
    student.last_logits(logits, mask)
    expect.unchanged(logits, before[0], "logits")
    expect.unchanged(mask, before[1], "attention_mask")
