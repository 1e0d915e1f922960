"""A Dask cluster of separate processes, as `dask scheduler` and `dask worker` make one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from autograder.authoring.layout import ROOT
from tests.grading.test_kill import marked

PATIENCE = 120  # seconds until a process that starts is given up


class Cluster:
    """A scheduler on a free port of 127.0.0.1, and workers of one thread each.

    With `nanny` a worker that dies is replaced, as Dask does unless it is told not to.
    """

    def __init__(self, folder: Path, workers: int, *, nanny: bool = True) -> None:
        # with an end, lest `dask` be found in `dask0`, whose workers are another cluster's
        self.token = f"cluster-{os.getpid()}-{folder.name}-end"
        self._folder, self._file = folder, folder / "scheduler.json"
        self._log = (folder / "log").open("wb")
        self._started = [
            self._start(
                *("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
                *("--scheduler-file", str(self._file)),
            )
        ]
        try:
            self._wait_for_file()
            for _ in range(workers):
                self.add_worker(nanny=nanny)
        except BaseException:
            self.close()
            raise

    def add_worker(self, *options: str, nanny: bool = True, resources: str = "judge=1") -> None:
        self._started.append(
            self._start(
                *("dask_worker", self.address, "--nthreads", "1", "--resources", resources),
                *("--no-dashboard", "--memory-limit", "0", "--host", "127.0.0.1"),
                *("--local-directory", str(self._folder), *options),
                *([] if nanny else ["--no-nanny"]),
            )
        )

    @property
    def address(self) -> str:
        told: dict[str, str] = json.loads(self._file.read_text(encoding="utf-8"))
        return told["address"]

    def workers(self) -> list[int]:
        """The processes that judge: those that nannies started, or the workers themselves."""
        found = []
        for pid in marked(self.token):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"spawn_main" in line or (b"dask_worker" in line and b"--no-nanny" in line):
                found.append(pid)
        return found

    def stop_scheduler(self) -> None:
        os.kill(self._started[0].pid, signal.SIGKILL)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End everything, nannies before those whom they would replace."""
        for process in self._started:
            process.terminate()
        for process in self._started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()

    def _start(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{program}", *options],
            cwd=ROOT,
            env=os.environ | {"COURSE_TEST_TOKEN": self.token, "PYTHONPATH": str(ROOT)},
            stdout=self._log,
            stderr=self._log,
        )

    def _wait_for_file(self) -> None:
        deadline = time.monotonic() + PATIENCE
        # it is there before it is whole
        while not (self._file.exists() and self._file.read_bytes().rstrip().endswith(b"}")):
            if time.monotonic() > deadline or self._started[0].poll() is not None:
                raise RuntimeError((self._folder / "log").read_text(errors="replace"))
            time.sleep(0.05)


def left(token: str, seconds: float = 30) -> list[int]:
    """The processes with this token that are still there after a while."""
    deadline = time.monotonic() + seconds
    while (found := marked(token)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found
