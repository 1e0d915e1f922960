"""Lists of lessons come from the folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.authoring.layout import find_lesson, lessons, modules
from autograder.errors import CourseError
from tests.authoring.small_course import write_files


def test_a_module_without_a_source_has_the_number_of_its_docstring(course: Path) -> None:
    assert modules(course) == {"top_k": 3, "top_p": 4}


def test_modules_are_in_the_order_of_their_lessons(course: Path) -> None:
    write_files(course, {"solutions/attend.py": '"""Lesson 7: attend."""\n'})
    assert list(modules(course)) == ["top_k", "top_p", "attend"]


def test_a_source_without_a_module_is_a_stretch_notebook(course: Path) -> None:
    write_files(course, {"lessons/09_faster.py": "# %%\n1\n"})
    assert [(lesson.slug, lesson.graded) for lesson in lessons(course)] == [
        ("03_top_k", True),
        ("09_faster", False),
    ]


def test_other_files_beside_the_lessons_are_none(course: Path) -> None:
    write_files(course, {"lessons/helper.py": "", "lessons/3_short.py": ""})
    assert [lesson.name for lesson in lessons(course)] == ["top_k"]


def test_a_course_without_any_lesson_has_an_empty_list(tmp_path: Path) -> None:
    assert lessons(tmp_path) == []
    assert modules(tmp_path) == {}


@pytest.mark.parametrize("name", ["03_top_p.py", "05_top_k.py"])
def test_two_lessons_share_neither_number_nor_name(course: Path, name: str) -> None:
    write_files(course, {f"lessons/{name}": ""})
    with pytest.raises(CourseError, match="rename one of them"):
        lessons(course)


def test_source_and_docstring_have_to_agree_on_the_number(course: Path) -> None:
    (course / "lessons/03_top_k.py").rename(course / "lessons/05_top_k.py")
    with pytest.raises(CourseError, match=r"solutions/top_k\.py begins with 'Lesson 3: '"):
        modules(course)


def test_a_module_needs_a_number_from_somewhere(course: Path) -> None:
    write_files(course, {"solutions/extra.py": '"""No number."""\n'})
    with pytest.raises(CourseError, match=r"extra\.py has no lesson number"):
        modules(course)


def test_two_modules_are_not_of_one_lesson(course: Path) -> None:
    write_files(course, {"solutions/extra.py": '"""Lesson 4: again."""\n'})
    with pytest.raises(CourseError, match=r"extra\.py and solutions/top_p\.py are both lesson 4"):
        modules(course)


def test_a_broken_module_is_named_with_its_line(course: Path) -> None:
    write_files(course, {"solutions/extra.py": '"""Lesson 5: x."""\ndef (\n'})
    with pytest.raises(CourseError, match=r"extra\.py, line 2"):
        modules(course)


@pytest.mark.parametrize("word", ["top_k", "03_top_k", "3", "03", "lessons/03_top_k.py"])
def test_a_lesson_is_found_by_any_of_its_names(course: Path, word: str) -> None:
    assert find_lesson(word, course).slug == "03_top_k"


def test_an_unknown_lesson_is_answered_with_the_known_ones(course: Path) -> None:
    with pytest.raises(CourseError, match="no lesson 'top_q': the lessons are top_k"):
        find_lesson("top_q", course)
