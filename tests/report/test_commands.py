"""`autograder export` and `autograder report` on a class whose journal is made here."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from autograder.authoring.layout import ROOT, solution_path
from autograder.classroom import blob_name, read_classroom
from autograder.cli import app
from autograder.errors import CourseError
from autograder.export.data import read_json
from autograder.export.table import read_csv
from autograder.journal import Journal, Key
from autograder.judge.verdict import LessonVerdict, Verdict
from autograder.late import When
from autograder.report_commands import run_export, run_report

from .made import BEGINNING, mistaken, right
from .test_learner import words

STUDENTS = {
    "00123": mistaken("keeps_one_less"),
    "=cmd|x": right(),
    "ada b": mistaken("negative_is_off"),
}


def key(submission: str) -> Key:
    return Key(submission, "top_k", "cd" * 32, "here", "seed")


def receipt(kept: Path, student: str, sha: str, hours: int, platform: str = "") -> None:
    folder = kept / "receipts" / "03_top_k" / Path(blob_name(student)).stem
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "student": student,
        "platform": platform,
        "received": (BEGINNING + timedelta(hours=hours)).isoformat(),
        "sha256": sha,
    }
    (folder / f"{sha[:32]}.json").write_text(json.dumps(told))


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A class of three, graded, and a fourth whose pack was never graded."""
    root = tmp_path / "[a] class"
    root.mkdir()
    (root / "nbgrader_config.py").write_text("c = get_config()\n")
    journal = Journal(read_classroom(root).kept)
    for number, (student, verdict) in enumerate(STUDENTS.items()):
        submission = f"{number:064x}"
        notes = ["asked for /proc"] if student == "ada b" else []
        journal.keep(key(submission), Verdict({"top_k": verdict}, "lock", notes=notes))
        journal.stand(student, key(submission), BEGINNING + timedelta(hours=number))
    for student in [*STUDENTS, "forgotten"]:
        module = root / "submitted" / student / "03_top_k" / "course_lib" / "top_k.py"
        module.parent.mkdir(parents=True)
        module.write_bytes(solution_path(ROOT, "top_k").read_bytes())
    monkeypatch.chdir(root)
    return root


def told(run: object, *arguments: object) -> str:
    out = io.StringIO()
    run(Console(file=out, soft_wrap=True), *arguments)  # type: ignore[operator]
    return out.getvalue()


# --- export ---


def test_every_format_holds_every_learner(course: Path) -> None:
    for form in ("csv", "canvas", "moodle", "json"):
        assert "3 grades of 3 learners" in told(run_export, form, Path(form), [])
    assert [row.student for row in read_csv(Path("csv").read_bytes())] == list(STUDENTS)
    assert [record.verdict for record in read_json(Path("json").read_bytes())] == [
        *STUDENTS.values()
    ]
    canvas = list(csv.reader(io.StringIO(Path("canvas").read_text(), newline="")))
    assert [line[2] for line in canvas[2:]] == ["00123", "'=cmd|x", "ada b"]


def test_penalties_follow_the_file_of_due_dates_and_nothing_is_run(course: Path) -> None:
    due = 'timezone = "UTC"\npercent = 10\n[top_k]\ndue = 2026-11-02T09:00:00\n'
    (course / "due.toml").write_text(due)
    told(run_export, "csv", Path("before.csv"), ["3"])
    (course / "due.toml").write_text(due + '[top_k.extensions]\n"ada b" = 2026-11-03T00:00:00\n')
    told(run_export, "csv", Path("after.csv"), ["top_k"])
    before, after = (read_csv(Path(name).read_bytes()) for name in ("before.csv", "after.csv"))
    assert [row.penalty for row in before] == [0, 0, 1.35]
    assert [row.penalty for row in after] == [0, 0, 0]
    assert [row.raw for row in before] == [row.raw for row in after] == [2.5, 15, 13.5]


def test_an_extension_of_nobody_is_told(course: Path) -> None:
    (course / "due.toml").write_text(
        'timezone = "UTC"\n[top_k]\ndue = 2026-11-02T09:00:00\n'
        "[top_k.extensions]\n123 = 2026-11-03T00:00:00\n"
    )
    assert "extensions in due.toml of ids without a grade: 123" in told(
        run_export, "csv", Path("grades.csv"), []
    )


def test_ids_that_an_importer_would_not_find_are_told(course: Path) -> None:
    assert "got an apostrophe: mend their lines: =cmd|x" in told(
        run_export, "moodle", Path("m.csv"), []
    )
    assert "apostrophe" not in told(run_export, "csv", Path("g.csv"), [])


def test_numbers_of_a_platform_go_back_to_that_platform_alone(course: Path) -> None:
    kept = read_classroom(course).kept
    receipt(kept, "00123", "a" * 64, 0, "Canvas")
    receipt(kept, "ada b", "b" * 64, 0, "Moodle")
    told(run_export, "canvas", Path("canvas.csv"), [])
    lines = list(csv.reader(io.StringIO(Path("canvas.csv").read_text(), newline="")))
    assert [line[1] for line in lines[2:]] == ["00123", "", ""]
    said = told(run_export, "moodle", Path("moodle.csv"), [])
    assert "its import does not know: collect with --roster: ada b\n" in said


