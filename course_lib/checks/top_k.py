"""Lesson 3: what top_k_filter must do."""

from typing import Any

import torch

from . import expect
from .draw import Draw
from .kit import Suite

suite = Suite("top_k")

BANNED = -torch.inf


@suite.check(
    "keeps_k",
    of="top_k_filter",
    points=2,
    claim="keeps the k highest logits and bans the others",
    teaching="the worked example of the lesson, and the first check that a learner meets",
)
def keeps_k(student: Any) -> None:
    # a worked example of the lesson, then the same with the tokens in another order
    logits = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
    expect.kept(student.top_k_filter(logits, 3), [{0, 1, 2}], logits)
    logits = torch.tensor([[1.0, 2.0, 0.5, 0.1]])
    expect.kept(student.top_k_filter(logits, 2), [{0, 1}], logits)
    expect.kept(student.top_k_filter(logits, 1), [{1}], logits)


@suite.check(
    "probability_zero",
    of="top_k_filter",
    points=1,
    claim="gives banned tokens probability 0, and the kept ones share the whole",
    teaching="shows why the ban must be -inf: the distribution is what matters",
)
def probability_zero(student: Any) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
    expect.probabilities(
        student.top_k_filter(logits, 3), [[0.659001, 0.242433, 0.098566, 0.0, 0.0]]
    )
    # every logit below zero: a ban by 0, or by any small number, would put these tokens on top
    logits = torch.tensor([[-1.0, -2.0, -3.0]])
    expect.probabilities(student.top_k_filter(logits, 1), [[1.0, 0.0, 0.0]])


@suite.check(
    "rows_apart",
    of="top_k_filter",
    points=2,
    claim="treats each row of a batch by itself",
    teaching="the mistake of batches, told on two rows that a person can read",
)
def rows_apart(student: Any) -> None:
    logits = torch.tensor([[9.0, 8.0, 7.0, 6.0], [1.0, 2.0, 3.0, 4.0]])
    expect.kept(student.top_k_filter(logits, 2), [{0, 1}, {2, 3}], logits)
    # as many rows as tokens: a threshold that lost its last axis compares the wrong way, and no
    # error says so
    logits = torch.tensor([[0.0, 1.0, 2.0], [50.0, 40.0, 30.0], [5.0, 4.0, 3.0]])
    expect.kept(student.top_k_filter(logits, 1), [{2}, {0}, {0}], logits)


@suite.check(
    "any_shape", of="top_k_filter", points=0.5, claim="works along the last axis of any shape"
)
def any_shape(student: Any) -> None:
    row = torch.tensor([0.0, 3.0, 1.0, 2.0])
    answer = expect.tensor(student.top_k_filter(row, 2), (4,), "for a single row what came back")
    expect.kept(answer[None], [{1, 3}])
    block = torch.stack([row, -row, row.flip(0)]).view(3, 1, 4)
    answer = expect.tensor(student.top_k_filter(block, 2), (3, 1, 4), "what came back")
    expect.kept(answer[:, 0], [{1, 3}, {0, 2}, {0, 2}])


@suite.check(
    "off",
    of="top_k_filter",
    points=1,
    claim="k = None and k = 0 keep every token; half-precision logits become float32 all the same",
)
def off(student: Any) -> None:
    logits = torch.tensor([[0.5, -1.2, 3.1]])
    expect.kept(student.top_k_filter(logits, None), [{0, 1, 2}], logits)
    expect.kept(student.top_k_filter(logits, 0), [{0, 1, 2}], logits)
    # what comes next gets float32 from a filter that is off too
    logits = torch.tensor([[1.0, 3.0, 2.0]], dtype=torch.bfloat16)
    answer = expect.full_precision(student.top_k_filter(logits, None), "what came back")
    expect.kept(answer, [{0, 1, 2}], logits)


@suite.check(
    "k_above_vocabulary", of="top_k_filter", points=0.5, claim="a k above the vocabulary keeps all"
)
def k_above_vocabulary(student: Any) -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    expect.kept(student.top_k_filter(logits, 100), [{0, 1, 2}], logits)
    expect.kept(student.top_k_filter(logits, 3), [{0, 1, 2}], logits)


def too_few(answers: list[Any]) -> list[Any]:
    """Of each answer only whether it keeps too few: which of the ties stay is a matter of taste."""
    return [bool(((answer != BANNED).sum(dim=-1) < 2).any()) for answer in answers]


@suite.check(
    "ties",
    of="top_k_filter",
    points=0.5,
    claim="equal logits at the k-th place do not cost a row its k tokens",
    remember=too_few,
    exact=True,
)
def ties(student: Any) -> None:
    # with k = 2 the tie is for the last place: whether both of it stay or one, two tokens must
    for row, best, tied, expected in [
        ([3.0, 1.0, 1.0, 0.0], {0}, {1, 2}, "0, and 1 or 2 or both"),
        ([2.0, 2.0, 2.0, 2.0], set(), {0, 1, 2, 3}, "two of the four at least"),
    ]:
        logits = torch.tensor([row])
        answer = expect.tensor(student.top_k_filter(logits, 2), (1, 4), "what came back")
        ids = set((answer[0] != BANNED).nonzero()[:, 0].tolist())
        expect.true(
            len(ids) >= 2 and best <= ids <= best | tied,
            f"kept ids {ids or '{}'}; expected {expected}",
        )


@suite.check(
    "banned_stay_banned",
    of="top_k_filter",
    points=0.5,
    claim="a token that was banned before (-inf) stays banned",
    teaching="filters are chained: what one banned, the next must not bring back",
)
def banned_stay_banned(student: Any) -> None:
    logits = torch.tensor([[BANNED, 2.0, BANNED, 1.0]])
    expect.kept(student.top_k_filter(logits, 3), [{1, 3}], logits)
    expect.kept(student.top_k_filter(logits, 1), [{1}], logits)


@suite.check(
    "half_precision",
    of="top_k_filter",
    points=0.5,
    claim="takes half-precision logits and answers in float32",
)
def half_precision(student: Any) -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0]], dtype=torch.bfloat16)
    answer = expect.full_precision(student.top_k_filter(logits, 2), "what came back")
    expect.kept(answer, [{1, 2}], logits)


@suite.check(
    "input_untouched", of="top_k_filter", points=0.5, claim="leaves the caller's logits as they are"
)
def input_untouched(student: Any) -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    before = logits.clone()
    student.top_k_filter(logits, 1)
    expect.unchanged(logits, before, "logits")


@suite.check("negative_k", of="top_k_filter", points=0.5, claim="a negative k raises ValueError")
def negative_k(student: Any) -> None:
    with expect.raises(ValueError, "k=-1"):
        student.top_k_filter(torch.tensor([[1.0, 2.0, 3.0]]), -1)


@suite.check(
    "against_a_sort",
    of="top_k_filter",
    points=0.5,
    claim="agrees with a plain sort on random rows",
    teaching="a property on random rows: catches answers made for the examples",
)
def against_a_sort(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (3, 7), (7, 7), (4, 50)]:
        logits = draw.logits(batch, vocab)
        k = draw.integer(1, vocab)
        ranked = [sorted(range(vocab), key=row.__getitem__) for row in logits.tolist()]
        expect.kept(student.top_k_filter(logits, k), [set(row[-k:]) for row in ranked], logits)
