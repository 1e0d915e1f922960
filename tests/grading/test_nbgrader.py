"""nbgrader's own commands and its API, with the judge in the place of a kernel."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.apps import NbGraderAPI
from traitlets.config import PyFileConfigLoader

from autograder import nbgrader_hooks
from autograder.authoring.layout import ROOT
from autograder.authoring.strip import strip
from autograder.classroom import Classroom, read_classroom
from autograder.gradebook import Gradebook
from autograder.submission import EXCHANGE_SECRET
from tests.authoring.test_leaks import (
    canaries,
    claims_of_hidden_checks,
    code_of_hidden_checks,
    found_in,
)
from tests.grading import fake
from tests.grading.conftest import WHEN
from tests.grading.dump import dump, scores
from tests.grading.packs import LESSON, REFERENCE, STUB, answered, notebook, work
from tests.grading.test_grading import by_hand, grade_by_hand

# nbgrader's own way to make a submission, about which SQLAlchemy has its opinion
pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")

HandIn = Callable[..., None]
Run = Callable[..., str]


@pytest.fixture
def api(classroom: Classroom, monkeypatch: pytest.MonkeyPatch) -> NbGraderAPI:
    """nbgrader's API, as formgrader has it; the judge is the fake one, in this process."""
    monkeypatch.setattr(nbgrader_hooks, "_pool", pool)
    monkeypatch.setattr(
        nbgrader_hooks, "grade", lambda *job, **kw: fake.grade(*job, **kw, judge=fake.judge)
    )
    loader = PyFileConfigLoader("nbgrader_config.py", path=str(classroom.root))
    return NbGraderAPI(config=loader.load_config())


def pool() -> fake.Inline:
    return fake.Inline()


pool.cache_clear = lambda: None  # type: ignore[attr-defined]


def autograde(api: NbGraderAPI, student: str, slug: str = LESSON.slug) -> str:
    done = api.autograde(slug, student)
    assert done["success"], done.get("error", "") + done.get("log", "")
    log: str = done["log"]
    return log


def fill(hand_in: HandIn) -> None:
    hand_in("right", work())
    hand_in("blank", work(STUB, notebook()))
    hand_in("ties ö+\\", work(REFERENCE + b"# top_k-ties\n"))
    hand_in("none", {"course_lib/top_k.py": REFERENCE})
    hand_in("broken", work(book=b"{broken"))


