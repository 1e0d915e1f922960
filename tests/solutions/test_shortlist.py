"""`next_token` without a full sort: the same tokens as the filters of lessons 3 and 4 in a row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from solutions import sampling
from solutions.sampling import next_token

from .helpers import random_logits, seeded
from .shortlist import compare_all


def test_the_shortlist_keeps_and_draws_what_the_filters_do() -> None:
    told = compare_all(8000)
    assert told.rows >= 8000
    assert told.differ == 0
    # otherwise nothing was compared: half of the settings are off, cover all, or end in ties
    assert told.short > told.rows / 4


def test_the_comparison_would_see_a_shortlist_that_keeps_one_token_too_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = sampling._shortlist

    def short_of_one(
        logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> object:
        return right(logits, temperature, top_k - 1 if top_k else top_k, top_p)

    monkeypatch.setattr("tests.solutions.shortlist._shortlist", short_of_one)
    assert compare_all(500).differ > 0


@pytest.mark.parametrize("knobs", [{"top_k": 50}, {"top_p": 0.9}, {"top_k": 50, "top_p": 0.9}])
def test_a_usual_step_sorts_no_vocabulary(
    knobs: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_filter(*_: object) -> Tensor:
        raise AssertionError("the filters were asked")

    monkeypatch.setattr(sampling, "top_p_filter", no_filter)
    monkeypatch.setattr(sampling, "top_k_filter", no_filter)
    rows = random_logits(8, 4096, spread=4.0)
    assert next_token(rows, generator=seeded(), **knobs).shape == (8, 1)


def test_a_nucleus_that_is_too_wide_for_the_shortlist_is_found_all_the_same() -> None:
    flat = torch.zeros(1, 1000)
    found = {int(next_token(flat, top_p=0.9, generator=seeded(i))) for i in range(200)}
    assert max(found) > 256
    assert max(found) < 900
