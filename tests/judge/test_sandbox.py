"""The warm parent and its children: how they start, what they may use, how they end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from autograder.judge.sandbox import (
    Child,
    Ended,
    Limits,
    SandboxError,
    WarmParent,
    bubblewrap,
    children,
    control,
    ladder,
    packages,
    seccomp,
    selftest,
    trial,
)

ROOT = Path(__file__).resolve().parents[2]
IN_TIME = 30  # seconds that a process may take to go, on a machine that is busy


@pytest.fixture(params=[True, False], ids=["sandboxed", "unsandboxed"])
def parent(request: pytest.FixtureRequest) -> Iterator[WarmParent]:
    """A warm parent without torch, in the best sandbox here and in none."""
    with WarmParent(sandboxed=request.param, imports=()) as made:
        yield made


def start(parent: WarmParent, source: str, limits: Limits = Limits()) -> Child:  # noqa: B008
    """A child that is busy with this source, whose `run()` is called."""
    child = children.spawn(parent._process, limits, trial.__name__)
    child.connection.settimeout(IN_TIME)
    trial.send(child.connection, {"source": source, "arguments": {}})
    return child


def ended(parent: WarmParent, source: str, limits: Limits = Limits()) -> Ended:  # noqa: B008
    """How a child ends that runs this to its end."""
    child = start(parent, source, limits)
    while child.connection.recv(4096):
        pass
    return child.stop()


def gone(exists: Callable[[], bool]) -> bool:
    """Waits until something exists no more."""
    deadline = time.monotonic() + IN_TIME
    while exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not exists()


# --- how a child ends ---


def test_a_child_that_ends_by_itself_tells_its_exit_code(parent: WarmParent) -> None:
    assert ended(parent, "import os\ndef run(): os._exit(7)").exit_code == 7


def test_a_child_that_is_stopped_was_killed(parent: WarmParent) -> None:
    child = start(parent, "def run():\n while True: pass")
    end = child.stop()
    assert (end.exit_code, end.signal, end.out_of_memory) == (None, signal.SIGKILL, False)
    assert child.stop() is end


@pytest.mark.parametrize(
    "deaf",
    [
        "for n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except OSError: pass",
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "import threading; threading.Thread(target=time.sleep, args=(1e6,)).start()",
        "import threading; threading.Thread(target=time.sleep, args=(1e6,)).start(); {leave}",
    ],
    ids=["ignores signals", "blocks signals", "stopped itself", "has a thread", "is its thread"],
)
def test_no_child_can_avoid_its_end(deaf: str, parent: WarmParent) -> None:
    # the first thread alone ends, and with it what the kernel calls the process
    leave = f"import ctypes; ctypes.CDLL(None).syscall({seccomp.resolve('exit')}, 0)"
    deaf = deaf.replace("{leave}", leave)
    child = start(parent, f"import os, signal, time\ndef run():\n {deaf}\n while True: pass")
    assert child.stop().signal == signal.SIGKILL
    assert parent._process.ask({"op": "stop", "pid": child._pid}) == {
        "error": f"there is no child {child._pid}"
    }


def test_a_child_that_uses_up_its_time_is_ended(parent: WarmParent) -> None:
    with WarmParent(
        sandboxed=parent.level != "none", limits=Limits(cpu_seconds=1), imports=()
    ) as hasty:
        loop = "import signal\ndef run():\n signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n {}"
        end = ended(hasty, loop.format("while True: pass"), Limits(cpu_seconds=1))
        assert end == Ended(None, signal.SIGKILL, end.peak_memory, False)
        end = ended(hasty, "def run():\n while True: pass", Limits(cpu_seconds=1))
        assert end == Ended(None, signal.SIGXCPU, end.peak_memory, False)


def test_memory_has_a_limit_which_is_told_as_python_tells_it(parent: WarmParent) -> None:
    source = "def run():\n try: bytearray({})\n except MemoryError: return 'none left'"
    child = start(parent, source.format(2 << 30))
    assert trial.receive(child.connection) == {"result": "none left"}
    child.stop()
    child = start(parent, source.format(100 << 20))
    assert trial.receive(child.connection) == {"result": None}
    # touched or not, it was its own; what the warm parent has is not counted
    assert 90 << 20 < child.stop().peak_memory < 200 << 20


def test_mappings_that_are_shared_count_too(parent: WarmParent) -> None:
    """RLIMIT_DATA would not count them."""
    child = start(parent, "import mmap\ndef run(): mmap.mmap(-1, 2 << 30)")
    assert "Cannot allocate memory" in trial.receive(child.connection)["raised"]
    child.stop()


def told(**fields: Any) -> dict[str, Any]:
    """What a warm parent tells of a child that crashed, but for what is given."""
    usual = {"exit": -11, "had_ended": True, "peak": 100 << 20, "resident": 100 << 20, "cpu": 0.1}
    return {**usual, **fields}


def test_out_of_memory_is_told_from_other_ends() -> None:
    def memory(**fields: Any) -> bool:
        return children.how_it_ended(told(**fields), Limits()).out_of_memory

    assert memory(exit=-9)  # killed by nobody here
    assert not memory(exit=-9, had_ended=False)  # killed by us
    assert not memory(exit=-9, cpu=61.0)  # killed as its time was up
    assert not memory(exit=-11)  # crashed with memory left
    assert memory(exit=-11, peak=1000 << 20)  # crashed when all was used
    assert not memory(exit=1, peak=1000 << 20)


# --- children are apart ---


def test_children_draw_different_numbers(parent: WarmParent) -> None:
    source = "import random\ndef run(): return random.random()"
    drawn = [children.try_out(parent._process, source, {}, Limits()) for _ in range(5)]
    assert len(set(drawn)) == 5


def test_the_order_of_a_set_of_words_is_the_same_in_every_run(parent: WarmParent) -> None:
    """Else a learner's code that goes by it would pass on one worker and fail on another."""
    source = "def run(): return list({str(n) for n in range(100)})"
    first = children.try_out(parent._process, source, {}, Limits())
    with WarmParent(sandboxed=False, imports=()) as another:
        assert children.try_out(another._process, source, {}, Limits()) == first


