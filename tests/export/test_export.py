"""Grades out, and in again."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.errors import CourseError
from autograder.export.canvas import as_canvas
from autograder.export.data import as_json, read_json
from autograder.export.moodle import as_moodle
from autograder.export.rows import ByHand, Row, as_row
from autograder.export.table import as_csv, read_csv
from autograder.judge.verdict import CAUSES, CheckVerdict, LessonVerdict
from autograder.late import DueDates, Policy
from autograder.records import Record

SLUGS = {"training": "01_training", "top_k": "03_top_k"}
RECEIVED = datetime(2026, 11, 2, 12, tzinfo=UTC)


def record(student: str, lesson: str = "top_k", earned: float = 7.5) -> Record:
    checks = [
        CheckVerdict(
            f"{lesson}-a", False, "f", "does a", 8, earned, "" if earned == 8 else "raised"
        ),
        CheckVerdict(f"{lesson}-b", True, "f", "does b", 2, 2),
    ]
    return Record(
        student, lesson, LessonVerdict(lesson, checks), "lock", "ab" * 32, RECEIVED, "cd" * 32
    )


def rows_of(*records: Record, due: DueDates | None = None, **by_hand: ByHand) -> list[Row]:
    given = {(student, "top_k"): points for student, points in by_hand.items()}
    return [as_row(record, SLUGS[record.lesson], due or DueDates(), given) for record in records]


def cells(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


# --- what is told ---


def test_the_penalty_stands_beside_the_raw_score() -> None:
    policy = Policy(RECEIVED - timedelta(days=1, hours=1), ZoneInfo("UTC"), percent=10)
    (row,) = rows_of(record("ada"), due=DueDates({"top_k": policy}))
    assert (row.judged, row.raw, row.penalty, row.score, row.max) == (9.5, 9.5, 1.9, 7.6, 10)
    assert row.late == "2 days late, -20 %"
    assert row.due == policy.due


def test_grades_by_hand_are_added_and_waiting_answers_counted() -> None:
    (row,) = rows_of(record("ada"), ada=ByHand(1.5, 2, 1))
    assert (row.judged, row.by_hand, row.raw, row.score, row.max) == (9.5, 1.5, 11, 11, 12)
    assert row.waiting == 1


def test_a_penalty_takes_of_points_by_hand_too_and_never_gives_any() -> None:
    policy = DueDates({"top_k": Policy(RECEIVED - timedelta(hours=1), ZoneInfo("UTC"), percent=50)})
    (row,) = rows_of(record("ada"), due=policy, ada=ByHand(1.5, 2, 0))
    assert (row.penalty, row.score) == (5.5, 5.5)
    (row,) = rows_of(record("ada"), due=policy, ada=ByHand(-20, 0, 0))
    assert (row.penalty, row.score) == (0, -10.5)


# --- csv ---

NAMES = st.text(min_size=1) | st.sampled_from(
    [
        "00123",
        "=cmd|' /C calc'!A0",
        "+1",
        "-1",
        "@x",
        "\tx",
        "\rx",
        'a,"b"\nc',
        "'",
        "李雷",
        "\ufeffx",
    ]
)
POINTS = st.integers(-400, 4000).map(lambda quarters: quarters / 4)
TIMES = st.datetimes(timezones=st.just(UTC))
ROWS = st.builds(
    Row,
    lesson=NAMES,
    assignment=NAMES,
    student=NAMES,
    received=TIMES,
    due=st.none() | TIMES,
    late=NAMES,
    judged=POINTS,
    by_hand=POINTS,
    penalty=POINTS,
    max=POINTS,
    waiting=st.integers(0, 9),
    sandbox=NAMES,
    submission=st.just("ab" * 32),
    graded_with=st.just("cd" * 32),
)


@given(st.lists(ROWS, max_size=4))
def test_the_table_comes_back_as_it_went(rows: list[Row]) -> None:
    data = as_csv(rows)
    assert read_csv(data) == rows
    for line in cells(data):
        assert not line[2].startswith(tuple("=+-@\t\r"))


def test_the_table_begins_with_the_mark_that_excel_reads() -> None:
    data = as_csv(rows_of(record("Zoë")))
    assert data.startswith(b'\xef\xbb\xbf"assignment","lesson","student_id",')
    assert '"Zoë"' in data.decode()


def test_an_id_keeps_its_leading_zeros() -> None:
    assert cells(as_csv(rows_of(record("00123"))))[1][2] == "00123"


def test_another_table_is_refused() -> None:
    with pytest.raises(CourseError, match="no table of"):
        read_csv(as_canvas(rows_of(record("ada"))))
    with pytest.raises(CourseError, match="no table of"):
        read_csv(b"")


# --- canvas and moodle ---


def test_canvas_finds_its_headings_and_its_row_of_points() -> None:
    """Its importer wants `Student` and `ID` first and `Section` before the first assignment."""
    data = as_canvas(rows_of(record("00123"), record("b", "training", 8)))
    assert not data.startswith(b"\xef\xbb\xbf")
    assert cells(data) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "01_training", "03_top_k"],
        ["    Points Possible", "", "", "", "", "10", "10"],
        ["00123", "", "00123", "00123", "", "", "9.5"],
        ["b", "", "b", "b", "", "10", ""],
    ]


def test_the_points_of_a_column_are_the_most_that_anyone_can_have() -> None:
    rows = rows_of(record("ada"), record("bob"), record("eve"), bob=ByHand(0, 2, 1))
    assert cells(as_canvas(rows))[1][-1] == "12"


def test_canvas_gets_its_own_number_back_where_the_id_is_one() -> None:
    lines = cells(as_canvas(rows_of(record("101"), record("00123")), {"101"}))
    assert [line[:4] for line in lines[2:]] == [
        ["00123", "", "00123", "00123"],
        ["101", "101", "", ""],
    ]


def test_moodle_gets_a_hyphen_where_there_is_no_grade() -> None:
    assert cells(as_moodle(rows_of(record("00123"), record("b", "training", 8)))) == [
        ["ID number", "01_training", "03_top_k"],
        ["00123", "-", "9.5"],
        ["b", "10", "-"],
    ]


@pytest.mark.parametrize("write", [as_canvas, as_moodle, as_csv])
def test_a_name_that_is_a_formula_is_text_in_every_table(
    write: Callable[[list[Row]], bytes],
) -> None:
    data = write(rows_of(record('=HYPERLINK("http://x")')))
    assert not any(cell.startswith("=") for line in cells(data) for cell in line)


def test_scores_that_count_go_out_not_raw_ones() -> None:
    policy = Policy(RECEIVED - timedelta(hours=1), ZoneInfo("UTC"), percent=10)
    rows = rows_of(record("ada"), due=DueDates({"top_k": policy}))
    assert cells(as_canvas(rows))[2][-1] == cells(as_moodle(rows))[1][-1] == "8.55"


# --- json ---

CHECK = st.builds(
    CheckVerdict,
    id=NAMES,
    hidden=st.booleans(),
    of=NAMES,
    claim=NAMES,
    points=POINTS,
    earned=POINTS,
    cause=st.sampled_from(["", *CAUSES]),
    message=st.text(),
    hint=st.text(),
    mistake=st.text(),
)
RECORDS = st.builds(
    lambda student, checks, received: replace(
        record(student), verdict=LessonVerdict("top_k", checks), received=received
    ),
    NAMES,
    st.lists(CHECK, max_size=3),
    TIMES,
)


@given(st.lists(RECORDS, max_size=4))
def test_json_holds_everything(records: list[Record]) -> None:
    assert read_json(as_json(zip(records, rows_of(*records), strict=True))) == records


def test_half_a_character_in_one_message_does_not_stop_the_export_of_all() -> None:
    check = replace(record("ada").verdict.checks[0], message="at line 3: \ud800")
    odd = replace(record("ada"), verdict=LessonVerdict("top_k", [check]))
    (told,) = read_json(as_json([(odd, row) for row in rows_of(odd)]))
    assert told.verdict.checks[0].message == "at line 3: ?"


def test_json_tells_the_grade_that_came_of_it() -> None:
    (row,) = rows_of(record("李雷"))
    (grade,) = json.loads(as_json([(record("李雷"), row)]))["grades"]
    assert (grade["student"], grade["score"], grade["max"], grade["late"]) == (
        "李雷", 9.5, 10, "no due date",
    )  # fmt: skip
    assert grade["checks"][0]["cause"] == "raised"


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"format": "other", "grades": []}', b"\xff"])
def test_other_json_is_refused(data: bytes) -> None:
    with pytest.raises(CourseError, match="no grades in the format"):
        read_json(data)
