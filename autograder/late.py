"""Due dates and penalties, read from `due.toml` and worked out from received times alone.

Nothing runs here: change the file, and the next export or report has the new penalties. The raw
score is never touched; a penalty is told beside it.

    timezone = "Europe/Berlin"
    grace_minutes = 15
    percent = 10
    per = "day"
    at_most = 50

    [top_k]
    due = 2026-11-02T23:59:00
    closes = 2026-11-09T23:59:00

    [top_k.extensions]
    "00123" = 2026-11-05T23:59:00

The settings at the top hold for all lessons; a lesson's table may say otherwise. Times without an
offset are clock times in `timezone`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from .errors import CourseError

FILE = "due.toml"
SETTINGS = ("timezone", "grace_minutes", "percent", "per", "at_most")
TIMES = ("due", "closes", "extensions")
HOUR = timedelta(hours=1)


class When(StrEnum):
    """How a submission stands to its due date."""

    NO_DUE_DATE = "no due date"
    ON_TIME = "on time"
    LATE = "late"
    CLOSED = "closed"  # received after the last moment: it counts nothing


@dataclass(frozen=True)
class Lateness:
    """What one submission's received time means for its score."""

    when: When
    percent: float = 0.0  # of the score that is lost
    units: int = 0  # started days or hours
    per: str = "day"
    due: datetime | None = None  # aware, in the lesson's zone, any extension included

    def penalty(self, score: float) -> float:
        """Points lost of `score`, to the hundredth."""
        return round(score * self.percent / 100, 2)

    def told(self) -> str:
        """In a few words: `2 days late, -20 %`."""
        if self.when is not When.LATE:
            return str(self.when)
        unit = self.per if self.units == 1 else f"{self.per}s"
        return f"{self.units} {unit} late, -{self.percent:g} %"


@dataclass(frozen=True)
class Policy:
    """Due date and penalty of one lesson; `due` and `closes` are aware, in `zone`."""

    due: datetime
    zone: ZoneInfo
    closes: datetime | None = None
    grace: timedelta = timedelta()
    percent: float = 0.0
    per: str = "day"
    at_most: float = 100.0
    extensions: Mapping[str, datetime] = field(default_factory=dict)

    def judge(self, student: str, received: datetime) -> Lateness:
        """How `received` (aware) stands to the due date of `student`."""
        due = self.extensions.get(student, self.due)
        # grace moves every border: the due date, the end of each day, the last moment
        received = received.astimezone(UTC) - self.grace
        if received <= due.astimezone(UTC):
            return Lateness(When.ON_TIME, per=self.per, due=due)
        if self.closes is not None and received > self._closes(due).astimezone(UTC):
            return Lateness(When.CLOSED, 100.0, per=self.per, due=due)
        units = self._units(due, received)
        percent = min(units * self.percent, self.at_most)
        return Lateness(When.LATE, percent, units, self.per, due)

    def _closes(self, due: datetime) -> datetime:
        """The last moment: who has more days until the due date has more days until it too."""
        assert self.closes is not None  # judge asks for it only then
        days = _wall(self.closes) - _wall(self.due)
        return at(_wall(due) + days, self.zone)

    def _units(self, due: datetime, received: datetime) -> int:
        """Started hours, which pass at one pace, or days, which end when the clock says so."""
        if self.per == "hour":
            return ceil((received - due.astimezone(UTC)) / HOUR)
        # one day before what the clocks' difference says: a change of the clocks is an hour or two
        days = max(1, (_wall(received.astimezone(self.zone)) - _wall(due)).days)
        while received > at(_wall(due) + timedelta(days=days), self.zone).astimezone(UTC):
            days += 1
        return days


@dataclass(frozen=True)
class DueDates:
    """The policies of all lessons that have one."""

    policies: Mapping[str, Policy] = field(default_factory=dict)
    zone: ZoneInfo | None = None  # of the lessons that name none themselves

    def judge(self, student: str, lesson: str, received: datetime) -> Lateness:
        """How a submission stands to its due date; `received` is aware."""
        policy = self.policies.get(lesson)
        return policy.judge(student, received) if policy else Lateness(When.NO_DUE_DATE)

    def unknown(self, students: Iterable[str]) -> list[str]:
        """Ids that have an extension and are not among `students`: a slip of the pen, perhaps."""
        given = {student for policy in self.policies.values() for student in policy.extensions}
        return sorted(given - set(students))


