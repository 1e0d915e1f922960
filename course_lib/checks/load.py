"""Load the learner's modules as they are on disk now, whatever the notebook imported before."""

from __future__ import annotations

import importlib
import itertools
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ..given.lessons import COURSE_LIB

_numbers = itertools.count()
_loaded: dict[str, FreshFinder] = {}


class FreshLoader(SourceFileLoader):
    """Compiles the source each time: a compiled file on disk may be a second behind it."""

    def __init__(self, fullname: str, path: str, source: bytes | None) -> None:
        super().__init__(fullname, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType | None:
        source = self.get_data(self.path) if self.source is None else self.source
        code: CodeType = self.source_to_code(source, self.path)
        return code


class FreshFinder:
    """Finds the modules of one fresh package in a folder; `sources` stand in for files there."""

    def __init__(self, package: str, folder: Path, sources: dict[str, bytes]) -> None:
        self.package, self.folder, self.sources = package, folder, sources

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        file = self.folder / f"{name}.py"
        if parent != self.package or not file.is_file():
            return None
        loader = FreshLoader(fullname, str(file), self.sources.get(name))
        return spec_from_file_location(fullname, file, loader=loader)


def load_fresh(lesson: str, folder: Path = COURSE_LIB) -> ModuleType:
    """The module of a lesson, with its siblings, as a package of its own.

    Raises whatever the file raises when it is imported, SyntaxError included.
    """
    return load_package(lesson, folder, {})


def load_source(lesson: str, folder: Path, source: str) -> ModuleType:
    """The same, with `source` in place of the lesson's file."""
    return load_package(lesson, folder, {lesson: source.encode()})


def load_package(lesson: str, folder: Path, sources: dict[str, bytes]) -> ModuleType:
    forget(lesson)
    package = f"course_lib_as_saved_{next(_numbers)}"
    finder = FreshFinder(package, folder, sources)
    _loaded[lesson] = finder
    parent = ModuleType(package)
    parent.__path__ = [str(folder)]
    sys.modules[package] = parent
    sys.meta_path.insert(0, finder)
    return importlib.import_module(f"{package}.{lesson}")


def forget(lesson: str) -> None:
    """Let go of what an earlier load of this lesson left in the interpreter."""
    finder = _loaded.pop(lesson, None)
    if finder is None:
        return
    sys.meta_path.remove(finder)
    for name in [n for n in sys.modules if n.split(".")[0] == finder.package]:
        del sys.modules[name]
