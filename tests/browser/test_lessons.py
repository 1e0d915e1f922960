"""A lesson done in JupyterLab, from the bare stub to the green panel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from autograder.authoring.layout import ROOT, Lesson, lessons, solution_path, stub_path

from .conftest import SCREENSHOTS
from .lab import Lab

LESSONS = lessons()
# one whose task is a single function, and the one that takes all the others together
TRIED = [lesson for lesson in LESSONS if lesson.number in (3, 8) and lesson.notebook.is_file()]


def solve_lessons_before(lesson: Lesson, workspace: Path) -> None:
    for earlier in LESSONS:
        if earlier.number < lesson.number and earlier.graded:
            solution = solution_path(ROOT, earlier.name).read_bytes()
            stub_path(workspace, earlier.name).write_bytes(solution)


@pytest.mark.parametrize("lesson", TRIED, ids=lambda lesson: lesson.slug)
def test_lesson_is_done_in_jupyterlab(lesson: Lesson, workspace: Path, lab: Lab) -> None:
    def shoot(what: str) -> None:
        lab.page.screenshot(path=SCREENSHOTS / f"{lesson.slug}-{what}.png")

    solve_lessons_before(lesson, workspace)
    lab.open_notebook(lesson.notebook.name)

    # the bare stub: everything runs, and each check waits
    lab.run_all()
    tests = lab.test_cells()
    count = tests.count()
    assert count > 3
    assert tests.get_by_role("status").filter(has_text="not attempted").count() == count
    first = tests.first
    first.scroll_into_view_if_needed()
    shoot("1-not-attempted")

    # a wrong answer is told in the same place
    module = stub_path(workspace, lesson.name)
    stub = module.read_text()
    module.write_text(re.sub(r"raise NotImplementedError\(.*\)", "return None", stub))
    lab.run_cell(first)
    expect(first.get_by_role("status")).to_contain_text("failed")
    expect(first.get_by_role("status")).to_contain_text("it returned None")
    shoot("2-first-failed")

    # the task, written into the file beside the notebook: no restart is needed
    solution = solution_path(ROOT, lesson.name).read_text()
    lab.edit("course_lib", module.name, solution)
    assert module.read_text() == solution
    lab.run_cell(first)
    expect(first.get_by_role("status")).to_contain_text("passed")
    shoot("3-first-passed")

    lab.run_all()
    passed = tests.get_by_role("status").filter(has_text="passed")
    expect(passed).to_have_count(count)
    first.scroll_into_view_if_needed()
    shoot("4-all-passed")

    # a slider by keyboard: the picture changes, and so does the text that stands for it
    slider = lab.page.get_by_role("slider").first
    picture = lab.page.locator(".jupyter-widgets.widget-html img").first
    before = picture.get_attribute("alt")
    assert before
    slider.focus()
    lab.page.keyboard.press("ArrowRight")
    expect(picture).not_to_have_attribute("alt", before)
    picture.scroll_into_view_if_needed()
    shoot("5-slider-moved")

    lab.menu("Settings", "Theme", "JupyterLab Dark")
    expect(lab.page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
    lab.wait_for_curtain()
    shoot("6-dark-slider")
    first.scroll_into_view_if_needed()
    shoot("7-dark-checks")


def test_a_notebook_in_a_folder_of_the_workspace_finds_course_lib(
    workspace: Path, lab: Lab
) -> None:
    lesson = TRIED[0]
    copy = workspace / "trial" / lesson.notebook.name
    copy.parent.mkdir()
    copy.write_bytes((workspace / lesson.notebook.name).read_bytes())
    lab.open_notebook(f"trial/{lesson.notebook.name}")
    first = lab.cell(f'start("{lesson.name}")')
    lab.run_cell(first)
    expect(first.get_by_role("progressbar")).to_have_count(1)
