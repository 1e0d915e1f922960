"""The commands `course` and `autograder`: each runs its package from the nearest folder.

`course_lib` is not installed. A learner may have several copies of it (a workspace, an edition, a
second try), and the right one is the one above the working directory.
"""

import os
import subprocess
import sys
from pathlib import Path


def find_home(package: str, start: Path) -> Path | None:
    """The nearest folder from `start` upwards that holds `package/__main__.py`, or None."""
    for folder in (start, *start.parents):
        if (folder / package / "__main__.py").is_file():
            return folder
    return None


def find_class_home(start: Path) -> Path | None:
    """Where `autograder` is for a class in a folder of its own: the course that .venv belongs to.

    None if there is no `nbgrader_config.py` from `start` upwards, which makes a folder a class.
    """
    home = Path(sys.prefix).parent
    is_class = any((folder / "nbgrader_config.py").is_file() for folder in (start, *start.parents))
    return home if is_class and (home / "autograder" / "__main__.py").is_file() else None


def environment(home: Path, inherited: dict[str, str]) -> dict[str, str]:
    """`inherited` with `home` first on PYTHONPATH and this interpreter's folder first on PATH."""

    def first(folder: Path, paths: str | None) -> str:
        return f"{folder}{os.pathsep}{paths}" if paths else str(folder)

    env = dict(inherited)
    # nbgrader starts alembic and jupyter by their bare names, so they must be this environment's
    env["PATH"] = first(Path(sys.executable).parent, env.get("PATH"))
    env["PYTHONPATH"] = first(home, env.get("PYTHONPATH"))
    return env


def launch(command: str, package: str, arguments: list[str]) -> int:
    """Run `python -m package` of the nearest home; returns its exit code, or 2 if there is none."""
    home = find_home(package, Path.cwd())
    if home is None and package == "autograder":
        home = find_class_home(Path.cwd())
    if home is None:
        places = "your workspace or to the course's folder"
        if package == "autograder":
            places = "the course's folder, or to a class's with its nbgrader_config.py,"
        print(
            f"{command}: no folder here or above holds {package}/; "
            f"go to {places} first (now in {Path.cwd()})",
            file=sys.stderr,
        )
        return 2
    # -P keeps the working directory off sys.path: a file beside the notebook, such as torch.py or
    # random.py, must not replace a library
    argv = [sys.executable, "-P", "-m", package, *arguments]
    env = environment(home, dict(os.environ))
    if sys.platform == "win32":
        # exec on Windows returns to the shell before the command has ended
        return subprocess.run(argv, env=env, check=False).returncode
    os.execve(sys.executable, argv, env)


def course() -> None:
    """Console script: the learner's command line."""
    sys.exit(launch("course", "course_lib", sys.argv[1:]))


def autograder() -> None:
    """Console script: the instructor's command line."""
    sys.exit(launch("autograder", "autograder", sys.argv[1:]))
