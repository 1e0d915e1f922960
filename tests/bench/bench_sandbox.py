"""What a child costs: `python -m tests.bench.bench_sandbox`, in a minute or two.

Children of a locked warm parent, of an unlocked one and fresh processes are made in turns, so that
whatever else the machine does falls on all alike. CPU time is counted, not time on the clock: of
the warm parent, its children and bubblewrap. Then a thousand children show whether memory grows.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autograder.judge.sandbox import WarmParent

ROUNDS, PER_ROUND, MANY = 10, 20, 1000
TICK = 1000 / os.sysconf("SC_CLK_TCK")  # ms


def warm_pid(parent: WarmParent) -> int:
    """The warm parent itself, which is a child of bubblewrap's process if there is one."""
    pid = parent._process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


def cpu(pid: int) -> float:
    """CPU ms of a process and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * TICK


def memory(pid: int) -> float:
    """MB that this process alone holds."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty"):
            return int(line.split()[1]) / 1024
    raise ValueError("no Private_Dirty in smaps_rollup")


def fresh() -> float:
    """CPU ms of a process that imports torch."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def many(parent: WarmParent, count: int) -> float:
    """CPU ms a child, spawned and stopped."""
    pid = warm_pid(parent)
    before = cpu(pid)
    for _ in range(count):
        parent.spawn().stop()
    return (cpu(pid) - before) / count


def main() -> None:
    with WarmParent() as locked, WarmParent(sandboxed=False) as unlocked:
        ways: dict[str, Callable[[], float]] = {
            f"child in “{locked.level}”": lambda: many(locked, PER_ROUND),
            "child, not locked": lambda: many(unlocked, PER_ROUND),
            "fresh process that imports torch": fresh,
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                found[name].append(way())
        table = Table("", "CPU ms, median", "least", "most")
        for name, times in found.items():
            ordered = sorted(times)
            shown = (ordered[len(ordered) // 2], ordered[0], ordered[-1])
            table.add_row(name, *(f"{ms:.1f}" for ms in shown))
        console = Console()
        console.print(table)

        pid = warm_pid(locked)
        many(locked, PER_ROUND)
        before = memory(pid)
        many(locked, MANY)
        console.print(
            f"The warm parent's own memory: {before:.1f} MB, and {memory(pid):.1f} MB "
            f"after {MANY} more children"
        )


if __name__ == "__main__":
    main()
