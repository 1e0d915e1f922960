"""Lesson 6: what apply_repetition_penalty and, as a stretch, apply_frequency_penalty must do."""

from typing import Any

import torch

from . import expect
from .draw import Draw
from .kit import Suite

suite = Suite("repetition")

BANNED = -torch.inf
NAN, INF = float("nan"), float("inf")


@suite.check(
    "sign_rule",
    of="apply_repetition_penalty",
    points=1.5,
    claim="divides a positive logit of a seen token by the penalty, multiplies a negative one",
    teaching="the rule itself, in the numbers of the lesson",
)
def sign_rule(student: Any) -> None:
    logits = torch.tensor([[4.0, -4.0, 0.0, 8.0]])
    answer = student.apply_repetition_penalty(logits, torch.tensor([[0, 1, 2]]), 2.0)
    expect.close(answer, torch.tensor([[2.0, -8.0, 0.0, 8.0]]))
    # one seen token among others that are left alone
    logits = torch.tensor([[0.0, 4.0, 3.9]])
    answer = student.apply_repetition_penalty(logits, torch.tensor([[1]]), 2.0)
    expect.close(answer, torch.tensor([[0.0, 2.0, 3.9]]))


@suite.check(
    "less_likely",
    of="apply_repetition_penalty",
    points=0.5,
    claim="makes a seen token less likely, also where every logit is negative",
    teaching="shows what the sign rule is for: the probability has to fall",
)
def less_likely(student: Any) -> None:
    # token 1 had probability 0.731; dividing its logit would raise that to 0.924
    logits = torch.tensor([[-4.0, -3.0]])
    answer = student.apply_repetition_penalty(logits, torch.tensor([[1]]), 2.0)
    expect.probabilities(answer, [[0.880797, 0.119203]])
    logits = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
    answer = student.apply_repetition_penalty(logits, torch.tensor([[0, 3]]), 1.2)
    expect.probabilities(answer, [[0.554137, 0.284504, 0.115671, 0.031524, 0.014165]])


@suite.check(
    "once_per_token",
    of="apply_repetition_penalty",
    points=1,
    claim="penalises a token once, however often it occurs",
    teaching="told on three tokens that a person can count",
)
def once_per_token(student: Any) -> None:
    logits = torch.tensor([[8.0, 1.0, -8.0]])
    answer = student.apply_repetition_penalty(logits, torch.tensor([[0, 0, 2, 0, 2]]), 2.0)
    expect.close(answer, torch.tensor([[4.0, 1.0, -16.0]]))


@suite.check(
    "whole_history",
    of="apply_repetition_penalty",
    points=0.5,
    claim="looks at the whole row, from the first token of the prompt to the newest",
)
def whole_history(student: Any) -> None:
    # 3 is the prompt, 1 was made after it
    answer = student.apply_repetition_penalty(torch.full((1, 4), 2.0), torch.tensor([[3, 1]]), 2.0)
    expect.close(answer, torch.tensor([[2.0, 1.0, 2.0, 1.0]]))
    # a long text: token 3 at its beginning only, token 0 at its end only
    text = torch.tensor([[3] + [2] * 300 + [0]])
    answer = student.apply_repetition_penalty(torch.full((1, 4), 2.0), text, 2.0)
    expect.close(answer, torch.tensor([[1.0, 2.0, 1.0, 1.0]]))


@suite.check(
    "rows_apart",
    of="apply_repetition_penalty",
    points=1,
    claim="gives each row of a batch its own history",
    teaching="the mistake of batches, told on rows that a person can read",
)
def rows_apart(student: Any) -> None:
    # as many rows as tokens: mixed-up axes raise no error here
    logits = torch.tensor([[4.0, 4.0], [4.0, 4.0]])
    answer = student.apply_repetition_penalty(logits, torch.tensor([[0], [1]]), 2.0)
    expect.close(answer, torch.tensor([[2.0, 4.0], [4.0, 2.0]]))
    logits = torch.tensor([[3.0, -3.0, 6.0], [-3.0, 3.0, -6.0], [9.0, 9.0, 9.0]])
    ids = torch.tensor([[0, 1, 1, 0], [2, 2, 2, 2], [1, 0, 1, 0]])
    answer = student.apply_repetition_penalty(logits, ids, 3.0)
    expect.close(answer, torch.tensor([[1.0, -9.0, 6.0], [-3.0, 3.0, -18.0], [3.0, 3.0, 9.0]]))


@suite.check(
    "padding",
    of="apply_repetition_penalty",
    points=1,
    claim="does not count padding (mask 0) as seen",
    teaching="the mistake of padded batches, told on rows that a person can read",
)
def padding(student: Any) -> None:
    logits = torch.tensor([[4.0, 4.0, 4.0]])
    ids, mask = torch.tensor([[0, 0, 2]]), torch.tensor([[0, 0, 1]])
    answer = student.apply_repetition_penalty(logits, ids, 2.0, mask)
    expect.close(answer, torch.tensor([[4.0, 4.0, 2.0]]))
    # often the pad id is also a token of the text: row 0 has it as both, row 1 on the right
    logits = torch.tensor([[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]])
    ids, mask = torch.tensor([[0, 2, 0], [1, 2, 0]]), torch.tensor([[0, 1, 1], [1, 1, 0]])
    answer = student.apply_repetition_penalty(logits, ids, 2.0, attention_mask=mask)
    expect.close(answer, torch.tensor([[2.0, 4.0, 2.0], [4.0, 2.0, 2.0]]))


