"""deploy/: no Docker, JupyterHub, Slurm or Kubernetes runs here, but what can be read is."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from traitlets.config import Config
from typer.main import get_command

from autograder.authoring.layout import ROOT
from autograder.classroom import read_classroom
from autograder.cli import app
from autograder.gradebook import Gradebook
from autograder.shards import Shard

DEPLOY = ROOT / "deploy"


def instructions() -> list[list[str]]:
    """The Dockerfile's instructions, as words."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    whole = re.sub(r"\\\n\s*", " ", text)
    lines = [line for line in whole.splitlines() if line and not line.startswith("#")]
    return [line.split() for line in lines]


def copied() -> list[str]:
    return [name for word, *names in instructions() if word == "COPY" for name in names[:-1]]


def test_everything_that_the_image_copies_is_there_and_is_let_in() -> None:
    assert len(copied()) > 8
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").split("\n")
    for name in copied():
        assert (ROOT / name).exists(), name
        assert name not in ignored


def test_the_image_holds_all_that_a_verdict_depends_on_and_nothing_of_a_class() -> None:
    kept = set(copied())
    assert {"course_lib", "autograder", "solutions", "lessons", "models"} <= kept
    assert not kept & {"submitted", ".autograder", "gradebook.db", ".", "tests"}


def test_the_image_installs_extras_that_exist_with_the_pinned_versions() -> None:
    (install,) = [line for line in instructions() if "install" in line and "-e" in line]
    extras = re.findall(r"\[(.*)\]", " ".join(install))[0].split(",")
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(extras) <= set(offered["project"]["optional-dependencies"])
    assert "constraints.txt" in install


def test_the_images_class_loads_as_nbgrader_loads_it(tmp_path: Path) -> None:
    (line,) = [line for line in instructions() if "printf" in line]
    words = shlex.split(" ".join(line))
    lines = [word for word in words if "configure" in word]
    config = Config()
    file = tmp_path / "nbgrader_config.py"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    runpy.run_path(str(file), {"get_config": lambda: config, "__file__": str(file)})
    assert config.CourseDirectory.course_id == "decoding"


# --- jupyterhub ---


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Config, dict[str, Any]]:
    for name in ("COURSE", "CLASS", "HANDED_IN", "LEARNERS"):
        folder = tmp_path / name.lower()
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("INSTRUCTORS", "ines,ivan")
    config = Config()
    told = runpy.run_path(str(DEPLOY / "jupyterhub_config.py"), {"get_config": lambda: config})
    return config, told


def spawner(name: str) -> Any:
    return SimpleNamespace(user=SimpleNamespace(name=name), environment={"A": "b"})


def test_instructors_start_in_the_class_with_the_courses_environment(
    hub: tuple[Config, dict[str, Any]], tmp_path: Path
) -> None:
    config, _ = hub
    assert config.Authenticator.allowed_users == {"ines", "ivan"}
    one = spawner("ines")
    config.Spawner.pre_spawn_hook(one)
    assert one.notebook_dir == str(tmp_path / "class")
    assert one.cmd == [str(tmp_path / "course/.venv/bin/jupyterhub-singleuser")]
    assert one.environment["A"] == "b"
    assert one.environment["PATH"].startswith(str(tmp_path / "course/.venv/bin"))


