"""bubblewrap: a file system, process numbers, a network and users of the sandbox's own.

The warm parent is process 1 of its namespace, so that the kernel ends every child with it, and no
signal from inside reaches it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from . import files

COURSE = "/course"  # where the course's code lies inside
NOBODY = "65534"

NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)


def program() -> str | None:
    """Where bubblewrap is, if it is installed."""
    return shutil.which("bwrap")


def command(bwrap: str, root: Path, system: Iterable[Path], packages: Iterable[Path]) -> list[str]:
    """What goes before `python ...`: everything is read-only, what is not named is not there.

    `root` is the course's folder, `system` and `packages` are shown under their own names.
    """
    system = list(system)
    argv = [bwrap, *NAMESPACES, "--as-pid-1", "--new-session", "--cap-drop", "ALL"]
    # there is no --die-with-parent: it would end the sandbox together with the thread that started
    # it. The warm parent ends when its driver hangs up
    argv += ["--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox", "--chdir", "/"]
    # before what is shown, some of which may lie in /tmp
    argv += ["--proc", "/proc", "--tmpfs", "/tmp"]
    for path in system:
        argv += _show(path)
    # packages that nobody named lie inside the standard library of some installations
    for path in files.package_folders(system):
        argv += ["--tmpfs", str(path)]
    for path in packages:
        argv += _show(path)
    for name in files.COURSE:
        argv += ["--ro-bind", str(root / name), f"{COURSE}/{name}"]
    for device in ("/dev/null", "/dev/urandom"):
        argv += ["--dev-bind", device, device]
    # torch asks what the processor can do, and computes otherwise when nobody tells
    argv += ["--ro-bind-try", "/sys/devices/system/cpu", "/sys/devices/system/cpu"]
    return [*argv, "--remount-ro", "/", "--"]


def _show(path: Path) -> list[str]:
    return ["--ro-bind", str(path), str(path)]
