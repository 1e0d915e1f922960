"""Run the checks of a lesson on the learner's functions, and say what came of it.

A module of checks makes a `Suite` and adds checks to it:

    suite = Suite("top_k")

    @suite.check("keeps_k", of="top_k_filter", points=1, claim="keeps the k highest logits")
    def keeps_k(student):
        logits = torch.tensor([[4.0, 3.0, 2.0, 1.0]])
        expect.kept(student.top_k_filter(logits, 2), [{0, 1}])

`student` is the learner's module, or what stands for it in the grader: a check neither knows nor
cares. One that takes a second argument, `draw`, gets random inputs: from a fixed seed here, from a
secret one in the grader. A check calls one function of its lesson, the one it names with `of`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ..given.faults import one_line
from ..given.lessons import COURSE_LIB, number
from .draw import Draw
from .expect import Mismatch
from .load import load_fresh
from .record import CHANGED, Call, Recorder, StudentRaised, Summary, describe, summarise

NOT_ATTEMPTED = "not attempted"
EARLIER_LESSON = "earlier lesson"
NOT_LOADED = "import failed"
VISIBLE_SEED = 20_260


class CheckFailed(Exception):
    """What a test cell raises when its points are not earned."""


@dataclass(frozen=True)
class Check:
    """One thing that a lesson's function must do."""

    id: str
    lesson: str
    of: str  # the function it is about
    points: float
    claim: str
    run: Callable[..., None]
    hidden: bool = False
    teaching: str = ""  # why it stays though other checks catch all that it catches
    false_alarm: float = 0.0  # how often it refuses a right answer by chance
    remember: Summary | None = None  # what of its answers tells mistakes apart, if not all
    exact: bool = False  # its inputs stand on a boundary: the grader may not move them by a hair

    @cached_property
    def draws(self) -> bool:
        """Whether its inputs are drawn."""
        return len(inspect.signature(self.run).parameters) > 1


@dataclass
class Result:
    """What came of one check."""

    id: str
    lesson: str
    of: str
    claim: str
    points: float
    passed: bool
    cause: str = ""  # "" if passed, else "wrong value", "raised", "not attempted", ...
    message: str = ""
    mistake: str | None = None  # the known mistake that answers alike
    hint: str | None = None
    seconds: float = 0.0
    file: str = ""
    saved: str = ""
    calls: list[Call] = field(default_factory=list, repr=False)

    @property
    def attempted(self) -> bool:
        return self.cause != NOT_ATTEMPTED


