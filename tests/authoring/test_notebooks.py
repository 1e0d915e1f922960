"""A notebook is its percent source, with nbgrader's metadata, and the outputs of a clean run."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.nbgraderformat import MetadataValidator

from autograder.authoring.layout import lessons
from autograder.authoring.notebooks import (
    WIDGET_VIEW,
    build,
    run,
    stale_notebooks,
    to_bytes,
    write_lessons,
)
from autograder.errors import CourseError
from tests.authoring.small_course import make_course, write_files


def source(course: Path, text: str) -> Path:
    write_files(course, {"lessons/03_top_k.py": text})
    return course / "lessons/03_top_k.py"


def built(course: Path) -> NotebookNode:
    return build(course / "lessons/03_top_k.py")


def test_the_same_source_gives_the_same_bytes(course: Path) -> None:
    assert to_bytes(built(course)) == to_bytes(built(course))


def test_ids_are_the_grade_id_or_lesson_and_ordinal(course: Path) -> None:
    assert [cell.id for cell in built(course).cells] == [
        "top_k-01",
        "top_k-02",
        "top_k-03",
        "top_k-keeps_k",
        "top_k-why",
    ]


def test_a_test_cell_is_graded_locked_and_may_raise(course: Path) -> None:
    assert built(course).cells[3].metadata == {
        "nbgrader": {
            "schema_version": 3,
            "grade": True,
            "solution": False,
            "locked": True,
            "task": False,
            "grade_id": "top_k-keeps_k",
            "points": 1,
        },
        "tags": ["raises-exception"],
    }


def test_a_written_answer_is_the_learners_and_graded_by_hand(course: Path) -> None:
    assert built(course).cells[4].metadata == {
        "nbgrader": {
            "schema_version": 3,
            "grade": True,
            "solution": True,
            "locked": False,
            "task": False,
            "grade_id": "top_k-why",
            "points": 2,
        }
    }


def test_other_metadata_of_a_header_stays(course: Path) -> None:
    assert built(course).cells[2].metadata == {"tags": ["plot"]}


def test_nbgrader_takes_the_metadata(course: Path) -> None:
    MetadataValidator().validate_nb(built(course))


def test_tags_of_a_test_cell_are_kept_and_not_doubled(course: Path) -> None:
    header = '# %% grade_id="top_k-a" points=0.5 tags=["plot", "raises-exception"]\n1\n'
    assert build(source(course, header)).cells[0].metadata["tags"] == ["plot", "raises-exception"]


FAULTS = {
    "cell 1: it has points or a written answer but no grade_id": "# %% points=1\n1\n",
    "cell 1: grade_id='keeps_k' must begin with 'top_k-'": '# %% grade_id="keeps_k" points=1\n1\n',
    "cell 1: points=None must be a number": '# %% grade_id="top_k-a"\n1\n',
    "cell 1: points=-1 must be a number": '# %% grade_id="top_k-a" points=-1\n1\n',
    "cell 1: top_k-a must be a code cell, or": '# %% [markdown] grade_id="top_k-a" points=1\n# a\n',
    "cell 1: top_k-b must be a code cell": '# %% grade_id="top_k-b" points=1 written=true\n1\n',
    "cell 1: jupytext cannot read grade_id=top_k-a": "# %% grade_id=top_k-a points=1\n1\n",
    'cell 1: jupytext cannot read grade_id="top_k-a" points=one': (
        '# %% grade_id="top_k-a" points=one\n1\n'
    ),
    "cell 2: top_k-a is also the id of cell 1": '# %% grade_id="top_k-a" points=1\n1\n' * 2,
}


@pytest.mark.parametrize("told", FAULTS)
def test_a_faulty_header_is_told_with_its_cell(course: Path, told: str) -> None:
    with pytest.raises(CourseError) as caught:
        build(source(course, FAULTS[told]))
    assert str(caught.value).startswith(f"lessons/03_top_k.py, {told}")


def test_a_source_without_a_number_is_no_lesson(course: Path) -> None:
    write_files(course, {"lessons/top_k.py": ""})
    with pytest.raises(CourseError, match="name it like 03_top_k"):
        build(course / "lessons/top_k.py")


SHOWS = """\
# %%
import os, time
from course_lib import top_k
print(top_k.__file__)
print(time.strftime("%H:%M:%S", time.localtime(os.path.getmtime(top_k.__file__))))

# %%
assert "inline" in os.environ["MPLBACKEND"]
print(sorted(os.listdir()), sorted(os.listdir("models")))
print("one"); print("two")

# %%
top_k.top_k_filter([1.0, 3.0, 2.0], 2)

# %%
from IPython.display import HTML, display
import ipywidgets
slider = ipywidgets.IntSlider()
display(HTML("<img alt='a bar'>"))
slider

# %% tags=["raises-exception"]
top_k.top_k_filter([], 1)

