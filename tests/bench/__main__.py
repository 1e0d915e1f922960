"""`python -m tests.bench`: measure everything, then write table, plots and the README's section.

`--quick` takes three rounds, to see that all runs. `--text held_out.txt` adds bits per byte in int8
of stories separated by lines of `<|endoftext|>`. `report` writes anew from the JSON that is there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench import measure, report, where

OTHERS = ["calls", "where", "prefill", "context", "sampling", "equal", "training", "starting"]
SECTIONS = [*report.DECODE, *OTHERS]


def main() -> None:
    """Measure, each section in a process of its own, and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["all", "report", "section"], default="all")
    parser.add_argument("--only", help="sections to measure anew, with commas between them")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--text", type=Path)
    asked = parser.parse_args()
    rounds = 3 if asked.quick else 11
    if asked.what == "section":
        print(json.dumps(section(asked.only, rounds)))
        return
    found = report.read() if asked.what == "report" or asked.only else {}
    if asked.what == "all":
        found["machine"] = measure.machine()
        for name in asked.only.split(",") if asked.only else SECTIONS:
            print(f"measuring {name} ...", flush=True)
            found[name] = child(name, asked.quick)
            report.write_json(found)
        if asked.text:
            found["quality"] = measure.quality(asked.text)
        report.write_json(found)
    print(report.write(found))


def child(name: str, quick: bool) -> Any:
    """A section, in a fresh process: threads are set before a library starts its own."""
    command = [sys.executable, "-m", "tests.bench", "section", "--only", name]
    command += ["--quick"] * quick
    count = name.partition("x")[2] if name in report.DECODE else "1"
    limits = {"OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count}
    environment = {**measure.os.environ, **limits, "HF_HUB_OFFLINE": "1"}
    run = subprocess.run(
        command, cwd=measure.ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(run.stdout.splitlines()[-1])


def section(name: str, rounds: int) -> Any:
    """Measure one section here."""
    few = max(3, rounds * 2 // 3)
    if name in report.DECODE:
        batch, threads = map(int, name.removeprefix("decode ").split("x"))
        # a batch of 32 takes seconds a run, and two threads are there to be warned of
        times = rounds if batch == threads == 1 else few if threads == 1 else 3
        return measure.decoding(batch, threads, times)
    work = {
        "calls": measure.calls,
        "where": lambda: where.the_time_goes(3),
        "prefill": lambda: measure.prefill_and_decode(rounds),
        "context": lambda: measure.context(rounds),
        "sampling": lambda: measure.sampling(rounds),
        "equal": measure.equal,
        "training": lambda: measure.train(few),
        "starting": lambda: measure.starting(few),
    }
    return work[name]()


if __name__ == "__main__":
    main()
