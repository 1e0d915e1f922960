"""What the tests of the authoring share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.authoring.small_course import make_course


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """The root of a small course of its own."""
    root = tmp_path / "course"
    make_course(root)
    return root
