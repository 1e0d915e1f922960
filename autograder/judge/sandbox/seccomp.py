"""seccomp: the kernel refuses every system call that is not on a list, with libseccomp's help."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from .kernel import SET_SECCOMP, prctl
from .syscalls import ABSENT, CONDITIONAL, FREE, OWN_PID

FILTER_MODE = 2
# linux/seccomp.h
ALLOW, KILL_PROCESS, ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
# seccomp.h of libseccomp
BAD_ARCHITECTURE, OPTIMIZE = 2, 8  # attributes
MASKED_EQUAL = 7
UNKNOWN = -1

_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_INSTRUCTION = struct.Struct("=HBBI")


class _Condition(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def library() -> ctypes.CDLL:
    """libseccomp. Raises OSError where it is not installed."""
    found = ctypes.CDLL("libseccomp.so.2")
    found.seccomp_init.restype = ctypes.c_void_p
    found.seccomp_init.argtypes = [ctypes.c_uint32]
    found.seccomp_attr_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]
    found.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_void_p,
    ]
    found.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    found.seccomp_release.argtypes = [ctypes.c_void_p]
    return found


class _Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint), ("minor", ctypes.c_uint), ("micro", ctypes.c_uint))


def library_version() -> str:
    """Of libseccomp, "" if it is not installed."""
    try:
        ask = library().seccomp_version
    except OSError:
        return ""
    ask.restype = ctypes.POINTER(_Version)
    told = ask().contents
    return f"{told.major}.{told.minor}.{told.micro}"


def resolve(name: str) -> int:
    """The number of a system call on this machine, negative if it has none."""
    return int(library().seccomp_syscall_resolve_name(name.encode()))


def compile_filter() -> bytes:
    """The list as a program for the kernel; OWN_PID is still to be replaced. Raises OSError."""
    lib = library()
    context = lib.seccomp_init(ERRNO | errno.EPERM)
    if not context:
        raise OSError("libseccomp gives no context")

    def must(result: int, what: str) -> None:
        if result < 0:
            raise OSError(-result, f"libseccomp, {what}: {os.strerror(-result)}")

    def rule(action: int, name: str, *bits: _Condition) -> None:
        number = lib.seccomp_syscall_resolve_name(name.encode())
        if number != UNKNOWN:
            array = (_Condition * len(bits))(*bits)
            must(lib.seccomp_rule_add_array(context, action, number, len(bits), array), name)

    try:
        # another architecture's numbers (32 bits on 64) mean other calls
        must(lib.seccomp_attr_set(context, BAD_ARCHITECTURE, KILL_PROCESS), "architecture")
        # a tree instead of a list; older versions have none, and do without
        lib.seccomp_attr_set(context, OPTIMIZE, 2)
        for name in FREE:
            rule(ALLOW, name)
        for name, wanted in CONDITIONAL:
            bits = [_Condition(w.argument, MASKED_EQUAL, w.mask, w.value) for w in wanted]
            rule(ALLOW, name, *bits)
        for name in ABSENT:
            rule(ERRNO | errno.ENOSYS, name)
        return _export(lib, context)
    finally:
        lib.seccomp_release(context)


def _export(lib: ctypes.CDLL, context: int) -> bytes:
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe:
        with open(writing, "wb") as end:
            result = lib.seccomp_export_bpf(context, end.fileno())
        if result < 0:
            raise OSError(-result, f"libseccomp, export: {os.strerror(-result)}")
        return pipe.read()


def install(program: bytes) -> None:
    """Filter every system call of this process from here on; no_new_privs must be set."""
    own = with_pid(program, os.getpid())
    filled = _Program(len(own) // _INSTRUCTION.size, own)
    prctl(SET_SECCOMP, FILTER_MODE, ctypes.addressof(filled))


def with_pid(program: bytes, pid: int) -> bytes:
    """The program with `pid` where it compares with OWN_PID."""
    instructions = [
        _INSTRUCTION.pack(code, yes, no, pid if (code, k) == (_JUMP_IF_EQUAL, OWN_PID) else k)
        for code, yes, no, k in _INSTRUCTION.iter_unpack(program)
    ]
    return b"".join(instructions)
