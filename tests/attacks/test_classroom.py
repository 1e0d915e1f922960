"""What happens in classes without any malice: nobody loses a point by it, or stops another."""

import json
from collections.abc import Iterator
from random import Random

import pytest

from autograder.authoring.sources import as_source, reference_source, with_stubs
from autograder.bank import find_bank
from autograder.judge import judging
from autograder.judge.judging import judge_files
from autograder.judge.sandbox import WarmParent
from autograder.judge.verdict import LessonVerdict
from autograder.simulate.work import MIX, do_work, functions, tasks
from course_lib.checks.kit import lessons

from .forms.base import STUB

SECRET = b"of a class that is not there....."
LARGEST_VERDICT = 200_000  # bytes


@pytest.fixture(autouse=True)
def more_patience(less_patience: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Honest files have the time that they have in a class."""
    monkeypatch.setattr(judging, "SECONDS", 20.0)
    yield


def judged(lesson: str, source: str, parent: WarmParent) -> LessonVerdict:
    verdict = judge_files({lesson: source.encode()}, [lesson], parent, SECRET)
    assert len(json.dumps(verdict.as_data())) < LARGEST_VERDICT
    return verdict.lessons[lesson]


def failing(verdict: LessonVerdict) -> dict[str, str]:
    return {check.id: check.cause for check in verdict.checks if not check.passed}


@pytest.mark.parametrize("lesson", lessons())
def test_output_warnings_and_progress_bars_cost_nothing(lesson: str, parent: WarmParent) -> None:
    noisy = do_work(lesson, Random(0), {"noisy": 1}).source
    assert failing(judged(lesson, noisy, parent)) == {}


def test_two_gigabytes_of_output_cost_nothing(parent: WarmParent) -> None:
    source = reference_source("top_k") + (
        "\nimport sys\nfor _ in range(2000):\n"
        "    sys.stdout.write('debug\\n' * 175_000)\n    sys.stderr.write('x')\n"
    )
    assert failing(judged("top_k", source, parent)) == {}


@pytest.mark.parametrize("lesson", [name for name in lessons() if len(tasks(name)) > 1])
def test_what_is_not_written_yet_costs_its_own_checks(lesson: str, parent: WarmParent) -> None:
    """The last function of a file: nothing else of its lesson needs it."""
    last = tasks(lesson)[-1]
    verdict = judged(lesson, with_stubs(reference_source(lesson), lesson, [last]), parent)
    assert set(failing(verdict).values()) == {"not attempted"}
    assert {c.of.split(".")[0] for c in verdict.checks if not c.passed} == {last}


def test_a_loop_without_end_in_one_function_leaves_the_others_their_points(
    parent: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "SECONDS", 2.0)
    names = functions("training")
    stuck = with_stubs(reference_source("training"), "training", [names[0]])
    stuck = STUB.sub(r"\1while True:\n\1    pass", stuck)
    verdict = judged("training", stuck, parent)
    assert set(failing(verdict).values()) == {"timed out"}
    assert {check.of for check in verdict.checks if not check.passed} == {names[0]}


@pytest.mark.parametrize(
    ("how", "causes"),
    [
        ("syntax error", {"import failed"}),
        ("missing library", {"import failed"}),
        ("renamed", {"raised"}),
        ("recursion", {"raised"}),
        ("exit", {"raised"}),
        ("hard exit", {"ended early"}),
        ("memory", {"out of memory"}),
    ],
)
def test_each_way_to_crash_has_a_cause_that_says_so(
    how: str, causes: set[str], parent: WarmParent
) -> None:
    crashes = (do_work("top_k", Random(seed), {"crash": 1}) for seed in range(500))
    work = next(work for work in crashes if work.names == (how,))
    verdict = judged("top_k", work.source, parent)
    assert set(failing(verdict).values()) - {"no right answer"} == causes
    assert verdict.score == 0


def test_a_class_gets_what_its_work_is_worth(parent: WarmParent) -> None:
    """Right work earns everything, a stub nothing, whatever was judged in between."""
    usual = {kind: share for kind, share in MIX.items() if kind != "crash"}
    for seed in range(25):
        lesson = lessons()[seed % len(lessons())]
        work = do_work(lesson, Random(seed), usual)
        verdict = judged(lesson, work.source, parent)
        if work.kind in ("reference", "variant", "noisy"):
            assert verdict.score == verdict.max, work.names
        elif work.kind == "stub":
            assert verdict.score == 0
        else:
            assert verdict.score < verdict.max, work.names


def test_one_wrong_function_of_several_costs_its_own_items_only(parent: WarmParent) -> None:
    mistake = find_bank("mistakes", "temperature").implementations["measures_in_bits"]
    verdict = judged("temperature", as_source(mistake), parent)
    assert {check.of for check in verdict.checks if not check.passed} == {mistake.of}
