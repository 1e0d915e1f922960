"""The few calls of the Linux kernel that Python has no function for."""

from __future__ import annotations

import ctypes
import os
import signal

# prctl's operations, from linux/prctl.h
SET_DEATH_SIGNAL, SET_DUMPABLE, SET_SECCOMP, DROP_BOUND, NO_NEW_PRIVILEGES, AMBIENT = (
    1,
    4,
    22,
    24,
    38,
    47,
)
AMBIENT_CLEAR_ALL = 4
CAPABILITIES_3 = 0x20080522  # linux/capability.h: the header of 64-bit capability sets

_libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """The result of a call of libc, which must not be negative. Raises OSError."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: int | ctypes.Array[ctypes.c_char] | None) -> int:
    """Raises OSError."""
    call = _libc.syscall
    call.restype = ctypes.c_long
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return check(call(ctypes.c_long(number), *plain), f"system call {number}")


def prctl(operation: int, *arguments: int | ctypes.Array[ctypes.c_char]) -> int:
    """Raises OSError."""
    plain = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
    plain += [ctypes.c_ulong(0)] * (4 - len(plain))
    return check(_libc.prctl(ctypes.c_int(operation), *plain), f"prctl {operation}")


def die_with_parent(parent: int) -> None:
    """Be killed when the process that forked this one ends; `parent` is its number."""
    prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
    # it may have ended before that was asked for
    if os.getppid() != parent:
        os._exit(1)


def drop_capabilities() -> None:
    """Give up every privilege of root, for good."""
    for capability in range(64):
        try:
            prctl(DROP_BOUND, capability)
        except OSError:
            break  # beyond the last one that this kernel has; or not root, and then there is none
    prctl(AMBIENT, AMBIENT_CLEAR_ALL)
    header = ctypes.create_string_buffer(CAPABILITIES_3.to_bytes(4, "little") + bytes(4), 8)
    nothing = ctypes.create_string_buffer(24)  # effective, permitted, inheritable: all 0
    check(_libc.capset(header, nothing), "capset")


def no_new_privileges() -> None:
    prctl(NO_NEW_PRIVILEGES, 1)
