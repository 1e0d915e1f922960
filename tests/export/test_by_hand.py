"""Grades that a person gave in formgrader, and nbgrader's own export of the same gradebook."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin

from autograder.errors import CourseError
from autograder.export.by_hand import read_by_hand
from autograder.export.rows import ByHand

LESSONS = {"03_top_k": "top_k"}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A gradebook with two judged cells and a written answer, as autograde leaves them."""
    path = tmp_path_factory.mktemp("graded") / "gradebook.db"
    with pytest.MonkeyPatch.context() as patch:
        # nbgrader calls alembic by its bare name
        beside = str(Path(sys.executable).parent)
        patch.setenv("PATH", f"{beside}{os.pathsep}{os.environ['PATH']}")
        book = Gradebook(f"sqlite:///{path}")
    with book:
        book.add_assignment("03_top_k")
        book.add_notebook("03_top_k", "03_top_k")
        for name, points, kind in [("a", 8, "code"), ("b", 2, "code"), ("written", 2, "markdown")]:
            book.add_grade_cell(name, "03_top_k", "03_top_k", max_score=points, cell_type=kind)
        for student in ("007", "ada"):
            book.add_student(student)
            book.add_submission("03_top_k", student)
            for name, earned in [("a", 5.0), ("b", 2.0), ("written", None)]:
                grade = book.find_grade(name, "03_top_k", "03_top_k", student)
                grade.auto_score, grade.needs_manual_grade = earned, earned is None
        book.db.commit()
    return path.read_bytes()


@pytest.fixture
def gradebook(graded: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "a course #1" / "gradebook.db"
    path.parent.mkdir()
    path.write_bytes(graded)
    return path


def test_an_answer_that_waits_is_counted_and_gives_nothing(gradebook: Path) -> None:
    assert read_by_hand(gradebook, LESSONS) == {
        ("007", "top_k"): ByHand(0, 2, 1),
        ("ada", "top_k"): ByHand(0, 2, 1),
    }


def test_grades_by_hand_count_beside_the_judge_s(gradebook: Path) -> None:
    with Gradebook(f"sqlite:///{gradebook}") as book:
        written = book.find_grade("written", "03_top_k", "03_top_k", "ada")
        written.manual_score, written.extra_credit, written.needs_manual_grade = 1.5, 0.25, False
        # a correction: 6 in place of the judge's 5
        book.find_grade("a", "03_top_k", "03_top_k", "ada").manual_score = 6
        book.db.commit()
    assert read_by_hand(gradebook, LESSONS)["ada", "top_k"] == ByHand(2.75, 2, 0)


def test_an_assignment_of_another_course_is_left_out(gradebook: Path) -> None:
    assert read_by_hand(gradebook, {}) == {}


def test_reading_changes_no_byte(gradebook: Path) -> None:
    before = gradebook.read_bytes()
    read_by_hand(gradebook, LESSONS)
    assert gradebook.read_bytes() == before
    assert [path.name for path in gradebook.parent.iterdir()] == ["gradebook.db"]


def test_without_a_gradebook_nothing_was_graded_by_hand(tmp_path: Path) -> None:
    assert read_by_hand(tmp_path / "gradebook.db", LESSONS) == {}
    (tmp_path / "gradebook.db").write_text("no database at all, but long enough to be read as one")
    with pytest.raises(CourseError, match="no gradebook of nbgrader"):
        read_by_hand(tmp_path / "gradebook.db", LESSONS)


def test_nbgrader_s_own_export_tells_the_same_points(gradebook: Path, tmp_path: Path) -> None:
    out = tmp_path / "grades.csv"
    with Gradebook(f"sqlite:///{gradebook}") as book:
        CsvExportPlugin(to=str(out)).export(book)
    lines = {line["student_id"]: line for line in csv.DictReader(out.open())}
    assert [(line["raw_score"], line["max_score"]) for line in lines.values()] == [
        ("7.0", "12.0")
    ] * 2
