"""course_lib/given/lessons.py: number and title of a lesson, read from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from course_lib.given import lessons

ALL = [
    "training",
    "temperature",
    "top_k",
    "top_p",
    "sampling",
    "repetition",
    "kv_cache",
    "generate",
]


def test_a_lesson_has_its_number() -> None:
    assert [lessons.number(name) for name in ALL] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_heading_is_number_and_title() -> None:
    assert lessons.heading("top_k") == "Lesson 3: top-k, a short list of fixed length"
    assert all(lessons.heading(name).startswith(f"Lesson {n}: ") for n, name in enumerate(ALL, 1))


def test_a_lesson_without_module_has_its_name_for_heading() -> None:
    assert lessons.heading("much_faster") == "much faster"
    assert lessons.number("much_faster") == 99


def test_a_file_that_is_no_python_at_all_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "top_k.py").write_bytes(b"\xff\x00 not python")
    monkeypatch.setattr(lessons, "COURSE_LIB", tmp_path)
    assert lessons.heading("top_k") == "top k"


@pytest.mark.parametrize(
    "word",
    [
        *("top_k", "3", "03", "03_top_k", "top_k.py", "course_lib/top_k.py", "03_top_k.ipynb"),
        *("./course_lib/top_k.py", "course_lib\\top_k.py", "/home/me/workspace/03_top_k.ipynb"),
    ],
)
def test_a_lesson_is_found_by_any_of_its_names(word: str) -> None:
    assert lessons.find_lesson(word, ALL) == "top_k"


def test_an_unknown_lesson_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no lesson 'top_q': take one of training, temperature"):
        lessons.find_lesson("top_q", ALL)


def test_a_file_written_anew_keeps_the_number_of_its_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course_lib = tmp_path / "course_lib"
    course_lib.mkdir()
    (course_lib / "top_k.py").write_text("def top_k_filter(): ...\n", encoding="utf-8")
    notebook = tmp_path / "03_top_k.ipynb"
    monkeypatch.setattr(lessons, "COURSE_LIB", course_lib)
    for text in ("{}", "<<<<", '{"cells": [{"source": ["# Mine\\n"]}]}'):
        notebook.write_text(text, encoding="utf-8")
        assert lessons.number("top_k") == 3
        assert lessons.heading("top_k") == "Lesson 3: top k"
    cells = '{"cells": [{"source": ["# Lesson 3: top-k, a short list\\n", "Text."]}]}'
    notebook.write_text(cells, encoding="utf-8")
    assert lessons.heading("top_k") == "Lesson 3: top-k, a short list"
