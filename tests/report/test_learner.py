"""A learner's page: what it tells, what it never tells, and how long it may grow."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from autograder.judge.verdict import CheckVerdict, LessonVerdict
from autograder.late import Lateness, Policy, When, at
from autograder.records import Record
from autograder.report.case import as_case
from autograder.report.learner import LONGEST, learner_page
from autograder.report.page import prose, text

from .made import BEGINNING, CHECKS_SHA, all_alike, mistaken, right

NO_DATE = Lateness(When.NO_DUE_DATE)


def record(verdict: LessonVerdict, student: str = "ada", sandbox: str = "lock") -> Record:
    return Record(student, "top_k", verdict, sandbox, "ab" * 32, BEGINNING, CHECKS_SHA)


def words(page: str) -> str:
    """What a reader sees, blanks run together."""
    body = page.split("<body>", 1)[1]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


# --- what it tells ---


def test_it_tells_score_checks_and_how_to_run_them_again() -> None:
    seen = words(learner_page(record(mistaken("keeps_one_less")), NO_DATE))
    assert "2.5 of 15 points" in seen
    assert "4 of 12 visible checks passed. 0 of 7 hidden checks passed." in seen
    assert "course check top_k" in seen
    assert "all tests passed" not in seen.lower()


def test_a_visible_case_is_input_yours_found_expected() -> None:
    seen = words(learner_page(record(mistaken("keeps_one_less")), NO_DATE))
    assert (
        "Input top_k_filter(logits=[[2, 1, 0.1, -1, -2]], k=3) Yours [[2, 1, -inf, -inf, -inf]] "
        "Found kept ids {0, 1} Expected {0, 1, 2}"
    ) in seen


def test_a_hint_stands_once_however_many_checks_the_slip_fails() -> None:
    seen = words(learner_page(record(mistaken("keeps_one_less")), NO_DATE))
    assert seen.count("One token too few survives.") == 1
    assert seen.count("The same slip as in top_k-keeps_k") == 7


def test_the_receipt_holds_sha_time_and_sandbox() -> None:
    seen = words(learner_page(record(right()), NO_DATE))
    assert "Received 2 November 2026, 08:00 UTC" in seen
    assert f"SHA-256 {'ab' * 32}" in seen
    assert "Sandbox lock" in seen


def test_a_late_one_shows_the_penalty_beside_the_score() -> None:
    zone = ZoneInfo("Europe/Berlin")
    late = Policy(at(datetime(2026, 11, 1, 8), zone), zone, percent=10)
    page = learner_page(record(right()), late.judge("ada", BEGINNING))
    assert "15 of 15 points" in words(page)
    assert "2 days late, -20 %: 3 points are taken off, 12 count." in words(page)
    assert "Due 1 November 2026, 08:00 CET" in words(page)
    assert "no points count" in words(learner_page(record(right()), Lateness(When.CLOSED, 100)))


def test_only_an_unsandboxed_grade_is_marked() -> None:
    mark = "Graded without a sandbox"
    assert mark in words(learner_page(record(right(), sandbox="none"), NO_DATE))
    for level in ("namespaces and lock", "lock, another user", "lock"):
        assert mark not in words(learner_page(record(right(), sandbox=level), NO_DATE))


def test_it_tells_what_changed_since_last_time() -> None:
    before = record(mistaken("negative_is_off"))
    after = replace(record(right()), received=BEGINNING + timedelta(days=1), submission="cd" * 32)
    seen = words(learner_page(after, NO_DATE, before))
    assert "1.5 points more than what was received 2 November 2026, 08:00 UTC earned." in seen
    assert "✓ passes now: a negative k raises ValueError" in seen
    assert "fails now" not in seen
    back = words(learner_page(before, NO_DATE, after))
    assert "1.5 points less than" in back
    assert "✗ fails now: a negative k raises ValueError" in back
    assert "The files are the same as last time." in words(learner_page(before, NO_DATE, before))
    assert "Since last time" not in words(learner_page(before, NO_DATE))


def test_what_was_not_attempted_is_told_from_what_failed() -> None:
    page = learner_page(record(all_alike("not attempted", "write top_k_filter")), NO_DATE)
    assert "○ not attempted" in words(page)
    assert 'class="check bad"' not in page


# --- what it never tells ---


def test_of_a_hidden_check_there_is_the_property_alone() -> None:
    secret = CheckVerdict(
        "top_k-hidden", True, "f", "holds for any k", 2, 0, "wrong value", "MSG", "HINT", "SLIP"
    )
    page = learner_page(record(LessonVerdict("top_k", [secret])), NO_DATE)
    assert "✗ wrong value holds for any k top_k-hidden , 0 of 2" in words(page)
    for leak in ("MSG", "HINT", "SLIP"):
        assert leak not in page


def test_without_hidden_checks_it_says_so_and_never_that_all_passed() -> None:
    visible = [check for check in right().checks if not check.hidden]
    seen = words(learner_page(record(LessonVerdict("top_k", visible)), NO_DATE))
    assert "12 of 12 visible checks passed. The hidden checks were not run." in seen
    assert "Hidden checks" not in seen


# --- what it withstands ---

NASTY = "</pre></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x00\u202e"


def hostile(message: str) -> LessonVerdict:
    return LessonVerdict(
        "top_k",
        [
            CheckVerdict(
                f"c{n}", False, "f", message, 1, 0, "raised", message, f"{n}{message}", "m"
            )
            for n in range(40)
        ],
    )


@pytest.mark.parametrize("signs", ["<", "🐢", 'called f("', "a\n", "\x00"])
def test_it_stays_short_whatever_the_messages_hold(signs: str) -> None:
    message = signs * 1_000_000
    page = learner_page(record(hostile(message), student=message[:128]), NO_DATE)
    assert len(page.encode()) < LONGEST


def test_everything_is_escaped() -> None:
    page = learner_page(
        replace(record(hostile(NASTY), NASTY, NASTY), submission=NASTY, graded_with=NASTY), NO_DATE
    )
    body = page.split("<body>", 1)[1]
    tags = set(re.findall(r"<(/?[a-zA-Z!][^\s>]*)", body))
    assert not {tag for tag in tags if tag.strip("/") in ("script", "img", "style")}
    assert "onerror=alert(1)&gt;" in body
    assert "\x00" not in page and "\u202e" not in page


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    page = learner_page(record(mistaken("keeps_one_less")), NO_DATE)
    assert "default-src 'none'" in page
    assert "script-src 'none'" in page
    assert not re.search(r"(?:src|href)=|url\(|@import|<script", page)


# --- its parts ---


def test_every_word_of_a_message_is_in_its_case() -> None:
    message = (
        "called f(x=[1; expected 2])\nit raised ValueError: no\nat line 3 of top_k.py: raise\n"
        "expected ValueError, for k"
    )
    assert as_case(message) == [
        ("Input", "f(x=[1; expected 2])"),
        ("Yours", "it raised ValueError: no"),
        ("Where", "at line 3 of top_k.py: raise"),
        ("Expected", "ValueError, for k"),
    ]
    assert as_case("open course_lib/top_k.py") == [("Found", "open course_lib/top_k.py")]
    assert as_case("it is 'a; expected b'; expected 'c'") == [
        ("Found", "it is 'a; expected b'"),
        ("Expected", "'c'"),
    ]
    assert as_case("called f()\nit returned 'a\ncalled g()'\nit is 1; expected 2") == [
        ("Input", "f()"),
        ("Yours", "'a"),
        ("Found", "called g()'\nit is 1"),
        ("Expected", "2"),
    ]
    assert as_case("") == []


def test_what_stands_between_backticks_is_code() -> None:
    assert prose("see `a<b`, then `c", 100) == "see <code>a&lt;b</code>, then `c"


def test_clipped_text_tells_how_much_is_missing() -> None:
    assert text("a" * 10, 4) == "aaaa [6 characters more]"
    assert text("<<<<", 9) == "&lt;&lt; [2 characters more]"
    assert text("é" * 4, 5) == "éé [2 characters more]"
    assert text("李雷 Zoë\t\n", 100) == "李雷 Zoë\t\n"
