"""What the sandbox shows of the disk, and the filter of system calls as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.judge.sandbox import bubblewrap, files, packages, seccomp
from autograder.judge.sandbox.syscalls import OWN_PID

ROOT = Path(__file__).resolve().parents[2]


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def test_a_folder_that_holds_what_is_hidden_becomes_what_else_is_in_it(tmp_path: Path) -> None:
    make(tmp_path, "lib/python3/site-packages/torch.py", "lib/python3/os.py", "lib/libc.so")
    hidden = files.package_folders([tmp_path / "lib"])
    assert hidden == [tmp_path / "lib/python3/site-packages"]
    assert files.without([tmp_path / "lib"], hidden) == [
        tmp_path / "lib/libc.so",
        tmp_path / "lib/python3/os.py",
    ]


def test_a_link_out_of_a_shown_folder_is_not_followed(tmp_path: Path) -> None:
    """Debian's /usr/lib/ssl/private leads to /etc: allowing the link would allow its target."""
    make(tmp_path, "lib/site-packages/x.py", "lib/os.py", "etc/private/key")
    (tmp_path / "lib/private").symlink_to(tmp_path / "etc/private")
    hidden = files.package_folders([tmp_path / "lib"])
    assert files.without([tmp_path / "lib"], hidden) == [tmp_path / "lib/os.py"]


def test_a_folder_with_nothing_hidden_stays_one(tmp_path: Path) -> None:
    make(tmp_path, "lib/a.so", "lib/b/c.so")
    assert files.without([tmp_path / "lib"], []) == [tmp_path / "lib"]


def test_the_system_is_shown_without_its_packages() -> None:
    shown = files.system()
    assert files.interpreter() in shown or any(
        files.interpreter().is_relative_to(path) for path in shown
    )
    readable = files.without(shown, files.package_folders(shown))
    assert not any(path.name in files.PACKAGE_FOLDERS for path in readable)
    assert any(Path(os.__file__).resolve().is_relative_to(path) for path in readable)
    assert not any((ROOT / "solutions").is_relative_to(path) for path in readable)


def test_packages_are_those_that_the_course_needs_and_theirs() -> None:
    names = {found.metadata["Name"].lower() for found in packages.closure()}
    assert {"torch", "numpy", "jaxtyping", "sympy", "typing_extensions"} <= names
    assert not {"transformers", "pytest", "nbgrader", "nbconvert", "jupyterlab"} & names


def test_packages_that_are_not_installed_are_left_out() -> None:
    assert packages.closure(["no-such-package"]) == []


def test_modules_are_found_by_what_lies_in_the_folder_of_packages() -> None:
    places = packages.top_level(packages.entries(packages.closure()))
    assert {"torch", "numpy", "typing_extensions", "PIL"} <= set(places)
    assert not {"__pycache__", "torch-2", "transformers"} & set(places)
    assert all(Path(folder).is_dir() for folders in places.values() for folder in folders)


@pytest.mark.parametrize("name", ["[test] a+b (c)", "größer", "with\nnewline"])
def test_bubblewrap_gets_paths_as_they_are(name: str) -> None:
    root = Path("/") / name
    argv = bubblewrap.command("bwrap", root, [root / "lib"], [root / "site-packages/torch"])
    assert argv[argv.index(str(root / "lib")) - 1] == "--ro-bind"
    assert f"{root}/autograder/judge" in argv
    # nothing of the course lies under its own name inside
    assert argv[argv.index(f"{root}/autograder/judge") + 1] == "/course/autograder/judge"
    assert "--bind" not in argv
    assert "--share-net" not in argv


# --- the filter ---


def test_the_filter_gets_the_childs_own_number() -> None:
    program = seccomp.compile_filter()
    mark = OWN_PID.to_bytes(4, "little")
    assert mark in program
    own = seccomp.with_pid(program, 4321)
    assert mark not in own
    assert own.count((4321).to_bytes(4, "little")) == program.count(mark)


def test_names_that_no_machine_has_are_left_out() -> None:
    assert seccomp.resolve("no_such_call") < 0
    assert seccomp.resolve("read") >= 0


OPEN = """
import os, sys
from autograder.judge.sandbox import kernel, seccomp
path, filtered = sys.argv[1], sys.argv[2] == "True"
program = seccomp.compile_filter()
kernel.no_new_privileges()
if filtered:
    seccomp.install(program)
for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
    try:
        os.open(path, flags)
    except PermissionError:
        os.write(1, b"no ")
    else:
        os.write(1, b"yes ")
"""


def test_an_old_kernel_does_not_let_a_readable_file_be_emptied(tmp_path: Path) -> None:
    """Landlock knows truncation from ABI 3 on; before that the filter has to know it."""
    path = tmp_path / "file"
    for filtered, told in ((False, "yes yes yes yes "), (True, "yes yes no no ")):
        path.write_text("content")
        done = subprocess.run(
            [sys.executable, "-c", OPEN, str(path), str(filtered)],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        assert done.stdout == told
        assert path.read_text() == ("content" if filtered else "")
