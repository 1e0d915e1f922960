"""Grades a class: finds what is to be judged, has it judged, and lets the verdicts stand.

A run that is killed goes on where it was. A grade that stands changes only when the student hands
in something else, or by a regrade that somebody has seen the consequences of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from .authoring.layout import Lesson
from .classroom import Classroom, student_id
from .errors import CourseError
from .grading import Outcome, Settings
from .journal import Journal, Key, checks_digest, environment, seed_name
from .judge.verdict import LessonVerdict
from .members import BrokenPack, printable
from .submission import Submission, read_submission

Judge = Callable[[Iterable[Submission]], Iterator[Outcome]]


@dataclass(frozen=True)
class Failure:
    """A submission that could not be graded."""

    student: str
    lesson: str
    why: str


@dataclass(frozen=True)
class Move:
    """A grade that a regrade would change."""

    student: str
    lesson: str
    before: float
    after: float
    changes: list[str]  # the checks that come out differently: `top_k-ties 0.5 -> 0`

    @classmethod
    def between(cls, student: str, before: LessonVerdict, after: LessonVerdict) -> Move:
        old = {check.id: check.earned for check in before.checks}
        new = {check.id: check.earned for check in after.checks}
        changes = [
            f"{name} {_points(old.get(name))} -> {_points(new.get(name))}"
            for name in dict.fromkeys([*old, *new])
            if old.get(name) != new.get(name)
        ]
        return cls(student, after.lesson, before.score, after.score, changes)


@dataclass(frozen=True)
class Standing:
    """A grade without its verdict, which is long: those of a whole class fit into memory."""

    student: str
    key: Key
    received: datetime


@dataclass
class Work:
    """What is to be done for one lesson."""

    lesson: Lesson
    judge: list[str] = field(default_factory=list)  # students whose submission has no verdict yet
    stand: list[Standing] = field(default_factory=list)  # judged in a run that was killed
    older: list[str] = field(default_factory=list)  # graded with other checks than today's
    kept: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


@dataclass
class Report:
    """What a run did."""

    graded: list[Standing] = field(default_factory=list)  # new or changed grades
    moves: list[Move] = field(default_factory=list)
    committed: bool = True
    failures: list[Failure] = field(default_factory=list)


class ClassGrading:
    """The grading of one class with one set of checks."""

    def __init__(self, classroom: Classroom, settings: Settings) -> None:
        self.classroom, self.settings = classroom, settings
        self.journal = Journal(classroom.kept)

    def key(self, submission: Submission) -> Key:
        """Under what the verdict on a submission is kept."""
        return Key(
            submission=submission.sha256,
            lesson=submission.lesson,
            checks=checks_digest(),
            environment=environment(),
            seed=seed_name(self.settings.secret),
            dependencies=self.settings.dependencies,
            sandboxed=self.settings.sandboxed,
        )

    def plan(self, lesson: Lesson, students: Sequence[str] | None, regrade: bool) -> Work:
        """What is to be done for a lesson; `students` are all by default."""
        work = Work(lesson)
        for student in self.classroom.students(lesson):
            if students is not None and student not in students:
                continue
            try:
                student_id(student)  # not every folder came by way of `collect`
                submission = read_submission(self.classroom, student, lesson)
            except (CourseError, OSError) as error:
                work.failures.append(Failure(printable(student), lesson.name, str(error)))
                continue
            key = self.key(submission)
            standing = self.journal.grade(student, lesson.name)
            same = standing is not None and standing.key.submission == key.submission
            if standing is not None and same and standing.received != submission.received:
                # the same files received at another time are no reason to judge
                self.journal.stand(student, standing.key, submission.received)
            if standing is not None and standing.key == key:
                work.kept.append(student)
            elif same and not regrade:
                work.older.append(student)
            elif self.journal.find(key) is not None:
                work.stand.append(Standing(student, key, submission.received))
            else:
                work.judge.append(student)
        return work

    def submissions(self, work: Iterable[Work]) -> Iterator[Submission]:
        """The submissions that wait for a verdict, read one at a time."""
        for one in work:
            for student in one.judge:
                try:
                    yield read_submission(self.classroom, student, one.lesson)
                except (BrokenPack, OSError) as error:  # it changed since the plan was made
                    one.failures.append(Failure(student, one.lesson.name, str(error)))

    def run(
        self,
        work: Sequence[Work],
        judge: Judge,
        *,
        confirm: Callable[[list[Move]], bool],
        done: Callable[[Outcome], None] = lambda outcome: None,
    ) -> Report:
        """Judge what waits and let the verdicts stand; `confirm` is asked if grades would move."""
        report, asked = Report(), list[Standing]()
        for one in work:
            for standing in one.stand:
                self._stand_or_ask(standing, report, asked)
        for outcome in judge(self.submissions(work)):
            submission = outcome.submission
            if outcome.verdict is None:
                failure = Failure(submission.student, submission.lesson, outcome.why)
                report.failures.append(failure)
            else:
                key = self.key(submission)
                self.journal.keep(key, outcome.verdict)
                standing = Standing(submission.student, key, submission.received)
                self._stand_or_ask(standing, report, asked)
            done(outcome)
        report.failures += [failure for one in work for failure in one.failures]
        report.failures.sort(key=lambda failure: (failure.lesson, failure.student))
        report.moves.sort(key=lambda move: (move.lesson, move.student))
        report.committed = not report.moves or confirm(report.moves)
        if report.committed:
            for standing in asked:
                self._stand(standing, report)
        return report

    def lay_out_gradebook(self) -> None:
        """Make nbgrader's gradebook if there is none."""
        from .gradebook import Gradebook

        with Gradebook(self.classroom):
            pass

    def project(self, lessons: Iterable[Lesson], progress: Callable[[], None]) -> int:
        """Bring nbgrader's gradebook up to the grades; returns how many submissions were not."""
        from .gradebook import Gradebook
        from .projection import project

        with Gradebook(self.classroom) as book:
            return sum(
                project(self.classroom, self.journal, lesson, book, progress) for lesson in lessons
            )

    def _stand_or_ask(self, new: Standing, report: Report, asked: list[Standing]) -> None:
        before = self.journal.grade(new.student, new.key.lesson)
        if before is None or before.key.submission != new.key.submission:
            self._stand(new, report)
            return
        after = self.journal.find(new.key)
        if after is not None:
            move = Move.between(new.student, before.lesson, after.lessons[new.key.lesson])
            if move.changes:
                report.moves.append(move)
        asked.append(new)

    def _stand(self, standing: Standing, report: Report) -> None:
        self.journal.stand(standing.student, standing.key, standing.received)
        report.graded.append(standing)


def _points(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
