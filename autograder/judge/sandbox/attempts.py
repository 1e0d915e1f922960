"""What a hostile submission would try, a line each.

The driver sends this file into a child (see `trial`), which must be refused every attempt; outside
of a sandbox all of them succeed, or they would prove nothing. Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Facts = dict[str, Any]  # what the driver has laid out as bait, see `selftest.bait`

CONNECTION = 3  # the one descriptor that a child has beside 0, 1 and 2


def run(facts: Facts, claims: list[str] | None = None) -> dict[str, str]:
    """What each attempt was refused with; "" if it was not."""
    found = {}
    for claim, attempt in ATTEMPTS.items():
        if claims is None or claim in claims:
            try:
                attempt(facts)
            except OSError as error:
                found[claim] = f"{type(error).__name__}: {error}"
            else:
                found[claim] = ""
    return found


def works(facts: Facts) -> str:
    """What must go on working: to start a thread, to import from the disk. What does not, if any"""
    try:
        import colorsys
        import wave

        started = threading.Thread(target=wave.Error)
        started.start()
        started.join()
        with open(os.devnull, "w") as nowhere:
            print(colorsys.rgb_to_hsv(0, 0, 0), file=nowhere)
        return "" if len(os.urandom(8)) == 8 else "there is no chance to be had"
    except (OSError, ImportError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


# --- system calls by name ---


def call(facts: Facts, name: str, *arguments: Any) -> int:
    """Its result. Raises OSError. The driver has told the numbers of this machine."""
    number = facts["numbers"][name]
    if number < 0:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *plain))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def reach(facts: Facts, name: str, *arguments: Any) -> None:
    """The same with arguments that make no sense: to be told so is not to be refused."""
    try:
        call(facts, name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES) or facts["numbers"][name] < 0:
            raise


# --- attempts that take more than a line ---


def read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def write(path: str, mode: str) -> None:
    with open(path, mode) as file:
        file.write("x")


def lock_a_file() -> None:
    with open(os.__file__, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def connect(address: Any, family: int = socket.AF_UNIX) -> None:
    with socket.socket(family) as tried:
        tried.connect(address)


def send(address: Any) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as tried:
        tried.sendto(b"x", address)


def listen() -> None:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        tried.listen()


def pair() -> None:
    for end in socket.socketpair():
        end.close()


def ask_who_is_there(facts: Facts) -> None:
    length = ctypes.c_int(12)
    told, size = ctypes.create_string_buffer(length.value), ctypes.byref(length)
    call(facts, "getsockopt", CONNECTION, socket.SOL_SOCKET, socket.SO_PEERCRED, told, size)


def end_a_fork(pid: int) -> None:
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def fork_by_clone3(facts: Facts) -> None:
    # flags, and the signal at the end: an ordinary fork
    arguments = (ctypes.c_uint64 * 8)(0, 0, 0, 0, signal.SIGCHLD)
    end_a_fork(call(facts, "clone3", ctypes.byref(arguments), ctypes.sizeof(arguments)))


def find_a_descriptor() -> None:
    for descriptor in range(CONNECTION + 1, 256):
        try:
            os.fstat(descriptor)
        except OSError:
            continue
        return
    raise OSError(errno.EBADF, "there is none")


def find_an_environment() -> None:
    if not os.environ and not ctypes.CDLL(None).getenv(b"OMP_NUM_THREADS"):
        raise OSError(errno.ENOENT, "it is empty")


def parent() -> int:
    return os.getppid()


# --- all of them, by what they are about ---

GROUPS: dict[str, dict[str, Callable[[Facts], Any]]] = {
    "files": {
        "read a file": lambda f: read(f["file"]),
        "read the hidden checks": lambda f: read(f["answers"]),
        "list a folder": lambda f: os.listdir(f["folder"]),
        "list the processes": lambda f: os.listdir("/proc"),
        "read the parent's environment": lambda f: read(f"/proc/{parent()}/environ"),
        "read the parent's memory": lambda f: os.open(f"/proc/{parent()}/mem", os.O_RDONLY),
        "read its own memory map": lambda f: read("/proc/self/maps"),
        "make a file": lambda f: write(f"{f['folder']}/made", "w"),
        "make a temporary file": lambda f: tempfile.TemporaryFile().close(),
        "make a file in memory": lambda f: os.memfd_create("made"),
        "make shared memory": lambda f: call(f, "shmget", 0, 4096, 0o600),
        "change a file": lambda f: write(f["file"], "r+"),
        "empty a file": lambda f: os.truncate(f["file"], 0),
        "empty a file by opening it": lambda f: os.open(f["file"], os.O_RDONLY | os.O_TRUNC),
        "open a file for neither": lambda f: os.open(f["file"], os.O_WRONLY | os.O_RDWR),
        "change a file's mode": lambda f: Path(f["file"]).chmod(0o600),
        "change a file's times": lambda f: os.utime(f["file"]),
        "make a folder": lambda f: os.mkdir(f"{f['folder']}/folder"),
        "link to a file": lambda f: os.symlink(f["file"], f"{f['folder']}/link"),
        "rename a file": lambda f: os.rename(f"{f['folder']}/spare", f"{f['folder']}/renamed"),
        "delete a file": lambda f: os.unlink(f"{f['folder']}/doomed"),
        "make a pipe with a name": lambda f: os.mkfifo(f"{f['folder']}/fifo"),
        "watch files": lambda f: call(f, "inotify_init1", 0),
        "lock a file": lambda f: lock_a_file(),
    },
    "network": {
        "connect by TCP": lambda f: connect(("127.0.0.1", f["tcp"]), socket.AF_INET),
        "send by UDP": lambda f: send(("127.0.0.1", f["udp"])),
        "listen": lambda f: listen(),
        "connect to a Unix socket": lambda f: connect(f["unix"]),
        "connect to an abstract socket": lambda f: connect(f["abstract"]),
        "make a pair of sockets": lambda f: pair(),
        "ask the connection who is there": ask_who_is_there,
        "send out of band": lambda f: reach(
            f, "sendto", CONNECTION, b"x", 0, socket.MSG_OOB, None, 0
        ),
    },
    "processes": {
        "fork": lambda f: end_a_fork(os.fork()),
        "fork by clone3": fork_by_clone3,
        # there is no such program, which is told only to one who might have started it
        "start a program": lambda f: reach(f, "execve", b"/no/such/program", None, None),
        "signal the parent": lambda f: os.kill(parent(), 0),
        "signal the driver": lambda f: os.kill(f["driver"], 0),
        "signal everybody": lambda f: os.kill(-1, 0),
        "signal a thread of the parent": lambda f: call(f, "tkill", parent(), 0),
        "queue a signal for the parent": lambda f: reach(f, "rt_sigqueueinfo", parent(), 0, None),
        "have the kernel signal the parent": lambda f: fcntl.fcntl(
            CONNECTION, fcntl.F_SETOWN, parent()
        ),
        "hold the parent by a descriptor": lambda f: call(f, "pidfd_open", parent(), 0),
        "be traced": lambda f: call(f, "ptrace", 0, 0, 0, 0),  # PTRACE_TRACEME
        "copy memory of the parent": lambda f: reach(
            f, "process_vm_readv", parent(), None, 0, None, 0, 0
        ),
        "change the parent's limits": lambda f: reach(f, "prlimit64", parent(), 0, None, None),
        "change its priority": lambda f: os.setpriority(os.PRIO_PROCESS, 0, 19),
        "choose processors": lambda f: os.sched_setaffinity(0, os.sched_getaffinity(0)),
        "outlive the parent": lambda f: call(f, "prctl", 1, 0, 0, 0, 0),  # PR_SET_PDEATHSIG
        "open itself to others": lambda f: call(f, "prctl", 4, 1, 0, 0, 0),  # PR_SET_DUMPABLE
        "change its group": lambda f: reach(f, "setpgid", os.getpid(), os.getpid()),
    },
    "kernel": {
        "leave its namespaces": lambda f: call(f, "unshare", 0),
        "enter a namespace": lambda f: reach(f, "setns", -1, 0),
        "mount": lambda f: reach(f, "mount", b"none", b"/no/such/folder", b"tmpfs", 0, None),
        "change its root": lambda f: reach(f, "chroot", b"/no/such/folder"),
        "become another user": lambda f: reach(f, "setuid", os.getuid()),
        "use io_uring": lambda f: reach(f, "io_uring_setup", 0, None),
        "load a BPF program": lambda f: reach(f, "bpf", 5, None, 0),
        "count events of the processor": lambda f: reach(f, "perf_event_open", None, 0, -1, -1, 0),
        "handle page faults": lambda f: reach(f, "userfaultfd", 1),
        "look for keys": lambda f: reach(f, "keyctl", 0, -3, 0, 0, 0),
        "open a file by its number": lambda f: reach(f, "open_by_handle_at", -1, None, 0),
        "pose as another system": lambda f: call(f, "personality", 0xFFFF_FFFF),
        "filter system calls": lambda f: reach(f, "seccomp", 1, 0, None),
        "load a module": lambda f: reach(f, "init_module", None, 0, None),
        "push a key into a terminal": lambda f: reach(f, "ioctl", 0, 0x5412, b"x"),  # TIOCSTI
        "set the clock": lambda f: call(f, "settimeofday", None, None),
        "splice": lambda f: reach(f, "splice", -1, None, -1, None, 0, 0),
    },
    "left about": {
        "find a forgotten descriptor": lambda f: find_a_descriptor(),
        "find an environment": lambda f: find_an_environment(),
    },
}
ATTEMPTS = {claim: attempt for group in GROUPS.values() for claim, attempt in group.items()}
