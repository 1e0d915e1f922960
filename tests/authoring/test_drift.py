"""What is committed is what the sources give."""

from __future__ import annotations

import re

import pytest

from autograder.authoring.layout import ROOT, modules
from autograder.authoring.notebooks import WIDGET_VIEW, stale_notebooks
from autograder.authoring.stubs import cut_stubs, stale_stubs


def test_the_stubs_are_cut_from_the_solutions() -> None:
    assert stale_stubs() == [], "run `make stubs`"


def test_the_notebooks_are_built_from_their_sources() -> None:
    assert stale_notebooks() == [], "run `make lessons`"


def test_the_eight_modules_are_the_eight_lessons() -> None:
    assert modules() == {
        "training": 1,
        "temperature": 2,
        "top_k": 3,
        "top_p": 4,
        "sampling": 5,
        "repetition": 6,
        "kv_cache": 7,
        "generate": 8,
    }


@pytest.mark.parametrize("name", list(modules()))
def test_a_stub_says_what_it_is_and_leaves_something_to_write(name: str) -> None:
    stub = cut_stubs()[name]
    assert stub.startswith(f'"""Lesson {modules()[name]}: ')
    assert "is yours to write" in stub


def test_the_notebooks_show_nothing_of_the_machine_that_built_them() -> None:
    machine = re.compile(rf"{re.escape(str(ROOT))}|/tmp/\w+|site-packages|at 0x[0-9a-f]{{6,}}")
    for notebook in (ROOT / "lessons").glob("*/*.ipynb"):
        text = notebook.read_text(encoding="utf-8")
        assert machine.findall(text) == [], notebook.name
        assert WIDGET_VIEW not in text, notebook.name
