"""The course's own way to write a lesson: to look at, or to put in place of the learner's.

It comes from `solutions/`, which lies in the folder of an edition for self-study, or around a
workspace that was made inside of the course. A class has none: there the instructor unlocks a
lesson with a file, made by `autograder unlock`.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from .lessons import COURSE_LIB, find_lesson, number


class NoReference(Exception):
    """There is no solution to be had, or not from this file; the message says what to do."""


@dataclass(frozen=True)
class Reference:
    """The whole module of a lesson."""

    lesson: str
    module: str


@dataclass(frozen=True)
class Adopted:
    """What `adopt` did. `kept` is where the learner's file went, None if there was none to keep."""

    file: Path
    kept: Path | None
    changed: bool


def find_reference(word: str, course_lib: Path = COURSE_LIB) -> Reference:
    """The solution of the lesson that a person means by `top_k` or `3`.

    Raises ValueError for an unknown lesson, NoReference where there are no solutions.
    """
    folder = solutions_folder(course_lib.parent)
    if folder is None:
        raise NoReference(
            "this edition has no solutions: ask your instructor to unlock the lesson, "
            "and run `course adopt` on the file that you get"
        )
    known = sorted((path.stem for path in folder.glob("[a-z]*.py")), key=number)
    lesson = find_lesson(word, known)
    return Reference(lesson, (folder / f"{lesson}.py").read_text(encoding="utf-8"))


def solutions_folder(home: Path) -> Path | None:
    """Where the solutions are: in the edition itself, or in the course around a workspace."""
    # the course is told from any other folder by the grader in it
    around = home.parent / "solutions" if (home.parent / "autograder").is_dir() else None
    for folder in (home / "solutions", around):
        if folder is not None and (folder / "__init__.py").is_file():
            return folder
    return None


def as_handout(reference: Reference) -> str:
    """The text of the file with which an instructor unlocks a lesson."""
    told = {
        "lesson": reference.lesson,
        "sha256": _digest(reference.module),
        "module": reference.module,
    }
    return json.dumps(told, indent=1) + "\n"


def read_handout(path: Path) -> Reference:
    """What `as_handout` wrote; the sum tells a file that was damaged on its way, not a forged one.

    Raises NoReference for a file that is missing, no handout, or damaged.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        lesson, module, digest = (str(told[key]) for key in ("lesson", "module", "sha256"))
    except OSError as error:
        raise NoReference(f"{path}: {error.strerror}: name the file you were given") from error
    except (ValueError, KeyError, TypeError) as error:
        raise NoReference(f"{path} is no file that unlocks a lesson: ask for it again") from error
    if _digest(module) != digest:
        raise NoReference(f"{path} was damaged on its way: ask for it again")
    return Reference(lesson, module)


def adopt(reference: Reference, course_lib: Path = COURSE_LIB) -> Adopted:
    """Put the reference in place of the learner's module, which is kept as `top_k.mine.py`.

    Nothing is ever overwritten: a second one is kept as `top_k.mine2.py`.

    Raises NoReference for a lesson that this course does not have, OSError.
    """
    file = course_lib / f"{reference.lesson}.py"
    # the name comes from a file: it must not lead anywhere else. Every lesson has known answers
    graded = course_lib / "checks" / "known" / f"{reference.lesson}.json"
    if not (reference.lesson.isidentifier() and graded.is_file()):
        raise NoReference(f"there is no lesson {reference.lesson!r} here: is it of another course?")
    new = reference.module.encode()
    mine = file.read_bytes() if file.exists() else None
    if mine == new:
        return Adopted(file, None, changed=False)
    kept = None if mine is None else _keep(file, mine)
    # by way of a file beside it: a kill leaves the old one or the new one
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(new)
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)
    return Adopted(file, kept, changed=True)


def _keep(file: Path, mine: bytes) -> Path:
    """Write `mine` beside `file` under the first free name, or find it there already."""
    attempt = 1
    while True:
        kept = file.with_name(f"{file.stem}.mine{'' if attempt == 1 else attempt}{file.suffix}")
        try:
            with kept.open("xb") as copy:
                copy.write(mine)
            return kept
        except FileExistsError:
            if kept.is_file() and kept.read_bytes() == mine:
                return kept
        attempt += 1


def _digest(module: str) -> str:
    return hashlib.sha256(module.encode()).hexdigest()
