"""The worked examples in the docstrings of `solutions/` are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

SOLUTIONS = Path(__file__).resolve().parents[1] / "solutions"
MODULES = sorted(path.stem for path in SOLUTIONS.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", MODULES)
def test_every_solution_module_has_worked_examples_and_they_hold(name: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(f"solutions.{name}"))
    assert attempted > 0, f"solutions/{name}.py shows no worked example"
    assert failed == 0, "see the captured output above"
