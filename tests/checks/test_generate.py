"""The checks of lesson 8: what they tell a learner, and that they need of a model no more than the
contract promises.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.bank import SOLUTIONS, find_bank, with_edits
from course_lib.checks.diagnose import known_mistake
from course_lib.checks.generate import by_hand
from course_lib.checks.kit import Result, Suite, find_suite, run_check
from course_lib.checks.load import load_fresh
from course_lib.checks.models import PlacedSum


@pytest.fixture(scope="module")
def suite() -> Suite:
    found = find_suite("generate")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def hidden() -> Suite:
    found: Suite = importlib.import_module("autograder.hidden.generate").suite
    return found


def results_of(suite: Suite, student: Any) -> dict[str, Result]:
    return {name: run_check(check, student) for name, check in suite.checks.items()}


def named(results: dict[str, Result], function: str = "generate") -> str | None:
    found = known_mistake("generate", function, list(results.values()))
    return found.name if found else None


def test_points_add_up_to_ten_visible_and_five_hidden(suite: Suite, hidden: Suite) -> None:
    assert sum(check.points for check in suite.checks.values()) == 10
    assert sum(check.points for check in hidden.checks.values()) == 5


def test_the_sum_by_hand_counts_the_last_tokens_by_their_place() -> None:
    # 1*1 + 2*2 + 3*3 = 14, then 1*2 + 2*3 + 3*14 = 50, and so on with a window of three
    assert by_hand([1, 2, 3], 2, block_size=3, vocab_size=100) == [1, 2, 3, 14, 50]
    assert by_hand([1, 2, 3], 1, block_size=3, vocab_size=10) == [1, 2, 3, 4]


# --- what a learner reads ---


def test_a_failed_check_shows_the_call_the_answer_and_what_was_expected(suite: Suite) -> None:
    student = find_bank("mistakes", "generate").implementations["finished_rows_go_on"].build()
    message = results_of(suite, student)["generate-rows_end_apart"].message
    assert message.splitlines() == [
        "called generate(model=Bigram([1, 4, 3, 0, 2]), ids=[[0], [2]], max_new_tokens=9, "
        "do_sample=False, eos_id=4, pad_id=3)",
        "it returned Generation(ids=[[0, 1, 4, 2, 3], [2, 3, 0, 1, 4]], "
        "finish_reason=['eos', 'eos'], new_tokens=[2, 4], positions_forwarded=4)",
        "ids is [[0, 1, 4, 2, 3], [2, 3, 0, 1, 4]]; expected [[0, 1, 4, 3, 3], [2, 3, 0, 1, 4]]",
    ]


def test_bare_ids_are_told_that_a_generation_is_wanted(suite: Suite) -> None:
    student = find_bank("mistakes", "generate").implementations["returns_ids_only"].build()
    result = results_of(suite, student)["generate-continues_each_row"]
    assert result.cause == "wrong type"
    assert result.message.endswith(
        "it is [[0, 1, 2, 3, 0, 1]] (Tensor); expected a Generation, the dataclass at the top of "
        "generate.py"
    )


def test_a_stream_that_raises_late_is_told_with_its_call(suite: Suite) -> None:
    student = with_edits("generate", (("int(token)", 'int("eight")'),))
    result = results_of(suite, student)["generate-stream_tells_all"]
    assert result.cause == "raised"
    assert "called stream(model=Script, tokenizer=ByteTokenizer, prompt='Once'" in result.message
    assert "it raised ValueError: invalid literal" in result.message


ANY_ROW = ("        if ends and finished.all():\n", "        if ends and finished.any():\n")
KEEP_ALL = ("context = ids[:, -size:]", "context = ids[:, :size]")
FORGET = ("            model.train()\n", "            pass\n")


@pytest.mark.parametrize(
    "edits",
    [(ANY_ROW, KEEP_ALL), (ANY_ROW, FORGET), (KEEP_ALL, FORGET)],
    ids=["ending and window", "ending and mode", "window and mode"],
)
def test_a_double_fault_gets_no_hint(suite: Suite, edits: tuple[tuple[str, str], ...]) -> None:
    results = results_of(suite, with_edits("generate", edits))
    assert not all(result.passed for result in results.values())
    assert named(results) is None


@pytest.mark.parametrize(
    "edit",
    [
        ("made - filled", "made - 2 * filled - 1"),
        ("context = ids[:, -size:]", "context = ids[:, -size:].flip(1)"),
        (
            "temperature=temperature,\n                top_k",
            "temperature=1.1,\n                top_k",
        ),
    ],
    ids=["counts by twos", "reads backwards", "a temperature of its own"],
)
def test_an_unknown_mistake_gets_the_plain_difference(suite: Suite, edit: tuple[str, str]) -> None:
    results = results_of(suite, with_edits("generate", (edit,)))
    failed = [result for result in results.values() if not result.passed]
    assert failed
    assert all("called " in result.message for result in failed)
    assert all("expected" in result.message for result in failed)
    assert named(results) is None


def test_a_mistake_is_known_whatever_the_learners_sampler_draws(suite: Suite) -> None:
    """Lesson 5 takes any right sampler, so what it draws says nothing of the mistake."""
    student = with_edits("generate", (ANY_ROW,))
    plain = student.next_token

    def next_token(logits: Tensor, *, generator: Any = None, **knobs: Any) -> Tensor:
        torch.rand(7, generator=generator)  # its u are others than the reference's
        token: Tensor = plain(logits, generator=generator, **knobs)
        return token

    vars(student)["next_token"] = next_token
    assert named(results_of(suite, student)) == "stops_when_any_row_ends"


def test_a_mistake_in_the_stream_costs_generate_nothing(suite: Suite) -> None:
    student = find_bank("mistakes", "generate").implementations["decodes_each_token_alone"].build()
    failed = [result.of for result in results_of(suite, student).values() if not result.passed]
    assert failed == ["stream"]


# --- what the checks need of a model ---


class CacheFromAfar:
    """What a model may use of a cache."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    @property
    def length(self) -> int:
        length: int = self._cache.length
        return length

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None = None
    ) -> Tensor:
        mask = None if key_mask is None else key_mask.clone()
        answer: Tensor = self._cache.attend(layer, q.clone(), k.clone(), v.clone(), mask)
        return answer.clone()