class Suite:
    """The checks of one lesson, in the order in which a learner meets them."""

    def __init__(self, lesson: str, *, hidden: bool = False) -> None:
        self.lesson, self.hidden = lesson, hidden
        self.checks: dict[str, Check] = {}

    def check(
        self,
        name: str,
        *,
        of: str,
        points: float,
        claim: str,
        teaching: str = "",
        false_alarm: float = 0.0,
        remember: Summary | None = None,
        exact: bool = False,
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Add the decorated function as the check `<lesson>-<name>`.

        Where right answers differ (draws, ties), `remember` reduces the answers of all calls to
        what the diagnosis should compare. The grader moves the numbers of printed examples by a
        hair, lest a table of them be an answer; `exact` forbids that where they stand on a
        boundary, such as a tie.
        """

        def add(run: Callable[..., None]) -> Callable[..., None]:
            identifier = f"{self.lesson}-{name}"
            if identifier in self.checks:
                raise ValueError(f"check {identifier} is there twice")
            self.checks[identifier] = Check(
                identifier,
                self.lesson,
                of,
                points,
                claim,
                run,
                self.hidden,
                teaching,
                false_alarm,
                remember,
                exact,
            )
            return run

        return add


def lessons() -> list[str]:
    """The lessons that have checks, in the order of the course."""
    # a new version that arrived beside the learner's file (top_k.new.py) is no lesson
    names = (path.stem for path in COURSE_LIB.glob("[a-z]*.py") if path.stem.isidentifier())
    return sorted((name for name in names if find_suite(name) is not None), key=number)


def find_suite(lesson: str) -> Suite | None:
    """The visible checks of a lesson, None where there is no such module of checks."""
    if (
        not (COURSE_LIB / f"{lesson}.py").is_file()
        or not (Path(__file__).parent / f"{lesson}.py").is_file()
    ):
        return None
    module = importlib.import_module(f"{__package__}.{lesson}")
    suite: Suite = module.suite
    return suite


# --- one check ---


def run_check(check: Check, student: Any, seed: int = VISIBLE_SEED) -> Result:
    """Run one check on a learner's functions (a module, or anything with its functions)."""
    recorder = Recorder(student)
    result = Result(check.id, check.lesson, check.of, check.claim, check.points, passed=False)
    # functions that use the global generator answer the same each time
    random_state, gradients = torch.get_rng_state(), torch.is_grad_enabled()
    # torch.manual_seed would seed each kind of device too, which takes longer than most checks
    torch.default_generator.manual_seed(seed)
    # the tensors of checks are small: threads would only wait for each other
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    changed = CHANGED.set({})
    began = time.perf_counter()
    try:
        check.run(recorder, Draw(seed)) if check.draws else check.run(recorder)
        result.passed = True
    except Mismatch as mismatch:
        result.cause = mismatch.cause
        result.message = f"{told(recorder._calls)}\n{mismatch}".strip()
    except StudentRaised as raised:
        result.cause, result.message = explain_exception(raised, check)
    except (AttributeError, TypeError, ValueError, RuntimeError, LookupError) as error:
        # the module has no such function, or the answer is nothing like what was asked for
        result.cause, result.message = explain_confusion(error, check, student, recorder._calls)
    finally:
        torch.set_rng_state(random_state)
        torch.set_grad_enabled(gradients)  # a function may have left them off
        torch.set_num_threads(threads)
        CHANGED.reset(changed)
    result.seconds = time.perf_counter() - began
    if check.remember is not None:
        summarise(recorder._calls, check.remember)
    result.calls = recorder._calls
    return result


def told(calls: list[Call]) -> str:
    """The last call and its answer, for a message."""
    if not calls:
        return ""
    return f"called {calls[-1].describe()}\nit returned {describe(calls[-1].returned)}"


def explain_exception(raised: StudentRaised, check: Check) -> tuple[str, str]:
    """Cause and message for a learner's function that raised."""
    original, call = raised.original, raised.call
    # an exception from the grader's sandbox tells its frames, since it was raised elsewhere
    frames = getattr(original, "student_frames", None) or traceback.extract_tb(
        original.__traceback__
    )
    own = [frame for frame in frames if Path(frame.filename).parent == COURSE_LIB]
    if isinstance(original, NotImplementedError):
        if own and Path(own[-1].filename).stem != check.lesson:
            lesson = Path(own[-1].filename).stem
            return EARLIER_LESSON, (
                f"`{own[-1].name}` (lesson {number(lesson)}) is not written yet: "
                f"open course_lib/{lesson}.py first"
            )
        # a stub says its name, which need not be that of the function the check called
        stub = re.search(r"([\w.]{1,100}) is yours to write", str(original)[:1000])
        missing = stub[1] if stub else call.function
        return (
            NOT_ATTEMPTED,
            f"open course_lib/{check.lesson}.py and write {missing}",
        )
    place = ""
    if own:
        place = f"\nat line {own[-1].lineno} of {Path(own[-1].filename).name}: {own[-1].line}"
    problem = f"{type(original).__name__}: {original}"
    expected = f"\n{raised.expected}" if raised.expected else ""
    return "raised", f"called {call.describe()}\nit raised {problem}{place}{expected}"


def explain_confusion(
    error: Exception, check: Check, student: Any, calls: list[Call]
) -> tuple[str, str]:
    """Cause and message when the check itself stumbles over what came back."""
    name = check.of.split(".")[0]
    if not hasattr(student, name):
        return "raised", f"{check.lesson}.py has no {name}: the name must stay as the stub has it"
    return "wrong type", f"{told(calls)}\nthat cannot be used here ({error})".strip()


# --- a lesson ---


def run_lesson(
    lesson: str, only: Iterable[str] | None = None, folder: Path = COURSE_LIB
) -> list[Result]:
    """Run the visible checks of a lesson on the learner's file as it is on disk.

    `only` names the checks to report; all of them are run where one fails, for the diagnosis.
    Raises KeyError for an unknown lesson or check.
    """
    suite = find_suite(lesson)
    if suite is None:
        raise KeyError(f"no lesson {lesson}; there are {', '.join(lessons())}")
    wanted = list(suite.checks) if only is None else list(only)
    unknown = [name for name in wanted if name not in suite.checks]
    if unknown:
        raise KeyError(f"no check {unknown[0]}; lesson {lesson} has {', '.join(suite.checks)}")
    student, results = run_on_file(lesson, [suite.checks[name] for name in wanted], folder)
    if student is not None and not all(result.passed for result in results):
        explain(suite, student, results, folder)
    return results


def run_on_file(
    lesson: str, checks: Sequence[Check], folder: Path = COURSE_LIB, seed: int = VISIBLE_SEED
) -> tuple[ModuleType | None, list[Result]]:
    """Load the learner's file as it is on disk and run `checks` on it.

    Gives the module too, or None where the file does not load.
    """
    file = folder / f"{lesson}.py"
    saved = time.strftime("%H:%M:%S", time.localtime(file.stat().st_mtime))
    student = None
    try:
        student = load_fresh(lesson, folder)
    except (Exception, SystemExit) as error:
        results = [not_loaded(check, error) for check in checks]
    else:
        results = [run_check(check, student, seed) for check in checks]
    for result in results:
        result.file, result.saved = f"course_lib/{file.name}", saved
    return student, results


def not_loaded(check: Check, error: BaseException) -> Result:
    """The result of a check whose file cannot even be imported."""
    return Result(
        check.id,
        check.lesson,
        check.of,
        check.claim,
        check.points,
        passed=False,
        cause=NOT_LOADED,
        message=f"the file does not load: {one_line(error)}{source_line(error)}",
    )


def source_line(error: BaseException) -> str:
    """The line that is no Python, for a SyntaxError, on a line of its own."""
    text = error.text if isinstance(error, SyntaxError) else None
    return f"\nthat line reads: {text.strip()}" if text and text.strip() else ""


def on_right_arguments(result: Result) -> bool:
    """Whether a check failed at a call that should give an answer, not at one that should raise."""
    return not (result.calls and "refusal" in (result.calls[-1].outcome or {}))


def explain(suite: Suite, student: Any, results: list[Result], folder: Path) -> None:
    """Find out why checks failed: another function that this one uses, or a known mistake."""
    from .diagnose import earlier_fault, used_names

    done = {result.id: result for result in results}
    # the diagnosis wants every call of the lesson, not only those of the check that was asked for
    # and what a learner prints in those would be taken for the output of this one
    with contextlib.redirect_stdout(io.StringIO()):
        everything = [
            done.get(name) or run_check(check, student) for name, check in suite.checks.items()
        ]
    give_hints(
        suite.lesson,
        results,
        everything,
        earlier=lambda function: earlier_fault(suite.lesson, function, folder),
        used=lambda function: used_names(suite.lesson, function, folder),
    )


def give_hints(
    lesson: str,
    results: list[Result],
    everything: list[Result],
    earlier: Callable[[str], str | None],
    used: Callable[[str], set[str]],
) -> None:
    """Add what is known of the reasons to the results that are not passed.

    `everything` holds the results of all visible checks, on the inputs that a notebook has;
    `earlier` tells of a fault in an earlier lesson, `used` which names a function uses.
    """
    from .diagnose import helper_fault, known_mistake

    # several checks of one function have one reason, which is looked for once
    earlier = cache(earlier)
    helper = cache(lambda function, called: helper_fault(function, called, everything, used))
    known = cache(lambda function: known_mistake(lesson, function, everything))
    careless = cache(lambda function: known_mistake(lesson, function, everything, careless=True))
    for result in results:
        if result.passed or result.cause in (NOT_ATTEMPTED, EARLIER_LESSON):
            continue
        called = frozenset(call.function for call in result.calls) or frozenset({result.of})
        if earlier(result.of) is not None:
            result.cause, result.hint = EARLIER_LESSON, earlier(result.of)
        elif (fault := helper(result.of, called)) is not None:
            result.hint = fault
        elif (mistake := known(result.of)) is not None or (
            on_right_arguments(result) and (mistake := careless(result.of)) is not None
        ):
            result.mistake, result.hint = mistake.name, mistake.hint
