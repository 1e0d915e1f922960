"""A made-up class: the same for the same seed, and what its truth says it is."""

import csv
from pathlib import Path
from random import Random

import pytest

from autograder.bank import SOLUTIONS
from autograder.classroom import Classroom, graded_lessons, student_id
from autograder.collect import Receipt
from autograder.errors import CourseError
from autograder.late import When, read_due_dates
from autograder.lists import read_times
from autograder.members import BrokenPack
from autograder.simulate import Shares, Truth, hand_over, read_truth, simulate
from autograder.simulate.packing import BREAKAGES
from autograder.simulate.work import CRASHES, MIX, do_work, tasks
from autograder.submission import read_handed
from course_lib.checks.kit import find_suite, lessons, run_check
from course_lib.checks.load import load_source

COUNT = 120


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("class") / "made"
    simulate(out, COUNT, [graded_lessons()["top_k"]], seed=3, shares=Shares(broken=0.3))
    return out


def digest(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    chosen = [graded_lessons()["top_k"], graded_lessons()["top_p"]]
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        simulate(tmp_path / name, 12, chosen, seed)
    assert digest(tmp_path / "one") == digest(tmp_path / "again")
    assert digest(tmp_path / "one") != digest(tmp_path / "other")


def test_a_pack_can_be_read_unless_its_truth_says_that_it_is_broken(made: Path) -> None:
    for truth in read_truth(made):
        if not truth.pack:
            continue
        path = made / truth.pack
        if not truth.broken:
            assert list(read_handed(path).modules) == ["top_k"], truth
        elif truth.broken == "nothing of the course":
            assert not read_handed(path).modules
        else:
            with pytest.raises(BrokenPack):
                read_handed(path)
    assert {truth.broken for truth in read_truth(made)} == {"", *BREAKAGES}


def test_every_pack_has_an_owner_with_an_id_that_the_grader_takes(made: Path) -> None:
    truths = read_truth(made)
    came = [truth for truth in truths if truth.pack]
    written = (made / "packs" / "03_top_k").iterdir()
    assert {truth.pack for truth in came} == {f"packs/03_top_k/{path.name}" for path in written}
    assert len({truth.student for truth in truths}) == COUNT
    for truth in truths:
        assert student_id(truth.student) == truth.student
    with (made / "roster.csv").open(encoding="utf-8", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [truth.student for truth in truths]


def test_packs_came_at_the_time_that_is_written_down_and_some_are_late(made: Path) -> None:
    policies = read_due_dates(made / "due.toml", lessons())
    times = read_times(made / "received/03_top_k.csv", None)
    packs = {truth.student: made / truth.pack for truth in read_truth(made) if truth.pack}
    assert times.keys() == packs.keys()
    for student, pack in packs.items():
        assert pack.stat().st_mtime == times[student].timestamp()
    told = [policies.judge(student, "top_k", moment).when for student, moment in times.items()]
    assert told.count(When.LATE) >= 5
    assert told.count(When.ON_TIME) > COUNT / 2


@pytest.mark.filterwarnings("ignore:this is slow")
@pytest.mark.parametrize("lesson", lessons())
def test_work_does_what_its_kind_says(lesson: str) -> None:
    suite = find_suite(lesson)
    assert suite is not None
    checks = list(suite.checks.values())
    for kind in ("reference", "noisy", "stub", "partly done"):
        work = do_work(lesson, Random(5), {kind: 1})
        module = load_source(lesson, SOLUTIONS, work.source)
        passed = {check.id: run_check(check, module).passed for check in checks}
        if kind in ("reference", "noisy"):
            assert all(passed.values()), kind
        elif kind == "stub":
            assert not any(passed.values())
        else:
            # what does nothing leaves its arguments alone: the judge gives no points for that
            undone = [check.id for check in checks if check.of.split(".")[0] in work.names]
            assert not any(passed[name] for name in undone if "untouched" not in name)


def test_all_kinds_of_work_and_of_crashes_come() -> None:
    works = [do_work("kv_cache", Random(seed)) for seed in range(300)]
    assert {work.kind for work in works} == set(MIX)
    crashes = [do_work("top_k", Random(seed), {"crash": 1}) for seed in range(300)]
    assert {name for work in crashes for name in work.names} == set(CRASHES)
    for work in works:
        assert work.kind != "two mistakes" or len(set(work.names)) == 2


def test_what_is_left_undone_is_a_part() -> None:
    for seed in range(20):
        work = do_work("sampling", Random(seed), {"partly done": 1})
        assert 0 < len(work.names) < len(tasks("sampling"))


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(CourseError, match="is there already"):
        simulate(tmp_path, 3, [graded_lessons()["top_k"]])
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_truth_comes_back_as_it_was_written(tmp_path: Path) -> None:
    truths = simulate(tmp_path / "made", 5, [graded_lessons()["top_k"]])
    assert read_truth(tmp_path / "made") == truths
    assert all(isinstance(truth, Truth) for truth in truths)


def test_a_class_can_be_collected_with_its_own_times(made: Path, tmp_path: Path) -> None:
    classroom = Classroom(tmp_path, "")
    truths = {truth.student: truth for truth in read_truth(made) if truth.pack}
    taken = [one for one in hand_over(made, classroom) if isinstance(one, Receipt)]
    assert {one.student for one in taken} >= {t.student for t in truths.values() if not t.broken}
    for one in taken:
        assert one.received.isoformat() == truths[one.student].received
