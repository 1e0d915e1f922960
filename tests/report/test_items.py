"""What a class's verdicts say about checks and mistakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autograder.judge.verdict import CheckVerdict, LessonVerdict
from autograder.records import Record
from autograder.report.items import discrimination, items, mistakes, not_run, untouched

from .made import BEGINNING, a_class, all_alike, right


def record(student: str, *passed: bool, mistake: str = "") -> Record:
    checks = [
        CheckVerdict(
            f"check{place}", False, "f", "claims", 1, float(ok),
            "" if ok else "wrong value", mistake="" if ok else mistake,
        )
        for place, ok in enumerate(passed)
    ]  # fmt: skip
    return Record(student, "top_k", LessonVerdict("top_k", checks), "lock", "", BEGINNING, "")


def test_discrimination_is_the_correlation_with_all_other_points() -> None:
    # by hand: two pass with 3 and 2 points elsewhere, two fail with 1 and 0; r = 2 / sqrt(5)
    assert discrimination([True, True, False, False], [3, 2, 1, 0]) == pytest.approx(2 / 5**0.5)
    assert discrimination([False, False, True, True], [3, 2, 1, 0]) == pytest.approx(-2 / 5**0.5)


def test_a_check_s_own_points_do_not_speak_for_it() -> None:
    records = [record("a", True, False), record("b", False, True)] * 5
    assert [item.discrimination for item in items(records)] == pytest.approx([-1, -1])


def test_where_all_pass_there_is_nothing_to_discriminate() -> None:
    records = [record("a", True, False), record("b", True, True)]
    assert [item.discrimination for item in items(records)] == [None, None]
    assert discrimination([True], [1]) is None


def test_pass_rates_and_causes_are_counted() -> None:
    first, second = items(
        [record("a", True, False), record("b", True, True), record("c", 1 > 2, False)]
    )
    assert (first.passed, first.count, first.rate) == (2, 3, pytest.approx(2 / 3))
    assert second.causes == {"wrong value": 2}


def test_a_check_that_only_some_records_have_counts_those() -> None:
    assert [item.count for item in items([record("a", True), record("b", True, True)])] == [2, 1]


def test_mistakes_stand_by_the_number_of_learners_not_of_checks() -> None:
    records = [
        record("a", False, False, False, mistake="many_checks"),
        record("b", True, True, False, mistake="many_learners"),
        record("c", True, True, False, mistake="many_learners"),
    ]
    first, second = mistakes(records)
    assert (first.name, first.students, first.checks) == ("many_learners", ["b", "c"], ["check2"])
    assert (second.name, len(second.checks)) == ("many_checks", 3)


def test_what_could_not_be_run_is_told_from_what_was_not_attempted() -> None:
    stub = replace(record("a"), verdict=all_alike("not attempted", ""))
    broken = replace(record("a"), verdict=all_alike("import failed", "line 3"))
    done = replace(record("a"), verdict=right())
    assert [untouched(r) for r in (stub, broken, done)] == [True, False, False]
    assert [not_run(r) for r in (stub, broken, done)] == ["", "import failed", ""]


def test_the_made_up_class_is_the_same_each_time() -> None:
    assert a_class(30) == a_class(30)
    assert len({record.student for record in a_class(300)}) == 300
