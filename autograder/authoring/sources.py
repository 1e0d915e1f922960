"""Any implementation of the bank as the source of a submission's `course_lib/<lesson>.py`.

The text stands alone: it imports torch, jaxtyping, the standard library and its sibling lessons,
as the solutions do, and behaves in the checks as the module that the bank builds.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from typing import Any

from course_lib.given.lessons import COURSE_LIB

from ..bank import SOLUTIONS, Implementation, edited
from .needs import (
    Definition,
    Needs,
    Origin,
    Text,
    first_line,
    needs_of,
    own_decorators,
    parts,
    read,
    read_module,
    renamed,
    same_arguments,
    without_docstring,
)
from .stubs import BEGIN, END


def as_source(*implementations: Implementation) -> str:
    """The solution of a lesson with one implementation in place of its own, or with several.

    Raises ValueError where two of them change the same text.
    """
    lesson = implementations[0].lesson
    edits = tuple(edit for one in implementations for edit in one.edits)
    source = without_markers(edited(lesson, edits))
    for one in implementations:
        if one.function is not None:
            source = with_implementation(source, lesson, one.of, one.function)
    return source


def reference_source(lesson: str) -> str:
    """The solution as a learner would hand it in."""
    return without_markers((SOLUTIONS / f"{lesson}.py").read_text(encoding="utf-8"))


def stub_source(lesson: str) -> str:
    """The file that learners start from."""
    return (COURSE_LIB / f"{lesson}.py").read_text(encoding="utf-8")


def without_markers(source: str) -> str:
    """A solution without the lines that say where it begins and ends."""
    lines = [line for line in source.splitlines() if line.strip() not in (BEGIN, END)]
    return "\n".join(lines).rstrip() + "\n"


def with_stubs(source: str, lesson: str, names: Iterable[str]) -> str:
    """A file with some of its functions or classes not written yet."""
    stub = read(stub_source(lesson))
    for name in names:
        source = with_definition(source, name, stub.lines_of(stub.bound[name]))
    return source


def with_implementation(source: str, lesson: str, of: str, function: Any) -> str:
    """`source` with `function`, from a module of the bank, in place of its own `of`."""
    home, node = _find(function)
    text = read(source)
    target = text.bound[of]
    assert isinstance(target, Definition)
    # a file looks most like a learner's where the header is the stub's
    given_header = (
        isinstance(node, ast.FunctionDef)
        and isinstance(target, ast.FunctionDef)
        and not own_decorators(node)
        and same_arguments(node, target)
    )
    needs = needs_of(home, node, with_annotations=not given_header)
    placing = _Placing(text, lesson, of, needs)
    new_names = placing.new_names | {node.name: of}
    mine = parts(renamed(home.lines_of(node), new_names))
    given = parts(text.lines_of(target))
    header = given.header if given_header else mine.header
    replacement = [*placing.before, *header, *given.docstring, *mine.body]
    return with_imports(with_definition(source, of, replacement), placing.imports)


def _find(function: Any) -> tuple[Text, Any]:
    """The module of the bank that a function is from, and its definition there."""
    original = inspect.unwrap(function)
    home = read_module(original.__module__)
    return home, home.bound[original.__name__]


class _Placing:
    """Where the things go that a function needs: imports, helpers, and names that do not clash."""

    def __init__(self, text: Text, lesson: str, of: str, needs: Needs) -> None:
        self.text = text
        self.imports: dict[str, Origin] = {}
        self.new_names: dict[str, str] = {}
        self.before: list[str] = []
        for name, origin in needs.solution.items():
            self._place_solution(name, origin, lesson, of)
        for name, origin in needs.imports.items():
            self._import(name, name, origin)
        helpers = list(needs.helpers.values())
        # what a module takes from another comes first, as when they are imported
        helpers.sort(key=lambda helper: (".common" not in helper[0].name, first_line(helper[1])))
        kept = [helper for helper in helpers if self._name_helper(*helper)]
        for i, (home, node) in enumerate(kept):
            self.before += without_docstring(renamed(home.lines_of(node), self.new_names))
            # constants stand together, all else apart
            if not all(isinstance(helper, ast.Assign) for _, helper in kept[i : i + 2]):
                self.before += ["", ""]

    def _place_solution(self, name: str, origin: Origin, lesson: str, of: str) -> None:
        assert origin.name is not None
        if origin.module != lesson:
            self._import(name, origin.name, Origin(f".{origin.module}", origin.name))
        elif origin.name != of:
            self.new_names[name] = origin.name
        else:  # it calls what it replaces
            self.new_names[name] = first = f"first_{of}"
            lines = self.text.lines_of(self.text.bound[of])
            self.before += [*without_docstring(renamed(lines, {of: first})), "", ""]

    def _import(self, used: str, wanted: str, origin: Origin) -> None:
        there = self.text.imported.get(wanted)
        bound = wanted
        if there != origin:
            if there is not None or wanted in self.text.bound:
                bound = f"{wanted}_"
            self.imports[bound] = origin
        if bound != used:
            self.new_names[used] = bound

    def _name_helper(self, home: Text, node: Any) -> bool:
        """Find a name for a helper; whether it is to be added at all."""
        names = [name for name, statement in home.bound.items() if statement is node]
        for name in names:
            there = self.text.bound.get(name)
            if there is not None:
                mine = without_docstring(home.lines_of(node))
                if self.text.lines_of(there) == mine:
                    return False
                self.new_names[name] = f"{name}_"
        return True


def with_definition(source: str, name: str, lines: list[str]) -> str:
    """`source` with other lines for one of its definitions."""
    text = read(source)
    node = text.bound[name]
    new = [*text.lines[: first_line(node) - 1], *lines, *text.lines[node.end_lineno :]]
    return "\n".join(new) + "\n"


def with_imports(source: str, imports: dict[str, Origin]) -> str:
    """`source` with more imports, each below those of its kind."""
    for bound, origin in sorted(imports.items()):
        lines, kind = source.splitlines(), _kind(origin.module)
        nodes = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
        kinds = {n.end_lineno or 0: _kind(ast.unparse(n).split()[1]) for n in nodes}
        above = [line for line, other in kinds.items() if other <= kind]
        new = [origin.statement(bound)]
        if not above:
            at, new = nodes[0].lineno - 1, [*new, ""]
        elif kinds[above[-1]] < kind:
            at, new = above[-1], ["", *new]
        else:
            at = above[-1]
        source = "\n".join([*lines[:at], *new, *lines[at:]]) + "\n"
    return source


def _kind(module: str) -> int:
    """The block that an import belongs to: standard library, other libraries, siblings."""
    return 2 if module.startswith(".") else module.split(".")[0] in ("torch", "jaxtyping")