# %% grade_id="top_k-keeps_k" points=1
print("passed")
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    root = tmp_path_factory.mktemp("shown") / "course"
    make_course(root)
    return run(build(source(root, SHOWS)), root)


def test_a_run_uses_the_solutions(shown: NotebookNode) -> None:
    assert shown.cells[2].outputs[0].data == {"text/plain": "[-inf, 3.0, 2.0]"}


def test_a_run_stands_where_a_learner_does(shown: NotebookNode) -> None:
    assert shown.cells[1].outputs[0].text == (
        "['course_lib', 'models'] ['README.md', 'config.json', 'minigpt.safetensors']\none\ntwo\n"
    )


def test_the_temporary_folder_is_not_shown(shown: NotebookNode) -> None:
    assert shown.cells[0].outputs[0].text.startswith("course_lib/top_k.py\n")
    assert "/tmp" not in to_bytes(shown).decode()


def test_the_solutions_were_saved_at_noon_in_every_run(shown: NotebookNode) -> None:
    assert shown.cells[0].outputs[0].text.endswith("12:00:00\n")


def test_counts_are_those_of_a_first_run(shown: NotebookNode) -> None:
    assert [cell.execution_count for cell in shown.cells] == [1, 2, 3, 4, 5, 6]
    assert shown.cells[2].outputs[0].execution_count == 3


def test_a_widget_leaves_what_can_be_read_without_a_kernel(shown: NotebookNode) -> None:
    html, slider = shown.cells[3].outputs
    assert html.data["text/html"] == "<img alt='a bar'>"
    assert set(slider.data) == {"text/plain"}
    assert WIDGET_VIEW not in to_bytes(shown).decode()


def test_neither_widget_state_nor_timing_nor_version_is_saved(shown: NotebookNode) -> None:
    assert set(shown.metadata) == {"kernelspec", "language_info"}
    assert "version" not in shown.metadata["language_info"]
    assert all("execution" not in cell.metadata for cell in shown.cells)


def test_an_error_that_a_lesson_shows_on_purpose_stays(shown: NotebookNode) -> None:
    assert shown.cells[4].outputs[0].ename == "IndexError"


def test_a_run_changes_nothing_but_outputs(shown: NotebookNode, course: Path) -> None:
    fresh = build(source(course, SHOWS))
    assert [cell.source for cell in shown.cells] == [cell.source for cell in fresh.cells]
    assert [cell.metadata for cell in shown.cells] == [cell.metadata for cell in fresh.cells]


BROKEN = {
    "cell top_k-02 raised ZeroDivisionError": "# %%\n1\n\n# %%\n1 / 0\n",
    "cell top_k-a fails with the solutions in place, AssertionError: no": (
        '# %% grade_id="top_k-a" points=1\nassert False, "no"\n'
    ),
    "cell top_k-01 writes to stderr, ": "# %%\nimport warnings\nwarnings.warn('old')\n",
}


@pytest.mark.parametrize("told", BROKEN)
def test_a_lesson_that_is_not_fit_to_show_is_not_written(course: Path, told: str) -> None:
    before = (course / "lessons/03_top_k/03_top_k.ipynb").read_bytes()
    source(course, BROKEN[told])
    with pytest.raises(CourseError) as caught:
        write_lessons(course)
    assert str(caught.value).startswith(f"lessons/03_top_k.py: {told}")
    assert "\n" not in str(caught.value)
    assert (course / "lessons/03_top_k/03_top_k.ipynb").read_bytes() == before


def test_written_lessons_are_not_stale_and_hold_their_outputs(course: Path) -> None:
    source(course, "# %%\n6 * 7\n")
    assert stale_notebooks(course) == ["03_top_k"]
    assert write_lessons(course, ["top_k"]) == ["03_top_k"]
    assert stale_notebooks(course) == []
    notebook = nbformat.read(lessons(course)[0].notebook, as_version=4)
    assert notebook.cells[0].outputs[0].data["text/plain"] == "42"


def test_only_the_lessons_named_are_written(course: Path) -> None:
    assert write_lessons(course, ["top_p"]) == []


def test_a_changed_header_makes_a_notebook_stale(course: Path) -> None:
    path = course / "lessons/03_top_k.py"
    path.write_text(path.read_text(encoding="utf-8").replace("points=2", "points=3"), "utf-8")
    assert stale_notebooks(course) == ["03_top_k"]


def test_a_missing_and_a_left_over_notebook_are_stale(course: Path) -> None:
    (course / "lessons/03_top_k.py").rename(course / "lessons/03_top_n.py")
    assert stale_notebooks(course) == ["03_top_k", "03_top_n"]


def test_a_notebook_in_a_merge_conflict_is_stale(course: Path) -> None:
    notebook = course / "lessons/03_top_k/03_top_k.ipynb"
    notebook.write_text("<<<<<<< HEAD\n" + notebook.read_text(encoding="utf-8"), "utf-8")
    assert stale_notebooks(course) == ["03_top_k"]
