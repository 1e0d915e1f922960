"""Builds the notebooks from their percent sources, and runs them with the solutions in place.

In a source the header `# %% grade_id="top_k-keeps_k" points=1` makes a graded test cell, and
`# %% [markdown] grade_id="top_k-why" points=2 written=true` a written answer that a person grades.
Everything else is as jupytext reads it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from ..errors import CourseError
from .files import write_atomically
from .layout import ROOT, Lesson, lessons, split_slug
from .solved import lay_solved

MAY_RAISE = "raises-exception"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CELL_SECONDS = 300  # far above what a cell takes: it ends a run that hangs

_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}


def build(source: Path) -> NotebookNode:
    """The notebook of a percent source such as `lessons/03_top_k.py`, without outputs.

    The same source gives the same notebook, to the byte.

    Raises CourseError, naming the cell, for a header that nbgrader would not take.
    """
    numbered = split_slug(source.stem)
    if numbered is None:
        raise CourseError(f"{source.name} is no lesson: name it like 03_top_k.py")
    notebook = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    notebook.metadata = nbformat.from_dict(_METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    ids: dict[str, int] = {}
    for ordinal, cell in enumerate(notebook.cells, start=1):
        where = f"lessons/{source.name}, cell {ordinal}"
        grade_id = _expand_grading(cell, numbered[1], where)
        cell.id = grade_id or f"{numbered[1]}-{ordinal:02}"
        if cell.id in ids:
            raise CourseError(
                f"{where}: {cell.id} is also the id of cell {ids[cell.id]}: rename one"
            )
        ids[cell.id] = ordinal
    nbformat.validate(notebook)
    return notebook


def run(notebook: NotebookNode, course_root: Path = ROOT) -> NotebookNode:
    """A copy of `notebook` with the outputs that it gives beside a solved `course_lib`.

    Raises CourseError, naming the cell, if one fails, hangs, or shows a check that fails.
    """
    notebook = deepcopy(notebook)
    with tempfile.TemporaryDirectory(prefix="lesson-", ignore_cleanup_errors=True) as temporary:
        home = Path(temporary).resolve()
        workspace = home / "workspace"
        lay_solved(course_root, workspace)
        started: list[str] = []
        client = NotebookClient(
            notebook,
            on_cell_start=lambda cell, cell_index: started.append(cell.id),
            timeout=CELL_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": str(workspace)}},
            record_timing=False,
            store_widget_state=False,
            coalesce_streams=True,
            # else it warns on the terminal, at each start, that it listens on this machine
            extra_arguments=["--log-level=ERROR"],
        )
        try:
            client.execute(env=_kernel_environment(course_root, home))
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise CourseError(_explain(error, started[-1])) from error
        _check_outputs(notebook)
        _clean(notebook, workspace)
    return notebook


def write_lesson(lesson: Lesson, root: Path = ROOT) -> None:
    """Build a lesson, run it and write its notebook.

    Raises CourseError, naming lesson and cell, as `build` and `run` do.
    """
    notebook = build(lesson.source)
    try:
        notebook = run(notebook, root)
    except CourseError as error:
        raise CourseError(f"lessons/{lesson.source.name}: {error}") from error
    write_atomically(lesson.notebook, to_bytes(notebook))


def write_lessons(root: Path = ROOT, names: Iterable[str] | None = None) -> list[str]:
    """Write the notebooks of the lessons `names`, by default of all; returns their slugs."""
    chosen = [lesson for lesson in lessons(root) if names is None or lesson.name in set(names)]
    for lesson in chosen:
        write_lesson(lesson, root)
    return [lesson.slug for lesson in chosen]


def stale_notebooks(root: Path = ROOT) -> list[str]:
    """Slugs of the notebooks that are missing, left over, or not what their source gives.

    Cells, their metadata and their ids are compared, not their outputs.
    """
    known = {lesson.slug: lesson for lesson in lessons(root)}
    written = {path.stem: path for path in sorted((root / "lessons").glob("*_*/*.ipynb"))}
    stale = set(known) ^ set(written)
    for slug in set(known) & set(written):
        fresh = build(known[slug].source)
        try:
            notebook = nbformat.read(written[slug], as_version=nbformat.NO_CONVERT)
        except ValueError:  # the markers of a merge conflict make it no notebook at all
            stale.add(slug)
            continue
        if _without_outputs(notebook) != fresh:
            stale.add(slug)
    return sorted(stale)


def to_bytes(notebook: NotebookNode) -> bytes:
    """The notebook as a file."""
    return (nbformat.writes(notebook).rstrip("\n") + "\n").encode()


def _expand_grading(cell: NotebookNode, lesson: str, where: str) -> str | None:
    """Turn `grade_id`, `points`, `written` into nbgrader's metadata; returns the grade_id."""
    if unread := cell.metadata.get("incorrectly_encoded_metadata"):
        raise CourseError(
            f'{where}: jupytext cannot read {unread}: write it like points=1 or a="b"'
        )
    grade_id = cell.metadata.pop("grade_id", None)
    points = cell.metadata.pop("points", None)
    written = cell.metadata.pop("written", False)
    if grade_id is None:
        if points is not None or written:
            raise CourseError(
                f"{where}: it has points or a written answer but no grade_id: add one"
            )
        return None
    if not isinstance(grade_id, str) or not grade_id.startswith(f"{lesson}-"):
        raise CourseError(f"{where}: grade_id={grade_id!r} must begin with '{lesson}-'")
    if isinstance(points, bool) or not isinstance(points, int | float) or points < 0:
        raise CourseError(f"{where}: points={points!r} must be a number, 0 or more")
    if written != (cell.cell_type == "markdown"):
        raise CourseError(
            f"{where}: {grade_id} must be a code cell, or a markdown cell with written=true"
        )
    cell.metadata["nbgrader"] = {
        "schema_version": 3,
        "grade": True,
        "solution": written,
        "locked": not written,
        "task": False,
        "grade_id": grade_id,
        "points": points,
    }
    if not written:
        # a check that is not passed raises, and Run All goes on to the next cell
        tags = cell.metadata.get("tags", [])
        cell.metadata["tags"] = [*tags, *({MAY_RAISE} - set(tags))]
    return grade_id


