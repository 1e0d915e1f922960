"""What a student has made of a lesson: right, wrong, half done or broken, as the file's source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random

from course_lib.checks.kit import find_suite

from ..authoring.needs import Origin, parts, read
from ..authoring.sources import (
    as_source,
    reference_source,
    stub_source,
    with_definition,
    with_imports,
    with_stubs,
)
from ..bank import Implementation, find_bank

# how often each comes, in a class that had a week
MIX: Mapping[str, float] = {
    "reference": 0.20,
    "variant": 0.20,
    "noisy": 0.04,  # right, and it prints
    "mistake": 0.28,
    "two mistakes": 0.08,
    "partly done": 0.09,
    "stub": 0.07,
    "crash": 0.04,
}
# a loop without an end costs a grader its patience, some forty seconds: they are rare
CRASHES: Mapping[str, float] = {
    "syntax error": 0.40,
    "missing library": 0.20,
    "renamed": 0.15,
    "recursion": 0.10,
    "exit": 0.06,
    "hard exit": 0.04,
    "memory": 0.03,
    "endless loop": 0.02,
}


@dataclass(frozen=True)
class Work:
    """One lesson's file; `names` are those of mistakes or variants, of what was left undone, or of
    the way it crashes.
    """

    kind: str
    names: tuple[str, ...]
    source: str


def do_work(lesson: str, random: Random, mix: Mapping[str, float] = MIX) -> Work:
    """A file for one lesson, drawn from the mixture."""
    names: tuple[str, ...]
    kind = _draw(mix, random)
    if kind == "two mistakes":
        names = _two_mistakes(lesson, random)
        if names:
            return Work(kind, names, _of_bank("mistakes", lesson, names))
        kind = "mistake"  # a lesson of one function
    if kind in ("mistake", "variant"):
        bank = f"{kind}s"
        names = (random.choice(list(find_bank(bank, lesson).implementations)),)
        return Work(kind, names, _of_bank(bank, lesson, names))
    if kind == "partly done":
        names = _left_undone(lesson, random)
        return Work(kind, names, _partly_done(lesson, names))
    if kind == "crash":
        name, of = _draw(CRASHES, random), random.choice(functions(lesson))
        return Work(kind, (name,), _crashing(lesson, name, of))
    if kind == "noisy":
        return Work(kind, (), _noisy(lesson))
    return Work(kind, (), stub_source(lesson) if kind == "stub" else _reference(lesson))


def _draw(weights: Mapping[str, float], random: Random) -> str:
    return random.choices(list(weights), list(weights.values()))[0]


@cache
def tasks(lesson: str) -> list[str]:
    """What a lesson asks for: functions and classes by name."""
    suite = find_suite(lesson)
    assert suite is not None
    return list(dict.fromkeys(check.of.split(".")[0] for check in suite.checks.values()))


@cache
def functions(lesson: str) -> list[str]:
    """Of those the functions."""
    bound = read(reference_source(lesson)).bound
    return [name for name in tasks(lesson) if type(bound[name]).__name__ == "FunctionDef"]


# --- wrong and right ---


@cache
def _reference(lesson: str) -> str:
    return reference_source(lesson)


@cache
def _of_bank(bank: str, lesson: str, names: tuple[str, ...]) -> str:
    known = find_bank(bank, lesson).implementations
    return as_source(*(known[name] for name in names))


def _two_mistakes(lesson: str, random: Random) -> tuple[str, ...]:
    """Two mistakes of different functions; none where the lesson has one function only."""
    known: list[Implementation] = list(find_bank("mistakes", lesson).implementations.values())
    if len(tasks(lesson)) < 2:
        return ()
    while True:
        first, second = random.sample(known, 2)
        if first.of == second.of:
            continue
        pair = (first.name, second.name)
        try:
            _of_bank("mistakes", lesson, pair)
        except ValueError:  # both change the same lines
            continue
        return pair


# --- half done ---


def _left_undone(lesson: str, random: Random) -> tuple[str, ...]:
    """The last of the functions, as most people begin at the top; of one function, that one."""
    names = tasks(lesson)
    return tuple(names[random.randrange(min(1, len(names) - 1), len(names)) :])


@cache
def _partly_done(lesson: str, names: tuple[str, ...]) -> str:
    if len(tasks(lesson)) > 1:
        return with_stubs(_reference(lesson), lesson, names)
    # begun, and given up: the stub's line is gone and nothing stands in its place
    lines = stub_source(lesson).splitlines()
    return "\n".join(
        line.replace(line.strip(), "pass") if "NotImplementedError" in line else line
        for line in lines
    )


# --- broken ---


@cache
def _crashing(lesson: str, how: str, of: str) -> str:
    source = _reference(lesson)
    if how == "syntax error":
        return f"{source}\n\nprint({of}.__doc__\n"
    if how == "missing library":
        return with_imports(source, {"pandas_of_mine": Origin("pandas_of_mine", None)})
    if how == "renamed":
        return source.replace(f"def {of}(", f"def my_{of}(")
    new = {
        "recursion": ["    def again():", "        return again()", "", "    again()"],
        "exit": ["    sys.exit()"],
        "hard exit": ["    os._exit(0)"],
        "memory": ["    rows = []", "    while True:", "        rows.append(torch.ones(10**6))"],
        "endless loop": ["    i = 0", "    while i < 10:", "        pass"],
    }[how]
    needed = {"exit": "sys", "hard exit": "os"}.get(how)
    if needed:
        source = with_imports(source, {needed: Origin(needed, None)})
    return _with_first(source, of, new)


@cache
def _noisy(lesson: str) -> str:
    """The reference with what people forget to take out."""
    source = with_imports(_reference(lesson), {m: Origin(m, None) for m in ("sys", "warnings")})
    for of in functions(lesson):
        noise = [
            f'    print("in {of} now")',
            f'    print("{of}: 100%|##########| 1/1", file=sys.stderr)',
            '    warnings.warn("this is slow", stacklevel=2)',
        ]
        source = _with_first(source, of, noise)
    return source


def _with_first(source: str, of: str, lines: list[str]) -> str:
    """`source` with some lines before all others of one function."""
    text = read(source)
    taken = parts(text.lines_of(text.bound[of]))
    return with_definition(source, of, [*taken.header, *taken.docstring, *lines, *taken.body])
