"""The notebook that was handed in is data: its words are kept, its claims are not believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from nbgrader.preprocessors import CheckCellMetadata
from nbgrader.utils import determine_grade

from autograder.notebook import (
    answers,
    cells_of,
    graded_ids,
    has_answers,
    release,
    restored,
    to_bytes,
    write_back,
)
from autograder.verdict_cells import outputs, told
from tests.grading import fake
from tests.grading.packs import ANSWER, LESSON, answered, edited, notebook

WRITTEN = "top_k-written"
Cells = list[dict[str, Any]]


def graded(book: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The graded cells of a notebook; none may be there twice."""
    found = [cell for cell in book["cells"] if cell["metadata"].get("nbgrader")]
    by_id = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in found}
    assert len(by_id) == len(found)
    return by_id


def as_released(book: dict[str, Any]) -> bool:
    """Whether all that is graded is what the release says, answers apart."""
    ours = graded(release(LESSON))
    return list(ours) == list(graded(book)) and all(
        cell["metadata"] == ours[name]["metadata"]
        and cell["cell_type"] == ours[name]["cell_type"]
        and (name == WRITTEN or cell["source"] == ours[name]["source"])
        for name, cell in graded(book).items()
    )


def points(book: dict[str, Any]) -> dict[str, float | None]:
    """What nbgrader itself reads from a notebook."""
    node = nbformat.from_dict(book)
    return {
        cell.metadata.nbgrader.grade_id: determine_grade(cell)[0]
        for cell in node.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }


def at(cells: Cells, name: str) -> int:
    return next(i for i, cell in enumerate(cells) if cell["id"] == name)


def test_what_was_handed_out_comes_back_as_it_was() -> None:
    book, notes = restored(LESSON, notebook())
    assert notes == []
    assert as_released(book)
    assert [cell["source"] for cell in book["cells"]] == [
        cell["source"] for cell in release(LESSON)["cells"]
    ]


def test_the_answer_is_kept_to_the_letter() -> None:
    book, notes = restored(LESSON, answered("a < b & `c`\n\n$x$ é 学".encode()))
    assert notes == []
    assert answers(LESSON, book) == {WRITTEN: "a < b & `c`\n\n$x$ é 学"}
    assert answers(LESSON, restored(LESSON, notebook())[0]) == {WRITTEN: None}
    assert has_answers(LESSON, answered())
    assert not has_answers(LESSON, notebook())


# --- what is done to graded cells ---


def delete(cells: Cells) -> None:
    for name in ("top_k-keeps_k", "top_k-hidden_ties", WRITTEN):
        del cells[at(cells, name)]


def delete_all(cells: Cells) -> None:
    cells.clear()


def duplicate(cells: Cells) -> None:
    for name in ("top_k-off", WRITTEN):
        cells.insert(0, dict(cells[at(cells, name)]))


def relabel(cells: Cells) -> None:
    cells[at(cells, "top_k-ties")]["metadata"]["nbgrader"]["grade_id"] = "top_k-keeps_k"
    cells[at(cells, "top_k-off")]["metadata"]["nbgrader"]["grade_id"] = "mine"


def raise_points(cells: Cells) -> None:
    for cell in cells:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["points"] = 1_000


def make_it_a_solution(cells: Cells) -> None:
    cell = cells[at(cells, "top_k-ties")]
    cell["metadata"]["nbgrader"] |= {"solution": True, "locked": False, "checksum": "x"}


def make_it_text(cells: Cells) -> None:
    cell = cells[at(cells, "top_k-ties")]
    cell["cell_type"] = "markdown"
    del cell["outputs"], cell["execution_count"]


def change_the_test(cells: Cells) -> None:
    cells[at(cells, "top_k-ties")]["source"] = ["pass"]


def forge_outputs(cells: Cells) -> None:
    result = {"output_type": "execute_result", "data": {"text/plain": "2"}, "metadata": {}}
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["outputs"] = [{**result, "execution_count": 1}]


def add_a_cell_of_their_own(cells: Cells) -> None:
    told = {"grade": True, "grade_id": "bonus", "points": 100, "solution": False, "locked": True}
    told |= {"schema_version": 3, "task": False}
    cells.append({"cell_type": "code", "metadata": {"nbgrader": told}, "source": ["1"], "id": "b"})