def nbgrader(classroom: Classroom, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=classroom.root,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


# --- the same as autograder grade ---


def test_formgraders_button_gives_what_autograder_grade_gives(
    classroom: Classroom, hand_in: HandIn, run: Run, api: NbGraderAPI
) -> None:
    fill(hand_in)
    run()
    before = dump(classroom.root)
    notebooks = {path: path.read_bytes() for path in classroom.autograded.rglob("*.ipynb")}
    assert len(notebooks) == 5
    (classroom.root / "gradebook.db").unlink()
    for student in classroom.students(LESSON):
        autograde(api, student)
    assert dump(classroom.root) == before
    assert {path: path.read_bytes() for path in classroom.autograded.rglob("*.ipynb")} == notebooks
    assert "0 graded, 5 unchanged" in run()


def test_the_button_judges_what_nobody_has_judged(
    classroom: Classroom, hand_in: HandIn, api: NbGraderAPI, run: Run
) -> None:
    hand_in("right", work())
    autograde(api, "right")
    assert scores(classroom.root) == {"right": 15.0}
    assert "0 graded, 1 unchanged" in run()


def test_the_button_moves_no_grade_that_stands(
    classroom: Classroom,
    hand_in: HandIn,
    api: NbGraderAPI,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hand_in("right", work())
    autograde(api, "right")
    monkeypatch.setattr("autograder.class_grading.checks_digest", lambda: "c" * 64)
    monkeypatch.setattr(fake, "cause_of", lambda name, text: "wrong value")
    autograde(api, "right")
    assert scores(classroom.root) == {"right": 15.0}


def test_a_manual_grade_survives_the_button(
    classroom: Classroom, hand_in: HandIn, api: NbGraderAPI
) -> None:
    hand_in("right", work())
    autograde(api, "right")
    grade_by_hand(classroom, "right", 1.5, "good")
    autograde(api, "right")
    assert by_hand(classroom, "right")[::2] == (1.5, "good")


def test_late_ones_lose_by_nbgraders_plugin_what_they_lose_by_its_button(
    classroom: Classroom, hand_in: HandIn, run: Run, api: NbGraderAPI
) -> None:
    config = classroom.root / "nbgrader_config.py"
    zero = 'get_config().LateSubmissionPlugin.penalty_method = "zero"\n'
    config.write_text(config.read_text("utf-8") + zero, "utf-8")
    api.update_config(PyFileConfigLoader(config.name, path=str(classroom.root)).load_config())
    hand_in("early", work(), WHEN - timedelta(hours=2))
    hand_in("late", work())
    with Gradebook(read_classroom(classroom.root)) as book:
        book.register(LESSON)
    with api.gradebook as book:
        due = (WHEN - timedelta(hours=1)).replace(tzinfo=None)
        book.update_or_create_assignment(LESSON.slug, duedate=due)
    run()
    before = dump(classroom.root)
    assert sum("'late'" in row and row.endswith(" 15.0)") for row in before) == 20
    assert not any("'early'" in row and row.endswith(" 15.0)") for row in before)
    for student in ("early", "late"):
        autograde(api, student)
    assert dump(classroom.root) == before


def test_one_that_cannot_be_judged_is_told_and_leaves_nothing_half_done(
    classroom: Classroom, hand_in: HandIn, api: NbGraderAPI
) -> None:
    hand_in("bad", work(b"break the judge"))
    done = api.autograde(LESSON.slug, "bad")
    assert not done["success"]
    assert "the judge failed: ArithmeticError" in done["log"]
    assert not (classroom.autograded / "bad/03_top_k").exists()


def test_formgrader_sees_who_handed_in_and_who_is_graded(
    classroom: Classroom, hand_in: HandIn, run: Run, api: NbGraderAPI
) -> None:
    fill(hand_in)
    students = set(classroom.students(LESSON))
    assert api.get_submitted_students(LESSON.slug) == students
    run()
    assert api.get_autograded_students(LESSON.slug) == students
    told = {entry["student"]: entry["code_score"] for entry in api.get_submissions(LESSON.slug)}
    assert told["right"] == 15.0
    assert LESSON.slug in api.get_source_assignments()


def test_the_learners_files_are_neither_overwritten_nor_followed_by_others(
    classroom: Classroom, hand_in: HandIn, api: NbGraderAPI
) -> None:
    """nbgrader lays the source's files over a student's; weights would be copied for each."""
    hand_in("right", work())
    place = classroom.submission("right", LESSON)
    (place / "models").mkdir()
    (place / "models/minigpt.safetensors").write_bytes(b"weights")
    (place / "link").symlink_to("/etc/passwd")
    autograde(api, "right")
    laid = classroom.autograded / "right/03_top_k"
    names = {path.relative_to(laid).as_posix() for path in laid.rglob("*") if path.is_file()}
    ours = {"timestamp.txt", EXCHANGE_SECRET}
    assert names == {"03_top_k.ipynb", "course_lib/top_k.py"} | ours
    assert (laid / "course_lib/top_k.py").read_bytes() == REFERENCE


def test_a_notebook_of_another_name_is_found_by_the_button(
    classroom: Classroom, hand_in: HandIn, api: NbGraderAPI
) -> None:
    hand_in("right", work())
    place = classroom.submission("right", LESSON)
    (place / "03_top_k.ipynb").rename(place / "03_top_k (1).ipynb")
    autograde(api, "right")
    book = json.loads((classroom.autograded / "right/03_top_k/03_top_k.ipynb").read_bytes())
    assert any("Because the width" in "".join(cell["source"]) for cell in book["cells"])


@pytest.mark.slow
def test_nbgrader_autograde_grades_with_the_real_judge(
    classroom: Classroom, hand_in: HandIn
) -> None:
    hand_in("right", work())
    hand_in("none", {"course_lib/top_k.py": REFERENCE})
    hand_in("blank", work(STUB, notebook()))
    done = nbgrader(classroom, "autograde", LESSON.slug)
    assert done.returncode == 0, done.stderr
    assert scores(classroom.root) == {"right": 15.0, "none": 15.0, "blank": 0.0}


def test_another_assignment_is_not_graded_unjudged(classroom: Classroom, api: NbGraderAPI) -> None:
    """The settings take nbgrader's Execute away: what is no lesson must not pass unrun."""
    with api.gradebook as book:
        book.add_assignment("homework")
        book.add_notebook("homework", "homework")
    place = classroom.submitted / "right/homework"
    place.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(), place / "homework.ipynb")
    done = api.autograde("homework", "right")
    assert not done["success"]
    assert "homework is no lesson of this course" in done["log"]


@pytest.mark.parametrize("told", [b"tomorrow", b"\xff", b"24h" + b"1" * 30 + b"ESTe", b"1" * 10**6])
def test_a_time_that_is_none_hides_nobody_from_formgrader(
    classroom: Classroom, hand_in: HandIn, api: NbGraderAPI, told: bytes
) -> None:
    """Through nbgrader's exchange comes whatever a student's account wrote."""
    hand_in("right", work())
    hand_in("mallory", work())
    (classroom.submission("mallory", LESSON) / "timestamp.txt").write_bytes(told)
    times = {found["student"]: found["timestamp"] for found in api.get_submissions(LESSON.slug)}
    assert times == {"right": WHEN.replace(tzinfo=None).isoformat(), "mallory": None}
    autograde(api, "mallory")
    assert scores(classroom.root) == {"mallory": 15.0}


def test_a_folder_whose_name_is_markup_gets_into_no_page(
    classroom: Classroom, hand_in: HandIn, api: NbGraderAPI
) -> None:
    hand_in("right", work())
    name = "<img src=x onerror=alert(1)>"
    shutil.copytree(classroom.submission("right", LESSON), classroom.submitted / name / LESSON.slug)
    done = api.autograde(LESSON.slug, "*")
    assert "is not graded: student id" in done["log"]
    assert scores(classroom.root) == {"right": 15.0}


# --- what students get to see ---

HOSTILE = rb"""Words <script>alert(1)</script> <img src=x onerror="alert(2)"> and
<a href="javascript:alert(3)">here</a>, [there](javascript:alert(4)),
$x \href{javascript:alert(5)}{y}$,
<div id="top_k-ties" class="score" onclick="alert(6)">div</div> <b>bold</b>
<iframe src="//evil"></iframe><style>body{display:none}</style><form action="//evil"><input></form>
"""


def test_scripts_in_an_answer_reach_no_page(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    """A script there would run as the teacher in formgrader, and could give points."""
    hand_in("mallory", work(book=answered(HOSTILE)))
    run()
    done = nbgrader(classroom, "generate_feedback", LESSON.slug)
    assert done.returncode == 0, done.stderr
    page = (classroom.root / "feedback/mallory/03_top_k/03_top_k.html").read_text("utf-8")
    start = page.index("Words ")
    answer = page[start : page.index("</form>", start) if "</form>" in page else start + 2_000]
    for pattern in (
        "<script",
        r"<img[^>]*\ssrc=",
        "<iframe",
        "<style",
        "<form",
        r"<[^>]*\bon\w+\s*=",
        r"<[^>]*javascript:",
        r"<[^>]*\b(?:id|class)=\"(?:top_k-ties|score)\"",
        r"\\href",
    ):
        assert not re.search(pattern, answer, re.IGNORECASE), pattern
    assert "bold" in answer


def test_feedback_shows_no_hidden_check_in_any_byte(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    fill(hand_in)
    run()
    done = nbgrader(classroom, "generate_feedback", LESSON.slug)
    assert done.returncode == 0, done.stderr
    files = {
        str(path): path.read_bytes()
        for path in (classroom.root / "feedback").rglob("*")
        if path.is_file()
    }
    pages = {name: data for name, data in files.items() if name.endswith(".html")}
    assert len(pages) == 5
    assert found_in(files, code_of_hidden_checks() | canaries()) == []
    # the fake judge's claims are its own: the real ones come with the verdict, for each student
    assert found_in(files, claims_of_hidden_checks()) == []
    assert all(len(data) < 300_000 for data in pages.values())


# --- the course's own configuration ---


def test_the_repository_is_an_nbgrader_course_that_releases_what_we_release(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "nbgrader",
            "generate_assignment",
            LESSON.slug,
            f"--CourseDirectory.release_directory={tmp_path / 'release'}",
            f"--db=sqlite:///{tmp_path / 'gradebook.db'}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    released = tmp_path / "release" / LESSON.slug / f"{LESSON.slug}.ipynb"
    assert released.read_bytes() == strip(LESSON.notebook, ROOT)


def test_settings_can_be_shown_by_formgrader_as_json(classroom: Classroom) -> None:
    loader = PyFileConfigLoader("nbgrader_config.py", path=str(classroom.root))
    settings: Any = loader.load_config()
    assert json.loads(json.dumps(settings))["CourseDirectory"]["course_id"] == "test"
