"""What a child may use, and how the system is told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most that one child may use."""

    memory: int = 1 << 30  # bytes of address space above what the warm parent has
    cpu_seconds: int = 60
    threads: int = 16  # a bomb of them would take its neighbours' time
    file_size: int = 0  # bytes of any file that it writes
    open_files: int = 64


# the system counts threads by user: for one who runs other programs too, theirs are among them
MOST_THREADS_OF_A_PERSON = 4096


def apply(limits: Limits, address_space: int, *, own_user: bool) -> None:
    """Limit this process; `address_space` is what it has now, in bytes (0: not known).

    `own_user`: the process's user is the sandbox's, and no other program runs as that user.
    """
    # Windows has none, and is to be told so by name
    import resource

    wanted = {
        "CORE": 0,
        "CPU": limits.cpu_seconds,
        "FSIZE": limits.file_size,
        "NPROC": limits.threads if own_user else MOST_THREADS_OF_A_PERSON,
        "NOFILE": limits.open_files,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        "RTPRIO": 0,
        "NICE": 0,
        "SIGPENDING": 64,
    }
    if address_space:
        wanted["AS"] = address_space + limits.memory
    for name, value in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue  # not every system has every limit
        _, most = resource.getrlimit(kind)
        # no one may raise a limit that somebody set lower; a second of grace for SIGXCPU, which
        # tells a loop from a memory that ran out, and SIGKILL after it
        hard = value + 1 if name == "CPU" else value
        if most != resource.RLIM_INFINITY:
            hard = min(hard, most)
        resource.setrlimit(kind, (min(value, hard), hard))
