"""Lesson 1, hidden: the three functions against the reference, where slips hide."""

import math
from typing import Any

import torch

from course_lib.checks import expect
from course_lib.checks.draw import Draw
from course_lib.checks.kit import Suite
from solutions import training as reference

suite = Suite("training", hidden=True)


@suite.check(
    "hidden_loss_any_batch",
    of="next_token_loss",
    points=0.75,
    claim="equals the reference for any batch, length and vocabulary, equal and single ones too",
    teaching="secret inputs: catches answers made for the visible ones",
)
def loss_any_batch(student: Any, draw: Draw) -> None:
    for batch, pos, vocab in [(1, 2, 9), (5, 2, 1), (4, 4, 4), (3, 9, 5), (2, 5, 300)]:
        logits, tokens = draw.normal(batch, pos, vocab, spread=3.0), draw.ids(batch, pos, vocab)
        expect.close(
            student.next_token_loss(logits, tokens), reference.next_token_loss(logits, tokens)
        )


@suite.check(
    "hidden_loss_ignored",
    of="next_token_loss",
    points=0.75,
    claim="leaves out what ignore_index says, whatever its value and wherever it stands",
)
def loss_ignored(student: Any, draw: Draw) -> None:
    vocab = draw.integer(4, 12)
    logits = draw.normal(4, 7, vocab, spread=3.0)
    # none, a few, nearly all targets left out; by a value that is an id, and by some that are not
    for ignored in (-100, -1, 0, draw.integer(1, vocab - 1), vocab, 10**6):
        for share in (0, 2, 5):
            tokens = draw.ids(4, 7, vocab).masked_fill(draw.ids(4, 7, 6) < share, ignored)
            expect.close(
                student.next_token_loss(logits, tokens, ignored),
                reference.next_token_loss(logits, tokens, ignored),
            )
    tokens = torch.full((4, 7), draw.integer(0, vocab - 1))
    answer = student.next_token_loss(logits, tokens, int(tokens[0, 0]))
    expect.close(answer, torch.tensor(math.nan))


@suite.check(
    "hidden_loss_edges",
    of="next_token_loss",
    points=0.5,
    claim="is exact in half precision, for huge logits, banned tokens and vocabulary 50,000",
)
def loss_edges(student: Any, draw: Draw) -> None:
    tokens = draw.ids(3, 6, 40)
    for dtype in (torch.float16, torch.bfloat16):
        logits = draw.normal(3, 6, 40, spread=6.0).to(dtype)
        loss = expect.full_precision(student.next_token_loss(logits, tokens))
        expect.close(loss, reference.next_token_loss(logits, tokens))
    logits = draw.normal(3, 6, 40, spread=4000.0)
    expect.close(student.next_token_loss(logits, tokens), reference.next_token_loss(logits, tokens))
    # an infinite loss where a banned token is asked for, a finite one elsewhere
    for asked in (tokens[0, 1], (tokens[0, 1] + 1) % 40):
        banned = draw.normal(1, 2, 40)
        banned[..., asked] = -torch.inf
        pair = tokens[:1, :2]
        expect.close(student.next_token_loss(banned, pair), reference.next_token_loss(banned, pair))
    logits, tokens = draw.normal(1, 3, 50_000, spread=3.0), draw.ids(1, 3, 50_000)
    expect.close(student.next_token_loss(logits, tokens), reference.next_token_loss(logits, tokens))


@suite.check(
    "hidden_loss_arguments",
    of="next_token_loss",
    points=0.5,
    claim="refuses wrong shapes and wrong targets, and never mutates what it accepts",
)
def loss_arguments(student: Any, draw: Draw) -> None:
    batch, pos, vocab = draw.integer(2, 4), draw.integer(3, 6), draw.integer(2, 9)
    logits = draw.normal(batch, pos, vocab)
    for shape in [(batch, pos + 1), (batch + 1, pos), (pos, batch + 5), (batch, 1), (1, pos)]:
        with expect.raises(ValueError, "shapes that do not belong together"):
            student.next_token_loss(logits, torch.ones(shape, dtype=torch.int64))
    for target in (vocab, -1, vocab + 1, -vocab, 10**6):
        tokens = draw.ids(batch, pos, vocab)
        tokens[draw.integer(0, batch - 1), draw.integer(1, pos - 1)] = target
        with expect.raises(ValueError, "a target that is no id"):
            student.next_token_loss(logits, tokens)
    # -100 means nothing where another value is the one to ignore
    with expect.raises(ValueError, "a target that is no id"):
        student.next_token_loss(logits, torch.full((batch, pos), -100), 0)
    # views of other memory: every second position, and axes turned
    wide, ids = draw.normal(vocab, 2 * pos, batch), draw.ids(2 * pos, batch, vocab)
    for strided, tokens in [
        (wide.transpose(0, 2)[:, ::2], ids.T[:, ::2]),
        (wide.permute(2, 1, 0)[:, pos:], ids.T[:, pos:]),
    ]:
        before = strided.clone(), tokens.clone()
        expect.close(student.next_token_loss(strided, tokens), reference.next_token_loss(*before))
        expect.unchanged(strided, before[0], "logits")
        expect.unchanged(tokens, before[1], "tokens")


