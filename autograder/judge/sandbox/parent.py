"""The driver's sandbox: gives locked children, one per run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from types import TracebackType

from . import control, ladder, selftest
from .children import Child, spawn
from .limits import Limits
from .process import SandboxError, WarmProcess

# what a child has at hand without reading a file. Two are there as they cannot be imported where no
# file may be written: _dynamo, which AdamW imports, and matplotlib
IMPORTS = (
    "torch",
    "torch._dynamo",
    "numpy",
    "jaxtyping",
    *(["matplotlib.pyplot"] if find_spec("matplotlib") else []),
    "course_lib.given.minigpt",
    "autograder.judge.child",
)


class WarmParent:
    """Gives a child per run, in the best sandbox that there is here.

    `sandboxed=False` gives children that nothing holds but limits of memory and time. Raises
    SandboxError when there is no sandbox. May be used from several threads.
    """

    def __init__(
        self,
        *,
        sandboxed: bool = True,
        limits: Limits = Limits(),  # noqa: B008
        imports: Sequence[str] = IMPORTS,
    ) -> None:
        self._limits, self._imports = limits, tuple(imports)
        self._starting = threading.Lock()
        self._rung, self._process = self._climb(ladder.LADDER if sandboxed else [ladder.NONE])

    @property
    def level(self) -> str:
        """The kind of sandbox."""
        return self._rung.level

    def __enter__(self) -> WarmParent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the warm parent, and with it every child."""
        self._process.close()

    def spawn(self) -> Child:
        """A new child, locked down. A warm parent that has died is replaced by another."""
        process = self._process
        try:
            return spawn(process, self._limits)
        except control.Gone:
            pass
        with self._starting:
            if self._process is process:
                # never on a lower rung: what is graded later is held as what was graded before
                _, self._process = self._climb([self._rung])
        try:
            return spawn(self._process, self._limits)
        except control.Gone:
            raise SandboxError("the sandbox's warm parent died twice") from None

    def _climb(self, rungs: Sequence[ladder.Rung]) -> tuple[ladder.Rung, WarmProcess]:
        """The first rung that holds, and a warm parent on it. Raises SandboxError."""
        faults = []
        for rung in rungs:
            try:
                process = ladder.start(rung, self._limits, self._imports)
            except SandboxError as error:
                faults.append(f"{rung.level}: {error}")
                continue
            fault = "it could not be tried"
            try:
                fault = selftest.fault(process, rung, self._limits)
            finally:
                if fault:
                    process.close()
            if not fault:
                return rung, process
            faults.append(f"{rung.level}: {fault}")
        raise SandboxError(
            f"no sandbox can be had here ({'; '.join(faults)}): `autograder doctor` tells how to "
            "get one, --unsandboxed grades without"
        )
