"""`python -m tests.bench.grading`: a class graded by stock nbgrader, and by `autograder grade`.

The same submissions of one lesson on the same machine with one process each: a made-up class, of
which some wrote the reference, some nothing, most something with mistakes. Stock nbgrader takes the
notebooks as they are (their cells run the visible checks in a kernel), without a sandbox and
without hidden checks; ours brings both. The times are those of the whole commands.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from autograder.authoring.edition import edition_files
from autograder.authoring.layout import ROOT
from autograder.classroom import Classroom, graded_lessons, read_classroom
from autograder.collect import Receipt
from autograder.simulate import Shares, hand_over, simulate

LESSON = graded_lessons()["top_k"]
RESULT = Path(__file__).parent / "results" / "grading.json"

OURS = f"""
import sys
sys.path.append({str(ROOT)!r})
from autograder.nbgrader_hooks import configure
configure(get_config(), __file__, course_id="bench")
"""
STOCK = f"""
c = get_config()
c.CourseDirectory.course_id = "bench"
c.CourseDirectory.source_directory = {str(ROOT / "lessons")!r}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.grading", description=__doc__)
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--stock", type=int, help="how many of them stock nbgrader grades")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        told = measure(Path(temporary), asked.students, asked.stock or asked.students)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(told, indent=1))


def measure(folder: Path, students: int, by_stock: int) -> dict[str, Any]:
    """Seconds of both, and how many times faster ours is."""
    # nobody absent, no broken packs: stock nbgrader could do nothing with those
    simulate(folder / "class", students, [LESSON], shares=Shares(broken=0.0, absent=0.0))
    ours = made(folder / "ours", OURS)
    receipts = list(hand_over(folder / "class", ours))
    assert all(isinstance(receipt, Receipt) for receipt in receipts), receipts
    stock = made(folder / "stock", STOCK)
    for student in ours.students(LESSON)[:by_stock]:
        lay_whole_edition(ours, stock, student)
    nbgrader = [sys.executable, "-m", "nbgrader"]
    timed(stock, [*nbgrader, "generate_assignment", LESSON.slug])
    slow = timed(stock, [*nbgrader, "autograde", LESSON.slug])
    autograder = [sys.executable, "-m", "autograder"]
    # its whole time: starting, judging, writing gradebook and notebooks
    quick = timed(ours, [*autograder, "grade", LESSON.name, "--workers", "1"])
    return {
        "students": students,
        "stock": {"graded": by_stock, "seconds": slow},
        "ours": {"graded": students, "seconds": quick},
        # not by the processor's time: that of the sandbox, which nobody waits for, is not told
        "times": ratio(slow, by_stock, quick, students),
        "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        "load": os.getloadavg()[0],
        "processors": os.cpu_count(),
    }


def ratio(slow: float, of_slow: int, quick: float, of_quick: int) -> float:
    """How many times as many submissions a second."""
    return round((slow / of_slow) / (quick / of_quick), 1)


def made(root: Path, config: str) -> Classroom:
    root.mkdir()
    (root / "nbgrader_config.py").write_text(config, encoding="utf-8")
    return read_classroom(root)


def lay_whole_edition(ours: Classroom, stock: Classroom, student: str) -> None:
    """What a student of nbgrader's hands in: the released folder with their own work in it."""
    place = stock.submission(student, LESSON)
    files = edition_files(kind="class", only=LESSON)
    for path in sorted(ours.submission(student, LESSON).rglob("*")):
        if path.is_file():
            name = path.relative_to(ours.submission(student, LESSON)).as_posix()
            files[name] = path.read_bytes()
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)


def timed(classroom: Classroom, command: list[str]) -> float:
    """Seconds that a command takes in a class's folder.

    Raises RuntimeError if it fails.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    began = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=classroom.root,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[2:]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return round(time.perf_counter() - began, 1)


if __name__ == "__main__":
    main()
