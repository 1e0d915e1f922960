"""The learner's record: which checks passed last time, and which known mistakes were met.

It is `.course/progress.json` in the workspace, the folder that holds `course_lib` and `.course`.
Where there is no such folder (in the course's repository, in the grader), nothing is written, and
the same on a disk that cannot be written: a record is a comfort, never a reason to fail.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from . import lessons

HOME = lessons.COURSE_LIB.parent
FOLDER, FILE = ".course", "progress.json"


class CheckResult(Protocol):
    """What the record wants to know of a check that ran."""

    @property
    def id(self) -> str: ...
    @property
    def attempted(self) -> bool: ...
    @property
    def passed(self) -> bool: ...
    @property
    def mistake(self) -> str | None: ...


@dataclass
class Entry:
    """What the record holds of one check: how it ended last, and the mistakes it ever named."""

    attempted: bool = False
    passed: bool = False
    mistakes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LessonProgress:
    """One lesson. Points are those of its visible checks."""

    lesson: str
    points: float
    possible: float
    attempted: bool
    mended: list[str]  # mistakes met earlier, whose checks all pass now
    open: list[str]  # mistakes met, and not mended yet


@dataclass(frozen=True)
class Summary:
    """All lessons that have checks, in the order of the course."""

    lessons: list[LessonProgress]

    @property
    def points(self) -> float:
        return sum(lesson.points for lesson in self.lessons)

    @property
    def possible(self) -> float:
        return sum(lesson.possible for lesson in self.lessons)


@dataclass(frozen=True)
class Bar:
    """A lesson's heading and how much of it is done, for a notebook's first cell."""

    heading: str
    points: float
    possible: float

    def __repr__(self) -> str:
        filled = round(20 * self.points / self.possible)
        return f"{self.heading}\n[{'#' * filled}{'-' * (20 - filled)}] {self._told}"

    def _repr_html_(self) -> str:
        heading, percent = html.escape(self.heading), 100 * self.points / self.possible
        # colours that show on light and on dark; who hears the page gets the same as words
        return (
            f"<strong>{heading}</strong><br>{self._told}"
            f'<div role="progressbar" aria-label="{heading}" aria-valuemin="0" '
            f'aria-valuemax="{self.possible:g}" aria-valuenow="{self.points:g}" '
            f'aria-valuetext="{self._told}" style="max-width: 30em; height: 0.7em; '
            'border: 1px solid #767676; border-radius: 0.4em; overflow: hidden">'
            f'<div style="width: {percent:.0f}%; height: 100%; background: #0072b2"></div></div>'
        )

    @property
    def _told(self) -> str:
        return f"{self.points:g} of {self.possible:g} points"


def workspace(home: Path = HOME) -> Path | None:
    """The workspace that this `course_lib` lies in, or None where no record is kept."""
    return home if (home / FOLDER).is_dir() else None


def record(results: Iterable[CheckResult], home: Path = HOME) -> None:
    """Add what checks said to the record; two notebooks may do so at the same time."""
    if workspace(home) is None:
        return
    folder = home / FOLDER
    with contextlib.suppress(OSError), _locked(folder):
        entries = _read(folder / FILE)
        if entries is None:
            _keep_aside(folder / FILE)
            entries = {}
        for result in results:
            entry = entries.setdefault(result.id, Entry())
            entry.attempted, entry.passed = result.attempted, result.passed
            if result.mistake is not None and result.mistake not in entry.mistakes:
                entry.mistakes.append(result.mistake)
        _write(folder / FILE, entries)


def summary(home: Path = HOME) -> Summary:
    """The record of all lessons; a check that never ran counts as not passed."""
    from ..checks.kit import lessons as lessons_with_checks

    entries = _entries(home)
    return Summary([_lesson(name, entries) for name in lessons_with_checks()])


def bar(lesson: str, home: Path = HOME) -> Bar | None:
    """The bar of one lesson; None for a lesson without checks."""
    done = _lesson(lesson, _entries(home))
    if not done.possible:
        return None
    return Bar(lessons.heading(lesson), done.points, done.possible)


def damaged_records(home: Path = HOME) -> list[Path]:
    """Records that could not be read and were kept aside."""
    return sorted((home / FOLDER).glob(f"{FILE}.damaged*"))


def _lesson(name: str, entries: dict[str, Entry]) -> LessonProgress:
    from ..checks.kit import find_suite

    suite = find_suite(name)
    checks = suite.checks if suite is not None else {}
    ran = {check: entries[check] for check in checks if check in entries}
    met = [mistake for entry in ran.values() for mistake in entry.mistakes]
    still = {m for entry in ran.values() if not entry.passed for m in entry.mistakes}
    return LessonProgress(
        lesson=name,
        points=sum(checks[check].points for check, entry in ran.items() if entry.passed),
        possible=sum(check.points for check in checks.values()),
        attempted=any(entry.attempted for entry in ran.values()),
        mended=sorted(set(met) - still),
        open=sorted(still),
    )


def _entries(home: Path) -> dict[str, Entry]:
    """What can be read, which is nothing if the file is missing or damaged."""
    try:
        return _read(home / FOLDER / FILE) or {}
    except OSError:
        return {}


def _read(path: Path) -> dict[str, Entry] | None:
    """The entries of a record, by check; none if there is no file, None if it is damaged."""
    try:
        stored = json.loads(path.read_bytes())
        entries = {check: Entry(**entry) for check, entry in stored["checks"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    sound = all(
        isinstance(entry.attempted, bool)
        and isinstance(entry.passed, bool)
        and isinstance(entry.mistakes, list)
        and all(isinstance(mistake, str) for mistake in entry.mistakes)
        for entry in entries.values()
    )
    return entries if sound else None


def _write(path: Path, entries: dict[str, Entry]) -> None:
    """Write to a file beside it and rename, so that a kill leaves the old record or the new one."""
    stored = {"checks": {check: asdict(entry) for check, entry in sorted(entries.items())}}
    part = path.with_name(f"{FILE}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _keep_aside(path: Path) -> None:
    """Rename a damaged record; one that was kept before is not overwritten."""
    aside = path.with_name(f"{FILE}.damaged")
    count = 1
    while aside.exists():
        count += 1
        aside = path.with_name(f"{FILE}.damaged{count}")
    path.rename(aside)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the record alone. The system frees the lock of a process that dies."""
    with (folder / f"{FILE}.lock").open("ab") as file:
        # some network disks know no locks: go on without, two kernels at once are rare
        with contextlib.suppress(OSError):
            _lock(file.fileno())
        yield


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
