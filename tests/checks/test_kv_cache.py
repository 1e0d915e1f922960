"""The checks of lesson 7: what they tell a learner."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from course_lib.checks.kit import find_suite
from course_lib.checks.models import StandInCache, Witness
from solutions.kv_cache import KVCache

from .edited import failed, results_of

TRIANGLE = ".tril(key_len - query_len)"
ATTEND = "return F.scaled_dot_product_attention(q, k, v, forbidding, scale=scale)"
BY_HAND = (
    "scores = (scale * q @ k.transpose(-2, -1)).masked_fill(~mask, torch.finfo(q.dtype).min)\n"
    "    return scores.softmax(dim=-1) @ v"
)
UNSCALED = BY_HAND.replace("scale * ", "")
WITH_NAN = BY_HAND.replace("torch.finfo(q.dtype).min", "-torch.inf")
LENGTH = "return min(self.lengths)"
COUNT = "        self.lengths[layer] = stop\n"
PREFILL = """with at least one position"
        )
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1]"""


def test_the_visible_checks_are_worth_ten_points() -> None:
    suite = find_suite("kv_cache")
    assert suite is not None
    assert round(sum(check.points for check in suite.checks.values()), 9) == 10


def test_a_triangle_in_the_wrong_corner_is_named(tmp_path: Path) -> None:
    result = results_of(tmp_path, "kv_cache", (TRIANGLE, ".tril()"))["mask_with_a_past"]
    assert result.message.splitlines() == [
        "called causal_mask(query_len=1, key_len=4)",
        "it returned [[True, False, False, False]]",
        "the mask is [[True, False, False, False]]; expected [[True, True, True, True]]",
    ]
    assert result.mistake == "triangle_top_left"


def test_scores_that_are_not_scaled_are_named(tmp_path: Path) -> None:
    edit = (ATTEND, UNSCALED)
    results = results_of(tmp_path, "kv_cache", edit)
    assert {"attend_weights", "attend_against_lists"} <= failed(results)
    assert results["attend_weights"].mistake == "not_scaled"


def test_length_may_be_a_plain_attribute(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        "kv_cache",
        ("    @property\n    def length(self)", "    def count(self)"),
        ("self.lengths = [0] * n_layers", "self.lengths, self.length = [0] * n_layers, 0"),
        (
            "self.lengths = [0] * len(self.lengths)",
            "self.lengths = [0] * len(self.lengths)\n        self.length = 0",
        ),
        (COUNT, f"{COUNT}        self.length = self.count()\n"),
    )
    assert failed(results) == set()


def test_a_length_that_runs_ahead_is_told_where_it_happens(tmp_path: Path) -> None:
    result = results_of(tmp_path, "kv_cache", (LENGTH, "return max(self.lengths)"))["cache_length"]
    assert result.message.splitlines()[-1] == "length between the two layers is 3; expected 0"


def test_a_cache_that_changes_before_it_refuses_fails_though_it_raises(tmp_path: Path) -> None:
    edit = ("        if stop > capacity:", f"{COUNT}        if stop > capacity:")
    results = results_of(tmp_path, "kv_cache", edit)
    assert failed(results) == {"cache_capacity"}
    assert results["cache_capacity"].mistake == "counts_before_checking"


def test_prefill_is_checked_without_the_learners_cache(tmp_path: Path) -> None:
    """A cache that is wrong costs its own checks, and those of none of the two passes but the one
    that says so.
    """
    results = results_of(tmp_path, "kv_cache", (LENGTH, "return 0"))
    passes = {name for name in failed(results) if name.startswith(("prefill", "decode"))}
    assert passes == {"decode_equals_full"}
    assert "your KVCache is at work too" in results["decode_equals_full"].message


def test_a_fault_in_prefill_is_named_beside_one_in_the_cache(tmp_path: Path) -> None:
    """prefill takes a cache, which an annotation says; it does not use the learner's class."""
    first = PREFILL.replace("[:, -1]", "[:, 0]")
    results = results_of(tmp_path, "kv_cache", (LENGTH, "return 0"), (PREFILL, first))
    assert results["prefill_last"].mistake == "logits_of_the_first"
    assert results["cache_length"].mistake == "length_stays_zero"


