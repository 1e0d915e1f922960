"""The reports as a browser shows them: found, filtered and sorted, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize, expect

from autograder.late import DueDates, Lateness, Policy, When
from autograder.records import Record
from autograder.report.instructor import Findings, instructor_page
from autograder.report.learner import learner_page
from tests.report.made import BEGINNING, CHECKS_SHA, a_class, mistaken

from .conftest import SCREENSHOTS

RECORDS = a_class(300)
NARROW = ViewportSize(width=400, height=900)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must log no error and ask for nothing but files."""
    context = browser.new_context(viewport={"width": 1250, "height": 1000})
    page = context.new_page()
    faults: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            faults.append(message.text)

    def see(request: Request) -> None:
        if not request.url.startswith("file:"):
            faults.append(request.url)

    page.on("console", hear)
    page.on("request", see)
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    assert faults == []


@pytest.fixture
def report(page: Page, tmp_path: Path) -> Page:
    """The instructor's page on a class of 300."""
    policy = Policy(BEGINNING + timedelta(days=8), ZoneInfo("UTC"), percent=10)
    due = DueDates({"top_k": policy})
    findings = Findings([("Zoë.zip", "the archive is damaged")], {"ada00000": ["a note"]})
    path = tmp_path / "03_top_k.html"
    path.write_text(instructor_page("top_k", RECORDS, due, findings), encoding="utf-8")
    page.goto(path.as_uri())
    return page


def with_mistake(name: str) -> list[Record]:
    return [
        record
        for record in RECORDS
        if any(check.mistake == name for check in record.verdict.checks)
    ]


def points_shown(page: Page, group: str) -> list[float]:
    cells = page.locator(f'details[data-name="{group}"] tbody tr td:nth-child(2)')
    return [float(text) for text in cells.all_inner_texts()]


def test_the_explorer_filters_by_mistake_and_by_name(report: Page) -> None:
    count = report.locator("#count")
    expect(count).to_contain_text("300 learners of 300")
    report.screenshot(path=SCREENSHOTS / "report-1-top.png")

    report.get_by_label("Filter").fill("keeps_one_more")
    expect(count).to_contain_text(
        f"{len(with_mistake('keeps_one_more'))} learners of 300, in 1 group"
    )

    student = RECORDS[17].student
    report.get_by_label("Filter").fill(student.upper())
    expect(count).to_contain_text("1 learner of 300")
    report.get_by_label("Filter").fill("nobody at all")
    expect(count).to_contain_text("0 learners of 300, in 0 groups")


def test_the_explorer_works_by_keyboard_alone(report: Page) -> None:
    keys = report.keyboard
    report.get_by_label("Filter").focus()
    keys.press("Tab")
    expect(report.get_by_label("Group by")).to_be_focused()
    keys.press("n")  # nothing: one group with everyone, which is open
    group = report.locator("details.group")
    expect(group).to_have_count(1)
    expect(group.locator("tbody tr")).to_have_count(50)
    keys.press("Tab")
    expect(group.locator("summary")).to_be_focused()

    # past the box, which scrolls by arrow keys, and the names, to the points
    for _ in range(3):
        keys.press("Tab")
    points = group.get_by_role("button", name="Points")
    expect(points).to_be_focused()
    head = group.locator("th", has_text="Points")
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert points_shown(report, "all learners") == sorted(r.verdict.score for r in RECORDS)[:50]
    keys.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    # the table is another, and the button in it has the focus still
    expect(points).to_be_focused()
    ordered = sorted((r.verdict.score for r in RECORDS), reverse=True)
    assert points_shown(report, "all learners") == ordered[:50]

    keys.press("Tab")
    keys.press("Tab")
    name = group.locator("tbody button").first
    expect(name).to_be_focused()
    keys.press("Enter")
    expect(name).to_have_attribute("aria-expanded", "true")
    expect(group.locator(".row-details")).to_contain_text("submission")
    keys.press("Enter")
    expect(group.locator(".row-details")).to_have_count(0)


