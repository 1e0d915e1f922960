"""`grade --shard` and `merge`: parts that add up, and what does not belong together."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from autograder import journal
from autograder.classroom import Classroom
from autograder.errors import CourseError
from autograder.grade_commands import Wishes
from autograder.shard_commands import run_merge, run_shard
from autograder.shards import Shard
from autograder.submission import read_submission
from tests.grading import fake
from tests.grading.dump import dump
from tests.grading.packs import LESSON, REFERENCE, work
from tests.grading.test_kill import STUDENTS, fill, start_over

HandIn = Callable[..., None]
Run = Callable[..., str]


def judge_shard(text: str, **wishes: object) -> str:
    out = StringIO()
    run_shard(
        Console(file=out, width=200),
        Wishes(judging=fake.inline(), **wishes),  # type: ignore[arg-type]
        text,
    )
    return out.getvalue()


def merge(*folders: Path) -> str:
    out = StringIO()
    run_merge(Console(file=out, width=200), folders)
    return out.getvalue()


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.json")
    }


def shards_of(classroom: Classroom, count: int) -> list[Path]:
    return [Shard(number, count).folder(classroom) for number in range(1, count + 1)]


def test_every_submission_is_in_one_shard_and_none_is_empty(
    classroom: Classroom, hand_in: HandIn
) -> None:
    fill(hand_in)
    handed = [read_submission(classroom, name, LESSON) for name in classroom.students(LESSON)]
    numbers = [[s for s in range(1, 4) if Shard(s, 3).holds(one)] for one in handed]
    assert all(len(found) == 1 for found in numbers)
    assert {found[0] for found in numbers} == {1, 2, 3}


def test_merged_shards_give_the_gradebook_and_the_journal_of_one_run(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    fill(hand_in)
    run()
    book, kept = dump(classroom.root), files(classroom.kept)
    assert len(book) == STUDENTS * 21
    start_over(classroom)
    for number in (2, 1, 3):
        judge_shard(f"{number}/3")
    # until they are merged nothing of the class's own is touched
    assert not (classroom.root / "gradebook.db").exists()
    assert not (classroom.kept / "journal").exists()
    said = merge(*shards_of(classroom, 3))
    assert f"{STUDENTS} graded, 0 unchanged, 0 failed" in said
    assert dump(classroom.root) == book
    assert files(classroom.kept) == kept


def test_a_shard_that_was_killed_goes_on_and_merging_twice_changes_nothing(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    fill(hand_in)
    judge_shard("1/2")
    first = Shard(1, 2).folder(classroom)
    entries = sorted((first / "journal").rglob("*.json"))
    entries[0].unlink()
    assert "shard 1/2: 1 judged, 0 failed" in judge_shard("1/2")
    judge_shard("2/2")
    merge(*shards_of(classroom, 2))
    book = dump(classroom.root)
    assert "0 verdicts taken in" in merge(*shards_of(classroom, 2))
    assert dump(classroom.root) == book
    assert "shard 1/2: 0 judged" in judge_shard("1/2")


def test_a_shard_that_is_missing_is_told_student_by_student_and_comes_later(
    classroom: Classroom, hand_in: HandIn
) -> None:
    for number in range(8):
        hand_in(f"s{number}", work(REFERENCE + f"# {number}\n".encode()))
    judge_shard("1/2")
    judge_shard("2/2")
    first, second = shards_of(classroom, 2)
    with pytest.raises(CourseError, match="could not be graded; all others are done"):
        merge(first)
    one = len(dump(classroom.root)) // 21
    assert 0 < one < 8
    assert f"{8 - one} graded, {one} unchanged, 0 failed" in merge(second)


def test_a_regrade_in_shards_moves_nothing_before_somebody_has_seen_it(
    classroom: Classroom, hand_in: HandIn, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("s1", work())
    run()
    before = dump(classroom.root)
    monkeypatch.setattr("autograder.class_grading.checks_digest", lambda: "f" * 64)
    monkeypatch.setattr("autograder.shards.checks_digest", lambda: "f" * 64)
    assert "0 judged" in judge_shard("1/1")
    assert "1 judged" in judge_shard("1/1", regrade=True)
    said = merge(*shards_of(classroom, 1))
    assert "`autograder grade --regrade` shows whose would move" in said
    assert dump(classroom.root) == before


def test_what_was_judged_elsewhere_with_another_seed_or_course_is_refused(
    classroom: Classroom, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("s1", work())
    judge_shard("1/1")
    (shard,) = shards_of(classroom, 1)
    monkeypatch.setattr("autograder.shards.checks_digest", lambda: "f" * 64)
    with pytest.raises(CourseError, match=r"other checks .* bring the course to the same commit"):
        merge(shard)
    monkeypatch.setattr("autograder.shards.checks_digest", journal.checks_digest)
    monkeypatch.setattr("autograder.shards.environment", lambda: "python 2")
    with pytest.raises(CourseError, match="and here is python 2"):
        merge(shard)
    monkeypatch.setattr("autograder.shards.environment", journal.environment)
    (classroom.kept / "secret-seed").write_bytes(b"o" * 32)
    with pytest.raises(CourseError, match="another secret seed: copy"):
        merge(shard)
    assert not (classroom.kept / "journal").exists()


def test_shards_that_contradict_the_class_are_told(
    classroom: Classroom, hand_in: HandIn, run: Run
) -> None:
    hand_in("s1", work())
    judge_shard("1/1")
    run()
    (entry,) = (shards_of(classroom, 1)[0] / "journal").rglob("*.json")
    told = json.loads(entry.read_text())
    told["verdict"]["lessons"]["top_k"]["checks"][0]["earned"] = 0.0
    entry.write_text(json.dumps(told))
    with pytest.raises(CourseError, match="judge one submission differently"):
        merge(*shards_of(classroom, 1))


def test_an_entry_under_a_wrong_name_is_damaged(classroom: Classroom, hand_in: HandIn) -> None:
    hand_in("s1", work())
    judge_shard("1/1")
    (entry,) = (shards_of(classroom, 1)[0] / "journal").rglob("*.json")
    entry.rename(entry.with_name(f"{'0' * 64}.json"))
    with pytest.raises(CourseError, match="is damaged"):
        merge(*shards_of(classroom, 1))


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "a/b", "-1/3", "1/3/5"])
def test_a_shard_is_written_as_a_number_of_a_number(text: str) -> None:
    with pytest.raises(CourseError, match=r"of eight the third is 3/8"):
        Shard.parse(text)


def test_a_folder_without_verdicts_is_no_shard(classroom: Classroom, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="holds no verdicts"):
        merge(tmp_path / "nothing")
