"""Where things are. Lists of lessons are read from the folders: adding one is adding its files."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import CourseError

ROOT = Path(__file__).resolve().parents[2]

_NUMBERED = re.compile(r"(\d\d)_([a-z][a-z0-9_]*)")
_DOCSTRING_NUMBER = re.compile(r"Lesson (\d+): ")

# the last two are the loss curve of the model card
_MODEL_SUFFIXES = (".safetensors", ".json", ".md", ".svg", ".png")
_DEBRIS_SUFFIXES = (".pyc", ".orig", ".rej", ".bak", ".swp", ".tmp")


@dataclass(frozen=True)
class Lesson:
    """A numbered source in `lessons/`, and what belongs to it."""

    number: int
    name: str
    source: Path  # lessons/03_top_k.py
    graded: bool  # a stretch notebook has no module in solutions/ and is not graded

    @property
    def slug(self) -> str:
        """Number and name, as the files are called: `03_top_k`."""
        return self.source.stem

    @property
    def notebook(self) -> Path:
        """Where the built notebook lies: nbgrader wants a folder for each assignment."""
        return self.source.parent / self.slug / f"{self.slug}.ipynb"


def split_slug(slug: str) -> tuple[int, str] | None:
    """Number and name of a slug such as `03_top_k`, or None if it is no slug."""
    match = _NUMBERED.fullmatch(slug)
    return (int(match[1]), match[2]) if match else None


def solution_path(root: Path, name: str) -> Path:
    """The whole module of a lesson."""
    return root / "solutions" / f"{name}.py"


def stub_path(root: Path, name: str) -> Path:
    """The learner's module of a lesson."""
    return root / "course_lib" / f"{name}.py"


def lessons(root: Path = ROOT) -> list[Lesson]:
    """All lessons that have a source, by number.

    Raises CourseError if two of them share a number or a name.
    """
    found: dict[int | str, Lesson] = {}
    for source in sorted((root / "lessons").glob("*.py")):
        numbered = split_slug(source.stem)
        if numbered is None:
            continue
        number, name = numbered
        lesson = Lesson(number, name, source, solution_path(root, name).is_file())
        for key in numbered:
            if other := found.get(key):
                raise CourseError(
                    f"lessons/{other.source.name} and lessons/{source.name} share {key}: "
                    "rename one of them"
                )
            found[key] = lesson
    return sorted(set(found.values()), key=lambda lesson: lesson.number)


def modules(root: Path = ROOT) -> dict[str, int]:
    """Name and lesson number of every module in `solutions/`, by number.

    The number is that of the lesson's source. While there is none it is read from the module's
    docstring, which begins `Lesson 3: `; where both are there, they have to agree.

    Raises CourseError if a number is missing, contradicted or given twice.
    """
    by_source = {lesson.name: lesson for lesson in lessons(root)}
    numbers: dict[int, str] = {}
    for path in sorted((root / "solutions").glob("[a-z]*.py")):
        told = _docstring_number(path)
        lesson = by_source.get(path.stem)
        if lesson is not None and told not in (None, lesson.number):
            raise CourseError(
                f"solutions/{path.name} begins with 'Lesson {told}: ' but its source is "
                f"lessons/{lesson.source.name}: make the two agree"
            )
        number = told if lesson is None else lesson.number
        if number is None:
            raise CourseError(
                f"solutions/{path.name} has no lesson number: begin its docstring with 'Lesson N: '"
            )
        if number in numbers:
            raise CourseError(
                f"solutions/{numbers[number]}.py and solutions/{path.name} are both lesson "
                f"{number}: renumber one of them"
            )
        numbers[number] = path.stem
    return {numbers[number]: number for number in sorted(numbers)}


def find_lesson(word: str, root: Path = ROOT) -> Lesson:
    """The lesson that a person means by `top_k`, `03_top_k`, `3` or `lessons/03_top_k.py`.

    Raises CourseError that lists the lessons if there is no such one.
    """
    known = lessons(root)
    wanted = Path(word).stem
    for lesson in known:
        if wanted in (lesson.name, lesson.slug, str(lesson.number), f"{lesson.number:02}"):
            return lesson
    names = ", ".join(lesson.name for lesson in known) or "none yet"
    raise CourseError(f"there is no lesson {word!r}: the lessons are {names}")


def course_files(root: Path = ROOT) -> list[Path]:
    """The files of `course_lib/` that people wrote, without what Python and editors leave there."""
    return [
        path
        for path in sorted((root / "course_lib").rglob("*"))
        if path.is_file() and not _is_debris(path.relative_to(root))
    ]


def model_files(root: Path = ROOT) -> list[Path]:
    """The files of `models/` that a learner needs: weights, config, tokenizer and model card."""
    return [
        path
        for path in sorted((root / "models").glob("*"))
        if path.suffix in _MODEL_SUFFIXES and not _is_debris(path.relative_to(root))
    ]


def solution_files(root: Path = ROOT) -> list[Path]:
    """The modules of `solutions/`, the package's own file first."""
    return _python_files(root, "solutions")


def hidden_files(root: Path = ROOT) -> list[Path]:
    """The modules of `autograder/hidden/`, the package's own file first."""
    return _python_files(root, "autograder/hidden")


def _python_files(root: Path, folder: str) -> list[Path]:
    return [
        path
        for path in sorted((root / folder).glob("*.py"))
        if not _is_debris(path.relative_to(root))
    ]


def _is_debris(path: Path) -> bool:
    """Whether a file is an editor's backup, a cache or otherwise hidden."""
    return (
        any(part.startswith(".") or part == "__pycache__" for part in path.parts)
        or path.name.endswith("~")
        or path.suffix in _DEBRIS_SUFFIXES
    )


def _docstring_number(path: Path) -> int | None:
    try:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    except SyntaxError as error:
        raise CourseError(
            f"solutions/{path.name}, line {error.lineno}: {error.msg}: mend the module first"
        ) from error
    match = _DOCSTRING_NUMBER.match(docstring or "")
    return int(match[1]) if match else None
