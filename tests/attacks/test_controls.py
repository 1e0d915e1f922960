"""The same attacks against judges that were weakened on purpose: there they succeed."""

import json
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from autograder.authoring.proof import hidden_suite
from autograder.authoring.sources import stub_source
from autograder.bank import SOLUTIONS
from autograder.judge.judging import judge_files
from autograder.judge.proxy import Student
from autograder.judge.sandbox import WarmParent
from autograder.judge.sandbox.children import Child
from autograder.judge.sandbox.control import Gone
from autograder.judge.wire import Channel, WireError
from course_lib.checks.kit import run_check
from course_lib.checks.load import load_source

from . import weak
from .forms import FORMS, Form, Scene
from .forms.base import Files
from .scenes import scene_in, visitors

SECRET = b"of a class that is not there....."


def form_of(attack: int, name: str) -> Form:
    (found,) = [form for form in FORMS if (form.attack, form.name) == (attack, name)]
    return found


def files_of(form: Form, scene: Scene) -> Files:
    files = form.make(scene)
    assert isinstance(files, dict)
    return files


def test_a_judge_who_tells_all_of_a_message_tells_hidden_inputs(scene: Scene) -> None:
    form = form_of(12, "in_the_message")
    student = load_source("top_k", SOLUTIONS, files_of(form, scene)["top_k"].decode())
    for check in hidden_suite("top_k").checks.values():
        assert "LEAK" in run_check(check, student).message


def controlled(control: str) -> list[Form]:
    return [form for form in FORMS if form.control == control]


@pytest.mark.parametrize("form", controlled("in process"), ids=lambda form: form.name)
def test_a_judge_who_imports_the_file_is_deceived(
    form: Form, scene: Scene, unsandboxed: WarmParent
) -> None:
    files = files_of(form, scene)
    assert weak.in_process(files, form.lesson, unsandboxed) > 0.1


def test_an_untouched_stub_deceives_nobody(unsandboxed: WarmParent) -> None:
    stub = {"top_k": stub_source("top_k").encode()}
    assert weak.in_process(stub, "top_k", unsandboxed) == 0
    assert not weak.believes_the_exit_code(stub, "top_k", unsandboxed)
    assert weak.believes_what_is_printed(stub, "top_k", unsandboxed) == 0


@pytest.mark.parametrize("form", controlled("exit code"), ids=lambda form: form.name)
def test_a_judge_who_believes_exit_codes_is_deceived(
    form: Form, scene: Scene, unsandboxed: WarmParent
) -> None:
    files = files_of(form, scene)
    assert weak.believes_the_exit_code(files, form.lesson, unsandboxed)


@pytest.mark.parametrize("form", controlled("printed"), ids=lambda form: form.name)
def test_a_judge_who_believes_what_is_printed_is_deceived(
    form: Form, scene: Scene, unsandboxed: WarmParent
) -> None:
    files = files_of(form, scene)
    assert weak.believes_what_is_printed(files, form.lesson, unsandboxed) == 15


# --- the wire ---


def answering(form: Form, scene: Scene, parent: WarmParent) -> Child:
    """A child that has loaded the file and was asked to call its function."""
    child = parent.spawn()
    student = Student(Channel(child.connection), {})
    student.load(form.lesson, files_of(form, scene))
    body = json.dumps({"op": "call", "on": "top_k_filter", "name": None, "value": None}).encode()
    child.connection.sendall(len(body).to_bytes(4) + bytes(4) + body)
    return child


def test_a_driver_that_unpickles_replies_runs_them(scene: Scene, unsandboxed: WarmParent) -> None:
    child = answering(form_of(7, "as_a_frame"), scene, unsandboxed)
    try:
        weak.serves_pickles(child.connection)
    finally:
        child.stop()
    assert (scene.folder / "pickled").exists()
    (scene.folder / "pickled").unlink()


def test_a_driver_that_believes_frames_gives_their_score(
    scene: Scene, unsandboxed: WarmParent
) -> None:
    child = answering(form_of(6, "verdicts_on_the_wire"), scene, unsandboxed)
    try:
        assert weak.takes_any_frame_for_a_verdict(child.connection) == 15
    finally:
        child.stop()


# --- the sandbox ---


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Scene, socket.socket]]:
    with scene_in(tmp_path) as found:
        yield found


def run(attack: int, name: str, scene: Scene, parent: WarmParent) -> str:
    form = form_of(attack, name)
    return json.dumps(judge_files(files_of(form, scene), [form.lesson], parent, SECRET).as_data())


def test_without_a_sandbox_the_gradebook_is_edited(
    own: tuple[Scene, socket.socket], unsandboxed: WarmParent
) -> None:
    scene, _ = own
    run(5, "by_sql", scene, unsandboxed)
    with sqlite3.connect(scene.gradebook) as book:
        assert {score for (score,) in book.execute("SELECT auto_score FROM grade")} == {198}
    book.close()


def test_without_a_sandbox_files_are_read_and_told(
    own: tuple[Scene, socket.socket], unsandboxed: WarmParent
) -> None:
    scene, _ = own
    assert scene.word in run(25, "by_path", scene, unsandboxed)


def test_without_a_sandbox_the_solution_is_read_and_earns_its_points(
    own: tuple[Scene, socket.socket], unsandboxed: WarmParent
) -> None:
    told = json.loads(run(13, "by_path", own[0], unsandboxed))
    assert told["lessons"]["top_k"]["score"] == told["lessons"]["top_k"]["max"]


def test_without_a_sandbox_inputs_leave_the_machine(
    own: tuple[Scene, socket.socket], unsandboxed: WarmParent
) -> None:
    scene, listener = own
    run(11, "a_connection", scene, unsandboxed)
    assert visitors(listener) > 0


def test_without_a_sandbox_a_fork_lives(
    own: tuple[Scene, socket.socket], unsandboxed: WarmParent
) -> None:
    scene, _ = own
    run(9, "a_fork", scene, unsandboxed)
    assert (scene.folder / "forked").exists()


def test_without_a_sandbox_a_process_is_left_behind(
    own: tuple[Scene, socket.socket], unsandboxed: WarmParent
) -> None:
    scene, _ = own
    run(21, "a_daemon", scene, unsandboxed)
    left = scene.folder / "daemon"
    for _ in range(200):
        if left.exists() and left.read_text():
            break
        time.sleep(0.05)
    number = left.read_text()
    assert Path(f"/proc/{number}").exists()
    subprocess.run(["kill", "-9", number], check=True)


def test_without_a_sandbox_the_warm_parent_can_be_killed(scene: Scene) -> None:
    with WarmParent(sandboxed=False) as parent:
        process, child = parent._process, parent.spawn()
        student = Student(Channel(child.connection), {})
        with suppress(WireError):
            student.load("top_k", files_of(form_of(8, "the_parent_is_killed"), scene))
        with pytest.raises(Gone):
            process.ask({"op": "stop", "pid": 1})
