"""The repository's own rules: pinned versions, sizes, and files that speak of the course alone."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

LARGEST_FILE = 10_000_000

# traces of the machine that somebody worked on, or of how the work was shared out
MACHINE_PATH = re.compile(r"/(?:work|farm|root)/")
WORKING_WORDS = re.compile(r"\b(?:sub[-]?agent|C[E]O|before[-]stop)\b")


def tracked_files() -> list[Path]:
    """Every file that git tracks and that is there."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [path for name in names if name and (path := ROOT / name).is_file()]


def requirements() -> list[Requirement]:
    """Everything that pyproject.toml asks for, extras included."""
    project = PYPROJECT["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(line) for group in groups for line in group]


def pins() -> dict[str, str]:
    """The version of each package in constraints.txt, by its normalised name."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.!]*)", line)
        assert match, f"constraints.txt: {line!r} is not one package at one public version"
        found[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    return found


@pytest.mark.parametrize("pattern", [MACHINE_PATH, WORKING_WORDS], ids=["paths", "words"])
def test_files_speak_of_the_course_alone(pattern: re.Pattern[str]) -> None:
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # weights and pictures
        for number, line in enumerate(text.splitlines(), 1):
            if match := pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    assert found == []


def test_the_patterns_find_what_they_are_for() -> None:
    for path in ("work", "farm", "root"):
        assert MACHINE_PATH.search(f"see /{path}/x")
    for word in ("sub" + "agent", "CE" + "O", "before" + "-stop"):
        assert WORKING_WORDS.search(f"the {word} said")
    assert not MACHINE_PATH.search("a workspace/ and framework/")
    assert not WORKING_WORDS.search("CEOs")


def test_no_tracked_file_is_large() -> None:
    large = {
        str(path.relative_to(ROOT)): path.stat().st_size
        for path in tracked_files()
        if path.stat().st_size > LARGEST_FILE
    }
    assert large == {}


def test_nothing_that_is_ignored_is_tracked() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout == ""


def test_every_constraint_is_one_exact_public_version() -> None:
    found = pins()
    assert len(found) > 100
    for version in found.values():
        assert Version(version).local is None


@pytest.mark.parametrize("requirement", requirements(), ids=lambda requirement: requirement.name)
def test_every_requirement_is_pinned_inside_its_range(requirement: Requirement) -> None:
    name = re.sub(r"[-_.]+", "-", requirement.name).lower()
    assert name in pins(), f"constraints.txt has no {name}"
    assert requirement.specifier.contains(pins()[name])


def test_every_pinned_version_installs_on_the_oldest_python() -> None:
    """Debian 12 has Python 3.11.2; a pin once wanted 3.11.5, and nothing could be installed."""
    refusing = []
    for name, version in pins().items():
        try:
            pinned = distribution(name)
        except PackageNotFoundError:
            continue  # only other systems need it
        if "3.11.0" not in SpecifierSet(pinned.metadata.get("Requires-Python", "")):
            refusing.append(f"{name}=={version}")
    assert refusing == []


def test_ruff_knows_every_stub_module() -> None:
    ignores = PYPROJECT["tool"]["ruff"]["lint"]["per-file-ignores"]
    (pattern,) = (key for key, rules in ignores.items() if rules == ["F401"])
    named = re.fullmatch(r"course_lib/\{(.*)\}\.py", pattern)
    assert named
    modules = {path.stem for path in (ROOT / "solutions").glob("*.py")} - {"__init__"}
    assert set(named[1].split(",")) == modules


def test_every_make_target_is_declared_and_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    explained = re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE)
    assert sorted(phony[1].split()) == sorted(explained)
    targets = re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE)
    assert sorted(targets) == sorted(explained)


def test_continuous_integration_runs_what_make_test_and_make_test_browser_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.findall(r"^make ([a-z-]+)", script.read_text(), re.MULTILINE) == [
        "test",
        "test-browser",
    ]
    assert "run: .ci/run\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
