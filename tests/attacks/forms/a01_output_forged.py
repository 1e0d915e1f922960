"""1: output forged before the check: what a notebook shows is not what it earned."""

import json

from .base import Forms, Scene
from .notebooks import each_graded, released

forms = Forms(1)


@forms.notebook()
def results_in_the_outputs(scene: Scene) -> bytes:
    """Each test cell holds an output that looks like full marks of nbgrader's partial credit."""
    notebook = released()
    for cell in each_graded(notebook, "code"):
        points = cell["metadata"]["nbgrader"]["points"]
        cell["outputs"] = [
            {
                "output_type": "execute_result",
                "execution_count": 1,
                "metadata": {},
                "data": {"text/plain": [str(points)]},
            }
        ]
        cell["execution_count"] = 1
    return json.dumps(notebook).encode()


@forms.notebook()
def outputs_of_a_judge(scene: Scene) -> bytes:
    """Each test cell holds what the judge itself writes for a check that passed, as HTML."""
    notebook = released()
    for cell in each_graded(notebook, "code"):
        html = f"<div class='course-check' data-passed='true'>{cell['id']}: passed</div>"
        cell["outputs"] = [
            {"output_type": "display_data", "metadata": {}, "data": {"text/html": [html]}},
            {"output_type": "stream", "name": "stdout", "text": [f"{cell['id']}: 1 of 1\n"]},
        ]
    return json.dumps(notebook).encode()


@forms.notebook()
def a_score_in_the_metadata(scene: Scene) -> bytes:
    """Score, maximum and checksum stand in the metadata of notebook and cells."""
    notebook = released()
    notebook["metadata"]["nbgrader"] = {"score": 15, "max_score": 15}
    for cell in each_graded(notebook, "code"):
        cell["metadata"]["nbgrader"] |= {"score": 100, "points": 100, "auto_score": 100}
    return json.dumps(notebook).encode()
