"""A stub holds everything of a solution but what the learner is to write."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from autograder.authoring.stubs import cut_stub, cut_stubs, stale_stubs, write_stubs
from autograder.errors import CourseError
from tests.authoring.small_course import TOP_K, write_files


def cut(source: str) -> str:
    return cut_stub(dedent(source), 3, "solutions/top_k.py")


def test_a_region_becomes_one_line_that_raises() -> None:
    assert cut_stub(TOP_K, 3) == dedent(
        '''\
        """Lesson 3: keep the best."""

        import math


        def top_k_filter(values: list[float], k: int) -> list[float]:
            """Keep the k best."""
            raise NotImplementedError("lesson 3: top_k_filter is yours to write")
        '''
    )


def test_the_stub_of_a_method_names_its_class() -> None:
    stub = cut(
        """\
        class KVCache:
            def append(self):
                ### BEGIN SOLUTION
                return 1
                ### END SOLUTION

            def attend(self):
                return self.append()
        """
    )
    assert 'raise NotImplementedError("lesson 3: KVCache.append is yours to write")' in stub
    assert "return self.append()" in stub


def test_every_region_of_a_function_is_cut_and_the_rest_stays() -> None:
    stub = cut(
        """\
        def f(x):
            ### BEGIN SOLUTION
            x = x + 1
            ### END SOLUTION
            given = x
            with open(given):
                ### BEGIN SOLUTION
                y = 2

                # and a word on it
                z = 3
                ### END SOLUTION
            return given
        """
    )
    assert stub == dedent(
        """\
        def f(x):
            raise NotImplementedError("lesson 3: f is yours to write")
            given = x
            with open(given):
                raise NotImplementedError("lesson 3: f is yours to write")
            return given
        """
    )


def test_a_helper_between_two_functions_goes_without_a_gap() -> None:
    stub = cut(
        """\
        def f():
            ### BEGIN SOLUTION
            return _one()
            ### END SOLUTION


        ### BEGIN SOLUTION
        @decorated
        def _one():
            return 1


        class _Two:
            pass


        ### END SOLUTION


        def g():
            return 2
        """
    )
    assert stub == dedent(
        """\
        def f():
            raise NotImplementedError("lesson 3: f is yours to write")


        def g():
            return 2
        """
    )


def test_a_marker_in_a_string_is_none() -> None:
    stub = cut(
        '''\
        def f():
            """Tell.

            ### BEGIN SOLUTION
            """
            ### BEGIN SOLUTION
            return "### END SOLUTION"
            ### END SOLUTION
        '''
    )
    assert stub.count("### BEGIN SOLUTION") == 1
    assert "return" not in stub


FAULTS = {
    "has no ### BEGIN SOLUTION": """\
        def f():
            return 1
        """,
    "line 2: the region is never closed": """\
        def f():
            ### BEGIN SOLUTION
            return 1
        """,
    "line 3: a region begins inside the one of line 2": """\
        def f():
            ### BEGIN SOLUTION
            ### BEGIN SOLUTION
            return 1
            ### END SOLUTION
            ### END SOLUTION
        """,
    "line 3: ### END SOLUTION without a ### BEGIN": """\
        def f():
            return 1
            ### END SOLUTION
        """,
    "line 2: the region is empty": """\
        def f():
            ### BEGIN SOLUTION
            # nothing but a word
            ### END SOLUTION
            return 1
        """,
    "line 1: the region is outside of a function": """\
        ### BEGIN SOLUTION
        LIMIT = 3
        ### END SOLUTION
        """,
    "line 2: the region is in class C but in none": """\
        class C:
            ### BEGIN SOLUTION
            def f(self):
                return 1
            ### END SOLUTION
        """,
    "line 2: indent ### BEGIN SOLUTION and ### END": """\
        def f():
        ### BEGIN SOLUTION
            return 1
        ### END SOLUTION
        """,
    "line 2: the region begins above the docstring of f": '''\
        def f():
            ### BEGIN SOLUTION
            """Tell."""
            return 1
            ### END SOLUTION
        ''',
    "line 3: the region cuts through a statement": """\
        def f(x):
            if x:
                ### BEGIN SOLUTION
                y = 1
            else:
                ### END SOLUTION
                y = 2
            return y
        """,
    "line 4: indent ### BEGIN SOLUTION": """\
        def f(x):
            if x:
                y = 1
                ### BEGIN SOLUTION
                y = 2
            z = 3
                ### END SOLUTION
            return y
        """,
    "line 3: the region cuts": """\
        def f(x):
            y = (1,
            ### BEGIN SOLUTION
            2)
            z = 3
            ### END SOLUTION
            return y
        """,
    "line 2: '### BEGIN SOLUTIONS' is no marker": """\
        def f():
            ### BEGIN SOLUTIONS
            return 1
            ### END SOLUTIONS
        """,
    "line 2: '# begin solution' is no marker": """\
        def f():
            # begin solution
            return 1
            # end solution
        """,
    "line 2: '### BEGIN SOLUTION' is no marker": """\
        def f():
            x = 1  ### BEGIN SOLUTION
            return x
            ### END SOLUTION
        """,
    "is no valid Python": """\
        def f(:
            ### BEGIN SOLUTION
        """,
}


@pytest.mark.parametrize("told", FAULTS)
def test_a_faulty_region_is_told_with_file_and_line(told: str) -> None:
    with pytest.raises(CourseError) as caught:
        cut(FAULTS[told])
    message = str(caught.value)
    assert message.startswith("solutions/top_k.py")
    assert told in message
    assert "\n" not in message


def test_all_stubs_are_cut_with_their_lesson_numbers(course: Path) -> None:
    stubs = cut_stubs(course)
    assert "lesson 3: top_k_filter" in stubs["top_k"]
    assert "lesson 4: top_p_filter" in stubs["top_p"]


def test_a_changed_solution_makes_its_stub_stale_and_writing_mends_it(course: Path) -> None:
    assert stale_stubs(course) == []
    write_files(course, {"solutions/top_k.py": TOP_K.replace("the k best", "the best k")})
    assert stale_stubs(course) == ["top_k"]
    assert write_stubs(course) == ["top_k"]
    assert stale_stubs(course) == []


def test_a_missing_or_edited_stub_is_stale(course: Path) -> None:
    (course / "course_lib/top_k.py").unlink()
    (course / "course_lib/top_p.py").write_text("mine = 1\n", encoding="utf-8")
    assert stale_stubs(course) == ["top_k", "top_p"]
