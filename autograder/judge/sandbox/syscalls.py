"""The system calls that a child may make: what Python and torch need to compute, and no more.

Whatever is not here answers EPERM. Names, not numbers: libseccomp knows the numbers of the machine
at hand, and a name that it does not know is left out.
"""

from __future__ import annotations

import fcntl
import os
import termios
from dataclasses import dataclass

OWN_PID = 0x5AFE_C0DE  # stands for the child's own number, which the child puts in

# linux/sched.h: VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS, PARENT_SETTID, CHILD_CLEARTID,
# which is how the C libraries start a thread, and DETACHED, which one of them adds
THREAD, THREAD_DETACHED = 0x3D_0F00, 0x40_0000
# linux/futex.h: wait, wake, and both with a set of bits, for this process or a shared memory
FUTEX_COMMANDS, FUTEX_FLAGS = (0, 1, 9, 10), 128 | 256
# asm-generic/mman-common.h: normal, random, sequential, will need, no need, free, (no) large pages,
# and the guard pages of a thread's stack
ADVICE = (0, 1, 2, 3, 4, 8, 14, 15, 102, 103)
# linux/socket.h: do not wait, no SIGPIPE, wait for all. Others reach odd corners of the kernel: out
# of band data on Unix sockets was a way out of a sandbox (CVE-2025-38236)
MESSAGE_FLAGS = 0x40 | 0x4000 | 0x100

SET_NAME, GET_NAME, NAME_MEMORY = 15, 16, 0x53564D41  # of prctl
INT = 0xFFFF_FFFF  # the kernel looks at the lower half of an int alone


@dataclass(frozen=True)
class Bits:
    """A condition: `argument & mask == value`."""

    argument: int
    mask: int
    value: int


FREE = """
    read readv pread64 preadv write writev close close_range lseek dup dup2 dup3
    stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat
    getdents getdents64 getcwd
    mmap munmap mremap mprotect brk
    shutdown poll ppoll select pselect6
    set_robust_list rseq sched_yield sched_getaffinity getcpu
    rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall exit exit_group
    getpid getppid gettid getuid geteuid getgid getegid getgroups uname sysinfo
    getrlimit getrusage times time gettimeofday clock_gettime clock_getres
    nanosleep clock_nanosleep getrandom
""".split()  # noqa: SIM905  (with a line for each name it would fill three screens)

# any line of a name is enough
CONDITIONAL: list[tuple[str, list[Bits]]] = [
    # a thread of this process, never a process
    ("clone", [Bits(0, INT & ~THREAD_DETACHED, THREAD)]),
    *[("futex", [Bits(1, INT & ~FUTEX_FLAGS, command)]) for command in FUTEX_COMMANDS],
    *[("madvise", [Bits(2, INT, advice)]) for advice in ADVICE],
    *[(name, [Bits(3, INT & ~MESSAGE_FLAGS, 0)]) for name in ("sendto", "recvfrom")],
    # signals to itself: abort() and pthread_kill need them
    ("tgkill", [Bits(0, INT, OWN_PID)]),
    ("kill", [Bits(0, INT, OWN_PID)]),
    # limits of its own: a hard limit cannot be raised
    ("prlimit64", [Bits(0, INT, 0)]),
    ("prlimit64", [Bits(0, INT, OWN_PID)]),
    *[("prctl", [Bits(0, INT, operation)]) for operation in (SET_NAME, GET_NAME, NAME_MEMORY)],
    # no F_SETOWN: the kernel would send signals in this process's name
    *[
        ("fcntl", [Bits(1, INT, command)])
        for command in (
            fcntl.F_DUPFD,
            fcntl.F_DUPFD_CLOEXEC,
            fcntl.F_GETFD,
            fcntl.F_SETFD,
            fcntl.F_GETFL,
            fcntl.F_SETFL,
        )
    ],
    *[
        ("ioctl", [Bits(1, INT, request)])
        for request in (
            termios.TCGETS,  # isatty
            termios.FIONBIO,
            termios.FIONREAD,
            termios.FIOCLEX,
            termios.FIONCLEX,
        )
    ],
]

# the library falls back on an older call when it hears ENOSYS, but not when it hears EPERM.
# clone3 has its flags in memory, where a filter cannot look
ABSENT = ["clone3", "openat2"]

# what may be opened is Landlock's to say, which looks at whether a file is to be read or written:
# not at emptying one that is opened to be read (before ABI 3), nor at opening it for neither
NEITHER = os.O_WRONLY | os.O_RDWR
for _name, _flags in (("open", 1), ("openat", 2)):
    CONDITIONAL += [
        (_name, [Bits(_flags, NEITHER | os.O_TRUNC, os.O_RDONLY)]),
        (_name, [Bits(_flags, NEITHER, os.O_WRONLY)]),
        (_name, [Bits(_flags, NEITHER, os.O_RDWR)]),
    ]
