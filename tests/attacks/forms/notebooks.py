"""Notebooks to be tampered with."""

import json
from collections.abc import Iterator
from typing import Any

from autograder.classroom import graded_lessons
from autograder.notebook import release


def released(lesson: str = "top_k") -> dict[str, Any]:
    """A copy of the notebook that learners got."""
    copy: dict[str, Any] = json.loads(json.dumps(release(graded_lessons()[lesson])))
    return copy


def each_graded(notebook: dict[str, Any], kind: str = "") -> Iterator[dict[str, Any]]:
    """The graded cells; only those of one kind, "code" or "markdown", if it is given."""
    for cell in notebook["cells"]:
        graded = cell["metadata"].get("nbgrader", {}).get("grade")
        if graded and kind in ("", cell["cell_type"]):
            yield cell
