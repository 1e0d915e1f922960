"""The example files name commands that there are, and let no input become a part of one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from autograder.authoring.layout import ROOT
from autograder.cli import app

WORKFLOWS = sorted((ROOT / "examples").glob("*.yml"))


def scripts(path: Path) -> str:
    """All that the steps of a workflow run in a shell."""
    workflow = yaml.safe_load(path.read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return "\n".join(step.get("run", "") for step in steps)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_commands_that_there_are(path: Path) -> None:
    commands = {
        command.callback.__name__ for command in app.registered_commands if command.callback
    }
    called = re.findall(r"\bautograder ([a-z]+)", scripts(path))
    assert called
    assert set(called) <= commands


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_input_becomes_a_part_of_a_command(path: Path) -> None:
    assert "${{" not in scripts(path)
