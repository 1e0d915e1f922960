"""Cuts the stubs in `course_lib/` from the modules in `solutions/`.

What stands between `### BEGIN SOLUTION` and `### END SOLUTION` is the learner's to write. Inside a
function it becomes a `raise NotImplementedError`; a solution's own helpers, whole functions or
classes in a region at the top level of the module, go without a trace. Everything else stays.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import CourseError
from .files import write_atomically
from .layout import ROOT, modules, solution_path, stub_path

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Region:
    """Lines `begin` to `end` (from 1, both markers included) and the function that they are in.

    `function` is None for whole helpers at the top level.
    """

    begin: int
    end: int
    indent: int
    function: str | None


def cut_stub(source: str, lesson_number: int, filename: str = "solution") -> str:
    """The stub of a whole module.

    Raises CourseError, with `filename` and line, for a module without a region and for a region
    that is unclosed, nested, empty, across the border of a block, or not the learner's to write.
    """
    # from the bottom up, so that the line numbers of the regions above stay true
    for region in reversed(find_regions(source, filename)):
        source = _cut(source, region, lesson_number, filename)
    return source


def find_regions(source: str, filename: str = "solution") -> list[Region]:
    """All regions of a module, in order; raises CourseError as `cut_stub` does."""
    try:
        tree = ast.parse(source)
        markers = list(_markers(source, filename))
    except (SyntaxError, tokenize.TokenError) as error:
        raise CourseError(f"{filename} is no valid Python: {error}: mend it first") from error
    if not markers:
        raise CourseError(f"{filename} has no {BEGIN}: mark what is the learner's to write")
    regions = []
    opened: tuple[int, int] | None = None
    for line, column, text in markers:
        if text == BEGIN:
            if opened is not None:
                raise CourseError(
                    f"{filename}, line {line}: a region begins inside the one of line {opened[0]}: "
                    f"close that with {END} first"
                )
            opened = line, column
        elif opened is None:
            raise CourseError(f"{filename}, line {line}: {END} without a {BEGIN} before it")
        else:
            regions.append(_check_region(tree, opened, (line, column), filename))
            opened = None
    if opened is not None:
        raise CourseError(f"{filename}, line {opened[0]}: the region is never closed: add {END}")
    return regions


def cut_stubs(root: Path = ROOT) -> dict[str, str]:
    """Name and stub of every module in `solutions/`, by lesson number."""
    return {
        name: cut_stub(
            solution_path(root, name).read_text(encoding="utf-8"), number, f"solutions/{name}.py"
        )
        for name, number in modules(root).items()
    }


def stale_stubs(root: Path = ROOT) -> list[str]:
    """Names of the modules whose stub is missing or is not what the solution gives."""
    return [name for name, stub in cut_stubs(root).items() if _read(stub_path(root, name)) != stub]


def write_stubs(root: Path = ROOT) -> list[str]:
    """Cut all stubs; returns the names of those that changed."""
    stubs = cut_stubs(root)
    changed = stale_stubs(root)
    for name in changed:
        write_atomically(stub_path(root, name), stubs[name].encode())
    return changed


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _markers(source: str, filename: str) -> Iterator[tuple[int, int, str]]:
    """Line, column and text of each marker; a comment that nearly is one would leak a solution."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        words = token.string.strip("# ").upper()
        if not words.startswith(("BEGIN SOLUTION", "END SOLUTION")):
            continue
        (line, column), text = token.start, token.string.rstrip()
        if text not in (BEGIN, END) or token.line[:column].strip():
            raise CourseError(
                f"{filename}, line {line}: {token.string!r} is no marker: write {BEGIN} or {END}, "
                "alone on its line"
            )
        yield line, column, text


def _check_region(
    tree: ast.Module, begin: tuple[int, int], end: tuple[int, int], filename: str
) -> Region:
    """The region between two markers, each (line, column), if it may be cut out as it stands."""

    def fault(why: str) -> CourseError:
        return CourseError(f"{filename}, line {begin[0]}: {why}")

    block, inside, scopes = _statements_between(tree, begin[0], end[0])
    if not inside:
        raise fault("the region is empty: put the solution into it, or take it away")
    if not begin[1] == end[1] == inside[0].col_offset:
        raise fault(f"indent {BEGIN} and {END} like the lines between them")
    if not scopes:
        if all(isinstance(node, Scope) for node in inside):
            return Region(begin[0], end[0], begin[1], None)
        raise fault("the region is outside of a function, where only whole functions may be cut")
    if isinstance(scopes[-1], ast.ClassDef):
        raise fault(f"the region is in class {scopes[-1].name} but in none of its methods")
    if inside[0] is block[0] is scopes[-1].body[0] and ast.get_docstring(scopes[-1]) is not None:
        raise fault(f"the region begins above the docstring of {scopes[-1].name}: begin it below")
    return Region(begin[0], end[0], begin[1], ".".join(scope.name for scope in scopes))


def _cut(source: str, region: Region, lesson_number: int, filename: str) -> str:
    """`source` without one region, if nothing but the region's whole statements goes with it."""
    lines = source.splitlines(keepends=True)
    tree = ast.parse(source)
    block, inside, _ = _statements_between(tree, region.begin, region.end)
    first, last = block.index(inside[0]), block.index(inside[-1]) + 1
    if region.function is None:
        begin = region.begin - 1
        while begin and not lines[begin - 1].strip():
            begin -= 1
        lines[begin : region.end] = []
        block[first:last] = []
    else:
        message = f"lesson {lesson_number}: {region.function} is yours to write"
        stub = f'raise NotImplementedError("{message}")'
        lines[region.begin - 1 : region.end] = [f"{' ' * region.indent}{stub}\n"]
        block[first:last] = ast.parse(stub).body
    text = "".join(lines)
    # a region may hold an `else:` or end inside of brackets, which no look at its lines alone tells
    try:
        whole = ast.dump(ast.parse(text)) == ast.dump(tree)
    except SyntaxError:
        whole = False
    if not whole:
        raise CourseError(
            f"{filename}, line {region.begin}: the region cuts through a statement or a block: "
            "begin and end it between whole statements of one block"
        )
    return text


def _statements_between(
    tree: ast.Module, begin: int, end: int
) -> tuple[list[ast.stmt], list[ast.stmt], tuple[Scope, ...]]:
    """The outermost block with statements between two lines, those statements, and its scopes."""
    for block, scopes in _blocks(tree, ()):
        inside = [node for node in block if begin < _first_line(node) < end]
        if inside:
            return block, inside, scopes
    return [], [], ()


def _blocks(
    node: ast.AST, scopes: tuple[Scope, ...]
) -> Iterator[tuple[list[ast.stmt], tuple[Scope, ...]]]:
    """Every block of statements below `node`, the outer ones first, with the scopes around it."""
    for _, value in ast.iter_fields(node):
        if not isinstance(value, list):
            continue
        if value and isinstance(value[0], ast.stmt):
            yield value, scopes
        for child in value:
            if isinstance(child, ast.AST):
                yield from _blocks(child, (*scopes, child) if isinstance(child, Scope) else scopes)


def _first_line(node: ast.stmt) -> int:
    """The line on which a statement begins, its decorators included."""
    decorators = node.decorator_list if isinstance(node, Scope) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
