"""What an attack is written down as, and how a hostile file is put together."""

from __future__ import annotations

import io
import re
import textwrap
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.sources import stub_source

Files = dict[str, bytes]  # lesson -> its module
# whether something was seen, in a word that no line of an attack has in it
WORD = "wide open"
SEEN = """
def seen(found):
    return "".join(reversed("nepo ediw")) if found else "nothing"
"""
STUB = re.compile(r"^( *)raise NotImplementedError\(.*\)$", re.MULTILINE)


@dataclass(frozen=True)
class Scene:
    """Where an attack takes place: what it may try to read, change or reach."""

    folder: Path  # of the instructor's; the sandbox has no business there
    secret: Path  # a file in it
    word: str  # what that file holds
    gradebook: Path  # an SQLite file in it, with scores
    port: int  # somebody listens there
    root: Path  # the course's own folder


@dataclass(frozen=True)
class Form:
    """One form of one attack; `make` gives it for a scene."""

    attack: int
    name: str
    claim: str
    kind: str  # "source": lesson -> bytes; "notebook": its bytes; "pack": a zip's bytes
    lesson: str
    make: Callable[[Scene], Files] | Callable[[Scene], bytes]
    fair: tuple[str, ...] = ()  # checks that what it does earns without any attack
    control: str = ""  # the weakened judge against which it succeeds


class Forms:
    """The forms of one attack; the docstring of each is its claim."""

    def __init__(self, attack: int) -> None:
        self.attack = attack
        self.forms: list[Form] = []

    def source(
        self, lesson: str = "top_k", *, fair: tuple[str, ...] = (), control: str = ""
    ) -> Callable[[Callable[[Scene], Files]], Callable[[Scene], Files]]:
        """Add a function that gives a submission's modules."""

        def add(make: Callable[[Scene], Files]) -> Callable[[Scene], Files]:
            self._add("source", lesson, make, fair, control)
            return make

        return add

    def notebook(
        self, lesson: str = "top_k"
    ) -> Callable[[Callable[[Scene], bytes]], Callable[[Scene], bytes]]:
        """Add a function that gives a notebook."""

        def add(make: Callable[[Scene], bytes]) -> Callable[[Scene], bytes]:
            self._add("notebook", lesson, make)
            return make

        return add

    def pack(
        self, lesson: str = "top_k"
    ) -> Callable[[Callable[[Scene], bytes]], Callable[[Scene], bytes]]:
        """Add a function that gives a zip."""

        def add(make: Callable[[Scene], bytes]) -> Callable[[Scene], bytes]:
            self._add("pack", lesson, make)
            return make

        return add

    def _add(
        self,
        kind: str,
        lesson: str,
        make: Callable[[Scene], Files] | Callable[[Scene], bytes],
        fair: tuple[str, ...] = (),
        control: str = "",
    ) -> None:
        claim = " ".join((make.__doc__ or "").split())
        self.forms.append(
            Form(self.attack, make.__name__, claim, kind, lesson, make, fair, control)
        )


# --- hostile files ---


def hostile(lesson: str = "top_k", *, at_import: str = "", inside: str = "") -> Files:
    """The stub of a lesson with hostile lines: at the end of the file, in place of what raises.

    What an attack earns so is undeserved: nothing of the lesson is done.
    """
    source = stub_source(lesson)
    if inside:
        body = textwrap.dedent(inside).strip()
        source = STUB.sub(lambda match: textwrap.indent(body, match[1]), source)
    return {lesson: f"{source}\n\n{textwrap.dedent(at_import).strip()}\n".encode()}


def module(source: str, lesson: str = "top_k") -> Files:
    """A file that is nothing but what is given."""
    return {lesson: textwrap.dedent(source).lstrip().encode()}


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    """A zip of these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()
