"""What one student hands in, and what becomes of another's grade."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import nbformat
import pytest

from autograder.class_grading import ClassGrading
from autograder.classroom import Classroom, blob_name
from autograder.errors import CourseError
from autograder.grading import local_pool
from autograder.journal import Journal
from autograder.judge.verdict import LessonVerdict, Verdict
from autograder.report.junit import as_junit
from autograder.submission import read_submission
from autograder.verdict_cells import outputs
from tests.grading import fake
from tests.grading.conftest import WHEN
from tests.grading.dump import scores
from tests.grading.packs import LESSON, REFERENCE, STUB, work, write_folder
from tests.grading.test_grading import by_hand, grade_by_hand

TIES = REFERENCE + b"# top_k-ties\n"
HandIn = Callable[..., None]
Run = Callable[..., str]


def test_the_same_file_of_two_is_two_grades(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    """They share a verdict, and nothing that is one's own: time, hand-given points, later work."""
    hand_in("ann", work(TIES))
    hand_in("bob", work(TIES), WHEN + timedelta(days=1))
    executor = fake.Inline()
    run(judging=fake.inline(executor))
    assert scores(classroom.root) == {"ann": 14.5, "bob": 14.5}
    received = {grade.student: grade.received for grade in Journal(classroom.kept).grades("top_k")}
    assert received == {"ann": WHEN, "bob": WHEN + timedelta(days=1)}
    grade_by_hand(classroom, "ann", 1.0, "well said")
    hand_in("bob", work(STUB), WHEN + timedelta(days=2))
    run()
    assert scores(classroom.root) == {"ann": 14.5, "bob": 0.0}
    assert by_hand(classroom, "ann") == (1.0, False, "well said")
    assert by_hand(classroom, "bob") == (None, True, None)


@pytest.mark.parametrize("name", ["\udcff", "a\nb", "<img src=x onerror=alert(1)>", "x" * 200])
def test_a_folder_of_an_impossible_name_stops_no_other(
    classroom: Classroom, hand_in: HandIn, run: Run, name: str
) -> None:
    """nbgrader's exchange and people with a shell make folders too."""
    hand_in("ann", work())
    place = classroom.submission("ann", LESSON)
    shutil.copytree(place, classroom.submitted / name / LESSON.slug)
    with pytest.raises(CourseError, match="1 submission could not be graded"):
        run()
    assert scores(classroom.root) == {"ann": 15.0}
    run.said.encode()  # type: ignore[attr-defined]
    assert "student id" in run.said  # type: ignore[attr-defined]


@pytest.mark.parametrize("wanted", ["*", "[ab]*", "a?n", "ann/../bob", ".", "%61nn", ""])
def test_a_students_name_on_the_command_is_no_pattern(
    classroom: Classroom, hand_in: HandIn, run: Run, wanted: str
) -> None:
    hand_in("ann", work())
    hand_in("bob", work())
    with pytest.raises(CourseError, match="handed in nothing"):
        run(students=[wanted])