def _kernel_environment(course_root: Path, home: Path) -> dict[str, str]:
    """The environment of a learner's kernel: nothing of the repository, no settings of a person."""
    env = dict(os.environ)
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    env["IPYTHONDIR"] = str(home / "ipython")
    env.pop("MPLBACKEND", None)  # the kernel then draws into the notebook
    paths = env.pop("PYTHONPATH", "").split(os.pathsep)
    others = [path for path in paths if path and Path(path).resolve() != course_root.resolve()]
    if others:
        env["PYTHONPATH"] = os.pathsep.join(others)
    return env


def _explain(error: Exception, cell: str) -> str:
    """One line on the cell that broke off a run."""
    if isinstance(error, CellExecutionError):
        said = _first_line(error.evalue)
        return f"cell {cell} raised {error.ename}: {said}: mend the lesson or the solution"
    if isinstance(error, CellTimeoutError):
        return f"cell {cell} was still running after {CELL_SECONDS} seconds: make it quicker"
    return f"the kernel died in cell {cell}: run the lesson by hand and look at its memory"


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]


def _check_outputs(notebook: NotebookNode) -> None:
    """Raise CourseError for what a finished lesson must not show.

    A graded cell that fails, which its tag lets it do without a word, and warnings, which carry
    paths of this machine and tell a reader nothing.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error" and "nbgrader" in cell.metadata:
                raise CourseError(
                    f"cell {cell.id} fails with the solutions in place, {output.ename}: "
                    f"{_first_line(output.evalue)}: mend the check or the solution"
                )
            if output.output_type == "stream" and output.name == "stderr":
                raise CourseError(
                    f"cell {cell.id} writes to stderr, '{_first_line(output.text)}': "
                    "mend the cause, or print what a reader should see"
                )


def _clean(notebook: NotebookNode, workspace: Path) -> None:
    """Keep what is the same in the next run, and what a reader without a kernel can see."""
    notebook.metadata = nbformat.from_dict(_METADATA)
    count = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        cell.metadata.pop("execution", None)
        cell.outputs = [
            _clean_output(output, count, f"{workspace}{os.sep}") for output in cell.outputs
        ]


def _clean_output(output: NotebookNode, count: int, folder: str) -> NotebookNode:
    """An output without widget view and without the temporary folder in its texts."""
    output = _replace(output, folder, "")
    if output.output_type == "execute_result":
        output.execution_count = count
    data = output.get("data", {})
    if WIDGET_VIEW in data and len(data) > 1:
        del data[WIDGET_VIEW]
    return output


def _replace(value: NotebookNode, old: str, new: str) -> NotebookNode:
    """`value` with `old` replaced in every text of it, however deep."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return nbformat.from_dict({key: _replace(item, old, new) for key, item in value.items()})
    if isinstance(value, list):
        return [_replace(item, old, new) for item in value]
    return value


def _without_outputs(notebook: NotebookNode) -> NotebookNode:
    notebook = deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook
