"""Wrong and right implementations of the lessons' functions, to try the checks on.

A module of `autograder/mistakes/` makes a `Bank` and adds wrong functions to it; the docstring of
each is the hint that a learner gets who wrote the same. A module of `autograder/variants/` adds
right ones of other shapes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from course_lib.checks.load import load_fresh, load_source

SOLUTIONS = Path(__file__).resolve().parent.parent / "solutions"


@dataclass(frozen=True)
class Implementation:
    """One way to write a function: another `function` (or class), or `edits` of the solution."""

    name: str
    lesson: str
    of: str
    hint: str
    family: str | None
    function: Callable[..., Any] | None = None
    edits: tuple[tuple[str, str], ...] = ()

    def build(self) -> ModuleType:
        """Its lesson's module with it in place."""
        if self.function is None:
            return with_edits(self.lesson, self.edits)
        return with_function(self.lesson, self.of, self.function)


class Bank:
    """The implementations of one lesson, in order."""

    def __init__(self, lesson: str) -> None:
        self.lesson = lesson
        self.implementations: dict[str, Implementation] = {}

    def add(
        self,
        name: str,
        of: str,
        hint: str,
        family: str | None,
        function: Callable[..., Any] | None = None,
        edits: tuple[tuple[str, str], ...] = (),
    ) -> None:
        if name in self.implementations:
            raise ValueError(f"{self.lesson}: {name} is there twice")
        hint = " ".join(hint.split())
        self.implementations[name] = Implementation(
            name, self.lesson, of, hint, family, function, edits
        )

    def mistake(
        self, of: str, *, family: str | None = None
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add the decorated function (or class) as a wrong `of`; its docstring is the hint.

        Mistakes of one `family` may answer alike in all visible checks: their hints must fit each
        other.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            self.add(function.__name__, of, function.__doc__ or "", family, function)
            return function

        return decorate

    def mistake_by_edit(
        self, name: str, of: str, *edits: tuple[str, str], hint: str, family: str | None = None
    ) -> None:
        """Add the solution with some text changed, (old, new) each, as a wrong `of`."""
        self.add(name, of, hint, family, edits=edits)

    def variant(self, of: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add the decorated function (or class) as a right way to write `of`."""
        return self.mistake(of)

    def variant_by_edit(self, name: str, of: str, *edits: tuple[str, str]) -> None:
        """Add the solution with some lines changed as a right way to write `of`."""
        self.mistake_by_edit(name, of, *edits, hint="")


def with_function(lesson: str, name: str, function: Callable[..., Any]) -> ModuleType:
    """The solution of a lesson with one function replaced, for its siblings in the module too."""
    module = load_fresh(lesson, SOLUTIONS)
    if not hasattr(module, name):
        raise ValueError(f"solutions/{lesson}.py has no {name}")
    setattr(module, name, function)
    return module


def with_edits(lesson: str, edits: tuple[tuple[str, str], ...]) -> ModuleType:
    """The solution of a lesson with some of its text replaced; each old text must be there once."""
    return load_source(lesson, SOLUTIONS, edited(lesson, edits))


def edited(lesson: str, edits: tuple[tuple[str, str], ...]) -> str:
    """The source of that."""
    source = (SOLUTIONS / f"{lesson}.py").read_text(encoding="utf-8")
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(
                f"solutions/{lesson}.py has {source.count(old)} times, not once: {old!r}"
            )
        source = source.replace(old, new)
    return source


def find_bank(kind: str, lesson: str) -> Bank:
    """The bank of a lesson; `kind` is "mistakes" or "variants"."""
    bank: Bank = importlib.import_module(f"autograder.{kind}.{lesson}").bank
    return bank
