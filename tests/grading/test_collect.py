"""What students hand in: names as people make them, and archives made to harm."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import struct
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbgrader.utils
import pytest

from autograder import cli, members
from autograder.classroom import Classroom, student_id
from autograder.collect import Receipt, Refused, collect
from autograder.errors import CourseError
from autograder.members import BrokenPack
from autograder.packs import platform_owner
from autograder.submission import read_handed, read_submission
from tests.grading.conftest import WHEN
from tests.grading.packs import (
    LESSON,
    REFERENCE,
    STUB,
    answered,
    edition,
    notebook,
    work,
    write_folder,
    write_zip,
)


def take_in(classroom: Classroom, *paths: Path, **kw: object) -> list[Receipt | Refused]:
    kw.setdefault("received", WHEN)
    return list(collect(classroom, paths, **kw))  # type: ignore[arg-type]


def taken(results: list[Receipt | Refused]) -> dict[str, list[str]]:
    assert all(isinstance(result, Receipt) for result in results), results
    return {result.student: list(result.lessons) for result in results}  # type: ignore[union-attr]


def module_of(classroom: Classroom, student: str, slug: str = "03_top_k") -> bytes:
    return (classroom.submitted / student / slug / "course_lib/top_k.py").read_bytes()


# --- shapes of packs ---


@pytest.mark.parametrize("below", ["", "03_top_k/", "home/me/hand in/03_top_k/"])
def test_a_zip_is_a_pack_at_any_depth(classroom: Classroom, tmp_path: Path, below: str) -> None:
    files = {**edition(), **work()}
    path = write_zip(tmp_path / "alice.zip", files, below)
    assert taken(take_in(classroom, path)) == {"alice": ["top_k"]}
    assert module_of(classroom, "alice") == REFERENCE


def test_only_what_is_judged_is_laid_down(classroom: Classroom, tmp_path: Path) -> None:
    take_in(classroom, write_zip(tmp_path / "alice.zip", {**edition(), **work()}))
    place = classroom.submitted / "alice/03_top_k"
    names = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    modules = {"generate", "kv_cache", "repetition", "sampling", "temperature", "top_k", "top_p"}
    assert names == {
        "03_top_k.ipynb",
        "timestamp.txt",
        *(f"course_lib/{name}.py" for name in {*modules, "training"}),
    }


def test_a_folder_of_packs_and_a_pack_of_its_own(classroom: Classroom, tmp_path: Path) -> None:
    write_zip(tmp_path / "all/alice.zip", work())
    write_folder(tmp_path / "all/bob", work())
    write_folder(tmp_path / "all/carol/03_top_k", work())
    found = take_in(classroom, tmp_path / "all")
    assert taken(found) == {"alice": ["top_k"], "bob": ["top_k"], "carol": ["top_k"]}
    write_folder(tmp_path / "dave", work())
    assert taken(take_in(classroom, tmp_path / "dave")) == {"dave": ["top_k"]}


@pytest.mark.parametrize(
    "name",
    [
        "03_top_k.ipynb",
        "03_top_k (1).ipynb",
        "03_top_k-Copy1.ipynb",
        "Copy of 03_top_k.ipynb",
        "03_top_k_final.ipynb",
        "Zoë Müller - 03_top_k.ipynb",
        "top_k.ipynb",
        "homework.ipynb",
    ],
)
def test_a_renamed_notebook_is_found(classroom: Classroom, tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "alice", {"course_lib/top_k.py": STUB, name: answered()})
    (receipt,) = take_in(classroom, folder)
    assert isinstance(receipt, Receipt)
    assert list(receipt.lessons) == ["top_k"]
    laid = classroom.submitted / "alice/03_top_k/03_top_k.ipynb"
    assert laid.read_bytes() == answered()
    assert (f"{name} was taken for 03_top_k.ipynb" in receipt.notes) is (name != laid.name)


def test_the_plain_name_goes_before_a_copy(tmp_path: Path) -> None:
    files = {**work(), "03_top_k (1).ipynb": notebook(), "old/course_lib/top_k.py": STUB}
    handed = read_handed(write_folder(tmp_path / "alice", files))
    assert handed.notebooks["top_k"].data == answered()
    assert handed.modules["top_k"].data == REFERENCE
    ignored = {thing.path: thing.why for thing in handed.ignored}
    assert ignored["03_top_k (1).ipynb"] == "03_top_k.ipynb was taken"
    assert ignored["old/course_lib/top_k.py"] == "course_lib/top_k.py was taken"


def test_two_that_differ_are_not_guessed_between(tmp_path: Path) -> None:
    files = {"a/course_lib/top_k.py": REFERENCE, "b/course_lib/top_k.py": STUB}
    folder = write_folder(tmp_path / "alice", files)
    with pytest.raises(BrokenPack, match=r"twice and the two differ: a/.* and b/"):
        read_handed(folder)
    (folder / "b/course_lib/top_k.py").write_bytes(REFERENCE)
    assert read_handed(folder).modules["top_k"].data == REFERENCE


def test_files_of_a_lessons_name_that_are_not_the_learners_are_left(tmp_path: Path) -> None:
    """The checks of lesson 3 are in course_lib/checks/top_k.py, and a reference may lie about."""
    files = {
        "course_lib/checks/top_k.py": b"1",
        "solutions/top_k.py": b"2",
        "course_lib/top_k.mine.py": b"3",
        "course_lib/top_k.py": STUB,
    }
    handed = read_handed(write_folder(tmp_path / "alice", files))
    assert {name: member.data for name, member in handed.modules.items()} == {"top_k": STUB}


def test_a_whole_workspace_is_taken_for_the_lessons_that_were_begun(
    classroom: Classroom, tmp_path: Path
) -> None:
    from autograder.authoring.edition import edition_files

    files = {**edition_files(), "course_lib/top_k.py": REFERENCE}
    (receipt,) = take_in(classroom, write_zip(tmp_path / "alice.zip", files, "workspace/"))
    assert isinstance(receipt, Receipt)
    assert list(receipt.lessons) == ["top_k"]
    assert len(receipt.not_begun) == 7


def test_a_blank_submission_of_one_lesson_is_taken_in(classroom: Classroom, tmp_path: Path) -> None:
    assert taken(take_in(classroom, write_zip(tmp_path / "alice.zip", edition()))) == {
        "alice": ["top_k"]
    }


def test_stubs_alone_need_to_be_told_their_lesson(classroom: Classroom, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "alice", {"course_lib/top_k.py": STUB})
    (refused,) = take_in(classroom, folder)
    assert isinstance(refused, Refused)
    assert "--lesson" in refused.why
    assert taken(take_in(classroom, folder, lesson=LESSON)) == {"alice": ["top_k"]}


def test_a_pack_with_nothing_of_the_course_is_refused_for_a_named_lesson_too(
    classroom: Classroom, tmp_path: Path
) -> None:
    """It became an empty submission, and took the place of an earlier one."""
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / "notes.txt").write_text("see you", encoding="utf-8")
    (refused,) = take_in(classroom, tmp_path / "alice", lesson=LESSON)
    assert isinstance(refused, Refused)
    assert not (classroom.submitted / "alice").exists()


# --- downloads of learning platforms ---


def test_owners_are_read_from_the_names_of_platforms() -> None:
    moodle = platform_owner("Zoë van der Berg_12345_assignsubmission_file_")
    assert moodle is not None
    assert (moodle.student, moodle.name) == ("12345", "Zoë van der Berg")
    for name in ("doejane_12345_678_top_k.py", "doejane_LATE_12345_678_top_k.py"):
        canvas = platform_owner(name)
        assert canvas is not None
        assert (canvas.student, canvas.name, canvas.rest) == ("12345", "doejane", "top_k.py")
    # the last part is the student's own, and may try to be another's
    forged = "eve_101_7001_x_5_assignsubmission_file_top_k.py"
    for name in (forged, f"Eve_101_assignsubmission_file_{forged}"):
        eve = platform_owner(name)
        assert eve is not None
        assert eve.student == "101"
    for name in ("alice.zip", "top_k.py", "03_top_k.ipynb", "jane_doe.zip"):
        assert platform_owner(name) is None


def test_moodles_folders_loose_files_and_zips(classroom: Classroom, tmp_path: Path) -> None:
    folder = tmp_path / "download"
    write_folder(folder / "Jane Doe_11_assignsubmission_file_", work())
    write_zip(folder / "Joe Roe_12_assignsubmission_file_/mine.zip", work())
    write_folder(folder, {"Ann_13_assignsubmission_file_top_k.py": REFERENCE})
    write_zip(folder / "Bob_14_assignsubmission_file_work.zip", work())
    expected = {student: ["top_k"] for student in ("11", "12", "13", "14")}
    results = take_in(classroom, folder)
    assert taken(results) == expected
    assert {result.name for result in results if isinstance(result, Receipt)} == {
        "Jane Doe",
        "Joe Roe",
        "Ann",
        "Bob",
    }

    whole = tmp_path / "all submissions.zip"
    with zipfile.ZipFile(whole, "w") as packed:
        for path in sorted(folder.rglob("*")):
            packed.write(path, path.relative_to(folder).as_posix())
    again = take_in(classroom, whole, whole_class=True)
    assert taken(again) == expected
    assert all(result.again == ["top_k"] for result in again if isinstance(result, Receipt))


def test_canvas_puts_the_files_of_all_side_by_side(classroom: Classroom, tmp_path: Path) -> None:
    files = {
        "doejane_101_7001_top_k.py": REFERENCE,
        "doejane_101_7002_03_top_k.ipynb": answered(),
        "roejoe_LATE_102_7003_top_k.py": STUB + b"# mine\n",
    }
    write_folder(tmp_path / "submissions", files)
    write_zip(tmp_path / "submissions.zip", files, "")
    for path in (tmp_path / "submissions", tmp_path / "submissions.zip"):
        assert taken(take_in(classroom, path, whole_class=True)) == {
            "101": ["top_k"],
            "102": ["top_k"],
        }
    assert module_of(classroom, "101") == REFERENCE
    assert (classroom.submitted / "101/03_top_k/03_top_k.ipynb").read_bytes() == answered()


def test_a_zip_of_zips_is_a_class(classroom: Classroom, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as whole:
        for student in ("alice", "bob"):
            path = write_zip(tmp_path / f"{student}.zip", work())
            whole.write(path, f"lesson 3/{student}.zip")
    found = take_in(classroom, tmp_path / "class.zip", whole_class=True)
    assert taken(found) == {"alice": ["top_k"], "bob": ["top_k"]}


@pytest.mark.parametrize("alone", [True, False])
def test_nobody_hands_in_for_others(classroom: Classroom, tmp_path: Path, alone: bool) -> None:
    """Zips in a student's zip, named after others, are parts of that student's pack."""
    inner = {f"{name}.zip": zipped((f"course_lib/{name}.py", b"1")) for name in ("top_k", "top_p")}
    forged = {**inner, "roejoe_102_7003_top_k.py": b"2"}
    path = write_zip(tmp_path / "in/mallory.zip", forged, "")
    (receipt,) = take_in(classroom, path if alone else path.parent)
    assert isinstance(receipt, Receipt)
    assert receipt.student == "mallory"
    assert [folder.name for folder in classroom.submitted.iterdir()] == ["mallory"]


# --- receipts ---


def test_a_receipt_tells_what_arrived_and_what_was_ignored(
    classroom: Classroom, tmp_path: Path
) -> None:
    files = {**edition(), **work(), "diary.txt": b"dear diary", "timestamp.txt": b"1999-01-01"}
    (receipt,) = take_in(classroom, write_zip(tmp_path / "alice.zip", files, ""))
    assert isinstance(receipt, Receipt)
    assert receipt.odd == ["diary.txt"]
    submission = read_submission(classroom, "alice", LESSON)
    assert receipt.line() == f"alice: top_k {submission.sha256[:12]}; ignored: diary.txt"
    (path,) = (classroom.kept / "receipts/03_top_k").rglob("*.json")
    told = json.loads(path.read_text("utf-8"))
    assert (told["student"], told["sha256"]) == ("alice", submission.sha256)
    assert told["files"]["course_lib/top_k.py"]["bytes"] == len(REFERENCE)
    assert {"path": "diary.txt", "why": "not a part of a submission"} in told["ignored"]
    assert len(told["ignored"]) == len(files) - 9  # eight modules and the notebook


def test_the_time_is_the_receipts_never_the_students(classroom: Classroom, tmp_path: Path) -> None:
    files = {**work(), "timestamp.txt": b"1999-01-01 00:00:00 UTC"}
    take_in(classroom, write_folder(tmp_path / "alice", files))
    submission = read_submission(classroom, "alice", LESSON)
    assert (submission.received, submission.stamped) == (WHEN, True)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"tomorrow",
        b"9" * 400,
        b"\xff",
        b"0" * (2**20 + 1),
        b"24h" + b"1" * 30 + b"ESTe",  # a number that decimal cannot divide
        b"1." * 2**18,
        b"9999-12-31 23:59:59 UTC",
        b"0001-01-01 00:00:00 UTC",
    ],
)
def test_a_timestamp_that_is_none_is_no_trouble(
    classroom: Classroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    """nbgrader's exchange takes whatever a student's account wrote."""
    take_in(classroom, write_folder(tmp_path / "alice", work()))
    place = classroom.submission("alice", LESSON)
    (place / "timestamp.txt").write_bytes(text)
    parsed: list[str] = []
    original = nbgrader.utils.parse_utc

    def parse(told: str) -> datetime:
        parsed.append(told)
        return original(told)

    monkeypatch.setattr(nbgrader.utils, "parse_utc", parse)
    submission = read_submission(classroom, "alice", LESSON)
    # a megabyte of digits would take it a minute
    assert all(len(told) <= 100 for told in parsed)
    assert not submission.stamped
    assert submission.received.tzinfo is not None


@pytest.mark.parametrize("moment", [1e15, -1e15, 253_402_300_000.0, -60_000_000_000.0])
def test_neither_is_a_folder_from_a_time_when_nobody_lives(
    classroom: Classroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: float
) -> None:
    take_in(classroom, write_folder(tmp_path / "alice", work()))
    (classroom.submission("alice", LESSON) / "timestamp.txt").unlink()
    original = Path.stat

    def far_away(path: Path, **kw: Any) -> Any:
        found = original(path, **kw)
        if path.name != LESSON.slug:
            return found
        return SimpleNamespace(st_mtime=moment, st_mode=found.st_mode)

    monkeypatch.setattr(Path, "stat", far_away)
    submission = read_submission(classroom, "alice", LESSON)
    assert not submission.stamped
    assert 2020 < submission.received.year < 2100


def test_the_same_once_more_keeps_its_first_receipt(classroom: Classroom, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "alice", work())
    take_in(classroom, folder)
    (receipt,) = take_in(classroom, folder, received=WHEN + timedelta(days=3))
    assert isinstance(receipt, Receipt)
    assert receipt.again == ["top_k"]
    assert read_submission(classroom, "alice", LESSON).received == WHEN
    assert not (classroom.kept / "former").exists()


def test_no_former_submission_is_lost(classroom: Classroom, tmp_path: Path) -> None:
    for number in range(3):
        folder = write_folder(tmp_path / f"{number}/alice", work(b"x = %d\n" % number))
        take_in(classroom, folder, received=WHEN + timedelta(hours=number))
    assert module_of(classroom, "alice") == b"x = 2\n"
    former = classroom.kept / "former/03_top_k/alice"
    kept = [path.read_bytes() for path in sorted(former.rglob("top_k.py"))]
    assert kept == [b"x = 0\n", b"x = 1\n"]


# --- ids ---


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        (".hidden", "begins with a dot"),
        ("a/b", "'/'"),
        ("<img src=x>", "'<' '>'"),
        ("a\nb", "'\\\\n'"),
        ("x" * 129, "129 characters"),
        ("学" * 100, "300 bytes"),
    ],
)
def test_ids_that_cannot_be_are_refused(text: str, why: str) -> None:
    with pytest.raises(CourseError, match=why):
        student_id(text)


def test_composed_and_decomposed_letters_are_one_student() -> None:
    assert student_id("Zoe\u0308") == student_id("Zo\u00eb")


# --- archives made to harm ---


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in entries:
            packed.writestr(name, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def special(name: str, kind: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (kind | 0o777) << 16
    return info


GOOD = ("course_lib/top_k.py", REFERENCE)


def lying_about_size() -> bytes:
    """A member whose headers claim one byte."""
    data = bytearray(zipped(("course_lib/top_k.py", b"#" * 2_000_000)))
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.find(signature)
        struct.pack_into("<I", data, start + place, 1)
    return bytes(data)


def encrypted() -> bytes:
    data = bytearray(zipped(GOOD))
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + place] |= 1
    return bytes(data)


def wrong_checksum() -> bytes:
    data = bytearray(zipped(GOOD))
    struct.pack_into("<I", data, data.find(b"PK\x01\x02") + 16, 0)
    return bytes(data)


HARMFUL: dict[str, tuple[Callable[[], bytes], str]] = {
    "too large a module": (
        lambda: zipped(("course_lib/top_k.py", os.urandom(2**20 + 1))),
        "more than 1 MiB",
    ),
    "zip bomb": (
        lambda: zipped(("03_top_k.ipynb", b"0" * (19 * 2**20))),
        "zip bomb",
    ),
    "bomb of many": (
        lambda: zipped(*((f"{n}/03_top_k.ipynb", b"0123456789" * 1_900_000) for n in range(8))),
        "too large|zip bomb",
    ),
    "bomb in a zip": (
        lambda: zipped(("work.zip", zipped(("03_top_k.ipynb", b"0" * (19 * 2**20))))),
        "zip bomb",
    ),
    "a size that lies": (lying_about_size, "damaged zip|more than"),
    "encrypted": (encrypted, "encrypted"),
    "truncated": (lambda: zipped(GOOD)[:200], "damaged zip"),
    "no zip at all": (lambda: b"%PDF-1.7 my homework", "damaged zip"),
    "empty": (lambda: b"", "empty file"),
    "nothing in it": (lambda: zipped(), "neither a lesson's notebook"),
    "a wrong checksum": (
        wrong_checksum,
        "damaged zip",
    ),
    "the same twice": (
        lambda: zipped(GOOD, ("course_lib/top_k.py", STUB)),
        "there twice",
    ),
}


@pytest.mark.parametrize("kind", HARMFUL)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_harmful_archive_is_refused_by_name_and_stops_no_other(
    classroom: Classroom, tmp_path: Path, kind: str
) -> None:
    make, why = HARMFUL[kind]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/mallory.zip").write_bytes(make())
    write_zip(tmp_path / "in/zoe.zip", work())
    refused, receipt = take_in(classroom, tmp_path / "in")
    assert isinstance(refused, Refused), refused
    assert refused.student == "mallory"
    assert re.search(why, refused.why), refused.why
    assert isinstance(receipt, Receipt)
    assert not (classroom.submitted / "mallory").exists()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (("../../course_lib/top_k.py", b"out"), "its path leads out of the pack"),
        (("/etc/course_lib/top_k.py", b"out"), "its path leads out of the pack"),
        (("C:\\course_lib\\top_k.py", b"out"), "its path leads out of the pack"),
        ((special("x/course_lib/top_k.py", stat.S_IFLNK), b"/etc/passwd"), "a link or a device"),
        ((special("x/course_lib/top_k.py", stat.S_IFCHR), b""), "a link or a device"),
        ((special("x/course_lib/top_k.py", stat.S_IFIFO), b""), "a link or a device"),
    ],
)
def test_members_that_are_no_ordinary_files_are_named_and_left(
    classroom: Classroom, tmp_path: Path, entry: tuple[str | zipfile.ZipInfo, bytes], why: str
) -> None:
    (tmp_path / "mallory.zip").write_bytes(zipped(GOOD, entry))
    (receipt,) = take_in(classroom, tmp_path / "mallory.zip")
    assert isinstance(receipt, Receipt)
    assert [thing["why"] for thing in receipt.ignored] == [why]
    assert module_of(classroom, "mallory") == REFERENCE
    outside = {path.name for path in tmp_path.iterdir()} - {"mallory.zip", classroom.root.name}
    assert outside == set()


def test_a_hundred_thousand_members_are_not_even_listed(
    classroom: Classroom, tmp_path: Path
) -> None:
    # the directory alone, as many entries as it takes: nothing of it is ever looked at
    entry = zipped(("a", b""))
    start, end = entry.find(b"PK\x01\x02"), entry.find(b"PK\x05\x06")
    crowd = entry[start:end] * 100_000
    tail = bytearray(entry[end:])
    struct.pack_into("<I", tail, 12, len(crowd))
    (tmp_path / "mallory.zip").write_bytes(entry[:start] + crowd + bytes(tail))
    (refused,) = take_in(classroom, tmp_path / "mallory.zip", student="mallory")
    assert isinstance(refused, Refused)
    assert "holds 100000 files" in refused.why


def test_links_and_pipes_in_a_folder_are_not_followed(classroom: Classroom, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/top_k.py").write_bytes(b"SECRET")
    folder = write_folder(tmp_path / "mallory", {"03_top_k.ipynb": answered()})
    (folder / "course_lib").symlink_to(tmp_path / "secret")
    (folder / "top_k.py").symlink_to(tmp_path / "secret/top_k.py")
    os.mkfifo(folder / "top_p.py")
    (receipt,) = take_in(classroom, folder)
    assert isinstance(receipt, Receipt)
    assert {thing["path"]: thing["why"] for thing in receipt.ignored} == dict.fromkeys(
        ("course_lib", "top_k.py", "top_p.py"), "a link or a device"
    )
    laid = [path.read_bytes() for path in classroom.submitted.rglob("*") if path.is_file()]
    assert not any(b"SECRET" in data for data in laid)


def test_a_folder_that_is_deep_or_crowded_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "mallory", work())
    here = folder
    for _ in range(60):
        here = here / "d"
        here.mkdir()
    assert any(thing.why == "too deep" for thing in read_handed(folder).ignored)
    monkeypatch.setattr(members, "MEMBERS", 50)
    write_folder(folder, {f"n/{number}": b"" for number in range(60)})
    with pytest.raises(BrokenPack, match="more than 50 files"):
        read_handed(folder)


def test_names_cannot_command_a_terminal(classroom: Classroom, tmp_path: Path) -> None:
    (tmp_path / "mallory.zip").write_bytes(zipped(GOOD, ("\x1b]0;owned\x07.txt", b"")))
    (receipt,) = take_in(classroom, tmp_path / "mallory.zip")
    assert isinstance(receipt, Receipt)
    assert receipt.odd == ["?]0;owned?.txt"]


# --- the command ---


def test_the_command_names_each_broken_pack_and_fails_in_the_end(
    classroom: Classroom,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_zip(tmp_path / "in/alice.zip", work())
    (tmp_path / "in/broken.zip").write_bytes(b"PK")
    line = ["autograder", "collect", str(tmp_path / "in"), "--received", "2026-11-02T13:00+01:00"]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    assert ended.value.code == 1
    assert "alice: top_k " in told.out
    assert "refused broken: damaged zip" in told.out
    assert "1 of 2 packs refused" in told.err
    received = read_submission(classroom, "alice", LESSON).received
    assert received == datetime(2026, 11, 2, 12, tzinfo=UTC)
