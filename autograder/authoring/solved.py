"""A `course_lib` in which every lesson is done: what the lessons are run with."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from .files import write_atomically
from .layout import course_files, model_files, modules, solution_path, stub_path

# a check shows the time of day at which its file was saved: at noon, wherever and whenever a lesson
# is run, so that another run gives the same outputs
SAVED = time.mktime((2026, 1, 1, 12, 0, 0, 0, 0, -1))


def solve(root: Path, folder: Path) -> None:
    """Put the solutions in place of the lesson modules of the `course_lib` in `folder`."""
    for name in modules(root):
        path = stub_path(folder, name)
        write_atomically(path, solution_path(root, name).read_bytes())
        os.utime(path, (SAVED, SAVED))


def lay_solved(root: Path, folder: Path) -> None:
    """Lay `course_lib`, solved, and `models` into `folder`."""
    for path in (*course_files(root), *model_files(root)):
        target = folder / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    solve(root, folder)
