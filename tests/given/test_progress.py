"""course_lib/given/progress.py: the learner's record, and what becomes of it in bad weather."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from course_lib.checks.kit import find_suite
from course_lib.given import progress
from course_lib.given.progress import Bar, LessonProgress, record, summary

from .conftest import ROOT, Workspace


@dataclass
class Ran:
    """What came of a check, as far as the record cares."""

    id: str
    passed: bool = True
    mistake: str | None = None
    attempted: bool = True


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".course").mkdir()
    return tmp_path


def stored(home: Path) -> dict[str, dict[str, object]]:
    checks: dict[str, dict[str, object]] = json.loads(
        (home / ".course" / "progress.json").read_text(encoding="utf-8")
    )["checks"]
    return checks


def top_k(home: Path) -> LessonProgress:
    (lesson,) = (lesson for lesson in summary(home).lessons if lesson.lesson == "top_k")
    return lesson


def top_k_points() -> dict[str, float]:
    suite = find_suite("top_k")
    assert suite is not None
    return {check.id: check.points for check in suite.checks.values()}


# --- what is recorded ---


def test_points_are_those_of_the_checks_that_pass_now(home: Path) -> None:
    points = top_k_points()
    first, second, *_ = points
    record([Ran(first), Ran(second, passed=False)], home)
    assert top_k(home).points == points[first]
    assert top_k(home).possible == sum(points.values())
    record([Ran(first, passed=False), Ran(second)], home)
    assert top_k(home).points == points[second]
    assert summary(home).points == points[second]


def test_a_lesson_is_begun_by_an_attempt(home: Path) -> None:
    first, *_ = top_k_points()
    assert not top_k(home).attempted
    record([Ran(first, passed=False, attempted=False)], home)
    assert not top_k(home).attempted
    record([Ran(first, passed=False)], home)
    assert top_k(home).attempted


def test_a_mistake_is_mended_when_all_its_checks_pass(home: Path) -> None:
    first, second, third, *_ = top_k_points()
    record([Ran(check, False, "k minus one") for check in (first, second)], home)
    record([Ran(third, False, "fills with zero")], home)
    assert (top_k(home).mended, top_k(home).open) == ([], ["fills with zero", "k minus one"])
    record([Ran(first)], home)
    assert (top_k(home).mended, top_k(home).open) == ([], ["fills with zero", "k minus one"])
    record([Ran(second)], home)
    assert (top_k(home).mended, top_k(home).open) == (["k minus one"], ["fills with zero"])


def test_a_mistake_met_twice_counts_once(home: Path) -> None:
    first, *_ = top_k_points()
    for _ in range(2):
        record([Ran(first, False, "k minus one")], home)
    assert stored(home)[first]["mistakes"] == ["k minus one"]


def test_checks_that_are_gone_from_the_course_count_nothing(home: Path) -> None:
    record([Ran("top_k-of_last_year", False, "an old mistake")], home)
    assert top_k(home).points == 0
    assert top_k(home).open == []


# --- where there is nothing to write, or no way to ---


def test_without_its_folder_nothing_is_written(tmp_path: Path) -> None:
    record([Ran("top_k-keeps_k")], tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert summary(tmp_path).points == 0


def test_the_repository_keeps_no_record() -> None:
    assert progress.HOME == ROOT
    assert progress.workspace() is None


def test_a_disk_that_cannot_be_written_is_no_reason_to_fail(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions do not stop root, under whom tests may run, so the system call itself fails."""

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    record([Ran("top_k-keeps_k")], home)
    before = stored(home)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        record([Ran("top_k-keeps_k", passed=False)], home)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        record([Ran("top_k-keeps_k", passed=False)], home)
    assert stored(home) == before
    assert not list(home.glob(".course/*.part"))


# --- a damaged file ---


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b"{}",
        b'{"checks": []}',
        b'{"checks": {"top_k-keeps_k": 1}}',
        b'{"checks": {"top_k-keeps_k": {"surprise": 1}}}',
        b'{"checks": {"top_k-keeps_k": {"passed": "yes"}}}',
        b'{"checks": {"top_k-keeps_k": {"mistakes": [1]}}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_record_is_kept_aside(home: Path, damage: bytes) -> None:
    path = home / ".course" / "progress.json"
    path.write_bytes(damage)
    assert summary(home).points == 0
    assert path.read_bytes() == damage, "reading changes nothing"
    record([Ran("top_k-keeps_k")], home)
    assert list(stored(home)) == ["top_k-keeps_k"]
    (aside,) = progress.damaged_records(home)
    assert aside.name == "progress.json.damaged"
    assert aside.read_bytes() == damage


