"""A class is graded: journal, gradebook, resume, regrade, and what goes wrong."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder import journal
from autograder.class_grading import ClassGrading
from autograder.classroom import Classroom
from autograder.errors import CourseError
from autograder.export.cells import read_table
from autograder.grading import Settings, grade, grade_locally
from autograder.journal import Journal
from autograder.submission import as_timestamp, read_submission
from tests.grading import fake
from tests.grading.conftest import WHEN
from tests.grading.dump import dump, scores
from tests.grading.packs import LESSON, REFERENCE, STUB, answered, notebook, work

TIES = REFERENCE + b"# top_k-ties\n"
HandIn = Callable[..., None]
Run = Callable[..., str]


def open_book(classroom: Classroom) -> Gradebook:
    return Gradebook(classroom.db_url, classroom.course_id)


def grade_by_hand(classroom: Classroom, student: str, points: float, comment: str) -> None:
    with open_book(classroom) as book:
        given = book.find_grade("top_k-written", LESSON.slug, LESSON.slug, student)
        given.manual_score, given.needs_manual_grade = points, False
        book.find_comment(
            "top_k-written", LESSON.slug, LESSON.slug, student
        ).manual_comment = comment
        book.db.commit()


def by_hand(classroom: Classroom, student: str) -> tuple[float | None, bool, str | None]:
    """Points given by hand, whether somebody has to look again, the comment."""
    with open_book(classroom) as book:
        given = book.find_grade("top_k-written", LESSON.slug, LESSON.slug, student)
        comment = book.find_comment("top_k-written", LESSON.slug, LESSON.slug, student)
        return given.manual_score, given.needs_manual_grade, comment.manual_comment


# --- scores ---


def test_reference_stub_and_mistake_get_their_points(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("right", work())
    hand_in("blank", work(STUB, notebook()))
    hand_in("ties", work(TIES))
    said = run()
    assert scores(classroom.root) == {"right": 15.0, "blank": 0.0, "ties": 14.5}
    assert "ties, top_k: 14.5 of 15 points; visible 11/12 passed, hidden 7/7 passed" in said
    assert "wrong value 1" in said


def test_an_answer_waits_for_a_person_and_a_blank_one_does_not(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("right", work())
    hand_in("blank", work(STUB, notebook()))
    run()
    assert by_hand(classroom, "right") == (None, True, None)
    assert by_hand(classroom, "blank") == (None, False, None)
    with open_book(classroom) as book:
        blank = book.find_comment("top_k-written", LESSON.slug, LESSON.slug, "blank")
        assert blank.auto_comment == "No response."


def test_a_package_without_a_notebook_is_judged_all_the_same(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("none", {"course_lib/top_k.py": REFERENCE})
    run()
    assert scores(classroom.root) == {"none": 15.0}
    assert (classroom.autograded / "none/03_top_k/03_top_k.ipynb").is_file()


def test_the_module_is_read_as_submitted_never_as_overwritten(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    """nbgrader lays the source's stub over a student's module: an untouched stub then scored."""
    hand_in("right", work())
    run()
    laid = classroom.autograded / "right/03_top_k/course_lib/top_k.py"
    laid.write_bytes(STUB)
    run(regrade=True, yes=True)
    assert scores(classroom.root) == {"right": 15.0}


# --- ids ---


ODD = ["back\\slash", "with space", "a+b", "Zoë 学生 🎓", "x" * 64, "00042", "O'Brien, J.", "[1]*?"]


def test_odd_ids_survive(classroom: Classroom, hand_in: HandIn, run: Run) -> None:
    for student in ODD:
        hand_in(student, work())
    run()
    assert scores(classroom.root) == dict.fromkeys(ODD, 15.0)
    for student in ODD:
        said = run(students=[student], regrade=True, yes=True)
        assert "0 graded, 1 unchanged, 0 failed; 0 written" in said


# --- the journal ---


def test_a_second_run_judges_nothing(classroom: Classroom, hand_in: HandIn, run: Run) -> None:
    hand_in("a", work())
    run()
    before = dump(classroom.root)
    counting = fake.Inline()
    said = run(judging=fake.inline(counting))
    assert counting.calls == 0
    assert "0 graded, 1 unchanged, 0 failed; 0 written into the gradebook" in said
    assert dump(classroom.root) == before


def test_the_gradebook_is_made_again_when_it_is_gone(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    for student in ("a", "b"):
        hand_in(student, work())
    run()
    before = dump(classroom.root)
    (classroom.root / "gradebook.db").unlink()
    counting = fake.Inline()
    run(judging=fake.inline(counting))
    assert (counting.calls, dump(classroom.root)) == (0, before)


def test_a_score_that_somebody_put_into_the_gradebook_is_put_right(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("a", work(STUB))
    run()
    before = dump(classroom.root)
    with open_book(classroom) as book:
        book.find_grade("top_k-ties", LESSON.slug, LESSON.slug, "a").auto_score = 198.0
        book.db.commit()
    run()
    assert dump(classroom.root) == before


def test_the_secret_is_made_once_and_nobody_else_reads_it(classroom: Classroom) -> None:
    secret = classroom.secret()
    assert (len(secret), classroom.secret()) == (32, secret)
    mode = (classroom.kept / "secret-seed").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert secret.hex() not in journal.seed_name(secret)


def test_a_damaged_secret_is_told_not_replaced(classroom: Classroom) -> None:
    classroom.secret()
    (classroom.kept / "secret-seed").write_bytes(b"short")
    with pytest.raises(CourseError, match="holds 5 bytes, not 32"):
        classroom.secret()


def test_a_verdict_comes_out_of_the_journal_as_it_went_in(grading: ClassGrading) -> None:
    verdict = fake.judge({"top_k": TIES}, "top_k", b"", "reference", True)
    key = journal.Key("a" * 64, "top_k", "b" * 64, "python", "seed")
    grading.journal.keep(key, verdict)
    assert Journal(grading.classroom.kept).find(key) == verdict
    grading.journal.stand("é\\x", key, WHEN)
    (record,) = [grade.record for grade in grading.journal.grades("top_k")]
    assert (record.student, record.lesson, record.received) == ("é\\x", "top_k", WHEN)
    assert record.verdict == verdict.lessons["top_k"]


@pytest.mark.parametrize("change", ["checks", "environment", "seed", "dependencies"])
def test_another_condition_is_another_verdict(change: str) -> None:
    key = journal.Key("a" * 64, "top_k", "b" * 64, "python", "seed")
    other = journal.Key(**{**vars(key), change: "other"})
    assert other.digest != key.digest


def test_the_digest_of_the_checks_changes_with_any_of_their_files(tmp_path: Path) -> None:
    for name in ("course_lib/checks", "autograder/hidden", "solutions", "autograder/judge"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.py").write_text("1\n")
    digests = {journal.checks_digest.__wrapped__(tmp_path)}
    for path in sorted(tmp_path.rglob("*.py")):
        path.write_text("2\n")
        digests.add(journal.checks_digest.__wrapped__(tmp_path))
    assert len(digests) == 5


def test_only_one_autograder_writes(classroom: Classroom, hand_in: HandIn, run: Run) -> None:
    hand_in("a", work())
    with (
        classroom.only_writer(),
        pytest.raises(CourseError, match=f"process {os.getpid()}"),
    ):
        run()


# --- handed in again ---


def test_a_later_submission_is_graded_and_the_former_kept(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("a", work(STUB))
    run()
    hand_in("a", work(), WHEN + timedelta(hours=1))
    assert "1 graded" in run()
    assert scores(classroom.root) == {"a": 15.0}
    former = classroom.kept / "former/03_top_k/a/001/course_lib/top_k.py"
    assert former.read_bytes() == STUB


def test_a_manual_grade_stays_and_asks_to_be_looked_at_only_for_a_new_answer(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("a", work(TIES))
    run()
    grade_by_hand(classroom, "a", 1.5, "good")
    hand_in("a", work(), WHEN + timedelta(hours=1))
    run()
    assert by_hand(classroom, "a") == (1.5, False, "good")
    hand_in("a", work(book=answered(b"Another answer.")), WHEN + timedelta(hours=2))
    run()
    assert by_hand(classroom, "a") == (1.5, True, "good")


# --- regrade ---


@pytest.fixture
def new_checks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the checks be others than before: the judge now refuses ties."""

    def change() -> None:
        monkeypatch.setattr("autograder.class_grading.checks_digest", lambda: "c" * 64)
        causes = fake.cause_of
        monkeypatch.setattr(
            fake,
            "cause_of",
            lambda name, text: "wrong value" if name == "top_k-off" else causes(name, text),
        )

    return change


