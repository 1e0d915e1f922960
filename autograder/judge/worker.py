"""What a worker process does: a job's bytes in, a verdict's data out."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .sandbox import WarmParent
from .sandbox.ready import ReadyParent
from .verdict import Verdict

ROOM = 4 << 30  # bytes that a worker may need beyond what it has when it begins


@dataclass(frozen=True)
class Job:
    """One submission to be judged, as bytes: no worker needs a shared disk."""

    files: Mapping[str, bytes]  # lesson -> its file as handed in
    lessons: Sequence[str]
    secret: bytes
    dependencies: str = "reference"
    sandboxed: bool = True


def judge_job(job: Job) -> Verdict:
    """The verdict on a job; the first call in a process starts its warm parent.

    Raises SandboxError where there is no sandbox to be had.
    """
    parent = warm_parent(job.sandboxed)
    from .judging import judge_files

    return judge_files(job.files, job.lessons, parent, job.secret, job.dependencies)


@cache
def warm_parent(sandboxed: bool) -> WarmParent:
    """This process's warm parent; it ends with the process."""
    # torch takes seconds to import, there and here: both at once. The sandbox is started by this
    # thread, since whoever started a process must live as long as it
    importing = threading.Thread(target=importlib.import_module, args=(f"{__package__}.judging",))
    importing.start()
    try:
        parent = ReadyParent(sandboxed=sandboxed)
    finally:
        importing.join()
    import torch

    # one core a worker: the tensors of checks are small, and threads would only wait
    torch.set_num_threads(1)
    limit_memory(ROOM)
    return parent


def limit_memory(room: int) -> None:
    """Let this process grow by `room` bytes of address space and no more.

    The second wall: whatever an answer makes a check compute ends in an exception of that check,
    before the system looks for a process to kill. Without a /proc there is none.
    """
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    limit = pages * resource.getpagesize() + room
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if all(other == resource.RLIM_INFINITY or limit < other for other in (soft, hard)):
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
