"""Judge a submission: all checks of a lesson, on functions that stay in the sandbox.

The driver never imports what a learner wrote. Checks run here, their inputs are drawn from the
secret, and each answer comes over the wire as plain data.
"""

from __future__ import annotations

import ast
import hmac
import importlib
import random
import signal
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from course_lib.checks.diagnose import reached
from course_lib.checks.kit import (
    VISIBLE_SEED,
    Check,
    Result,
    Suite,
    find_suite,
    give_hints,
    lessons,
    run_check,
)
from course_lib.given.lessons import number

from .evidence import (
    AS_DISTRIBUTIONS,
    MOST_CALLS,
    Found,
    Sides,
    distributions,
    try_call,
    try_session,
)
from .evidence import verdict as is_table
from .points import Babble, Groups, only_with_answers, root, shown_by_drawn_inputs
from .proxy import Student
from .sandbox import Child, Ended, SandboxError, WarmParent
from .twins import AskedCall, Session
from .verdict import CheckVerdict, LessonVerdict, Verdict
from .wire import Channel, Closed, TooLate, WireError

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"
SECONDS = 10.0  # that one check may take; the reference needs a few thousandths
GRACE = 2.0  # seconds more for what the driver makes of the last answer
LONGEST_LESSON = 150.0  # seconds for all checks of a lesson: many slow ones are ruinous too
MOST_RUINOUS = 3  # after so many checks that end in RUINOUS a function is not called again
RUINOUS = ("timed out", "out of memory")
OUT_OF_CPU_TIME = getattr(signal, "SIGXCPU", None)
# who does not come to an end where nothing is printed has no answer there
NO_ANSWER = Found(wrong=1, wrong_by_insight=1)
MOST_LOST = 3  # children that may be lost with their warm parent
LONGEST_MESSAGE = 3_000
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory")


class Lost(Exception):
    """A child went with its warm parent."""


def checks_of(lesson: str) -> Groups:
    """Raises KeyError for a lesson that has none."""
    shown = find_suite(lesson)
    if shown is None:
        raise KeyError(f"lesson {lesson} has no checks")
    secret: Suite = importlib.import_module(f"autograder.hidden.{lesson}").suite
    return Groups(list(shown.checks.values()), list(secret.checks.values()))


def judge_files(
    files: Mapping[str, bytes],
    lessons: Sequence[str],
    parent: WarmParent,
    secret: bytes,
    dependencies: str = "reference",
) -> Verdict:
    """The verdict on what a learner handed in: `files` maps a lesson to its file's bytes.

    What a lesson needs of others is the reference's, or the learner's own with
    `dependencies="own"`.
    """
    judged, notes = {}, []
    for lesson in lessons:
        trial = Trial(lesson, files, parent, secret, dependencies)
        judged[lesson] = trial.verdict()
        notes += [f"{lesson}: {note}" for note in trial.notes]
    return Verdict(judged, parent.level, dependencies, notes)


