"""A course of two modules and one lesson, small enough to build and cut in a blink."""

from __future__ import annotations

from pathlib import Path

from autograder.authoring.layout import lessons
from autograder.authoring.notebooks import build, to_bytes
from autograder.authoring.stubs import write_stubs

TOP_K = '''\
"""Lesson 3: keep the best."""

import math


def top_k_filter(values: list[float], k: int) -> list[float]:
    """Keep the k best."""
    ### BEGIN SOLUTION
    # the smallest that may stay
    threshold = _threshold(values, k)
    return [value if value >= threshold else -math.inf for value in values]
    ### END SOLUTION


### BEGIN SOLUTION
def _threshold(values: list[float], k: int) -> float:
    """The k-th best."""
    return sorted(values)[-k]


### END SOLUTION
'''

TOP_P = '''\
"""Lesson 4: keep the likely."""


def top_p_filter(probs: list[float], p: float) -> list[float]:
    """Keep the likely."""
    ### BEGIN SOLUTION
    return [prob for prob in probs if prob >= p]
    ### END SOLUTION
'''

LESSON = """\
# %% [markdown]
# # Top-k: a short list
#
# What we do here.

# %%
from course_lib.top_k import top_k_filter

# %% tags=["plot"]
top_k_filter([1.0, 3.0, 2.0], 2)

# %% grade_id="top_k-keeps_k" points=1
assert top_k_filter([1.0, 2.0], 1)[1] == 2.0

# %% [markdown] grade_id="top_k-why" points=2 written=true
# Because the best are the best.
"""

PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "small-course"
version = "1.2.3"
requires-python = ">=3.11"
dependencies = ["torch>=2.9,<3"]

[project.optional-dependencies]
study = ["jupyterlab>=4.2,<5"]
grade = ["nbgrader>=0.9.5"]
"""


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write texts by path below `folder`."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def make_course(root: Path) -> None:
    """Make a small course in `root`, all built: stubs cut, the notebook without a run."""
    write_files(
        root,
        {
            "solutions/__init__.py": '"""Whole."""\n',
            "solutions/top_k.py": TOP_K,
            "solutions/top_p.py": TOP_P,
            "course_lib/__init__.py": '"""Yours."""\n',
            "course_lib/given/__init__.py": "",
            "course_lib/given/__pycache__/minigpt.pyc": "cache",
            "autograder/__init__.py": "SECRET = 1\n",
            "autograder/hidden/__init__.py": '"""Hidden."""\n',
            "autograder/hidden/top_k.py": "SECRET = 2\n",
            "lessons/03_top_k.py": LESSON,
            "models/config.json": "{}\n",
            "models/minigpt.safetensors": "weights",
            "models/README.md": "# Card\n",
            "models/train.py": "print('training')\n",
            "pyproject.toml": PYPROJECT,
            "constraints.txt": "torch==2.13.0\n",
            "course_launcher.py": "",
            "install.py": "",
            "LICENSE": "MIT\n",
        },
    )
    write_stubs(root)
    for lesson in lessons(root):
        lesson.notebook.parent.mkdir()
        lesson.notebook.write_bytes(to_bytes(build(lesson.source)))
