"""Feedback through nbgrader's exchange, in a class where some hand in there and some by zip."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default.exchange import Exchange
from nbgrader.utils import notebook_hash
from traitlets.config import PyFileConfigLoader

from autograder import exchange
from autograder.classroom import Classroom
from autograder.submission import EXCHANGE_SECRET, read_submission
from tests.grading.packs import LESSON, answered, work, write_folder
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


# --- collecting ---


@pytest.fixture
def inbound(classroom: Classroom, tmp_path: Path) -> Path:
    """Where every student's account may write."""
    root = tmp_path / "exchange"
    place = root / "test/inbound"
    place.mkdir(parents=True)
    with (classroom.root / "nbgrader_config.py").open("a") as config:
        config.write(f"\nget_config().Exchange.root = {str(root)!r}\n")
    return place


def arrived(inbound: Path, student: str, files: dict[str, bytes], day: int = 2) -> Path:
    """What `nbgrader submit` leaves of a student; here all are of one owner."""
    name = f"{student}+{LESSON.slug}+2026-11-{day:02} 12:00:00 UTC+{'c' * 20}"
    own = {
        EXCHANGE_SECRET: f"of {student} {day}".encode(),
        "timestamp.txt": b"1999-01-01 00:00 UTC",
    }
    return write_folder(inbound / name, {**files, **own})


def collected(classroom: Classroom, monkeypatch: pytest.MonkeyPatch, **wishes: bool) -> str:
    """What formgrader's button does; the log of it."""
    owners = {os.getuid(): "mallory"}
    monkeypatch.setattr(exchange, "_owner", lambda number: owners.get(number, "nobody"))
    loader = PyFileConfigLoader("nbgrader_config.py", path=str(classroom.root))
    config = loader.load_config()
    if "check_owner" in wishes:
        config.ExchangeCollect.check_owner = wishes["check_owner"]
    done = NbGraderAPI(config=config).collect(LESSON.slug, update=wishes.get("update", True))
    assert done["success"], done.get("error", "") + done.get("log", "")
    return str(done["log"])


def laid(classroom: Classroom) -> dict[str, set[str]]:
    return {
        folder.name: {
            path.relative_to(folder / LESSON.slug).as_posix()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in classroom.submitted.glob("*")
    }


COUNTS = {"course_lib/top_k.py", "03_top_k.ipynb", "timestamp.txt", EXCHANGE_SECRET}


def test_of_the_exchange_what_counts_is_collected(
    classroom: Classroom, inbound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = {"nbgrader_config.py": b"raise SystemExit", "big.bin": b"x" * 100}
    arrived(inbound, "mallory", {**work(), **trap})
    log = collected(classroom, monkeypatch)
    assert "mallory: top_k " in log
    assert laid(classroom) == {"mallory": COUNTS}
    submission = read_submission(classroom, "mallory", LESSON)
    assert submission.received == datetime(2026, 11, 2, 12, tzinfo=UTC)
    assert secret_of(classroom, "mallory", "submitted") == "of mallory 2"
    (receipt,) = (classroom.kept / "receipts").rglob("*.json")
    assert "mallory" in receipt.read_text()


@pytest.mark.parametrize("name", ["course_lib/top_k.py", "course_lib", EXCHANGE_SECRET])
def test_a_link_in_the_exchange_does_not_become_what_it_leads_to(
    classroom: Classroom, inbound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """nbgrader copies as the instructor, who may read the solutions."""
    hidden = write_folder(tmp_path / "instructor", {"top_k.py": b"SECRET"})
    folder = arrived(inbound, "mallory", {"03_top_k.ipynb": answered()})
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(hidden if name == "course_lib" else hidden / "top_k.py")
    collected(classroom, monkeypatch)
    files = [path for path in classroom.submitted.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert not any(path.is_symlink() or b"SECRET" in path.read_bytes() for path in files)


def test_nbgrader_itself_copies_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "solution").write_bytes(b"SECRET")
    folder = write_folder(tmp_path / "in", {"03_top_k.ipynb": answered()})
    (folder / "top_k.py").symlink_to(tmp_path / "solution")
    Exchange(coursedir=CourseDirectory()).do_copy(str(folder), str(tmp_path / "out"))
    assert (tmp_path / "out/top_k.py").read_bytes() == b"SECRET"


def test_nobody_hands_in_for_another_through_the_exchange(
    classroom: Classroom, inbound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nbgrader warns, and takes it in the place of the true one."""
    arrived(inbound, "zoe", work(b"# not hers\n"))
    arrived(inbound, "mallory", work(), day=3)
    log = collected(classroom, monkeypatch)
    assert "its owner is mallory" in log
    assert set(laid(classroom)) == {"mallory"}
    # where all accounts are one on the disk, that is nbgrader's setting to say
    collected(classroom, monkeypatch, check_owner=False)
    assert set(laid(classroom)) == {"mallory", "zoe"}


@pytest.mark.parametrize(
    "name",
    [
        "eve+03_top_k+tomorrow+x",
        "eve+03_top_k+x",
        "eve+03_top_k+9999-12-31 23:59:59 UTC+x",
        "+03_top_k+2026-11-02 12:00:00 UTC+x",
        "<img src=x>+03_top_k+2026-11-02 12:00:00 UTC+x",
        "eve+03_top_k+24h111111111111111111111111111111ESTe+x",
        "\x1b[2J+03_top_k+\n+x",
    ],
)
def test_a_folder_of_a_strange_name_stops_nobody_else(
    classroom: Classroom, inbound: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    arrived(inbound, "mallory", work())
    write_folder(inbound / name, work())
    log = collected(classroom, monkeypatch)
    assert "not collected" in log
    assert "\x1b" not in log
    assert laid(classroom) == {"mallory": COUNTS}


def test_a_broken_one_leaves_what_was_there_and_a_newer_one_takes_its_place(
    classroom: Classroom, inbound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived(inbound, "mallory", work(b"x = 1\n"))
    collected(classroom, monkeypatch)
    broken = arrived(inbound, "mallory", {"course_lib/top_k.py": b"#" * (2 << 20)}, day=3)
    assert "too large" in collected(classroom, monkeypatch)
    assert read_submission(classroom, "mallory", LESSON).files["top_k"] == b"x = 1\n"
    (broken / "course_lib/top_k.py").write_bytes(b"x = 2\n")
    assert "--update" in collected(classroom, monkeypatch, update=False)
    collected(classroom, monkeypatch)
    submission = read_submission(classroom, "mallory", LESSON)
    assert submission.files["top_k"] == b"x = 2\n"
    assert submission.received.day == 3
    assert len(list((classroom.kept / "former").rglob("top_k.py"))) == 1


def test_a_link_in_the_place_of_a_folder_is_nobodys(
    classroom: Classroom, inbound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = arrived(inbound, "zoe", work())
    (inbound / f"mallory+{LESSON.slug}+2026-11-05 12:00:00 UTC+x").symlink_to(real)
    assert "it is no folder" in collected(classroom, monkeypatch)
    assert laid(classroom) == {}
