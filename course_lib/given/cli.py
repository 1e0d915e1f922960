"""The learner's command line: `course lab`, `generate`, `check`, `progress`, `solution`, `adopt`.

What can go wrong is told in one line on the error stream, with what to do; exit code 2 is wrong
use, 1 is everything else that did not succeed. torch is imported inside of the commands only, so
that help and slips of the keyboard are answered at once.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from .lessons import find_lesson, heading

if TYPE_CHECKING:
    from ..checks.kit import Result

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# the parent of all that typer raises for wrong use; typer exports this one child of it
WrongUse: Any = typer.BadParameter.__mro__[1]


def main() -> NoReturn:
    """What `python -m course_lib` runs."""
    for stream in (sys.stdout, sys.stderr):
        # an old console may lack a sign of a story: rather a question mark than an error
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="course", standalone_mode=False)
    except WrongUse as error:
        where = error.ctx.command_path if error.ctx else "course"
        _tell(f"{error.format_message().rstrip('.')} (see `{where} --help`)")
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:
        # the reader has gone, as in `course generate ... | head`: what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code or 0)


@app.callback()
def course() -> None:
    """LLM decoding from scratch: tell stories, check your work, see how far you are."""


@app.command(context_settings={"ignore_unknown_options": True})
def lab(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="What `jupyter lab` is to be told besides.")
    ] = None,
) -> None:
    """Open JupyterLab in this folder, on the first lesson.

    Notebooks find course_lib from any folder in it, and its terminals find the command course.
    """
    from importlib.util import find_spec

    from .lessons import COURSE_LIB

    home = COURSE_LIB.parent
    notebooks = sorted(path.name for path in home.glob("[0-9][0-9]_*.ipynb"))
    if not notebooks:
        _fail(f"{home} has no notebooks: go to your workspace, which `make study` makes")
    if find_spec("jupyterlab") is None:
        _fail("JupyterLab is not installed here: run install.py, which brings it")
    # PATH and PYTHONPATH are as the launcher of this command has set them
    argv = [sys.executable, "-m", "jupyterlab", *(arguments or []), notebooks[0]]
    os.chdir(home)
    sys.stdout.flush()
    if sys.platform == "win32":
        # exec on Windows returns to the shell before the command has ended
        raise typer.Exit(subprocess.run(argv, check=False).returncode)
    os.execv(sys.executable, argv)


@app.command()
def generate(
    prompt: Annotated[str, typer.Argument(help="How the story begins.")],
    max_new_tokens: Annotated[int, typer.Option(help="Tokens to make, at most.")] = 200,
    temperature: Annotated[float, typer.Option(help="Below 1 careful, above 1 daring.")] = 0.8,
    top_k: Annotated[int | None, typer.Option(help="Choose among the k best tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Choose among this much probability.")] = 0.95,
    repetition_penalty: Annotated[float, typer.Option(help="Above 1: repeat less.")] = 1.0,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always take the best token.")] = False,
    seed: Annotated[int | None, typer.Option(help="The same seed, the same story.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Read all anew each step.")] = False,
    mine: Annotated[
        bool | None,
        typer.Option(
            "--mine/--solution",
            help="Whose functions; by default yours in a workspace, else the reference.",
        ),
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Tell numbers at the end.")] = False,
) -> None:
    """Tell a story that begins with PROMPT, as it comes out of the model."""
    prompt = os.fsencode(prompt).decode(errors="replace")
    if not prompt:
        _fail('the prompt is empty: give a beginning, as in course generate "Once upon a time"', 2)
    from . import story
    from .pretrained import ModelFileError

    knobs = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "repetition_penalty": repetition_penalty,
    }
    try:
        story.refuse_knobs(max_new_tokens=max_new_tokens, **knobs)
        mine = story.takes_mine(mine)
    except ValueError as error:
        _fail(str(error), 2)
    if seed is None:
        seed = secrets.randbelow(2**31)
    if not 0 <= seed < 2**63:
        _fail(f"seed={seed} is not allowed: it must be a whole number from 0 to 2**63 - 1", 2)
    told: list[str] = []
    try:
        result = story.tell(
            mine,
            prompt,
            max_new_tokens,
            lambda piece: _write(piece, told),
            **knobs,
            do_sample=not greedy,
            use_cache=not no_cache,
            generator=story.generator(seed),
        )
    except BrokenPipeError:
        raise
    except ModelFileError as error:
        _fail(str(error))
    except Exception as error:  # a learner's function may raise anything
        _end_line(told)
        _fail(story.explain(error, mine), 2 if story.is_wrong_argument(error) else 1)
    except KeyboardInterrupt:
        _end_line(told)
        raise
    _end_line(told)
    if stats and result is None:
        _tell("no numbers: stream returns no Generation at its end")
    elif stats:
        drawn = "greedy" if greedy else f"seed {seed}"
        print(
            f"{result.new_tokens[0]} tokens, {result.tokens_per_second:.0f} tokens/s, "
            f"{result.positions_forwarded} positions forwarded, "
            f"finish reason {result.finish_reason[0]}, {drawn}",
            file=sys.stderr,
        )


@app.command()
def check(
    lesson: Annotated[
        list[str] | None,
        typer.Argument(help="Lessons such as top_k, 3 or top_k.py; by default all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="The checks that a grader has too; not in a class's edition."
        ),
    ] = False,
) -> None:
    """Run the visible checks on your functions, as they are saved now."""
    from ..checks import kit
    from . import progress

    known = kit.lessons()
    try:
        # each once, in the order asked for
        names = list(dict.fromkeys(find_lesson(word, known) for word in lesson or known))
    except ValueError as error:
        _fail(str(error), 2)
    from .thorough import find_package, run_thorough

    package = find_package() if thorough else None
    if thorough and package is None:
        _fail("this edition has no thorough checks: your instructor's grader runs them", 2)
    results: list[Result] = []
    more: list[Result] = []
    # inputs nobody has seen; the message of a failed check shows the call, to be made again
    seed = secrets.randbelow(2**31)
    for name in names:
        # what a learner's code prints must not end up in the table, or in the JSON
        with contextlib.redirect_stdout(sys.stderr):
            results += kit.run_lesson(name)
            if package is not None:
                more += run_thorough(package, name, seed)
    # the record is of the visible checks
    progress.record(results)
    results += more
    if as_json:
        print(json.dumps(_as_data(results), indent=2))
    else:
        _show_checks(results, thorough)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


@app.command("progress")
def show_progress() -> None:
    """Show how far you are: points, and mistakes met and mended."""
    from rich.console import Console
    from rich.table import Table

    from . import progress

    if progress.workspace() is None:
        _fail(f"{progress.HOME} keeps no record: go to your workspace, which `make study` makes")
    summary = progress.summary()
    table = Table("lesson", "points", "mistakes met", "mended")
    table.columns[1].justify = table.columns[2].justify = table.columns[3].justify = "right"
    for done in summary.lessons:
        table.add_row(
            heading(done.lesson),
            f"{done.points:g} of {done.possible:g}" if done.attempted else "not begun",
            str(len(done.mended) + len(done.open)),
            str(len(done.mended)),
        )
    console = Console()
    console.print(table)
    console.print(
        f"{summary.points:g} of {summary.possible:g} points of the visible checks.", highlight=False
    )
    for path in progress.damaged_records():
        console.print(f"A damaged record was kept aside: {path}", markup=False, highlight=False)


@app.command()
def solution(
    lesson: Annotated[str, typer.Argument(help="A lesson such as top_k or 3.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
) -> None:
    """Show how the course wrote a lesson, after asking whether you mean it."""
    from . import reference

    try:
        found = reference.find_reference(lesson)
    except ValueError as error:
        _fail(str(error), 2)
    except reference.NoReference as error:
        _fail(str(error))
    if not yes:
        # on the error stream, so that the solution alone can go into a file
        question = f"Show the solution of {found.lesson}? You can't find it by yourself after that."
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            _fail("nothing was shown")
    print(found.module, end="")


@app.command()
def adopt(
    lesson: Annotated[
        str, typer.Argument(help="A lesson such as top_k or 3, or the file that unlocks one.")
    ],
) -> None:
    """Put the solution of a lesson in place of your file, which is kept beside it."""
    from pathlib import Path

    from . import reference

    try:
        if lesson.endswith(".json"):
            found = reference.read_handout(Path(lesson))
        else:
            found = reference.find_reference(lesson)
        done = reference.adopt(found)
    except ValueError as error:
        _fail(str(error), 2)
    except reference.NoReference as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}: mend that and try again")
    if not done.changed:
        print(f"{done.file} is the course's already")
        return
    print(f"{done.file} is the course's now")
    if done.kept is not None:
        print(f"yours is kept in {done.kept}")


def _show_checks(results: list[Result], thorough: bool) -> None:
    """A table of all checks, under it what the failed ones say, and the sum."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..checks.show import state

    styles = {"passed": "green", "failed": "red", "not attempted": "dim"}
    table = Table("lesson", "check", "points", "result")
    table.columns[2].justify = "right"
    for result in results:
        mark, word = state(result)
        table.add_row(
            result.lesson,
            Text(result.claim),
            f"{result.points:g}",
            Text(f"{mark} {word}", style=styles[word]),
        )
    console = Console()
    console.print(table)
    for name in dict.fromkeys(result.lesson for result in results):
        for text in _told_of([result for result in results if result.lesson == name]):
            console.print(Text(text), soft_wrap=True)
    passed = [result for result in results if result.passed]
    console.print(
        f"{'All' if thorough else 'Visible'} checks: {len(passed)} of {len(results)} passed, "
        f"{sum(result.points for result in passed):g} of "
        f"{sum(result.points for result in results):g} points."
        f"{'' if thorough else ' Hidden checks are not run here.'}",
        highlight=False,
    )


