"""Notebooks that were tampered with: graded cells, points and outputs are the course's own."""

import json

import nbformat
import pytest
from nbgrader.utils import determine_grade

from autograder.classroom import graded_lessons
from autograder.notebook import graded_ids, release, restored, to_bytes, write_back

from .forms import FORMS, Form, Scene
from .forms.notebooks import each_graded

NOTEBOOKS = [form for form in FORMS if form.kind == "notebook"]


def handed_in(form: Form, scene: Scene) -> bytes:
    data = form.make(scene)
    assert isinstance(data, bytes)
    return data


def points(data: bytes) -> dict[str, float]:
    """What nbgrader itself gives for each test cell by its outputs."""
    found: dict[str, float] = {}
    for cell in nbformat.reads(data.decode(), as_version=4).cells:
        told = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and told.get("grade"):
            found[told["grade_id"]] = determine_grade(cell)[0]
    return found


@pytest.mark.parametrize("form", NOTEBOOKS, ids=lambda form: f"{form.attack:02}_{form.name}")
def test_what_a_notebook_claims_earns_nothing(form: Form, scene: Scene) -> None:
    lesson = graded_lessons()[form.lesson]
    notebook, _ = restored(lesson, handed_in(form, scene))
    write_back(notebook, {})
    written = to_bytes(notebook)
    nbformat.validate(nbformat.reads(written.decode(), as_version=4))
    tests = [cell["id"] for cell in each_graded(release(lesson), "code")]
    assert points(written) == dict.fromkeys(tests, 0)
    cells = {cell["id"]: cell for cell in each_graded(notebook)}
    own = {cell["id"]: cell for cell in each_graded(release(lesson))}
    assert {i: cell["metadata"] for i, cell in cells.items()} == {
        i: cell["metadata"] for i, cell in own.items()
    }
    assert all(cells[i]["source"] == own[i]["source"] for i in own if own[i]["cell_type"] == "code")


def test_nbgrader_itself_believes_an_output_that_looks_like_points(scene: Scene) -> None:
    (form,) = [form for form in NOTEBOOKS if form.name == "results_in_the_outputs"]
    believed = points(handed_in(form, scene))
    assert believed == {
        name: worth
        for name, worth in graded_ids(graded_lessons()["top_k"]).items()
        if name in believed
    }
    assert sum(believed.values()) > 5


def test_nbgrader_itself_believes_points_in_the_metadata(scene: Scene) -> None:
    (form,) = [form for form in NOTEBOOKS if form.name == "of_more_points"]
    told = json.loads(handed_in(form, scene))
    assert all(cell["metadata"]["nbgrader"]["points"] == 1000 for cell in each_graded(told))