def test_an_id_that_looks_like_a_pattern_is_graded_alone(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    for student in ("*", "a", "b"):
        hand_in(student, work())
    hand_in("[ab]", work(TIES))
    run(students=["*"])
    assert scores(classroom.root) == {"*": 15.0}
    run(students=["[ab]"])
    assert scores(classroom.root) == {"*": 15.0, "[ab]": 14.5}


def test_a_grade_is_read_from_its_own_students_file(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    """Ids become names of files by a digest: none is a path, and none is another's."""
    ids = ["ann", "Ann", "ann ", "a..", "con", "nul.json", "x" * 128, "ａnn", "12", "012"]
    for student in ids:
        hand_in(student, work())
    run()
    kept = {student.strip() for student in ids}
    grades = {grade.student for grade in Journal(classroom.kept).grades("top_k")}
    assert grades == set(scores(classroom.root)) == kept
    assert len({blob_name(student) for student in kept}) == len(kept)


def test_a_verdict_that_was_put_under_another_key_is_no_verdict(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    """A file of the journal that a careless hand has copied is found out when it is read."""
    hand_in("ann", work())
    hand_in("bob", work(STUB))
    run()
    journal = Journal(classroom.kept)
    ann, bob = (journal.grade(student, "top_k") for student in ("ann", "bob"))
    assert ann is not None
    assert bob is not None
    places = [
        classroom.kept / f"journal/{one.key.digest[:2]}/{one.key.digest}.json" for one in (ann, bob)
    ]
    shutil.copyfile(*places)
    with pytest.raises(CourseError, match="is damaged"):
        journal.grade("bob", "top_k")


HOSTILE = "]]>&\"'</script><img src=x onerror=alert(1)>\x1b[2J\x00\ud800\u202e\n=cmd|' /C calc'!A0"


def test_whatever_a_message_holds_goes_into_every_form_as_text(
    classroom: Classroom, hand_in: HandIn, grading: ClassGrading
) -> None:
    check = replace(fake.check("top_k-ties", 1.0, "raised", HOSTILE * 50), hint=HOSTILE)
    verdict = Verdict({"top_k": LessonVerdict("top_k", [check])}, "lock", notes=[HOSTILE])
    as_junit(verdict).encode()
    for output in outputs(check.id, check):
        told = json.dumps(output, ensure_ascii=False)
        told.encode()
        assert "<img" not in output.get("data", {}).get("text/html", "")
        assert "\x1b" not in told
        assert "\\u001b" not in told
        assert "\u202e" not in told
    hand_in("ann", work())
    submission = read_submission(classroom, "ann", LESSON)
    key = grading.key(submission)
    grading.journal.keep(key, verdict)
    grading.journal.stand("ann", key, submission.received)
    stood = grading.journal.grade("ann", "top_k")
    assert stood is not None
    assert stood.verdict == verdict
    grading.project([LESSON], lambda: None)
    page = classroom.autograded / "ann/03_top_k/03_top_k.ipynb"
    shown = [
        output["data"].get("text/html", "")
        for cell in nbformat.read(page, as_version=4).cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    assert any("cmd" in "".join(html) for html in shown)
    assert not any("<img" in "".join(html) for html in shown)


def test_a_submission_that_changes_while_it_is_graded_gets_the_grade_of_what_was_judged(
    classroom: Classroom, hand_in: HandIn, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", work(STUB))
    place = classroom.submission("ann", LESSON) / "course_lib/top_k.py"

    def judge(*job: object) -> Verdict:
        place.write_bytes(REFERENCE)
        return fake_judge(*job)  # type: ignore[arg-type]

    fake_judge = fake.judge
    monkeypatch.setattr(fake, "judge", judge)
    run()
    grade = Journal(classroom.kept).grade("ann", "top_k")
    assert grade is not None
    assert grade.lesson.score == 0
    monkeypatch.setattr(fake, "judge", fake_judge)
    run()
    assert scores(classroom.root) == {"ann": 15.0}


def test_what_lies_beside_a_submission_is_neither_read_nor_run(
    classroom: Classroom, hand_in: HandIn, run: Run, tmp_path: Path
) -> None:
    hand_in("mallory", work())
    proof = tmp_path / "proof"
    trap = f"open({str(proof)!r}, 'w').write('owned')\n".encode()
    names = (
        "nbgrader_config.py", "jupyter_config.py", "conftest.py", "sitecustomize.py", "json.py",
        "autograder/__init__.py", ".ipython/profile_default/startup/00.py", "torch.py",
        "course_lib/__init__.py", "gradebook.db", ".autograder/secret-seed",
    )  # fmt: skip
    write_folder(classroom.submission("mallory", LESSON), dict.fromkeys(names, trap))
    run()
    assert scores(classroom.root) == {"mallory": 15.0}
    laid = classroom.autograded / "mallory/03_top_k"
    found = {path.relative_to(laid).as_posix() for path in laid.rglob("*") if path.is_file()}
    assert not found & set(names)
    assert not proof.exists()
    assert os.listdir(classroom.kept / "grades/top_k") == [blob_name("mallory")]


@pytest.mark.parametrize("told_to_all", [signal.SIGINT, signal.SIGTSTP])
def test_a_key_at_the_terminal_stops_no_worker_while_it_judges(told_to_all: int) -> None:
    """Behind Ctrl-Z the clock went on, and an honest submission had timed out for good."""
    with local_pool(1) as pool:
        assert pool.submit(signal.getsignal, told_to_all).result() == signal.SIG_IGN
