"""What goes out: one folder for self-study, nbgrader's release folder for a class."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import cli
from autograder.authoring.edition import edition_files
from autograder.authoring.layout import ROOT, lessons, solution_path
from autograder.authoring.release import release_class, release_self_study
from autograder.errors import CourseError
from course_lib.given.reference import Reference, read_handout
from tests.authoring.small_course import TOP_K, write_files
from tests.authoring.test_edition import nbgrader_releases


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def autograder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[object, str, str]:
    """Exit code and both outputs of the command."""
    monkeypatch.setattr(sys, "argv", ["autograder", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    return ended.value.code, told.out, told.err


# --- self-study ---


def test_self_study_has_solutions_and_thorough_checks_beside_everything_else(
    course: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    release_self_study(out, course)
    added = files_in(out).keys() - edition_files(course).keys()
    assert added == {
        ".course/edition.json",
        "solutions/__init__.py",
        "solutions/top_k.py",
        "solutions/top_p.py",
        "thorough/__init__.py",
        "thorough/top_k.py",
    }
    assert (out / "solutions/top_k.py").read_text("utf-8") == TOP_K
    assert "yours to write" in (out / "course_lib/top_k.py").read_text("utf-8")


def test_a_second_release_for_self_study_spares_a_learners_work(
    course: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    release_self_study(out, course)
    write_files(out, {"course_lib/top_k.py": "mine = 1\n"})
    assert release_self_study(out, course).kept == ["course_lib/top_k.py"]
    assert (out / "course_lib/top_k.py").read_text("utf-8") == "mine = 1\n"


# --- class ---


def test_a_class_gets_a_folder_for_each_assignment(course: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    assert list(release_class(out, course)) == ["03_top_k"]
    assert [path.name for path in out.iterdir()] == ["03_top_k"]
    files = files_in(out / "03_top_k")
    assert files.keys() - {".course/edition.json"} == edition_files(course).keys()
    assert not any("solutions" in path or "thorough" in path for path in files)


def test_an_assignment_has_the_notebook_of_its_own_lesson_only(
    course: Path, tmp_path: Path
) -> None:
    second = course / "lessons/04_top_p.py"
    second.write_text((course / "lessons/03_top_k.py").read_text("utf-8"), "utf-8")
    notebook = (course / "lessons/03_top_k/03_top_k.ipynb").read_text("utf-8")
    write_files(course, {"lessons/04_top_p/04_top_p.ipynb": notebook})
    release_class(tmp_path / "release", course)
    for slug in ("03_top_k", "04_top_p"):
        folder = tmp_path / "release" / slug
        assert [path.name for path in folder.glob("*.ipynb")] == [f"{slug}.ipynb"]
        assert f"`{slug}.ipynb` |" in (folder / "README.md").read_text("utf-8")


def test_the_notebook_is_the_one_that_nbgrader_generates(course: Path, tmp_path: Path) -> None:
    release_class(tmp_path / "release", course)
    ours = (tmp_path / "release/03_top_k/03_top_k.ipynb").read_bytes()
    assert ours == nbgrader_releases(course, "03_top_k")


def test_what_nbgrader_generated_is_completed_in_place(course: Path) -> None:
    notebook = nbgrader_releases(course, "03_top_k")
    report = release_class(course / "release", course)["03_top_k"]
    assert report.unchanged == ["03_top_k.ipynb"]
    assert (course / "release/03_top_k/03_top_k.ipynb").read_bytes() == notebook
    assert (course / "release/03_top_k/models/config.json").is_file()


def test_the_exchange_takes_an_assignment_whole(course: Path, tmp_path: Path) -> None:
    release_class(course / "release", course)
    (tmp_path / "exchange").mkdir(mode=0o777)
    (tmp_path / "exchange").chmod(0o777)
    command = [sys.executable, "-m", "nbgrader", "release_assignment", "03_top_k"]
    settings = ["--course=decoding", f"--Exchange.root={tmp_path / 'exchange'}"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command + settings,
        cwd=course,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "exchange/decoding/outbound/03_top_k"
    assert files_in(out) == files_in(course / "release/03_top_k")


def test_a_second_release_brings_a_class_up_to_date(course: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    release_class(out, course)
    write_files(course, {"models/config.json": '{"new": 1}\n'})
    assert release_class(out, course)["03_top_k"].updated == ["models/config.json"]
    assert (out / "03_top_k/models/config.json").read_text("utf-8") == '{"new": 1}\n'


@pytest.mark.parametrize(
    "stranger",
    ["course_lib/top_k.py", "answers.txt", "solutions/top_k.py", ".course/progress.json"],
)
def test_nothing_goes_out_that_no_release_put_there(
    course: Path, tmp_path: Path, stranger: str
) -> None:
    out = tmp_path / "release"
    release_class(out, course)
    write_files(out / "03_top_k", {stranger: TOP_K})
    before = files_in(out)
    with pytest.raises(CourseError, match=f"{stranger} is not of the course"):
        release_class(out, course)
    assert files_in(out) == before


def test_a_link_goes_out_neither(course: Path, tmp_path: Path) -> None:
    release_class(tmp_path / "release", course)
    (tmp_path / "release/03_top_k/all").symlink_to(course / "solutions")
    with pytest.raises(CourseError, match="all is not of the course"):
        release_class(tmp_path / "release", course)


def test_a_release_never_goes_into_the_course_itself(course: Path) -> None:
    for folder in (course, course / "lessons", course / "solutions/class"):
        with pytest.raises(CourseError, match="belongs to the course itself"):
            release_class(folder, course)


# --- what each edition says to those who are stuck ---


def test_each_readme_tells_its_own_way_out(course: Path) -> None:
    readmes = {
        kind: edition_files(course, kind)["README.md"].decode()
        for kind in ("workspace", "self-study", "class")
    }
    for kind in ("workspace", "self-study"):
        assert "course solution top_k" in readmes[kind]
        assert "course adopt top_k" in readmes[kind]
    assert "\n- `solutions/`: the lessons" in readmes["self-study"]
    assert "solutions/" not in readmes["workspace"] + readmes["class"]
    assert "course adopt FILE" in readmes["class"]
    assert "course solution" not in readmes["class"]


# --- the commands ---


def test_release_wants_to_know_for_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, told = autograder(monkeypatch, capsys, "release", str(tmp_path / "out"))
    assert code == 2
    assert "--edition" in told
    assert not (tmp_path / "out").exists()


def test_the_command_releases_either_edition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for edition in ("self-study", "class"):
        out = str(tmp_path / edition)
        code, told, _ = autograder(monkeypatch, capsys, "release", out, "--edition", edition)
        assert code == 0
        assert "is ready" in told
    slugs = sorted(lesson.slug for lesson in lessons())
    assert sorted(path.name for path in (tmp_path / "class").iterdir()) == slugs
    assert (tmp_path / "self-study/solutions/generate.py").is_file()


def test_unlock_writes_what_adopt_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the same once more is no harm
        code, told, _ = autograder(monkeypatch, capsys, "unlock", "3")
        assert (code, "unlock_top_k.json" in told) == (0, True)
    module = solution_path(ROOT, "top_k").read_text("utf-8")
    assert read_handout(tmp_path / "unlock_top_k.json") == Reference("top_k", module)


def test_unlock_overwrites_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.json"
    path.write_text(json.dumps("mine"), encoding="utf-8")
    code, _, told = autograder(monkeypatch, capsys, "unlock", "3", "-o", str(path))
    assert (code, "name another with -o" in told) == (1, True)
    assert json.loads(path.read_text("utf-8")) == "mine"
    code, _, told = autograder(monkeypatch, capsys, "unlock", "3", "-o", str(tmp_path / "a.txt"))
    assert (code, "must end in .json" in told) == (1, True)
