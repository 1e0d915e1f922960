"""Cuts a learner's edition: a project of its own, with stubs in place of the solutions.

The self-study edition alone has the solutions too, in a folder of their own, to be revealed, and
the checks that are hidden elsewhere.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any, Literal

from ..errors import CourseError
from .delivery import Report, deliver
from .files import sha256, write_atomically
from .layout import (
    ROOT,
    Lesson,
    course_files,
    hidden_files,
    lessons,
    model_files,
    solution_files,
)
from .solved import solve
from .stubs import cut_stubs

TEMPLATES = Path(__file__).parent / "templates"

# taken over as they are; which files of licence there are is read from the folder
_COPIED = ("constraints.txt", "course_launcher.py", "install.py")

# what nothing runs without, and a learner reads but does not write
_GIVEN = ("course_lib/given/", "course_lib/checks/", "course_lib/__", "models/")

# folders of the course in which an edition would be in the way
_HOUSE = ("autograder", "course_lib", "lessons", "models", "solutions", "tests", ".git", ".venv")


# a workspace lies inside of the course, whose solutions are in reach; the others go out alone
Kind = Literal["workspace", "self-study", "class"]


def edition_files(
    root: Path = ROOT, kind: Kind = "workspace", only: Lesson | None = None
) -> dict[str, bytes]:
    """All files of an edition by path. The stubs are cut afresh, whatever `course_lib/` holds.

    `only` leaves out the notebooks of all other lessons.

    Raises CourseError if a file that belongs to it is missing.
    """
    files = {_relative(path, root): path.read_bytes() for path in course_files(root)}
    for name, stub in cut_stubs(root).items():
        files[f"course_lib/{name}.py"] = stub.encode()
    for path in (*model_files(root), *sorted(root.glob("LICENSE*"))):
        files[_relative(path, root)] = path.read_bytes()
    for name in _COPIED:
        files[name] = _read(root / name)
    if kind == "self-study":
        for path in solution_files(root):
            files[_relative(path, root)] = path.read_bytes()
        # what a grader hides, a learner without one may run
        for path in hidden_files(root):
            files[f"thorough/{path.name}"] = path.read_bytes()
    numbered = lessons(root) if only is None else [only]
    for lesson in numbered:
        files[lesson.notebook.name] = _stripped(lesson, root)
    files["pyproject.toml"] = _pyproject(root).encode()
    files["README.md"] = _readme(numbered, kind).encode()
    return files


def cut_edition(folder: Path, root: Path = ROOT, kind: Kind = "workspace") -> Report:
    """Cut an edition into `folder`, which may hold an earlier one with a learner's work.

    Raises CourseError if `folder` belongs to the course itself.
    """
    refuse_house(folder, root)
    files = edition_files(root, kind)
    return deliver(files, folder.resolve(), edition_version(files, root), is_given)


def is_given(path: str) -> bool:
    """Whether a file of an edition is restored where it is lost or changed."""
    return path.startswith(_GIVEN)


def refuse_house(folder: Path, root: Path = ROOT) -> None:
    """Raise CourseError if `folder` belongs to the course itself."""
    folder, root = folder.resolve(), root.resolve()
    own = {root / name for name in _HOUSE}
    if folder == root or own & {folder, *folder.parents}:
        raise CourseError(f"{folder} belongs to the course itself: name another, say workspace")


def edition_version(files: dict[str, bytes], root: Path = ROOT) -> str:
    """The course's version and eight digits that change with any file: `0.1.0+5f0c2a97`."""
    told = "".join(f"{sha256(files[path])} {path}\n" for path in sorted(files))
    return f"{_project(root)['version']}+{sha256(told.encode())[:8]}"


def solved_workspace(folder: Path, root: Path = ROOT) -> None:
    """An edition with the solutions in place of the stubs, and the notebooks with their outputs.

    For tests and for nbval, which compares a run with those outputs. Not for learners.
    """
    cut_edition(folder, root)
    solve(root, folder)
    for lesson in lessons(root):
        write_atomically(folder / lesson.notebook.name, lesson.notebook.read_bytes())


def _stripped(lesson: Lesson, root: Path) -> bytes:
    # nbgrader is slow to import, and everything but the notebooks can do without it
    from .strip import strip

    if not lesson.notebook.is_file():
        raise CourseError(f"{_relative(lesson.notebook, root)} is missing: run `make lessons`")
    try:
        return strip(lesson.notebook, root)
    except ValueError as error:
        raise CourseError(
            f"{_relative(lesson.notebook, root)} is no notebook any more: run `make lessons`"
        ) from error


def _readme(numbered: list[Lesson], kind: Kind) -> str:
    rows = [f"| {_title(lesson)} | `{lesson.notebook.name}` |" for lesson in numbered]
    stuck = "class" if kind == "class" else "self-study"
    extra = (
        "\n- `solutions/`: the lessons as the course wrote them; `thorough/`: a grader's checks."
    )
    values = {
        "lessons": "\n".join(rows),
        "extra": extra if kind == "self-study" else "",
        "stuck": (TEMPLATES / f"stuck-{stuck}.md").read_text(encoding="utf-8").rstrip("\n"),
    }
    return _fill("README.md", values)


def _title(lesson: Lesson) -> str:
    """The first heading of a lesson."""
    for cell in json.loads(lesson.notebook.read_text(encoding="utf-8"))["cells"]:
        for line in "".join(cell["source"]).splitlines():
            if cell["cell_type"] == "markdown" and line.startswith("# "):
                return line.removeprefix("# ").strip()
    return lesson.name


def _pyproject(root: Path) -> str:
    """The edition's project file: of the course's extras it has only what studying needs."""
    project = _project(root)
    return _fill(
        "pyproject.toml.in",
        {
            "name": project["name"],
            "version": project["version"],
            "python": project["requires-python"],
            "dependencies": _toml_list(project["dependencies"]),
            "study": _toml_list(project["optional-dependencies"]["study"]),
            "build": _toml_list(_toml(root)["build-system"]["requires"]),
        },
    )


def _project(root: Path) -> dict[str, Any]:
    project: dict[str, Any] = _toml(root)["project"]
    return project


def _toml(root: Path) -> dict[str, Any]:
    return tomllib.loads(_read(root / "pyproject.toml").decode())


def _toml_list(items: Iterable[str]) -> str:
    # JSON's strings are TOML's too
    return "[\n" + "".join(f"    {json.dumps(item)},\n" for item in items) + "]"


def _fill(template: str, values: dict[str, str]) -> str:
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(values)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise CourseError(f"{path} is missing: restore it, `git checkout -- {path.name}`")
    return path.read_bytes()