def test_a_learner_gets_an_inbox_and_never_the_course(
    hub: tuple[Config, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, _ = hub
    home = tmp_path / "home"
    home.mkdir()
    account = SimpleNamespace(pw_uid=os.getuid(), pw_dir=str(home))
    monkeypatch.setattr("pwd.getpwnam", lambda name: account)
    for _ in range(2):
        one = spawner("lea")
        config.Spawner.pre_spawn_hook(one)
    inbox = tmp_path / "handed_in" / "lea"
    assert inbox.stat().st_mode & 0o7777 == 0o2770
    assert (home / "handed_in").resolve() == inbox
    assert not hasattr(one, "notebook_dir")
    assert str(tmp_path / "course") not in " ".join([*one.cmd, one.environment["PATH"]])


def test_a_file_of_the_learners_own_is_left_alone(
    hub: tuple[Config, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, _ = hub
    home = tmp_path / "home"
    (home / "handed_in").mkdir(parents=True)
    account = SimpleNamespace(pw_uid=os.getuid(), pw_dir=str(home))
    monkeypatch.setattr("pwd.getpwnam", lambda name: account)
    config.Spawner.pre_spawn_hook(spawner("lea"))
    assert not (home / "handed_in").is_symlink()


def test_the_servers_nbgrader_settings_load() -> None:
    config = Config()
    runpy.run_path(str(DEPLOY / "nbgrader_config.py"), {"get_config": lambda: config})
    assert config.CourseDirectory.course_id == "decoding"
    assert Path(config.Exchange.root).is_absolute()


@pytest.fixture
def _umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize(("mode", "group"), [(0o2770, 0o060), (0o755, 0o000)])
def test_a_class_that_belongs_to_a_group_is_written_by_all_of_it(
    tmp_path: Path, _umask: None, monkeypatch: pytest.MonkeyPatch, mode: int, group: int
) -> None:
    """Several instructors grade it, each with an account of their own."""
    root = tmp_path / "class"
    root.mkdir()
    root.chmod(mode)
    lines = f"import sys\nsys.path.append({str(ROOT)!r})\n"
    lines += "from autograder.nbgrader_hooks import configure\n"
    (root / "nbgrader_config.py").write_text(
        f"{lines}configure(get_config(), __file__, course_id='decoding')\n"
    )
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    classroom = read_classroom(root)
    classroom.secret()
    with Gradebook(classroom), classroom.only_writer():
        pass
    modes = {
        name: (root / name).stat().st_mode & 0o777
        for name in ("gradebook.db", ".autograder/lock", ".autograder/secret-seed")
    }
    assert modes["gradebook.db"] == (0o660 if group else 0o644)
    assert modes[".autograder/lock"] & 0o020 == group & 0o020
    # the seed is to be read, and never to be written anew
    assert modes[".autograder/secret-seed"] == 0o600 | group & 0o040
    assert classroom.config.CourseDirectory.get("groupshared", False) is bool(group)


# --- clusters ---


def options(command: str) -> set[str]:
    """The options of a subcommand of `autograder`."""
    known = get_command(app).commands[command]  # type: ignore[attr-defined]
    return {word for parameter in known.params for word in parameter.opts}


def test_the_slurm_script_parses_and_calls_commands_that_exist() -> None:
    path = DEPLOY / "slurm.sh"
    subprocess.run(["bash", "-n", str(path)], check=True)
    text = path.read_text(encoding="utf-8")
    (count,) = re.findall(r"--array=1-(\d+)\n", text)
    (shards,) = re.findall(r"SLURM_ARRAY_TASK_ID/(\d+)", text)
    assert count == shards
    assert {"--shard", "--workers"} <= options("grade")
    assert f"autograder merge shards/*-of-{shards}" in text


def test_the_slurm_script_runs_the_shard_of_its_array_task(tmp_path: Path) -> None:
    program = tmp_path / ".venv/bin/autograder"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    told = {"COURSE": str(tmp_path), "SLURM_ARRAY_TASK_ID": "3", "SLURM_CPUS_PER_TASK": "4"}
    done = subprocess.run(
        ["bash", str(DEPLOY / "slurm.sh")],
        env=os.environ | told,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "grade --shard 3/8 --workers 4\n"


def test_the_kubernetes_job_has_as_many_pods_as_shards_and_counts_from_one() -> None:
    job = yaml.safe_load((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    spec = job["spec"]
    assert (job["kind"], spec["completionMode"]) == ("Job", "Indexed")
    (container,) = spec["template"]["spec"]["containers"]
    (command,) = container["args"]
    for index in (0, spec["completions"] - 1):
        done = subprocess.run(
            ["sh", "-c", command.replace("exec autograder", "echo")],
            env=os.environ | {"JOB_COMPLETION_INDEX": str(index)},
            capture_output=True,
            text=True,
            check=True,
        )
        _, option, shard, *_ = done.stdout.split()
        assert option == "--shard"
        assert Shard.parse(shard) == Shard(index + 1, spec["completions"])
