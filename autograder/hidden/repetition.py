"""Lesson 6, hidden: the penalties against the reference, where slips hide."""

import math
from typing import Any

import torch
from torch import Tensor

from course_lib.checks import expect
from course_lib.checks.draw import Draw
from course_lib.checks.kit import Suite
from solutions import repetition as reference

suite = Suite("repetition", hidden=True)

SECRET = "secret inputs: catches answers made for the visible ones"


def agree(
    student: Any, logits: Tensor, ids: Tensor, penalty: float, mask: Tensor | None = None
) -> None:
    """The learner's answer is the reference's; a copy is handed over, lest a slip that has a check
    of its own (writing into the input) costs this one too.
    """
    wanted = reference.apply_repetition_penalty(logits, ids, penalty, mask)
    answer = student.apply_repetition_penalty(logits.clone(), ids.clone(), penalty, mask)
    expect.close(answer, wanted)


@suite.check(
    "hidden_any_batch",
    of="apply_repetition_penalty",
    points=1,
    claim="equals the reference for any batch, vocabulary and length, B = 1, V = 1 and B = V "
    "included",
    teaching=SECRET,
)
def any_batch(student: Any, draw: Draw) -> None:
    for batch, vocab, length in [(1, 1, 1), (4, 1, 5), (1, 9, 20), (7, 7, 7), (3, 40, 1)]:
        logits, ids = draw.logits(batch, vocab), draw.ids(batch, length, vocab)
        penalty = draw.uniform(1.05, 2.5)
        agree(student, logits, ids, penalty)


@suite.check(
    "hidden_edges_of_penalty",
    of="apply_repetition_penalty",
    points=1,
    claim="treats the penalty at its edges as the contract says: off at 1, tiny, huge, refused",
)
def edges_of_penalty(student: Any, draw: Draw) -> None:
    logits, ids = draw.logits(3, 12), draw.ids(3, 8, 12)
    for penalty in (1.0, 1 + 1e-3, 1 - 1e-3, 1e-3, draw.uniform(0.3, 0.9), 1e3):
        agree(student, logits, ids, penalty)
    for penalty in (0.0, -0.0, -1e-9, -draw.uniform(0.1, 9.0), math.nan, math.inf, -math.inf):
        with expect.raises(ValueError, "a penalty that is no finite number above 0"):
            student.apply_repetition_penalty(logits, ids, penalty)


@suite.check(
    "hidden_padding_anywhere",
    of="apply_repetition_penalty",
    points=1,
    claim="leaves padding out wherever it stands, also where the pad id is a token of the text, "
    "and where a row is padding alone",
    teaching=SECRET,
)
def padding_anywhere(student: Any, draw: Draw) -> None:
    batch, vocab, length = 6, 9, 10
    logits, ids = draw.logits(batch, vocab), draw.ids(batch, length, vocab)
    mask = draw.ids(batch, length, 2)
    mask[0], mask[1] = 0, 1
    left = torch.arange(length).expand(batch, -1) >= draw.ids(batch, 1, length)
    pad = draw.integer(0, vocab - 1)
    for real in (mask, left.long(), 1 - left.long()):
        for shown in (ids, ids.masked_fill(real == 0, pad)):
            agree(student, logits, shown, 1.7, real)


@suite.check(
    "hidden_banned_tokens",
    of="apply_repetition_penalty",
    points=0.5,
    claim="keeps banned tokens banned, also in a row where all are",
    teaching=SECRET,
)
def banned_tokens(student: Any, draw: Draw) -> None:
    logits, ids = draw.logits(6, 20), draw.ids(6, 15, 20)
    banned = draw.ids(6, 20, 3) > 0
    banned[0] = True
    logits = logits.masked_fill(banned, -torch.inf)
    for penalty in (1.0, draw.uniform(1.1, 2.0), draw.uniform(0.5, 0.9)):
        agree(student, logits, ids, penalty)


@suite.check(
    "hidden_half_precision",
    of="apply_repetition_penalty",
    points=0.5,
    claim="float16 and bfloat16 logits are computed in float32, and give float32 results",
    teaching=SECRET,
)
def half_precision(student: Any, draw: Draw) -> None:
    ids, penalty = draw.ids(4, 20, 60), draw.uniform(1.1, 1.9)
    for dtype in (torch.float16, torch.bfloat16):
        logits = draw.logits(4, 60).to(dtype)
        for knob in (penalty, 1.0):
            answer = expect.full_precision(student.apply_repetition_penalty(logits, ids, knob))
            expect.close(answer, reference.apply_repetition_penalty(logits, ids, knob))


