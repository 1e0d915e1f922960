"""An edition is a project of its own that holds nothing of the solutions."""

from __future__ import annotations

import ast
import json
import keyword
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from autograder import cli
from autograder.authoring.edition import (
    cut_edition,
    edition_files,
    edition_version,
    solved_workspace,
)
from autograder.authoring.layout import ROOT, lessons, modules, solution_path
from autograder.authoring.notebooks import build, to_bytes
from autograder.authoring.strip import strip
from autograder.authoring.stubs import find_regions
from autograder.errors import CourseError
from tests.authoring.small_course import LESSON, TOP_K, write_files


def test_an_edition_holds_what_a_learner_needs_and_no_more(course: Path) -> None:
    assert sorted(edition_files(course)) == [
        "03_top_k.ipynb",
        "LICENSE",
        "README.md",
        "constraints.txt",
        "course_launcher.py",
        "course_lib/__init__.py",
        "course_lib/given/__init__.py",
        "course_lib/top_k.py",
        "course_lib/top_p.py",
        "install.py",
        "models/README.md",
        "models/config.json",
        "models/minigpt.safetensors",
        "pyproject.toml",
    ]


def test_stubs_are_cut_afresh_whatever_stands_in_the_course(course: Path) -> None:
    write_files(course, {"course_lib/top_k.py": TOP_K})
    assert b"yours to write" in edition_files(course)["course_lib/top_k.py"]


def test_leavings_of_editors_stay_behind(course: Path) -> None:
    before = edition_files(course).keys()
    names = ("top_k.py~", ".top_k.py.swp", "top_k.orig", ".ipynb_checkpoints/top_k.py")
    write_files(course, {f"course_lib/{name}": TOP_K for name in names})
    assert edition_files(course).keys() == before


def test_the_project_has_the_courses_ranges_for_studying_only(course: Path) -> None:
    project = tomllib.loads(edition_files(course)["pyproject.toml"].decode())
    assert project["project"]["version"] == "1.2.3"
    assert project["project"]["requires-python"] == ">=3.11"
    assert project["project"]["dependencies"] == ["torch>=2.9,<3"]
    assert project["project"]["optional-dependencies"] == {"study": ["jupyterlab>=4.2,<5"]}
    assert project["project"]["scripts"] == {"course": "course_launcher:course"}


def test_the_readme_lists_the_lessons_by_their_titles(course: Path) -> None:
    readme = edition_files(course)["README.md"].decode()
    assert "| Top-k: a short list | `03_top_k.ipynb` |" in readme
    assert ".venv/bin/course lab" in readme
    assert "$" not in readme


def test_a_notebook_comes_without_outputs_and_answers(course: Path) -> None:
    notebook = nbformat.reads(edition_files(course)["03_top_k.ipynb"].decode(), as_version=4)
    assert notebook.cells[4].source == "YOUR ANSWER HERE"
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    assert notebook.cells[3].metadata["nbgrader"]["checksum"]
    assert notebook.cells[3].metadata["editable"] is False


