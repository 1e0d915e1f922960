"""The kinds of sandbox, the best first, and how a warm parent is started in each."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from . import bubblewrap, files, packages
from .limits import Limits
from .process import SandboxError, WarmProcess

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Rung:
    """A kind of sandbox."""

    level: str
    locked: bool = True
    namespaces: bool = False
    change_user: bool = False


LADDER = (
    Rung("namespaces and lock", namespaces=True),
    Rung("lock, another user", change_user=True),
    Rung("lock"),
)
NONE = Rung("none", locked=False)


def lacks(rung: Rung) -> str:
    """What this machine clearly lacks for a rung; "" if it is worth a try."""
    if not hasattr(os, "fork"):
        return f"{sys.platform} cannot fork a process; grade on Linux, in WSL for instance"
    if rung.locked and sys.platform != "linux":
        return f"{sys.platform} has neither Landlock nor seccomp, which Linux has"
    if rung.namespaces and bubblewrap.program() is None:
        return "bubblewrap is not installed"
    if rung.change_user and os.getuid() != 0:
        return "only root can become another user"
    if rung.change_user and (closed := closed_to_others()):
        return f"another user may not read {closed}"
    return ""


def closed_to_others() -> Path | None:
    """A folder on the way to Python, packages or course that its owner alone may enter."""
    for path in (files.interpreter(), ROOT / "course_lib", *_packages()):
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & 0o001:
                return folder
    return None


def start(rung: Rung, limits: Limits, imports: Sequence[str]) -> WarmProcess:
    """A warm parent in such a sandbox, not tried yet. Raises SandboxError."""
    if lack := lacks(rung):
        raise SandboxError(lack)
    system, shown = files.system(), _packages()
    home, prefix = str(ROOT), list[str]()
    if rung.namespaces:
        home = bubblewrap.COURSE
        prefix = bubblewrap.command(bubblewrap.program() or "", ROOT, system, shown)
    course = [f"{home}/{name}" for name in files.COURSE]
    settings = {
        "home": home,
        "places": {
            **packages.top_level(shown),
            "course_lib": [home],
            "autograder": [home],
        },
        "imports": list(imports),
        "limits": asdict(limits),
        "rung": asdict(rung),
        "system": [str(path) for path in system],
        "shown": [*map(str, shown), *course],
    }
    return WarmProcess(prefix, settings)


@cache
def _packages() -> tuple[Path, ...]:
    # reads long lists of files, and they do not change while this runs
    return tuple(sorted(packages.entries(packages.closure())))
