"""Makes what students hand in: the class edition of a lesson, with changes, as folder or zip."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from autograder.authoring.edition import edition_files
from autograder.authoring.layout import ROOT, solution_path
from autograder.authoring.strip import strip
from autograder.classroom import graded_lessons

LESSON = graded_lessons()["top_k"]
STUB = (ROOT / "course_lib/top_k.py").read_bytes()
REFERENCE = solution_path(ROOT, "top_k").read_bytes()
ANSWER = b"Because the width of a distribution differs from step to step."


@cache
def edition() -> dict[str, bytes]:
    """All files that a student of lesson 3 got."""
    return edition_files(kind="class", only=LESSON)


@cache
def notebook() -> bytes:
    """The notebook as it was handed out."""
    return strip(LESSON.notebook, ROOT)


def answered(answer: bytes = ANSWER) -> bytes:
    """The notebook with a written answer."""
    assert b"YOUR ANSWER HERE" in notebook()
    return notebook().replace(b"YOUR ANSWER HERE", json.dumps(answer.decode())[1:-1].encode())


def edited(change: Any) -> bytes:
    """The notebook after `change(cells)`, a function on its cells as JSON data."""
    told = json.loads(notebook())
    change(told["cells"])
    return json.dumps(told).encode()


def work(module: bytes = REFERENCE, book: bytes | None = None) -> dict[str, bytes]:
    """The two files that count; without `book` the notebook has an answer."""
    return {
        "course_lib/top_k.py": module,
        "03_top_k.ipynb": answered() if book is None else book,
    }


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def write_zip(path: Path, files: Mapping[str, bytes], below: str = "03_top_k/") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"{below}{name}", data)
    return path