def test_a_fault_in_attend_is_not_blamed_on_the_cache(tmp_path: Path) -> None:
    edit = (ATTEND, UNSCALED)
    result = results_of(tmp_path, "kv_cache", edit)["cache_in_a_model"]
    assert result.hint is not None
    assert "`attend`" in result.hint


def test_a_prompt_read_token_by_token_fails_though_its_logits_are_right(tmp_path: Path) -> None:
    one_by_one = PREFILL.replace(
        "return model(ids, cache=cache, attention_mask=attention_mask)[:, -1]",
        "for t in range(ids.shape[1]):\n"
        "        seen = cache.length + 1\n"
        "        mask = None if attention_mask is None else attention_mask[:, :seen]\n"
        "        logits = model(ids[:, t : t + 1], cache=cache, attention_mask=mask)\n"
        "    return logits[:, -1]",
    )
    results = results_of(tmp_path, "kv_cache", (PREFILL, one_by_one))
    assert failed(results) == {"prefill_last"}
    assert "each forward pass is [1, 1, 1]; expected [3]" in results["prefill_last"].message
    assert results["prefill_last"].mistake == "one_by_one"


def test_two_faults_at_once_get_no_hint(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        "kv_cache",
        (LENGTH, "return max(self.lengths)"),
        ("if stop > capacity:", "if stop >= capacity:"),
    )
    assert {"cache_length", "cache_capacity"} <= failed(results)
    assert {result.mistake for result in results.values()} == {None}


def test_a_wrong_answer_that_nobody_gave_before_gets_the_plain_difference(tmp_path: Path) -> None:
    edit = (ATTEND, ATTEND.replace("k, v,", "k, v + 1,"))
    result = results_of(tmp_path, "kv_cache", edit)["attend_means"]
    assert result.hint is None
    assert result.message.splitlines()[-1] == "it is [[[[3.5]]]]; expected [[[[2.5]]]]"


@pytest.mark.parametrize("masked", [False, True])
def test_the_stand_in_serves_a_toy_model_as_a_real_cache_does(masked: bool) -> None:
    ids = torch.tensor([[5, 1, 2, 7, 3], [2, 2, 4, 1, 6]])
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]) if masked else None
    caches = [StandInCache(), KVCache(1, 2, 1, 1, 5), None]
    for start, stop in [(0, 3), (3, 4), (4, 5)]:
        given = None if mask is None else mask[:, :stop]
        stand_in, real = (
            Witness()(ids[:, start:stop], cache=cache, attention_mask=given) for cache in caches[:2]
        )
        assert torch.equal(stand_in, real)
        assert torch.equal(real, Witness()(ids[:, :stop], attention_mask=given)[:, start:])


def test_a_method_is_not_blamed_on_what_another_method_uses(tmp_path: Path) -> None:
    """A first attempt at everything: `attend` gives NaN for padding, `length` counts every layer.

    The given method `attend` of the class uses the function, and so it is at fault where the check
    calls that method, and nowhere else.
    """
    results = results_of(
        tmp_path, "kv_cache", (ATTEND, WITH_NAN), (LENGTH, "return sum(self.lengths)")
    )
    blamed = {name for name in failed(results) if "`attend`, which" in (results[name].hint or "")}
    assert failed(results) >= {"cache_length", "cache_in_a_model", "attend_nothing_allowed"}
    assert blamed == {"cache_in_a_model"}


def test_a_step_is_blamed_on_the_cache_that_it_was_given(tmp_path: Path) -> None:
    results = results_of(tmp_path, "kv_cache", (LENGTH, "return sum(self.lengths)"))
    told = "`KVCache`, which `decode_step` uses, fails its own checks; mend it first"
    assert results["decode_equals_full"].hint == told