def test_a_second_damaged_record_does_not_replace_the_first(home: Path) -> None:
    path = home / ".course" / "progress.json"
    for damage in (b"one", b"two", b"three"):
        path.write_bytes(damage)
        record([Ran("top_k-keeps_k")], home)
    assert [kept.read_bytes() for kept in progress.damaged_records(home)] == [
        b"one",
        b"two",
        b"three",
    ]


# --- two kernels at once ---


def test_two_kernels_lose_nothing_of_each_other(home: Path) -> None:
    source = (
        "import sys; from pathlib import Path; from dataclasses import make_dataclass\n"
        "from course_lib.given.progress import record\n"
        "Ran = make_dataclass('Ran', ['id', 'passed', 'mistake', 'attempted'])\n"
        "for n in range(50):\n"
        "    record([Ran(f'{sys.argv[1]}-{n}', True, None, True)], Path(sys.argv[2]))\n"
    )
    kernels = [
        subprocess.Popen([sys.executable, "-c", source, name, str(home)], cwd=ROOT)
        for name in ("one", "two")
    ]
    assert [kernel.wait(600) for kernel in kernels] == [0, 0]
    assert len(stored(home)) == 100
    assert {path.name for path in (home / ".course").iterdir()} == {
        "progress.json",
        "progress.json.lock",
    }


def test_threads_of_one_kernel_lose_nothing_of_each_other(home: Path) -> None:
    def run(name: str) -> None:
        for n in range(25):
            record([Ran(f"{name}-{n}")], home)

    threads = [threading.Thread(target=run, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored(home)) == 100


def test_a_kernel_that_was_killed_leaves_no_lock_behind(home: Path) -> None:
    source = (
        "import os, sys; from pathlib import Path; from course_lib.given import progress\n"
        "with progress._locked(Path(sys.argv[1])):\n"
        "    os.abort()\n"
    )
    subprocess.run([sys.executable, "-c", source, str(home / ".course")], cwd=ROOT, timeout=600)
    record([Ran("top_k-keeps_k")], home)
    assert list(stored(home)) == ["top_k-keeps_k"]


# --- the bar ---


def test_the_bar_says_the_same_to_the_eye_and_to_a_screen_reader(home: Path) -> None:
    points = top_k_points()
    first, *_ = points
    record([Ran(first)], home)
    bar = progress.bar("top_k", home)
    assert bar is not None
    shown = bar._repr_html_()
    told = f"{points[first]:g} of {sum(points.values()):g} points"
    assert bar.heading == "Lesson 3: top-k, a short list of fixed length"
    assert told in repr(bar)
    assert f'aria-valuetext="{told}"' in shown
    assert f'aria-label="{bar.heading}"' in shown
    assert re.search(rf'role="progressbar".*aria-valuenow="{points[first]:g}"', shown)
    # the words are outside of the bar, whose inside a screen reader does not read
    assert shown.index(told) < shown.index("progressbar")


def test_the_bar_is_empty_half_and_full() -> None:
    filled = [repr(Bar("L", points, 4)).count("#") for points in (0, 2, 4)]
    assert filled == [0, 10, 20]


def test_a_lesson_without_checks_has_no_bar(home: Path) -> None:
    assert progress.bar("faster", home) is None


# --- as notebooks use it ---


def test_a_check_in_a_workspace_is_recorded_there(workspace: Workspace) -> None:
    workspace.solve("top_k")
    source = "from course_lib.checks import check\ncheck('top_k-keeps_k')"
    subprocess.run(
        [sys.executable, "-c", source],
        cwd=workspace.folder,
        env=workspace.environment,
        check=True,
        timeout=600,
    )
    assert json.loads(workspace.record.read_text())["checks"] == {
        "top_k-keeps_k": {"attempted": True, "passed": True, "mistakes": []}
    }
