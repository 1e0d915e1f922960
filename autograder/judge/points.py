"""Which points count: none for manners alone, none for printed examples alone."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from course_lib.checks.kit import Check, run_check

from .verdict import CheckVerdict


@dataclass(frozen=True)
class Groups:
    """The checks of a lesson."""

    visible: list[Check]
    hidden: list[Check]

    @property
    def secret(self) -> set[str]:
        """The checks whose inputs the grader draws."""
        drawn = {check.id for check in self.visible if check.draws}
        return drawn | {check.id for check in self.hidden}

    @property
    def manners(self) -> set[str]:
        """The checks that a function passes which gives no answer."""
        return {check.id for check in (*self.visible, *self.hidden) if asks_no_answer(check)}


def root(verdict: CheckVerdict) -> str:
    """The function or class that a check is about."""
    return verdict.of.split(".")[0]


def only_with_answers(
    checks: Groups, verdicts: list[CheckVerdict], shown: Set[str], tables: Set[str]
) -> list[CheckVerdict]:
    """Take away what functions earned that are not among those `shown` to give right answers.

    Manners (the input left alone, wrong arguments refused) can be kept by a function that does
    nothing, and printed examples can be answered by a table of them: all of a function's, or those
    of the checks in `tables`.
    """
    manners = checks.manners

    def counted(verdict: CheckVerdict) -> CheckVerdict:
        if not verdict.passed or (root(verdict) in shown and verdict.id not in tables):
            return verdict
        if verdict.id in manners:
            message = f"{verdict.of} gives no right answer, so this is worth nothing yet"
            return replace(verdict, earned=0.0, cause="no right answer", message=message)
        message = f"right on the printed examples, but {verdict.of} is right on no other input here"
        return replace(verdict, earned=0.0, cause="only the examples", message=message)

    return [counted(verdict) for verdict in verdicts]


def shown_by_drawn_inputs(checks: Groups, verdicts: list[CheckVerdict]) -> set[str]:
    """The functions that pass a check with inputs that the grader draws, by an answer."""
    answering = checks.secret - checks.manners
    return {root(verdict) for verdict in verdicts if verdict.passed and verdict.id in answering}


@cache
def asks_no_answer(check: Check) -> bool:
    """Whether a function passes that returns nothing, refuses everything, or babbles."""
    idle = (Idle(None), Idle(ValueError), Babble())
    return any(run_check(check, module).passed for module in idle)


class Idle:
    """A module whose functions, and the methods of whose classes, do nothing but one thing."""

    def __init__(self, raised: type[Exception] | None) -> None:
        self._raised = raised

    def __getattr__(self, name: str) -> Any:
        def idle(*args: Any, **kwargs: Any) -> None:
            if self._raised is not None:
                raise self._raised(name)

        return idle


@dataclass(frozen=True)
class Said:
    """What a Generation holds."""

    ids: Tensor
    finish_reason: list[str]
    new_tokens: list[int]
    tokens_per_second: float
    positions_forwarded: int


class Babble(Idle):
    """Says any ids, of the right shape, by a fair use of chance: what it says means nothing.

    Seeds, caches and dtypes can be kept in order so, and chance alone has the right independence.
    """

    def __init__(self) -> None:
        super().__init__(None)

    def causal_mask(self, query_len: int, key_len: int) -> Tensor:
        return torch.ones(max(0, query_len), max(0, key_len), dtype=torch.bool)

    def sample(self, probs: Tensor, generator: Any = None) -> Tensor:
        return torch.randint(probs.shape[-1], (len(probs), 1), generator=generator)

    def next_token(self, logits: Tensor, *, generator: Any = None, **knobs: Any) -> Tensor:
        return self.sample(logits, generator)

    def generate(
        self, model: Any, ids: Tensor, max_new_tokens: int, *, generator: Any = None, **options: Any
    ) -> Any:
        said = torch.randint(model.vocab_size, (len(ids), max_new_tokens), generator=generator)
        return Said(
            ids=torch.cat([ids, said], dim=1),
            finish_reason=["length"] * len(ids),
            new_tokens=[max_new_tokens] * len(ids),
            tokens_per_second=1.0,
            positions_forwarded=0,
        )

    def stream(
        self,
        model: Any,
        tokenizer: Any,
        prompt: str,
        max_new_tokens: int = 9,
        *,
        generator: Any = None,
        **options: Any,
    ) -> Any:
        ids = torch.tensor([tokenizer.encode(prompt)])
        result = self.generate(model, ids, max_new_tokens, generator=generator)
        for token in result.ids[0].tolist():
            # signs that anybody can read
            yield chr(33 + token % 64)
        return result