def nbgrader_releases(course: Path, assignment: str) -> bytes:
    """The notebook that nbgrader's own command makes of an assignment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # the settings on the command line are for a course that has no nbgrader_config.py yet
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", assignment]
    settings = ["--CourseDirectory.source_directory=lessons"]
    done = subprocess.run(
        command + settings,
        cwd=course,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (course / "release" / assignment / f"{assignment}.ipynb").read_bytes()


@pytest.mark.parametrize("configured", [False, True])
def test_a_notebook_is_to_the_byte_what_nbgrader_releases(course: Path, configured: bool) -> None:
    if configured:
        config = 'c = get_config()\nc.ClearSolutions.text_stub = "*Your words:*"\n'
        write_files(course, {"nbgrader_config.py": config})
    notebook = course / "lessons/03_top_k/03_top_k.ipynb"
    # an output, and a code cell with a region, which our lessons do not have but nbgrader knows
    text = LESSON.replace("[1.0, 3.0, 2.0], 2)", "[1.0, 3.0, 2.0], 2)  # é")
    write_files(course, {"lessons/03_top_k.py": text})
    built = build(course / "lessons/03_top_k.py")
    built.cells[2].outputs = [nbformat.v4.new_output("stream", text="[3.0]\n")]
    built.cells[2].execution_count = 2
    notebook.write_bytes(to_bytes(built))
    stripped = strip(notebook, course)
    assert stripped == nbgrader_releases(course, "03_top_k")
    assert (b"*Your words:*" in stripped) is configured


def test_stripping_touches_no_gradebook(course: Path) -> None:
    before = sorted(course.rglob("*"))
    edition_files(course)
    assert sorted(course.rglob("*")) == before


def test_the_version_changes_with_any_file(course: Path) -> None:
    files = edition_files(course)
    version = edition_version(files, course)
    assert version.startswith("1.2.3+")
    assert edition_version(files, course) == version
    assert edition_version(files | {"README.md": b"other"}, course) != version


def test_the_manifest_tells_the_version_and_the_hashes(course: Path, tmp_path: Path) -> None:
    cut_edition(tmp_path / "workspace", course)
    files = edition_files(course)
    manifest = json.loads((tmp_path / "workspace/.course/edition.json").read_text("utf-8"))
    assert manifest["version"] == edition_version(files, course)
    assert manifest["files"].keys() == files.keys()


def test_a_notebook_that_was_only_run_is_the_learners(course: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    cut_edition(workspace, course)
    path = workspace / "03_top_k.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="[3.0]\n")]
    nbformat.write(notebook, path)
    ran = path.read_bytes()
    assert cut_edition(workspace, course).kept == ["03_top_k.ipynb"]
    write_files(course, {"lessons/03_top_k.py": LESSON + "\n# %%\n1\n"})
    built = to_bytes(build(course / "lessons/03_top_k.py"))
    (course / "lessons/03_top_k/03_top_k.ipynb").write_bytes(built)
    report = cut_edition(workspace, course)
    assert report.beside == {"03_top_k.ipynb": "03_top_k.new.ipynb"}
    assert path.read_bytes() == ran


def test_a_solved_stub_survives_any_number_of_cuts(course: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    cut_edition(workspace, course)
    write_files(workspace, {"course_lib/top_k.py": "mine = 1\n"})
    for turn in range(3):
        write_files(course, {"solutions/top_k.py": TOP_K.replace("best", f"best ({turn})")})
        report = cut_edition(workspace, course)
        assert report.beside == {"course_lib/top_k.py": "course_lib/top_k.new.py"}
        assert (workspace / "course_lib/top_k.py").read_text("utf-8") == "mine = 1\n"
        assert f"best ({turn})" in (workspace / "course_lib/top_k.new.py").read_text("utf-8")


@pytest.mark.parametrize("folder", [".", "course_lib", "lessons/03_top_k", "solutions/new"])
def test_the_course_itself_is_no_place_for_an_edition(course: Path, folder: str) -> None:
    with pytest.raises(CourseError, match="belongs to the course itself"):
        cut_edition(course / folder, course)


def test_a_workspace_inside_of_the_course_is_fine(course: Path) -> None:
    assert cut_edition(course / "workspace", course).new


@pytest.mark.parametrize(
    "missing", ["constraints.txt", "lessons/03_top_k/03_top_k.ipynb", "pyproject.toml"]
)
def test_a_missing_part_is_named_and_nothing_is_written(
    course: Path, tmp_path: Path, missing: str
) -> None:
    (course / missing).unlink()
    with pytest.raises(CourseError, match=f"{Path(missing).name} is missing"):
        cut_edition(tmp_path / "workspace", course)
    assert not (tmp_path / "workspace").exists()


def test_a_notebook_in_a_merge_conflict_is_named(course: Path, tmp_path: Path) -> None:
    (course / "lessons/03_top_k/03_top_k.ipynb").write_text("<<<<<<< HEAD\n{}\n", "utf-8")
    with pytest.raises(CourseError, match=r"03_top_k\.ipynb is no notebook any more"):
        cut_edition(tmp_path / "workspace", course)


def test_a_solved_workspace_has_the_solutions_and_the_outputs(course: Path, tmp_path: Path) -> None:
    solved_workspace(tmp_path / "solved", course)
    assert (tmp_path / "solved/course_lib/top_k.py").read_text("utf-8") == TOP_K
    notebook = course / "lessons/03_top_k/03_top_k.ipynb"
    assert (tmp_path / "solved/03_top_k.ipynb").read_bytes() == notebook.read_bytes()


# the edition of this very repository


@pytest.fixture(scope="module")
def real() -> dict[str, bytes]:
    return edition_files(ROOT)


def telling(lines: list[str]) -> list[str]:
    """`lines` without indentation, those of keywords only, and arguments handed on: `k=k,`."""
    stripped = (line.strip() for line in lines)
    return [
        line
        for line in stripped
        if set(re.findall(r"[^\W\d]\w*", line)) - set(keyword.kwlist)
        and not re.fullmatch(r"(\w+)=\1,", line)
    ]


def lines_of(path: str, data: bytes) -> list[str]:
    """The telling lines of a file as a reader sees it; weights and pictures have none."""
    if path.endswith((".safetensors", ".png")):
        return []
    text = data.decode()
    if path.endswith(".ipynb"):
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return telling(text.splitlines())


def solution_lines() -> Iterator[list[str]]:
    """The telling lines of every region of every solution, but for its helpers' signatures."""
    for name in modules():
        source = solution_path(ROOT, name).read_text(encoding="utf-8")
        signatures = {
            line
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef)
            for line in range(node.lineno, node.body[0].lineno)
        }
        lines = dict(enumerate(source.splitlines(), start=1))
        for region in find_regions(source):
            inside = set(range(region.begin + 1, region.end)) - signatures
            yield telling([lines[number] for number in sorted(inside)])


