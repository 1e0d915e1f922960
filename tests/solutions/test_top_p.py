"""Lesson 4: top-p, and min-p."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import min_p_filter, top_p_filter

from .helpers import HALVES, INF, NAN, kept, log, random_logits, strided

SHAPES = [(1,), (5,), (1, 5), (4, 4), (3, 1), (2, 3, 5)]
Z = torch.tensor([[1.0, 2.0, 0.5, 0.1]])

# probabilities that floating point holds exactly, in an order that is not sorted
DYADIC = [
    (0.125, 0.5, 0.25, 0.125),
    (0.25, 0.125, 0.125, 0.5),
    (0.0625, 0.5, 0.0625, 0.25, 0.125),
    (0.03125, 0.25, 0.03125, 0.5, 0.0625, 0.125),
]


def nucleus(probs: list[float], p: float) -> set[int]:
    """The nucleus by its definition: take tokens from the best down until the mass is p."""
    taken: set[int] = set()
    mass = 0.0
    # Python's sort is stable, so the lower id of a tie comes first
    for i in sorted(range(len(probs)), key=lambda i: -probs[i]):
        if taken and mass >= p:
            break
        taken.add(i)
        mass += probs[i]
    return taken


@pytest.mark.parametrize("probs", DYADIC, ids=str)
def test_top_p_is_the_smallest_set_whose_mass_is_at_least_p(probs: tuple[float, ...]) -> None:
    for sixtyfourths in range(64):
        p = sixtyfourths / 64
        result = top_p_filter(log(*probs)[None], p)
        assert kept(result) == [sorted(nucleus(list(probs), p))], p


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("p", [0.0, 0.3, 0.7, 0.95])
def test_top_p_agrees_with_the_definition_whatever_the_shape(
    shape: tuple[int, ...], p: float
) -> None:
    logits = random_logits(*shape)
    result = top_p_filter(logits, p)
    assert result.shape == shape
    rows = logits.reshape(-1, shape[-1]), result.reshape(-1, shape[-1])
    for row, filtered in zip(*rows, strict=True):
        inside = nucleus(row.double().softmax(-1).tolist(), p)
        assert kept(filtered[None]) == [sorted(inside)]
        assert torch.equal(filtered[filtered.isfinite()], row[filtered.isfinite()])


def test_top_p_gives_the_worked_numbers() -> None:
    result = top_p_filter(Z, 0.9)
    assert kept(result) == [[0, 1, 2]]
    expected = torch.tensor([[0.231224, 0.628532, 0.140244, 0]])
    torch.testing.assert_close(result.softmax(-1), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("temperature,size", [(0.5, 2), (1.0, 3), (2.0, 4)])
def test_top_p_grows_as_the_distribution_gets_flatter(temperature: float, size: int) -> None:
    result = top_p_filter(apply_temperature(Z, temperature), 0.9)
    assert len(kept(result)[0]) == size


def test_top_p_keeps_the_token_that_crosses() -> None:
    assert kept(top_p_filter(log(0.5, 0.35, 0.1, 0.05)[None], 0.9)) == [[0, 1, 2]]
    assert kept(top_p_filter(log(0.5, 0.3, 0.15, 0.05)[None], 0.6)) == [[0, 1]]
    assert kept(top_p_filter(log(0.9, 0.06, 0.04)[None], 0.5)) == [[0]]


def test_top_p_stops_at_equality() -> None:
    assert kept(top_p_filter(log(0.5, 0.25, 0.125, 0.125)[None], 0.75)) == [[0, 1]]
    assert kept(top_p_filter(log(0.5, 0.25, 0.125, 0.125)[None], 0.5)) == [[0]]


@pytest.mark.parametrize("p", [0, 0.0, 1e-300, 1e-8])
def test_top_p_of_nearly_nothing_keeps_the_best(p: float) -> None:
    logits = torch.cat([log(0.2, 0.5, 0.3)[None], log(0.6, 0.1, 0.3)[None]])
    assert kept(top_p_filter(logits, p)) == [[1], [0]]


@pytest.mark.parametrize("off", [None, 1, 1.0])
def test_top_p_none_and_one_are_off(off: float | None) -> None:
    logits = torch.tensor([[1.0, 60.0, -60.0, -INF, 0.0]])
    assert torch.equal(top_p_filter(logits, off), logits)


def test_top_p_takes_the_lower_id_first_on_a_tie() -> None:
    logits = torch.zeros(1, 8)
    for size in range(1, 8):
        assert kept(top_p_filter(logits, size / 8)) == [list(range(size))]
    assert kept(top_p_filter(log(0.25, 0.5, 0.25)[None], 0.75)) == [[0, 1]]


def test_top_p_maps_the_nucleus_back_to_ids() -> None:
    assert kept(top_p_filter(log(0.125, 0.125, 0.25, 0.5)[None], 0.75)) == [[2, 3]]
    assert kept(top_p_filter(log(0.2, 0.5, 0.3)[None], 0.6)) == [[1, 2]]


def test_top_p_treats_each_row_alone() -> None:
    logits = torch.stack([log(0.4, 0.3, 0.2, 0.1), log(0.9, 0.05, 0.03, 0.02), torch.zeros(4)])
    assert kept(top_p_filter(logits, 0.5)) == [[0, 1], [0], [0, 1]]
    square = torch.cat([logits, log(0.1, 0.2, 0.3, 0.4)[None]])
    assert kept(top_p_filter(square, 0.5)) == [[0, 1], [0], [0, 1], [2, 3]]


def test_top_p_keeps_banned_tokens_banned() -> None:
    logits = torch.tensor([[-INF, 0.0, -INF, 0.0], [5.0, -INF, -INF, -INF]])
    for p in (0.0, 0.5, 0.9, 0.999999, 1.0):
        assert not top_p_filter(logits, p)[logits == -INF].isfinite().any()
    assert kept(top_p_filter(logits, 0.9)) == [[1, 3], [0]]


def test_top_p_after_top_k_measures_its_mass_on_the_survivors() -> None:
    logits = log(0.4, 0.3, 0.2, 0.1)[None]
    # renormalised the survivors hold .444, .333 and .222: two are enough for .72
    assert kept(top_p_filter(top_k_filter(logits, 3), 0.72)) == [[0, 1]]
    assert kept(top_p_filter(logits, 0.72)) == [[0, 1, 2]]


def test_top_p_does_not_lose_the_tail_of_a_large_vocabulary() -> None:
    # 50,000 equal tokens, whose masses a float32 sum would round one by one
    sizes = top_p_filter(torch.zeros(1, 50_000), 0.5).isfinite().sum(-1)
    assert sizes.item() == pytest.approx(25_000, abs=2)


# --- min-p ---


def test_min_p_keeps_what_is_at_least_a_share_of_the_best() -> None:
    logits = log(0.125, 0.5, 0.25, 0.125)[None]
    assert kept(min_p_filter(logits, 0.5)) == [[1, 2]]
    assert kept(min_p_filter(logits, 0.25)) == [[0, 1, 2, 3]]
    assert kept(min_p_filter(logits, 0.3)) == [[1, 2]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("min_p", [0.01, 0.1, 0.6])
def test_min_p_agrees_with_the_definition_whatever_the_shape(
    shape: tuple[int, ...], min_p: float
) -> None:
    logits = random_logits(*shape)
    probs = logits.softmax(-1)
    below = probs < min_p * probs.amax(-1, keepdim=True)
    assert torch.equal(min_p_filter(logits, min_p), logits.masked_fill(below, -INF))


@pytest.mark.parametrize("off", [None, 0, 0.0])
def test_min_p_none_and_zero_are_off(off: float | None) -> None:
    logits = torch.tensor([[1.0, 60.0, -60.0, -INF]])
    assert torch.equal(min_p_filter(logits, off), logits)


@pytest.mark.parametrize("one", [1, 1.0])
def test_min_p_one_keeps_the_best_and_its_ties(one: float) -> None:
    logits = torch.tensor([[3.0, 1.0, 3.0], [0.0, 0.1, 0.2]])
    assert kept(min_p_filter(logits, one)) == [[0, 2], [2]]


def test_min_p_keeps_banned_tokens_banned() -> None:
    logits = torch.tensor([[-INF, 0.0, 1.0]])
    assert kept(min_p_filter(logits, 0.1)) == [[1, 2]]


# --- both ---

Filter = Callable[[Tensor, float | None], Tensor]


@pytest.mark.parametrize("keep", [top_p_filter, min_p_filter])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("value", [None, 0.5])
def test_half_precision_is_computed_in_float32(
    keep: Filter, dtype: torch.dtype, value: float | None
) -> None:
    logits = random_logits(3, 200).to(dtype)
    result = keep(logits, value)
    assert result.dtype == torch.float32
    assert torch.equal(result, keep(logits.float(), value))


@pytest.mark.parametrize("keep", [top_p_filter, min_p_filter])
def test_integer_logits_are_taken(keep: Filter) -> None:
    result = keep(torch.tensor([[9, 1, 8]]), 0.2)
    assert result.dtype == torch.float32
    assert torch.equal(result, keep(torch.tensor([[9.0, 1.0, 8.0]]), 0.2))


@pytest.mark.parametrize("keep", [top_p_filter, min_p_filter])
@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_strided_logits_are_taken_and_left_alone(keep: Filter, value: float) -> None:
    logits = strided(random_logits(4, 6))
    before = logits.clone()
    assert torch.equal(keep(logits, value), keep(before, value))
    assert torch.equal(logits, before)


@pytest.mark.parametrize("keep,name", [(top_p_filter, "p"), (min_p_filter, "min_p")])
@pytest.mark.parametrize("value", [-0.1, 1.0001, 2, -1, NAN, INF, -INF])
def test_a_value_outside_zero_to_one_is_named(keep: Filter, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]") as error:
        keep(torch.zeros(1, 3), value)
    assert str(error.value).startswith(f"{name}={value} ")