def at(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment at which clocks in `zone` show `wall`, aware.

    Where they show it twice (autumn), or never (spring), the later reading: nobody loses by it.
    """
    readings = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return max(readings, key=lambda reading: reading.astimezone(UTC))


def told_moment(text: str, zone: ZoneInfo | None) -> datetime:
    """The moment, in UTC, that `text` tells: with an offset, or as clocks in `zone` show it.

    Where they show it twice, the earlier reading: this is when something came, and nobody is late
    by it. Raises CourseError for what is no time, or one that clocks never show.
    """
    text = text.strip()
    try:
        moment = datetime.fromisoformat(text)
        # a date alone is read as its midnight, which nobody meant
        if ":" not in text:
            raise ValueError
    except ValueError as error:
        raise CourseError(
            f"{text!r} is no date with a time: write 2026-11-02T23:59+01:00"
        ) from error
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    if zone is None:
        raise CourseError(
            f"{text} has no offset: write it as {text}+01:00, or put a timezone into {FILE}"
        )
    reading = moment.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if _wall(reading.astimezone(zone)) != moment:
        raise CourseError(
            f"clocks in {zone.key} never show {text}, they are put forward: give its offset"
        )
    return reading


def read_due_dates(path: Path, lessons: Iterable[str]) -> DueDates:
    """The due dates in a file; none where there is no such file.

    `lessons` are the names that it may use. Raises CourseError for what it cannot mean.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return DueDates()
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{path} is no valid TOML: {error}") from error
    known = list(lessons)
    general = {key: value for key, value in data.items() if not isinstance(value, dict)}
    _refuse_unknown(general, SETTINGS, str(path))
    policies = {}
    for name, table in data.items():
        if not isinstance(table, dict):
            continue
        if name not in known:
            raise CourseError(f"{path}: there is no lesson {name!r}: take {', '.join(known)}")
        _refuse_unknown(table, SETTINGS + TIMES, f"{path}, [{name}]")
        policies[name] = _policy({**general, **table}, f"{path}, [{name}]")
    zone = _zone(general["timezone"], str(path)) if "timezone" in general else None
    return DueDates(policies, zone)


def _policy(table: Mapping[str, Any], where: str) -> Policy:
    if "timezone" not in table:
        raise CourseError(f'{where} has no timezone: write one such as timezone = "Europe/Berlin"')
    zone = _zone(table["timezone"], where)
    if "due" not in table:
        raise CourseError(f"{where} has no due date: write due = 2026-11-02T23:59:00")
    due = _moment(table["due"], zone, f"{where}, due")
    closes = None
    if "closes" in table:
        closes = _moment(table["closes"], zone, f"{where}, closes")
        if closes < due:
            raise CourseError(f"{where} closes before it is due: make closes the later of the two")
    per = table.get("per", "day")
    if per not in ("day", "hour"):
        raise CourseError(f'{where}: per = {per!r} is neither "day" nor "hour"')
    extensions = table.get("extensions", {})
    if not isinstance(extensions, dict):
        raise CourseError(f'{where}: extensions has lines such as "00123" = 2026-11-05T23:59:00')
    return Policy(
        due,
        zone,
        closes,
        timedelta(minutes=_number(table, "grace_minutes", 0, 1e6, where)),
        _number(table, "percent", 0, 100, where),
        per,
        _number(table, "at_most", 100, 100, where),
        {
            student: _moment(value, zone, f"{where}, extension of {student}")
            for student, value in extensions.items()
        },
    )


def _zone(name: Any, where: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise CourseError(
            f"{where}: there is no timezone {name!r}: take an IANA name such as "
            '"Europe/Berlin" or "UTC"'
        ) from error


def _moment(value: Any, zone: ZoneInfo, where: str) -> datetime:
    if not isinstance(value, datetime):
        raise CourseError(f"{where}: {value} is no date with a time: write 2026-11-02T23:59:00")
    return at(value, zone) if value.tzinfo is None else value.astimezone(zone)


def _number(
    table: Mapping[str, Any], key: str, default: float, largest: float, where: str
) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= largest:
        raise CourseError(f"{where}: {key} = {value!r} is no number from 0 to {largest:g}")
    return float(value)


def _refuse_unknown(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise CourseError(f"{where}: there is no setting {key!r}: take {', '.join(known)}")


def _wall(moment: datetime) -> datetime:
    """What a clock shows: without zone."""
    return moment.replace(tzinfo=None, fold=0)
