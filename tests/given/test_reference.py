"""A learner who is stuck sees the solution or takes it over, and never loses a file by that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib.given.reference import (
    NoReference,
    Reference,
    adopt,
    as_handout,
    find_reference,
    read_handout,
    solutions_folder,
)

from .conftest import ROOT, Workspace

MINE = '"""Lesson 3: mine."""\n\n\ndef top_k_filter(logits, k):\n    return logits  # mine\n'
SOLUTION = (ROOT / "solutions" / "top_k.py").read_text(encoding="utf-8")


@pytest.fixture
def self_study(workspace: Workspace) -> Workspace:
    """A workspace that has the solutions."""
    folder = workspace.folder / "solutions"
    folder.mkdir()
    for path in (ROOT / "solutions").glob("*.py"):
        (folder / path.name).write_bytes(path.read_bytes())
    return workspace


def module(workspace: Workspace, name: str) -> str:
    return (workspace.folder / "course_lib" / name).read_text(encoding="utf-8")


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a command said instead of doing anything."""
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.startswith("course: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


# --- adopt ---


def test_adopting_keeps_what_the_learner_wrote(self_study: Workspace) -> None:
    self_study.write("top_k", MINE)
    done = self_study.course("adopt", "3")
    assert done.returncode == 0, done.stderr
    assert module(self_study, "top_k.py") == SOLUTION
    assert module(self_study, "top_k.mine.py") == MINE
    assert "top_k.mine.py" in done.stdout
    assert self_study.course("check", "top_k").returncode == 0


def test_what_was_kept_earlier_is_never_overwritten(self_study: Workspace) -> None:
    for turn in range(3):
        self_study.write("top_k", f"{MINE}# {turn}\n")
        assert self_study.course("adopt", "top_k").returncode == 0
    kept = ["top_k.mine.py", "top_k.mine2.py", "top_k.mine3.py"]
    assert [module(self_study, name) for name in kept] == [f"{MINE}# {i}\n" for i in range(3)]


def test_the_same_file_is_kept_once(self_study: Workspace) -> None:
    course_lib = self_study.folder / "course_lib"
    for _ in range(2):
        self_study.write("top_k", MINE)
        adopt(Reference("top_k", SOLUTION), course_lib)
    assert [path.name for path in course_lib.glob("*.mine*.py")] == ["top_k.mine.py"]


def test_adopting_twice_changes_nothing(self_study: Workspace) -> None:
    self_study.course("adopt", "top_k")
    before = sorted(path.name for path in (self_study.folder / "course_lib").iterdir())
    done = self_study.course("adopt", "top_k")
    assert done.returncode == 0
    assert "is the course's already" in done.stdout
    assert sorted(path.name for path in (self_study.folder / "course_lib").iterdir()) == before


@pytest.mark.parametrize("lost", ["deleted", "garbled"])
def test_a_file_that_is_lost_can_be_adopted_too(self_study: Workspace, lost: str) -> None:
    path = self_study.folder / "course_lib" / "top_k.py"
    path.unlink() if lost == "deleted" else path.write_bytes(b"\xff\xfe\x00")
    assert self_study.course("adopt", "top_k").returncode == 0
    assert module(self_study, "top_k.py") == SOLUTION


def test_a_kept_file_is_no_lesson(self_study: Workspace) -> None:
    self_study.course("adopt", "top_k")
    checks = json.loads(self_study.course("check", "--json").stdout)["checks"]
    assert "top_k.mine" not in {check["lesson"] for check in checks}


# --- the file that unlocks a lesson ---


def test_a_class_takes_the_file_that_unlocks_a_lesson(workspace: Workspace) -> None:
    handout = workspace.folder / "unlock_top_k.json"
    handout.write_text(as_handout(Reference("top_k", SOLUTION)), encoding="utf-8")
    done = workspace.course("adopt", "unlock_top_k.json")
    assert done.returncode == 0, done.stderr
    assert module(workspace, "top_k.py") == SOLUTION
    assert "yours to write" in module(workspace, "top_k.mine.py")


def test_a_class_has_no_solutions_and_says_whom_to_ask(workspace: Workspace) -> None:
    before = module(workspace, "top_k.py")
    for command in ("adopt", "solution"):
        assert "ask your instructor to unlock" in refused(workspace.course(command, "top_k"))
    assert module(workspace, "top_k.py") == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "no file that unlocks a lesson"),
        ("[]", "no file that unlocks a lesson"),
        ('{"lesson": "top_k"}', "no file that unlocks a lesson"),
        (as_handout(Reference("top_k", "x = 1\n")).replace("x = 1", "x = 2"), "was damaged"),
    ],
)
def test_a_file_that_unlocks_nothing_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "unlock.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NoReference, match=told):
        read_handout(path)


def test_a_file_that_is_not_there_is_named(workspace: Workspace) -> None:
    assert "unlock_top_k.json: No such file" in refused(
        workspace.course("adopt", "unlock_top_k.json")
    )


@pytest.mark.parametrize("name", ["nucleus", "../top_k", "given/cli", "checks", ""])
def test_a_handout_can_write_a_lesson_only(workspace: Workspace, name: str) -> None:
    course_lib = workspace.folder / "course_lib"
    before = sorted(course_lib.rglob("*"))
    with pytest.raises(NoReference, match="there is no lesson"):
        adopt(Reference(name, "x = 1\n"), course_lib)
    assert sorted(course_lib.rglob("*")) == before


def test_a_handout_holds_the_module_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "unlock.json"
    reference = Reference("top_k", 'é = "\\n"\r\n')
    path.write_text(as_handout(reference), encoding="utf-8")
    assert read_handout(path) == reference


# --- solution ---


def test_a_solution_is_shown_after_a_yes_only(self_study: Workspace) -> None:
    assert self_study.course("solution", "top_k", "--yes").stdout == SOLUTION
    for answer, shown in (("y\n", SOLUTION), ("n\n", ""), ("", "")):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "course_lib", "solution", "top_k"],
            cwd=self_study.folder,
            env=self_study.environment,
            input=answer,
            capture_output=True,
            encoding="utf-8",
            timeout=600,
        )
        assert done.stdout == shown
        assert "Show the solution of top_k?" in done.stderr
        assert (done.returncode == 0) is bool(shown)


def test_an_unknown_lesson_is_answered_with_those_there_are(self_study: Workspace) -> None:
    for command in ("solution", "adopt"):
        done = self_study.course(command, "nucleus")
        assert done.returncode == 2
        assert "take one of" in refused(done)


def test_a_workspace_in_the_course_finds_the_solutions_around_it(tmp_path: Path) -> None:
    assert solutions_folder(ROOT / "workspace") == ROOT / "solutions"
    # solutions of something else beside a workspace are not meant
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "__init__.py").touch()
    assert solutions_folder(tmp_path / "workspace") is None


def test_an_ambiguous_word_is_looked_up_as_a_lesson(self_study: Workspace) -> None:
    (self_study.folder / "top_k").write_text("no handout", encoding="utf-8")
    assert find_reference("03_top_k", self_study.folder / "course_lib").module == SOLUTION
    assert self_study.course("adopt", "top_k").returncode == 0