def test_everyone_can_be_reached(report: Page) -> None:
    report.get_by_label("Group by").select_option("none")
    report.get_by_role("button", name="Show 250 more of 250").click()
    names = report.locator("details.group tbody button").all_inner_texts()
    assert sorted(names) == sorted(record.student for record in RECORDS)


def test_a_mistake_leads_to_who_made_it(report: Page) -> None:
    report.get_by_role("button", name="keeps_one_less").click()
    group = report.locator('details[data-name="keeps_one_less"]')
    expect(group.locator("summary")).to_be_focused()
    expect(group).to_contain_text("One token too few survives.")
    shown = group.locator("tbody button").all_inner_texts()
    assert set(shown) <= {record.student for record in with_mistake("keeps_one_less")}
    group.locator("tbody button").first.click()
    expect(group.locator(".row-details")).to_contain_text("kept ids {0, 1}; expected {0, 1, 2}")
    report.screenshot(path=SCREENSHOTS / "report-2-explorer.png")


def test_the_table_of_checks_sorts(report: Page) -> None:
    table = report.locator("table.sortable").first
    button = table.get_by_role("button", name="Pass")
    button.click()
    shares = table.locator("tbody tr td:nth-child(4)")
    rates = [float(text.strip(" %")) for text in shares.all_inner_texts()]
    assert rates == sorted(rates) and len(set(rates)) > 3
    button.click()
    rates = [float(text.strip(" %")) for text in shares.all_inner_texts()]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark_as_the_reader_wishes_and_fits_a_telephone(
    report: Page, scheme: Literal["light", "dark"]
) -> None:
    report.emulate_media(color_scheme=scheme)
    report.set_viewport_size(NARROW)
    colour = report.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3
    assert (brightness > 200) == (scheme == "light")
    report.locator("details.group summary").first.click()
    assert report.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    report.screenshot(path=SCREENSHOTS / f"report-3-{scheme}-narrow.png")


def test_a_learner_s_page_opens_and_fits(page: Page, tmp_path: Path) -> None:
    verdict = mistaken("keeps_one_less")
    record = Record("Zoë", "top_k", verdict, "none", "ab" * 32, BEGINNING, CHECKS_SHA)
    path = tmp_path / "report.html"
    path.write_text(learner_page(record, Lateness(When.NO_DUE_DATE)), encoding="utf-8")
    page.goto(path.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Lesson 3: top-k"))
    expect(page.get_by_role("note")).to_contain_text("Graded without a sandbox")
    expect(page.get_by_role("img", name="2.5 of 15 points")).to_be_visible()
    page.screenshot(path=SCREENSHOTS / "report-4-learner.png")
    page.set_viewport_size(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def test_a_long_id_hides_nothing_and_a_long_list_leaves_the_rest_in_sight(
    page: Page, tmp_path: Path
) -> None:
    long = "m" * 128
    broken = [(f"pack{number}", "the archive is damaged") for number in range(120)]
    findings = Findings([(long, "holds no lesson"), *broken], {long: ["a note"]})
    records = [replace(RECORDS[0], student=long), *RECORDS[1:]]
    path = tmp_path / "03_top_k.html"
    path.write_text(instructor_page("top_k", records, DueDates(), findings), encoding="utf-8")
    page.goto(path.as_uri())
    for why in ("holds no lesson", "a note"):
        box = page.get_by_role("cell", name=why).bounding_box()
        assert box is not None and box["x"] + box["width"] <= 1250
    top = page.get_by_role("heading", name="Scores and arrivals").bounding_box()
    assert top is not None and top["y"] < 1300
    page.get_by_label("Group by").select_option("none")
    page.get_by_label("Filter").fill("mmm")
    points = page.locator("details.group").get_by_role("button", name="Points")
    box = points.bounding_box()
    assert box is not None and box["x"] < 1000
