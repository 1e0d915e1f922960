"""The real judge, end to end: `autograder judge`, and a whole lesson through `autograder grade`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder import cli
from autograder.authoring.layout import ROOT, solution_path
from autograder.classroom import Classroom, graded_lessons
from autograder.grading import judge_in_worker
from autograder.notebook import graded_ids
from tests.grading.dump import scores
from tests.grading.packs import REFERENCE, STUB, notebook, work, write_folder, write_zip


def autograder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[object, str, str]:
    """Exit code and both outputs of the command."""
    monkeypatch.setattr(sys, "argv", ["autograder", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    return ended.value.code, told.out, told.err


@pytest.mark.slow
@pytest.mark.parametrize("lesson", graded_lessons())
def test_a_blank_submission_earns_nothing_and_the_reference_everything(lesson: str) -> None:
    """What nbgrader holds as the cells of the lesson is what the judge gives points for."""
    stubs = {name: (ROOT / f"course_lib/{name}.py").read_bytes() for name in graded_lessons()}
    right = {**stubs, lesson: solution_path(ROOT, lesson).read_bytes()}
    blank = judge_in_worker(stubs, lesson, b"s" * 32, "reference", True).lessons[lesson]
    assert (blank.score, {check.cause for check in blank.checks}) == (0.0, {"not attempted"})
    whole = judge_in_worker(right, lesson, b"s" * 32, "reference", True).lessons[lesson]
    assert [check.id for check in whole.checks if not check.passed] == []
    cells = graded_ids(graded_lessons()[lesson])
    assert {check.id: check.earned for check in whole.checks} == {
        name: points for name, points in cells.items() if not name.endswith("-written")
    }


def test_judge_tells_one_package_as_json(
    classroom: Classroom,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    package = write_folder(tmp_path / "work", work(REFERENCE.replace(b"clamp", b"clamp")))
    junit = tmp_path / "junit.xml"
    line = ["judge", str(package), "--json", "--junit", str(junit)]
    code, out, _ = autograder(monkeypatch, capsys, *line)
    told = json.loads(out)
    assert code == 0
    assert '<testsuite name="top_k"' in junit.read_text("utf-8")
    assert told["sandbox"]
    assert told["lessons"]["top_k"]["score"] == told["lessons"]["top_k"]["max"] == 15.0
    check = told["lessons"]["top_k"]["checks"][0]
    assert check.keys() >= {"id", "hidden", "points", "earned", "cause", "message"}
    assert not (classroom.root / "gradebook.db").exists()


def test_judge_succeeds_whatever_the_score(
    classroom: Classroom,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    package = write_zip(tmp_path / "work.zip", work(STUB))
    code, out, _ = autograder(monkeypatch, capsys, "judge", str(package))
    assert code == 0
    assert "top_k: 0 of 15 points; visible 0/12 passed, hidden 0/7 passed" in out
    assert "cause: not attempted" in out


def test_judge_fails_where_there_is_nothing_to_judge(
    classroom: Classroom,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    package = write_folder(tmp_path / "work", {"03_top_k.ipynb": notebook()})
    code, _, told = autograder(monkeypatch, capsys, "judge", str(package))
    assert code == 1
    assert "holds no lesson's module" in told


@pytest.mark.slow
def test_a_class_is_graded_by_the_command(
    classroom: Classroom,
    hand_in: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hand_in("right", work())
    hand_in("blank", work(STUB, notebook()))
    hand_in("broken", work(b"def top_k_filter(logits, k):\n    retrun logits\n"))
    code, out, told = autograder(monkeypatch, capsys, "grade", "top_k", "--workers", "1")
    assert code == 0, told
    assert scores(classroom.root) == {"right": 15.0, "blank": 0.0, "broken": 0.0}
    assert "right, top_k: 15 of 15 points; visible 12/12 passed, hidden 7/7 passed" in out
    assert "import failed 1, not attempted 1" in out
