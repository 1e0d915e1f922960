"""The judge: right answers earn all, wrong ones what they earn in one process, others nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from autograder.authoring.judge_proof import differences
from autograder.authoring.sources import as_source, reference_source, stub_source
from autograder.bank import SOLUTIONS, Implementation, find_bank
from autograder.judge import judging
from autograder.judge.judging import checks_of, judge_files
from autograder.judge.sandbox import WarmParent
from autograder.judge.verdict import CAUSES, LessonVerdict, Verdict
from course_lib.checks.kit import Check, Result, lessons, run_check
from course_lib.checks.load import load_source

SECRET = b"a secret of the tests"
REFERENCE = {lesson: reference_source(lesson).encode() for lesson in lessons()}


@pytest.fixture(scope="module")
def parent() -> Iterator[WarmParent]:
    with WarmParent() as started:
        yield started


def judged(parent: WarmParent, lesson: str, source: str | bytes) -> LessonVerdict:
    data = source.encode() if isinstance(source, str) else source
    return judge_files(REFERENCE | {lesson: data}, [lesson], parent, SECRET).lessons[lesson]


def causes(verdict: LessonVerdict) -> set[str]:
    return {check.cause for check in verdict.checks}


# --- the ends ---


@pytest.mark.parametrize("lesson", lessons())
def test_the_reference_earns_the_maximum(parent: WarmParent, lesson: str) -> None:
    verdict = judged(parent, lesson, REFERENCE[lesson])
    assert [check for check in verdict.checks if not check.passed] == []
    assert verdict.score == verdict.max == 15


@pytest.mark.parametrize("lesson", lessons())
def test_a_blank_submission_scores_0(parent: WarmParent, lesson: str) -> None:
    verdict = judged(parent, lesson, stub_source(lesson))
    assert verdict.score == 0
    assert causes(verdict) == {"not attempted"}


def test_a_file_that_is_missing_scores_0_and_costs_no_other_lesson(parent: WarmParent) -> None:
    files = {name: source for name, source in REFERENCE.items() if name != "top_k"}
    verdict = judge_files(files, ["top_k", "temperature"], parent, SECRET)
    assert verdict.lessons["top_k"].score == 0
    assert causes(verdict.lessons["top_k"]) == {"missing file"}
    assert verdict.lessons["temperature"].score == 15


def test_the_same_submission_gets_the_same_verdict(parent: WarmParent) -> None:
    mistake = first_mistakes("sampling", 1)[0]
    first, second = (judged(parent, "sampling", as_source(mistake)) for _ in range(2))
    assert first == second


def test_a_verdict_goes_through_json_unchanged(parent: WarmParent) -> None:
    mistake = first_mistakes("top_p", 1)[0]
    files = REFERENCE | {"top_p": as_source(mistake).encode()}
    verdict = judge_files(files, ["top_p"], parent, SECRET)
    assert Verdict.from_data(verdict.as_data()) == verdict


# --- as in one process ---


def first_mistakes(lesson: str, number: int) -> list[Implementation]:
    return list(islice(find_bank("mistakes", lesson).implementations.values(), number))


def sample(lesson: str) -> list[Implementation]:
    """A few of each kind; the whole bank is gone through by `make proof`."""
    mistakes = list(find_bank("mistakes", lesson).implementations.values())
    variants = list(find_bank("variants", lesson).implementations.values())
    return mistakes[:: max(1, len(mistakes) // 3)] + variants[:: max(1, len(variants) // 2)]


CASES = [(lesson, one) for lesson in lessons() for one in sample(lesson)]


@pytest.mark.parametrize(
    ("lesson", "one"), CASES, ids=[f"{lesson}-{one.name}" for lesson, one in CASES]
)
def test_the_sandbox_changes_no_verdict(
    parent: WarmParent, lesson: str, one: Implementation
) -> None:
    assert differences(lesson, as_source(one), parent) == []


def test_a_known_mistake_gets_its_hint(parent: WarmParent) -> None:
    named = 0
    for mistake in first_mistakes("top_k", 6):
        verdict = judged(parent, "top_k", as_source(mistake))
        named += any(check.mistake == mistake.name for check in verdict.checks)
    assert named >= 5


# --- one function wrong, the others right ---


def test_a_function_that_uses_a_wrong_one_is_told_so(parent: WarmParent) -> None:
    """A cache that forgets makes `prefill` wrong too: its hint names the cache."""
    source = REFERENCE["kv_cache"].decode().replace("v.detach()", "k.detach()")
    verdict = judged(parent, "kv_cache", source)
    assert verdict.score < verdict.max
    hints = {check.of: check.hint for check in verdict.checks if check.hint}
    assert any("KVCache" in hint for of, hint in hints.items() if not of.startswith("KVCache"))


def test_an_earlier_lesson_that_is_wrong_costs_its_own_points_only(parent: WarmParent) -> None:
    """Lesson 5 uses the filters of lessons 2 to 4: they are the reference's, unless asked."""
    broken = stub_source("top_k").encode()
    files = REFERENCE | {"top_k": broken}
    lesson = judge_files(files, ["sampling"], parent, SECRET).lessons["sampling"]
    assert lesson.score == lesson.max
    own = judge_files(files, ["sampling"], parent, SECRET, dependencies="own").lessons["sampling"]
    assert own.score < own.max
    assert "earlier lesson" in causes(own)


