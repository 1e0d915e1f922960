"""The checks of lesson 4: what they tell a learner, and when they keep silent."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from autograder.bank import find_bank, with_edits
from course_lib.checks.diagnose import known_mistake
from course_lib.checks.kit import Result, Suite, find_suite, run_check
from course_lib.checks.top_p import inside, nucleus


@pytest.fixture(scope="module")
def suite() -> Suite:
    found = find_suite("top_p")
    assert found is not None
    return found


def results_of(suite: Suite, student: ModuleType) -> dict[str, Result]:
    return {name: run_check(check, student) for name, check in suite.checks.items()}


def named(results: dict[str, Result]) -> str | None:
    found = known_mistake("top_p", "top_p_filter", list(results.values()))
    return found.name if found else None


def test_points_of_the_lesson_add_up_to_ten_with_one_for_the_stretch(suite: Suite) -> None:
    points = [(check.of, check.points) for check in suite.checks.values()]
    assert sum(value for _, value in points) == 10
    assert sum(value for of, value in points if of == "min_p_filter") == 1


@pytest.mark.parametrize("size", range(1, 6))
def test_the_p_of_a_size_has_the_nucleus_of_that_size(size: int) -> None:
    probs = [0.1, 0.4, 0.2, 0.05, 0.25]
    assert nucleus(probs, inside(probs, size)) == set([1, 4, 2, 0, 3][:size])


def test_a_failed_check_shows_the_call_the_answer_and_the_probabilities(suite: Suite) -> None:
    student = find_bank("mistakes", "top_p").implementations["drops_the_crossing_token"].build()
    message = results_of(suite, student)["top_p-crossing_token"].message
    assert message.splitlines() == [
        "called top_p_filter(logits=[[-0.6931, -1.05, -2.303, -2.996]], p=0.9)",
        "it returned [[-0.6931, -1.05, -inf, -inf]]",
        "kept ids {0, 1}; expected {0, 1, 2}; probabilities [[0.5, 0.35, 0.1, 0.05]]",
    ]


def test_a_mistake_is_known_whichever_way_its_ties_fall(suite: Suite) -> None:
    """Which of equal tokens stay depends on the sort, and says nothing of the mistake."""
    student = with_edits(
        "top_p",
        (
            ("sorted_logits, order = logits.sort(dim=-1, descending=True, stable=True)",
             "order = logits.flip(-1).argsort(dim=-1, descending=True, stable=True)\n"
             "    order = logits.shape[-1] - 1 - order\n"
             "    sorted_logits = logits.gather(-1, order)"),
            ("mass[..., :-1] < p", "mass[..., :-1] <= p"),
        ),
    )  # fmt: skip
    logits = torch.zeros(1, 8)
    assert student.top_p_filter(logits, 0.45)[0].isfinite().nonzero()[:, 0].tolist() == [4, 5, 6, 7]
    assert named(results_of(suite, student)) == "one_more_at_equality"


CUT = "keep_sorted[..., 1:] = mass[..., :-1] < p"
SCATTER = "torch.zeros_like(keep_sorted).scatter(-1, order, keep_sorted)"


@pytest.mark.parametrize(
    "edits",
    [
        ((CUT, "keep_sorted[..., 1:] = mass[..., 1:] < p"), (SCATTER, "keep_sorted")),
        ((CUT, "keep_sorted[..., 1:] = mass[..., :-1] <= p"), ("~keep, -torch.inf", "~keep, 0.0")),
        ((SCATTER, "keep_sorted.gather(-1, order)"), (CUT, CUT.replace("<", "<="))),
    ],
    ids=["crossing and order", "equality and fill", "gather and equality"],
)
def test_a_double_fault_gets_no_hint(suite: Suite, edits: tuple[tuple[str, str], ...]) -> None:
    results = results_of(suite, with_edits("top_p", edits))
    assert not all(result.passed for result in results.values())
    assert named(results) is None


@pytest.mark.parametrize(
    "edit",
    [
        (CUT, "keep_sorted[..., 1:] = mass[..., :-1] < p * p"),
        (CUT, "keep_sorted[..., 1:] = mass[..., :-1] < p - 0.05"),
        (".exp().double().cumsum", ".exp().double().square().cumsum"),
    ],
    ids=["p squared", "p lowered", "squared probabilities"],
)
def test_an_unknown_mistake_gets_the_plain_difference(suite: Suite, edit: tuple[str, str]) -> None:
    results = results_of(suite, with_edits("top_p", (edit,)))
    failed = [result for result in results.values() if not result.passed]
    assert failed
    assert all("called top_p_filter(" in result.message for result in failed)
    assert all("expected" in result.message for result in failed)
    assert named(results) is None


def test_a_mistake_in_min_p_costs_the_nucleus_nothing(suite: Suite) -> None:
    student = find_bank("mistakes", "top_p").implementations["min_p_is_top_p"].build()
    failed = [result.of for result in results_of(suite, student).values() if not result.passed]
    assert set(failed) == {"min_p_filter"}