@suite.check(
    "hidden_big_vocabulary",
    of="apply_repetition_penalty",
    points=0.25,
    claim="equals the reference at a vocabulary of 50,000 and a text of 1,000 tokens",
    teaching=SECRET,
)
def big_vocabulary(student: Any, draw: Draw) -> None:
    logits, ids = draw.logits(2, 50_000), draw.ids(2, 1_000, 50_000)
    agree(student, logits, ids, 1.3)


@suite.check(
    "hidden_not_contiguous",
    of="apply_repetition_penalty",
    points=0.25,
    claim="takes slices and transposes, and leaves every argument as it is",
)
def not_contiguous(student: Any, draw: Draw) -> None:
    logits = draw.logits(9, 4).T
    ids = draw.ids(4, 12, 9)[:, ::2]
    mask = draw.ids(6, 4, 2).T
    before = logits.clone(), ids.clone(), mask.clone()
    expect.close(
        student.apply_repetition_penalty(logits, ids, 1.4, mask),
        reference.apply_repetition_penalty(*before[:2], 1.4, before[2]),
    )
    expect.unchanged(logits, before[0], "logits")
    expect.unchanged(ids, before[1], "ids")
    expect.unchanged(mask, before[2], "attention_mask")


@suite.check(
    "hidden_wrong_arguments",
    of="apply_repetition_penalty",
    points=0.25,
    claim="refuses ids outside the vocabulary in any row, and shapes that do not belong together",
)
def wrong_arguments(student: Any, draw: Draw) -> None:
    vocab = draw.integer(4, 9)
    logits, ids = draw.logits(3, vocab), draw.ids(3, 5, vocab)
    for wrong in (vocab, vocab + draw.integer(1, 1000), -1, -vocab, -100):
        outside = ids.clone()
        outside[draw.integer(0, 2), draw.integer(0, 4)] = wrong
        with expect.raises(ValueError, "an id outside the vocabulary"):
            student.apply_repetition_penalty(logits, outside, 1.5)
    for rows in (ids[:1], ids[:2], torch.cat([ids, ids])):
        with expect.raises(ValueError, "ids and logits of different batches"):
            student.apply_repetition_penalty(logits, rows, 1.5)
    mask = torch.ones_like(ids)
    for wrong_mask in (mask[:1], mask[:, :1], mask[:, :4], torch.cat([mask, mask], dim=1)):
        with expect.raises(ValueError, "a mask that has not the shape of ids"):
            student.apply_repetition_penalty(logits, ids, 1.5, wrong_mask)


@suite.check(
    "hidden_frequency",
    of="apply_frequency_penalty",
    points=0.25,
    claim="stretch: equals the reference for any batch, mask, precision and pair of knobs",
)
def frequency(student: Any, draw: Draw) -> None:
    for batch, vocab, length in [(1, 1, 4), (6, 6, 6), (3, 30, 50), (2, 2, 900)]:
        logits, ids = draw.logits(batch, vocab), draw.ids(batch, length, vocab)
        logits = logits.masked_fill(draw.ids(batch, vocab, 4) == 0, -torch.inf)
        mask = draw.ids(batch, length, 2)
        knobs: dict[str, Any] = {
            "presence": draw.uniform(-1, 2),
            "frequency": draw.uniform(-1, 2),
        }
        for given in (knobs, {"presence": knobs["presence"]}, {"frequency": 0.3}):
            for real in (None, mask):
                before = logits.clone()
                answer = student.apply_frequency_penalty(logits, ids, **given, attention_mask=real)
                wanted = reference.apply_frequency_penalty(
                    before, ids, **given, attention_mask=real
                )
                expect.close(answer, wanted)
                expect.unchanged(logits, before, "logits")
        for dtype in (torch.float16, torch.bfloat16):
            half = logits.to(dtype)
            answer = expect.full_precision(student.apply_frequency_penalty(half, ids, **knobs))
            expect.close(answer, reference.apply_frequency_penalty(half, ids, **knobs))
            expect.full_precision(student.apply_frequency_penalty(half, ids))
    for name in ("presence", "frequency"):
        for bad in (math.nan, math.inf, -math.inf):
            with expect.raises(ValueError, "a knob that is no finite number"):
                student.apply_frequency_penalty(logits, ids, **{name: bad})
    for wrong in (2, -1):
        with expect.raises(ValueError, "an id outside the vocabulary"):
            student.apply_frequency_penalty(logits, ids.clone().fill_(wrong), frequency=0.5)