class Trial:
    """The checks of one lesson on one submission."""

    disguises = True  # printed examples are moved by a hair, where the check allows it

    def __init__(
        self,
        lesson: str,
        files: Mapping[str, bytes],
        parent: WarmParent,
        secret: bytes,
        dependencies: str,
    ) -> None:
        self.lesson, self.files, self.parent, self.secret = lesson, dict(files), parent, secret
        self.checks = checks_of(lesson)
        self.served = served_modules(lesson) if dependencies == "reference" else {}
        self.notes: list[str] = []
        self.ruined: dict[str, list[str]] = {}  # function -> causes of checks that cost much
        self.uses: dict[str, set[str]] = {}
        self.disguised: set[str] = set()  # checks whose examples were moved by a hair
        self.shown: set[str] = set()  # functions that give right answers, examples aside
        self.twins: dict[str, dict[str, list[Found]]] = {}  # what is known of each function
        self.tables: set[str] = set()  # checks whose printed examples alone are right
        self.ends = time.monotonic() + LONGEST_LESSON
        self.asked: dict[str, list[AskedCall]] = {}  # the calls that printed examples make
        self.sessions: dict[str, list[tuple[str, Session]]] = {}  # and the lives of their objects

    def verdict(self) -> LessonVerdict:
        if self.lesson not in self.files:
            message = f"course_lib/{self.lesson}.py was not handed in"
            return self.refuse_all("missing file", message)
        # two children: what the visible checks were asked is not known to those that run the hidden
        # ones; the order is secret, so that no check knows what was asked before it
        results = self.run(self.checks.visible) | self.run(self.checks.hidden)
        visible = [results[check.id] for check in self.checks.visible]
        if not all(result.passed for result in visible):
            self.explain(visible)
        verdicts = [
            as_verdict(check, results[check.id])
            for check in (*self.checks.visible, *self.checks.hidden)
        ]
        self.shown = shown_by_drawn_inputs(self.checks, verdicts)
        for function in {root(verdict) for verdict in verdicts if verdict.passed} - self.shown:
            if self.is_shown_by_examples(function, verdicts):
                self.shown.add(function)
        self.tables = self.find_tables(verdicts)
        counted = only_with_answers(self.checks, verdicts, self.shown, self.tables)
        return LessonVerdict(self.lesson, counted)

    def run(self, checks: Sequence[Check], as_in_notebook: bool = False) -> dict[str, Result]:
        """The results of some checks, on inputs that are secret or those of the notebook."""
        waiting = list(checks)
        # what a notebook's inputs give is told, and may tell in which order they came
        if not as_in_notebook:
            random.Random(self.seed("order")).shuffle(waiting)
        results: dict[str, Result] = {}
        lost = 0
        while waiting:
            try:
                with Seat(self.parent, self.served) as seat:
                    failure = self.load(seat)
                    if failure is not None:
                        return results | {c.id: self.failed(c, *failure) for c in waiting}
                    while waiting and not seat.is_over:
                        check = waiting[-1]
                        results[check.id] = self.run_one(check, seat, as_in_notebook)
                        waiting.pop()
            except Lost:
                # nobody's fault: the machine ended the warm parent, and the check is run again
                lost = one_more(lost)
        return results

    def load(self, seat: Seat) -> tuple[str, str] | None:
        """Have the child import the file; cause and message if that fails."""
        try:
            self.allow(seat)
            seat.student.load(self.lesson, self.files)
        except WireError as error:
            cause = self.end(seat, error)
            return cause, f"while {self.lesson}.py was imported: {EXPLAINED[cause]}"
        except Exception as error:  # whatever the learner's file raised
            return "import failed", told_import(error, self.lesson)
        self.uses = seat.student.uses
        return None

    def run_one(self, check: Check, seat: Seat, as_in_notebook: bool) -> Result:
        root = check.of.split(".")[0]
        ruined = self.ruined.setdefault(root, [])
        if len(ruined) >= MOST_RUINOUS:
            return self.failed(
                check, ruined[-1], f"{root} was not called again: {EXPLAINED[ruined[-1]]}"
            )
        result = self.try_one(check, seat, as_in_notebook)
        if result.cause in RUINOUS:
            ruined.append(result.cause)
        return result

    def try_one(self, check: Check, seat: Seat, as_in_notebook: bool) -> Result:
        broken: Exception | None = None
        self.allow(seat)
        try:
            plain = as_in_notebook or check.exact or check.draws or not self.disguises
            noise = None if plain else self.seed(check.id, "noise")
            seat.student.begin(self.seed(check.id, "child"), noise)
            module = seat.student.module()
            seed = VISIBLE_SEED if as_in_notebook else self.seed(check.id)
            result = run_check(check, module, seed)
        except Exception as error:  # what the answer did to the check, where run_check looks not
            broken = error
            result = self.failed(check, "wrong type", "what came back cannot be used")
        finally:
            seat.student.modes.reset()
        if seat.student.is_disguised:
            self.disguised.add(check.id)
        if not as_in_notebook and not check.draws and not check.hidden:
            self.asked[check.id] = seat.student.asked
            self.sessions[check.id] = seat.student.sessions
        fault = seat.student.fault or (broken if isinstance(broken, WireError) else None)
        if fault is None and self.is_late(seat):
            fault = TooLate("the check took too long over what it said")
        if fault is not None:
            cause = self.end(seat, fault)
            # what the grader drew stays secret: it may draw the same again
            told = bool(result.calls) and (as_in_notebook or not check.draws)
            calls = f"called {result.calls[-1].describe()}\n" if told else ""
            result = self.failed(check, cause, f"{calls}{EXPLAINED[cause]}", result)
        # outcomes are small, and enough for the diagnosis; answers may be as large as a frame
        for call in result.calls:
            call.arguments, call.returned, call.raised = [], None, None
        if result.cause == "raised" and is_out_of_memory(result.message):
            result.cause = "out of memory"
        return result

    def end(self, seat: Seat, error: WireError) -> str:
        """Why the child is of no more use."""
        ended = seat.stop()
        if isinstance(error, TooLate) or ended.signal == OUT_OF_CPU_TIME:
            return "timed out"
        if ended.exit_code is None and ended.signal is None:
            raise Lost
        if isinstance(error, Closed):
            return "out of memory" if ended.out_of_memory else "ended early"
        self.notes.append(f"the child broke the protocol: {error}")
        return "broken protocol"

    def explain(self, visible: list[Result]) -> None:
        """Messages and hints, as a notebook gives them: from the calls on the notebook's inputs.

        A child of its own makes them. The one that was judged has seen what the grader drew, and
        may put it into what it says later, of whatever input.
        """
        failing = {result.of.split(".")[0] for result in visible if not result.passed}
        causes = {result.id: result.cause for result in visible}
        asked = [
            check
            for check in self.checks.visible
            if check.of.split(".")[0] in failing and causes[check.id] not in RUINOUS
        ]
        again = self.run(asked, as_in_notebook=True) if asked else {}
        for result in visible:
            if result.id in again and not result.passed:
                known = again[result.id].message
                result.message = known or "right on the notebook's inputs, wrong on others"
        everything = [again.get(result.id, result) for result in visible]
        give_hints(
            self.lesson,
            visible,
            everything,
            earlier=lambda function: None,
            used=lambda function: reached(function, self.uses),
        )

    def is_shown_by_examples(self, function: str, verdicts: list[CheckVerdict]) -> bool:
        """Whether a function is right on more than what is printed in the visible checks: on twins
        of their calls or, where these have none, on numbers that were moved by a hair.
        """
        found = [one for check in self.try_twins(function).values() for one in check]
        right = sum(one.right_by_insight for one in found)
        wrong = sum(one.wrong_by_insight for one in found)
        if right or wrong:
            # of an example of three numbers the nearest may be the right one, by luck
            is_shown = 4 * right >= wrong
            if not is_shown:
                self.notes.append(f"{function} is right on printed examples at most")
            return is_shown
        moved = self.disguised - self.checks.manners
        return any(v.passed and v.id in moved and root(v) == function for v in verdicts)

    def find_tables(self, verdicts: list[CheckVerdict]) -> set[str]:
        """The passed checks with a printed example that is right while most of its twins are not.

        Looked at are functions that were wrong on a drawn input: a right one is no table.
        """
        drawn = self.checks.secret
        wrong = {root(v) for v in verdicts if v.id in drawn and not v.passed} & self.shown
        passed = {v.id for v in verdicts if v.passed}
        return {
            check
            for function in sorted(wrong)
            for check, found in self.try_twins(function).items()
            if check in passed and is_table(found, manners=check in self.checks.manners)
        }

    def try_twins(self, function: str) -> dict[str, list[Found]]:
        """What came of the twins of a function's printed calls, check by check."""
        if function not in self.twins:
            self.twins[function] = self.ask_twins(function)
        return self.twins[function]

    def ask_twins(self, function: str) -> dict[str, list[Found]]:
        waiting: list[tuple[Check, AskedCall | Session]] = []
        for check in self.checks.visible:
            asked: list[AskedCall | Session] = []
            asked += [call for call in self.asked.get(check.id, []) if call[0] == function]
            asked += [life for name, life in self.sessions.get(check.id, []) if name == function]
            waiting += [(check, one) for one in asked[:MOST_CALLS]]
        found: dict[str, list[Found]] = {}
        ended = lost = 0
        while waiting and ended < MOST_RUINOUS:
            try:
                with Seat(self.parent, self.served) as seat:
                    if self.load(seat) is not None:
                        break
                    while waiting and not seat.is_over:
                        check, example = waiting[0]
                        try:
                            one = self.ask_twin(function, check, example, seat)
                        except WireError as error:
                            self.end(seat, error)
                            one, ended = NO_ANSWER, ended + 1
                        except AttributeError:  # a module may lack in one child what it has told
                            one = NO_ANSWER
                        found.setdefault(check.id, []).append(one)
                        waiting.pop(0)
            except Lost:  # nobody's fault: it is asked again
                lost += 1
                if lost == MOST_LOST:
                    raise SandboxError(
                        f"the sandbox ended {lost} times while it was in use"
                    ) from None
        for check, _ in waiting:
            found.setdefault(check.id, []).append(NO_ANSWER)
        return found

    def ask_twin(
        self, function: str, check: Check, asked: AskedCall | Session, seat: Seat
    ) -> Found:
        reference = importlib.import_module(f"solutions.{self.lesson}")
        self.allow(seat)
        seat.student.begin(self.seed(check.id, "child"))
        sides = Sides(
            getattr(seat.student.module(), function),
            getattr(reference, function),
            getattr(Babble(), function),
            distributions if function in AS_DISTRIBUTIONS else check.remember,
            getattr(reference, "KVCache", None),
        )

        def seeds(purpose: str) -> int:
            return self.seed(check.id, purpose)

        try:
            if isinstance(asked, list):
                found = try_session(asked, sides, seeds)
            else:
                found = try_call(asked, sides, seeds)
        finally:
            seat.student.modes.reset()
        if self.is_late(seat):
            raise TooLate("twins took too long")
        if seat.student.fault is not None:
            raise seat.student.fault
        return found

    def allow(self, seat: Seat) -> None:
        """Give the child the time of one check."""
        seconds = min(SECONDS, self.ends - time.monotonic())
        seat.channel.deadline = time.monotonic() + seconds

    def is_late(self, seat: Seat) -> bool:
        """Whether its time is over by more than what the driver may make of a last answer."""
        return time.monotonic() > (seat.channel.deadline or 0.0) + GRACE

    def seed(self, *purpose: str) -> int:
        """A number below 2^48 that nobody knows without the secret."""
        words = "/".join((self.lesson, *purpose)).encode()
        return int.from_bytes(hmac.digest(self.secret, words, "sha256")[:6], "big")

    def failed(
        self, check: Check, cause: str, message: str, result: Result | None = None
    ) -> Result:
        found = Result(
            check.id, check.lesson, check.of, check.claim, check.points, False, cause, message
        )
        found.calls = result.calls if result else []
        return found

    def refuse_all(self, cause: str, message: str) -> LessonVerdict:
        checks = (*self.checks.visible, *self.checks.hidden)
        results = [self.failed(check, cause, message) for check in checks]
        return LessonVerdict(
            self.lesson, [as_verdict(c, r) for c, r in zip(checks, results, strict=True)]
        )


