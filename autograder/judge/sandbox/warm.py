"""The warm parent: a process that has torch imported and no secret, and forks a child per run.

Run as `python -c BOOTSTRAP settings`, without site-packages. What may be imported
is told by name, so that every kind of sandbox has the same modules.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import site
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import files, kernel, pages
from .control import Gone, send
from .forker import Forker, count_threads
from .limits import Limits

if TYPE_CHECKING:
    from .lock import Lock


class OnlyThese:
    """Finds the top-level modules that the sandbox shows, and no others."""

    def __init__(self, places: dict[str, list[str]]) -> None:
        self.places = places

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if path is not None or name not in self.places:
            return None
        return PathFinder.find_spec(name, self.places[name], target)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[Distribution]:
        """For packages that ask for their own version."""
        folders = sorted({folder for folders in self.places.values() for folder in folders})
        name = None if context is None else context.name
        asked = DistributionFinder.Context(name=name, path=folders)
        return iter(MetadataPathFinder.find_distributions(asked))


def main() -> None:
    """Import, tell that it is done, then serve the driver until it hangs up."""
    settings = json.loads(sys.argv.pop())
    control = socket.socket(fileno=settings["control"])
    try:
        warm_up(settings)
        lock = prepare_lock(settings)
    except Exception as error:
        send(control, {"error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    # the collector leaves what is here alone, so that the children's pages stay shared
    gc.collect()
    gc.freeze()
    pages.prepare()
    forker = Forker(control, Limits(**settings["limits"]), lock)
    try:
        send(control, {"ready": True})
        forker.serve()
    except Gone:
        forker.end()


def warm_up(settings: dict[str, Any]) -> None:
    """Import what children need, and hide from them what they should not find."""
    # the course's folder too: the solutions lie in it
    left_out = (*files.PACKAGE_FOLDERS, settings["home"])
    sys.path[:] = [path for path in sys.path if not path.endswith(left_out)]
    sys.meta_path.append(OnlyThese(settings["places"]))
    sys.dont_write_bytecode = True
    site.setquit()  # `exit()` in a learner's file is what it is everywhere
    with scratch_folder():
        for name in settings["imports"]:
            importlib.import_module(name)
            if name == "torch":
                prime_torch()
    if (threads := count_threads(os.getpid())) > 1:
        # none of them would be there after a fork, and whoever waits for one would wait for ever
        raise RuntimeError(f"{threads - 1} threads were started by {settings['imports']}")


@contextmanager
def scratch_folder() -> Iterator[None]:
    """For what torch and matplotlib write when they are imported; nothing of it stays."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"TMPDIR": folder, "MPLCONFIGDIR": folder}
        os.environ.update(own)
        # it is asked for but once
        tempfile.tempdir = None
        try:
            yield
        finally:
            tempfile.tempdir = None
            for name in own:
                del os.environ[name]


def prime_torch() -> None:
    """Have torch do once what it does at its first steps, in one thread."""
    torch = sys.modules["torch"]
    # first: a pool of threads would not be there after a fork
    torch.set_num_threads(1)
    # it reads from /proc and /sys what the processor can do, where no child may read, and would
    # compute otherwise there than in the driver
    torch.backends.cpu.get_cpu_capability()
    table = torch.rand(8, 8)
    (table @ table).softmax(-1).sort(descending=True)
    table.bfloat16() @ table.bfloat16()
    table.cumsum(-1).multinomial(1)
    table.half().float().topk(2)


def prepare_lock(settings: dict[str, Any]) -> Lock | None:
    """What locks a child down; None if nothing shall."""
    rung = settings["rung"]
    if not rung["locked"]:
        return None
    # Linux alone has what it imports
    from .lock import Lock

    # when memory runs out, it is the sandbox that the system is to end, not the instructor's work
    Path("/proc/self/oom_score_adj").write_text("1000")
    if rung["namespaces"]:
        # bubblewrap's own process outside. A driver is left out: it counts as ended when the
        # thread that started this ends
        kernel.prctl(kernel.SET_DEATH_SIGNAL, signal.SIGKILL)
    system = [Path(path) for path in settings["system"]]
    readable = [*files.without(system, files.package_folders(system)), *settings["shown"]]
    return Lock.prepare(
        Limits(**settings["limits"]),
        [str(path) for path in readable],
        change_user=rung["change_user"],
        own_user=rung["namespaces"],
    )
