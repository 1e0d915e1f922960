"""Tries a sandbox before it is trusted, with what a hostile submission would do."""

from __future__ import annotations

import os
import re
import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from . import children, control
from .ladder import ROOT, Rung
from .limits import Limits
from .process import SandboxError, WarmProcess

# read, not imported: it needs modules that not every system has
SOURCE = Path(__file__).with_name("attempts.py").read_text(encoding="utf-8")
ANSWERS = ROOT / "autograder" / "hidden" / "__init__.py"


def fault(process: WarmProcess, rung: Rung, limits: Limits) -> str:
    """What is wrong with the sandbox of this warm parent, "" if it holds and works."""
    try:
        if broken := children.try_out(process, f"{SOURCE}\nrun = works", {"facts": {}}, limits):
            return f"code does not run in it: {broken}"
        held = measures(process, limits) if rung.locked else {}
    except (control.Gone, EOFError, OSError, SandboxError) as error:
        return f"code does not run in it: {error}"
    through = [claim for claim, refusal in held.items() if not refusal]
    return f"it does not hold: code in it can {', '.join(through)}" if through else ""


def measures(process: WarmProcess, limits: Limits) -> dict[str, str]:
    """What each attempt was refused with, "" if it was not. Raises control.Gone, EOFError."""
    with bait() as facts:
        # the child is trusted so far, as it ran nothing but our own code
        return dict(children.try_out(process, SOURCE, {"facts": facts}, limits))


@contextmanager
def bait() -> Iterator[dict[str, Any]]:
    """A folder, files and servers of this process, for as long as an attempt takes."""
    with ExitStack() as stack:
        # not in TMPDIR, which may be longer than the name of a socket may be
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        folder.chmod(0o755)
        for name in ("file", "spare", "doomed"):
            (folder / name).write_text("a secret")
        tcp, udp, unix, abstract = (
            stack.enter_context(socket.socket(family, kind))
            for family, kind in (
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_INET, socket.SOCK_DGRAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
            )
        )
        for server in (tcp, udp):
            server.bind(("127.0.0.1", 0))
        unix.bind(str(folder / "socket"))
        # an abstract name is one that begins with a zero; free for all, so nobody else's
        name = f"\0autograder-{secrets.token_hex(8)}"
        abstract.bind(name)
        for server in (tcp, unix, abstract):
            server.listen()
        yield {
            "folder": str(folder),
            "file": str(folder / "file"),
            "answers": str(ANSWERS),
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "unix": str(folder / "socket"),
            "abstract": name,
            "driver": os.getpid(),
            "numbers": numbers(),
        }


def numbers() -> dict[str, int]:
    """The numbers that the system calls of the attempts have on this machine."""
    from . import seccomp

    names = set(re.findall(r'(?:call|reach)\(\s*(?:f|facts), "(\w+)"', SOURCE))
    return {name: seccomp.resolve(name) for name in sorted(names)}
