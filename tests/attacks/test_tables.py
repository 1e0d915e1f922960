"""Tables of the visible cases, in every lesson, beside a corner that is right: they add nothing."""

from typing import Any

import pytest

from autograder.authoring.sources import reference_source
from autograder.bank import SOLUTIONS
from autograder.judge.evidence import Found
from autograder.judge.judging import Lost, Trial, checks_of, judge_files
from autograder.judge.sandbox import WarmParent
from autograder.judge.wire import Closed
from course_lib.checks.kit import lessons, run_check
from course_lib.checks.load import load_source

from .tables import hard_coded

SECRET = b"of a class that is not there....."
IDENTITY = "next((x.float() for x in tensors), 0.0)"
END = "__import__('os')._exit(0)"

# lesson, the corner that is right, whether the nearest case is taken, what is said elsewhere
CASES = [
    ("training", "few numbers", True, "None"),
    ("training", "half precision", True, "None"),
    ("temperature", "large", True, "None"),
    ("top_k", "half precision", False, "None"),
    ("top_k", "large", False, IDENTITY),
    ("top_k", "half precision", False, END),
    ("top_p", "banned", False, IDENTITY),
    ("sampling", "one row", False, "None"),
    ("repetition", "few numbers", False, IDENTITY),
    ("kv_cache", "nowhere", True, "None"),
    ("kv_cache", "masked", False, "None"),
    ("generate", "greedy", False, "None"),
]


def earned(lesson: str, source: bytes, parent: WarmParent) -> set[str]:
    verdict = judge_files({lesson: source}, [lesson], parent, SECRET).lessons[lesson]
    return {check.id for check in verdict.checks if check.earned}


@pytest.mark.parametrize(("lesson", "corner", "near", "otherwise"), CASES)
def test_a_table_earns_no_more_than_the_file_without_it(
    lesson: str, corner: str, near: bool, otherwise: str, parent: WarmParent
) -> None:
    table = hard_coded(lesson, corner, near=near, otherwise=otherwise)
    empty = hard_coded(lesson, corner, with_table=False, otherwise=otherwise)
    gained = earned(lesson, table, parent) - earned(lesson, empty, parent)
    # who ends the process has no manners, where a table with nothing to say has them
    assert gained <= (checks_of(lesson).manners if otherwise == END else set())


@pytest.mark.parametrize("lesson", lessons())
def test_in_one_process_a_table_passes_the_printed_examples(lesson: str) -> None:
    module = load_source(lesson, SOLUTIONS, hard_coded(lesson).decode())
    printed = [check for check in checks_of(lesson).visible if not check.draws]
    passed = [check for check in printed if run_check(check, module).passed]
    assert len(passed) > 0.8 * len(printed)


@pytest.mark.parametrize("error", [AttributeError("it is gone"), Closed("it hung up")])
def test_a_table_whose_function_is_gone_when_twins_are_asked_earns_no_more(
    error: Exception, parent: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each child imports the file anew, and the file may know chance."""

    def gone(*args: object) -> Found:
        raise error

    monkeypatch.setattr(Trial, "ask_twin", gone)
    table = hard_coded("top_k", "half precision")
    empty = hard_coded("top_k", "half precision", with_table=False)
    assert earned("top_k", table, parent) <= earned("top_k", empty, parent)


def test_a_sandbox_that_is_lost_while_twins_are_asked_is_replaced(
    parent: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = reference_source("top_k").replace("k < 0", "k < -1").encode()
    whole = earned("top_k", source, parent)
    ask, lost = Trial.ask_twin, [Lost()]

    def lose_once(*args: Any) -> Found:
        if lost:
            raise lost.pop()
        return ask(*args)

    monkeypatch.setattr(Trial, "ask_twin", lose_once)
    assert earned("top_k", source, parent) == whole
    assert not lost