def windows(lines: list[str], size: int) -> set[tuple[str, ...]]:
    """Every `size` lines that follow each other."""
    return {tuple(lines[i : i + size]) for i in range(len(lines) - size + 1)}


def test_nothing_comes_from_where_learners_do_not_look(real: dict[str, bytes]) -> None:
    tops = {path.split("/")[0] for path in real}
    assert not tops & {"solutions", "autograder", "lessons", "tests", ".git", ".ci"}
    assert "models/train.py" not in real


def test_nothing_imports_what_an_edition_lacks(real: dict[str, bytes]) -> None:
    imported = set()
    for path in real:
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(real[path])):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                    imported.add(node.module.split(".")[0])
    assert not imported & {"solutions", "autograder", "tests"}


def test_no_three_lines_of_a_solution_are_in_an_edition(real: dict[str, bytes]) -> None:
    """Two lines, such as `finally:` and `model.train(was_training)`, may stand elsewhere too."""
    secret = [windows(lines, min(3, len(lines))) for lines in solution_lines()]
    assert len(set().union(*secret)) > 100
    leaks = {
        (path, *window)
        for path, data in real.items()
        for size in (1, 2, 3)
        for window in windows(lines_of(path, data), size)
        if any(window in windows_of_region for windows_of_region in secret)
    }
    assert leaks == set()


def test_no_comment_of_a_solution_is_in_any_byte_of_an_edition(real: dict[str, bytes]) -> None:
    comments = {line for lines in solution_lines() for line in lines if line.startswith("# ")}
    assert len(comments) > 10
    leaks = [
        (path, comment)
        for path, data in real.items()
        for comment in comments
        if comment.removeprefix("# ").encode() in data
    ]
    assert leaks == []


def test_no_marker_of_a_region_is_left(real: dict[str, bytes]) -> None:
    assert [path for path, data in real.items() if b"BEGIN SOLUTION" in data] == []


def test_every_lesson_is_there_beside_course_lib(real: dict[str, bytes]) -> None:
    assert {f"{lesson.slug}.ipynb" for lesson in lessons()} <= real.keys()


def study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["autograder", "study", str(folder)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0


def test_a_second_study_never_touches_an_edited_file_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "workspace"
    study(workspace, monkeypatch)
    assert f"{workspace} is ready: " in capsys.readouterr().out
    stub = workspace / "course_lib/top_k.py"
    shutil.copyfile(solution_path(ROOT, "top_k"), stub)
    changed = stub.stat().st_mtime_ns
    study(workspace, monkeypatch)
    assert capsys.readouterr().out == (
        f"{workspace}: nothing new\n  changed by you, left alone: course_lib/top_k.py\n"
    )
    assert stub.read_bytes() == solution_path(ROOT, "top_k").read_bytes()
    assert stub.stat().st_mtime_ns == changed


def test_a_second_study_heals_a_model_that_was_damaged_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "workspace"
    study(workspace, monkeypatch)
    capsys.readouterr()
    weights, config = workspace / "models/minigpt.safetensors", workspace / "models/config.json"
    weights.write_bytes(weights.read_bytes()[:1000])
    config.unlink()
    plots = workspace / "course_lib/given/plots.py"
    plots.write_text("import tiny\n", encoding="utf-8")
    study(workspace, monkeypatch)
    assert capsys.readouterr().out.splitlines() == [
        f"{workspace}: brought up to date",
        "  restored: course_lib/given/plots.py, models/config.json, models/minigpt.safetensors",
        "  in its place was another, kept as: "
        "course_lib/given/plots.mine.py, models/minigpt.mine.safetensors",
    ]
    for path in (weights, config, plots):
        assert path.read_bytes() == (ROOT / path.relative_to(workspace)).read_bytes()
    assert (workspace / "models/minigpt.mine.safetensors").stat().st_size == 1000
    study(workspace, monkeypatch)
    assert capsys.readouterr().out == f"{workspace}: nothing new\n"
