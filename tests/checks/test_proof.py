"""The proof of the checks, lesson by lesson, and what it must not overlook."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from autograder.authoring.layout import ROOT
from autograder.authoring.proof import LessonProof, prove, prove_use
from autograder.authoring.proof_table import as_markdown, with_table
from autograder.bank import Bank, find_bank
from autograder.errors import CourseError
from course_lib.checks.diagnose import known_mistake, load_known
from course_lib.checks.kit import Suite, find_suite, lessons, run_check, run_lesson

MISTAKES_A_LESSON, MISTAKES, VARIANTS = 10, 110, 40


@pytest.mark.parametrize("lesson", lessons())
def test_the_proof_of_a_lesson_holds(lesson: str) -> None:
    proof = prove(lesson)
    assert proof.faults == []
    assert proof.rejected == proof.mistakes >= MISTAKES_A_LESSON
    assert proof.diagnosed >= 0.95 * proof.mistakes
    assert proof.accepted == proof.variants


def test_the_banks_hold_enough_mistakes_and_variants() -> None:
    banks = {kind: [find_bank(kind, lesson) for lesson in lessons()] for kind in KINDS}
    counts = {kind: sum(len(b.implementations) for b in banks[kind]) for kind in KINDS}
    assert counts["mistakes"] >= MISTAKES
    assert counts["variants"] >= VARIANTS


KINDS = ("mistakes", "variants")


@pytest.mark.parametrize("lesson", lessons())
def test_known_answers_are_what_mistakes_and_checks_give(lesson: str) -> None:
    from autograder.authoring.known import stale

    assert not stale(lesson), f"{lesson}.json is not what the mistakes answer now: run `make known`"


@pytest.mark.parametrize("lesson", lessons())
def test_known_answers_hold_no_code(lesson: str) -> None:
    for mistake in load_known(lesson):
        assert "def " not in mistake.hint
        assert "return " not in str(mistake.outcomes)


def test_a_check_that_catches_nothing_alone_is_a_fault() -> None:
    suite = Suite("top_k")
    for name in ("first", "second"):
        suite.check(name, of="top_k_filter", points=1, claim="")(lambda student: None)
    proof = LessonProof("top_k")
    prove_use(proof, list(suite.checks.values()), {"a": {"top_k-first"}, "b": set(suite.checks)})
    assert proof.faults == ["top_k-second: catches nothing that no other check of its kind does"]


def test_a_check_with_false_alarms_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = find_suite("top_k")
    assert suite is not None
    doubtful = Suite("top_k")
    doubtful.check("by_chance", of="top_k_filter", points=1, claim="", false_alarm=1e-6)(
        suite.checks["top_k-off"].run
    )
    monkeypatch.setitem(suite.checks, "top_k-by_chance", doubtful.checks["top_k-by_chance"])
    assert any("by_chance: false alarms" in fault for fault in prove("top_k").faults)


def student(**functions: Any) -> ModuleType:
    module = ModuleType("student")
    vars(module).update(functions)
    return module


def diagnose(function: Any) -> str | None:
    suite = find_suite("top_k")
    assert suite is not None
    module = student(top_k_filter=function)
    results = [run_check(check, module) for check in suite.checks.values()]
    assert not all(result.passed for result in results)
    found = known_mistake("top_k", "top_k_filter", results)
    return None if found is None else found.name


def one_too_few(logits: torch.Tensor, k: int | None) -> torch.Tensor:
    mistakes = find_bank("mistakes", "top_k").implementations
    answer: torch.Tensor = mistakes["keeps_one_less"].build().top_k_filter(logits, k)
    return answer


def test_a_mistake_written_in_another_way_is_named_all_the_same() -> None:
    def also_one_too_few(logits: torch.Tensor, k: int | None) -> torch.Tensor:
        if k is not None and k < 0:
            raise ValueError("no")
        logits = logits.float()
        if not k or k >= logits.shape[-1]:
            return logits
        order = logits.argsort(dim=-1, descending=True).argsort(dim=-1)
        return logits.masked_fill(order >= k - 1, -torch.inf)

    assert diagnose(one_too_few) == "keeps_one_less"
    assert diagnose(also_one_too_few) == "keeps_one_less"


def test_a_mistake_without_care_for_wrong_arguments_is_named_where_it_shows(
    tmp_path: Path,
) -> None:
    for path in (ROOT / "course_lib").glob("*.py"):
        shutil.copyfile(path, tmp_path / path.name)
    source = """\"\"\"Lesson 3: top-k.\"\"\"
import torch

def top_k_filter(logits, k):
    logits = logits.float()
    if not k:
        return logits
    values = logits.topk(min(k, logits.shape[-1])).values
    return logits.masked_fill(logits < values[..., -1], -torch.inf)
"""
    (tmp_path / "top_k.py").write_text(source, encoding="utf-8")
    results = {result.id: result for result in run_lesson("top_k", folder=tmp_path)}
    assert results["top_k-rows_apart"].mistake == "threshold_lost_its_axis"
    # what fails for want of a ValueError is another matter
    assert not results["top_k-negative_k"].passed
    assert results["top_k-negative_k"].mistake is None


def test_two_mistakes_at_once_get_no_hint() -> None:
    def two_faults(logits: torch.Tensor, k: int | None) -> torch.Tensor:
        answer = one_too_few(logits, k)
        return answer.masked_fill(answer == -torch.inf, 0.0)

    assert diagnose(two_faults) is None


def test_a_mistake_that_is_not_in_the_bank_gets_no_hint() -> None:
    def every_other(logits: torch.Tensor, k: int | None) -> torch.Tensor:
        return logits.float().masked_fill(torch.arange(logits.shape[-1]) % 2 == 1, -torch.inf)

    assert diagnose(every_other) is None


def test_the_table_in_contributing_counts_what_the_proof_counts() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for lesson in lessons():
        suite = find_suite(lesson)
        assert suite is not None
        mistakes = len(find_bank("mistakes", lesson).implementations)
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {lesson} |")]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert int(cells[1]) == len(suite.checks), "run `make proof`"
        assert int(cells[3]) == int(cells[4]) == mistakes, "run `make proof`"


def test_a_page_without_its_marks_is_told() -> None:
    with pytest.raises(CourseError, match="marks"):
        with_table("no marks here", [LessonProof("top_k")])
    assert "| top_k | 0 |" in as_markdown([LessonProof("top_k")])


def test_an_edit_that_no_longer_fits_the_solution_is_told() -> None:
    bank = Bank("top_k")
    bank.mistake_by_edit("gone", "top_k_filter", ("no such text", ""), hint="")
    with pytest.raises(ValueError, match="0 times, not once"):
        bank.implementations["gone"].build()


def test_a_stub_that_the_function_uses_is_the_one_to_write(tmp_path: Path) -> None:
    for path in (ROOT / "course_lib").glob("*.py"):
        shutil.copyfile(path, tmp_path / path.name)
    stub = (tmp_path / "top_p.py").read_text(encoding="utf-8")
    written = stub.replace(
        'raise NotImplementedError("lesson 4: top_p_filter is yours to write")', "return logits"
    )
    assert written != stub
    (tmp_path / "top_p.py").write_text(written, encoding="utf-8")
    messages = {result.of: result.message for result in run_lesson("top_p", folder=tmp_path)}
    expected = "open course_lib/top_p.py and write min_p_filter"
    assert messages["min_p_filter"] == expected
    assert "not attempted" not in messages["top_p_filter"]
