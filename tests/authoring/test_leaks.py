"""The class edition, every byte of it: no solution, no hidden check, no canary."""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from autograder.authoring.layout import ROOT, modules, solution_path
from autograder.authoring.proof import hidden_suite
from autograder.authoring.release import release_class
from autograder.authoring.stubs import find_regions
from course_lib.checks.kit import Check, find_suite

HIDDEN = ROOT / "autograder" / "hidden"

# what is searched for is ASCII and at least as long as this, so only such runs of bytes can hold it
SHORTEST = 16
RUN = re.compile(rb"[\t\n\r\x20-\x7e]{%d,}" % SHORTEST)

# lines of solutions that stand elsewhere with good reason: anybody writes them, in any program
# about such things, or a lesson shows them
COMMONPLACE = {
    "began = time.perf_counter()",
    "except StopIteration as end:",
    "ids = torch.cat([ids, token], dim=1)",
    "if attention_mask is None:",
    "probs = logits.softmax(dim=-1)",
    "real = attention_mask.bool()",
    "with torch.inference_mode():",
    # the bug to find in lesson 3 is in the line above it
    "return logits.masked_fill(logits < threshold, -torch.inf)",
    # lesson 5 has two published functions that do this, with the bug elsewhere
    "return logits.argmax(dim=-1, keepdim=True)",
}


def texts_of(data: bytes) -> Iterator[bytes]:
    """The bytes of a file, and what a reader of it would unpack: members of archives, JSON."""
    yield data
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from texts_of(archive.read(name))
    elif data[:1] in (b"{", b"["):
        try:
            told = json.loads(data)
        except ValueError:
            return
        for text in strings(told):
            yield from texts_of(text.encode())


