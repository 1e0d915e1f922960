"""A class: the folder with its submissions, its gradebook and what the judge remembers.

By default that is the course's own folder, which is an nbgrader course. A teacher of several
classes gives each a folder with an `nbgrader_config.py` of its own (INSTRUCTORS.md shows it).
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traitlets.config import Config, PyFileConfigLoader

from .authoring.files import sha256
from .authoring.layout import ROOT, Lesson, lessons
from .errors import CourseError

CONFIG = "nbgrader_config.py"
KEPT = ".autograder"  # receipts, journal, grades, former submissions, the secret seed
SECRET_BYTES = 32

# SQLite would take more, but so are nbgrader's columns declared
LONGEST_ID = 128
# formgrader writes ids into its pages as they are
_FORBIDDEN = '/<>"'


@dataclass(frozen=True)
class Classroom:
    """Where the things of one class lie; `course_id` is nbgrader's name for the class."""

    root: Path
    db_url: str
    course_id: str = ""
    config: Config = field(default_factory=Config, compare=False, repr=False)

    @property
    def submitted(self) -> Path:
        return self.root / "submitted"

    @property
    def autograded(self) -> Path:
        return self.root / "autograded"

    @property
    def kept(self) -> Path:
        return self.root / KEPT

    def submission(self, student: str, lesson: Lesson) -> Path:
        """Where nbgrader looks for what a student handed in for a lesson."""
        return self.submitted / student / lesson.slug

    def students(self, lesson: Lesson) -> list[str]:
        """Who handed in something for a lesson, by id."""
        if not self.submitted.is_dir():
            return []
        names = sorted(entry.name for entry in os.scandir(self.submitted) if entry.is_dir())
        return [name for name in names if self.submission(name, lesson).is_dir()]

    def secret(self) -> bytes:
        """The seed that hidden checks draw their inputs from, made when it is first asked for.

        Raises CourseError if the file is there and is no seed.
        """
        path = self.kept / "secret-seed"
        if not path.exists():
            self.kept.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            mode = 0o640 if shared(self.root) else 0o600
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(SECRET_BYTES))
                file.flush()
                os.fsync(file.fileno())
            try:
                # unlike a rename it never replaces a seed that somebody else has just made
                os.link(part, path)
            except FileExistsError:
                pass
            finally:
                part.unlink()
        seed = path.read_bytes()
        if len(seed) != SECRET_BYTES:
            raise CourseError(
                f"{path} holds {len(seed)} bytes, not {SECRET_BYTES}: bring it back from a backup, "
                "or delete it, and hidden checks draw other inputs from then on"
            )
        return seed

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        """Hold the class's lock, which ends with the process however that ends.

        Raises CourseError if another process holds it.
        """
        self.kept.mkdir(parents=True, exist_ok=True)
        with (self.kept / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.seek(0)
                raise CourseError(
                    f"another autograder is at work in {self.root} "
                    f"(process {file.read().strip() or 'unknown'}): wait for it to end"
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield


def find_classroom(start: Path | None = None, *, packs: Iterable[Path] = ()) -> Classroom:
    """The class of the nearest folder from `start` upwards with an `nbgrader_config.py`.

    `start` is the working directory by default; the course's own folder is the last resort.

    Raises CourseError if that configuration cannot be read, or if it lies in one of `packs` or in
    what a class was handed in: it is Python, and a student's there.
    """
    start = (start or Path.cwd()).resolve()
    strange = {path.resolve() for path in packs}
    roots = [folder for folder in (start, *start.parents) if (folder / CONFIG).is_file()]
    if not roots:
        return read_classroom(ROOT)
    nearest, *outer = roots
    # nbgrader's exchange brings whatever a student's account wrote into the class's own folder
    strange |= {root / name for root in outer for name in ("submitted", "autograded")}
    if nearest != ROOT and strange & {nearest, *nearest.parents}:
        raise CourseError(
            f"{nearest / CONFIG} lies in what was handed in, and would be run: start from the "
            "folder of your class"
        )
    return read_classroom(nearest)


def read_classroom(root: Path) -> Classroom:
    """The class in `root`, as nbgrader's configuration there describes it."""
    from nbgrader.coursedir import CourseDirectory

    config = Config()
    if (root / CONFIG).is_file():
        try:
            config = PyFileConfigLoader(CONFIG, path=str(root)).load_config()
        except Exception as error:  # it is Python that somebody wrote
            raise CourseError(f"{root / CONFIG} does not load: {error!r}: mend it") from error
    config.CourseDirectory.root = str(root)
    course = CourseDirectory(config=config)
    return Classroom(root, course.db_url, course.course_id, config)


def shared(root: Path) -> bool:
    """Whether a class belongs to a group: what is made in its folder falls to the group (2770)."""
    mode = root.stat().st_mode
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP)


def graded_lessons() -> dict[str, Lesson]:
    """The lessons that have checks, by name."""
    return {lesson.name: lesson for lesson in lessons() if lesson.graded}


def lesson_of(assignment: str) -> Lesson | None:
    """The lesson that nbgrader calls so, None if it is none of the course's."""
    return {lesson.slug: lesson for lesson in graded_lessons().values()}.get(assignment)


def classroom_of(course: Any) -> Classroom:
    """The class of nbgrader's CourseDirectory."""
    return Classroom(Path(course.root), course.db_url, course.course_id, course.config)


def student_id(text: str) -> str:
    """`text` as a student's id, in Unicode's composed form.

    Raises CourseError for what nbgrader or the file system cannot hold.
    """
    name = unicodedata.normalize("NFC", text.strip())
    if not name:
        raise CourseError("a student's id is empty: name one with --student")
    if name.startswith("."):
        raise CourseError(f"student id {name!r} begins with a dot: nbgrader would not see it")
    bad = sorted({sign for sign in name if sign in _FORBIDDEN or not sign.isprintable()})
    if bad:
        raise CourseError(
            f"student id {name!r} holds {' '.join(map(repr, bad))}, which cannot be in a folder's "
            "name or in formgrader's pages: rename the pack"
        )
    if len(name) > LONGEST_ID or len(name.encode()) > 255:
        raise CourseError(
            f"student id {name[:40]!r}... has {len(name)} characters and {len(name.encode())} "
            f"bytes: nbgrader holds {LONGEST_ID} characters, a file system 255 bytes"
        )
    return name


def blob_name(student: str) -> str:
    """A file name for anything of a student: an id may be too long for one, once it is quoted."""
    return f"{sha256(student.encode())[:32]}.json"
