"""How often a check that counts draws would refuse a right answer: computed, not guessed.

    LOW, HIGH = allowed_counts(draws=4000, p=0.25, rate=1e-10)

    @suite.check(..., false_alarm=outside(4000, 0.25, LOW, HIGH))

A check that looks at several counts adds up their rates: no more than the sum can go wrong.
"""

from __future__ import annotations

import math


def outside(draws: int, p: float, low: int, high: int) -> float:
    """Probability that of independent `draws`, each a hit with probability `p`, fewer than `low`
    or more than `high` hit.

    Summed term by term; right to about nine digits, since the terms are made from logarithms.
    Raises ValueError for a p outside of 0 to 1.
    """
    alarms = (hits for hits in range(draws + 1) if not low <= hits <= high)
    return min(1.0, math.fsum(exactly(draws, p, hits) for hits in alarms))


def exactly(draws: int, p: float, hits: int) -> float:
    """Probability of just so many hits, from 0 to `draws`."""
    if not 0 <= p <= 1:
        raise ValueError(f"p={p} is not allowed: it must be from 0 to 1")
    if p in (0, 1):
        return float(hits == draws * p)
    log_ways = math.lgamma(draws + 1) - math.lgamma(hits + 1) - math.lgamma(draws - hits + 1)
    return math.exp(log_ways + hits * math.log(p) + (draws - hits) * math.log1p(-p))


def allowed_counts(draws: int, p: float, rate: float) -> tuple[int, int]:
    """The narrowest (low, high) that hits leave at either end with probability `rate`/2 at most."""
    terms = [exactly(draws, p, hits) for hits in range(draws + 1)]
    return first_above(terms, rate / 2), draws - first_above(terms[::-1], rate / 2)


def first_above(terms: list[float], limit: float) -> int:
    """Index of the first term that takes the running sum above `limit`."""
    total = 0.0
    for index, term in enumerate(terms):
        total += term
        if total > limit:
            return index
    return len(terms) - 1