def test_who_came_too_late_to_count_is_told(course: Path) -> None:
    due = "due = 2026-11-01T09:00:00\ncloses = 2026-11-02T09:30:00\n"
    (course / "due.toml").write_text(f'timezone = "UTC"\n[top_k]\n{due}')
    said = told(run_export, "csv", Path("grades.csv"), [])
    assert "came after the lesson closed, so that it counts nothing: ada b\n" in said


def test_no_file_is_overwritten_by_another(course: Path) -> None:
    Path("grades.csv").write_text("mine")
    with pytest.raises(CourseError, match=r"grades\.csv is there already"):
        told(run_export, "csv", Path("grades.csv"), [])
    assert Path("grades.csv").read_text() == "mine"
    told(run_export, "csv", Path("other.csv"), [])
    told(run_export, "csv", Path("other.csv"), [])


def test_an_export_of_nothing_is_an_error(course: Path) -> None:
    with pytest.raises(CourseError, match="no grades yet"):
        told(run_export, "json", Path("grades.json"), ["training"])
    assert not Path("grades.json").exists()


def test_both_commands_are_on_the_command_line(course: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["export", "--format", "moodle", "--lesson", "3", "-o", "m.csv"])
    assert (done.exit_code, Path("m.csv").exists()) == (0, True)
    done = runner.invoke(app, ["report", "top_k", "--student", "00123", "-o", "out"])
    assert done.exit_code == 0
    assert [path.name for path in Path("out/03_top_k").iterdir()] == ["00123"]


# --- report ---


def test_each_learner_gets_a_page_and_the_instructor_one_a_lesson(course: Path) -> None:
    assert "3 pages for learners" in told(run_report, [], Path("reports"), [])
    pages = sorted(path.parent.name for path in Path("reports/03_top_k").glob("*/report.html"))
    assert pages == sorted(STUDENTS)
    seen = words(Path("reports/03_top_k.html").read_text())
    assert "4 received 3 graded 1 not graded" in seen
    assert "forgotten not graded yet: run `autograder grade`" in seen
    assert "ada b asked for /proc" in seen
    assert "4 files compared" in seen


def test_a_pack_that_cannot_be_read_is_named_with_its_cause(course: Path) -> None:
    folder = course / "submitted" / "forgotten" / "03_top_k"
    for name in ("one", "two"):
        (folder / name / "course_lib").mkdir(parents=True)
        (folder / name / "course_lib" / "top_k.py").write_text(f"# {name}\n")
    (folder / "course_lib" / "top_k.py").unlink()
    told(run_report, [], Path("reports"), [])
    seen = words(Path("reports/03_top_k.html").read_text())
    assert "forgotten top_k.py is there twice and the two differ" in seen
    assert "not graded yet" not in seen


def test_a_page_tells_what_changed_if_the_same_checks_judged_an_earlier_pack(course: Path) -> None:
    journal = Journal(read_classroom(course).kept)
    journal.keep(key("ee" * 32), Verdict({"top_k": mistaken("drops_the_result")}, "lock"))
    # another version of the checks: no fair comparison
    older = replace(key("ff" * 32), checks="00" * 32)
    journal.keep(older, Verdict({"top_k": right()}, "lock"))
    # a later one that a killed run had judged already
    journal.keep(key("dd" * 32), Verdict({"top_k": right()}, "lock"))
    packs = [("ee" * 32, -9), ("ff" * 32, -3), (f"{2:064x}", 2), ("dd" * 32, 9)]
    for sha, hours in packs:
        receipt(read_classroom(course).kept, "ada b", sha, hours)
    told(run_report, [], Path("reports"), ["ada b", "00123"])
    seen = words(Path("reports/03_top_k/ada b/report.html").read_text())
    assert "points more than what was received 1 November 2026, 23:00 UTC earned." in seen
    assert "Since last time" not in words(Path("reports/03_top_k/00123/report.html").read_text())


def test_reports_replace_reports_only(course: Path) -> None:
    told(run_report, [], Path("reports"), [])
    told(run_report, [], Path("reports"), [])
    Path("reports/03_top_k.html").write_text("<p>my own notes</p>")
    with pytest.raises(CourseError, match="is no report"):
        told(run_report, [], Path("reports"), [])
    assert Path("reports/03_top_k.html").read_text() == "<p>my own notes</p>"


def test_a_report_of_nothing_is_an_error(course: Path) -> None:
    with pytest.raises(CourseError, match="nothing to report"):
        told(run_report, ["training"], Path("reports"), [])


def test_no_learner_s_page_holds_what_a_hidden_check_told(course: Path) -> None:
    secret = [
        replace(check, message="SECRET", hint="SECRET", mistake="SECRET") if check.hidden else check
        for check in mistaken("keeps_one_less").checks
    ]
    journal = Journal(read_classroom(course).kept)
    journal.keep(key("aa" * 32), Verdict({"top_k": LessonVerdict("top_k", secret)}, "lock"))
    journal.stand("00123", key("aa" * 32), BEGINNING)
    told(run_report, [], Path("reports"), [])
    assert "SECRET" not in Path("reports/03_top_k/00123/report.html").read_text()


def test_a_class_without_due_dates_is_never_late(course: Path) -> None:
    told(run_export, "csv", Path("grades.csv"), [])
    assert {row.late for row in read_csv(Path("grades.csv").read_bytes())} == {When.NO_DUE_DATE}
