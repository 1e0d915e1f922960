"""What comes beside packs: a list of times, and the list of whose a platform's numbers are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from rich.console import Console

from autograder.classroom import Classroom
from autograder.collect import platform_numbers
from autograder.errors import CourseError
from autograder.grade_commands import Handover, run_collect
from autograder.lists import read_roster, read_times
from autograder.submission import read_submission
from tests.grading.packs import LESSON, work, write_folder

BERLIN = ZoneInfo("Europe/Berlin")
MOODLE = "Identifier,Full name,ID number,Email address,Status,Last modified (submission)\n"
CANVAS = "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"


def written(folder: Path, text: str, name: str = "list.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- times ---


@pytest.mark.parametrize(
    "text",
    [
        "student,received\n00042,2026-11-02T23:58+01:00\n",
        "\ufeffstudent;received;IP\r\n00042;2026-11-02 22:58:00Z;10.0.0.1\r\n\r\n",
        'name\tstudent\treceived\n"Doe\nJane"\t 00042 \t2026-11-02T23:58\n',
    ],
)
def test_a_list_of_times_is_read_as_spreadsheets_write_it(tmp_path: Path, text: str) -> None:
    assert read_times(written(tmp_path, text), BERLIN) == {"00042": utc("2026-11-02T22:58")}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("a,2026-11-02T23:58", "line 2: 2026-11-02T23:58 has no offset"),
        ("a,2026-11-02", "line 2: '2026-11-02' is no date with a time"),
        ("a,11/2/2026 23:58", "is no date with a time"),
        ("a,", "line 2: '' is no date with a time"),
        ("a", "line 2: '' is no date with a time"),
        (",2026-11-02T23:58Z", "line 2: a student's id is empty"),
        ("a/b,2026-11-02T23:58Z", "line 2: student id 'a/b' holds '/'"),
        ("a,2026-11-02T23:58Z\na,2026-11-02T23:59Z", "line 3: student 'a' is in line 2 already"),
        ("", "has no lines below its headings"),
    ],
)
def test_a_line_that_cannot_be_meant_is_told_by_its_number(
    tmp_path: Path, line: str, told: str
) -> None:
    with pytest.raises(CourseError) as error:
        read_times(written(tmp_path, f"student,received\n{line}\n"), None)
    assert told in str(error.value)


def test_all_lines_that_are_wrong_are_told_at_once(tmp_path: Path) -> None:
    lines = "".join(f"s{number},soon\n" for number in range(9))
    with pytest.raises(CourseError, match=r"line 2: .*; line 7: .*; and 3 more$"):
        read_times(written(tmp_path, f"student,received\n{lines}"), None)


def test_an_hour_that_spring_leaves_out_is_refused_and_one_that_comes_twice_is_the_first(
    tmp_path: Path,
) -> None:
    # in Berlin clocks went from 2:00 to 3:00 on 29 March 2026, and from 3:00 to 2:00 on 25 October
    with pytest.raises(CourseError, match="line 2: clocks in Europe/Berlin never show 2026-03-29T"):
        read_times(written(tmp_path, "student,received\na,2026-03-29T02:30\n"), BERLIN)
    twice = written(tmp_path, "student,received\na,2026-10-25T02:30\n")
    assert read_times(twice, BERLIN) == {"a": utc("2026-10-25T00:30")}


@pytest.mark.parametrize("text", ["", "student,time\na,b\n", "Student,received\n"])
def test_a_list_without_its_headings_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(CourseError, match=r"has no column '(student|received)'"):
        read_times(written(tmp_path, text), None)


# --- rosters ---


def test_moodles_worksheet_tells_whose_a_number_is(tmp_path: Path) -> None:
    lines = (
        "Participant 77,Jane Doe,00042,jane@example.org,Submitted,-\n"
        "Teilnehmer/in78,Joe Roe,,joe@example.org,-,-\n"
    )
    expected = {"77": "00042", "78": "joe@example.org"}
    assert read_roster(written(tmp_path, MOODLE + lines)) == expected


def test_canvas_gradebook_tells_whose_a_number_is(tmp_path: Path) -> None:
    lines = '"Doe, Jane",101,00042,jane,A\n"Student, Test",102,,,A\n"Roe, Joe",103,,joe,A\n'
    assert read_roster(written(tmp_path, CANVAS + lines)) == {"101": "00042", "103": "joe"}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("1,a\n1,b\n", "line 3: number '1' is in line 2 already"),
        ("1,a\n2,a\n", "line 3: student 'a' is number 1 as well"),
        ("one,a\n", "line 2: 'one' is no number"),
        ("1,<a>\n", "line 2: student id '<a>' holds"),
    ],
)
def test_two_students_are_never_made_one(tmp_path: Path, lines: str, told: str) -> None:
    with pytest.raises(CourseError, match=told):
        read_roster(written(tmp_path, f"number,student\n{lines}"))


# --- collect ---


def collected(path: Path, **told: object) -> str:
    """What the command says; after a refusal its last line is the error's."""
    console = Console(file=StringIO(), width=300)
    try:
        run_collect(console, [path], Handover(**told))  # type: ignore[arg-type]
    except CourseError as error:
        console.print(str(error), markup=False)
    said = console.file
    assert isinstance(said, StringIO)
    return said.getvalue()


