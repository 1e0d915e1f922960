"""How students hand in: zips and folders of many shapes, and a few packs that nobody can open."""

from __future__ import annotations

import os
import unicodedata
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from .people import Person

FORMS: Mapping[str, float] = {
    "zip": 0.80,
    "zip of a folder": 0.10,
    "folder": 0.07,
    "moodle folder": 0.03,
}
BREAKAGES = (
    "no zip",
    "empty file",
    "cut off",
    "encrypted",
    "nothing of the course",
    "two versions",
)
# what comes along unasked
_DEBRIS = {".DS_Store": b"\0\0\0\1Bud1", "notes.txt": b"ask about ties\n"}
_MODE = 0o100644 << 16


def pack(
    folder: Path,
    person: Person,
    files: Mapping[str, bytes],
    received: datetime,
    form: str,
    number: int,
    random: Random,
) -> Path:
    """Write one student's files as a pack into `folder`; its time is when it was received.

    `number` is the student's in Moodle's assignment.
    """
    files = dict(files)
    if random.random() < 0.05:
        files |= _DEBRIS
    # a Mac takes letters and accents apart
    name = unicodedata.normalize("NFD", person.id) if random.random() < 0.2 else person.id
    if form.startswith("zip"):
        path = folder / f"{name}.zip"
        within = "homework/" if form == "zip of a folder" else ""
        write_zip(path, {within + file: data for file, data in files.items()}, received)
    else:
        path = folder / (moodle_name(person, number) if form == "moodle folder" else name)
        for file, data in files.items():
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            (path / file).write_bytes(data)
            _set_time(path / file, received)
    _set_time(path, received)
    return path


def moodle_name(person: Person, number: int) -> str:
    """The folder of a student in Moodle's download of all submissions."""
    name = person.full_name.replace("_", " ")
    return f"{name}_{number}_assignsubmission_file_"


def form_for(person: Person, random: Random) -> str:
    """One of FORMS; in Moodle's a name has to fit a folder."""
    form = random.choices(list(FORMS), list(FORMS.values()))[0]
    if form == "moodle folder" and not person.full_name.isprintable():
        return "folder"
    return form


def broken_pack(
    folder: Path,
    person: Person,
    files: Mapping[str, bytes],
    received: datetime,
    how: str,
) -> Path:
    """Write a pack that cannot be graded, one of BREAKAGES."""
    path = folder / f"{person.id}.zip"
    if how == "nothing of the course":
        write_zip(path, {"essay.docx": b"PK of another kind", "photo.jpg": b"\xff\xd8"}, received)
    elif how == "two versions":
        old = {f"old/{file}": data for file, data in files.items()}
        new = {f"new/{file}": data + b"\n" for file, data in files.items()}
        write_zip(path, old | new, received)
    else:
        write_zip(path, files, received)
        data = bytearray(path.read_bytes())
        if how == "no zip":
            data = bytearray(b"Rar!\x1a\x07\x01\x00") + data[8:4096].replace(b"PK", b"RR")
        elif how == "empty file":
            data = bytearray()
        elif how == "cut off":
            data = data[: len(data) // 2]
        else:
            _claim_encryption(data)
        path.write_bytes(data)
    _set_time(path, received)
    return path


def write_zip(path: Path, files: Mapping[str, bytes], received: datetime) -> None:
    """A zip whose bytes follow from its content and time alone."""
    moment = received.timetuple()[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, moment)
            info.external_attr = _MODE
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def _claim_encryption(data: bytearray) -> None:
    """Set the flag of every member, in its own header and in the list at the end."""
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + offset] |= 1
            at = data.find(mark, at + 4)


def _set_time(path: Path, received: datetime) -> None:
    seconds = received.astimezone(UTC).timestamp()
    os.utime(path, (seconds, seconds))
