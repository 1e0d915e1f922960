"""`next_token` looks at few tokens where the filters look at all: the two, compared row by row.

`make test` compares some ten thousand rows, `make bench` a million.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from solutions.sampling import _shortlist, next_token, sample
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter

from .helpers import INF, seeded

VOCAB = 400  # above the largest nucleus that is looked for without sorting
TOP_KS = (None, 0, 1, 2, 7, 50, 399, 400, 1000)
TEMPERATURES = (0.3, 0.8, 1.0, 2.5)
# exact fractions stand where a nucleus of ties may end exactly at p
TOP_PS = (None, 0.0, 1e-9, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.999, 1 - 1e-7, 1.0)


def some_rows(count: int, seed: int) -> Tensor:
    """Logits (count, VOCAB): sharp and flat rows, of them a third with many ties, a third with bans
    from none to nearly all, and some whose probabilities are exact halves of each other."""
    chance = seeded(seed)
    spread = torch.rand(count, 1, generator=chance) * 8
    rows = torch.randn(count, VOCAB, generator=chance) * spread
    rows[::3] = (rows[::3] * 2).round() / 2
    share = torch.rand(count, 1, generator=chance)
    banned = torch.rand(count, VOCAB, generator=chance) < share
    banned[:, 0] = False
    rows[1::3] = rows[1::3].masked_fill(banned[1::3], -INF)
    halves = torch.randint(1, 12, (len(rows[::10]), VOCAB), generator=chance)
    rows[::10] = (0.5**halves).log()
    return rows


@dataclass
class Comparison:
    """How many rows were compared, how many took the short way, and in how many the two differ."""

    rows: int = 0
    short: int = 0
    differ: int = 0


def compare(count: int, seed: int, told: Comparison) -> None:
    """Compare `count` rows under one setting of the knobs, which follows from `seed`.

    What is kept is compared in each row, to the bit; what is drawn in every tenth.
    """
    top_k = TOP_KS[seed % len(TOP_KS)]
    top_p = TOP_PS[seed // len(TOP_KS) % len(TOP_PS)]
    temperature = TEMPERATURES[seed % len(TEMPERATURES)]
    rows = some_rows(count, seed)
    shifted = apply_temperature(rows - rows.amax(dim=-1, keepdim=True), temperature)
    kept = top_p_filter(top_k_filter(shifted, top_k), top_p)
    told.rows += count
    for place in range(count):
        differ = False
        found = _shortlist(rows[place : place + 1], temperature, top_k, top_p)
        if found is not None:
            again = torch.zeros(VOCAB)
            for token, weight in found[0]:
                again[token] = weight
            differ = not torch.equal(again, kept[place].exp())
            told.short += 1
        if place % 10 == 0:
            drawn = next_token(
                rows[place : place + 1],
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                generator=seeded(place),
            )
            differ |= not torch.equal(drawn, sample(kept[place : place + 1].exp(), seeded(place)))
        told.differ += differ


def compare_all(count: int) -> Comparison:
    """Compare `count` rows, a like number under each setting of top-k and top-p."""
    told = Comparison()
    settings = len(TOP_KS) * len(TOP_PS)
    for seed in range(settings):
        compare(-(-count // settings), seed, told)
    return told
