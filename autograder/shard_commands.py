"""What `autograder grade --shard` and `autograder merge` do and say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from .class_grading import Failure
from .class_grading import Judge as ClassJudge
from .classroom import find_classroom, graded_lessons
from .errors import CourseError
from .grade_commands import UNSANDBOXED, Live, Wishes, graded_lesson, run_grade
from .grading import Outcome, Settings, grade_locally
from .shards import Shard, ShardGrading, unite
from .submission import Submission


def run_shard(console: Console, wishes: Wishes, text: str) -> None:
    """Judge one shard. Raises CourseError at the end if some submissions could not be judged."""
    shard = Shard.parse(text)
    classroom = find_classroom()
    lessons = [graded_lesson(name) for name in wishes.lessons] or list(graded_lessons().values())
    if not wishes.sandboxed:
        console.print(f"[bold]{UNSANDBOXED}[/]")
    settings = Settings(classroom.secret(), wishes.dependencies, wishes.sandboxed)
    grading = ShardGrading(classroom, settings, shard)
    grading.journal.tidy()
    part = grading.plan(lessons, wishes.students or None, wishes.regrade)
    count = len(part.judge)
    (grading.journal.folder / "journal").mkdir(parents=True, exist_ok=True)
    judged = 0
    if count:
        if wishes.judging is not None:
            judge = wishes.judging(settings)
        else:
            workers = max(1, min(wishes.workers, count))

            def judge(submissions: Iterable[Submission]) -> Iterator[Outcome]:
                return grade_locally(submissions, workers, settings)

        with Live(console, count, "judged") as live:
            for outcome in judge(grading.submissions(part)):
                one = outcome.submission
                if outcome.verdict is None:
                    part.failures.append(Failure(one.student, one.lesson, outcome.why))
                else:
                    grading.journal.keep(grading.key(one), outcome.verdict)
                    judged += 1
                live.done(outcome)
    console.print(
        f"shard {text}: {judged} judged, {len(part.failures)} failed; now or later "
        f"`autograder merge {escape(str(grading.journal.folder))}`, with the other shards"
    )
    for failure in part.failures:
        told = f"{failure.student}, {failure.lesson}: {failure.why}"
        console.print(f"[bold]not judged[/] {escape(told)}")
    if part.failures:
        raise CourseError(f"shard {text}: {len(part.failures)} could not be judged; see above")


def run_merge(console: Console, folders: Sequence[Path]) -> None:
    """Unite shards, and bring the gradebook up to date.

    Raises CourseError at the end if no shard has judged some of what was handed in.
    """
    classroom = find_classroom()
    with classroom.only_writer():
        united = unite(classroom, [folder.absolute() for folder in folders])
    console.print(f"{united.fresh} verdicts taken in from {len(folders)} shards")
    if not united.lessons:
        return

    def judging(settings: Settings) -> ClassJudge:
        return _nobody

    wishes = Wishes(
        lessons=[name for name in graded_lessons() if name in united.lessons],
        dependencies=united.settings.dependencies,
        sandboxed=united.settings.sandboxed,
        judging=judging,
    )
    run_grade(console, wishes)


def _nobody(submissions: Iterable[Submission]) -> Iterator[Outcome]:
    why = CourseError("in none of these shards: merge the one it is in, or `autograder grade`")
    for submission in submissions:
        yield Outcome(submission, failure=why)
