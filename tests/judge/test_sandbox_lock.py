"""What a hostile submission tries, on every kind of sandbox that this machine can have."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.judge.sandbox import SandboxError, attempts, ladder, selftest

from . import sandboxes

RUNGS = {rung.level: rung for rung in ladder.LADDER}
HERE = [rung for rung in ladder.LADDER if not ladder.lacks(rung)]

# a container or an ordinary user may be refused these with no sandbox of ours
MACHINES_MAY_REFUSE = {
    "change its root",
    "count events of the processor",
    "enter a namespace",
    "handle page faults",
    "leave its namespaces",
    "load a BPF program",
    "load a module",
    "look for keys",
    "mount",
    "open a file by its number",
    "set the clock",
    "use io_uring",
}


@pytest.fixture(scope="module", params=HERE, ids=lambda rung: rung.level)
def locked(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Runs code in a child of each kind of sandbox."""
    with sandboxes.warm(request.param) as run:
        yield run


@pytest.fixture(scope="module")
def plain() -> Iterator[Any]:
    """Runs code in a child that nothing holds but limits."""
    with sandboxes.warm(ladder.NONE) as run:
        yield run


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Path]:
    """The course in a folder with an odd name, which every user may read."""
    # pytest's own folders are for its user alone
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield sandboxes.copy_course(Path(name))


def test_the_rungs_that_are_tested_are_those_that_this_machine_has() -> None:
    """On Linux the lock is always there; the others depend on what is installed and who we are."""
    if sys.platform != "linux":
        assert HERE == []
        return
    assert RUNGS["lock"] in HERE
    assert (RUNGS["namespaces and lock"] in HERE) == (shutil.which("bwrap") is not None)
    may_change = os.getuid() == 0 and ladder.closed_to_others() is None
    assert (RUNGS["lock, another user"] in HERE) == may_change


@pytest.mark.parametrize("claim", attempts.ATTEMPTS)
def test_the_lock_refuses_the_attempt_to(claim: str, locked: Any) -> None:
    with selftest.bait() as facts:
        found = locked(selftest.SOURCE, facts=facts, claims=[claim])
        assert (Path(facts["folder"]) / "file").read_text() == "a secret"
        assert (Path(facts["folder"]) / "doomed").exists()
    assert found[claim]


@pytest.mark.parametrize("claim", attempts.ATTEMPTS)
def test_without_the_lock_nothing_refuses_the_attempt_to(claim: str, plain: Any) -> None:
    """The control: an attempt that fails anyway shows nothing."""
    # descriptors are closed and the environment is emptied in any case
    left = "os.environ['LEFT'] = 'behind'; os.dup(CONNECTION)"
    with selftest.bait() as facts:
        found = plain(f"{selftest.SOURCE}\n{left}", facts=facts, claims=[claim])
    if claim in MACHINES_MAY_REFUSE and "PermissionError" in found[claim]:
        return
    # a kernel may be built without some of them
    assert not found[claim] or "Function not implemented" in found[claim]


def test_a_call_that_libseccomp_does_not_know_is_no_way_out(plain: Any) -> None:
    """An old one knows fewer names than a new kernel has: the filter refuses these by default."""
    with selftest.bait() as facts:
        facts["numbers"]["pidfd_open"] = facts["numbers"]["bpf"] = -1
        claims = ["hold the parent by a descriptor", "load a BPF program"]
        found = plain(selftest.SOURCE, facts=facts, claims=claims)
    assert all("Function not implemented" in found[claim] for claim in claims)


def test_what_does_not_hold_is_named() -> None:
    """The self-test finds a lock that locks nothing."""
    process = ladder.start(ladder.NONE, sandboxes.SMALL, ())
    try:
        fault = selftest.fault(process, RUNGS["lock"], sandboxes.SMALL)
    finally:
        process.close()
    assert fault.startswith("it does not hold: code in it can read a file, ")
    assert "fork" in fault


