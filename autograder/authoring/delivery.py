"""Lays an edition's files into a learner's folder, and never touches what the learner changed.

`.course/edition.json` in the folder remembers the sha256 of every version of a file that was ever
delivered. A file with such a hash is still the course's, and may be replaced; any other is the
learner's. It is written before the first file and after the last, so that a kill between leaves
nothing that the next delivery would take for somebody's work.

Some files are given: the model, the tools, the checks. Nothing runs without them, so one that is
missing or changed is restored, and what was in its place is kept beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ..errors import CourseError
from .files import remove_parts, sha256, write_atomically

MANIFEST = ".course/edition.json"

# stands for the hash of what is no ordinary file: a folder or a link is somebody's own
_NO_FILE = "no file"


@dataclass
class Report:
    """What a delivery did; paths are relative to the folder, with forward slashes."""

    new: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # changed by the learner, nothing newer to bring
    beside: dict[str, str] = field(default_factory=dict)  # changed by the learner: where it went
    deleted: list[str] = field(default_factory=list)  # by the learner, and not brought back
    restored: list[str] = field(default_factory=list)  # given, and lost or changed
    aside: dict[str, str] = field(default_factory=dict)  # given and changed: where that was kept
    unchanged: list[str] = field(default_factory=list)


@dataclass
class _Record:
    """What the manifest knows of one path."""

    versions: list[str] = field(default_factory=list)  # all that are the course's, old to new
    arrived: str | None = None  # the last one that the learner got, in its place or beside


def deliver(
    files: Mapping[str, bytes],
    folder: Path,
    version: str,
    given: Callable[[str], bool] = lambda path: False,
) -> Report:
    """Bring `folder` to an edition: `files` by path, with the edition's `version`.

    New files are written, and so are newer versions of files that are as they were delivered. Of a
    file that the learner changed the newer version is laid beside it, once: `top_k.new.py`. A file
    that the learner deleted stays deleted. Files that are `given` are restored instead, and what
    stood in their place is kept beside them: `config.mine.json`.

    Raises CourseError if the manifest is damaged or something cannot be written.
    """
    records = _read_manifest(folder)
    hashes = {path: sha256(data) for path, data in files.items()}
    for path, digest in hashes.items():
        record = records.setdefault(path, _Record())
        if digest not in record.versions:
            record.versions.append(digest)
    report = Report()
    try:
        for parent in {(folder / path).parent for path in (MANIFEST, *files)}:
            remove_parts(parent)
        _write_manifest(folder, version, records)
        for path in sorted(files):
            if not given(path) or not _restore(folder, path, files[path], records[path], report):
                _deliver_file(folder, path, files[path], hashes[path], records[path], report)
        _write_manifest(folder, version, records)
    except OSError as error:
        raise CourseError(
            f"{error.filename or folder}: {error.strerror}: mend that and try again"
        ) from error
    return report


def versions(folder: Path) -> dict[str, list[str]]:
    """The sha256 of every version of a file that was ever delivered into `folder`, by path.

    Raises CourseError if the manifest is damaged.
    """
    return {path: record.versions for path, record in _read_manifest(folder).items()}


def _deliver_file(
    folder: Path, path: str, data: bytes, digest: str, record: _Record, report: Report
) -> None:
    target = folder / path
    present = _hash_of(target)
    if present is None and record.arrived is not None:
        report.deleted.append(path)
        return
    if present == digest:
        report.unchanged.append(path)
    elif present is None:
        write_atomically(target, data)
        report.new.append(path)
    elif present in record.versions:
        write_atomically(target, data)
        report.updated.append(path)
    elif record.arrived == digest:
        report.kept.append(path)
    else:
        report.beside[path] = _lay_beside(folder, path, data, digest, record)
    record.arrived = digest


def _restore(folder: Path, path: str, data: bytes, record: _Record, report: Report) -> bool:
    """Bring a given file back if it was lost or changed since it arrived; whether it was."""
    present = _hash_of(folder / path)
    if record.arrived is None or present == _NO_FILE or present in record.versions:
        return False
    if present is not None:
        report.aside[path] = _keep_aside(folder, path)
    write_atomically(folder / path, data)
    record.arrived = sha256(data)
    report.restored.append(path)
    return True


def _keep_aside(folder: Path, path: str) -> str:
    """Copy a file to the first free name of `config.mine.json`, `config.mine2.json`, ..."""
    data = (folder / path).read_bytes()
    attempt = 1
    while True:
        name = _named(path, "mine", attempt)
        present = _hash_of(folder / name)
        if present is None:
            write_atomically(folder / name, data)
        if present in (None, sha256(data)):
            return name
        attempt += 1


def _lay_beside(folder: Path, path: str, data: bytes, digest: str, record: _Record) -> str:
    """Write `data` as `top_k.new.py`, or `top_k.new2.py` if the learner changed that too."""
    attempt = 1
    while True:
        name = _named(path, "new", attempt)
        present = _hash_of(folder / name)
        if present is None or present in record.versions:
            if present != digest:
                write_atomically(folder / name, data)
            return name
        attempt += 1


def _named(path: str, mark: str, attempt: int) -> str:
    """`top_k.new.py` for `top_k.py`, `top_k.new2.py` at the second attempt."""
    whole = PurePosixPath(path)
    number = "" if attempt == 1 else attempt
    return str(whole.with_name(f"{whole.stem}.{mark}{number}{whole.suffix}"))


def _hash_of(path: Path) -> str | None:
    """The sha256 of an ordinary file; None if nothing is there."""
    if path.is_symlink() or path.is_dir():
        return _NO_FILE
    return sha256(path.read_bytes()) if path.exists() else None


def _read_manifest(folder: Path) -> dict[str, _Record]:
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))["files"]
        return {
            name: _Record([str(version) for version in entry["versions"]], entry["arrived"])
            for name, entry in told.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(
            f"{path} is damaged: delete it and try again; your own files stay as they are"
        ) from error


def _write_manifest(folder: Path, version: str, records: Mapping[str, _Record]) -> None:
    told = {
        "version": version,
        "files": {
            path: {"arrived": record.arrived, "versions": record.versions}
            for path, record in sorted(records.items())
        },
    }
    write_atomically(folder / MANIFEST, (json.dumps(told, indent=1) + "\n").encode())
