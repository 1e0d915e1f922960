"""The notebook that goes into the gradebook: the learner's own words, and the judge's verdict.

A notebook that was handed in is data, never run and never believed. Of its cells the kind and the
text are taken over, and pictures pasted into answers; whatever says what is graded, and for how
many points, comes from the released notebook.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import nbformat

from .authoring.layout import ROOT, Lesson
from .authoring.strip import strip
from .verdict_cells import outputs

# what is shown of a cell, and of all together: markdown can be written to take minutes to draw
LONGEST_SOURCE = 20_000
MOST_TEXT = 300_000
MOST_CELLS = 2_000
MOST_READ = 50_000  # cells that are looked at
MOST_PARTS = 500_000  # lists and tables of a notebook: 3 bytes of it may take 100 in memory
LONGEST_PICTURE = 2 * 2**20
PICTURES = ("image/png", "image/jpeg", "image/gif")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_KINDS = {"code": "code", "markdown": "markdown", "raw": "markdown"}

Notebook = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """What is believed of a cell that was handed in."""

    kind: str
    source: str
    grade_id: str = ""  # as the cell claims
    attachments: dict[str, dict[str, str]] = field(default_factory=dict)


def cells_of(data: bytes) -> list[Cell]:
    """The cells of a notebook. Raises ValueError that says in few words what is wrong with it."""
    if _parts(data) > MOST_PARTS:
        # those in a text, such as a printed tensor, are none
        texts = sum(_parts(data, *text.span()) for text in _TEXT.finditer(data))
        if _parts(data) - texts > MOST_PARTS:
            raise ValueError("it has too many parts")
    try:
        told = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except ValueError as error:
        raise ValueError("no JSON") from error
    cells = told.get("cells") if isinstance(told, dict) else None
    if not isinstance(cells, list):
        raise ValueError("no notebook of format 4")
    return [cell for cell in map(_cell, cells[:MOST_READ]) if cell is not None]


def _parts(data: bytes, begin: int = 0, end: int | None = None) -> int:
    return data.count(b"[", begin, end) + data.count(b"{", begin, end)


def has_answers(lesson: Lesson, data: bytes) -> bool:
    """Whether a notebook that was handed in has a written answer that is not as released."""
    blank = {cell["id"]: _words(cell["source"]) for cell in filter(_is_answer, _cells(lesson))}
    try:
        handed = cells_of(data)
    except ValueError:
        return False
    claimed = [cell for cell in handed if cell.grade_id in blank]
    return any(_words(cell.source) != blank[cell.grade_id] for cell in claimed)


def same_words(one: bytes | None, other: bytes | None) -> bool:
    """Whether two notebooks say the same: running one again changes its outputs alone."""
    if one is None or other is None or one == other:
        return one == other
    try:
        return cells_of(one) == cells_of(other)
    except ValueError:
        return False


@cache
def release(lesson: Lesson) -> Notebook:
    """The notebook that learners got; not to be changed."""
    notebook: Notebook = json.loads(strip(lesson.notebook, ROOT))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def restored(lesson: Lesson, data: bytes | None) -> tuple[Notebook, list[str]]:
    """A notebook for the gradebook from what was handed in, and what had to be mended.

    It holds each graded cell of the release once, in the release's order where it was missing. A
    notebook that is missing or broken is the release's own.
    """
    original = release(lesson)
    if data is None:
        return deepcopy(original), ["no notebook was handed in: the released one stands for it"]
    try:
        handed = cells_of(data)
    except ValueError as error:
        note = f"the notebook is broken ({error}): the released one stands for it"
        why = f"the notebook that was handed in cannot be read: {error}"
        cells = [_missing(cell, why) for cell in original["cells"]]
        return {**deepcopy({**original, "cells": []}), "cells": cells}, [note]
    graded = {cell["id"]: cell for cell in original["cells"] if _grading(cell)}
    chosen = _chosen(handed, graded)
    cells, notes = _in_their_order(handed, chosen, graded)
    _insert_missing(cells, original["cells"], notes)
    return {**deepcopy({**original, "cells": []}), "cells": cells}, notes


def write_back(notebook: Notebook, checks: Mapping[str, Any]) -> None:
    """Give each graded code cell the outputs of its check: what nbgrader reads the points from.

    `checks` are CheckVerdict by id. A cell without one fails: nothing is earned unjudged.
    """
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        cell["outputs"], cell["execution_count"] = [], None
        if _grading(cell):
            count += 1
            cell["outputs"] = outputs(cell["id"], checks.get(cell["id"]))
            cell["execution_count"] = count


def to_bytes(notebook: Notebook) -> bytes:
    """A notebook as nbformat writes it, without the time that its validation takes."""
    text: str = nbformat.v4.writes_json(nbformat.from_dict(notebook))
    return f"{text}\n".encode()


def graded_ids(lesson: Lesson) -> dict[str, float]:
    """The points of each graded cell of a lesson, by id."""
    cells = filter(_grading, _cells(lesson))
    return {cell["id"]: float(cell["metadata"]["nbgrader"]["points"]) for cell in cells}


def answers(lesson: Lesson, notebook: Notebook) -> dict[str, str | None]:
    """The written answers of a restored notebook by id; None where one is as released."""
    blank = {cell["id"]: cell["source"] for cell in filter(_is_answer, _cells(lesson))}
    return {
        cell["id"]: None if cell["source"] == blank[cell["id"]] else cell["source"]
        for cell in notebook["cells"]
        if cell["id"] in blank
    }


def _cells(lesson: Lesson) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = release(lesson)["cells"]
    return cells


# --- one cell ---


def _cell(told: Any) -> Cell | None:
    kind = told.get("cell_type") if isinstance(told, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        return None
    source = told.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    metadata = told.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    claimed = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    # who took the metadata off has the id of the cell itself still
    identifier = claimed if isinstance(claimed, str) else told.get("id")
    return Cell(
        _KINDS[kind],
        _clean(source),
        identifier if isinstance(identifier, str) else "",
        _pictures(told.get("attachments")),
    )


def _clean(source: str) -> str:
    """Text that can be written as UTF-8, of a length that can be read."""
    source = source.encode("utf-8", "replace").decode("utf-8")
    if len(source) <= LONGEST_SOURCE:
        return source
    return f"{source[:LONGEST_SOURCE]}\n\n[cut here: {len(source):,} characters were handed in]"


def _pictures(told: Any) -> dict[str, dict[str, str]]:
    if not isinstance(told, dict):
        return {}
    kept: dict[str, dict[str, str]] = {}
    for name, by_type in told.items():
        for kind, data in by_type.items() if isinstance(by_type, dict) else ():
            fits = isinstance(data, str) and len(data) <= LONGEST_PICTURE
            if kind in PICTURES and fits and _BASE64.fullmatch(data):
                kept.setdefault(_clean(name), {})[kind] = data
    return kept


def _grading(cell: Mapping[str, Any]) -> bool:
    return bool(cell["metadata"].get("nbgrader", {}).get("grade"))


def _is_answer(cell: Mapping[str, Any]) -> bool:
    return _grading(cell) and bool(cell["metadata"]["nbgrader"].get("solution"))


def _words(source: str) -> list[str]:
    return source.split()


# --- putting them together ---


def _chosen(handed: list[Cell], graded: Mapping[str, Any]) -> dict[str, int]:
    """Which of the cells that claim an id has it: of answers the last that is not as released."""
    chosen: dict[str, int] = {}
    for index, cell in enumerate(handed):
        own = graded.get(cell.grade_id)
        if own is None:
            continue
        written = _words(cell.source) != _words(own["source"])
        if cell.grade_id not in chosen or (_is_answer(own) and written):
            chosen[cell.grade_id] = index
    return chosen


def _in_their_order(
    handed: list[Cell], chosen: Mapping[str, int], graded: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Every graded cell that is there, and of the others as many as a page has room for."""
    cells: list[dict[str, Any]] = []
    notes: list[str] = []
    room, left_out = MOST_TEXT, 0
    for index, cell in enumerate(handed):
        own = graded.get(cell.grade_id)
        if own is not None and chosen[cell.grade_id] == index:
            cells.append(_graded(own, cell))
            if not _is_answer(own) and (cell.kind, cell.source) != (
                own["cell_type"],
                own["source"],
            ):
                notes.append(f"{own['id']} was changed, and is as released again")
            continue
        if own is not None:
            notes.append(f"{own['id']} was there twice: one of them counts")
        room -= len(cell.source)
        if room < 0 or len(cells) >= MOST_CELLS:
            left_out += 1
        else:
            cells.append(_plain(cell, index))
    if left_out:
        notes.append(f"{left_out} cells are not shown: there are too many, or they are too long")
    return cells, list(dict.fromkeys(notes))