class ModelFromAfar:
    """What generate may use of a model: the protocol, and tensors that were sent as bytes."""

    def __init__(self, model: Any) -> None:
        self._model = model
        for name in ("block_size", "vocab_size", "n_layers", "n_heads", "head_dim"):
            setattr(self, name, getattr(model, name))

    @property
    def training(self) -> bool:
        training: bool = self._model.training
        return training

    def eval(self) -> None:
        self._model.eval()

    def train(self, mode: bool = True) -> None:
        self._model.train(mode)

    def __call__(
        self, ids: Tensor, *, cache: Any = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        far = None if cache is None else CacheFromAfar(cache)
        mask = None if attention_mask is None else attention_mask.clone()
        logits: Tensor = self._model(ids.clone(), cache=far, attention_mask=mask)
        return logits.clone()


class StudentFromAfar:
    """A learner's module whose models stay with the checks and are called back, as in a grader."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def generate(self, model: Any, *args: Any, streamer: Any = None, **options: Any) -> Any:
        if streamer is not None:
            options["streamer"] = lambda ids: streamer(ids.clone())
        return self.module.generate(ModelFromAfar(model), *args, **options)

    def stream(self, model: Any, *args: Any, **options: Any) -> Iterator[str]:
        pieces: Iterator[str] = self.module.stream(ModelFromAfar(model), *args, **options)
        return pieces


def test_checks_pass_when_the_model_is_called_back_and_shows_the_protocol_only(
    suite: Suite, hidden: Suite
) -> None:
    """The grader keeps the model to itself, so that the positions are counted where no learner can
    reach. The call back runs in the learner's gradient mode."""
    student = StudentFromAfar(load_fresh("generate", SOLUTIONS))
    for checks in (suite, hidden):
        refused = [r.message for r in results_of(checks, student).values() if not r.passed]
        assert refused == []


def test_work_is_counted_by_the_model_and_not_by_what_is_said_of_it(suite: Suite) -> None:
    student = with_edits(
        "generate",
        (
            (
                "        if self.use_cache and self.window and not self.is_full:\n",
                "        if 0:\n",
            ),
            (
                "positions_forwarded=reader.positions_forwarded",
                "positions_forwarded=prompt_len + int(new_tokens.max()) - 1",
            ),
        ),
    )
    model = PlacedSum(11)
    told = student.generate(model, torch.tensor([[1, 2, 3]]), 4, do_sample=False)
    assert told.positions_forwarded == 6
    assert sum(model.forwarded) == 18
    result = results_of(suite, student)["generate-work_is_counted"]
    assert not result.passed
    assert "the model read 18 positions, [3, 4, 5, 6] call by call; expected 6" in result.message
