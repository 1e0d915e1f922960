"""The checks of lesson 6: what they tell a learner."""

from __future__ import annotations

from pathlib import Path

from course_lib.checks.kit import find_suite

from .edited import failed, results_of

RULE = "penalised = torch.where(logits > 0, logits / penalty, logits * penalty)"
SEEN = "seen = count_tokens(ids, logits, attention_mask) > 0"
SUBTRACT = "return logits - presence * (counts > 0) - frequency * counts"
WIDEN = (
    f"logits = logits.to(torch.promote_types(logits.dtype, torch.float32))\n    {SEEN}",
    f"{SEEN}",
)


def test_the_visible_checks_are_worth_ten_points_the_stretch_one() -> None:
    suite = find_suite("repetition")
    assert suite is not None
    stretch = [c.points for c in suite.checks.values() if c.of == "apply_frequency_penalty"]
    assert round(sum(check.points for check in suite.checks.values()), 9) == 10
    assert round(sum(stretch), 9) <= 1


def test_plain_division_is_named_with_call_answer_and_expectation(tmp_path: Path) -> None:
    edit = (RULE, "penalised = logits / penalty")
    result = results_of(tmp_path, "repetition", edit)["sign_rule"]
    assert result.message.splitlines() == [
        "called apply_repetition_penalty(logits=[[4, -4, 0, 8]], ids=[[0, 1, 2]], penalty=2)",
        "it returned [[2, -2, 0, 8]]",
        "it is [[2, -2, 0, 8]]; expected [[2, -8, 0, 8]]",
    ]
    assert result.mistake == "always_divides"


def test_half_precision_costs_the_one_check_about_it(tmp_path: Path) -> None:
    results = results_of(tmp_path, "repetition", WIDEN)
    assert failed(results) == {"half_precision"}
    assert "expected [[0.3333, 3, -2]]" in results["half_precision"].message


def test_two_faults_at_once_get_no_hint(tmp_path: Path) -> None:
    results = results_of(tmp_path, "repetition", (RULE, "penalised = logits / penalty"), WIDEN)
    assert {"sign_rule", "half_precision"} <= failed(results)
    assert {result.mistake for result in results.values()} == {None}


def test_faults_in_both_functions_are_named_apart(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        "repetition",
        (SEEN, "seen = count_tokens(ids, logits) > 0"),
        (SUBTRACT, "return logits - presence - frequency * counts"),
    )
    assert results["padding"].mistake == "counts_padding"
    assert results["frequency_counts"].mistake == "presence_for_all"


def test_a_wrong_answer_that_nobody_gave_before_gets_the_plain_difference(tmp_path: Path) -> None:
    edit = (SEEN, f"{SEEN}\n    seen[:, 0] = False")
    result = results_of(tmp_path, "repetition", edit)["once_per_token"]
    assert not result.passed
    assert result.hint is None
    assert result.message.splitlines()[-1] == "it is [[8, 1, -16]]; expected [[4, 1, -16]]"


def test_a_penalty_that_should_raise_is_told_with_its_value(tmp_path: Path) -> None:
    edit = ("if not (math.isfinite(penalty) and penalty > 0):", "if penalty <= 0:")
    results = results_of(tmp_path, "repetition", edit)
    assert failed(results) == {"bad_penalty"}
    assert "nothing was raised; expected ValueError, for penalty=nan" in (
        results["bad_penalty"].message
    )
    assert results["bad_penalty"].mistake == "nan_slips_through"


def test_a_changed_argument_costs_the_one_check_about_it(tmp_path: Path) -> None:
    edit = (
        "return torch.where(seen, penalised, logits)",
        "return logits.copy_(torch.where(seen, penalised, logits))",
    )
    results = results_of(tmp_path, "repetition", edit)
    assert failed(results) == {"input_untouched"}
    assert results["input_untouched"].mistake == "writes_into_the_input"
