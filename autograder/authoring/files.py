"""Writing files so that a kill at any moment leaves the old one or the new one, never a half."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

PART = ".course-part"


def sha256(data: bytes) -> str:
    """The sha256 of `data` in hex."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` by way of a hidden file beside it; missing folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def remove_parts(folder: Path) -> None:
    """Remove what a kill in the middle of `write_atomically` left in `folder` itself."""
    for part in folder.glob(f".*{PART}"):
        part.unlink(missing_ok=True)
