"""`course` and `autograder` run the package of the nearest folder and change nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import course_launcher

ROOT = Path(course_launcher.__file__).parent

# a package that tells how it was started
REPORT = """
import json, os, sys
import random  # a file of that name where we stand must not be taken for the library's
print(json.dumps({
    "package": __package__, "home": os.path.dirname(os.path.dirname(__file__)), "cwd": os.getcwd(),
    "arguments": sys.argv[1:], "path": os.environ["PATH"].split(os.pathsep), "sys_path": sys.path,
    "random": random.__file__,
}))
sys.exit(7)
"""


def make_home(folder: Path, package: str = "course_lib") -> Path:
    """A folder that holds `package`, whose command reports how it was started and exits with 7."""
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").touch()
    (folder / package / "__main__.py").write_text(REPORT)
    return folder


def run(command: str, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start `command` as its console script does, in a process of its own."""
    code = f"import course_launcher; course_launcher.{command}()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "package"), [("course", "course_lib"), ("autograder", "autograder")]
)
def test_each_command_runs_its_package(tmp_path: Path, command: str, package: str) -> None:
    home = make_home(tmp_path / "home", package)
    done = run(command, home)
    assert done.returncode == 7, done.stderr
    report = json.loads(done.stdout)
    assert report["package"] == package
    assert Path(report["home"]) == home


def test_the_nearest_home_wins_even_inside_another(tmp_path: Path) -> None:
    inner = make_home(make_home(tmp_path / "outer") / "workspace")
    below = inner / "notes" / "deep"
    below.mkdir(parents=True)
    assert Path(json.loads(run("course", below).stdout)["home"]) == inner


def test_a_folder_without_a_command_is_passed_over(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    (home / "notes" / "course_lib").mkdir(parents=True)
    assert Path(json.loads(run("course", home / "notes").stdout)["home"]) == home


def test_working_directory_arguments_and_exit_code_are_kept(tmp_path: Path) -> None:
    home = make_home(tmp_path / "a home")
    (home / "sub").mkdir()
    arguments = ["generate", "Once upon a time, ", "--seed", "1", "*", ""]
    done = run("course", home / "sub", *arguments)
    report = json.loads(done.stdout)
    assert Path(report["cwd"]) == home / "sub"
    assert report["arguments"] == arguments
    assert done.returncode == 7


def test_this_environments_commands_come_first_on_path(tmp_path: Path) -> None:
    report = json.loads(run("course", make_home(tmp_path / "home")).stdout)
    assert report["path"][0] == str(Path(sys.executable).parent)
    assert report["path"][1:] == os.environ["PATH"].split(os.pathsep)


def test_the_home_comes_first_on_the_import_path_and_what_was_there_stays(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    sys_path = json.loads(run("course", home).stdout)["sys_path"]
    assert sys_path[:2] == [str(home), str(ROOT)]


def test_a_file_where_we_stand_never_replaces_a_library(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    (home / "sub").mkdir()
    (home / "sub" / "random.py").write_text("raise SystemExit('the wrong random')")
    report = json.loads(run("course", home / "sub").stdout)
    assert not Path(report["random"]).is_relative_to(home)


def test_a_class_in_a_folder_of_its_own_is_graded_by_the_course_of_this_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example in INSTRUCTORS.md was refused: no folder above the class holds autograder/."""
    home = make_home(tmp_path / "course", "autograder")
    monkeypatch.setattr(sys, "prefix", str(home / ".venv"))
    below = tmp_path / "class" / "submitted"
    below.mkdir(parents=True)
    assert course_launcher.find_class_home(below) is None
    (tmp_path / "class" / "nbgrader_config.py").touch()
    assert course_launcher.find_class_home(below) == home


@pytest.mark.parametrize("command", ["course", "autograder"])
def test_without_a_home_one_line_says_where_to_go_and_the_exit_code_is_2(
    tmp_path: Path, command: str
) -> None:
    done = run(command, tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{command}: no folder here or above holds ")
    assert str(tmp_path) in done.stderr


def test_an_empty_path_variable_leaves_no_empty_entry() -> None:
    # an empty entry means the working directory
    env = course_launcher.environment(Path("home"), {"PATH": "", "PYTHONPATH": ""})
    assert env["PATH"] == str(Path(sys.executable).parent)
    assert env["PYTHONPATH"] == "home"
