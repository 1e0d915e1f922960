"""Landlock: the kernel lets a process open what is on a list, and nothing else.

Every right that the running kernel knows is taken away, then reading is given back for the listed
files and folders. From ABI 4 on TCP is refused, from ABI 6 on signals to processes outside and
abstract sockets too. See https://docs.kernel.org/userspace-api/landlock.html.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from .kernel import syscall

# system calls from 424 on have one number on all architectures that Python is built for here
# (https://docs.kernel.org/process/adding-syscalls.html, and the kernel's
# include/uapi/asm-generic/unistd.h and arch/x86/entry/syscalls/syscall_64.tbl)
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION = 1  # flag of CREATE_RULESET: tell the ABI
PATH_BENEATH = 1  # kind of rule

# rights on files, from linux/landlock.h
WRITE_FILE, READ_FILE, READ_DIR = 1 << 1, 1 << 2, 1 << 3
# how many rights each ABI knows: 2 brought REFER, 3 TRUNCATE, 5 IOCTL_DEV
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
ALL_TCP = 0b11  # bind and connect
ALL_SCOPES = 0b11  # abstract sockets, signals
# from ABI 7 on each refusal goes to the system's audit log, which a loop of them would fill
NO_LOG = 1


def abi() -> int:
    """The version that the kernel speaks, 0 if none: not built in, or not turned on."""
    try:
        return syscall(CREATE_RULESET, None, 0, VERSION)
    except OSError:
        return 0


class Ruleset:
    """Made once by the warm parent, as to open hundreds of files takes its time."""

    def __init__(self, readable: Iterable[str], writable: Iterable[str] = ()) -> None:
        """Raises OSError where there is no Landlock."""
        version = abi()
        handled = (1 << RIGHTS.get(version, 16)) - 1
        fields = [handled]
        if version >= 4:
            fields.append(ALL_TCP)
        if version >= 6:
            fields.append(ALL_SCOPES)
        data = struct.pack(f"={len(fields)}Q", *fields)
        attributes = ctypes.create_string_buffer(data, len(data))
        self.descriptor = syscall(CREATE_RULESET, attributes, len(data), 0)
        for path in readable:
            self._allow(path, READ_FILE | READ_DIR)
        for path in writable:
            self._allow(path, READ_FILE | WRITE_FILE)

    def _allow(self, path: str, rights: int) -> None:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            if not Path(path).is_dir():
                rights &= ~READ_DIR
            rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
            syscall(ADD_RULE, self.descriptor, PATH_BENEATH, rule, 0)
        finally:
            os.close(place)


def restrict(ruleset: int) -> None:
    """From here on this process has these rights alone; no_new_privs must be set."""
    syscall(RESTRICT_SELF, ruleset, NO_LOG if abi() >= 7 else 0)
    os.close(ruleset)
