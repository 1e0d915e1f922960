"""The command `course`: in process where that will do, as a process where it matters."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from course_lib.given import cli, pretrained, story
from solutions.repetition import apply_repetition_penalty
from solutions.sampling import next_token

from .conftest import ROOT, Workspace

PROMPT = "Once upon a time"


@pytest.fixture(autouse=True)
def keep_threads() -> Iterator[None]:
    """The command sets the number of threads of its process, which here is the tests' own."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def course(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def one_line(text: str) -> str:
    """The text, which must be one line and no traceback."""
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert text.startswith("course: ")
    return text.removeprefix("course: ").rstrip("\n")


# --- wrong use ---


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["generat"], "No such command 'generat'."),
        (["generate"], "Missing argument 'prompt' (see `course generate --help`)"),
        (["generate", PROMPT, "--temprature", "1"], "No such option: --temprature"),
        (["generate", PROMPT, "--top-k", "few"], "Invalid value for '--top-k'"),
        (["generate", ""], "the prompt is empty"),
        (["generate", PROMPT, "--seed", "-1"], "seed=-1 is not allowed"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(arguments: list[str], told: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "course_lib", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert told in one_line(result.stderr)


def test_help_is_answered_without_torch() -> None:
    source = (
        "import sys, course_lib.given.cli as cli\n"
        "try:\n    cli.main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    for arguments in ([], ["--help"], ["generate", "--help"]):
        result = subprocess.run(
            [sys.executable, "-c", source, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        assert "Usage: course" in result.stdout


# --- course generate, with the reference ---


def test_the_repository_tells_with_the_reference() -> None:
    code, out, err = course("generate", PROMPT, "--max-new-tokens", "8", "--seed", "1")
    assert (code, err) == (0, "")
    assert out.startswith(PROMPT)
    assert len(out) > len(PROMPT) + 8
    assert out.endswith("\n")


def test_the_same_seed_tells_the_same_story_with_and_without_cache() -> None:
    base = ("generate", PROMPT, "--max-new-tokens", "12", "--seed", "3")
    assert course(*base) == course(*base) == course(*base, "--no-cache")
    assert course(*base) != course(*base[:-1], "4")


def test_greedy_needs_no_seed() -> None:
    base = ("generate", PROMPT, "--max-new-tokens", "12", "--greedy")
    assert course(*base) == course(*base, "--seed", "5", "--temperature", "0.3")


def test_the_knobs_arrive() -> None:
    base = ("generate", PROMPT, "--max-new-tokens", "12", "--temperature", "5", "--top-p", "1")
    greedy = course("generate", PROMPT, "--max-new-tokens", "12", "--greedy")
    assert course(*base, "--seed", "1") != greedy
    assert course(*base, "--top-k", "1") == greedy
    assert course(*base[:-1], "0") == greedy
    penalty = ("--greedy", "--repetition-penalty", "1000")
    assert course("generate", PROMPT, "--max-new-tokens", "40", *penalty) != course(
        "generate", PROMPT, "--max-new-tokens", "40", "--greedy"
    )


def test_stats_are_told_apart_from_the_story() -> None:
    code, out, err = course("generate", PROMPT, "--max-new-tokens", "5", "--seed", "1", "--stats")
    assert code == 0
    assert "tokens" not in out
    assert re.fullmatch(
        r"5 tokens, \d+ tokens/s, 8 positions forwarded, finish reason length, seed 1\n", err
    )


def test_a_story_stops_at_its_end() -> None:
    code, out, err = course(
        "generate", "The end.", "--max-new-tokens", "400", "--greedy", "--stats"
    )
    assert code == 0
    assert "finish reason eos, greedy" in err
    assert "endoftext" not in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--temperature", "-1"), "temperature=-1.0 is not allowed"),
        (("--temperature", "nan"), "temperature=nan is not allowed"),
        (("--temperature", "inf"), "temperature=inf is not allowed"),
        (("--top-k", "-3"), "top_k=-3 is not allowed"),
        (("--top-p", "1.5"), "top_p=1.5 is not allowed"),
        (("--top-p", "nan"), "top_p=nan is not allowed"),
        (("--repetition-penalty", "0"), "repetition_penalty=0.0 is not allowed"),
        (("--repetition-penalty", "inf"), "repetition_penalty=inf is not allowed"),
        (("--max-new-tokens", "-1"), "max_new_tokens=-1 is not allowed"),
    ],
)
@pytest.mark.parametrize("whose", ["--mine", "--solution"])
def test_a_wrong_knob_is_told_before_anything_whoever_tells(
    arguments: tuple[str, ...], told: str, whose: str
) -> None:
    """--mine are bare stubs here: before lesson 8 is written a slip is told all the same."""
    code, out, err = course("generate", PROMPT, whose, *arguments)
    assert (code, out) == (2, "")
    assert told in one_line(err)


def test_the_knobs_have_the_ranges_of_the_functions() -> None:
    logits, ids = torch.zeros(1, 3), torch.tensor([[0]])
    functions: dict[str, Callable[[Any], object]] = {
        "temperature": lambda value: next_token(logits, temperature=value),
        "top_k": lambda value: next_token(logits, top_k=value),
        "top_p": lambda value: next_token(logits, top_p=value),
        "repetition_penalty": lambda value: apply_repetition_penalty(logits, ids, value),
    }
    nan, inf = float("nan"), float("inf")
    values = [-inf, -1.0, -0.1, 0.0, 0.1, 1.0, 1.1, 2.0, inf, nan]
    for name, function in functions.items():
        for value in [-1, 0, 1, 2] if name == "top_k" else values:
            refusals = []
            for refuse in (function, lambda value, name=name: story.refuse_knobs(**{name: value})):
                try:
                    refuse(value)
                    refusals.append(False)
                except ValueError:
                    refusals.append(True)
            assert refusals[0] == refusals[1], (name, value)


def test_a_missing_model_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("models")
    for module in ("minigpt", "tokenizer"):
        monkeypatch.setattr(
            f"course_lib.given.{module}.shipped_models", lambda: folder, raising=False
        )
    monkeypatch.setattr(pretrained, "shipped_models", lambda: folder)
    code, out, err = course("generate", PROMPT)
    assert (code, out) == (1, "")
    assert (
        "config.json is missing. In a workspace, `make study` in the course restores it"
        in one_line(err)
    )


def test_an_unwritten_function_points_to_its_file_and_to_the_solution() -> None:
    code, out, err = course("generate", PROMPT, "--mine")
    assert (code, out) == (1, "")
    assert one_line(err) == (
        "stream is not written yet: open course_lib/generate.py, or use --solution"
    )


# --- course generate, with the learner's own ---


@pytest.mark.slow
def test_a_workspace_tells_with_the_learners_own_functions(workspace: Workspace) -> None:
    # unwritten: this edition has no solutions to fall back on
    bare = workspace.course("generate", PROMPT)
    assert (bare.returncode, bare.stdout) == (1, "")
    assert one_line(bare.stderr) == "stream is not written yet: open course_lib/generate.py"
    asked = workspace.course("generate", PROMPT, "--solution")
    assert asked.returncode == 2
    assert "this edition has no solutions" in one_line(asked.stderr)

    # written, all but one
    workspace.solve("generate", "kv_cache", "sampling", "top_k", "top_p", "training")
    missing = workspace.course("generate", PROMPT)
    assert missing.returncode == 1
    assert one_line(missing.stderr) == (
        "apply_temperature is not written yet: open course_lib/temperature.py"
    )

    # whole: the same story as the reference tells
    workspace.solve()
    told = workspace.course("generate", PROMPT, "--seed", "1", "--max-new-tokens", "12")
    assert (told.returncode, told.stderr) == (0, "")
    reference = course("generate", PROMPT, "--seed", "1", "--max-new-tokens", "12", "--solution")
    assert told.stdout == reference[1]


@pytest.mark.slow
def test_a_crash_names_the_learners_line(workspace: Workspace) -> None:
    workspace.solve()
    begin = "    ### BEGIN SOLUTION\n    if not (math.isfinite(temperature)"
    workspace.edit("temperature", begin, begin.replace("    ###", "    logits[7.5]\n    ###"))
    result = workspace.course("generate", PROMPT)
    assert result.returncode == 1
    line = one_line(result.stderr)
    assert re.match(r"course_lib/temperature\.py, line \d+: (IndexError|TypeError): ", line)

    workspace.write("top_p", "def top_p_filter(logits, p):\n    return = logits\n")
    result = workspace.course("generate", PROMPT)
    assert result.returncode == 1
    assert one_line(result.stderr) == "course_lib/top_p.py, line 2: SyntaxError: invalid syntax"

    workspace.write("top_p", "def another(): ...\n")
    assert "cannot import name 'top_p_filter'" in one_line(
        workspace.course("generate", PROMPT).stderr
    )


def test_a_stream_that_returns_nothing_has_no_numbers(workspace: Workspace) -> None:
    workspace.write(
        "generate",
        "class Generation: ...\n"
        "def stream(model, tokenizer, prompt, max_new_tokens, **options):\n"
        "    yield prompt\n",
    )
    result = workspace.course("generate", PROMPT, "--stats")
    assert (result.returncode, result.stdout) == (0, f"{PROMPT}\n")
    assert "stream returns no Generation" in one_line(result.stderr)


# --- ends that are no errors ---


def a_long_story(workspace: Workspace) -> subprocess.Popen[str]:
    """A learner's stream that tells without end."""
    workspace.write(
        "generate",
        "import time\n"
        "class Generation: ...\n"
        "def stream(model, tokenizer, prompt, max_new_tokens, **options):\n"
        "    while True:\n"
        "        yield prompt\n"
        "        time.sleep(0.01)\n",
    )
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "course_lib", "generate", PROMPT],
        cwd=workspace.folder,
        env=workspace.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_reader_that_leaves_ends_it_quietly(workspace: Workspace) -> None:
    story = a_long_story(workspace)
    assert story.stdout is not None
    assert story.stderr is not None
    assert story.stdout.read(len(PROMPT)) == PROMPT
    story.stdout.close()
    assert story.wait(600) == 1
    assert story.stderr.read() == ""
    story.stderr.close()


def test_control_c_ends_it_quietly(workspace: Workspace) -> None:
    story = a_long_story(workspace)
    assert story.stdout is not None
    assert story.stdout.read(len(PROMPT)) == PROMPT
    story.send_signal(signal.SIGINT)
    out, err = story.communicate(timeout=600)
    assert (story.returncode, err) == (130, "")
    assert out.endswith("\n")


# --- course check ---


def test_check_of_a_stub_says_once_what_to_open() -> None:
    code, out, _ = course("check", "top_k")
    assert code == 1
    assert out.count("not attempted yet: open course_lib/top_k.py") == 1
    assert "saved" not in out
    assert re.search(r"Visible checks: 0 of \d+ passed, 0 of \d+ points\. Hidden", out)


def test_a_lesson_may_be_named_by_its_file() -> None:
    assert course("check", "course_lib/top_k.py") == course("check", "top_k")


def test_a_file_that_does_not_load_is_told_once(workspace: Workspace) -> None:
    workspace.write("top_k", "def top_k_filter(logits, k):\n    return (logits\n")
    done = workspace.course("check", "top_k", "top_p")
    assert done.returncode == 1
    assert done.stdout.count("does not load") == 1
    told = " ".join(done.stdout.split())
    assert "the file does not load: course_lib/top_k.py, line 2: SyntaxError: '(' was never" in told
    assert "that line reads: return (logits" in told
    assert done.stdout.count("saved") == 1


def test_failures_of_one_file_tell_once_when_it_was_saved(workspace: Workspace) -> None:
    workspace.write("top_k", "def top_k_filter(logits, k):\n    return logits * 1\n")
    out = workspace.course("check", "top_k").stdout
    assert out.count("✗ failed: top_k-") > 3
    assert len(re.findall(r"course_lib/top_k\.py, saved \d\d:\d\d:\d\d", out)) == 1


def test_check_of_an_unknown_lesson_names_those_there_are() -> None:
    code, out, err = course("check", "top_x")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"there is no lesson 'top_x': take one of .*top_k.*", one_line(err))


@pytest.mark.slow
def test_check_and_progress_in_a_workspace(workspace: Workspace) -> None:
    # right, and noisy: what a learner prints spoils no JSON
    workspace.solve("top_k")
    workspace.edit("top_k", "    ### BEGIN SOLUTION\n", '    print("here", k)\n')
    good = workspace.course("check", "3", "top_k", "--json")
    assert good.returncode == 0
    data = json.loads(good.stdout)
    assert data["passed"] is True
    assert data["points"] == data["possible"] > 0
    assert all(check["lesson"] == "top_k" and check["passed"] for check in data["checks"])
    ids = [check["id"] for check in data["checks"]]
    assert "top_k-keeps_k" in ids
    assert len(ids) == len(set(ids)), "a lesson asked for twice is checked once"
    assert "here" in good.stderr
    assert set(json.loads(workspace.record.read_text())["checks"]) == set(ids)
    progress = workspace.course("progress")
    assert progress.returncode == 0
    assert f"{data['points']:g} of {data['possible']:g}" in progress.stdout

    # wrong: the message stands under the table
    workspace.write("top_k", "def top_k_filter(logits, k):\n    return logits * [1]\n")
    bad = workspace.course("check", "top_k")
    assert bad.returncode == 1
    assert "failed: top_k-keeps_k" in bad.stdout
    assert "logits * [1]" in bad.stdout, "brackets are text, no colours"
    workspace.record.write_text("{")
    assert workspace.course("check", "top_k").returncode == 1
    assert "progress.json.damaged" in workspace.course("progress").stdout.replace("\n", "")


def test_progress_where_no_record_is_kept_says_where_to_go() -> None:
    code, out, err = course("progress")
    assert (code, out) == (1, "")
    assert "go to your workspace" in one_line(err)


# --- course lab ---


def test_lab_opens_the_first_lesson_from_any_folder_of_the_workspace(
    workspace: Workspace,
) -> None:
    for name in ("02_temperature.ipynb", "01_training.ipynb", "mine.ipynb"):
        (workspace.folder / name).write_text("{}", encoding="utf-8")
    # stands for JupyterLab: says how it was started
    fake = workspace.folder / "fake" / "jupyterlab"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("", encoding="utf-8")
    told = "import os, sys; print(os.getcwd(), *sys.argv[1:], os.environ['PYTHONPATH'], sep='|')"
    (fake / "__main__.py").write_text(told, encoding="utf-8")
    (workspace.folder / "trial").mkdir()
    path = os.pathsep.join([str(workspace.folder), str(fake.parent)])
    done = subprocess.run(
        [sys.executable, "-P", "-m", "course_lib", "lab", "--no-browser", "--port=1"],
        cwd=workspace.folder / "trial",
        env=workspace.environment | {"PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip("\n").split("|") == [
        *(str(workspace.folder), "--no-browser", "--port=1", "01_training.ipynb", path)
    ]


def test_lab_without_notebooks_says_where_to_go() -> None:
    code, out, err = course("lab")
    assert (code, out) == (1, "")
    assert "has no notebooks: go to your workspace" in one_line(err)