def one_more(lost: int) -> int:
    """One more child went with its warm parent. Raises SandboxError where that is no accident."""
    if lost + 1 == MOST_LOST:
        raise SandboxError(f"the sandbox ended {MOST_LOST} times while it was in use") from None
    return lost + 1


class Seat:
    """A child of the sandbox, and the conversation with it."""

    def __init__(self, parent: WarmParent, served: dict[str, ModuleType]) -> None:
        self.child: Child = parent.spawn()
        self.channel = Channel(self.child.connection)
        self.student = Student(self.channel, served)
        self.is_over = False

    def __enter__(self) -> Seat:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> Ended:
        self.is_over = True
        return self.child.stop()


def as_verdict(check: Check, result: Result) -> CheckVerdict:
    """A result as it goes into gradebook and feedback; of a hidden check only the property."""
    shown = EXPLAINED.get(result.cause, "") if check.hidden else result.message
    return CheckVerdict(
        id=check.id,
        hidden=check.hidden,
        of=check.of,
        claim=check.claim,
        points=check.points,
        earned=check.points if result.passed else 0.0,
        cause="" if result.passed else result.cause,
        message=shortened(shown),
        hint="" if check.hidden else result.hint or "",
        mistake="" if check.hidden else result.mistake or "",
    )


def shortened(text: str) -> str:
    if len(text) <= LONGEST_MESSAGE:
        return text
    return f"{text[:LONGEST_MESSAGE]} ... ({len(text)} characters)"


