"""What a function of the bank needs of its module: imports, constants, helpers and their own needs.

`autograder.authoring.sources` puts them into a file with the function.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib.util
import io
import re
import symtable
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

Definition = ast.FunctionDef | ast.ClassDef

TYPE_IGNORE = re.compile(r" +# type: ignore\[.*$")


@dataclass(frozen=True)
class Origin:
    """Where an import has a name from; `name` is None for the module itself."""

    module: str
    name: str | None

    def statement(self, bound: str) -> str:
        """The line that imports it under the name `bound`."""
        if self.name is None:
            plain, line = self.module, f"import {self.module}"
        else:
            plain, line = self.name, f"from {self.module} import {self.name}"
        return line if bound == plain else f"{line} as {bound}"


@dataclass(frozen=True)
class Text:
    """The source of a module, and the statements that bind its top-level names."""

    name: str  # dotted
    lines: tuple[str, ...]
    bound: Mapping[str, ast.stmt]
    imported: Mapping[str, Origin]

    def lines_of(self, node: ast.stmt) -> list[str]:
        """The lines of a statement, without the decorators that put it into the bank."""
        bank = set()
        if isinstance(node, Definition):
            for decorator in node.decorator_list:
                if decorator not in own_decorators(node):
                    bank |= {*range(decorator.lineno, (decorator.end_lineno or 0) + 1)}
        numbers = range(first_line(node), (node.end_lineno or 0) + 1)
        return [self.lines[number - 1] for number in numbers if number not in bank]


@dataclass
class Needs:
    """What a piece of a module refers to, the name that it uses first."""

    helpers: dict[tuple[str, str], tuple[Text, ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Origin] = field(default_factory=dict)
    solution: dict[str, Origin] = field(default_factory=dict)  # the module is a lesson's name


def read(source: str, name: str = "") -> Text:
    """A module's source taken apart."""
    bound: dict[str, ast.stmt] = {}
    imported: dict[str, Origin] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [leaf for target in targets for leaf in ast.walk(target)]
            bound |= {leaf.id: node for leaf in names if isinstance(leaf, ast.Name)}
        elif isinstance(node, ast.Import):
            imported |= {a.asname or a.name: Origin(a.name, None) for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            imported |= {a.asname or a.name: Origin(module, a.name) for a in node.names}
    return Text(name, tuple(source.splitlines()), bound, imported)


@cache
def read_module(name: str) -> Text:
    """The source of a module that can be imported."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None, name
    return read(Path(spec.origin).read_text(encoding="utf-8"), name)


def first_line(node: ast.stmt) -> int:
    """The line on which a statement begins, its decorators included."""
    decorators = node.decorator_list if isinstance(node, Definition) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


# --- what is needed ---


def needs_of(text: Text, node: ast.stmt, *, with_annotations: bool) -> Needs:
    """All that a definition of `text` refers to, and what that refers to in turn."""
    found = Needs()
    _add_needs(found, text, node if with_annotations else without_annotations(node))
    return found


def _add_needs(found: Needs, text: Text, node: ast.stmt) -> None:
    for name in sorted(global_names(ast.unparse(without_bank(node)))):
        _add_name(found, text, name, node)


def _add_name(found: Needs, text: Text, name: str, used_in: ast.stmt) -> None:
    if name in text.bound:
        key, helper = (text.name, name), text.bound[name]
        if helper is not used_in and key not in found.helpers:
            found.helpers[key] = text, helper
            _add_needs(found, text, helper)
        return
    origin = text.imported.get(name)
    if origin is None:
        assert hasattr(builtins, name), f"{text.name}: {name} comes from nowhere"
    elif origin.module == "solutions":  # `from solutions import kv_cache as solution`
        for attribute in attributes_of(used_in, name):
            assert origin.name is not None
            found.solution[f"{name}.{attribute}"] = Origin(origin.name, attribute)
    elif origin.module.startswith("solutions."):
        found.solution[name] = Origin(origin.module.removeprefix("solutions."), origin.name)
    elif origin.module.startswith("."):
        package = text.name.rpartition(".")[0]
        home = read_module(importlib.util.resolve_name(origin.module, package))
        assert origin.name is not None
        _add_name(found, home, origin.name, used_in)
    else:
        found.imports[name] = origin


def global_names(source: str) -> set[str]:
    """The names that some lines use and that neither they nor a function in them bind."""
    names = set()
    tables = [symtable.symtable(source, "", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        at_top = table.get_type() == "module"
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (at_top or symbol.is_global())
        }
    return names


def attributes_of(node: ast.AST, name: str) -> set[str]:
    return {
        leaf.attr
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Attribute)
        and isinstance(leaf.value, ast.Name)
        and leaf.value.id == name
    }


def without_bank(node: ast.stmt) -> ast.stmt:
    """A definition without the decorators that put it into the bank."""
    if not isinstance(node, Definition):
        return node
    bare = copy.copy(node)
    bare.decorator_list = own_decorators(node)
    return bare


def own_decorators(node: Definition) -> list[ast.expr]:
    return [d for d in node.decorator_list if not ast.unparse(d).startswith("bank.")]


def without_annotations(node: ast.stmt) -> ast.stmt:
    if not isinstance(node, ast.FunctionDef):
        return node
    bare = copy.deepcopy(node)
    bare.returns = None
    for argument in ast.walk(bare.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return bare


# --- text ---


@dataclass(frozen=True)
class Parts:
    """The lines of a definition: decorators and header, docstring, body."""

    header: list[str]
    docstring: list[str]
    body: list[str]


def parts(lines: list[str]) -> Parts:
    """Take apart the lines of one definition."""
    (node,) = ast.parse("\n".join(lines)).body
    assert isinstance(node, Definition)
    header = _header_end(lines, node)
    first = node.body[0]
    if ast.get_docstring(node) is None:
        return Parts(lines[:header], [], lines[header:])
    return Parts(lines[:header], lines[header : first.end_lineno], lines[first.end_lineno :])


def _header_end(lines: list[str], node: Definition) -> int:
    """How many lines there are up to the colon."""
    depth = 0
    readline = io.StringIO("\n".join(lines[node.lineno - 1 :])).readline
    for token in tokenize.generate_tokens(readline):
        depth += (token.string in "([{") - (token.string in ")]}") if token.string else 0
        if token.string == ":" and depth == 0:
            return node.lineno - 1 + token.start[0]
    raise AssertionError(f"{node.name} has no colon")


def renamed(lines: list[str], new_names: Mapping[str, str]) -> list[str]:
    """The lines of one statement with other names; `new_names` may hold "module.attribute" too."""
    source = "\n".join(lines)
    tree = ast.parse(source)
    changes: list[tuple[int, int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            new = new_names.get(ast.unparse(node))
            if new is not None:
                assert node.end_col_offset is not None
                changes.append((node.lineno - 1, node.col_offset, node.end_col_offset, new))
    changed = [line.encode() for line in lines]
    for line, start, stop, new in sorted(changes, reverse=True):
        changed[line] = changed[line][:start] + new.encode() + changed[line][stop:]
    top = tree.body[0]
    done = [TYPE_IGNORE.sub("", line.decode()) for line in changed]
    if isinstance(top, Definition) and top.name in new_names:
        keyword = "class" if isinstance(top, ast.ClassDef) else "def"
        old, new = f"{keyword} {top.name}", f"{keyword} {new_names[top.name]}"
        done[top.lineno - 1] = done[top.lineno - 1].replace(old, new, 1)
    return done


def same_arguments(one: ast.FunctionDef, other: ast.FunctionDef) -> bool:
    """Whether two functions take the same arguments, by name, kind and default."""

    def bare(node: ast.FunctionDef) -> str:
        stripped = without_annotations(node)
        assert isinstance(stripped, ast.FunctionDef)
        return ast.unparse(stripped.args)

    return bare(one) == bare(other)


def without_docstring(lines: list[str]) -> list[str]:
    """A helper's lines; what its docstring says is for readers of the bank."""
    if not isinstance(ast.parse("\n".join(lines)).body[0], Definition):
        return lines
    taken = parts(lines)
    blank = bool(taken.docstring) and taken.body[:1] == [""]
    return taken.header + taken.body[blank:]
