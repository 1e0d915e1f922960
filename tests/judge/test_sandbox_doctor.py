"""`autograder doctor`: what this machine can do, and how to get the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.errors import CourseError
from autograder.judge.sandbox import attempts, bubblewrap, doctor, ladder, landlock, selftest


def run() -> tuple[str, BaseException | None]:
    done = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    return " ".join(done.output.split()), done.exception


def test_doctor_tells_what_grading_uses_and_what_it_refuses() -> None:
    told, error = run()
    assert error is None
    assert "Python and torch: 3." in told
    best = next(rung for rung in ladder.LADDER if not ladder.lacks(rung))
    assert f"Grading here uses “{best.level}”" in told
    assert f"refuses {len(attempts.ATTEMPTS)} of {len(attempts.ATTEMPTS)} attempts" in told
    for claim in attempts.ATTEMPTS:
        assert claim in told


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves torch out, which takes its time."""
    monkeypatch.setattr(doctor, "IMPORTS", ())


@pytest.mark.usefixtures("light")
def test_doctor_tells_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    told, error = run()
    assert error is None
    assert "bubblewrap: apt install bubblewrap" in told
    assert "sandbox “namespaces and lock”: bubblewrap is not installed" in told


def test_doctor_fails_where_grading_would_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "lacks", lambda rung: "this machine has none")
    told, error = run()
    assert "sandbox “lock”: this machine has none" in told
    # the command line makes it one line and exit code 1
    assert isinstance(error, CourseError)
    assert "no sandbox holds here" in str(error)


def test_doctor_tells_when_torch_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "IMPORTS", ("no_such_name",))
    told, error = run()
    assert "ModuleNotFoundError: No module named 'no_such_name'" in told
    assert isinstance(error, CourseError)


def test_doctor_tells_a_sandbox_that_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = "it does not hold: code in it can fork"
    monkeypatch.setattr(selftest, "fault", lambda process, rung, limits: fault)
    told, error = run()
    assert f"sandbox “lock”: {fault}" in told
    assert isinstance(error, CourseError)


def test_a_kernel_without_landlock_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    part = doctor.landlock()
    assert part.found == ""
    assert "5.13" in part.mend


def test_switches_against_namespaces_are_named_with_their_command(tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    switch = tmp_path / "kernel/apparmor_restrict_unprivileged_userns"
    switch.write_text("1\n")
    assert doctor.mends_of_namespaces(tmp_path) == [
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    ]
    switch.write_text("0\n")
    assert "a container" in doctor.mends_of_namespaces(tmp_path)[0]
