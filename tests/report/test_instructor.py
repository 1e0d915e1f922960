"""The instructor's page: counts, remarks, and its size for a large class."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from autograder.judge.verdict import LessonVerdict
from autograder.late import DueDates, Policy, at
from autograder.records import Record
from autograder.report.instructor import Findings, instructor_page
from autograder.report.plots import arrivals, histogram, percent
from autograder.similarity import Alike, Leads, Same

from .made import BEGINNING, a_class, all_alike, mistaken, right

NONE = DueDates()


def page_of(records: list[Record], due: DueDates = NONE, **findings: Any) -> str:
    return instructor_page("top_k", records, due, Findings(**findings))


def words(page: str) -> str:
    body = re.sub(r"<script.*?</script>", "", page.split("<body>", 1)[1], flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def records_of(*verdicts: LessonVerdict) -> list[Record]:
    return [
        Record(f"s{place}", "top_k", verdict, "lock", "ab" * 32, BEGINNING, "cd" * 32)
        for place, verdict in enumerate(verdicts)
    ]


# --- the run sheet ---


def test_the_run_sheet_counts_and_names_what_was_not_graded() -> None:
    records = records_of(
        right(), all_alike("not attempted", ""), all_alike("import failed", "line 3")
    )
    seen = words(page_of(records, failures=[("Zoë.zip", "the archive is damaged")]))
    for tile in ("4 received", "3 graded", "1 not graded", "1 pass everything", "1 not attempted"):
        assert tile in seen
    assert "Zoë.zip the archive is damaged" in seen
    assert "import failed 1 s2" in seen


def test_who_came_late_is_counted() -> None:
    zone = ZoneInfo("UTC")
    policy = Policy(at(datetime(2026, 11, 9), zone), zone, percent=10)
    records = a_class(200)
    expected = sum(record.received > policy.due for record in records)
    seen = words(page_of(records, DueDates({"top_k": policy})))
    assert f"{expected} late" in seen
    assert f"{expected} came after the due date, 9 Nov 00:00 UTC." in seen


def test_a_class_without_any_record_has_a_page_all_the_same() -> None:
    seen = words(page_of([], failures=[("a.zip", "is no zip")]))
    assert "1 received 0 graded 1 not graded" in seen
    assert "Explorer" not in seen


def test_unsandboxed_grades_are_marked() -> None:
    records = [replace(record, sandbox="none") for record in records_of(right())]
    assert "1 submission was graded without a sandbox" in words(page_of(records))
    assert "without a sandbox" not in words(page_of(records_of(right())))


# --- remarks ---


def test_checks_that_nobody_or_everybody_fails_are_named() -> None:
    seen = words(page_of(records_of(mistaken("negative_is_off"), mistaken("negative_is_off"))))
    assert "Nobody passes top_k-negative_k , top_k-hidden_edges_of_k : is the task clear" in seen
    assert "Everybody passes top_k-keeps_k ," in seen


def test_grades_from_two_versions_of_the_checks_are_told() -> None:
    first, second = records_of(right(), right())
    seen = words(page_of([first, replace(second, graded_with="ee" * 32)]))
    assert "These grades come from 2 versions of the checks" in seen
    assert "versions of the checks" not in words(page_of([first, second]))


# --- mistakes and explorer ---


def test_the_explorer_holds_every_learner_and_every_failure() -> None:
    records = a_class(120)
    data = data_of(page_of(records))
    assert [row[0] for row in data["rows"]] == [record.student for record in records]
    for row, record in zip(data["rows"], records, strict=True):
        score, kinds = data["patterns"][row[2]]
        assert score == record.verdict.score
        failed = []
        for check, cause, slip, _ in (data["kinds"][kind] for kind in kinds):
            name = data["mistakes"][slip][0] if slip >= 0 else ""
            failed.append((data["checks"][check][0], data["causes"][cause], name))
        assert failed == [
            (check.id, check.cause, check.mistake)
            for check in record.verdict.checks
            if not check.passed
        ]


def test_the_explorer_has_no_message_of_a_hidden_check() -> None:
    verdict = mistaken("keeps_one_less")
    told = [
        replace(check, message="SECRET" if check.hidden else "shown") for check in verdict.checks
    ]
    page = page_of(records_of(LessonVerdict("top_k", told)))
    assert "SECRET" not in page
    assert data_of(page)["examples"] == ["shown"]


# --- leads ---


def test_leads_are_told_as_leads() -> None:
    leads = Leads(
        9,
        [Same(("ada", "bob"), 7, "<b>k</b>")],
        [Alike(("eve", "mallory"), (0.93, 0.81), 14, "for row")],
    )
    page = page_of(a_class(9), leads=leads, notes={"eve": ["asked for /proc"]})
    seen = words(page)
    assert seen.count("a lead, not proof") == 2
    assert "eve asked for /proc" in seen
    assert "ada, bob 7 <b>k</b>" in seen
    assert "eve, mallory 93 %, 81 % 14 for row" in seen
    assert "Similarity" not in words(page_of(a_class(9)))


# --- size and safety ---


def test_a_class_of_5000_is_a_page_under_2_mb() -> None:
    names = [(f"pack {n}.zip", "the archive is damaged: " + "x" * 200) for n in range(5000)]
    notes = {f"student{n}": ["a note of some length, " * 5] for n in range(5000)}
    leads = Leads(
        5000,
        [Same(("a" * 40, "b" * 40), 30, "x" * 500)] * 100,
        [Alike(("a" * 40, "b" * 40), (1, 1), 30, "x" * 500)] * 100,
    )
    records = [replace(record, student=f"{record.student:x>40}") for record in a_class(5000)]
    page = page_of(records, failures=names, notes=notes, leads=leads)
    assert len(page.encode()) < 2_000_000


@pytest.mark.parametrize("sign", ["<", "🐢", "\u2028", "&"])
def test_hostile_text_neither_breaks_nor_bloats_the_page(sign: str) -> None:
    nasty = "</script><script>alert(1)</script>" + sign * 100_000
    verdict = mistaken("keeps_one_less")
    told = [replace(check, message=f"{check.id}{nasty}", hint=nasty) for check in verdict.checks]
    records = records_of(*[LessonVerdict("top_k", told)] * 20)
    records = [replace(record, student=f"{n}</script>") for n, record in enumerate(records)]
    page = page_of(records, failures=[(nasty, nasty)], notes={nasty: [nasty]})
    assert len(page.encode()) < 500_000
    assert page.count("<script") == 2
    assert "alert(1)</script>" not in page
    assert data_of(page)["rows"][3][0] == "3</script>"


def test_the_page_fetches_nothing_and_runs_its_own_script_only() -> None:
    page = page_of(a_class(30))
    assert "default-src 'none'" in page
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'; base-uri", page)
    assert not re.search(r"\bsrc=|url\(|@import|fetch\(|innerHTML", page)
    assert set(re.findall(r'href="([^"]*)"', page)) == {"#explorer"}


# --- plots ---


def test_a_histogram_says_in_words_what_it_draws() -> None:
    drawn = histogram([0, 5, 5.5, 10], 10)
    assert (
        'aria-label="Scores of 4 learners, of 10 points: mean 5.1, median 5.25, lowest 0, highest '
        '10. Most, 2, lie between 5 and 6 points."'
    ) in drawn
    assert drawn.count("<rect") == 10


def test_arrivals_count_everyone_once() -> None:
    received = [record.received for record in a_class(300)]
    drawn = arrivals(received, None)
    numbers = [int(number) for number in re.findall(r'text-anchor="middle">(\d+)</text>', drawn)]
    assert sum(numbers) == 300
    assert "Submissions over time, from 4 Nov" in drawn
    assert "due date" not in drawn
    assert arrivals(received[:1], received[0]).count("<rect") == 1


def test_nobody_and_everybody_are_not_rounded_to() -> None:
    assert [percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == [
        "0 %", "<1 %", "50 %", ">99 %", "100 %",
    ]  # fmt: skip
