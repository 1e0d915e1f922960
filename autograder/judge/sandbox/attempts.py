"""What a hostile submission would try, each in a line or two.

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
from typing import Any

Facts = dict[str, Any]  # what the driver has laid out as bait, see `selftest.Bait`
ATTEMPTS: dict[str, Callable[[Facts], Any]] = {}
GROUPS: dict[str, list[str]] = {}  # what the attempts are about -> their claims

CONNECTION = 3  # the one descriptor that a child has beside 0, 1 and 2


def attempt(group: str, claim: str) -> Callable[[Callable[[Facts], Any]], None]:
    def register(function: Callable[[Facts], Any]) -> None:
        ATTEMPTS[claim] = function
        GROUPS.setdefault(group, []).append(claim)

    return register


def run(facts: Facts, claims: list[str] | None = None) -> dict[str, str]:
    """What each attempt was refused with; "" if it was not."""
    found = {}
    for claim in claims or ATTEMPTS:
        try:
            ATTEMPTS[claim](facts)
        except OSError as error:
            found[claim] = f"{type(error).__name__}: {error}"
        else:
            found[claim] = ""
    return found


# --- files ---


@attempt("files", "read a file")
def _(facts: Facts) -> None:
    with open(facts["file"], "rb") as file:
        file.read()


@attempt("files", "read the hidden checks")
def _(facts: Facts) -> None:
    with open(facts["answers"], "rb") as file:
        file.read()


@attempt("files", "list a folder")
def _(facts: Facts) -> None:
    os.listdir(facts["folder"])


@attempt("files", "list the processes")
def _(facts: Facts) -> None:
    os.listdir("/proc")


@attempt("files", "read the parent's environment")
def _(facts: Facts) -> None:
    with open(f"/proc/{os.getppid()}/environ", "rb") as file:
        file.read()


@attempt("files", "read the parent's memory")
def _(facts: Facts) -> None:
    os.close(os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY))


@attempt("files", "read its own memory map")
def _(facts: Facts) -> None:
    with open("/proc/self/maps", "rb") as file:
        file.read()


@attempt("files", "make a file")
def _(facts: Facts) -> None:
    with open(f"{facts['folder']}/made", "w") as file:
        file.write("x")


@attempt("files", "make a temporary file")
def _(facts: Facts) -> None:
    tempfile.TemporaryFile().close()


@attempt("files", "make a file in memory")
def _(facts: Facts) -> None:
    os.close(os.memfd_create("made"))


@attempt("files", "make shared memory")
def _(facts: Facts) -> None:
    call(facts, "shmget", 0, 4096, 0o600)


@attempt("files", "change a file")
def _(facts: Facts) -> None:
    with open(facts["file"], "r+b") as file:
        file.write(b"changed")


@attempt("files", "empty a file")
def _(facts: Facts) -> None:
    os.truncate(facts["file"], 0)


@attempt("files", "empty a file by opening it")
def _(facts: Facts) -> None:
    os.close(os.open(facts["file"], os.O_RDONLY | os.O_TRUNC))


@attempt("files", "open a file neither to read nor to write")
def _(facts: Facts) -> None:
    os.close(os.open(facts["file"], os.O_WRONLY | os.O_RDWR))


@attempt("files", "change a file's mode")
def _(facts: Facts) -> None:
    os.chmod(facts["file"], 0o600)


@attempt("files", "change a file's times")
def _(facts: Facts) -> None:
    os.utime(facts["file"])


@attempt("files", "make a folder")
def _(facts: Facts) -> None:
    os.mkdir(f"{facts['folder']}/folder")


@attempt("files", "link to a file")
def _(facts: Facts) -> None:
    os.symlink(facts["file"], f"{facts['folder']}/link")


@attempt("files", "rename a file")
def _(facts: Facts) -> None:
    os.rename(f"{facts['folder']}/spare", f"{facts['folder']}/renamed")


@attempt("files", "delete a file")
def _(facts: Facts) -> None:
    os.unlink(f"{facts['folder']}/doomed")


@attempt("files", "make a pipe with a name")
def _(facts: Facts) -> None:
    os.mkfifo(f"{facts['folder']}/fifo")


@attempt("files", "watch files")
def _(facts: Facts) -> None:
    call(facts, "inotify_init1", 0)


@attempt("files", "lock a file")
def _(facts: Facts) -> None:
    with open(os.__file__, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)


# --- the network ---


@attempt("network", "connect by TCP")
def _(facts: Facts) -> None:
    with socket.socket() as tried:
        tried.connect(("127.0.0.1", facts["tcp"]))


@attempt("network", "send by UDP")
def _(facts: Facts) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as tried:
        tried.sendto(b"x", ("127.0.0.1", facts["udp"]))


@attempt("network", "listen")
def _(facts: Facts) -> None:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        tried.listen()


@attempt("network", "connect to a Unix socket")
def _(facts: Facts) -> None:
    with socket.socket(socket.AF_UNIX) as tried:
        tried.connect(facts["unix"])


@attempt("network", "connect to an abstract socket")
def _(facts: Facts) -> None:
    with socket.socket(socket.AF_UNIX) as tried:
        tried.connect(facts["abstract"])


@attempt("network", "make a pair of sockets")
def _(facts: Facts) -> None:
    for end in socket.socketpair():
        end.close()


@attempt("network", "ask the connection who is there")
def _(facts: Facts) -> None:
    length = ctypes.c_int(12)
    credentials = ctypes.create_string_buffer(length.value)
    level, option = socket.SOL_SOCKET, socket.SO_PEERCRED
    call(facts, "getsockopt", CONNECTION, level, option, credentials, ctypes.byref(length))


@attempt("network", "send out of band")
def _(facts: Facts) -> None:
    reached(facts, "sendto", CONNECTION, b"x", 0, socket.MSG_OOB, None, 0)


# --- other processes ---


@attempt("processes", "fork")
def _(facts: Facts) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


@attempt("processes", "fork by clone3")
def _(facts: Facts) -> None:
    # 64 bytes of zeros but for the signal at the end: an ordinary fork
    arguments = (ctypes.c_uint64 * 8)(0, 0, 0, 0, signal.SIGCHLD)
    pid = call(facts, "clone3", ctypes.byref(arguments), ctypes.sizeof(arguments))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


@attempt("processes", "start a program")
def _(facts: Facts) -> None:
    # there is no such file, which is told only to one who might have started it
    reached(facts, "execve", b"/no/such/program", None, None)


@attempt("processes", "signal the parent")
def _(facts: Facts) -> None:
    os.kill(os.getppid(), 0)


@attempt("processes", "signal the driver")
def _(facts: Facts) -> None:
    os.kill(facts["driver"], 0)


@attempt("processes", "signal everybody")
def _(facts: Facts) -> None:
    os.kill(-1, 0)


@attempt("processes", "signal a thread of the parent")
def _(facts: Facts) -> None:
    call(facts, "tkill", os.getppid(), 0)


@attempt("processes", "queue a signal for the parent")
def _(facts: Facts) -> None:
    reached(facts, "rt_sigqueueinfo", os.getppid(), 0, None)


@attempt("processes", "have the kernel signal the parent")
def _(facts: Facts) -> None:
    fcntl.fcntl(CONNECTION, fcntl.F_SETOWN, os.getppid())


@attempt("processes", "hold the parent by a descriptor")
def _(facts: Facts) -> None:
    os.close(call(facts, "pidfd_open", os.getppid(), 0))


@attempt("processes", "trace")
def _(facts: Facts) -> None:
    call(facts, "ptrace", 0, 0, 0, 0)  # PTRACE_TRACEME, which harms nobody


@attempt("processes", "copy memory of the parent")
def _(facts: Facts) -> None:
    reached(facts, "process_vm_readv", os.getppid(), None, 0, None, 0, 0)


@attempt("processes", "change the parent's limits")
def _(facts: Facts) -> None:
    reached(facts, "prlimit64", os.getppid(), 0, None, None)


@attempt("processes", "change its priority")
def _(facts: Facts) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))


@attempt("processes", "choose processors")
def _(facts: Facts) -> None:
    os.sched_setaffinity(0, os.sched_getaffinity(0))


@attempt("processes", "outlive the parent")
def _(facts: Facts) -> None:
    call(facts, "prctl", 1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG: none


@attempt("processes", "let itself be traced")
def _(facts: Facts) -> None:
    call(facts, "prctl", 4, 1, 0, 0, 0)  # PR_SET_DUMPABLE


@attempt("processes", "begin a session")
def _(facts: Facts) -> None:
    reached(facts, "setpgid", os.getpid(), os.getpid())


# --- the kernel ---


@attempt("kernel", "leave its namespaces")
def _(facts: Facts) -> None:
    call(facts, "unshare", 0)


@attempt("kernel", "enter a namespace")
def _(facts: Facts) -> None:
    reached(facts, "setns", -1, 0)


@attempt("kernel", "mount")
def _(facts: Facts) -> None:
    reached(facts, "mount", b"none", b"/no/such/folder", b"tmpfs", 0, None)


@attempt("kernel", "change its root")
def _(facts: Facts) -> None:
    reached(facts, "chroot", b"/no/such/folder")


@attempt("kernel", "become another user")
def _(facts: Facts) -> None:
    reached(facts, "setuid", os.getuid())


@attempt("kernel", "use io_uring")
def _(facts: Facts) -> None:
    reached(facts, "io_uring_setup", 0, None)


@attempt("kernel", "load a BPF program")
def _(facts: Facts) -> None:
    reached(facts, "bpf", 5, None, 0)


@attempt("kernel", "count events of the processor")
def _(facts: Facts) -> None:
    reached(facts, "perf_event_open", None, 0, -1, -1, 0)


@attempt("kernel", "handle page faults")
def _(facts: Facts) -> None:
    reached(facts, "userfaultfd", 1)


@attempt("kernel", "look for keys")
def _(facts: Facts) -> None:
    reached(facts, "keyctl", 0, -3, 0, 0, 0)


@attempt("kernel", "open a file by its number")
def _(facts: Facts) -> None:
    reached(facts, "open_by_handle_at", -1, None, 0)


@attempt("kernel", "pose as another system")
def _(facts: Facts) -> None:
    call(facts, "personality", 0xFFFF_FFFF)


@attempt("kernel", "filter system calls")
def _(facts: Facts) -> None:
    reached(facts, "seccomp", 1, 0, None)


@attempt("kernel", "load a module of the kernel")
def _(facts: Facts) -> None:
    reached(facts, "init_module", None, 0, None)


@attempt("kernel", "push a key into a terminal")
def _(facts: Facts) -> None:
    reached(facts, "ioctl", 0, 0x5412, b"x")  # TIOCSTI


@attempt("kernel", "set the clock")
def _(facts: Facts) -> None:
    call(facts, "settimeofday", None, None)


@attempt("kernel", "splice")
def _(facts: Facts) -> None:
    reached(facts, "splice", -1, None, -1, None, 0, 0)


# --- what is lying about ---


@attempt("left about", "find a forgotten descriptor")
def _(facts: Facts) -> None:
    for descriptor in range(CONNECTION + 1, 256):
        try:
            os.fstat(descriptor)
        except OSError:
            continue
        return
    raise OSError(errno.EBADF, "there is none")


@attempt("left about", "find an environment")
def _(facts: Facts) -> None:
    if not os.environ and not ctypes.CDLL(None).getenv(b"OMP_NUM_THREADS"):
        raise OSError(errno.ENOENT, "it is empty")


# --- what must go on working ---


def works(facts: Facts) -> str:
    """Computes, starts a thread, imports from the disk; what does not work, if anything."""
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
    """Its result. Raises OSError; the driver has told the numbers of this machine."""
    number = facts["numbers"][name]
    if number < 0:
        return number
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *plain))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def reached(facts: Facts, name: str, *arguments: Any) -> None:
    """The same with arguments that make no sense: to be told so is not to be refused."""
    try:
        call(facts, name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            raise