def take_all_metadata_off(cells: Cells) -> None:
    for cell in cells:
        cell["metadata"] = {}


def shuffle(cells: Cells) -> None:
    cells.reverse()


@pytest.mark.parametrize(
    "change",
    [
        delete,
        delete_all,
        duplicate,
        relabel,
        raise_points,
        make_it_a_solution,
        make_it_text,
        change_the_test,
        forge_outputs,
        add_a_cell_of_their_own,
        take_all_metadata_off,
        shuffle,
    ],
)
def test_graded_cells_are_the_released_ones_whatever_was_done_to_them(
    change: Callable[[Cells], None],
) -> None:
    book, _ = restored(LESSON, edited(change))
    ours = graded(release(LESSON))
    found = graded(book)
    assert found.keys() == ours.keys()
    for name, cell in found.items():
        assert cell["metadata"] == ours[name]["metadata"]
        # where there is no answer, that is what stands in its place
        assert cell["source"] == ours[name]["source"] or (
            name == WRITTEN and "not in the notebook" in cell["source"]
        )
    write_back(book, {})
    CheckCellMetadata().preprocess(nbformat.from_dict(book), {})
    nbformat.validate(nbformat.reads(to_bytes(book).decode(), as_version=4))
    assert not any(points(book).values())


def test_missing_cells_come_back_in_their_places() -> None:
    book, notes = restored(LESSON, edited(delete))
    assert as_released(book)
    assert len([note for note in notes if "was missing" in note]) == 3


def test_an_answer_survives_the_loss_of_its_metadata_and_a_blank_copy() -> None:
    def change(cells: Cells) -> None:
        index = at(cells, WRITTEN)
        cells[index]["metadata"] = {}
        cells.append({"cell_type": "markdown", "metadata": {}, "source": [], "id": "other"})
        cells.append(json.loads(notebook())["cells"][index])

    told = json.loads(answered())
    change(told["cells"])
    book, notes = restored(LESSON, json.dumps(told).encode())
    assert answers(LESSON, book) == {WRITTEN: ANSWER.decode()}
    assert any("was there twice" in note for note in notes)


def test_a_learners_own_cells_stay_readable_and_earn_nothing() -> None:
    def change(cells: Cells) -> None:
        cells.insert(1, {"cell_type": "code", "metadata": {}, "source": ["my_idea = 1"]})
        cells.insert(2, {"cell_type": "raw", "metadata": {}, "source": "<script>x()</script>"})

    book, _ = restored(LESSON, edited(change))
    own = [cell for cell in book["cells"] if cell["source"] == "my_idea = 1"]
    assert own[0]["outputs"] == []
    # formgrader shows raw cells as they are
    assert "raw" not in {cell["cell_type"] for cell in book["cells"]}


# --- notebooks that are none ---


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{broken",
        b"[]",
        b"null",
        b'{"cells": 3}',
        b'{"worksheets": [{"cells": []}], "nbformat": 3}',
        b"[" * 200_000,
        b'{"cells": [' + b"9" * 10_000 + b"]}",
        b"\xff\xfe",
    ],
    ids=range(9),
)
def test_a_broken_notebook_is_replaced_by_the_released_one(data: bytes) -> None:
    book, notes = restored(LESSON, data)
    assert as_released(book)
    assert len(notes) >= 1


def test_cells_of_any_shape_are_no_trouble() -> None:
    odd: list[Any] = [
        None,
        3,
        {"cell_type": "code"},
        {"cell_type": "code", "source": 7},
        {"cell_type": ["code"], "source": ""},
        {"cell_type": "code", "source": ["a", 1, "b"], "metadata": [], "id": 5},
        {"cell_type": "markdown", "source": "\ud800", "metadata": {"nbgrader": "x"}},
        {"cell_type": "code", "source": "x", "metadata": {"nbgrader": {"grade_id": {}}}},
    ]
    cells = cells_of(json.dumps({"cells": odd}).encode())
    assert [cell.source for cell in cells] == ["", "ab", "?", "x"]
    book, _ = restored(LESSON, json.dumps({"cells": odd}).encode())
    nbformat.validate(nbformat.reads(to_bytes(book).decode(), as_version=4))


