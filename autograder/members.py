"""What is read of a pack, and how much of it at most; what may be told of the names in it."""

from __future__ import annotations

import errno
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO

from .errors import CourseError

MEMBERS = 20_000
DEPTH = 40
TOTAL = 100 * 2**20  # bytes of one pack that are read
MODULE = 2**20
NOTEBOOK = 20 * 2**20
INNER_ZIP = 64 * 2**20
LIMITS = {".ipynb": NOTEBOOK, ".zip": INNER_ZIP}
CHUNK = 2**16

# of these not even the names are wanted
SKIPPED = {
    ".git",
    ".ipynb_checkpoints",
    ".venv",
    "__MACOSX",
    "__pycache__",
    "node_modules",
    "site-packages",
    "venv",
}


Wanted = Callable[[PurePosixPath], bool]


class BrokenPack(CourseError):
    """A pack that cannot be read; the message says why, in a few words."""


@dataclass(frozen=True)
class Member:
    """One file of a pack: its path with forward slashes, and what it holds."""

    path: PurePosixPath
    data: bytes


@dataclass(frozen=True)
class Ignored:
    """Something in a pack that was not read."""

    path: str
    why: str


@dataclass
class Pack:
    """What was read of a pack."""

    members: list[Member] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)


class Budget:
    """What may still be read of one student's pack: zips within it share it."""

    def __init__(self) -> None:
        self.bytes, self.files = TOTAL, MEMBERS

    def take(self, count: int) -> None:
        """Raises BrokenPack when nothing is left."""
        self.bytes -= count
        if self.bytes < 0:
            raise BrokenPack(f"too large: more than {TOTAL >> 20} MiB of notebooks and modules")

    def list(self, count: int) -> None:
        """Raises BrokenPack when there are too many."""
        self.files -= count
        if self.files < 0:
            raise BrokenPack(f"holds more than {MEMBERS} files")


# --- reading ---


@contextmanager
def broken_packs() -> Iterator[None]:
    """Turn what zipfile and the system raise on what cannot be read into BrokenPack."""
    try:
        yield
    except (zipfile.BadZipFile, EOFError, zlib.error, ValueError) as error:
        raise BrokenPack(f"damaged zip: {short(error)}") from error
    except (RuntimeError, NotImplementedError) as error:  # a password, a method unknown here
        raise BrokenPack(f"zip that cannot be opened: {short(error)}") from error
    except OSError as error:
        why = "a link" if error.errno == errno.ELOOP else error.strerror or error
        raise BrokenPack(f"cannot be read: {why}") from error
    except MemoryError as error:
        raise BrokenPack("cannot be read: it takes more memory than there is") from error


def is_zip(path: PurePosixPath) -> bool:
    return path.suffix.lower() == ".zip"


def read_capped(file: IO[bytes], name: PurePosixPath, budget: Budget) -> bytes:
    most = LIMITS.get(name.suffix.lower(), MODULE)
    chunks, size = [], 0
    while chunk := file.read(CHUNK):
        size += len(chunk)
        budget.take(len(chunk))
        if size > most:
            raise BrokenPack(f"too large: {short(name)} has more than {most >> 20} MiB")
        chunks.append(chunk)
    return b"".join(chunks)


# --- names ---

LONGEST_QUOTED = 80
# words with a blank between them: many would fill a line of a screen, and then the next begins
_PLAIN = re.compile(r"(?=.{1,80}$)[\w./()+-]+(?: [\w./()+-]+)*")


def printable(text: str) -> str:
    """`text` without what a terminal takes for an order, or what turns the way that it is read.

    A line stays one line: with a name of two somebody could write another student's receipt.
    """
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def quoted(text: str) -> str:
    """A name within a line: in quotes, and not whole, where it could be taken for more of that."""
    return text if _PLAIN.fullmatch(text) else repr(text[:LONGEST_QUOTED])


def short(text: object) -> str:
    """`text` so that a terminal can show it, cut where it gets long."""
    shown = printable(str(text))
    return shown if len(shown) <= 200 else f"{shown[:200]}..."
