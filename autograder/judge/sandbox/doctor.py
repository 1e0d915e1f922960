"""What this machine can do: each kind of sandbox is started and attacked, and the mend is told."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from . import bubblewrap, control, ladder, selftest
from .limits import Limits
from .parent import IMPORTS
from .process import SandboxError

SYSCTLS = {
    # Debian's and Ubuntu's switches against user namespaces: the value that lets bubblewrap work
    "kernel/unprivileged_userns_clone": "1",
    "kernel/apparmor_restrict_unprivileged_userns": "0",
}


@dataclass(frozen=True)
class Part:
    """Something that a sandbox is made of."""

    name: str
    found: str  # "" if it is missing
    mend: str = ""  # how to get it


@dataclass(frozen=True)
class Tried:
    """A kind of sandbox, tried: `fault` is why it is not to be had, "" if it holds."""

    level: str
    fault: str
    refused: dict[str, list[str]]  # what the attempts are about -> those that failed in it


@dataclass(frozen=True)
class Diagnosis:
    parts: list[Part]
    tried: list[Tried]

    @property
    def used(self) -> Tried | None:
        """What grading would use here, None if it would refuse."""
        return next((tried for tried in self.tried if not tried.fault), None)


def examine() -> Diagnosis:
    """Looks for the parts, then tries every kind of sandbox. Takes some seconds."""
    diagnosis = Diagnosis([part() for part in PARTS], [])
    for rung in ladder.LADDER:
        # without torch at first: it matters neither to the kernel nor to the attempts
        tried = try_rung(rung)
        if not tried.fault and not diagnosis.used:
            tried = try_rung(rung, IMPORTS)
        diagnosis.tried.append(tried)
    return diagnosis


def try_rung(rung: ladder.Rung, imports: Sequence[str] = ()) -> Tried:
    try:
        process = ladder.start(rung, Limits(), imports)
    except SandboxError as error:
        return Tried(rung.level, str(error), {})
    try:
        fault = selftest.fault(process, rung, Limits())
        held = selftest.measures(process, Limits())
    except (control.Gone, EOFError, SandboxError) as error:
        return Tried(rung.level, str(error), {})
    finally:
        process.close()
    from . import attempts

    groups = attempts.GROUPS.items()
    refused = {group: [claim for claim in claims if held[claim]] for group, claims in groups}
    return Tried(rung.level, fault, refused)


# --- the parts ---


def python() -> Part:
    try:
        torch = f"torch {version('torch')}"
    except PackageNotFoundError:
        torch = ""
    found = f"{platform.python_version()}, {torch}" if torch else ""
    return Part("Python and torch", found, "run `make install`, then use .venv/bin/autograder")


def kernel() -> Part:
    found = f"{platform.release()}, {platform.machine()}" if sys.platform == "linux" else ""
    mend = f"{platform.system()} has no sandbox that would do: grade on Linux, or in WSL 2"
    return Part("Linux", found, mend)


def landlock() -> Part:
    abi = 0
    if sys.platform == "linux":
        from .landlock import abi as ask

        abi = ask()
    mend = (
        "a kernel of 5.13 or later that was booted with landlock among its `lsm=`; "
        "in a container the host's kernel counts"
    )
    return Part("Landlock", f"ABI {abi}" if abi else "", mend)


def seccomp() -> Part:
    found = ""
    if sys.platform == "linux":
        from .seccomp import library_version

        found = library_version()
    return Part(
        "libseccomp", found, "apt install libseccomp2 (Debian, Ubuntu), dnf install libseccomp"
    )


def bwrap() -> Part:
    program = bubblewrap.program()
    found = ""
    if program:
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        found = asked.stdout.strip().removeprefix("bubblewrap ")
    return Part(
        "bubblewrap", found, "apt install bubblewrap (Debian, Ubuntu), dnf install bubblewrap"
    )


def user_namespaces() -> Part:
    program = bubblewrap.program()
    if program is None:
        return Part("user namespaces", "", "install bubblewrap, which uses them")
    everything = [program, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true"]
    asked = subprocess.run(everything, capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        return Part("user namespaces", "allowed")
    mend = "; ".join(mends_of_namespaces()) or asked.stderr.strip()
    return Part("user namespaces", "", mend)


def mends_of_namespaces(root: Path = Path("/proc/sys")) -> list[str]:
    """The switches that forbid user namespaces here, each with the command that turns it."""
    found = []
    for name, wanted in SYSCTLS.items():
        switch = root / name
        if switch.exists() and switch.read_text().strip() != wanted:
            found.append(f"sudo sysctl -w {name.replace('/', '.')}={wanted}")
    if not found:
        found.append(
            "a container forbids them unless it was started with "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
        )
    return found


def another_user() -> Part:
    found = "root may become another user" if hasattr(os, "getuid") and os.getuid() == 0 else ""
    return Part("another user", found, "needed only without bubblewrap: grade as root")


PARTS: list[Callable[[], Part]] = [
    python,
    kernel,
    landlock,
    seccomp,
    bwrap,
    user_namespaces,
    another_user,
]
