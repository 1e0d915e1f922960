"""Makes what goes out to learners who do not have this repository.

For self-study that is one folder, the edition with the solutions. For a class it is nbgrader's
release directory: a folder for each assignment, which nbgrader's exchange copies to the students as
it is. Each is an edition with the notebook of its one lesson, and runs wherever it is unpacked:
hence the model in each of them, 9 MB that the exchange would copy in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import CourseError
from .delivery import MANIFEST, Report, deliver, versions
from .edition import cut_edition, edition_files, edition_version, refuse_house
from .files import sha256
from .layout import ROOT, lessons


def release_self_study(folder: Path, root: Path = ROOT) -> Report:
    """The self-study edition in `folder`; one that is there already is brought up to date.

    Raises CourseError as `cut_edition` does.
    """
    return cut_edition(folder, root, "self-study")


def release_class(folder: Path, root: Path = ROOT) -> dict[str, Report]:
    """The class edition: `folder/03_top_k/` and its like; returns what was done to each.

    Raises CourseError, and writes nothing, if one of them holds anything that no release put there:
    the exchange would hand it out.
    """
    refuse_house(folder, root)
    editions = {lesson.slug: edition_files(root, "class", lesson) for lesson in lessons(root)}
    for slug, files in editions.items():
        _refuse_strangers(folder / slug, files)
    return {
        slug: deliver(files, folder / slug, edition_version(files, root))
        for slug, files in editions.items()
    }


def _refuse_strangers(folder: Path, files: Mapping[str, bytes]) -> None:
    known = versions(folder)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name == MANIFEST or (path.is_dir() and not path.is_symlink()):
            continue
        ours = {*known.get(name, ()), sha256(files[name])} if name in files else set()
        if path.is_symlink() or sha256(path.read_bytes()) not in ours:
            raise CourseError(
                f"{path} is not of the course, and would go to the students: move it away, or "
                f"delete {folder} and release again"
            )
