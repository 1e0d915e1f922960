"""Timing that a busy machine fools least: rivals take turns, and what is told are medians."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Work = Callable[[], object]


def interleaved(
    rivals: Mapping[str, Work], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Seconds of each rival in each round, after one run that does not count.

    The clock by default is the processor's time for this process: for work on one thread that is
    what a clock on the wall shows when nothing else runs. Work on several threads, or in other
    processes, needs `time.perf_counter`.
    """
    for work in rivals.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    gc.collect()
    for turn in range(rounds):
        # every other round the other way round: who comes after whom must not matter
        for name in list(rivals)[:: -1 if turn % 2 else 1]:
            began = clock()
            rivals[name]()
            seconds[name].append(clock() - began)
    return seconds


def spread(values: list[float], scale: float = 1.0, digits: int = 4) -> dict[str, Any]:
    """Median, 10th and 90th percentile, each times `scale`."""
    low, middle, high = np.percentile(np.array(values) * scale, [10, 50, 90])
    return {
        "median": round(float(middle), digits),
        "p10": round(float(low), digits),
        "p90": round(float(high), digits),
    }


def paired(over: list[float], under: list[float]) -> float:
    """The median over the rounds of one rival's time as a multiple of another's in that round."""
    return round(float(np.median(np.array(over) / np.array(under))), 3)
