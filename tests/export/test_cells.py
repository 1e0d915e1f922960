"""Cells that no spreadsheet works out, and that come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.errors import CourseError
from autograder.export.cells import number, plain, read_table, safe, write_table

# weighted towards what could go wrong
TEXTS = st.text() | st.text(alphabet="=+-@\t\r\n'\",; ＝\x00\ufeffa0")


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@sum(a1)", "\t=1", "\r=1", "\n=1", " =1", "\u2003@x", "＝1+1"]
)
def test_a_cell_that_begins_like_a_formula_is_text(text: str) -> None:
    assert safe(text) == f"'{text}"


@pytest.mark.parametrize("text", ["00123", "a=b", "Ada", "", "7.5", "李雷", "x,y"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert safe(text) == text


@given(TEXTS)
def test_every_text_comes_back_and_no_cell_is_a_formula(text: str) -> None:
    cell = safe(text)
    assert plain(cell) == text
    assert not cell.lstrip().startswith(tuple("=+-@＝＋－＠"))
    assert not cell.startswith(("\t", "\r", "\n"))


@given(st.lists(st.lists(TEXTS, min_size=1, max_size=4), max_size=5), st.booleans())
def test_every_table_comes_back(rows: list[list[str]], bom: bool) -> None:
    assert read_table(write_table(rows, bom=bom)) == rows


def test_every_cell_is_quoted_and_every_line_ends_alike() -> None:
    assert write_table([["a", 'b"c'], ["", "d;=e"]], bom=False) == (b'"a","b""c"\r\n"","d;=e"\r\n')
    assert write_table([["a"]], bom=True) == b'\xef\xbb\xbf"a"\r\n'


def test_numbers_are_short() -> None:
    assert [number(x) for x in (7.0, 7.5, 0.0, -0.001, 2.25, 100.0, -1.5)] == [
        "7", "7.5", "0", "0", "2.25", "100", "-1.5",
    ]  # fmt: skip


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(CourseError, match="no CSV in UTF-8"):
        read_table(b'"a"b"\r\n')
    with pytest.raises(CourseError, match="no CSV in UTF-8"):
        read_table(b"\xff\xfe")
