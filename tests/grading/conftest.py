"""A class in a folder of its own, with a name that patterns stumble over."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import get_alembic_version
from rich.console import Console

from autograder.authoring.layout import ROOT
from autograder.class_grading import ClassGrading
from autograder.classroom import Classroom, read_classroom
from autograder.collect import Receipt, collect
from autograder.grade_commands import Wishes, run_grade
from autograder.grading import Settings
from autograder.notebook import graded_ids
from tests.grading import fake
from tests.grading.packs import LESSON, write_folder

WHEN = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)

ALEMBIC_VERSION = cache(get_alembic_version)

CONFIG = f"""
import sys
if {str(ROOT)!r} not in sys.path:
    sys.path.append({str(ROOT)!r})
from autograder.nbgrader_hooks import configure
configure(get_config(), __file__, course_id="test")
"""


@pytest.fixture(autouse=True)
def _quick_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new gradebook asks a program for its version: once is enough for all tests."""
    # nbgrader calls it by its bare name
    folder = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", folder + os.pathsep + os.environ["PATH"])
    monkeypatch.setattr("nbgrader.api.get_alembic_version", ALEMBIC_VERSION)
    monkeypatch.setenv(fake.POINTS, json.dumps(graded_ids(LESSON)))


@pytest.fixture
def classroom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Classroom:
    root = tmp_path / "[test] a+b (c)"
    root.mkdir()
    (root / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(root)
    return read_classroom(root)


@pytest.fixture
def hand_in(classroom: Classroom, tmp_path: Path) -> Callable[..., None]:
    """Collect what a student hands in."""

    def collected(student: str, files: dict[str, bytes], when: datetime = WHEN) -> None:
        folder = write_folder(tmp_path / "in" / f"{len(list(tmp_path.glob('in/*')))}", files)
        (result,) = collect(classroom, [folder], student=student, received=when)
        assert isinstance(result, Receipt), result

    return collected


@pytest.fixture
def grading(classroom: Classroom) -> ClassGrading:
    return ClassGrading(classroom, Settings(classroom.secret()))


@pytest.fixture
def run(classroom: Classroom) -> Callable[..., str]:
    """`autograder grade` with the fake judge; gives what it says."""

    def graded(**wishes: Any) -> str:
        out = StringIO()
        wishes.setdefault("judging", fake.inline())
        try:
            run_grade(Console(file=out, width=200), Wishes(**wishes))
        finally:
            graded.said = out.getvalue()  # type: ignore[attr-defined]
        return out.getvalue()

    return graded