def test_several_threads_may_ask_one_warm_parent(parent: WarmParent) -> None:
    def square(n: int) -> Any:
        source = "def run(n): return n * n"
        return children.try_out(parent._process, source, {"n": n}, Limits())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(square, range(20))) == [n * n for n in range(20)]


def test_children_have_nothing_of_each_other(parent: WarmParent) -> None:
    leave = "import sys\ndef run(): sys.left_behind = True"
    look = "import sys\ndef run(): return hasattr(sys, 'left_behind')"
    children.try_out(parent._process, leave, {}, Limits())
    assert children.try_out(parent._process, look, {}, Limits()) is False


def test_memory_that_would_be_shared_is_not_there_after_a_fork() -> None:
    """A child that wrote into it would have told the next one something."""
    source = """
import ctypes, mmap, os
from autograder.judge.sandbox import pages
shared, own = mmap.mmap(-1, 4096), mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE)
if {prepared}: pages.prepare()
def child(memory):
    pid = os.fork()
    if pid == 0:
        memory[0] = 1
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(child(own), child(shared), shared[0])
"""

    def run(prepared: bool) -> str:
        code = source.format(prepared=prepared)
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout.strip()

    assert run(prepared=False) == "0 0 1"
    assert run(prepared=True) == "0 -11 0"


# --- which sandbox ---


def test_without_bubblewrap_the_lock_is_used_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    with WarmParent(imports=()) as parent:
        assert parent.level in {"lock, another user", "lock"}


def test_a_sandbox_that_does_not_hold_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaky(process: Any, rung: ladder.Rung, limits: Limits) -> str:
        return "" if rung.level == "lock" else "it does not hold: code in it can fork"

    monkeypatch.setattr(selftest, "fault", leaky)
    with WarmParent(imports=()) as parent:
        assert parent.level == "lock"


def test_without_a_sandbox_there_is_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "lacks", lambda rung: "a reason" if rung.locked else "")
    with pytest.raises(SandboxError, match=r"a reason.*autograder doctor.*--unsandboxed"):
        WarmParent(imports=())
    with WarmParent(sandboxed=False, imports=()) as parent:
        assert parent.level == "none"


def test_a_system_without_fork_is_told_so() -> None:
    """Windows has neither fork nor the modules that limits and lock are made of."""
    code = """
import os, sys
for name in ("fcntl", "resource", "termios"):
    sys.modules[name] = None
del os.fork
from autograder.judge.sandbox import SandboxError, WarmParent
for sandboxed in (True, False):
    try:
        WarmParent(sandboxed=sandboxed)
    except SandboxError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("cannot fork a process") == 4


def test_bubblewrap_that_may_not_make_namespaces_is_told_in_its_own_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "program", lambda: str(refusing))
    with pytest.raises(SandboxError, match="bwrap: No permissions"):
        ladder.start(ladder.LADDER[0], Limits(), ())


def test_a_warm_parent_that_cannot_import_says_what() -> None:
    with pytest.raises(SandboxError, match="ModuleNotFoundError: No module named 'no_such_name'"):
        WarmParent(imports=("no_such_name",))


# --- when processes die ---


def pids_below(pid: int) -> set[tuple[int, str]]:
    """Number and start time of each process that descends from this one."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        parents.setdefault(int(fields[1]), []).append((int(stat.parent.name), fields[19]))
    found, left = set(), [pid]
    while left:
        for child in parents.get(left.pop(), []):
            found.add(child)
            left.append(child[0])
    return found


