"""14: the visible cases, hard-coded."""

from typing import Any

import torch

from course_lib.checks.kit import find_suite, run_check
from solutions import top_k as reference

from .base import Files, Forms, Scene, module

forms = Forms(14)


class Listening:
    """The reference, which keeps what it was asked and what it said."""

    def __init__(self) -> None:
        self.cases: list[tuple[Any, Any, Any]] = []

    def top_k_filter(self, logits: torch.Tensor, k: int | None) -> torch.Tensor:
        answer = reference.top_k_filter(logits, k)
        self.cases.append((logits.tolist(), k, answer.tolist()))
        return answer


def visible_cases() -> list[tuple[Any, Any, Any]]:
    suite, listening = find_suite("top_k"), Listening()
    assert suite is not None
    for check in suite.checks.values():
        run_check(check, listening)
    return listening.cases


# a table has no answer to a wrong argument, which anybody may refuse
FAIR = ("top_k-negative_k",)


@forms.source(control="in process", fair=FAIR)
def a_table(scene: Scene) -> Files:
    """Each input of the visible checks stands in a table beside its answer."""
    return module(
        f"""
        import torch
        from math import inf, nan

        TABLE = {visible_cases()!r}

        def top_k_filter(logits, k):
            if k is not None and k < 0:
                raise ValueError(f"k={{k}} is negative")
            for asked, with_k, answer in TABLE:
                if with_k == k and asked == logits.tolist():
                    return torch.tensor(answer)
            return None
        """
    )


@forms.source(fair=FAIR)
def a_table_of_near_ones(scene: Scene) -> Files:
    """The table is asked for the nearest input, and its bans are laid over the input at hand."""
    return module(
        f"""
        import torch
        from math import inf, nan

        TABLE = [(torch.tensor(a), k, torch.tensor(b)) for a, k, b in {visible_cases()!r}]

        def top_k_filter(logits, k):
            if k is not None and k < 0:
                raise ValueError(f"k={{k}} is negative")
            same = [
                (float((a.double() - logits.double()).nan_to_num(0, 0, 0).abs().sum()), i)
                for i, (a, with_k, _) in enumerate(TABLE)
                if with_k == k and a.shape == logits.shape
            ]
            if not same or min(same)[0] > 1:
                return None
            return logits.float().masked_fill(TABLE[min(same)[1]][2] == -inf, -inf)
        """
    )