EXPLAINED = {
    "timed out": f"it took longer than {SECONDS:g} s, where the reference takes a moment",
    "out of memory": "it took more memory than one submission may have",
    "ended early": "it ended the whole process, as os._exit does, or crashed it",
    "broken protocol": "it answered with something that is no answer",
    "import failed": "the file does not load",
}


def told_import(error: Exception, lesson: str) -> str:
    """Why a file does not load, with the learner's own line."""
    frames = getattr(error, "student_frames", [])
    place = f"line {frames[-1].lineno} of {Path(frames[-1].filename).name}" if frames else ""
    line = f": {frames[-1].line.strip()}" if frames and frames[-1].line else ""
    said = f"{type(error).__name__}: {error}"
    return f"{lesson}.py does not load: {said}" + (f"\nat {place}{line}" if place else "")


def is_out_of_memory(message: str) -> bool:
    return "it raised MemoryError" in message or any(words in message for words in OUT_OF_MEMORY)


# --- what other lessons need ---


def served_modules(lesson: str) -> dict[str, ModuleType]:
    """The reference's modules of earlier lessons, and all that the reference of `lesson` uses."""
    found: dict[str, ModuleType] = {}
    waiting = {*siblings(lesson)} | {name for name in lessons() if number(name) < number(lesson)}
    while waiting:
        name = waiting.pop()
        if name not in found and name != lesson:
            found[name] = importlib.import_module(f"solutions.{name}")
            waiting |= siblings(name)
    return found


@cache
def siblings(lesson: str) -> frozenset[str]:
    tree = ast.parse((SOLUTIONS / f"{lesson}.py").read_text(encoding="utf-8"))
    return frozenset(
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
    )