@suite.check(
    "hidden_perplexity",
    of="perplexity",
    points=1,
    claim="is that of the whole text, however many batches it comes in, and refuses what is none",
)
def perplexity(student: Any, draw: Draw) -> None:
    for batches in (1, 2, 9):
        pairs = [(draw.uniform(0.0, 40.0), draw.integer(1, 30)) for _ in range(batches)]
        expected = reference.perplexity(pairs)
        expect.close(student.perplexity(pairs), expected)
        expect.close(student.perplexity([(0.0, 0), *pairs, (0.0, 0)]), expected)
        # a batch in which the model is certain counts as any other
        certain = [*pairs, (0.0, draw.integer(1, 30))]
        expect.close(student.perplexity(certain), reference.perplexity(certain))
        expect.close(student.perplexity(tuple(reversed(pairs))), expected)
    hopeless = [(draw.uniform(100.0, 600.0), 1)]
    expect.close(student.perplexity(hopeless), reference.perplexity(hopeless))
    count = draw.integer(1, 30)
    for none in (
        [],
        [(0.0, 0)] * 3,
        [(5.0, -count)],
        [(5.0, count), (1.0, -1)],
        [(5.0, count), (1.0, -count), (2.0, 40)],
    ):
        with expect.raises(ValueError, "no token, or a negative count"):
            student.perplexity(none)


@suite.check(
    "hidden_last_any_mask",
    of="last_logits",
    points=1,
    claim="finds the last real position of any mask, shape and precision, and mutates nothing",
)
def last_any_mask(student: Any, draw: Draw) -> None:
    for batch, pos, vocab in [(1, 1, 1), (1, 5, 3), (4, 1, 4), (4, 4, 4), (6, 9, 5)]:
        logits = draw.normal(batch, pos, vocab)
        expect.close(student.last_logits(logits), reference.last_logits(logits))
        # padding at either side or both, and a hole now and then
        mask = (draw.ids(batch, pos, 3) > 0).long()
        mask[:, draw.integer(0, pos - 1)] = 1
        for values in (logits, logits.half(), logits.bfloat16()):
            before = values.clone(), mask.clone()
            answer = expect.full_precision(student.last_logits(values, mask))
            expect.close(answer, reference.last_logits(*before))
            expect.unchanged(values, before[0], "logits")
            expect.unchanged(mask, before[1], "attention_mask")


@suite.check(
    "hidden_last_edges",
    of="last_logits",
    points=0.5,
    claim="keeps banned tokens banned, takes slices and transposes, refuses masks that do not fit",
)
def last_edges(student: Any, draw: Draw) -> None:
    batch, pos = draw.integer(2, 4), draw.integer(5, 8)
    block = draw.normal(7, pos, batch)
    block[draw.integer(0, 6)] = -torch.inf
    logits, mask = block.permute(2, 1, 0), torch.ones(pos, batch, dtype=torch.int64).T.clone()
    mask[0, -draw.integer(1, 3) :] = 0
    expect.close(student.last_logits(logits), reference.last_logits(logits))
    expect.close(student.last_logits(logits, mask), reference.last_logits(logits, mask))
    for shape in [(batch, pos - 1), (batch + 1, pos), (1, pos), (pos,), (pos, batch)]:
        with expect.raises(ValueError, "a mask of another shape"):
            student.last_logits(logits, torch.ones(shape, dtype=torch.int64))
    mask[draw.integer(0, batch - 1)] = 0
    with expect.raises(ValueError, "a row without a real position"):
        student.last_logits(logits, mask)
