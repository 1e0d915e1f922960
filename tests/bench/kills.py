"""Kill a grading at random moments, with the real judge: `python -m tests.bench.kills [MOMENTS]`.

Eight submissions of one lesson, two workers. After each kill all processes of the run have to end,
and grading once more has to give the gradebook of an undisturbed run. Ends with exit code 1 if not.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from autograder.authoring.layout import ROOT
from autograder.classroom import Classroom, read_classroom
from autograder.collect import Receipt, collect
from tests.grading.conftest import CONFIG
from tests.grading.dump import dump
from tests.grading.packs import REFERENCE, STUB, notebook, work, write_folder

STUDENTS = 8
SEED = 20_261_130
PATIENCE = 30  # seconds until the last process of a killed run must have ended

DRIVER = """
from rich.console import Console
from autograder.grade_commands import Wishes, run_grade
run_grade(Console(), Wishes(workers=2))
"""


def hand_in(classroom: Classroom, folder: Path) -> None:
    for number in range(STUDENTS):
        extra = f"\n# student {number}\n".encode()
        wrong = b"\n\ndef top_k_filter(logits, k):\n    return logits.float()\n"
        module = STUB if number == 0 else REFERENCE + extra + (wrong if number % 3 == 0 else b"")
        pack = folder / f"s{number}"
        write_folder(pack, work(module, notebook() if number % 4 == 1 else None))
        when = datetime(2026, 11, 2, tzinfo=UTC)
        (result,) = collect(classroom, [pack], student=f"s{number}", received=when)
        if not isinstance(result, Receipt):
            raise SystemExit(f"not collected: {result}")


def start(classroom: Classroom) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        cwd=classroom.root,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(classroom: Classroom) -> float:
    """Grade to the end; seconds that it took."""
    began = time.monotonic()
    process = start(classroom)
    _, errors = process.communicate(timeout=600)
    if process.returncode != 0:
        raise SystemExit(f"grading failed: {errors}")
    return time.monotonic() - began


def start_over(classroom: Classroom) -> None:
    """As before the first grading; what was handed in stays."""
    for path in (classroom.kept / "journal", classroom.kept / "grades", classroom.autograded):
        subprocess.run(["rm", "-rf", str(path)], check=True)
    (classroom.root / "gradebook.db").unlink(missing_ok=True)


def family(root: int) -> set[tuple[int, str]]:
    """A process and all that come from it: number, and when it began."""
    parents, began = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended in the meantime
            continue
        number = int(status.parent.name)
        if rest[0] != "Z":
            parents[number], began[number] = int(rest[1]), rest[19]
    found, new = set(), {root} & set(parents)
    while new:
        found |= new
        new = {child for child, parent in parents.items() if parent in new} - found
    return {(number, began[number]) for number in found}


def alive(processes: set[tuple[int, str]]) -> set[tuple[int, str]]:
    return {one for one in processes if one in family(one[0])}


def kill_at(classroom: Classroom, seconds: float) -> str:
    """Kill a run after so long; what was wrong afterwards, "" if nothing."""
    start_over(classroom)
    process, known, began = start(classroom), set(), time.monotonic()
    while process.poll() is None and time.monotonic() - began < seconds:
        known |= family(process.pid)
        time.sleep(0.02)
    known |= family(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ends = time.monotonic() + PATIENCE
    while (left := alive(known)) and time.monotonic() < ends:
        time.sleep(0.1)
    return f"{len(left)} processes of {len(known)} stayed" if left else ""


def main(moments: int) -> int:
    chance, faults = random.Random(SEED), 0
    with tempfile.TemporaryDirectory(prefix="[kills] ") as folder:
        root = Path(folder) / "class"
        root.mkdir()
        (root / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
        classroom = read_classroom(root)
        hand_in(classroom, Path(folder) / "packs")
        seconds = finish(classroom)
        undisturbed = dump(root)
        if len(undisturbed) < 10 * STUDENTS:
            raise SystemExit(f"the gradebook has {len(undisturbed)} rows only")
        for _ in range(moments):
            at = chance.uniform(0.1, seconds)
            fault = kill_at(classroom, at)
            finish(classroom)
            fault = fault or ("" if dump(root) == undisturbed else "another gradebook")
            faults += bool(fault)
            print(json.dumps({"after": round(at, 2), "of": round(seconds, 2), "fault": fault}))
    print(f"{moments} kills, {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