def _told_of(results: list[Result]) -> list[str]:
    """What is to be said of one lesson: its failures, and once each what several have in common."""
    from ..checks.kit import NOT_LOADED
    from ..checks.show import as_text, file_line

    failed = [result for result in results if result.attempted and not result.passed]
    if failed and failed[0].cause == NOT_LOADED:
        # then no check of the lesson ran, and all say the same
        texts = [f"{failed[0].lesson}: {failed[0].message}"]
    else:
        texts = [f"{as_text(result)}\n" for result in failed]
    if failed:
        texts.append(f"{file_line(failed[0])}\n")
    waiting = dict.fromkeys(result.message for result in results if not result.attempted)
    return texts + [f"not attempted yet: {message}" for message in waiting]


def _as_data(results: list[Result]) -> dict[str, Any]:
    """The results as JSON data: a list of checks and whether all passed."""
    return {
        "passed": all(result.passed for result in results),
        "points": sum(result.points for result in results if result.passed),
        "possible": sum(result.points for result in results),
        "checks": [
            {
                "id": result.id,
                "lesson": result.lesson,
                "claim": result.claim,
                "points": result.points,
                "passed": result.passed,
                "attempted": result.attempted,
                "cause": result.cause,
                "message": result.message,
                "mistake": result.mistake,
                "hint": result.hint,
                "seconds": result.seconds,
            }
            for result in results
        ],
    }


def _write(piece: str, told: list[str]) -> None:
    # noted first: Ctrl-C may come as soon as the piece is out
    told.append(piece)
    sys.stdout.write(piece)
    sys.stdout.flush()


def _end_line(told: list[str]) -> None:
    """Let what comes next begin on a line of its own."""
    if told and not told[-1].endswith("\n"):
        print()


def _tell(line: str) -> None:
    print(f"course: {' '.join(line.split())}", file=sys.stderr)


def _fail(line: str, code: int = 1) -> NoReturn:
    _tell(line)
    raise typer.Exit(code)
