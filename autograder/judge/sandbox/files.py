"""What a child may read: Python and its library, the packages shown, the course's given code.

Never a whole prefix: the folder with all installed packages may lie inside the standard library,
and holds what no child should find.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

# of the repository, where the learner's own package is made of what was handed in
COURSE = (
    "course_lib/__init__.py",
    "course_lib/given",
    "course_lib/checks",
    "autograder/__init__.py",
    "autograder/errors.py",
    "autograder/judge",
)

LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def interpreter() -> Path:
    """The Python to be started; a virtual environment's own is but a link to it."""
    return Path(sys.executable).resolve()


def system() -> list[Path]:
    """Files and folders of Python and of the libraries that it is linked with."""
    base = Path(sys.base_prefix)
    wanted = [
        interpreter(),
        base / "lib",
        base / "lib64",
        Path(sysconfig.get_path("stdlib")),
        *map(Path, LIBRARIES),
    ]
    found: list[Path] = []
    for path in wanted:
        # by their names: inside bubblewrap /lib has to be there beside /usr/lib, though one links
        # to the other
        if path.exists() and not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return found


def package_folders(paths: Iterable[Path]) -> list[Path]:
    """The folders of installed packages inside these, which are not to be shown."""
    found = []
    for path in paths:
        if path.is_dir():
            for name in PACKAGE_FOLDERS:
                found += [*path.glob(name), *path.glob(f"*/{name}")]
    return sorted(set(found))


def without(paths: Iterable[Path], hidden: Iterable[Path]) -> list[Path]:
    """The same files with nothing of `hidden`: a folder that holds one becomes what is in it."""
    hidden = [path.resolve() for path in hidden]
    found = set()
    left = [path.resolve() for path in paths]
    while left:
        path = left.pop()
        if path in hidden:
            continue
        if any(other.is_relative_to(path) for other in hidden):
            # a link would open whatever it leads to; what it leads to in here is listed as itself
            left += [inner for inner in path.iterdir() if not inner.is_symlink()]
        else:
            found.add(path)
    return sorted(found)
