"""`python -m tests.bench.scale`: a class of 50, 500 and 5,000 graded, and what a worker keeps.

One lesson of a made-up class with its crashes, loops without an end and memory bombs, graded by
`autograder grade` as an instructor calls it. CPU time is counted beside time on the clock, as the
machine may have other work. `--quick` takes 12 and 48, to see that it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import psutil

from autograder.authoring.layout import ROOT
from autograder.classroom import Classroom, graded_lessons
from autograder.collect import Receipt
from autograder.judge.worker import Job, judge_job, warm_parent
from autograder.simulate import Shares, hand_over, simulate
from autograder.simulate.work import do_work
from tests.bench.grading import OURS, made

LESSON = graded_lessons()["top_k"]
RESULTS = Path(__file__).parent / "results"
MB = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    sizes = [12, 48] if asked.quick else [50, 500, 5000]
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = Path(temporary)
        told: dict[str, Any] = {
            "processors": os.cpu_count(),
            "workers": asked.workers,
            "load_before": os.getloadavg()[0],
            "classes": [graded(folder, size, asked.workers) for size in sizes],
            "memory": held_by_a_worker(60 if asked.quick else 1000),
        }
    small, big = told["classes"][0], told["classes"][-1]
    told["cpu_of_one_in_a_big_class"] = round(big["cpu_each"] / small["cpu_each"], 3)
    told["load_after"] = os.getloadavg()[0]
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(told, indent=1) + "\n"
    (RESULTS / "scale.json").write_text(text, encoding="utf-8")
    (RESULTS / "scale.md").write_text(table(told), encoding="utf-8")
    print(table(told))


# --- classes ---


def graded(folder: Path, students: int, workers: int) -> dict[str, Any]:
    """A class of so many, made, collected, graded."""
    name = f"class-{students}"
    # nobody absent and no broken packs: every one has to be graded
    simulate(folder / f"made-{name}", students, [LESSON], shares=Shares(broken=0.0, absent=0.0))
    began = time.perf_counter()
    classroom = made(folder / name, OURS)
    receipts = list(hand_over(folder / f"made-{name}", classroom))
    assert all(isinstance(receipt, Receipt) for receipt in receipts)
    collected = time.perf_counter() - began
    first = watched(classroom, workers)
    assert f"{students} graded, 0 unchanged, 0 failed" in first["said"], first["said"]
    again = watched(classroom, workers)
    assert f"0 graded, {students} unchanged, 0 failed" in again["said"], again["said"]
    row = {
        "students": students,
        "seconds": first["seconds"],
        "start_seconds": first["start"],
        "judging_seconds": first["judging"],
        "gradebook_seconds": round(first["seconds"] - first["start"] - first["judging"], 1),
        "a_second": round(students / (first["seconds"] - first["start"]), 2),
        "cpu_seconds": first["cpu"],
        "cpu_each": round((first["cpu"] - again["cpu"]) / students, 4),
        "again_seconds": again["seconds"],
        "collect_seconds": round(collected, 1),
        "driver_peak_mb": first["driver_mb"],
        "all_peak_mb": first["all_mb"],
        "disk_mb": round(size_of(classroom.root) / MB, 1),
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def watched(classroom: Classroom, workers: int) -> dict[str, Any]:
    """Run `autograder grade`; how long each part took, CPU time, memory at its highest."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "autograder", "grade", LESSON.name, "--workers", str(workers)],
        cwd=classroom.root,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    peaks = {"driver_mb": 0, "all_mb": 0}
    ended = threading.Event()
    watcher = threading.Thread(target=watch_memory, args=(process.pid, peaks, ended))
    watcher.start()
    verdicts = watch_verdicts(classroom, process, began)
    said, _ = process.communicate()
    ended.set()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if process.returncode != 0:
        raise RuntimeError(said[-3000:])
    return {
        "said": said,
        "seconds": round(time.perf_counter() - began, 1),
        "start": verdicts[0],
        "judging": round(verdicts[1] - verdicts[0], 1),
        "cpu": round(cpu, 1),
        **peaks,
    }


