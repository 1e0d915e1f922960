"""A verdict for continuous integration."""

from __future__ import annotations

from xml.etree import ElementTree

from autograder.judge.verdict import CheckVerdict, LessonVerdict, Verdict
from autograder.report.junit import as_junit

from .made import all_alike, mistaken, right


def of(*lessons: LessonVerdict) -> ElementTree.Element:
    verdict = Verdict({lesson.lesson: lesson for lesson in lessons}, "lock")
    return ElementTree.fromstring(as_junit(verdict).encode())


def test_every_check_is_a_case_and_the_counts_agree() -> None:
    root = of(right())
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("19", "0", "0")
    assert len(root.findall("testsuite/testcase")) == 19
    score = root.find("testsuite/properties/property[@name='score']")
    assert score is not None and score.get("value") == "15"


def test_a_failure_tells_cause_message_and_hint() -> None:
    failure = of(mistaken("keeps_one_less")).find("testsuite/testcase/failure")
    assert failure is not None and failure.text is not None
    assert failure.get("type") == "wrong value"
    assert failure.text.startswith("called top_k_filter(")
    assert "One token too few survives." in failure.text


def test_of_a_hidden_check_there_is_the_property_and_no_value() -> None:
    check = CheckVerdict("a", True, "f", "holds", 2, 0, "wrong value", "SECRET", "SECRET", "SECRET")
    root = of(LessonVerdict("top_k", [check]))
    assert "SECRET" not in ElementTree.tostring(root, encoding="unicode")
    case = root.find("testsuite/testcase")
    assert case is not None and case.get("name") == "holds (0 of 2 points)"


def test_what_was_not_attempted_is_skipped() -> None:
    root = of(all_alike("not attempted", ""))
    assert (root.get("failures"), root.get("skipped")) == ("0", "19")


def test_whatever_a_message_holds_the_file_is_xml() -> None:
    nasty = '</failure>]]>&"\x00\x1b[31m\ud800\ufffe' + "🐢" * 9_000
    check = CheckVerdict("a", False, "f", nasty, 2, 0, "raised", nasty, nasty, nasty)
    failure = of(LessonVerdict("top_k", [check])).find("testsuite/testcase/failure")
    assert failure is not None and failure.text is not None
    assert failure.text.startswith('</failure>]]>&"\ufffd\ufffd[31m\ufffd\ufffd🐢')
    assert len(failure.text) == 4_000
