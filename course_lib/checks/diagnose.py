"""Why a check failed: another function that is at fault, or a mistake that others made before.

What each known mistake answers in the visible checks lies as data in `known/<lesson>.json`; it is
cut from wrong implementations that are no part of this folder.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..given.lessons import number
from .kit import Result, find_suite, run_check
from .load import load_fresh
from .record import Call, alike

KNOWN = Path(__file__).parent / "known"


@dataclass(frozen=True)
class KnownMistake:
    """A wrong way to write a function: its name, its hint, and its outcomes for each check."""

    name: str
    of: str
    hint: str
    family: str | None
    outcomes: dict[str, list[Any]]  # check id -> outcomes of its calls of the function


def load_known(lesson: str) -> list[KnownMistake]:
    """The known mistakes of a lesson."""
    path = KNOWN / f"{lesson}.json"
    if not path.exists():
        return []
    return [KnownMistake(**entry) for entry in unpack(json.loads(path.read_text("utf-8")))]


def unpack(data: dict[str, Any]) -> list[dict[str, Any]]:
    """What a file of known mistakes says, an entry a mistake.

    Most mistakes answer most checks alike, so the file lists the answers to each check once, and a
    mistake has their places in those lists, check by check; none where it was not called.
    """
    answers = data["answers"]
    return [
        {
            **entry,
            "outcomes": {
                check: answers[check][place]
                for check, place in zip(answers, entry["outcomes"], strict=True)
                if place is not None
            },
        }
        for entry in data["mistakes"]
    ]


def calls_of(function: str, calls: Sequence[Call]) -> list[Call]:
    """The calls of a function; of a class also those of its methods."""
    root = function.split(".")[0]
    return [call for call in calls if call.function.split(".")[0] == root]


def outcomes_of(function: str, results: Sequence[Result]) -> dict[str, list[Any]]:
    """The outcomes of a function's calls, check by check."""
    found = {r.id: [call.outcome for call in calls_of(function, r.calls)] for r in results}
    return {name: outcomes for name, outcomes in found.items() if outcomes}


def known_mistake(
    lesson: str, function: str, results: Sequence[Result], *, careless: bool = False
) -> KnownMistake | None:
    """The one known mistake whose answers are those of the learner in every call of the function.

    Where several agree, one of them if they are declared to be of one family, else none: a wrong
    hint is worse than no hint. With `careless`, calls with a wrong argument, which should raise,
    are left out: many a learner makes a known mistake and has not thought of wrong arguments yet.
    """
    look = without_refusals if careless else dict
    answers = look(outcomes_of(function, results))
    agreeing = [
        mistake
        for mistake in load_known(lesson)
        if mistake.of == function.split(".")[0] and same_answers(answers, look(mistake.outcomes))
    ]
    families = {mistake.family or mistake.name for mistake in agreeing}
    return agreeing[0] if len(families) == 1 else None


def without_refusals(outcomes: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The outcomes of the calls with right arguments."""
    right = {name: [o for o in made if "refusal" not in o] for name, made in outcomes.items()}
    return {name: made for name, made in right.items() if made}


def same_answers(answers: dict[str, list[Any]], known: dict[str, list[Any]]) -> bool:
    return answers.keys() == known.keys() and all(
        alike(answers[name], known[name]) for name in answers
    )


def earlier_fault(lesson: str, function: str, folder: Path) -> str | None:
    """The sentence that names an earlier lesson's function which fails its own checks, if one does.

    Looked at are those that the learner's `function` uses, and what they use in turn.
    """
    for earlier, name in earlier_functions(lesson, function.split(".")[0], folder):
        suite = find_suite(earlier)
        if suite is None:
            continue
        deeper = earlier_fault(earlier, name, folder)
        if deeper is not None:
            return deeper
        try:
            student = load_fresh(earlier, folder)
        except (Exception, SystemExit):
            return f"course_lib/{earlier}.py does not load; mend it first"
        own = [check for check in suite.checks.values() if check.of.split(".")[0] == name]
        if not all(run_check(check, student).passed for check in own):
            return f"`{name}` (lesson {number(earlier)}) fails its own checks; mend it first"
    return None


def helper_fault(
    function: str,
    called: Iterable[str],
    results: Sequence[Result],
    used: Callable[[str], set[str]],
) -> str | None:
    """The sentence that names a function of the same lesson which the learner's `function` uses and
    which fails its own checks, if one does; `results` are those of all checks of the lesson, and
    `used` tells the names that a function or method uses.

    What else the check `called`, such as a cache that it hands over, is used too. Of a class only
    the methods count that were called: a wrong `append` is not to be blamed on what `attend` uses.
    """
    own = function.split(".")[0]
    others = {name.split(".")[0] for name in called} - {own}
    methods = {name for name in called if name.startswith(f"{own}.")}
    users = methods | {f"{own}.__init__"} if methods else {own}
    failing = {result.of.split(".")[0] for result in results if not result.passed}
    failing &= others.union(*map(used, users)) - {own}
    for name in sorted(failing):
        # what the others build on comes first
        if not failing & (used(name) - {name}):
            return f"`{name}`, which `{function}` uses, fails its own checks; mend it first"
    return None


def earlier_functions(lesson: str, function: str, folder: Path) -> list[tuple[str, str]]:
    """(lesson, name) of what a learner's function uses of its sibling files.

    Helpers that the learner wrote beside it are looked through.
    """
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(parsed(lesson, folder))
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
        for alias in node.names
    }
    return [imported[name] for name in sorted(used_names(lesson, function, folder) & set(imported))]


def used_names(lesson: str, function: str, folder: Path) -> set[str]:
    """What a function, class or method of the learner's file uses, and what these use in turn."""
    return reached(function, uses(parsed(lesson, folder)))


def uses(tree: ast.Module) -> dict[str, set[str]]:
    """The names that each function, class and method of a file uses; `KVCache.append` for a method
    of its own class.
    """
    found: dict[str, set[str]] = {}
    for name, definition in definitions(tree.body).items():
        holder, used = name.partition(".")[0], set()
        for node in without_annotations(definition):
            if isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
                used.add(f"{holder}.{node.attr}")
        found[name] = used
    return found


def reached(function: str, direct: Mapping[str, set[str]]) -> set[str]:
    """The names that a function uses, and those that these use."""
    found: set[str] = set()
    waiting = [function]
    while waiting:
        new = direct.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def definitions(body: Sequence[ast.stmt], holder: str = "") -> dict[str, ast.AST]:
    """Functions, classes and their methods by name, such as `KVCache.append`."""
    found: dict[str, ast.AST] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[holder + node.name] = node
        if isinstance(node, ast.ClassDef):
            found |= definitions(node.body, f"{node.name}.")
    return found


def without_annotations(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it but for annotations: to name the type of an argument is no use."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from without_annotations(child)


def parsed(lesson: str, folder: Path) -> ast.Module:
    """The learner's file as a tree; an empty one where it cannot be read."""
    try:
        return ast.parse((folder / f"{lesson}.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return ast.Module(body=[], type_ignores=[])
