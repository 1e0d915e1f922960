"""Due dates and penalties, at the hours at which clocks really changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from autograder.errors import CourseError
from autograder.late import DueDates, Lateness, Policy, When, at, read_due_dates

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
LESSONS = ["training", "top_k"]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def written(folder: Path, text: str) -> DueDates:
    path = folder / "due.toml"
    path.write_text(text)
    return read_due_dates(path, LESSONS)


def policy(due: str, zone: ZoneInfo = BERLIN, **settings: Any) -> Policy:
    return Policy(at(datetime.fromisoformat(due), zone), zone, percent=10, **settings)


# --- moments ---


def test_a_clock_time_that_spring_leaves_out_is_the_later_reading() -> None:
    # in Berlin clocks went from 2:00 to 3:00 on 29 March 2026; in New York on 8 March
    assert at(datetime(2026, 3, 29, 2, 30), BERLIN).astimezone(UTC) == utc("2026-03-29T01:30")
    assert at(datetime(2026, 3, 8, 2, 30), NEW_YORK).astimezone(UTC) == utc("2026-03-08T07:30")


def test_a_clock_time_that_autumn_repeats_is_the_later_one() -> None:
    # in Berlin clocks went from 3:00 to 2:00 on 25 October 2026; in New York on 1 November
    assert at(datetime(2026, 10, 25, 2, 30), BERLIN).astimezone(UTC) == utc("2026-10-25T01:30")
    assert at(datetime(2026, 11, 1, 1, 30), NEW_YORK).astimezone(UTC) == utc("2026-11-01T06:30")


def test_the_same_clock_time_is_another_moment_in_winter() -> None:
    assert policy("2026-07-01T23:59").due.astimezone(UTC) == utc("2026-07-01T21:59")
    assert policy("2026-12-01T23:59").due.astimezone(UTC) == utc("2026-12-01T22:59")


# --- lateness ---


def test_the_due_minute_itself_is_on_time() -> None:
    late = policy("2026-11-02T23:59")
    assert late.judge("ada", utc("2026-11-02T22:59")).when is When.ON_TIME
    assert late.judge("ada", utc("2026-11-02T22:59:01")).when is When.LATE


@pytest.mark.parametrize(
    ("due", "received", "days"),
    [
        # the night of 29 March has 23 hours, that of 25 October 25: a day ends by the clock
        ("2026-03-28T23:59", "2026-03-29T21:59", 1),
        ("2026-03-28T23:59", "2026-03-29T22:00", 2),
        ("2026-10-24T23:59", "2026-10-25T22:59", 1),
        ("2026-10-24T23:59", "2026-10-25T23:00", 2),
        # the day's end falls into the hour that is left out, or into the one that comes twice
        ("2026-03-28T02:30", "2026-03-29T01:30", 1),
        ("2026-03-28T02:30", "2026-03-29T01:31", 2),
        ("2026-10-24T02:30", "2026-10-25T01:30", 1),
        ("2026-10-24T02:30", "2026-10-25T01:31", 2),
        # no change of the clocks
        ("2026-11-02T12:00", "2026-11-02T11:01", 1),
        ("2026-11-02T12:00", "2026-11-05T11:00", 3),
        ("2026-11-02T12:00", "2026-11-05T11:01", 4),
    ],
)
def test_days_end_when_the_clock_shows_the_due_hour_again(
    due: str, received: str, days: int
) -> None:
    found = policy(due).judge("ada", utc(received))
    assert (found.units, found.percent) == (days, 10 * days)


def test_hours_pass_at_one_pace_through_a_change_of_the_clocks() -> None:
    late = policy("2026-10-25T01:30", per="hour")
    # from 1:30 summer time to 2:30 winter time it is two hours
    assert late.judge("ada", utc("2026-10-25T01:30")).units == 2
    assert late.judge("ada", utc("2026-10-25T01:31")).units == 3
    late = policy("2026-03-29T01:30", per="hour")
    # from 1:30 winter time to 3:30 summer time it is one
    assert late.judge("ada", utc("2026-03-29T01:30")).units == 1


def test_grace_moves_every_border() -> None:
    late = policy(
        "2026-11-02T12:00",
        grace=timedelta(minutes=15),
        closes=at(datetime(2026, 11, 4, 12), BERLIN),
    )
    assert late.judge("ada", utc("2026-11-02T11:15")).when is When.ON_TIME
    assert late.judge("ada", utc("2026-11-03T11:15")).units == 1
    assert late.judge("ada", utc("2026-11-03T11:16")).units == 2
    assert late.judge("ada", utc("2026-11-04T11:15")).when is When.LATE
    assert late.judge("ada", utc("2026-11-04T11:16")).when is When.CLOSED


def test_the_penalty_stops_at_the_cap_and_closing_takes_all() -> None:
    late = policy("2026-11-02T12:00", at_most=25, closes=at(datetime(2026, 11, 20), BERLIN))
    assert late.judge("ada", utc("2026-11-15T12:00")).penalty(9.5) == 2.38
    assert late.judge("ada", utc("2026-11-21T12:00")).penalty(9.5) == 9.5


def test_an_extension_moves_the_due_date_and_the_close_of_one_student() -> None:
    late = policy(
        "2026-11-02T23:59",
        closes=at(datetime(2026, 11, 9, 23, 59), BERLIN),
        extensions={"007": at(datetime(2026, 11, 5, 23, 59), BERLIN)},
    )
    received = utc("2026-11-05T22:59")
    assert late.judge("007", received).when is When.ON_TIME
    assert late.judge("7", received).units == 3
    assert late.judge("007", utc("2026-11-12T22:59")).when is When.LATE
    assert late.judge("7", utc("2026-11-12T22:59")).when is When.CLOSED


def test_lateness_is_told_in_words() -> None:
    assert Lateness(When.LATE, 20, 2).told() == "2 days late, -20 %"
    assert Lateness(When.LATE, 2.5, 1, "hour").told() == "1 hour late, -2.5 %"
    assert Lateness(When.CLOSED, 100).told() == "closed"


# --- the file ---


def test_a_lesson_without_a_due_date_is_never_late(tmp_path: Path) -> None:
    assert read_due_dates(tmp_path / "due.toml", LESSONS) == DueDates()
    due = written(tmp_path, 'timezone = "UTC"\n[top_k]\ndue = 2026-11-02T12:00:00\n')
    assert due.judge("ada", "training", utc("2027-01-01")).when is When.NO_DUE_DATE
    assert due.judge("ada", "top_k", utc("2027-01-01")).when is When.LATE


def test_a_lesson_may_say_otherwise_than_the_file(tmp_path: Path) -> None:
    due = written(
        tmp_path,
        """
        timezone = "Europe/Berlin"
        percent = 10
        at_most = 50
        [training]
        due = 2026-10-25T02:30:00
        [top_k]
        timezone = "Asia/Kolkata"
        due = 2026-11-02T12:00:00
        percent = 1
        per = "hour"
        [top_k.extensions]
        00123 = 2026-11-03T12:00:00Z
        """,
    )
    assert due.judge("ada", "training", utc("2026-11-25")).percent == 50
    assert due.judge("ada", "top_k", utc("2026-11-02T07:31")).percent == 2
    assert due.judge("00123", "top_k", utc("2026-11-03T12:00")).when is When.ON_TIME
    assert due.unknown(["ada", "00123"]) == []
    assert due.unknown(["ada", "123"]) == ["00123"]


def test_a_due_date_moved_changes_the_penalty_and_not_the_score(tmp_path: Path) -> None:
    text = 'timezone = "UTC"\npercent = 10\n[top_k]\ndue = 2026-11-0{}T12:00:00\n'
    received = utc("2026-11-04T11:00")
    penalties = [
        written(tmp_path, text.format(day)).judge("ada", "top_k", received).penalty(8)
        for day in (1, 2, 3, 4)
    ]
    assert penalties == [2.4, 1.6, 0.8, 0]


GOOD = 'timezone = "UTC"\n[top_k]\ndue = 2026-11-02T12:00:00\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("timezone = ", "no valid TOML"),
        (GOOD.replace("UTC", "Mars/Olympus"), "no timezone 'Mars/Olympus'"),
        (GOOD.replace("UTC", "../../etc"), "no timezone"),
        (GOOD.replace('timezone = "UTC"', ""), "has no timezone"),
        (GOOD.replace("top_k", "top_q"), "no lesson 'top_q': take training, top_k"),
        (GOOD.replace("due =", "deu ="), "no setting 'deu'"),
        ("graec_minutes = 3\n" + GOOD, "no setting 'graec_minutes'"),
        (GOOD.replace("T12:00:00", ""), "no date with a time"),
        (GOOD + "closes = 2026-11-01T12:00:00\n", "closes before it is due"),
        (GOOD + 'per = "week"\n', "neither"),
        (GOOD + "percent = 101\n", "percent = 101 is no number from 0 to 100"),
        (GOOD + "percent = true\n", "percent = True"),
        (GOOD + "extensions = 3\n", "extensions has lines"),
        (GOOD + '[top_k.extensions]\nada = "soon"\n', "extension of ada: soon"),
        ('timezone = "UTC"\n[top_k]\n', "no due date"),
    ],
)
def test_a_slip_in_the_file_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CourseError, match=told) as raised:
        written(tmp_path, text)
    assert "\n" not in str(raised.value)
