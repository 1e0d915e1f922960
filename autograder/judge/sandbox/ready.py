"""A warm parent that has a child ready: the next one is made while the last one is at work."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from .children import Child
from .parent import IMPORTS, WarmParent


class ReadyParent(WarmParent):
    """Gives children as `WarmParent` does, and always has one more, which nobody has talked to.

    To fork a child and to lock it takes a tenth of the time that a submission is judged in, and
    another core can do it meanwhile.
    """

    def __init__(self, *, sandboxed: bool = True, imports: Sequence[str] = IMPORTS) -> None:
        super().__init__(sandboxed=sandboxed, imports=imports)
        # its thread lives as long as this object, and so does what it starts
        self._maker = ThreadPoolExecutor(1, thread_name_prefix="next-child")
        self._next: Future[Child] = self._maker.submit(super().spawn)

    def spawn(self) -> Child:
        try:
            child = self._next.result()
            if not is_there(child):
                # it went with its warm parent; nobody's submission has to be tried again for that
                child.stop()
                child = super().spawn()
        finally:
            self._next = self._maker.submit(super().spawn)
        return child

    def close(self) -> None:
        # a child that is still being made would bring the warm parent back
        self._maker.shutdown()
        super().close()


def is_there(child: Child) -> bool:
    """Whether the other end of its connection is open."""
    try:
        return child.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
