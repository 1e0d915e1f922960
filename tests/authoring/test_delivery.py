"""A delivery brings what is new, and whatever a learner changed is never touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from autograder.authoring.delivery import MANIFEST, Report, deliver
from autograder.errors import CourseError

OLD = {"README.md": b"read", "course_lib/top_k.py": b"stub", "01.ipynb": b"{}"}
NEW = {
    "README.md": b"read on",
    "course_lib/top_k.py": b"better stub",
    "course_lib/top_p.py": b"stub of top-p",
    "01.ipynb": b"{}",
}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of `folder` by path, except for the manifest."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path != folder / MANIFEST
    }


def test_a_first_delivery_brings_everything(tmp_path: Path) -> None:
    report = deliver(OLD, tmp_path, "1")
    assert contents(tmp_path) == OLD
    assert report == Report(new=sorted(OLD))


def test_a_second_delivery_of_the_same_brings_nothing(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    assert deliver(OLD, tmp_path, "1") == Report(unchanged=sorted(OLD))


def test_files_that_nobody_touched_are_renewed(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    report = deliver(NEW, tmp_path, "2")
    assert contents(tmp_path) == NEW
    assert report == Report(
        new=["course_lib/top_p.py"],
        updated=["README.md", "course_lib/top_k.py"],
        unchanged=["01.ipynb"],
    )


def test_an_edited_file_is_left_alone(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "course_lib/top_k.py").write_bytes(b"mine")
    report = deliver(OLD, tmp_path, "1")
    assert report.kept == ["course_lib/top_k.py"]
    assert contents(tmp_path) == OLD | {"course_lib/top_k.py": b"mine"}


def test_a_newer_version_of_an_edited_file_arrives_beside_it(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "course_lib/top_k.py").write_bytes(b"mine")
    report = deliver(NEW, tmp_path, "2")
    assert report.beside == {"course_lib/top_k.py": "course_lib/top_k.new.py"}
    assert contents(tmp_path) == NEW | {
        "course_lib/top_k.py": b"mine",
        "course_lib/top_k.new.py": b"better stub",
    }


def test_it_arrives_beside_once_even_if_it_was_thrown_away(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "course_lib/top_k.py").write_bytes(b"mine")
    deliver(NEW, tmp_path, "2")
    (tmp_path / "course_lib/top_k.new.py").unlink()
    report = deliver(NEW, tmp_path, "2")
    assert report.kept == ["course_lib/top_k.py"]
    assert not (tmp_path / "course_lib/top_k.new.py").exists()


def test_the_next_version_replaces_the_one_that_lies_beside(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "README.md").write_bytes(b"mine")
    deliver(NEW, tmp_path, "2")
    deliver(NEW | {"README.md": b"third"}, tmp_path, "3")
    assert (tmp_path / "README.md").read_bytes() == b"mine"
    assert (tmp_path / "README.new.md").read_bytes() == b"third"
    assert not (tmp_path / "README.new2.md").exists()


def test_what_lies_beside_and_was_edited_is_left_alone_too(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "README.md").write_bytes(b"mine")
    deliver(NEW, tmp_path, "2")
    (tmp_path / "README.new.md").write_bytes(b"mine too")
    report = deliver(NEW | {"README.md": b"third"}, tmp_path, "3")
    assert report.beside == {"README.md": "README.new2.md"}
    assert (tmp_path / "README.md").read_bytes() == b"mine"
    assert (tmp_path / "README.new.md").read_bytes() == b"mine too"
    assert (tmp_path / "README.new2.md").read_bytes() == b"third"


def test_who_took_the_new_version_over_has_an_ordinary_file_again(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "README.md").write_bytes(b"mine")
    deliver(NEW, tmp_path, "2")
    (tmp_path / "README.new.md").replace(tmp_path / "README.md")
    assert "README.md" in deliver(NEW | {"README.md": b"third"}, tmp_path, "3").updated


def test_a_deleted_file_is_reported_and_stays_deleted(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "01.ipynb").unlink()
    for files in (OLD, OLD | {"01.ipynb": b"{ }"}):
        report = deliver(files, tmp_path, "2")
        assert report.deleted == ["01.ipynb"]
        assert not (tmp_path / "01.ipynb").exists()


def test_a_strangers_file_of_the_same_name_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"of another project")
    report = deliver(OLD, tmp_path, "1")
    assert report.beside == {"README.md": "README.new.md"}
    assert (tmp_path / "README.md").read_bytes() == b"of another project"


def test_files_that_are_no_part_of_the_edition_are_not_looked_at(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "course_lib/notes.txt").write_bytes(b"mine")
    (tmp_path / "trial.ipynb").write_bytes(b"{}")
    deliver(NEW, tmp_path, "2")
    assert contents(tmp_path).keys() - NEW.keys() == {"course_lib/notes.txt", "trial.ipynb"}


def test_a_link_or_a_folder_in_a_files_place_is_somebodys_own(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    deliver(OLD, folder, "1")
    elsewhere = tmp_path / "top_k.py"
    (folder / "course_lib/top_k.py").replace(elsewhere)
    (folder / "course_lib/top_k.py").symlink_to(elsewhere)
    (folder / "README.md").unlink()
    (folder / "README.md").mkdir()
    report = deliver(NEW, folder, "2")
    assert set(report.beside) == {"README.md", "course_lib/top_k.py"}
    assert (folder / "course_lib/top_k.py").is_symlink()
    assert elsewhere.read_bytes() == b"stub"


def test_a_lost_manifest_costs_no_work(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "course_lib/top_k.py").write_bytes(b"mine")
    (tmp_path / MANIFEST).unlink()
    deliver(NEW, tmp_path, "2")
    assert (tmp_path / "course_lib/top_k.py").read_bytes() == b"mine"
    assert (tmp_path / "course_lib/top_k.new.py").read_bytes() == b"better stub"


@pytest.mark.parametrize("text", ["", "[]", '{"files": {"a": 1}}', '{"version": "1"}'])
def test_a_damaged_manifest_is_told_in_a_line(tmp_path: Path, text: str) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match=r"edition\.json is damaged: delete it and try again"):
        deliver(NEW, tmp_path, "2")
    assert contents(tmp_path) == OLD


def test_a_place_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "course_lib").write_bytes(b"a file, where a folder has to be")
    with pytest.raises(CourseError, match="course_lib"):
        deliver(OLD, tmp_path, "1")
    assert (tmp_path / "course_lib").read_bytes() == b"a file, where a folder has to be"


# files that are given: the learner reads them, and nothing runs without them


def is_read_only(path: str) -> bool:
    return path == "README.md"


def test_a_given_file_that_was_deleted_comes_back(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1", is_read_only)
    (tmp_path / "README.md").unlink()
    (tmp_path / "01.ipynb").unlink()
    report = deliver(OLD, tmp_path, "1", is_read_only)
    assert (report.restored, report.deleted, report.aside) == (["README.md"], ["01.ipynb"], {})
    assert (tmp_path / "README.md").read_bytes() == OLD["README.md"]


@pytest.mark.parametrize("files", [OLD, NEW])
def test_a_given_file_that_was_changed_is_restored_and_the_change_is_kept(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    deliver(OLD, tmp_path, "1", is_read_only)
    (tmp_path / "README.mine.md").write_bytes(b"notes of the learner's own")
    for kept, text in (("README.mine2.md", b"half a fi"), ("README.mine3.md", b"my words")):
        (tmp_path / "README.md").write_bytes(text)
        report = deliver(files, tmp_path, "2", is_read_only)
        assert report.restored == ["README.md"]
        assert report.aside == {"README.md": kept}
        assert (tmp_path / kept).read_bytes() == text
        assert (tmp_path / "README.md").read_bytes() == files["README.md"]
    (tmp_path / "README.md").write_bytes(b"half a fi")
    report = deliver(files, tmp_path, "2", is_read_only)
    assert report.aside == {"README.md": "README.mine2.md"}, "the same bytes are kept once"
    assert (tmp_path / "README.mine.md").read_bytes() == b"notes of the learner's own"


def test_an_older_version_of_a_given_file_is_renewed_and_not_kept(tmp_path: Path) -> None:
    deliver(OLD, tmp_path, "1", is_read_only)
    report = deliver(NEW, tmp_path, "2", is_read_only)
    assert (report.restored, report.aside) == ([], {})
    assert "README.md" in report.updated
    assert contents(tmp_path) == NEW


def test_a_strangers_file_in_a_given_files_place_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"of another project")
    report = deliver(OLD, tmp_path, "1", is_read_only)
    assert report.beside == {"README.md": "README.new.md"}


# dies without any clean-up at the n-th rename, before or after it
KILLED = dedent(
    """
    import os, sys
    from pathlib import Path
    from autograder.authoring.delivery import deliver
    from tests.authoring.test_delivery import NEW, OLD

    folder, edition, left, when = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    rename = os.replace

    def deadly(source, target):
        global left
        left -= 1
        if left == 0 and when == "before":
            os._exit(9)
        rename(source, target)
        if left == 0:
            os._exit(9)

    os.replace = deadly
    deliver({"old": OLD, "new": NEW}[edition], folder, edition)
    """
)


def deliver_and_die(folder: Path, edition: str, rename: int, when: str) -> None:
    """Deliver in a process that dies at its n-th rename."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), edition, str(rename), when],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == 9


# 3 files and the manifest twice; 3 files that change and the manifest twice
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("rename", [1, 2, 3, 4, 5])
def test_a_kill_in_the_first_delivery_leaves_nothing_that_the_next_cannot_finish(
    tmp_path: Path, rename: int, when: str
) -> None:
    deliver_and_die(tmp_path, "old", rename, when)
    deliver(NEW, tmp_path, "2")
    assert contents(tmp_path) == NEW


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("rename", [1, 2, 3, 4, 5])
def test_a_kill_in_an_update_loses_no_work_and_the_next_one_finishes(
    tmp_path: Path, rename: int, when: str
) -> None:
    deliver(OLD, tmp_path, "1")
    (tmp_path / "course_lib/top_k.py").write_bytes(b"mine")
    deliver_and_die(tmp_path, "new", rename, when)
    assert (tmp_path / "course_lib/top_k.py").read_bytes() == b"mine"
    deliver(NEW, tmp_path, "2")
    assert contents(tmp_path) == NEW | {
        "course_lib/top_k.py": b"mine",
        "course_lib/top_k.new.py": b"better stub",
    }
