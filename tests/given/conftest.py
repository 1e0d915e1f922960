"""A learner's workspace in a temporary folder, and commands that run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Workspace:
    """A folder with `course_lib`, the trained model and a place for the record."""

    folder: Path

    @property
    def record(self) -> Path:
        return self.folder / ".course" / "progress.json"

    def solve(self, *names: str) -> None:
        """Put the solution in place of the modules `names`, of all by default."""
        for path in (ROOT / "solutions").glob("[a-z]*.py"):
            if not names or path.stem in names:
                shutil.copy(path, self.folder / "course_lib")

    def write(self, module: str, source: str) -> None:
        (self.folder / "course_lib" / f"{module}.py").write_text(source, encoding="utf-8")

    def edit(self, module: str, old: str, new: str) -> None:
        path = self.folder / "course_lib" / f"{module}.py"
        source = path.read_text(encoding="utf-8")
        assert old in source
        path.write_text(source.replace(old, new), encoding="utf-8")

    def course(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command as the launcher does."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "course_lib", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            timeout=600,
        )

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def make_workspace(tmp_path: Path) -> Callable[[], Workspace]:
    def make() -> Workspace:
        folder = tmp_path / "my course"
        shutil.copytree(
            ROOT / "course_lib",
            folder / "course_lib",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        (folder / ".course").mkdir()
        # the weights are read, never written
        (folder / "models").symlink_to(ROOT / "models", target_is_directory=True)
        return Workspace(folder)

    return make


@pytest.fixture
def workspace(make_workspace: Callable[[], Workspace]) -> Workspace:
    """A workspace in which no function is written yet."""
    return make_workspace()
