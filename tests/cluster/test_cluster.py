"""`autograder grade --cluster`: processes that die, cannot judge, or are not there at all."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder import cluster as module
from autograder.class_grading import ClassGrading
from autograder.classroom import Classroom
from autograder.cluster import FEW, difference, grade_on_cluster, judge_alike, on_cluster
from autograder.errors import CourseError
from autograder.grading import Settings
from autograder.notebook import graded_ids
from autograder.submission import Submission
from tests.cluster.dask import Cluster, left
from tests.grading import fake
from tests.grading.conftest import WHEN
from tests.grading.dump import dump
from tests.grading.packs import LESSON, REFERENCE
from tests.grading.test_kill import STUDENTS, fill, start_over

HandIn = Callable[..., None]
Run = Callable[..., str]
SETTINGS = Settings(b"s" * 32)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    os.environ[fake.POINTS] = json.dumps(graded_ids(LESSON))
    with Cluster(tmp_path_factory.mktemp("dask"), 2) as started:
        yield started
    assert left(started.token) == []


def submission(number: int, extra: bytes = b"") -> Submission:
    source = REFERENCE + f"# student {number}\n".encode() + extra
    return Submission(f"s{number:03}", "top_k", {"top_k": source}, None, WHEN)


def test_the_cluster_gives_the_gradebook_that_one_process_gives(
    classroom: Classroom, hand_in: HandIn, run: Run, cluster: Cluster
) -> None:
    fill(hand_in)
    run()
    here = dump(classroom.root)
    assert len(here) == STUDENTS * 21
    start_over(classroom)
    said = run(judging=on_cluster(cluster.address, fake.judge))
    assert f"{STUDENTS} graded, 0 unchanged, 0 failed" in said
    assert dump(classroom.root) == here


def test_few_submissions_are_in_memory_however_many_there_are(cluster: Cluster) -> None:
    taken = judged = most = 0

    def many() -> Iterator[Submission]:
        nonlocal taken
        for number in range(20 * FEW):
            taken += 1
            yield submission(number)

    for outcome in grade_on_cluster(many(), cluster.address, SETTINGS, judge=fake.judge):
        assert outcome.failure is None
        most = max(most, taken - judged)
        judged += 1
    assert judged == 20 * FEW
    assert most <= FEW


@pytest.mark.slow
def test_workers_killed_at_random_moments_lose_nothing_and_nobody_is_judged_twice(
    classroom: Classroom, hand_in: HandIn, run: Run, cluster: Cluster
) -> None:
    fill(hand_in)
    run()
    undisturbed = dump(classroom.root)
    start_over(classroom)
    chance = random.Random(20_261_130)
    # in numbers of verdicts, not by the clock
    moments = sorted(chance.sample(range(1, STUDENTS), 5))
    grading = ClassGrading(classroom, Settings(classroom.secret()))
    work = [grading.plan(LESSON, None, regrade=False)]
    outcomes, killed = [], 0

    def judge(submissions: Iterator[Submission]) -> Iterator[object]:
        nonlocal killed
        graded = grade_on_cluster(
            submissions, cluster.address, grading.settings, judge=fake.slow_judge
        )
        for outcome in graded:
            outcomes.append(outcome.submission.student)
            yield outcome
            if len(outcomes) in moments:
                os.kill(chance.choice(alive(cluster)), signal.SIGKILL)
                killed += 1

    report = grading.run(work, judge, confirm=lambda moves: True)  # type: ignore[arg-type]
    grading.project([LESSON], lambda: None)
    assert killed == len(moments)
    assert not report.failures
    assert sorted(outcomes) == [f"s{number:02}" for number in range(STUDENTS)]
    assert dump(classroom.root) == undisturbed


def alive(cluster: Cluster) -> list[int]:
    """The workers, once there is one: a nanny takes a moment to replace the last."""
    deadline = time.monotonic() + 60
    while not (found := cluster.workers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return sorted(found)


@pytest.mark.slow
def test_who_kills_every_worker_fails_alone(cluster: Cluster) -> None:
    class_of = [submission(n, b"# kill the judge\n" if n == 5 else b"") for n in range(12)]
    outcomes = grade_on_cluster(class_of, cluster.address, SETTINGS, judge=fake.judge)
    why = {one.submission.student: one.why for one in outcomes if one.failure is not None}
    assert why == {"s005": "each worker that judged it died: look at their memory"}


def test_a_judge_that_fails_is_the_outcome_of_one_submission(cluster: Cluster) -> None:
    class_of = [submission(n, b"# break the judge\n" if n == 1 else b"") for n in range(3)]
    outcomes = grade_on_cluster(class_of, cluster.address, SETTINGS, judge=fake.judge)
    why = {one.submission.student: one.why for one in outcomes if one.failure is not None}
    assert list(why) == ["s001"]
    assert "the judge divides by zero" in why["s001"]


@pytest.mark.slow
def test_a_scheduler_that_is_gone_is_told_and_what_was_judged_is_kept(
    classroom: Classroom, hand_in: HandIn, run: Run, tmp_path: Path
) -> None:
    fill(hand_in)
    (tmp_path / "dask").mkdir()
    with Cluster(tmp_path / "dask", 1, nanny=False) as gone:
        grading = ClassGrading(classroom, Settings(classroom.secret()))
        work = [grading.plan(LESSON, None, regrade=False)]
        judge = on_cluster(gone.address, fake.slow_judge)(grading.settings)

        def stop(outcome: object) -> None:
            gone.stop_scheduler()

        with pytest.raises(CourseError, match=r"cluster at tcp://127\.0\.0\.1:\d+ is gone"):
            grading.run(work, judge, confirm=lambda moves: True, done=stop)
    kept = len(list((classroom.kept / "journal").rglob("*.json")))
    assert 1 <= kept < STUDENTS
    assert f"{STUDENTS - kept} graded, {kept} unchanged" in run()


@pytest.mark.slow
def test_workers_that_never_come_back_are_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All workers had died while they started, and the run stood still for ever."""
    (tmp_path / "dask").mkdir()
    with Cluster(tmp_path / "dask", 1, nanny=False) as cluster:
        outcomes = grade_on_cluster(
            map(submission, range(5000)), cluster.address, SETTINGS, judge=fake.slow_judge
        )
        next(outcomes)
        monkeypatch.setattr(module, "LONGEST_WAIT", 2)
        for worker in alive(cluster):
            os.kill(worker, signal.SIGKILL)
        with pytest.raises(CourseError, match="its scheduler or all of its workers"):
            list(outcomes)


