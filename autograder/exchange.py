"""Collects from nbgrader's exchange: a folder that every student's account may write to.

nbgrader copies what lies there, links followed: a link to the solutions is a solution then. It
takes a folder for whoever its name says, and warns where somebody else made it; and one folder of a
strange name or size stops it for the class. Here each folder is its owner's, only what counts is
read, and what cannot be taken in is named and stops no other.
"""

from __future__ import annotations

import os
import pwd
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import parse_utc

from .archive import read_one, read_pack
from .authoring.files import write_atomically
from .authoring.layout import Lesson
from .classroom import Classroom, classroom_of, lesson_of, student_id
from .collect import take_in
from .errors import CourseError
from .members import BrokenPack, printable
from .packs import Found
from .projection import LONGEST_SECRET
from .submission import EXCHANGE_SECRET, YEARS, read_timestamp, wanted

Record = dict[str, Any]  # nbgrader's: username, filename, timestamp; with `why` it is refused
_original = ExchangeCollect.copy_files


def set_up() -> None:
    """Let `nbgrader collect` and formgrader's button collect as is told above."""
    ExchangeCollect._path_to_record = path_to_record
    ExchangeCollect.copy_files = copy_files


def path_to_record(self: ExchangeCollect, path: str) -> Record:
    """What a folder in the exchange says it is: `<student>+<assignment>+<time>+<chance>`."""
    filename = os.path.basename(path)
    try:
        username, moment = _told(filename)
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise BrokenPack("it is no folder")
        if self.check_owner and username != (owner := _owner(found.st_uid)):
            raise BrokenPack(
                f"its owner is {owner} (where all accounts are one on the disk, set "
                "c.ExchangeCollect.check_owner = False)"
            )
    except (CourseError, OSError) as error:
        # under its whole name, so that it is compared with nobody's
        return {
            "username": filename,
            "filename": filename,
            "timestamp": datetime.min,
            "why": str(error),
        }
    return {"username": username, "filename": filename, "timestamp": moment}


def copy_files(self: ExchangeCollect) -> None:
    """Take in the newest folder of each student, if it is wanted."""
    for record in self.src_records:
        if "why" in record:
            self.log.error("not collected: %s: %s", printable(record["filename"]), record["why"])
    self.src_records = [record for record in self.src_records if "why" not in record]
    lesson = lesson_of(self.coursedir.assignment_id)
    if lesson is None or not self.src_records:
        _original(self)
        return
    classroom = classroom_of(self.coursedir)
    with classroom.only_writer():
        for record in self.src_records:
            student = record["username"]
            try:
                said = _collect(self, classroom, lesson, record)
            except (CourseError, OSError) as error:
                self.log.error("not collected: %s: %s", printable(student), error)
            else:
                self.log.info("%s %s: %s", student, lesson.slug, said)


def _collect(self: ExchangeCollect, classroom: Classroom, lesson: Lesson, record: Record) -> str:
    student = student_id(record["username"])
    place = classroom.submission(student, lesson)
    received = record["timestamp"].replace(tzinfo=UTC)
    if place.is_dir():
        before = read_timestamp(place)
        newer = self.update and (before is None or received > before)
        if not newer and not (self.before_duedate and before != received):
            return "there already; --update takes in what is newer"
    folder = Path(self.inbound_path) / record["filename"]
    pack = Found(student, "", str(folder), lambda: read_pack(folder, wanted, follow=False))
    receipt = take_in(classroom, pack, lesson, received)
    try:
        secret = read_one(folder / EXCHANGE_SECRET)
    except BrokenPack:
        secret = b""
    if 0 < len(secret) <= LONGEST_SECRET:
        write_atomically(place / EXCHANGE_SECRET, secret)
    return receipt.line()


def _told(filename: str) -> tuple[str, datetime]:
    """Student and time (naive, in UTC, as nbgrader has it) that a folder's name tells."""
    # an id may hold a +, the three behind it do not
    parts = filename.rsplit("+", 3)
    try:
        moment: datetime = parse_utc(parts[2] if len(filename) < 255 else "")
    except (IndexError, ValueError, ArithmeticError, TypeError) as error:
        raise BrokenPack("its name tells no student and time") from error
    if moment.year not in YEARS:
        raise BrokenPack("its name tells no time when anybody lives")
    return student_id(parts[0]), moment


def _owner(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
