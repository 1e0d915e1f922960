"""`python -m tests.bench.formgrader`: how long formgrader's pages take for a class of 5,000.

The pages ask nbgrader's API and show its answer in the browser; what is measured is that API, on a
gradebook and folders as grading leaves them. `--students 200` tries it on fewer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.apps.api import NbGraderAPI

from autograder.classroom import Classroom, graded_lessons
from autograder.gradebook import Gradebook
from autograder.gradebook_rows import Entry
from autograder.notebook import graded_ids, release, to_bytes
from tests.bench.grading import OURS, made

LESSON = graded_lessons()["top_k"]
RESULT = Path(__file__).parent / "results" / "formgrader.json"
WHEN = datetime(2026, 11, 2, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.formgrader", description=__doc__)
    parser.add_argument("--students", type=int, default=5000)
    count = parser.parse_args().students
    # nbgrader calls alembic by its bare name
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        classroom = made(Path(temporary) / "class", OURS)
        fill(classroom, count)
        told = {"students": count, "pages": measure(classroom), "load": os.getloadavg()[0]}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(told, indent=1))


def fill(classroom: Classroom, count: int) -> None:
    """A class of so many, handed in and graded."""
    names = [f"s{number:05}" for number in range(count)]
    notebook = to_bytes(release(LESSON))
    for name in names:
        for folder in (classroom.submitted, classroom.autograded):
            place = folder / name / LESSON.slug
            place.mkdir(parents=True)
            (place / f"{LESSON.slug}.ipynb").write_bytes(notebook)
    points: dict[str, float | None] = dict(graded_ids(LESSON))
    with Gradebook(classroom) as book:
        book.register(LESSON)
        book.write(LESSON, [Entry(name, WHEN, points) for name in names])


def measure(classroom: Classroom) -> dict[str, dict[str, float]]:
    """Seconds for what each page asks, by the clock and of the processor."""
    from nbgrader.coursedir import CourseDirectory

    course = CourseDirectory(config=classroom.config)
    api = NbGraderAPI(course, config=classroom.config)
    slug = LESSON.slug
    pages: dict[str, Callable[[], Any]] = {
        "Manage Assignments": api.get_assignments,
        "Manage Submissions": lambda: api.get_submissions(slug),
        "Manual Grading, a lesson": lambda: api.get_notebooks(slug),
        "Manual Grading, its submissions": lambda: api.get_notebook_submissions(slug, slug),
        "Manage Students": api.get_students,
        "a student": lambda: api.get_student_submissions("s00007"),
    }
    found = {}
    for name, ask in pages.items():
        began, cpu = time.perf_counter(), time.process_time()
        assert ask()
        found[name] = {
            "seconds": round(time.perf_counter() - began, 2),
            "cpu": round(time.process_time() - cpu, 2),
        }
    return found


if __name__ == "__main__":
    main()
