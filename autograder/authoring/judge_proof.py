"""Prove the judge: everything in the bank gets from it the verdict that it gets in one process.

    autograder proof --judge

Without its disguise of printed examples the judge must agree with `run_check` on every check of
every implementation; with it, the reference and every right variant must still earn everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType

from course_lib.checks.kit import run_check
from course_lib.checks.load import load_source

from ..bank import SOLUTIONS, Implementation, find_bank
from ..judge.judging import Trial, checks_of
from ..judge.points import only_with_answers
from ..judge.sandbox import WarmParent
from ..judge.verdict import CheckVerdict, LessonVerdict
from .sources import as_source, reference_source
from .sources_proof import differing_sources

SECRET = b"the secret of the proof"


@dataclass
class JudgeProof:
    """What was found for one lesson; it holds if `faults` is empty."""

    lesson: str
    compared: int = 0
    withheld: int = 0  # wrong answers that lose points of printed examples or manners
    faults: list[str] = field(default_factory=list)


class AsPrinted(Trial):
    """Without the disguise, which one process does not have."""

    disguises = False


def prove_judge(lesson: str, parent: WarmParent) -> JudgeProof:
    """Judge the reference and all of the bank's implementations of a lesson."""
    # the judge is given files: are they what the bank says they are?
    proof = JudgeProof(lesson, faults=differing_sources(lesson))
    right = {"the reference": reference_source(lesson)}
    right |= {f"variant {n}": as_source(i) for n, i in _bank("variants", lesson)}
    wrong = {f"mistake {n}": as_source(i) for n, i in _bank("mistakes", lesson)}
    for name, source in (right | wrong).items():
        proof.compared += 1
        differing = differences(lesson, source, parent)
        proof.faults += [f"{name}: {told}" for told in differing]
    for name, source in (right | wrong).items():
        files = {lesson: source.encode()}
        verdict = Trial(lesson, files, parent, SECRET, "reference").verdict()
        if name in right:
            lost = [check.id for check in verdict.checks if not check.passed]
            proof.faults += [f"{name}: loses {check} to the disguise" for check in lost]
        else:
            causes = {check.cause for check in verdict.checks}
            proof.withheld += not causes.isdisjoint(("only the examples", "no right answer"))
    return proof


def differences(lesson: str, source: str, parent: WarmParent) -> list[str]:
    """The checks on which the judge and one process disagree."""
    trial = AsPrinted(lesson, {lesson: source.encode()}, parent, SECRET, "reference")
    found = trial.verdict()
    expected = in_one_process(trial, load_source(lesson, SOLUTIONS, source))
    return [
        f"{judged.id} is {judged.cause or 'passed'!r}, {wanted.cause or 'passed'!r} in one process"
        for judged, wanted in zip(found.checks, expected.checks, strict=True)
        if (judged.cause, judged.earned) != (wanted.cause, wanted.earned)
    ]


def in_one_process(trial: Trial, module: ModuleType) -> LessonVerdict:
    """The verdict that a trial would give if the module were trusted."""
    groups = checks_of(trial.lesson)
    verdicts = []
    for check in (*groups.visible, *groups.hidden):
        result = run_check(check, module, trial.seed(check.id))
        earned, cause = (check.points, "") if result.passed else (0.0, result.cause)
        verdicts.append(
            CheckVerdict(check.id, check.hidden, check.of, check.claim, check.points, earned, cause)
        )
    # what else a function is right on is asked of the judge alone
    return LessonVerdict(
        trial.lesson, only_with_answers(groups, verdicts, trial.shown, trial.tables)
    )


def _bank(kind: str, lesson: str) -> list[tuple[str, Implementation]]:
    return list(find_bank(kind, lesson).implementations.items())
