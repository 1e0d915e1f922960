"""The notebooks and the checks hold together: ids, points, order."""

from __future__ import annotations

import nbformat
import pytest

from autograder.authoring.layout import Lesson, lessons
from autograder.authoring.proof import hidden_suite
from course_lib.checks.kit import find_suite
from course_lib.given.lessons import heading

GRADED = [lesson for lesson in lessons() if lesson.graded]


def graded_cells(lesson: Lesson) -> list[nbformat.NotebookNode]:
    notebook = nbformat.read(lesson.notebook, as_version=4)
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


@pytest.mark.parametrize("lesson", GRADED, ids=lambda lesson: lesson.slug)
def test_graded_cells_are_the_checks_with_their_points_in_their_order(lesson: Lesson) -> None:
    suite = find_suite(lesson.name)
    assert suite is not None
    checks = [*suite.checks.values(), *hidden_suite(lesson.name).checks.values()]
    tests = [cell for cell in graded_cells(lesson) if cell.cell_type == "code"]
    found = [(c.metadata.nbgrader.grade_id, c.metadata.nbgrader.points) for c in tests]
    assert found == [(check.id, check.points) for check in checks]


@pytest.mark.parametrize("lesson", GRADED, ids=lambda lesson: lesson.slug)
def test_a_lesson_has_one_title_everywhere(lesson: Lesson) -> None:
    """The module's first line is what the bar and `course progress` show."""
    notebook = nbformat.read(lesson.notebook, as_version=4)
    assert notebook.cells[0].source.splitlines()[0] == f"# {heading(lesson.name)}"


@pytest.mark.parametrize("lesson", GRADED, ids=lambda lesson: lesson.slug)
def test_a_test_cell_runs_the_check_it_is_named_after(lesson: Lesson) -> None:
    for cell in graded_cells(lesson):
        if cell.cell_type == "code":
            name = cell.metadata.nbgrader.grade_id
            call = "hidden" if "-hidden_" in name else "check"
            assert cell.source.splitlines()[-1] == f'{call}("{name}")'
            assert "raises-exception" in cell.metadata.tags


@pytest.mark.parametrize("lesson", GRADED, ids=lambda lesson: lesson.slug)
def test_a_lesson_asks_one_question_in_writing(lesson: Lesson) -> None:
    written = [cell for cell in graded_cells(lesson) if cell.cell_type == "markdown"]
    assert [cell.metadata.nbgrader.grade_id for cell in written] == [f"{lesson.name}-written"]


@pytest.mark.parametrize("lesson", GRADED, ids=lambda lesson: lesson.slug)
def test_visible_checks_give_ten_points_and_hidden_ones_five(lesson: Lesson) -> None:
    suite = find_suite(lesson.name)
    assert suite is not None
    assert sum(check.points for check in suite.checks.values()) == 10
    assert sum(check.points for check in hidden_suite(lesson.name).checks.values()) == 5


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.slug)
def test_every_picture_has_an_alt_text_made_of_its_data(lesson: Lesson) -> None:
    notebook = nbformat.read(lesson.notebook, as_version=4)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    for output in outputs:
        data = output.get("data", {})
        assert "image/png" not in data, "a figure goes out as HTML with an alt text"
        if "<img" in data.get("text/html", ""):
            alt = data["text/html"].partition('alt="')[2].partition('"')[0]
            assert len(alt) > 80 and any(sign.isdigit() for sign in alt), alt
