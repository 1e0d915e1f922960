"""The checks of lesson 2: what they tell a learner."""

from __future__ import annotations

from pathlib import Path

from course_lib.checks.kit import find_suite

from .edited import failed, results_of

SCALED = "return logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature"
ENTROPY = "return torch.special.entr(probs).sum(dim=-1)"


def test_the_visible_checks_are_worth_ten_points() -> None:
    suite = find_suite("temperature")
    assert suite is not None
    assert sum(check.points for check in suite.checks.values()) == 10


def test_a_knob_that_turns_the_wrong_way_is_named(tmp_path: Path) -> None:
    edit = (SCALED, SCALED.replace("/", "*"))
    result = results_of(tmp_path, "temperature", edit)["worked_numbers"]
    assert result.message.startswith(
        "called apply_temperature(logits=[[1, 2, 0.5, 0.1]], temperature=2)\nit returned [[2, 4, "
    )
    assert result.mistake == "multiplies"


def test_the_same_distribution_passes_whatever_the_logits(tmp_path: Path) -> None:
    edit = (SCALED, f"{SCALED} + 5.0")
    assert failed(results_of(tmp_path, "temperature", edit)) == set()


def test_two_faults_at_once_get_no_hint(tmp_path: Path) -> None:
    edit = (SCALED, "return logits * temperature")
    results = results_of(tmp_path, "temperature", edit)
    assert {"worked_numbers", "half_precision"} <= failed(results)
    assert {result.mistake for result in results.values()} == {None}


def test_faults_in_both_functions_are_named_apart(tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        "temperature",
        (SCALED, SCALED.replace("/", "*")),
        (ENTROPY, "return -torch.special.entr(probs).sum(dim=-1)"),
    )
    assert results["by_hand"].mistake == "multiplies"
    assert results["entropy_ends"].mistake == "forgets_the_minus"


def test_a_wrong_answer_that_nobody_gave_before_gets_the_plain_difference(tmp_path: Path) -> None:
    edit = (ENTROPY, "return -probs.square().sum(dim=-1).log()")
    result = results_of(tmp_path, "temperature", edit)["entropy_worked_numbers"]
    assert not result.passed
    assert result.hint is None
    assert result.message.splitlines()[-1] == "it is [0.356]; expected [0.6068]"


def test_nothing_raised_is_told_with_what_was_expected(tmp_path: Path) -> None:
    edit = ("math.isfinite(temperature) and temperature > 0", "temperature > 0")
    results = results_of(tmp_path, "temperature", edit)
    assert failed(results) == {"infinity"}
    message = results["infinity"].message
    assert "temperature=inf" in message
    assert "nothing was raised; expected ValueError" in message
    assert results["infinity"].mistake == "takes_infinity"


def test_a_changed_argument_costs_the_one_check_about_it(tmp_path: Path) -> None:
    edit = (ENTROPY, f"logits.sub_(1.0)\n    {ENTROPY}")
    assert failed(results_of(tmp_path, "temperature", edit)) == {"entropy_untouched"}
