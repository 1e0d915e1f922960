"""22: graded cells deleted, doubled, relabelled, of other points."""

import json
from copy import deepcopy

from .base import Forms, Scene
from .notebooks import each_graded, released

forms = Forms(22)


@forms.notebook()
def deleted(scene: Scene) -> bytes:
    """All graded cells are gone."""
    notebook = released()
    graded = [cell["id"] for cell in each_graded(notebook)]
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] not in graded]
    return json.dumps(notebook).encode()


@forms.notebook()
def doubled(scene: Scene) -> bytes:
    """Each graded cell is there three times."""
    notebook = released()
    copies = [deepcopy(cell) for cell in each_graded(notebook) for _ in range(2)]
    notebook["cells"] += copies
    return json.dumps(notebook).encode()


@forms.notebook()
def of_more_points(scene: Scene) -> bytes:
    """Each graded cell is worth a thousand points."""
    notebook = released()
    for cell in each_graded(notebook):
        cell["metadata"]["nbgrader"]["points"] = 1000
    return json.dumps(notebook).encode()


@forms.notebook()
def relabelled(scene: Scene) -> bytes:
    """The hard tests have the ids of easy ones, and all are unlocked solutions now."""
    notebook = released()
    cells = list(each_graded(notebook, "code"))
    for cell in cells:
        cell["metadata"]["nbgrader"] |= {
            "grade_id": cells[0]["metadata"]["nbgrader"]["grade_id"],
            "locked": False,
            "solution": True,
            "cell_type": "markdown",
        }
    return json.dumps(notebook).encode()


@forms.notebook()
def with_new_ones(scene: Scene) -> bytes:
    """There are graded cells that nobody released."""
    notebook = released()
    for i in range(5):
        cell = deepcopy(next(each_graded(notebook, "code")))
        cell["id"] = f"bonus-{i}"
        cell["metadata"]["nbgrader"] |= {"grade_id": f"top_k-bonus_{i}", "points": 50}
        notebook["cells"].append(cell)
    return json.dumps(notebook).encode()


@forms.notebook()
def with_sources_changed(scene: Scene) -> bytes:
    """Each test cell does nothing, and its checksum fits what it says now."""
    from nbformat import from_dict
    from nbgrader.utils import compute_checksum

    notebook = released()
    for cell in each_graded(notebook, "code"):
        cell["source"] = "pass"
        cell["metadata"]["nbgrader"]["checksum"] = compute_checksum(from_dict(cell))
    return json.dumps(notebook).encode()


@forms.notebook()
def of_another_type(scene: Scene) -> bytes:
    """Cells that are no tables, metadata that is a list, sources that are numbers."""
    notebook = released()
    notebook["cells"] += [None, 7, [], {"cell_type": "code"}, {"cell_type": 3, "source": 4}]
    for cell in each_graded(notebook, "code"):
        cell["metadata"] = ["nbgrader"]
        cell["source"] = 15
        break
    return json.dumps(notebook, default=str).encode()


@forms.notebook()
def markup(scene: Scene) -> bytes:
    """The written answer holds scripts and frames, which run where an instructor reads it."""
    notebook = released()
    for cell in each_graded(notebook, "markdown"):
        cell["source"] = (
            "<script>fetch('/formgrader/api/grade/1', {method: 'PUT', body: '{\"score\": 100}'})"
            "</script><img src=x onerror=alert(1)><iframe src=/formgrader></iframe>"
        )
    return json.dumps(notebook).encode()