def test_a_loop_without_end_costs_the_checks_that_meet_it(
    parent: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.judge.judging.SECONDS", 2.0)
    source = REFERENCE["top_k"].decode() + (
        "\nright = top_k_filter\n\ndef top_k_filter(logits, k):\n"
        "    while k is not None and k > logits.shape[-1]:\n        pass\n"
        "    return right(logits, k)\n"
    )
    verdict = judged(parent, "top_k", source)
    late = [check for check in verdict.checks if check.cause == "timed out"]
    assert 1 <= len(late) <= 6
    assert causes(verdict) == {"timed out", ""}


def test_many_slow_checks_end_with_the_time_of_a_lesson(
    parent: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer just in time would hold a worker for minutes."""
    monkeypatch.setattr("autograder.judge.judging.LONGEST_LESSON", 1.5)
    source = REFERENCE["top_k"].decode() + (
        "\nimport time\nright = top_k_filter\n\ndef top_k_filter(logits, k):\n"
        "    time.sleep(0.4)\n    return right(logits, k)\n"
    )
    verdict = judged(parent, "top_k", source)
    late = [check for check in verdict.checks if check.cause == "timed out"]
    assert len(late) > len(verdict.checks) / 2


@pytest.mark.parametrize(("grace", "cause"), [(-19.5, "timed out"), (60.0, "")])
def test_a_check_that_computes_long_on_an_answer_has_timed_out(
    parent: WarmParent, monkeypatch: pytest.MonkeyPatch, grace: float, cause: str
) -> None:
    """The child has answered long ago: what the driver makes of it counts as well."""

    def slowly(check: Check, student: Any, seed: int) -> Result:
        result = run_check(check, student, seed)
        if check.id == "top_k-keeps_k":
            time.sleep(0.7)
        return result

    monkeypatch.setattr(judging, "run_check", slowly)
    monkeypatch.setattr(judging, "SECONDS", 20.0)
    monkeypatch.setattr(judging, "GRACE", grace)
    verdict = judged(parent, "top_k", REFERENCE["top_k"])
    found = next(check for check in verdict.checks if check.id == "top_k-keeps_k")
    assert found.cause == cause


# --- what is not an answer ---


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("import os; os._exit(0)", "ended early"),
        ("raise SystemExit(0)", "raised"),
        ("raise KeyboardInterrupt", "raised"),
        ("raise GeneratorExit", "raised"),
        ("raise StopIteration(logits)", "raised"),
        ("return bytearray(1 << 40)", "out of memory"),
        ("return torch.empty(1 << 40)", "out of memory"),
        ("return k / 0", "raised"),
        ("return logits.tolist()", "wrong type"),
        ("return logits[:1, :1]", "wrong shape"),
        ("import ctypes; ctypes.string_at(0)", "ended early"),
    ],
)
def test_each_way_to_fail_has_its_cause(parent: WarmParent, body: str, cause: str) -> None:
    source = f"import torch\n\ndef top_k_filter(logits, k):\n    {body}\n"
    verdict = judged(parent, "top_k", source)
    found = next(check for check in verdict.checks if check.id == "top_k-keeps_k")
    assert found.cause == cause
    assert verdict.score == 0
    assert causes(verdict) <= set(CAUSES)


def test_a_file_that_does_not_load_names_the_learners_own_line(parent: WarmParent) -> None:
    verdict = judged(parent, "top_k", "import torch\n\nx = 1 / 0\n")
    assert causes(verdict) == {"import failed"}
    assert "line 3 of top_k.py: x = 1 / 0" in verdict.checks[0].message
    verdict = judged(parent, "top_k", "def top_k_filter(logits, k)\n    return logits\n")
    assert causes(verdict) == {"import failed"}
    assert "line 1 of top_k.py" in verdict.checks[0].message
    assert causes(judged(parent, "top_k", b"\xff\xfe\x00")) == {"import failed"}


def test_output_and_warnings_change_no_verdict(parent: WarmParent) -> None:
    noise = (
        "import sys, warnings, logging\n"
        "print('✓ passed: all 15 points' * 10_000)\n"
        "print('Traceback (most recent call last):', file=sys.stderr)\n"
        "warnings.warn('careful')\n"
        "logging.error('something')\n"
    )
    source = REFERENCE["top_k"].decode() + noise
    assert judged(parent, "top_k", source).score == 15


def test_private_names_of_the_learners_are_no_fault(parent: WarmParent) -> None:
    """The child tells names for hints; python's own among them once ended the conversation."""
    source = REFERENCE["top_k"].decode() + (
        "\nclass __Odd(Exception):\n    pass\n"
        "def __helper(__x, _y=__name__, *__rest):\n    return __file__, __builtins__\n"
        "def __getattr__(name):\n    raise AttributeError(name)\n"
    )
    assert judged(parent, "top_k", source).score == 15
    source = (
        "class __Odd(Exception):\n    pass\ndef top_k_filter(logits, k):\n    raise __Odd('x')\n"
    )
    assert causes(judged(parent, "top_k", source)) == {"raised"}


# --- points need answers ---


def test_a_function_that_does_nothing_earns_nothing_for_its_manners(parent: WarmParent) -> None:
    """`pass` leaves the input as it is, and `raise ValueError` refuses wrong arguments."""
    for body in ("pass", "raise ValueError('no')"):
        for lesson, name in (("top_k", "top_k_filter"), ("temperature", "apply_temperature")):
            verdict = judged(parent, lesson, f"def {name}(logits, k):\n    {body}\n")
            assert verdict.score == 0, body


def test_a_table_of_the_printed_examples_is_no_answer(parent: WarmParent) -> None:
    """Made for the visible checks: exact, and with a tolerance, torch's own and a large one."""
    near = "torch.allclose(x.double(), logits.double(), atol=0.1)"
    for same in ("torch.equal(x, logits)", "torch.allclose(x, logits)", near):
        table = record_answers("top_k", "top_k_filter")
        source = (
            f"import torch\nfrom torch import tensor, inf, nan\nTABLE = {table}\n"
            "def top_k_filter(logits, k):\n"
            "    for x, n, answer in TABLE:\n"
            "        alike = n == k and x.shape == logits.shape and x.dtype == logits.dtype\n"
            f"        if alike and {same}:\n"
            "            return answer\n"
        )
        # in one process the table passes the printed examples
        module = load_source("top_k", SOLUTIONS, source)
        fixed = [check for check in checks_of("top_k").visible if not check.draws]
        assert sum(run_check(check, module).passed for check in fixed) > len(fixed) // 2
        assert judged(parent, "top_k", source).score == 0


def record_answers(lesson: str, function: str) -> str:
    """A table of all calls that the visible checks make, as Python source."""
    module = load_source(lesson, SOLUTIONS, REFERENCE[lesson].decode())
    rows = []
    for check in checks_of(lesson).visible:
        for call in run_check(check, module).calls:
            if call.function == function and call.raised is None:
                (_, logits), (_, k) = call.arguments
                texts = [
                    f"tensor({x.tolist()}, dtype={x.dtype}).reshape({list(x.shape)})"
                    for x in (logits, call.returned)
                ]
                rows.append(f"({texts[0]}, {k!r}, {texts[1]})")
    return "[" + ",\n".join(rows) + "]"


# --- what a learner may learn ---


def test_messages_of_hidden_checks_hold_no_values(parent: WarmParent) -> None:
    source = "def top_k_filter(logits, k):\n    raise ValueError(f'canary {logits.tolist()} {k}')\n"
    verdict = judged(parent, "top_k", source)
    for check in verdict.checks:
        if check.hidden:
            assert check.message == ""
            assert check.hint == check.mistake == ""
            assert check.claim


def test_inputs_that_the_grader_drew_are_not_told(parent: WarmParent) -> None:
    """Handed in again with these in a table, they would be an answer."""
    source = "import torch\n\ndef top_k_filter(logits, k):\n    return logits - 1\n"
    drawn = {check.id for check in checks_of("top_k").visible if check.draws}
    found = {
        secret: {
            check.id: check.message
            for check in judge_files({"top_k": source.encode()}, ["top_k"], parent, secret)
            .lessons["top_k"]
            .checks
        }
        for secret in (b"one", b"two")
    }
    assert drawn
    assert all(found[b"one"][check] == found[b"two"][check] != "" for check in drawn)


def test_a_message_of_megabytes_is_cut(parent: WarmParent) -> None:
    source = "def top_k_filter(logits, k):\n    raise ValueError('x' * 10_000_000)\n"
    verdict = judged(parent, "top_k", source)
    assert sum(len(check.message) for check in verdict.checks) < 100_000
    assert verdict.score == 0