class Lost:
    """A future of Dask's whose result lies on a cluster that is no more: it has no end."""

    status = "finished"

    def __init__(self) -> None:
        self.asked = threading.Event()

    def add_done_callback(self, done: Callable[[Any], None]) -> None:
        self.thread = threading.Thread(target=done, args=(self,), daemon=True)
        self.thread.start()

    def result(self, timeout: float | None = None) -> None:
        self.asked.set()
        time.sleep(3_600 if timeout is None else timeout)
        raise TimeoutError


def test_a_result_that_never_comes_does_not_keep_the_program_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything was told, and now and then `autograder grade --cluster` did not exit."""
    monkeypatch.setattr(module, "LONGEST_CALL", 0.01)
    lost = Lost()
    client: Any = SimpleNamespace(
        submit=lambda *job, **options: lost, scheduler_info=lambda n_workers: {"workers": {}}
    )
    executor = module.ClusterExecutor(client)
    ours = executor.submit(print)
    assert lost.asked.wait(60)
    executor.shutdown()
    with pytest.raises(BrokenExecutor):
        ours.result(timeout=60)
    lost.thread.join(timeout=60)
    assert not lost.thread.is_alive()


def test_no_scheduler_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_CALL", 1)
    with pytest.raises(CourseError, match="no scheduler answers at tcp://127"):
        list(grade_on_cluster([submission(0)], "tcp://127.0.0.1:9", SETTINGS))


def test_no_workers_and_a_worker_that_may_hold_any_number_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_WAIT", 1)
    with Cluster(tmp_path, 0) as empty:
        with pytest.raises(CourseError, match=r"no worker has come to tcp.* in 1 s: start some"):
            list(grade_on_cluster([submission(0)], empty.address, SETTINGS))
        monkeypatch.setattr(module, "LONGEST_WAIT", 60)
        empty.add_worker(nanny=False, resources="other=1")
        with pytest.raises(CourseError, match="started without `--resources judge=1`"):
            list(grade_on_cluster([submission(0)], empty.address, SETTINGS))


def test_a_worker_with_another_course_or_python_judges_nothing() -> None:
    here = module.identity()
    assert difference(here, here) == ""
    assert "bring it to the same commit" in difference(here, ("0" * 64, here[1]))
    assert "a worker has python 2, and here is python 3.11" in difference(
        ("a", "python 3.11"), ("b", "python 2")
    )
    with pytest.raises(CourseError, match="a worker's course differs"):
        judge_alike(fake.judge, ("0" * 64, here[1]), {}, "top_k", b"", "reference", True)