@suite.check(
    "one_is_off",
    of="apply_repetition_penalty",
    points=0.5,
    claim="a penalty of 1.0 changes nothing, one below 1 makes repetition more likely",
)
def one_is_off(student: Any) -> None:
    logits, ids = torch.tensor([[4.0, -4.0, 1.0]]), torch.tensor([[0, 1]])
    expect.close(student.apply_repetition_penalty(logits.clone(), ids, 1.0), logits)
    answer = student.apply_repetition_penalty(logits.clone(), ids, 0.5)
    expect.close(answer, torch.tensor([[8.0, -2.0, 1.0]]))


@suite.check(
    "banned_stay_banned",
    of="apply_repetition_penalty",
    points=0.5,
    claim="a banned token (-inf) stays banned, seen or not",
)
def banned_stay_banned(student: Any) -> None:
    logits = torch.tensor([[BANNED, 4.0, BANNED, -1.0]])
    answer = student.apply_repetition_penalty(logits, torch.tensor([[0, 1]]), 2.0)
    expect.close(answer, torch.tensor([[BANNED, 2.0, BANNED, -1.0]]))


@suite.check(
    "half_precision",
    of="apply_repetition_penalty",
    points=0.5,
    claim="computes half-precision logits in float32 and answers in float32",
)
def half_precision(student: Any) -> None:
    # 1/3 has no exact bfloat16: rounded there, it would come back as 0.334
    logits = torch.tensor([[1.0, 3.0, -2.0]], dtype=torch.bfloat16)
    answer = student.apply_repetition_penalty(logits, torch.tensor([[0]]), 3.0)
    expect.close(answer, torch.tensor([[1 / 3, 3.0, -2.0]]))
    expect.full_precision(answer)
    # what comes next wants float32 from a penalty that is off, too
    expect.full_precision(student.apply_repetition_penalty(logits, torch.tensor([[0]]), 1.0))


@suite.check(
    "input_untouched",
    of="apply_repetition_penalty",
    points=0.5,
    claim="leaves the caller's tensors as they are",
)
def input_untouched(student: Any) -> None:
    logits, ids, mask = torch.tensor([[4.0, 1.0]]), torch.tensor([[1, 0]]), torch.tensor([[0, 1]])
    before = logits.clone(), ids.clone(), mask.clone()
    student.apply_repetition_penalty(logits, ids, 2.0, mask)
    expect.unchanged(logits, before[0], "logits")
    expect.unchanged(ids, before[1], "ids")
    expect.unchanged(mask, before[2], "attention_mask")


@suite.check(
    "bad_penalty",
    of="apply_repetition_penalty",
    points=0.5,
    claim="a penalty of 0, below 0, NaN or infinite raises ValueError",
)
def bad_penalty(student: Any) -> None:
    logits, ids = torch.tensor([[4.0, 1.0]]), torch.tensor([[0]])
    # NaN compares False with everything, so `penalty <= 0` alone lets it through
    for penalty in (-1.5, NAN, INF, 0.0):
        with expect.raises(ValueError, f"penalty={penalty}"):
            student.apply_repetition_penalty(logits, ids, penalty)


@suite.check(
    "bad_ids",
    of="apply_repetition_penalty",
    points=0.25,
    claim="an id outside the vocabulary raises ValueError",
)
def bad_ids(student: Any) -> None:
    logits = torch.tensor([[4.0, 1.0, 2.0]])
    with expect.raises(ValueError, "id 3 in a vocabulary of 3"):
        student.apply_repetition_penalty(logits, torch.tensor([[0, 3]]), 2.0)
    # an index of -1 would quietly mean the last token
    with expect.raises(ValueError, "id -1"):
        student.apply_repetition_penalty(logits, torch.tensor([[-1, 0]]), 2.0)


@suite.check(
    "bad_shapes",
    of="apply_repetition_penalty",
    points=0.25,
    claim="ids or a mask that do not belong to the logits raise ValueError",
)
def bad_shapes(student: Any) -> None:
    logits, ids = torch.tensor([[4.0, 1.0], [2.0, 1.0]]), torch.tensor([[0, 1], [1, 1]])
    with expect.raises(ValueError, "ids of one row beside logits of two"):
        student.apply_repetition_penalty(logits, ids[:1], 2.0)
    with expect.raises(ValueError, "a mask of one row beside ids of two"):
        student.apply_repetition_penalty(logits, ids, 2.0, torch.tensor([[1, 0]]))
    with expect.raises(ValueError, "a mask of one position beside ids of two"):
        student.apply_repetition_penalty(logits, ids, 2.0, torch.tensor([[1], [0]]))


