"""install.py: once is enough, and whatever is in its way is told in one line."""

from __future__ import annotations

import ast
import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import install

PYPROJECT = """
[project]
name = "toy"
[project.optional-dependencies]
study = ["jupyterlab"]
"""


class Machine:
    """A course folder on a machine whose venv and pip are stubs: pip does as it is told."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.venvs_made = 0
        home.mkdir()
        (home / "pyproject.toml").write_text(PYPROJECT)
        (home / "constraints.txt").write_text("torch==2.13.0\n")
        self.pip_does()

    def pip_does(self, says: str = "Successfully installed toy", returns: int = 0) -> None:
        """What the next pip prints, and its exit code."""
        self.says, self.returns = says, returns
        if (self.home / ".venv").exists():
            self._write_pip()

    def _write_pip(self) -> None:
        python = self.home / ".venv" / "bin" / "python"
        python.write_text(
            f'#!/bin/sh\necho "$@" >> {shlex.quote(str(self.home / "pip_calls"))}\n'
            f"echo {shlex.quote(self.says)}\nexit {self.returns}\n"
        )
        python.chmod(0o755)

    def make_venv(self, argv: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        """Stands in for `subprocess.run`, which the installer calls for `python -m venv` only."""
        assert argv[1:] == ["-m", "venv", "--clear", str(self.home / ".venv")]
        self.venvs_made += 1
        (self.home / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        self._write_pip()
        return subprocess.CompletedProcess(argv, 0, stdout="")

    @property
    def pip_calls(self) -> list[str]:
        """The arguments of each pip so far."""
        calls = self.home / "pip_calls"
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path / "the course")
    monkeypatch.setattr(install, "HERE", str(machine.home))
    monkeypatch.setattr(install.subprocess, "run", machine.make_venv)
    return machine


def one_line_of_failure(capsys: pytest.CaptureFixture[str]) -> str:
    """Run the installer, see it fail with 1 and a single line on stderr, and return that line."""
    assert install.main() == 1
    err = capsys.readouterr().err
    assert err.startswith("install: ")
    assert err.count("\n") == 1
    return err


def test_it_installs_every_extra_at_the_pinned_versions(machine: Machine) -> None:
    assert install.main() == 0
    assert machine.venvs_made == 1
    (call,) = machine.pip_calls
    assert call.startswith("-m pip install ")
    assert call.endswith("-c constraints.txt -e .[study]")


def test_a_second_call_does_nothing(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    install.main()
    capsys.readouterr()
    assert install.main() == 0
    assert (machine.venvs_made, len(machine.pip_calls)) == (1, 1)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_file_installs_again_into_the_same_venv(machine: Machine, name: str) -> None:
    install.main()
    with (machine.home / name).open("a") as file:
        file.write("# changed\n")
    assert install.main() == 0
    assert install.main() == 0
    assert (machine.venvs_made, len(machine.pip_calls)) == (1, 2)


def test_a_moved_folder_gets_a_new_venv(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    install.main()
    machine.home = machine.home.rename(machine.home.with_name("moved"))
    monkeypatch.setattr(install, "HERE", str(machine.home))
    assert install.main() == 0
    assert machine.venvs_made == 2


def test_a_venv_whose_python_is_gone_is_made_anew(machine: Machine) -> None:
    install.main()
    (machine.home / ".venv" / "bin" / "python").unlink()
    assert install.main() == 0
    assert machine.venvs_made == 2


def test_a_failed_installation_is_tried_again(machine: Machine) -> None:
    machine.pip_does("ERROR: out of luck", 1)
    assert install.main() == 1
    machine.pip_does()
    assert install.main() == 0
    assert len(machine.pip_calls) == 2


def test_a_python_too_old_is_told_both_versions(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(install, "OLDEST_PYTHON", (99, 1))
    line = one_line_of_failure(capsys)
    assert "99.1" in line
    assert ".".join(map(str, sys.version_info[:3])) in line
    assert machine.venvs_made == 0


def test_a_python_too_old_can_read_the_file() -> None:
    source = Path(install.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 7))
    # what ast.parse lets pass although 3.5 cannot read it
    assert not any(isinstance(node, ast.JoinedStr | ast.AnnAssign) for node in ast.walk(tree))


def test_a_full_disk_is_told_before_anything_is_made(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(install, "NEEDED_BYTES", 10**18)
    line = one_line_of_failure(capsys)
    assert "GB free" in line
    assert machine.venvs_made == 0


def test_a_disk_that_fills_up_on_the_way_is_told(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.pip_does("ERROR: Could not install: [Errno 28] No space left on device", 1)
    assert "is full" in one_line_of_failure(capsys)


def test_no_network_is_told(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.pip_does(
        "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n"
        "ERROR: No matching distribution found for setuptools>=77",
        1,
    )
    assert "no network" in one_line_of_failure(capsys)


def test_a_python_without_venv_is_told_the_package_to_install(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "python3-venv" in one_line_of_failure(capsys)
    assert machine.venvs_made == 0


def test_any_other_failure_gives_pips_own_error_and_the_log(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "Collecting toy\nERROR: the moon is in the wrong quarter\nsome more"
    machine.pip_does(said, 1)
    line = one_line_of_failure(capsys)
    assert "ERROR: the moon is in the wrong quarter" in line
    log = machine.home / ".venv" / "install.log"
    assert str(log) in line
    assert log.read_text().strip() == said


def test_a_folder_without_its_files_is_told_which_is_missing(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine.home / "constraints.txt").unlink()
    assert "constraints.txt" in one_line_of_failure(capsys)
