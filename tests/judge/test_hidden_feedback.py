"""What a learner is told of a hidden check says which property failed and how, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.authoring.sources import reference_source
from autograder.judge import judging
from autograder.judge.judging import EXPLAINED, checks_of, judge_files
from autograder.judge.sandbox import WarmParent
from autograder.judge.verdict import CAUSES, CheckVerdict
from course_lib.checks.kit import lessons

SECRETS = (b"one secret of the tests", b"another secret")
# wrong by a random amount, and talkative: whatever it is given goes into what it raises
TALKS = """

def talking(name, right):
    import inspect, torch

    if inspect.isclass(right):
        return right

    def talk(*args, **kwargs):
        said = str([x.flatten()[:9].tolist() if isinstance(x, torch.Tensor) else x for x in args])
        if len(said) % 3 == 0:
            raise ValueError(f"LEAK {said}")
        if len(said) % 3 == 1:
            return f"LEAK {said}"
        return right(*args, **kwargs)

    return talk

for name, value in list(globals().items()):
    if getattr(value, "__module__", None) == __name__ and name[0] != "_" and name != "talking":
        globals()[name] = talking(name, value)
"""


@pytest.fixture(scope="module")
def parent() -> Iterator[WarmParent]:
    with WarmParent() as started:
        yield started


def told(check: CheckVerdict) -> tuple[object, ...]:
    """All that gradebook, feedback and reports have of a check, but for its points."""
    return check.claim, check.of, check.message, check.hint, check.mistake


@pytest.mark.parametrize("lesson", lessons())
def test_of_a_hidden_check_is_told_its_claim_and_its_cause(
    lesson: str, parent: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "SECONDS", 5.0)
    source = (reference_source(lesson) + TALKS).encode()
    declared = {check.id: check for check in checks_of(lesson).hidden}
    causes = set()
    for secret in SECRETS:
        verdict = judge_files({lesson: source}, [lesson], parent, secret).lessons[lesson]
        hidden = [check for check in verdict.checks if check.hidden]
        assert {check.id for check in hidden} == set(declared)
        for check in hidden:
            known = declared[check.id]
            assert check.cause in ("", *CAUSES)
            explained = EXPLAINED.get(check.cause, "")
            if check.cause == "no right answer":
                explained = f"{check.of} gives no right answer, so this is worth nothing yet"
            assert told(check) == (known.claim, known.of, explained, "", "")
            causes.add(check.cause)
    assert causes - {""}
