"""One class, graded in four ways with the real judge: the same gradebook and the same journal."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from autograder.classroom import Classroom, read_classroom
from autograder.cluster import grade_on_cluster
from autograder.grade_commands import Wishes, run_grade
from autograder.grading import Outcome, Settings
from autograder.shard_commands import run_merge, run_shard
from autograder.simulate import Shares, hand_over, simulate
from autograder.simulate.work import MIX
from autograder.submission import Submission
from tests.cluster.dask import Cluster, left
from tests.cluster.test_shards import files, shards_of
from tests.grading.conftest import CONFIG
from tests.grading.dump import dump
from tests.grading.packs import LESSON

STUDENTS = 12
# crashes of some kinds take half a minute each, and are other tests' business
QUICK = {kind: share for kind, share in MIX.items() if kind != "crash"}


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class with its submissions and its secret, not graded yet."""
    folder = tmp_path_factory.mktemp("collected")
    shares = Shares(mix=QUICK, broken=0.0, absent=0.0)
    simulate(folder / "made", STUDENTS, [LESSON], seed=7, shares=shares)
    root = folder / "class"
    root.mkdir()
    (root / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    classroom = read_classroom(root)
    assert len(list(hand_over(folder / "made", classroom))) == STUDENTS
    classroom.secret()
    return root


def warm_parents(worker: int) -> list[psutil.Process]:
    """What a worker has started: its sandbox's processes."""
    return psutil.Process(worker).children(recursive=True)


@pytest.mark.slow
def test_one_worker_two_workers_dask_with_a_kill_and_shards_give_the_same_bytes(
    collected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(file=StringIO())

    def enter(name: str) -> Classroom:
        root = tmp_path / name
        shutil.copytree(collected, root)
        monkeypatch.chdir(root)
        return read_classroom(root)

    one = enter("one")
    run_grade(console, Wishes(workers=1))
    book, kept = dump(one.root), files(one.kept)
    assert len({row.split(",")[0] for row in book}) == STUDENTS

    two = enter("two")
    run_grade(console, Wishes(workers=2))
    assert dump(two.root) == book
    assert files(two.kept) == kept

    dask = enter("dask")
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster", 2) as cluster:
        orphans: list[psutil.Process] = []

        def judging(settings: Settings) -> object:
            def judge(submissions: Iterator[Submission]) -> Iterator[Outcome]:
                graded = grade_on_cluster(submissions, cluster.address, settings)
                for number, outcome in enumerate(graded):
                    yield outcome
                    if number == STUDENTS // 3:
                        victim = next(pid for pid in cluster.workers() if warm_parents(pid))
                        orphans.extend(warm_parents(victim))
                        os.kill(victim, signal.SIGKILL)

            return judge

        run_grade(console, Wishes(judging=judging))  # type: ignore[arg-type]
        assert orphans
        _, alive = psutil.wait_procs(orphans, timeout=30)
        assert alive == [], "a killed worker left its sandbox behind"
    assert left(cluster.token) == []
    assert dump(dask.root) == book
    assert files(dask.kept) == kept

    shards = enter("shards")
    for number in (3, 1, 2):
        run_shard(console, Wishes(workers=2), f"{number}/3")
    run_merge(console, shards_of(shards, 3))
    assert dump(shards.root) == book
    assert files(shards.kept) == kept