def test_long_text_is_cut_and_says_so() -> None:
    book, _ = restored(LESSON, answered(b"x" * 300_000))
    text = answers(LESSON, book)[WRITTEN]
    assert text is not None
    assert len(text) < 21_000
    assert "300,000 characters were handed in" in text


def test_a_notebook_of_megabytes_of_text_is_cut_and_its_graded_cells_are_there() -> None:
    def change(cells: Cells) -> None:
        many = {"cell_type": "markdown", "metadata": {}, "source": "\\begin{a}" * 2_000}
        cells[:0] = [many] * 1_000

    book, _ = restored(LESSON, edited(change))
    assert sum(len(cell["source"]) for cell in book["cells"]) < 400_000
    assert graded(book).keys() == graded(release(LESSON)).keys()


def test_pictures_in_an_answer_are_kept_and_nothing_else_is() -> None:
    def change(cells: Cells) -> None:
        cells[at(cells, WRITTEN)]["attachments"] = {
            "a.png": {"image/png": "aGk=", "text/html": "<script>"},
            "b.svg": {"image/svg+xml": "<svg onload=x()>"},
            "c.png": {"image/png": '"><script>'},
        }

    book, _ = restored(LESSON, edited(change))
    assert graded(book)[WRITTEN]["attachments"] == {"a.png": {"image/png": "aGk="}}


# --- verdicts ---


def verdicts(text: bytes) -> dict[str, Any]:
    verdict = fake.judge({"top_k": text}, "top_k", b"", "reference", True)
    return {check.id: check for check in verdict.lessons["top_k"].checks}


def test_nbgrader_reads_from_the_outputs_what_the_judge_said() -> None:
    book, _ = restored(LESSON, answered())
    write_back(book, verdicts(b"top_k-ties top_k-hidden_ties"))
    expected: dict[str, float | None] = dict(graded_ids(LESSON))
    expected |= {"top_k-ties": 0, "top_k-hidden_ties": 0, WRITTEN: None}
    assert points(book) == expected


def test_a_part_of_the_points_is_read_too() -> None:
    book, _ = restored(LESSON, answered())
    checks = verdicts(b"")
    check = fake.check("top_k-keeps_k", 2.0, "only the examples")
    checks["top_k-keeps_k"] = type(check)(**{**vars(check), "earned": 0.5})
    write_back(book, checks)
    assert points(book)["top_k-keeps_k"] == 0.5


def test_a_cell_without_a_verdict_earns_nothing() -> None:
    book, _ = restored(LESSON, answered())
    write_back(book, {})
    assert set(points(book).values()) == {0, None}


def test_a_hidden_check_tells_its_claim_alone() -> None:
    check = fake.check("top_k-hidden_ties", 0.5, "wrong value", "called top_k_filter(SECRET)")
    check = type(check)(**{**vars(check), "hint": "SECRET too"})
    shown = json.dumps(outputs(check.id, check))
    assert "claim of top_k-hidden_ties" in shown
    assert "SECRET" not in shown
    visible = fake.check("top_k-ties", 0.5, "wrong value", "called top_k_filter(shown)")
    assert "called top_k_filter(shown)" in json.dumps(outputs(visible.id, visible))


def test_messages_cannot_write_html_nor_command_a_terminal() -> None:
    check = fake.check("top_k-ties", 0.5, "raised", "<script>x()</script>\x1b[2J\ud800\0")
    (panel, error) = outputs(check.id, check)
    assert "<script>" not in panel["data"]["text/html"]
    assert "\x1b" not in json.dumps([panel, error]).encode().decode("unicode_escape")
    json.dumps([panel, error], ensure_ascii=False).encode()


def test_a_message_of_two_gigabytes_would_be_cut() -> None:
    check = fake.check("top_k-ties", 0.5, "raised", "x" * 1_000_000)
    assert len(json.dumps(outputs(check.id, check))) < 20_000
    assert told(check)[-1] == "... (cut here)"