def received(classroom: Classroom, student: str) -> datetime:
    return read_submission(classroom, student, LESSON).received


def test_each_pack_of_a_folder_gets_its_time(classroom: Classroom, tmp_path: Path) -> None:
    for student in ("ada", "bob", "eve"):
        write_folder(tmp_path / "in" / student, work())
    (classroom.root / "due.toml").write_text('timezone = "Europe/Berlin"\n')
    times = "student,received\nada,2026-11-02T23:58\nbob,2026-11-03T00:01+00:00\nzoe,2026-11-02T1:0"
    said = collected(tmp_path / "in", times=written(tmp_path, times.replace("T1:0", "T01:00")))
    assert received(classroom, "ada") == utc("2026-11-02T22:58")
    assert received(classroom, "bob") == utc("2026-11-03T00:01")
    assert not (classroom.submitted / "eve").exists()
    assert "refused eve: no time is listed: add a line, or collect it alone" in said
    assert "1 with a time and without a pack: zoe" in said
    assert "1 of 3 packs refused" in said


def test_an_empty_inbox_is_nobody_s_pack(classroom: Classroom, tmp_path: Path) -> None:
    write_folder(tmp_path / "in/ada", work())
    (tmp_path / "in/bob").mkdir()
    said = collected(tmp_path / "in")
    assert "1 taken in" in said
    assert "bob" not in said


def test_a_list_of_times_may_come_after_the_packs(classroom: Classroom, tmp_path: Path) -> None:
    """Whoever collected without one collects again; what was handed in later stays as it was."""
    write_folder(tmp_path / "in/ada", work())
    collected(tmp_path / "in")
    late = received(classroom, "ada")
    times = written(tmp_path, "student,received\nada,2026-11-02T22:58Z\n")
    said = collected(tmp_path / "in", times=times)
    assert "ada: top_k" in said and "received 2026-11-02 22:58 UTC already: top_k" in said
    assert received(classroom, "ada") == utc("2026-11-02T22:58")
    receipts = (classroom.kept / "receipts/03_top_k").rglob("*.json")
    assert any(f'"moved_from": "{late.isoformat()}"' in path.read_text() for path in receipts)
    # the same once more, a day later, is no reason to be late
    later = (utc("2026-11-02T22:58") + timedelta(days=1)).isoformat()
    assert "unchanged: top_k" in collected(tmp_path / "in", received=later)
    assert received(classroom, "ada") == utc("2026-11-02T22:58")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"received": "2026-11-02T23:58"}, "--received: 2026-11-02T23:58 has no offset"),
        ({"received": "soon"}, "--received: 'soon' is no date with a time"),
        ({"received": "2026-11-02T23:58Z", "times": Path("list.csv")}, "--times has one for each"),
        ({"times": Path("no such.csv")}, "no such.csv cannot be read: No such file"),
    ],
)
def test_a_time_that_cannot_be_meant_takes_nothing_in(
    classroom: Classroom, tmp_path: Path, told: dict[str, object], why: str
) -> None:
    write_folder(tmp_path / "in/ada", work())
    assert why in collected(tmp_path / "in", **told)
    assert not classroom.submitted.exists()


def test_moodles_numbers_become_ids_and_those_without_a_line_are_named(
    classroom: Classroom, tmp_path: Path
) -> None:
    for number, name in ((77, "Jane Doe"), (78, "Joe Roe")):
        write_folder(tmp_path / "in" / f"{name}_{number}_assignsubmission_file_", work())
    write_folder(tmp_path / "in/79", work())  # no name of a platform: an id as it is
    roster = written(tmp_path, f"{MOODLE}Participant 77,Jane Doe,00042,jane@example.org\n")
    said = collected(tmp_path / "in", roster=roster)
    assert sorted(path.name for path in classroom.submitted.iterdir()) == ["00042", "79"]
    assert "00042 (Jane Doe): top_k" in said
    assert "refused 78: the roster has no number 78: add a line for 'Joe Roe'" in said
    assert "Moodle gave" not in said
    assert platform_numbers(classroom, "Moodle") == set()


def test_a_number_that_nobody_explained_is_told_and_kept_apart(
    classroom: Classroom, tmp_path: Path
) -> None:
    write_folder(tmp_path / "in/Jane Doe_77_assignsubmission_file_", work())
    said = collected(tmp_path / "in")
    assert "1 id is a number that Moodle gave for this assignment alone" in said
    assert platform_numbers(classroom, "Moodle") == {"77"}
    assert platform_numbers(classroom, "Canvas") == set()