@suite.check(
    "against_a_loop",
    of="apply_repetition_penalty",
    points=0.5,
    claim="agrees with a plain loop on random rows",
    teaching="a property on random rows: catches answers made for the examples",
)
def against_a_loop(student: Any, draw: Draw) -> None:
    for batch, vocab, length in [(1, 1, 3), (3, 7, 4), (6, 6, 6), (2, 40, 30)]:
        logits, ids = draw.logits(batch, vocab), draw.ids(batch, length, vocab)
        mask, penalty = draw.ids(batch, length, 2), draw.uniform(1.1, 1.9)
        expected = logits.tolist()
        for scores, tokens, real in zip(expected, ids.tolist(), mask.tolist(), strict=True):
            for token in {t for t, r in zip(tokens, real, strict=True) if r}:
                # above 1 the penalty works against a token: of the two ways, the one down
                scores[token] = min(scores[token] / penalty, scores[token] * penalty)
        answer = student.apply_repetition_penalty(logits, ids, penalty, mask)
        expect.close(answer, torch.tensor(expected))


# --- stretch ---


@suite.check(
    "frequency_counts",
    of="apply_frequency_penalty",
    points=0.25,
    claim="stretch: subtracts presence once and frequency for each time that a token occurs",
    exact=True,
)
def frequency_counts(student: Any) -> None:
    logits, ids = torch.tensor([[4.0, 4.0, 4.0, -4.0]]), torch.tensor([[0, 3, 0, 1, 0]])
    # counts: 3, 1, 0, 1
    answer = student.apply_frequency_penalty(logits.clone(), ids, presence=0.5, frequency=1.0)
    expect.close(answer, torch.tensor([[0.5, 2.5, 4.0, -5.5]]))
    answer = student.apply_frequency_penalty(logits.clone(), ids, presence=0.5)
    expect.close(answer, torch.tensor([[3.5, 3.5, 4.0, -4.5]]))
    # below zero it encourages
    answer = student.apply_frequency_penalty(logits.clone(), ids, frequency=-1.0)
    expect.close(answer, torch.tensor([[7.0, 5.0, 4.0, -3.0]]))
    # both are off unless they are given
    expect.close(student.apply_frequency_penalty(logits.clone(), ids), logits)


@suite.check(
    "frequency_rows_and_padding",
    of="apply_frequency_penalty",
    points=0.25,
    claim="stretch: counts each row by itself, without its padding",
)
def frequency_rows_and_padding(student: Any) -> None:
    logits = torch.tensor([[1.0, 1.0, 1.0], [2.0, 2.0, BANNED]])
    ids, mask = torch.tensor([[0, 0, 2], [1, 0, 0]]), torch.tensor([[0, 1, 1], [1, 1, 1]])
    answer = student.apply_frequency_penalty(
        logits, ids, presence=0.5, frequency=0.25, attention_mask=mask
    )
    expect.close(answer, torch.tensor([[0.25, 1.0, 0.25], [1.0, 1.25, BANNED]]))


@suite.check(
    "frequency_half_precision",
    of="apply_frequency_penalty",
    points=0.2,
    claim="stretch: computes half-precision logits in float32 and answers in float32",
)
def frequency_half_precision(student: Any) -> None:
    # bfloat16 has no 0.1, and cannot count past 256
    logits, ids = torch.tensor([[1.0, 3.0]], dtype=torch.bfloat16), torch.tensor([[0] * 300])
    answer = student.apply_frequency_penalty(logits, ids, frequency=0.003)
    expect.close(answer, torch.tensor([[0.1, 3.0]]))
    expect.full_precision(answer)
    expect.full_precision(student.apply_frequency_penalty(logits, ids))


@suite.check(
    "frequency_input_untouched",
    of="apply_frequency_penalty",
    points=0.15,
    claim="stretch: leaves the caller's logits as they are",
)
def frequency_input_untouched(student: Any) -> None:
    logits = torch.tensor([[4.0, 1.0]])
    before = logits.clone()
    student.apply_frequency_penalty(logits, torch.tensor([[0]]), presence=1.0, frequency=1.0)
    expect.unchanged(logits, before, "logits")


@suite.check(
    "frequency_bad_arguments",
    of="apply_frequency_penalty",
    points=0.15,
    claim="stretch: NaN, infinities and ids outside the vocabulary raise ValueError",
)
def frequency_bad_arguments(student: Any) -> None:
    logits, ids = torch.tensor([[4.0, 1.0]]), torch.tensor([[0]])
    for bad in (NAN, INF, -INF):
        with expect.raises(ValueError, f"presence={bad}"):
            student.apply_frequency_penalty(logits, ids, presence=bad)
        with expect.raises(ValueError, f"frequency={bad}"):
            student.apply_frequency_penalty(logits, ids, frequency=bad)
    for wrong in (2, -1):
        with expect.raises(ValueError, f"id {wrong} in a vocabulary of 2"):
            student.apply_frequency_penalty(logits, torch.tensor([[wrong]]), presence=1.0)
