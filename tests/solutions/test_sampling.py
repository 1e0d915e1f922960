"""Lesson 5: greedy, the inverse CDF, sampling, and the combined sampler."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from solutions.sampling import greedy, inverse_cdf, next_token, sample
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter

from .helpers import HALVES, INF, NAN, hoeffding, log, random_logits, seeded, strided

JUST_BELOW_ONE = 1 - 2**-53


def at(probs: list[float], *us: float) -> list[int]:
    """The ids that `inverse_cdf` finds for one row at several u."""
    u = torch.tensor(us, dtype=torch.float64)
    return inverse_cdf(torch.tensor([probs] * len(us)), u)[:, 0].tolist()


# --- greedy ---


@pytest.mark.parametrize("batch,vocab", [(1, 1), (1, 5), (4, 4), (3, 1), (2, 50_000)])
def test_greedy_is_the_best_id_of_each_row(batch: int, vocab: int) -> None:
    logits = random_logits(batch, vocab)
    result = greedy(logits)
    assert result.shape == (batch, 1)
    assert result.dtype == torch.long
    assert torch.equal(logits.gather(1, result)[:, 0], logits.amax(-1))


def test_greedy_takes_the_lowest_id_on_a_tie() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [-INF, 0.0, 0.0]])
    assert greedy(logits).tolist() == [[1], [0], [1]]
    wide = torch.zeros(1, 50_000)
    wide[0, 17:] = 1
    assert greedy(wide).tolist() == [[17]]


def test_greedy_never_takes_a_banned_token() -> None:
    assert greedy(torch.tensor([[-INF, -1e30, -INF]])).tolist() == [[1]]


@pytest.mark.parametrize("dtype", [*HALVES, torch.int64, torch.float64])
def test_greedy_takes_any_number_type(dtype: torch.dtype) -> None:
    assert greedy(torch.tensor([[1, 5, 3]]).to(dtype)).tolist() == [[1]]


def test_greedy_takes_strided_logits_and_leaves_them_alone() -> None:
    logits = strided(random_logits(3, 7))
    before = logits.clone()
    assert torch.equal(greedy(logits), before.argmax(-1, keepdim=True))
    assert torch.equal(logits, before)


# --- inverse_cdf ---


def test_inverse_cdf_is_the_first_id_whose_cumulative_mass_is_above_u() -> None:
    us = (0.0, 0.2499, 0.25, 0.49, 0.5, 0.99, JUST_BELOW_ONE)
    assert at([0.25, 0.25, 0.5], *us) == [0, 0, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    "probs,first,last",
    [
        ([0.0, 0.5, 0.5, 0.0], 1, 2),
        ([0.0, 0.0, 1.0], 2, 2),
        ([1.0, 0.0, 0.0], 0, 0),
        ([0.5, 0.0, 0.0, 0.5], 0, 3),
        ([1.0], 0, 0),
    ],
    ids=str,
)
def test_inverse_cdf_never_finds_an_id_of_probability_zero(
    probs: list[float], first: int, last: int
) -> None:
    assert at(probs, 0.0, 5e-324, JUST_BELOW_ONE, 1.0) == [first, first, last, last]
    steps = torch.linspace(0, 1, 1001, dtype=torch.float64)[:-1].tolist()
    assert all(probs[i] > 0 for i in at(probs, *steps))


def test_inverse_cdf_gives_each_id_its_share_of_the_line() -> None:
    steps = ((torch.arange(1000) + 0.5) / 1000).tolist()
    found = torch.tensor(at([0.1, 0.2, 0.3, 0.4], *steps)).bincount()
    assert found.tolist() == [100, 200, 300, 400]


def test_inverse_cdf_finds_the_ids_of_the_worked_nucleus() -> None:
    # the nucleus of the worked example, in id order: .231 for id 0, .629 for 1, .140 for 2
    probs = top_p_filter(torch.tensor([1.0, 2.0, 0.5, 0.1]), 0.9).softmax(-1).tolist()
    assert at(probs, 0.0, 0.23, 0.24, 0.85, 0.87, 0.999999) == [0, 0, 1, 1, 2, 2]


def test_inverse_cdf_normalises_the_mass() -> None:
    assert at([3.0, 3.0, 3.0], 0.0, 0.34, 0.95, JUST_BELOW_ONE) == [0, 1, 2, 2]
    assert at([1e-30, 1e-30], 0.4, 0.6) == [0, 1]
    assert at([1e30, 1e30], 0.4, 0.6) == [0, 1]


def test_inverse_cdf_adds_up_in_float64() -> None:
    # 2^25 + 1 is no float32: there the sum would stand still and the last id get nothing
    probs = torch.tensor([[2.0**25, 1.0, 1.0]])
    u = torch.tensor([(2.0**25 + 1.5) / (2.0**25 + 2)], dtype=torch.float64)
    assert inverse_cdf(probs, u).tolist() == [[2]]
    flat = torch.full((1, 50_000), 1 / 50_000)
    for wanted in (0, 12_345, 49_999):
        u = torch.tensor([(wanted + 0.5) / 50_000], dtype=torch.float64)
        assert inverse_cdf(flat, u).tolist() == [[wanted]]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_inverse_cdf_uses_each_rows_own_u(size: int) -> None:
    probs = torch.eye(size).roll(1, 0)
    result = inverse_cdf(probs, torch.rand(size, generator=seeded()))
    assert torch.equal(result, probs.argmax(-1, keepdim=True))
    assert result.dtype == torch.long
    assert result.shape == (size, 1)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float64, torch.int64])
def test_inverse_cdf_takes_any_number_type(dtype: torch.dtype) -> None:
    probs = torch.tensor([[1, 2, 1]]).to(dtype)
    found = [inverse_cdf(probs, torch.tensor([u])).item() for u in (0.0, 0.3, 0.75)]
    assert found == [0, 1, 2]
    assert inverse_cdf(probs, torch.tensor([0])).item() == 0


def test_inverse_cdf_takes_strided_tensors_and_leaves_them_alone() -> None:
    probs, u = strided(random_logits(3, 5).softmax(-1)), strided(torch.tensor([0.1, 0.5, 0.9]))
    before = probs.clone(), u.clone()
    assert torch.equal(inverse_cdf(probs, u), inverse_cdf(*before))
    assert torch.equal(probs, before[0])
    assert torch.equal(u, before[1])


BAD_ROWS = [
    [0.5, NAN, 0.5],
    [0.5, -0.1, 0.6],
    [0.0, 0.0, 0.0],
    [NAN, NAN, NAN],
    [INF, 0.0, 1.0],
    [-INF, 1.0, 1.0],
]


@pytest.mark.parametrize("row", BAD_ROWS, ids=str)
def test_a_row_that_is_no_distribution_is_named(row: list[float]) -> None:
    probs = torch.tensor([[0.5, 0.25, 0.25], row])
    with pytest.raises(ValueError, match="probs row 1 is no distribution"):
        inverse_cdf(probs, torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="probs row 1 is no distribution"):
        sample(probs, seeded())


@pytest.mark.parametrize("u", [-0.1, -1e-9, 1.1, NAN, INF])
def test_inverse_cdf_names_a_u_off_the_line(u: float) -> None:
    with pytest.raises(ValueError, match=r"u=.*\[0, 1\)"):
        inverse_cdf(torch.ones(2, 3), torch.tensor([0.5, u]))


@pytest.mark.parametrize("probs_shape,u_shape", [((3,), (1,)), ((2, 3), (3,)), ((2, 3), (2, 1))])
def test_inverse_cdf_names_shapes_that_do_not_belong_together(
    probs_shape: tuple[int, ...], u_shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=r"probs.*u") as error:
        inverse_cdf(torch.ones(probs_shape), torch.zeros(u_shape))
    assert str(probs_shape) in str(error.value)
    assert str(u_shape) in str(error.value)


# --- sample ---


def test_sample_is_the_inverse_cdf_of_one_draw_a_row() -> None:
    probs = random_logits(6, 9).softmax(-1)
    u = torch.rand(6, dtype=torch.float64, generator=seeded(3))
    assert torch.equal(sample(probs, seeded(3)), inverse_cdf(probs, u))


def test_sample_takes_one_draw_a_row_in_order() -> None:
    probs = torch.full((4, 50), 0.02)
    generator = seeded()
    rows = [sample(probs[:1], generator) for _ in range(4)]
    assert torch.equal(torch.cat(rows), sample(probs, seeded()))


def test_sample_repeats_with_the_seed_and_only_then() -> None:
    probs = torch.full((12, 50), 0.02)
    assert torch.equal(sample(probs, seeded(1)), sample(probs, seeded(1)))
    assert not torch.equal(sample(probs, seeded(1)), sample(probs, seeded(2)))
    generator = seeded(1)
    assert not torch.equal(sample(probs, generator), sample(probs, generator))


def test_sample_without_a_generator_uses_the_global_one() -> None:
    probs = torch.full((12, 50), 0.02)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        expected = sample(probs)
        torch.manual_seed(5)
        assert torch.equal(sample(probs), expected)
    with torch.random.fork_rng():
        state = torch.get_rng_state()
        sample(probs, seeded())
        assert torch.equal(torch.get_rng_state(), state), "a given generator is used alone"


def test_sample_draws_each_id_with_its_probability() -> None:
    probs = torch.tensor([0.4, 0.3, 0.2, 0.1, 0.0])
    draws = 50_000
    found = sample(probs.expand(draws, 5), seeded()).flatten().bincount(minlength=5) / draws
    assert found[4] == 0
    # a right sampler fails this with a chance of at most 1e-10 over all seeds
    assert (found - probs).abs().max() < hoeffding(draws, cells=5)


@pytest.mark.parametrize("dtype", HALVES)
def test_sample_takes_half_precision(dtype: torch.dtype) -> None:
    probs = torch.tensor([[0.0, 1.0, 0.0]]).to(dtype)
    assert sample(probs).tolist() == [[1]]


def test_sample_leaves_probs_alone() -> None:
    probs = strided(random_logits(3, 5).softmax(-1))
    before = probs.clone()
    sample(probs, seeded())
    assert torch.equal(probs, before)


# --- next_token ---


def draw_many(logits: Tensor, draws: int = 20_000, **knobs: Any) -> Tensor:
    """The frequency of each id when one row (vocab,) is drawn from many times."""
    rows = logits.expand(draws, -1)
    found = next_token(rows, generator=seeded(), **knobs)
    return found.flatten().bincount(minlength=len(logits)) / draws


@pytest.mark.parametrize("batch,vocab", [(1, 1), (1, 5), (4, 4), (3, 1)])
@pytest.mark.parametrize("do_sample", [True, False])
def test_next_token_is_one_id_a_row(batch: int, vocab: int, do_sample: bool) -> None:
    result = next_token(random_logits(batch, vocab), do_sample=do_sample, generator=seeded())
    assert result.shape == (batch, 1)
    assert result.dtype == torch.long


@pytest.mark.parametrize("knobs", [{"temperature": 0}, {"temperature": 0.0}, {"do_sample": False}])
def test_temperature_zero_is_greedy_and_so_is_no_sampling(knobs: dict[str, Any]) -> None:
    logits = random_logits(20, 9)
    state = seeded()
    result = next_token(logits, generator=state, top_k=5, top_p=0.5, **knobs)
    assert torch.equal(result, greedy(logits))
    assert torch.equal(state.get_state(), seeded().get_state()), "greedy needs no random number"


def test_no_sampling_is_greedy_at_any_temperature() -> None:
    logits = random_logits(20, 9)
    for temperature in (0, 0.3, 5.0):
        result = next_token(logits, temperature=temperature, do_sample=False)
        assert torch.equal(result, greedy(logits))


def test_greedy_next_token_takes_the_lowest_id_on_a_tie() -> None:
    assert next_token(torch.tensor([[1.0, 3.0, 3.0]]), temperature=0).tolist() == [[1]]


def test_next_token_is_temperature_top_k_top_p_softmax_draw_in_this_order() -> None:
    logits = random_logits(200, 12)
    for temperature, top_k, top_p in [(0.7, 5, 0.8), (2.0, None, 0.6), (1.3, 3, None)]:
        filtered = top_k_filter(apply_temperature(logits, temperature), top_k)
        expected = sample(top_p_filter(filtered, top_p).softmax(-1), seeded(4))
        result = next_token(
            logits, temperature=temperature, top_k=top_k, top_p=top_p, generator=seeded(4)
        )
        assert torch.equal(result, expected)


def test_next_token_applies_temperature_before_top_p() -> None:
    # at temperature 2 the best token holds .47 alone, so a nucleus of .55 needs the second too
    found = draw_many(log(0.6, 0.3, 0.1), temperature=2.0, top_p=0.55)
    assert (found > 0).tolist() == [True, True, False]


def test_next_token_measures_top_p_on_what_top_k_left() -> None:
    found = draw_many(log(0.4, 0.3, 0.2, 0.1), top_k=3, top_p=0.72)
    assert (found > 0).tolist() == [True, True, False, False]


def test_next_token_gives_the_worked_distribution() -> None:
    found = draw_many(torch.tensor([1.0, 2.0, 0.5, 0.1]), temperature=0.8, top_k=10, top_p=0.9)
    expected = torch.tensor([0.198981, 0.694512, 0.106507, 0])
    # a right sampler fails this with a chance of at most 1e-10 over all seeds
    assert (found - expected).abs().max() < hoeffding(20_000, cells=4)


def test_next_token_with_top_k_one_is_greedy() -> None:
    logits = random_logits(50, 9)
    assert torch.equal(next_token(logits, top_k=1), greedy(logits))
    assert torch.equal(next_token(logits, top_p=0.0), greedy(logits))


def test_next_token_knobs_that_are_off_change_nothing() -> None:
    logits = random_logits(100, 9)
    plain = next_token(logits, generator=seeded())
    assert torch.equal(plain, sample(logits.softmax(-1), seeded()))
    for off in ({"top_k": 0}, {"top_k": None}, {"top_p": 1.0}, {"top_p": None}, {"top_k": 99}):
        assert torch.equal(next_token(logits, generator=seeded(), **off), plain)


def test_next_token_never_draws_a_banned_token() -> None:
    logits = torch.tensor([[-INF, 0.0, -INF, 0.0]]).expand(500, 4)
    for knobs in ({}, {"temperature": 100.0}, {"top_k": 3}, {"top_p": 0.99}):
        found = next_token(logits, generator=seeded(), **knobs)
        assert set(found.flatten().tolist()) == {1, 3}


@pytest.mark.parametrize("temperature", [1e-37, 1e-30, 1e-6, 0.01])
def test_next_token_at_a_tiny_temperature_does_not_overflow(temperature: float) -> None:
    logits = torch.tensor([[11.0, 3.0], [-5.0, -4.0], [1000.0, 999.0]])
    found = next_token(logits, temperature=temperature, generator=seeded())
    assert torch.equal(found, greedy(logits))


@pytest.mark.parametrize("dtype", HALVES)
def test_next_token_of_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    logits = random_logits(300, 40).to(dtype)
    knobs: dict[str, Any] = {"temperature": 0.9, "top_k": 20, "top_p": 0.9}
    result = next_token(logits, generator=seeded(), **knobs)
    assert torch.equal(result, next_token(logits.float(), generator=seeded(), **knobs))


def test_next_token_of_half_precision_keeps_far_tokens_that_a_high_temperature_brings_near() -> (
    None
):
    """The difference of two float16 logits may be more than float16 holds: the worse token then
    got -inf, and no temperature brought it back."""
    logits = torch.tensor([60_000.0, -60_000.0], dtype=torch.float16)
    found = draw_many(logits, temperature=1e5)
    expected = (logits.float() / 1e5).softmax(-1)
    assert (found - expected).abs().max() < hoeffding(20_000, cells=2)


def test_next_token_takes_integer_and_strided_logits_and_leaves_them_alone() -> None:
    assert next_token(torch.tensor([[0, 90, 0]])).tolist() == [[1]]
    logits = strided(random_logits(5, 6))
    before = logits.clone()
    result = next_token(logits, temperature=0.8, top_k=3, top_p=0.9, generator=seeded())
    expected = next_token(before, temperature=0.8, top_k=3, top_p=0.9, generator=seeded())
    assert torch.equal(result, expected)
    assert torch.equal(logits, before)


@pytest.mark.parametrize("row", [[0.0, NAN, 1.0], [-INF, -INF, -INF]], ids=str)
@pytest.mark.parametrize("knobs", [{}, {"temperature": 0}, {"do_sample": False}, {"top_k": 1}])
def test_next_token_names_a_row_that_decides_nothing(
    row: list[float], knobs: dict[str, Any]
) -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 2.0, 1.0], row])
    with pytest.raises(ValueError, match="logits row 2"):
        next_token(logits, **knobs)


@pytest.mark.parametrize(
    "name,value,told",
    [
        ("temperature", -1.0, "temperature=-1.0"),
        ("temperature", NAN, "temperature=nan"),
        ("temperature", INF, "temperature=inf"),
        ("top_k", -1, "k=-1"),
        ("top_p", -0.1, "p=-0.1"),
        ("top_p", 1.5, "p=1.5"),
        ("top_p", NAN, "p=nan"),
    ],
)
@pytest.mark.parametrize("do_sample", [True, False])
def test_next_token_names_a_wrong_knob_also_when_it_is_greedy(
    name: str, value: Any, told: str, do_sample: bool
) -> None:
    with pytest.raises(ValueError, match="is not allowed") as error:
        next_token(torch.zeros(1, 3), do_sample=do_sample, **{name: value})
    assert told in str(error.value)


@pytest.mark.parametrize("shape", [(3,), (1, 2, 3)])
def test_rows_are_batch_by_vocab(shape: tuple[int, ...]) -> None:
    for function in (greedy, sample, next_token):
        with pytest.raises(ValueError, match=r"\(batch, vocab\)") as error:
            function(torch.full(shape, 1 / math.prod(shape)))
        assert str(shape) in str(error.value)