def test_changed_checks_move_nobody_until_a_regrade_is_confirmed(
    classroom: Classroom,
    hand_in: HandIn,
    run: Run,
    new_checks: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hand_in("a", work())
    hand_in("blank", work(STUB))
    run()
    before = dump(classroom.root)
    new_checks()
    said = run()
    assert "2 keep grades that were made with other checks" in said
    assert dump(classroom.root) == before

    monkeypatch.setattr("typer.confirm", lambda question: False)
    said = run(regrade=True)
    assert (
        "15 -> 14" in said and "top_k-off 1 -> 0" in said and "blank" not in said.split("0 gr")[0]
    )
    assert "0 up, 1 down, 0 as before in points" in said
    table = read_table((classroom.kept / "moves.csv").read_bytes())
    assert table[1:] == [["a", "top_k", "15", "14", "top_k-off 1 -> 0"]]
    assert "no grade was moved" in said
    assert dump(classroom.root) == before

    counting = fake.Inline()
    run(regrade=True, yes=True, judging=fake.inline(counting))
    assert counting.calls == 0, "what was judged for the question is not judged again"
    assert scores(classroom.root) == {"a": 14.0, "blank": 0.0}


def test_a_time_set_right_counts_for_a_grade_made_with_other_checks_too(
    classroom: Classroom, hand_in: HandIn, run: Run, new_checks: Callable[[], None]
) -> None:
    hand_in("a", work())
    run()
    new_checks()
    earlier = WHEN - timedelta(days=2)
    place = classroom.submission("a", LESSON) / "timestamp.txt"
    place.write_text(as_timestamp(earlier))
    assert "1 keep grades that were made with other checks" in run()
    (grade,) = Journal(classroom.kept).grades("top_k")
    assert grade.received == earlier


def test_manual_grades_survive_a_regrade(
    classroom: Classroom, hand_in: HandIn, run: Run, new_checks: Callable[[], None]
) -> None:
    hand_in("a", work())
    run()
    grade_by_hand(classroom, "a", 2.0, "very good")
    new_checks()
    run(regrade=True, yes=True)
    assert scores(classroom.root) == {"a": 14.0}
    assert by_hand(classroom, "a") == (2.0, False, "very good")


# --- what goes wrong ---


def test_one_in_ten_is_broken_and_all_others_are_graded(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    for number in range(20):
        hand_in(f"s{number:02}", work())
    for student in ("s03", "s11"):
        module = classroom.submitted / student / "03_top_k/course_lib/top_k.py"
        module.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(CourseError, match="2 submissions could not be graded"):
        run()
    said = run.said  # type: ignore[attr-defined]
    assert "s03, s11, top_k: too large: course_lib/top_k.py has more than 1 MiB" in said
    assert "18 graded" in said
    assert scores(classroom.root).keys() == {f"s{n:02}" for n in range(20)} - {"s03", "s11"}


def test_a_judge_that_fails_on_one_goes_on_with_the_next(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("a", work(b"break the judge"))
    hand_in("b", work())
    with pytest.raises(CourseError, match="1 submission could not be graded"):
        run()
    assert "a, top_k: the judge failed: ArithmeticError" in run.said  # type: ignore[attr-defined]
    assert scores(classroom.root) == {"b": 15.0}


def test_a_submission_that_kills_its_worker_is_the_only_one_that_fails(
    classroom: Classroom, hand_in: HandIn
) -> None:
    hand_in("a", work(b"kill the judge"))
    for student in "bcdef":
        hand_in(student, work())
    submissions = [read_submission(classroom, student, LESSON) for student in "abcdef"]
    outcomes = list(grade_locally(submissions, 2, Settings(b"secret"), judge=fake.judge))
    failed = [outcome for outcome in outcomes if outcome.verdict is None]
    assert sorted(outcome.submission.student for outcome in outcomes) == list("abcdef")
    assert [outcome.submission.student for outcome in failed] == ["a"]
    assert "the process that judged it died" in failed[0].why


def test_never_more_submissions_are_read_than_there_is_work_for(
    classroom: Classroom, hand_in: HandIn
) -> None:
    hand_in("a", work())
    one = read_submission(classroom, "a", LESSON)
    read = 0

    def many() -> Any:
        nonlocal read
        for _ in range(50):
            read += 1
            yield one

    done = 0
    for _ in grade(many(), fake.Inline(), Settings(b""), ahead=3, judge=fake.judge):
        done += 1
        assert read <= done + 3
    assert done == 50


def test_an_unknown_student_is_told(classroom: Classroom, hand_in: HandIn, run: Run) -> None:
    hand_in("a", work())
    with pytest.raises(CourseError, match="'b' handed in nothing"):
        run(students=["b"])


def test_an_empty_class_is_told(run: Run) -> None:
    with pytest.raises(CourseError, match="autograder collect"):
        run()


def test_ungraded_when_unsandboxed_is_another_verdict_and_stamped(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("a", work())
    run()
    assert "WITHOUT A SANDBOX" in run(sandboxed=False, regrade=True, yes=True)
    (record,) = [grade.record for grade in Journal(classroom.kept).grades("top_k")]
    assert record.sandbox == "none"


# --- the lesson changed ---


def test_a_check_added_after_grading_gets_its_place_in_all_submissions(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("a", work())
    run()
    before = dump(classroom.root)
    with open_book(classroom) as book:  # as if the gradebook were from before the check
        notebook = book.find_notebook(LESSON.slug, LESSON.slug)
        for cell in [*notebook.grade_cells, *notebook.source_cells]:
            if cell.name == "top_k-ties":
                for given in getattr(cell, "grades", []):
                    book.db.delete(given)
                book.db.delete(cell)
        book.db.commit()
    assert dump(classroom.root) != before
    run()
    assert dump(classroom.root) == before


def test_leavings_of_a_kill_are_swept_up(classroom: Classroom, hand_in: HandIn, run: Run) -> None:
    hand_in("a", work())
    run()
    entry = next((classroom.kept / "journal").rglob("*.json"))
    part = entry.with_name(f".{entry.name}.00ff.course-part")
    shutil.copy(entry, part)
    run()
    assert not part.exists()


def test_importing_the_grading_does_not_import_torch() -> None:
    """torch costs seconds and memory, and formgrader's server needs neither."""
    import subprocess

    code = "import sys, autograder.nbgrader_hooks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_gradebook_is_made_where_no_program_of_ours_is_on_the_path(
    classroom: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nbgrader runs `alembic` by name, and many call the course's Python without activating it."""
    monkeypatch.setenv("PATH", "/usr/bin")
    ClassGrading(classroom, Settings(classroom.secret())).lay_out_gradebook()
    with open_book(classroom) as book:
        assert not list(book.students)


def test_a_command_does_not_wait_for_a_grammar_that_it_never_uses() -> None:
    """jsonschema takes up a package that takes as long to load as all the rest of a command."""
    code = "import autograder.grade_commands, sys; print(sys.modules.get('lark'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "None\n"
