"""`course check --thorough`: the checks that a grader hides, for people who grade themselves."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from course_lib.given import thorough

from .conftest import ROOT, Workspace

# right for the inputs of many a test, and for no others
HARD_CODED = '''"""Lesson 3: mine."""


def top_k_filter(logits, k):
    if logits.shape[-1] > 8:
        return logits
    raise ValueError("not an input that I know")
'''


@pytest.fixture
def self_study(workspace: Workspace) -> Workspace:
    """A workspace with what an edition for self-study has besides."""
    for source, folder in (("solutions", "solutions"), ("autograder/hidden", "thorough")):
        shutil.copytree(
            ROOT / source,
            workspace.folder / folder,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return workspace


def checks(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    assert "Traceback" not in done.stderr
    return {check["id"]: check for check in json.loads(done.stdout)["checks"]}


def test_the_thorough_checks_come_after_the_visible_ones(self_study: Workspace) -> None:
    self_study.solve("top_k")
    done = self_study.course("check", "top_k", "--thorough", "--json")
    assert done.returncode == 0, done.stdout
    told = json.loads(done.stdout)
    hidden = ["-hidden_" in check["id"] for check in told["checks"]]
    assert hidden == sorted(hidden)
    assert any(hidden) and told["points"] == 15
    # the record stays that of the visible checks
    assert not any("-hidden_" in name for name in self_study.record.read_text("utf-8").split('"'))


def test_a_table_says_that_it_is_of_all_checks(self_study: Workspace) -> None:
    self_study.solve("top_k")
    told = " ".join(self_study.course("check", "top_k", "--thorough").stdout.split())
    assert "All checks:" in told
    assert "15 of 15 points." in told
    assert "not run here" not in told


def test_a_wrong_answer_is_told_with_its_call(self_study: Workspace) -> None:
    self_study.write("top_k", HARD_CODED)
    done = self_study.course("check", "top_k", "--thorough", "--json")
    assert done.returncode == 1
    batch = checks(done)["top_k-hidden_any_batch"]
    assert batch["attempted"] and not batch["passed"]
    assert "called top_k_filter(" in batch["message"]


@pytest.mark.parametrize(
    ("source", "said"), [(None, "and write top_k_filter"), ("def", "does not load")]
)
def test_what_cannot_be_checked_is_said(
    self_study: Workspace, source: str | None, said: str
) -> None:
    if source is not None:
        self_study.write("top_k", source)
    for check in checks(self_study.course("check", "top_k", "--thorough", "--json")).values():
        assert not check["passed"]
        assert said in check["message"]


def test_a_class_has_none_and_says_who_has(workspace: Workspace) -> None:
    done = workspace.course("check", "top_k", "--thorough")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "course: this edition has no thorough checks: your instructor's grader runs them\n"
    )


def test_a_workspace_in_the_course_takes_the_graders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT)  # so that the search has nothing to add here
    assert thorough.find_package(ROOT / "workspace") == "autograder.hidden"
    assert thorough.find_package(ROOT) == "autograder.hidden"
    assert thorough.find_package(tmp_path / "workspace") is None
