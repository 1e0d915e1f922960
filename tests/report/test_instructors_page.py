"""What INSTRUCTORS.md shows of reports and exports is what the commands take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.authoring.layout import ROOT
from autograder.cli import ExportFormat
from autograder.late import read_due_dates

TEXT = (ROOT / "INSTRUCTORS.md").read_text(encoding="utf-8")


def test_the_example_of_due_dates_can_be_read(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(timezone.*?)```", TEXT, re.DOTALL)
    assert example is not None
    path = tmp_path / "due.toml"
    path.write_text(example[1])
    policy = read_due_dates(path, ["top_k"]).policies["top_k"]
    assert (policy.percent, policy.at_most, policy.per) == (10, 50, "day")
    assert list(policy.extensions) == ["00123"]


@pytest.mark.parametrize("form", list(ExportFormat))
def test_every_format_is_explained(form: str) -> None:
    assert f"| `{form}` |" in TEXT
