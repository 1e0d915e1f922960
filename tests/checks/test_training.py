"""The checks of lesson 1: what they tell a learner."""

from __future__ import annotations

from pathlib import Path

import pytest

from course_lib.checks.kit import find_suite

from .edited import failed, results_of

UNSHIFTED = (
    ("logits[:, :-1].float()", "logits.float()"),
    ("tokens[:, 1:].long()", "tokens.long()"),
)
IN_BITS = (
    "return F.cross_entropy(predictions, targets, ignore_index=ignore_index)",
    "return F.cross_entropy(predictions, targets, ignore_index=ignore_index) / 0.6931472",
)
SMOOTHED = (
    "return F.cross_entropy(predictions, targets, ignore_index=ignore_index)",
    "return F.cross_entropy(predictions, targets, ignore_index=ignore_index, label_smoothing=0.1)",
)


def test_the_visible_checks_are_worth_ten_points() -> None:
    suite = find_suite("training")
    assert suite is not None
    assert sum(check.points for check in suite.checks.values()) == 10


def test_a_missing_shift_is_shown_with_call_answer_and_expectation_and_named(
    tmp_path: Path,
) -> None:
    result = results_of(tmp_path, "training", *UNSHIFTED)["loss_shift"]
    called, returned, expected = result.message.splitlines()
    assert called == (
        "called next_token_loss(logits=[[[0, 1, 2], [2, 0, 1], [1, 2, 0]]], tokens=[[0, 1, 2]])"
    )
    assert returned == "it returned 2.408"
    assert expected == "it is 2.408; expected 1.408"
    assert result.mistake == "does_not_shift"


def test_two_faults_at_once_get_no_hint(tmp_path: Path) -> None:
    results = results_of(tmp_path, "training", *UNSHIFTED, IN_BITS)
    assert "loss_shift" in failed(results)
    assert {result.mistake for result in results.values()} == {None}


def test_a_wrong_answer_that_nobody_gave_before_gets_the_plain_difference(tmp_path: Path) -> None:
    result = results_of(tmp_path, "training", SMOOTHED)["loss_shift"]
    assert not result.passed
    assert result.hint is None
    assert "expected" in result.message


def test_a_slip_in_one_function_leaves_the_points_of_the_others(tmp_path: Path) -> None:
    results = results_of(tmp_path, "training", IN_BITS)
    assert failed(results)
    assert all(results[name].of == "next_token_loss" for name in failed(results))


def test_another_exception_is_shown_beside_the_one_that_was_expected(tmp_path: Path) -> None:
    result = results_of(tmp_path, "training", ("if wrong.any():", "if False:"))["loss_bad_targets"]
    assert "it raised IndexError" in result.message
    assert "expected ValueError, for token -1" in result.message
    assert result.mistake == "loss_takes_any_ids"


@pytest.mark.parametrize(
    "edit,only",
    [
        (
            (
                "    predictions = logits[:",
                "    logits -= logits.amax()\n    predictions = logits[:",
            ),
            "loss_untouched",
        ),
        (
            (
                "    real = attention_mask.bool()",
                "    real = attention_mask.bool() & attention_mask.fill_(1).bool()",
            ),
            "last_untouched",
        ),
    ],
    ids=["next_token_loss", "last_logits"],
)
def test_a_changed_argument_costs_the_one_check_about_it(
    tmp_path: Path, edit: tuple[str, str], only: str
) -> None:
    assert failed(results_of(tmp_path, "training", edit)) == {only}
