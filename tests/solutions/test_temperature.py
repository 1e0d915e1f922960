"""Lesson 2: temperature and entropy."""

from __future__ import annotations

import math

import pytest
import torch

from solutions.temperature import apply_temperature, entropy

from .helpers import HALVES, INF, NAN, log, random_logits, strided

Z = torch.tensor([1.0, 2.0, 0.5, 0.1])

SHAPES = [(1,), (5,), (1, 5), (4, 4), (3, 1), (2, 3, 5)]


@pytest.mark.parametrize(
    "temperature,probs",
    [
        (0.5, [0.112080, 0.828162, 0.041232, 0.018527]),
        (1.0, [0.211355, 0.574522, 0.128193, 0.085930]),
        (2.0, [0.245993, 0.405575, 0.191580, 0.156852]),
    ],
)
def test_temperature_gives_the_worked_numbers(temperature: float, probs: list[float]) -> None:
    result = apply_temperature(Z, temperature).softmax(-1)
    torch.testing.assert_close(result, torch.tensor(probs), atol=1e-6, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_temperature_divides_the_logits_whatever_their_shape(shape: tuple[int, ...]) -> None:
    logits = random_logits(*shape)
    assert torch.equal(apply_temperature(logits, 0.5), logits * 2)


def test_temperature_one_changes_nothing() -> None:
    assert torch.equal(apply_temperature(Z, 1.0), Z)


def test_temperature_keeps_the_order_and_the_best() -> None:
    logits = random_logits(50, 20)
    for temperature in (0.1, 0.7, 3.0, 100.0):
        result = apply_temperature(logits, temperature)
        assert torch.equal(result.argsort(-1), logits.argsort(-1))


def test_temperature_near_zero_is_greedy_and_a_large_one_uniform() -> None:
    assert apply_temperature(Z, 0.001).softmax(-1).tolist() == [0, 1, 0, 0]
    flat = apply_temperature(Z, 1e6).softmax(-1)
    torch.testing.assert_close(flat, torch.full((4,), 0.25), atol=1e-5, rtol=0)


@pytest.mark.parametrize("temperature", [1, 2, 10])
def test_temperature_may_be_an_int_and_so_may_logits(temperature: int) -> None:
    logits = torch.tensor([[1, 2, 4], [3, 0, -1]])
    result = apply_temperature(logits, temperature)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, logits / temperature)


@pytest.mark.parametrize("temperature", [1e-6, 0.3, 1.0, 50.0])
def test_temperature_keeps_banned_tokens_banned_and_no_other(temperature: float) -> None:
    logits = torch.tensor([[1.0, -INF, 3.0], [-INF, -INF, 0.0]])
    result = apply_temperature(logits, temperature)
    assert torch.equal(result == -INF, logits == -INF)
    assert not result.isnan().any()


@pytest.mark.parametrize("dtype", HALVES)
def test_temperature_of_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    # in float16 the division by 1e-4 would overflow
    logits = torch.tensor([11.0625, 2.955]).to(dtype)
    result = apply_temperature(logits, 1e-4)
    assert result.dtype == torch.float32
    assert torch.equal(result, logits.float() / 1e-4)
    assert result.softmax(-1).tolist() == [1, 0]


def test_temperature_takes_strided_logits_and_leaves_them_alone() -> None:
    logits = strided(random_logits(3, 4))
    before = logits.clone()
    assert torch.equal(apply_temperature(logits, 2.0), before / 2)
    assert torch.equal(logits, before)


@pytest.mark.parametrize("temperature", [0, 0.0, -0.0, -1, -0.5, NAN, INF, -INF])
def test_temperature_names_a_value_that_is_not_allowed(temperature: float) -> None:
    with pytest.raises(ValueError, match="above 0") as error:
        apply_temperature(Z, temperature)
    assert f"temperature={temperature} " in str(error.value)


# --- entropy ---


@pytest.mark.parametrize("temperature,nats", [(0.5, 0.6068), (1.0, 1.1211), (2.0, 1.3181)])
def test_entropy_gives_the_worked_numbers(temperature: float, nats: float) -> None:
    assert entropy(apply_temperature(Z, temperature)).item() == pytest.approx(nats, abs=5e-5)


@pytest.mark.parametrize("vocab", [1, 2, 7, 4096])
def test_entropy_of_a_uniform_row_is_log_vocab(vocab: int) -> None:
    assert entropy(torch.zeros(vocab)).item() == pytest.approx(math.log(vocab), rel=1e-6)


def test_entropy_of_a_certain_row_is_zero() -> None:
    assert entropy(torch.tensor([0.0, 1000.0, 0.0])).item() == 0
    assert entropy(torch.tensor([-INF, 2.0, -INF])).item() == 0


def test_entropy_counts_banned_tokens_as_zero() -> None:
    assert entropy(log(0.5, 0.0, 0.25, 0.25)).item() == pytest.approx(1.5 * math.log(2))
    assert entropy(torch.tensor([0.0, -INF, 0.0])).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("shape", SHAPES)
def test_entropy_is_one_number_a_row(shape: tuple[int, ...]) -> None:
    logits = random_logits(*shape)
    result = entropy(logits)
    assert result.shape == shape[:-1]
    probs = logits.double().softmax(-1)
    expected = -(probs * probs.log()).sum(-1)
    torch.testing.assert_close(result, expected.float(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", HALVES)
def test_entropy_of_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    logits = random_logits(2, 1000).to(dtype)
    result = entropy(logits)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, entropy(logits.float()))


def test_entropy_takes_integer_and_strided_logits_and_leaves_them_alone() -> None:
    assert entropy(torch.tensor([5, 5])).item() == pytest.approx(math.log(2))
    logits = strided(random_logits(3, 4))
    before = logits.clone()
    torch.testing.assert_close(entropy(logits), entropy(before))
    assert torch.equal(logits, before)