def alive(process: tuple[int, str]) -> bool:
    try:
        fields = Path(f"/proc/{process[0]}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[19] == process[1] and fields[0] != "Z"


DRIVER = """
import sys, time
from autograder.judge.sandbox import Limits, WarmParent, children, trial
parent = WarmParent(sandboxed=sys.argv[1] == "True", imports=())
for source in ("while True: pass", "import time; time.sleep(1000)"):
    child = children.spawn(parent._process, Limits(), trial.__name__)
    trial.send(child.connection, {"source": f"def run():\\n {source}", "arguments": {}})
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("sandboxed", [True, False])
def test_nothing_is_left_when_the_driver_is_killed(sandboxed: bool) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(sandboxed)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    with driver, driver.stdout:
        assert driver.stdout.readline() == "ready\n"
        below = pids_below(driver.pid)
        # the warm parent and two children at least
        assert len(below) >= 3
        driver.kill()
    for process in below:
        assert gone(lambda process=process: alive(process)), process


def test_nothing_is_left_when_a_warm_parent_is_closed() -> None:
    with WarmParent(imports=()) as parent:
        start(parent, "def run():\n while True: pass")
        below = pids_below(os.getpid())
        mine = {process for process in below if process[0] == parent._process.pid}
        mine |= pids_below(parent._process.pid)
        assert len(mine) >= 2
    assert not any(map(alive, mine))


def test_a_warm_parent_that_dies_is_replaced(parent: WarmParent) -> None:
    level, child = parent.level, start(parent, "def run():\n while True: pass")
    first = parent._process
    below = pids_below(first.pid)
    # bubblewrap's own process has the warm parent below it, and kills it too
    os.kill(min(pid for pid, _ in below) if level.startswith("namespaces") else first.pid, 9)
    # nobody knows how its child would have ended
    assert child.stop() == Ended(None, None, 0, False)
    for process in below:
        assert gone(lambda process=process: alive(process)), process
    assert parent.spawn().stop().signal == signal.SIGKILL
    assert parent._process is not first
    assert parent.level == level
    assert children.try_out(parent._process, "def run(): return 1", {}, Limits()) == 1


def test_a_driver_that_is_forked_gets_children_of_its_own(parent: WarmParent) -> None:
    """As a pool of processes does it: both would speak on one line otherwise."""
    first = parent._process
    pid = os.fork()
    if pid == 0:
        with parent:
            told = parent.spawn().stop().signal == signal.SIGKILL
            os._exit(0 if told and parent._process is not first else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert children.try_out(first, "def run(): return 1", {}, Limits()) == 1


def test_a_warm_parent_does_not_grow_with_its_children(parent: WarmParent) -> None:
    """Neither in descriptors nor in memory; tests/bench has a thousand children."""
    warm = max(pid for pid, _ in {*pids_below(parent._process.pid), (parent._process.pid, "")})

    def holds() -> tuple[int, int, int]:
        status = Path(f"/proc/{warm}/status").read_text()
        memory = int(status.partition("VmRSS:")[2].split()[0])
        return len(os.listdir(f"/proc/{warm}/fd")), len(os.listdir("/proc/self/fd")), memory

    def run(times: int) -> None:
        for _ in range(times):
            children.spawn(parent._process, Limits(), trial.__name__).stop()

    run(20)
    before = holds()
    run(100)
    after = holds()
    assert after[:2] == before[:2]
    assert after[2] <= before[2] + 512  # kB


def test_what_is_imported_leaves_nothing_in_the_temporary_folder(
    parent: WarmParent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without namespaces it is the machine's own folder: torch and matplotlib write there."""
    writer = tmp_path / "writer.py"
    writer.write_text("import os, tempfile\nplace = tempfile.mkdtemp()\n")
    look = "import os, writer\ndef run(): return [writer.place, os.path.exists(writer.place)]"
    monkeypatch.setattr(packages, "top_level", lambda shown: {"writer": [str(tmp_path)]})
    monkeypatch.setattr(ladder, "_packages", lambda: (writer,))
    process = ladder.start(parent._rung, Limits(), ("writer",))
    try:
        place, exists = children.try_out(process, look, {}, Limits())
    finally:
        process.close()
    assert not exists
    assert not Path(place).parent.exists()


def test_a_message_that_is_cut_is_no_message() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(b'{"op": "spa')
        theirs.close()
        with pytest.raises(control.Gone):
            control.receive(ours)
