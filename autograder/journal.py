"""What the judge found, kept so that a kill loses nothing and nothing is judged twice.

    journal/5f/5f0c2a97....json     a verdict, under everything that it depends on
    grades/top_k/<student>.json     which of them stands as a student's grade

Each is one file, written beside its place and renamed. The gradebook is made from these.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .authoring.files import remove_parts, sha256, write_atomically
from .authoring.layout import ROOT
from .classroom import blob_name
from .errors import CourseError
from .judge.verdict import LessonVerdict, Verdict
from .records import Record

# what a verdict depends on besides the submission and the environment
_GRADED_WITH = ("course_lib/checks", "autograder/hidden", "solutions", "autograder/judge")


@dataclass(frozen=True)
class Key:
    """All that a verdict depends on; the same key is the same verdict."""

    submission: str  # sha256 of what was handed in
    lesson: str
    checks: str  # sha256 of checks, reference and judge
    environment: str
    seed: str  # names the secret seed without telling it
    dependencies: str = "reference"
    sandboxed: bool = True

    @property
    def digest(self) -> str:
        return sha256(json.dumps(asdict(self), sort_keys=True).encode())


@dataclass(frozen=True)
class Grade:
    """A verdict that stands as a student's grade for a lesson."""

    student: str
    key: Key
    received: datetime  # aware, in UTC
    verdict: Verdict

    @property
    def lesson(self) -> LessonVerdict:
        return self.verdict.lessons[self.key.lesson]

    @property
    def record(self) -> Record:
        """The grade as reports and exports take it."""
        return Record(
            student=self.student,
            lesson=self.key.lesson,
            verdict=self.lesson,
            sandbox=self.verdict.sandbox,
            submission=self.key.submission,
            received=self.received,
            graded_with=self.key.checks,
        )


class Journal:
    """The verdicts and grades in a class's folder `.autograder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, key: Key) -> Verdict | None:
        """The verdict under `key`, None if there is none yet."""
        return self._read_verdict(key.digest)

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Write a verdict down; it is on the disk when this returns."""
        _write(self._entry(key.digest), {"key": asdict(key), "verdict": verdict.as_data()})

    def entries(self) -> Iterator[tuple[Key, Verdict]]:
        """All verdicts, whether they stand or not, always in the same order."""
        for path in sorted((self.folder / "journal").glob("*/*.json")):
            yield _read_entry(path)

    def stand(self, student: str, key: Key, received: datetime) -> None:
        """Let the verdict under `key` be the student's grade."""
        told = {"student": student, "received": received.isoformat(), "key": asdict(key)}
        _write(self._grade(student, key.lesson), told)

    def grade(self, student: str, lesson: str) -> Grade | None:
        """What stands for a student, None if nothing was graded yet."""
        path = self._grade(student, lesson)
        return self._with_verdict(*self._read_grade(path)) if path.is_file() else None

    def grades(self, lesson: str) -> Iterator[Grade]:
        """All grades of a lesson, by student."""
        told = [self._read_grade(path) for path in (self._grades / lesson).glob("*.json")]
        for student, key, received in sorted(told, key=lambda grade: grade[0]):
            # verdicts are long: those of a whole class need not lie in memory
            if grade := self._with_verdict(student, key, received):
                yield grade

    def tidy(self) -> None:
        """Remove what a kill in the middle of a write left."""
        for name in ("journal", "grades"):
            for folder in (self.folder / name).glob("*/"):
                remove_parts(folder)

    @property
    def _grades(self) -> Path:
        return self.folder / "grades"

    def _entry(self, digest: str) -> Path:
        return self.folder / "journal" / digest[:2] / f"{digest}.json"

    def _grade(self, student: str, lesson: str) -> Path:
        return self._grades / lesson / blob_name(student)

    def _read_verdict(self, digest: str) -> Verdict | None:
        path = self._entry(digest)
        return _read_entry(path)[1] if path.is_file() else None

    def _read_grade(self, path: Path) -> tuple[str, Key, datetime]:
        told = _read(path)
        try:
            return told["student"], Key(**told["key"]), datetime.fromisoformat(told["received"])
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(path) from error

    def _with_verdict(self, student: str, key: Key, received: datetime) -> Grade | None:
        verdict = self._read_verdict(key.digest)
        # somebody deleted the entry: then this is graded anew
        return None if verdict is None else Grade(student, key, received, verdict)


@cache
def checks_digest(root: Path = ROOT) -> str:
    """sha256 over the checks, the reference and the judge; any change of them gives another."""
    lines = []
    for name in _GRADED_WITH:
        for path in sorted((root / name).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".json"):
                lines.append(f"{sha256(path.read_bytes())} {path.relative_to(root).as_posix()}\n")
    return sha256("".join(lines).encode())


@cache
def environment() -> str:
    """Python, torch and machine, as far as they may change what a function answers."""
    return f"python {platform.python_version()}, torch {version('torch')}, {platform.machine()}"


def seed_name(secret: bytes) -> str:
    """A name for a secret seed, from which the seed cannot be worked out."""
    return sha256(b"seed:" + secret)[:16]


def _write(path: Path, told: dict[str, Any]) -> None:
    write_atomically(path, (json.dumps(told, ensure_ascii=True) + "\n").encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(path) from error
    return told


def _read_entry(path: Path) -> tuple[Key, Verdict]:
    """A verdict and what it is of, which its file's name has to agree with."""
    told = _read(path)
    try:
        key, verdict = Key(**told["key"]), Verdict.from_data(told["verdict"])
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(path) from error
    if path.stem != key.digest or key.lesson not in verdict.lessons:
        raise _damaged(path)
    return key, verdict


def _damaged(path: Path) -> CourseError:
    return CourseError(f"{path} is damaged: delete it and run `autograder grade` again")
