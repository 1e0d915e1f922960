"""Grading in parts that know nothing of each other: `grade --shard 3/8`, then `merge`.

A submission belongs to a shard by its hash, so every machine comes to the same parts unasked. A
shard reads the class's folder and writes verdicts into a folder of its own, nowhere else:

    shards/3-of-8/journal/5f/5f0c2a97....json
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .authoring.layout import Lesson
from .class_grading import ClassGrading, Failure
from .classroom import Classroom
from .errors import CourseError
from .grading import Settings
from .journal import Journal, Key, checks_digest, environment, seed_name
from .members import BrokenPack
from .submission import Submission, read_submission


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`3/8`. Raises CourseError for what is none."""
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise CourseError(f"--shard {text!r} is no shard: of eight the third is 3/8")
        return cls(int(match[1]), int(match[2]))

    def holds(self, submission: Submission) -> bool:
        return int(submission.sha256[:16], 16) % self.count == self.number - 1

    def folder(self, classroom: Classroom) -> Path:
        """Where its verdicts go."""
        return classroom.root / "shards" / f"{self.number}-of-{self.count}"


@dataclass
class Part:
    """What a shard has to do, and what it could not read."""

    judge: list[tuple[str, Lesson]]
    failures: list[Failure]


class ShardGrading:
    """The grading of one shard: the class's folder is read, the shard's is written."""

    def __init__(self, classroom: Classroom, settings: Settings, shard: Shard) -> None:
        self.shard, self._classroom = shard, classroom
        self._class = ClassGrading(classroom, settings)
        self.journal = Journal(shard.folder(classroom))

    def plan(
        self, lessons: Sequence[Lesson], students: Sequence[str] | None, regrade: bool
    ) -> Part:
        """What of the shard has no verdict yet; `students` are all by default."""
        part = Part([], [])
        seen = set()
        for lesson in lessons:
            for student in self._classroom.students(lesson):
                if students is not None and student not in students:
                    continue
                try:
                    submission = read_submission(self._classroom, student, lesson)
                except (BrokenPack, OSError) as error:
                    # nobody knows its hash: one shard tells of it, which is enough
                    if self.shard.number == 1:
                        part.failures.append(Failure(student, lesson.name, str(error)))
                    continue
                digest = self._class.key(submission).digest
                if digest not in seen and self._waits(submission, regrade):
                    seen.add(digest)
                    part.judge.append((student, lesson))
        return part

    def submissions(self, part: Part) -> Iterator[Submission]:
        """The submissions to be judged, read one at a time."""
        for student, lesson in part.judge:
            try:
                yield read_submission(self._classroom, student, lesson)
            except (BrokenPack, OSError) as error:  # it changed since the plan was made
                part.failures.append(Failure(student, lesson.name, str(error)))

    def key(self, submission: Submission) -> Key:
        return self._class.key(submission)

    def _waits(self, submission: Submission, regrade: bool) -> bool:
        if not self.shard.holds(submission):
            return False
        key = self.key(submission)
        if self.journal.find(key) is not None or self._class.journal.find(key) is not None:
            return False
        standing = self._class.journal.grade(submission.student, submission.lesson)
        return standing is None or standing.key.submission != key.submission or regrade


@dataclass
class United:
    """What was in some shards: how they were judged, and of which lessons."""

    settings: Settings
    lessons: set[str]
    fresh: int = 0  # verdicts that the class did not have


def unite(classroom: Classroom, folders: Sequence[Path]) -> United:
    """Take the verdicts of shards into the class's journal; the caller holds the class's lock.

    Raises CourseError, before anything is written, for a folder that is no shard's or was judged
    with another course, environment or seed, and if two shards say different things.
    """
    shards = [Journal(folder) for folder in folders]
    ways: set[tuple[str, bool]] = set()
    lessons: set[str] = set()
    for journal in shards:
        count = 0
        for key, _ in journal.entries():
            _refuse_other(journal.folder, key, classroom)
            ways.add((key.dependencies, key.sandboxed))
            lessons.add(key.lesson)
            count += 1
        if not count and not (journal.folder / "journal").is_dir():
            raise CourseError(
                f"{journal.folder} holds no verdicts: `autograder grade --shard` writes such a "
                f"folder into {classroom.root / 'shards'}"
            )
    if len(ways) > 1:
        raise CourseError(
            "the shards were judged in different ways (--dependencies, --unsandboxed): merge "
            "those that belong together"
        )
    dependencies, sandboxed = ways.pop() if ways else ("reference", True)
    united = United(Settings(classroom.secret(), dependencies, sandboxed), lessons)
    into = Journal(classroom.kept)
    for journal in shards:
        for key, verdict in journal.entries():
            known = into.find(key)
            if known is None:
                into.keep(key, verdict)
                united.fresh += 1
            elif known.lessons != verdict.lessons:
                raise CourseError(
                    f"{journal.folder} and the class judge one submission differently "
                    f"({key.lesson}, {key.submission[:12]}): look at both, {key.digest}.json"
                )
    return united


def _refuse_other(folder: Path, key: Key, classroom: Classroom) -> None:
    if key.seed != seed_name(classroom.secret()):
        raise CourseError(
            f"{folder} was judged with another secret seed: copy {classroom.kept / 'secret-seed'} "
            "to where shards are judged, and judge it again"
        )
    if key.environment != environment():
        raise CourseError(
            f"{folder} was judged with {key.environment}, and here is {environment()}: "
            "install the same there, and judge it again"
        )
    if key.checks != checks_digest():
        raise CourseError(
            f"{folder} was judged with other checks ({key.checks[:12]}, here "
            f"{checks_digest()[:12]}): bring the course to the same commit, and judge it again"
        )
