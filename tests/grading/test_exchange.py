"""Feedback through nbgrader's exchange, in a class where some hand in there and some by zip."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from nbgrader.utils import notebook_hash

from autograder.classroom import Classroom
from autograder.projection import EXCHANGE_SECRET
from tests.grading.packs import LESSON, work
from tests.grading.test_nbgrader import nbgrader

HandIn = Callable[..., None]
Run = Callable[..., str]


def secret_of(classroom: Classroom, student: str, folder: str = "autograded") -> str:
    return (classroom.root / folder / student / LESSON.slug / EXCHANGE_SECRET).read_text()


def hand_in_by_exchange(classroom: Classroom, student: str, secret: str) -> None:
    (classroom.submission(student, LESSON) / EXCHANGE_SECRET).write_text(secret)


def test_feedback_is_released_to_those_of_the_exchange_though_others_sent_zips(
    classroom: Classroom, hand_in: HandIn, run: Run, tmp_path: Path
) -> None:
    """`nbgrader release_feedback` stopped at the first student without a secret."""
    hand_in("by_zip", work())
    hand_in("through_exchange", work())
    hand_in_by_exchange(classroom, "through_exchange", "5ecre7")
    run()
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    with (classroom.root / "nbgrader_config.py").open("a") as config:
        config.write(f"\nget_config().Exchange.root = {str(exchange)!r}\n")
    for command in ("generate_feedback", "release_feedback"):
        done = nbgrader(classroom, command, LESSON.slug)
        assert done.returncode == 0, done.stderr
    released = {path.stem for path in (exchange / "test" / "feedback").iterdir()}
    assert notebook_hash(secret="5ecre7", notebook_id=LESSON.slug) in released
    assert len(released) == 2


def test_nobody_can_guess_the_name_of_anothers_feedback(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    for student in ("a", "b"):
        hand_in(student, work())
    run()
    secrets = {secret_of(classroom, student) for student in ("a", "b")}
    assert len(secrets) == 2
    assert all(len(secret) == 64 for secret in secrets)


def test_a_link_or_a_huge_file_is_no_secret(
    classroom: Classroom, hand_in: HandIn, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "private").write_text("the instructor's own")
    for student in ("linked", "huge"):
        hand_in(student, work())
    os.symlink(tmp_path / "private", classroom.submission("linked", LESSON) / EXCHANGE_SECRET)
    hand_in_by_exchange(classroom, "huge", "x" * 10**6)
    run()
    for student in ("linked", "huge"):
        assert len(secret_of(classroom, student)) == 64
        assert "instructor" not in secret_of(classroom, student)