def strings(value: Any) -> Iterator[str]:
    """Every text in JSON data; the lines of a notebook's cell are one text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *strings(item))
    elif isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            yield "".join(value)
        else:
            for item in value:
                yield from strings(item)


def searchable(data: bytes) -> str:
    """All text in a file, line by line without indentation and empty lines."""
    runs = (run.decode("ascii") for text in texts_of(data) for run in RUN.findall(text))
    return "\n".join(line.strip() for run in runs for line in run.splitlines() if line.strip())


def found_in(files: dict[str, bytes], secrets: set[str]) -> list[tuple[str, str]]:
    """Where which of the secrets stands; each is ASCII, its lines without indentation."""
    assert all(len(secret) >= SHORTEST and secret.isascii() for secret in secrets)
    return [
        (path, secret)
        for path, data in files.items()
        for text in [searchable(data)]
        for secret in secrets
        if secret in text
    ]


# --- what must not go out ---


def lines_of_solutions() -> set[str]:
    """Every line of a solution that stands in regions only, and is long enough to say something."""
    inside, outside = set(), set()
    for name in modules():
        source = solution_path(ROOT, name).read_text(encoding="utf-8")
        cut = {
            number
            for region in find_regions(source)
            for number in range(region.begin + 1, region.end)
        }
        for number, line in enumerate(source.splitlines(), start=1):
            (inside if number in cut else outside).add(line.strip())
    # an argument handed on, `top_k=top_k,`, says nothing
    handed_on = {line for line in inside if re.fullmatch(r"(\w+)=\1,", line)}
    lines = inside - outside - handed_on - COMMONPLACE
    return {line for line in lines if len(line) >= 20 and line.isascii()}


def hidden_checks() -> list[Check]:
    return [check for name in modules() for check in hidden_suite(name).checks.values()]


def claims_of_hidden_checks() -> set[str]:
    """What hidden checks claim; a claim that a visible check makes too is no secret."""
    visible = {
        check.claim
        for name in modules()
        for suite in [find_suite(name)]
        if suite is not None
        for check in suite.checks.values()
    }
    return {check.claim for check in hidden_checks() if check.claim.isascii()} - visible


def code_of_hidden_checks() -> set[str]:
    """Every five lines of a hidden check in a row; fewer of them may stand in a visible one."""
    windows = set()
    for path in sorted(HIDDEN.glob("[a-z]*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
                stripped = [line.strip() for line in lines if line.strip()]
                for i in range(max(1, len(stripped) - 4)):
                    windows.add("\n".join(stripped[i : i + 5]))
    return {window for window in windows if window.isascii() and len(window) >= 60}


def canaries() -> set[str]:
    """The strings that stand where nothing may get out, and nowhere else."""
    found: set[str] = set()
    for path in (HIDDEN / "__init__.py", ROOT / "solutions" / "__init__.py"):
        found |= set(re.findall(r"canary-[0-9a-f]{24}", path.read_text(encoding="utf-8")))
    return found


# --- the search ---


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every file of the class edition; what all assignments share is in it once."""
    folder = tmp_path_factory.mktemp("class")
    release_class(folder)
    once: dict[bytes, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            once.setdefault(path.read_bytes(), path.relative_to(folder).as_posix())
    return {path: data for data, path in once.items()}


def test_no_line_of_a_solution_is_in_the_class_edition(edition: dict[str, bytes]) -> None:
    secrets = lines_of_solutions()
    assert len(secrets) > 200
    assert found_in(edition, secrets) == []


def test_no_claim_of_a_hidden_check_is_in_the_class_edition(edition: dict[str, bytes]) -> None:
    secrets = claims_of_hidden_checks()
    assert len(secrets) > 30
    assert found_in(edition, secrets) == []


def test_no_code_of_a_hidden_check_is_in_the_class_edition(edition: dict[str, bytes]) -> None:
    secrets = code_of_hidden_checks()
    assert len(secrets) > 200
    assert found_in(edition, secrets) == []


def test_names_of_hidden_checks_are_in_the_notebooks_only(edition: dict[str, bytes]) -> None:
    """A notebook has their cells, which hold the points and nothing else."""
    names = {check.id for check in hidden_checks()}
    places = {path for path, _ in found_in(edition, names)}
    assert places
    assert all(path.endswith(".ipynb") for path in places)


def test_no_canary_is_in_the_class_edition(edition: dict[str, bytes]) -> None:
    assert len(canaries()) == 2
    assert found_in(edition, canaries()) == []


# --- the search itself is held to account ---


def zipped(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


SECRET = 'if "k" in limits:\nreturn "\\t".join(limits)'
CODE = 'def f():\n    if "k" in limits:\n\n        return "\\t".join(limits)\n'


@pytest.mark.parametrize(
    "data",
    [
        CODE.encode(),
        CODE.replace("\n", "\r\n").encode(),
        json.dumps({"source": CODE}).encode(),
        json.dumps({"cells": [{"source": CODE.splitlines(keepends=True)}]}).encode(),
        json.dumps(json.dumps([CODE])).encode().join([b"[", b"]"]),
        zipped("a.py", CODE.encode()),
        zipped("a.zip", zipped("a.ipynb", json.dumps([CODE]).encode())),
        b"\x00\x9f" * 500 + CODE.encode() + b"\xff" * 500,
    ],
    ids=["file", "windows", "json", "notebook", "json in json", "zip", "zip in zip", "weights"],
)
def test_a_leak_is_found_however_it_is_packed(data: bytes) -> None:
    assert found_in({"file": data}, {SECRET}) == [("file", SECRET)]


def test_each_kind_of_leak_is_found() -> None:
    whole = {
        "solution": solution_path(ROOT, "top_k").read_bytes(),
        "check": (HIDDEN / "top_k.py").read_bytes(),
        "canary": (ROOT / "solutions" / "__init__.py").read_bytes(),
    }
    assert {path for path, _ in found_in(whole, lines_of_solutions())} == {"solution"}
    assert {path for path, _ in found_in(whole, claims_of_hidden_checks())} == {"check"}
    assert {path for path, _ in found_in(whole, code_of_hidden_checks())} == {"check"}
    assert {path for path, _ in found_in(whole, canaries())} == {"canary"}