def watch_verdicts(
    classroom: Classroom, process: subprocess.Popen[str], began: float
) -> tuple[float, float]:
    """Seconds until the first verdict, and until the gradebook's turn."""
    journal, autograded = classroom.kept / "journal", classroom.autograded
    first = last = 0.0
    old = journal.exists()
    while process.poll() is None:
        time.sleep(0.1)
        now = round(time.perf_counter() - began, 1)
        if not first and journal.exists():
            first = now
        if not last and autograded.exists():
            last = now
    return (0.0, 0.0) if old else (first, last or first)


def watch_memory(pid: int, peaks: dict[str, int], ended: threading.Event) -> None:
    """The highest of a process, and of it with all below it; what they share counts once."""
    top = psutil.Process(pid)
    while not ended.wait(1.0):
        try:
            everybody = [top, *top.children(recursive=True)]
            peaks["driver_mb"] = max(peaks["driver_mb"], top.memory_info().rss // MB)
        except psutil.NoSuchProcess:
            return
        shared = 0
        for process in everybody:
            try:
                shared += process.memory_full_info().pss
            except psutil.Error:
                continue
        peaks["all_mb"] = max(peaks["all_mb"], shared // MB)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# --- a worker ---


def held_by_a_worker(count: int) -> dict[str, Any]:
    """What a worker and its warm parent hold after a tenth of `count` submissions, and at the end.

    This process is the worker. Loops without an end are left out: they would only take time.
    """
    work = Random(1)
    files = [do_work(LESSON.name, work) for _ in range(100)]
    jobs = [
        Job({LESSON.name: one.source.encode()}, [LESSON.name], b"s" * 32)
        for one in files
        if one.names != ("endless loop",)
    ]
    marks = {}
    for number in range(1, count + 1):
        judge_job(jobs[number % len(jobs)])
        if number in (count // 10, count):
            marks[number] = own_memory()
    return {"after": {str(number): mark for number, mark in marks.items()}}


def own_memory() -> dict[str, float]:
    """MB that this process holds for itself alone, and the warm parent with its children."""
    warm = psutil.Process(warm_parent(True)._process.pid)
    below = [warm, *warm.children(recursive=True)]
    # a page that they share counts once: the child that is ready shares nearly all of them
    parent = sum(process.memory_full_info().pss for process in below)
    own = psutil.Process().memory_full_info().uss
    return {"worker": round(own / MB, 1), "warm_parent": round(parent / MB, 1)}


# --- told ---


def table(told: dict[str, Any]) -> str:
    """All of it in Markdown."""
    lines = [
        "# A class at university size",
        "",
        f"Lesson {LESSON.slug}, {told['workers']} workers on {told['processors']} processors, load "
        f"{told['load_before']:.1f} before and {told['load_after']:.1f} after.",
        "",
        "| students | whole, s | start, s | judging, s | gradebook, s | a second "
        "| CPU each without the sandbox, s | again, s | driver, MB | all, MB | disk, MB |",
        "|" + "---:|" * 11,
    ]
    for row in told["classes"]:
        lines.append(
            f"| {row['students']:,} | {row['seconds']} | {row['start_seconds']} "
            f"| {row['judging_seconds']} | {row['gradebook_seconds']} | {row['a_second']} "
            f"| {row['cpu_each']} | {row['again_seconds']} | {row['driver_peak_mb']} "
            f"| {row['all_peak_mb']} | {row['disk_mb']} |"
        )
    lines += ["", "| submissions judged | worker, MB | warm parent, MB |", "|---:|---:|---:|"]
    for number, mark in told["memory"]["after"].items():
        lines.append(f"| {number} | {mark['worker']} | {mark['warm_parent']} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
