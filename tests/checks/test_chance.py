"""The rate of false alarms of a check that counts draws."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from course_lib.checks.chance import allowed_counts, outside


def exact(draws: int, p: Fraction, low: int, high: int) -> float:
    """The same probability in whole-number arithmetic."""
    terms = (comb(draws, n) * p**n * (1 - p) ** (draws - n) for n in range(draws + 1))
    return float(sum(term for n, term in enumerate(terms) if not low <= n <= high))


@pytest.mark.parametrize("draws,p", [(1, "1/2"), (20, "1/3"), (400, "7/8"), (1000, "1/50")])
def test_the_probability_is_that_of_whole_number_arithmetic(draws: int, p: str) -> None:
    middle = int(draws * Fraction(p))
    for reach in (0, 1, draws // 10, draws):
        low, high = max(0, middle - reach), middle + reach
        expected = exact(draws, Fraction(p), low, high)
        assert outside(draws, float(Fraction(p)), low, high) == pytest.approx(expected, rel=1e-8)


def test_nothing_is_outside_of_all_counts_and_all_outside_of_none() -> None:
    assert outside(10, 0.3, 0, 10) == 0
    assert outside(10, 0.3, 11, 10) == pytest.approx(1)
    assert outside(10, 0.3, 4, 2) == pytest.approx(1)


@pytest.mark.parametrize("p,always", [(0.0, 0), (1.0, 10)])
def test_what_is_certain_never_raises_an_alarm(p: float, always: int) -> None:
    assert outside(10, p, always, always) == 0
    assert allowed_counts(10, p, 1e-10) == (always, always)


@pytest.mark.parametrize("draws,p", [(50, 0.5), (2000, 0.04), (4000, 0.75)])
def test_allowed_counts_keep_the_rate_and_could_not_be_narrower(draws: int, p: float) -> None:
    low, high = allowed_counts(draws, p, 1e-6)
    assert outside(draws, p, low, high) <= 1e-6
    assert outside(draws, p, low + 1, draws) > 5e-7
    assert outside(draws, p, 0, high - 1) > 5e-7


def test_a_p_that_is_no_probability_is_named() -> None:
    with pytest.raises(ValueError, match=r"p=1\.5"):
        outside(9, 1.5, 3, 5)
