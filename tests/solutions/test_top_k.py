"""Lesson 3: top-k."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from solutions.top_k import top_k_filter

from .helpers import HALVES, INF, NAN, kept, random_logits, strided

SHAPES = [(1,), (5,), (1, 5), (4, 4), (3, 1), (2, 3, 5)]


@pytest.mark.parametrize("shape", SHAPES)
def test_top_k_keeps_the_k_highest_of_each_row(shape: tuple[int, ...]) -> None:
    logits = random_logits(*shape)
    for k in range(1, shape[-1] + 1):
        result = top_k_filter(logits, k)
        assert result.shape == logits.shape
        # a token stays if fewer than k of its row are above it
        above = (logits[..., None, :] > logits[..., :, None]).sum(-1)
        assert torch.equal(result, logits.masked_fill(above >= k, -INF))


def test_top_k_gives_the_worked_numbers() -> None:
    logits = torch.tensor([2.0, 1.0, 0.1, -1.0, -2.0])
    result = top_k_filter(logits, 3)
    assert result.tolist() == [*logits[:3].tolist(), -INF, -INF]
    expected = torch.tensor([0.659001, 0.242433, 0.098566, 0, 0])
    torch.testing.assert_close(result.softmax(-1), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("off", [None, 0])
def test_top_k_none_and_zero_are_off(off: int | None) -> None:
    logits = random_logits(2, 5)
    assert torch.equal(top_k_filter(logits, off), logits)


@pytest.mark.parametrize("k", [3, 4, 100, 10**12])
def test_top_k_at_or_above_the_vocabulary_keeps_all(k: int) -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    assert torch.equal(top_k_filter(logits, k), logits)


def test_top_k_one_keeps_the_greedy_token() -> None:
    logits = random_logits(20, 9)
    assert kept(top_k_filter(logits, 1)) == [[int(i)] for i in logits.argmax(-1)]


def test_top_k_treats_each_row_by_its_own_threshold() -> None:
    # batch = vocab: a threshold without its last axis would line up with the wrong axis
    logits = torch.tensor([[0.0, 1.0, 2.0], [50.0, 40.0, 30.0], [5.0, 4.0, 3.0]])
    assert kept(top_k_filter(logits, 1)) == [[2], [0], [0]]
    assert kept(top_k_filter(logits, 2)) == [[1, 2], [0, 1], [0, 1]]


def test_top_k_keeps_what_ties_with_the_kth() -> None:
    assert kept(top_k_filter(torch.tensor([[3.0, 1.0, 3.0, 2.0, 2.0]]), 3)) == [[0, 2, 3, 4]]
    assert kept(top_k_filter(torch.tensor([[7.0, 7.0, 7.0]]), 1)) == [[0, 1, 2]]


def test_top_k_keeps_banned_tokens_banned() -> None:
    logits = torch.tensor([[-INF, 1.0, -INF, 2.0], [3.0, -INF, 1.0, 2.0]])
    assert kept(top_k_filter(logits, 1)) == [[3], [0]]
    assert kept(top_k_filter(logits, 3)) == [[1, 3], [0, 2, 3]]


@pytest.mark.parametrize("k", [1, 2])
def test_top_k_of_negative_logits_gives_the_rest_probability_zero(k: int) -> None:
    probs = top_k_filter(torch.tensor([[-1.0, -2.0, -3.0]]), k).softmax(-1)
    assert probs[0, k:].tolist() == [0] * (3 - k)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("k", [None, 2])
def test_top_k_of_half_precision_is_float32(dtype: torch.dtype, k: int | None) -> None:
    logits = random_logits(3, 50).to(dtype)
    result = top_k_filter(logits, k)
    assert result.dtype == torch.float32
    assert torch.equal(result, top_k_filter(logits.float(), k))


def test_top_k_takes_integer_logits() -> None:
    result = top_k_filter(torch.tensor([[4, 3, 2, 1]]), 2)
    assert result.dtype == torch.float32
    assert result.tolist() == [[4, 3, -INF, -INF]]


def test_top_k_takes_strided_logits_and_leaves_them_alone() -> None:
    logits = strided(random_logits(4, 6))
    before = logits.clone()
    assert torch.equal(top_k_filter(logits, 2), top_k_filter(before, 2))
    assert torch.equal(logits, before)


def test_top_k_works_on_a_large_vocabulary() -> None:
    logits = random_logits(2, 50_000)
    assert [len(row) for row in kept(top_k_filter(logits, 50))] == [50, 50]


@pytest.mark.parametrize("k", [-1, -100, 1.5, NAN, INF])
def test_top_k_names_a_value_that_is_not_allowed(k: Any) -> None:
    with pytest.raises(ValueError, match="whole number from 0") as error:
        top_k_filter(torch.zeros(1, 3), k)
    assert f"k={k} " in str(error.value)