def test_what_should_go_on_working_is_tried_too(plain: Any) -> None:
    broken = selftest.SOURCE.replace("import colorsys", "import no_such_module as colorsys")
    assert "no_such_module" in plain(f"{broken}\nrun = works", facts={})
    assert plain(f"{selftest.SOURCE}\nrun = works", facts={}) == ""


@pytest.mark.parametrize("level", RUNGS)
@pytest.mark.parametrize("user", [0, sandboxes.NOBODY], ids=["root", "ordinary"])
def test_each_kind_holds_under_any_path_and_for_any_user(
    level: str, user: int, elsewhere: Path
) -> None:
    """Tests that run as an ordinary user try that user alone."""
    if os.getuid() != 0:
        user = os.getuid()
    python = sandboxes.for_anybody()
    assert python is not None, "no Python of 3.11 or later here can be run by every user"
    found = sandboxes.report(elsewhere, python, level, None if user == os.getuid() else user)
    if level == "lock, another user" and user != 0:
        assert found == {"fault": "only root can become another user"}
    elif level == "namespaces and lock" and not shutil.which("bwrap"):
        assert found == {"fault": "bubblewrap is not installed"}
    else:
        assert found["fault"] == ""
        assert len(found["measures"]) == len(attempts.ATTEMPTS)
        assert all(found["measures"].values())


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5, 6])
def test_an_older_kernels_landlock_is_enough(abi: int) -> None:
    """Debian 12 has ABI 2: what Landlock does not know yet, the filter of system calls refuses."""
    with tempfile.TemporaryDirectory() as name:
        home = sandboxes.copy_course(Path(name))
        path = home / "autograder/judge/sandbox/landlock.py"
        asked = "return syscall(CREATE_RULESET, None, 0, VERSION)"
        assert asked in path.read_text()
        path.write_text(path.read_text().replace(asked, f"return {abi}"))
        found = sandboxes.report(home, Path(sys.executable), "lock")
    assert found["fault"] == ""


ANOTHER_ARCHITECTURE = """
import ctypes, mmap
def run():
    # getpid of the 32-bit table: mov eax, 20; int 0x80; ret
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()
"""


def test_system_calls_of_another_architecture_end_the_child(locked: Any) -> None:
    """Their numbers mean other calls, so that a list of numbers would not hold."""
    if platform.machine() != "x86_64":
        # arm64 answers no 32-bit calls from a 64-bit program: there is nothing to try
        assert platform.machine() in ("aarch64", "arm64")
        return
    with pytest.raises(EOFError, match="signal=31"):  # SIGSYS
        locked(ANOTHER_ARCHITECTURE)


STREAM = """
import queue, threading
def run():
    pieces = queue.Queue()
    threading.Thread(target=lambda: [pieces.put(n) for n in (1, 2, None)]).start()
    return list(iter(pieces.get, None))
"""

BOMB = """
import ctypes, time
def run(wanted, most):
    libc = ctypes.CDLL(None)
    attributes, thread = ctypes.create_string_buffer(64), ctypes.c_ulong()
    libc.pthread_attr_init(attributes)
    # so small that memory does not run out first
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(16384))
    for started in range(wanted):
        if libc.pthread_create(ctypes.byref(thread), attributes, libc.sleep, ctypes.c_void_p(99)):
            break
    if started > most:
        time.sleep(60)
    return started
"""


def test_a_thread_can_be_had_but_not_many(locked: Any) -> None:
    """To stream text with a thread is fair. Threads of root the kernel does not count."""
    assert locked(STREAM) == [1, 2]
    try:
        most = sandboxes.SMALL.threads
        assert locked(BOMB, wanted=5000, most=most) <= most
    except EOFError as error:
        assert "signal=9" in str(error)
        assert "out_of_memory=False" in str(error)


def test_a_trial_that_raises_is_told(plain: Any) -> None:
    with pytest.raises(SandboxError, match="ZeroDivisionError"):
        plain("def run(): 1 / 0")