def _graded(own: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    """A graded cell as released; of an answer the text is the learner's."""
    restored: dict[str, Any] = deepcopy(dict(own))
    if _is_answer(own):
        restored["source"] = cell.source
        if cell.attachments:
            restored["attachments"] = cell.attachments
    return restored


def _plain(cell: Cell, index: int) -> dict[str, Any]:
    """A cell that earns nothing."""
    plain: dict[str, Any] = {
        "cell_type": cell.kind,
        "id": f"handed-in-{index:04}",
        "metadata": {},
        "source": cell.source,
    }
    if cell.kind == "code":
        plain |= {"outputs": [], "execution_count": None}
    elif cell.attachments:
        plain["attachments"] = cell.attachments
    return plain


def _missing(own: Mapping[str, Any], why: str) -> dict[str, Any]:
    """A released cell. In the place of an answer stands why there is none: a person has to look,
    as what was written may be in another cell, or in a file that can be mended.
    """
    cell: dict[str, Any] = deepcopy(dict(own))
    if _is_answer(own):
        cell["source"] = f"*({why})*"
    return cell


def _insert_missing(
    cells: list[dict[str, Any]], original: list[dict[str, Any]], notes: list[str]
) -> None:
    """Put each graded cell that is missing behind the one before it in the release."""
    place = 0
    for own in filter(_grading, original):
        there = [index for index, cell in enumerate(cells) if cell["id"] == own["id"]]
        if there:
            place = there[0] + 1
            continue
        cells.insert(place, _missing(own, "this cell is not in the notebook that was handed in"))
        notes.append(f"{own['id']} was missing, and is as released again")
        place += 1
