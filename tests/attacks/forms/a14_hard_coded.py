"""14: the visible cases, hard-coded."""

from typing import Any

import torch

from course_lib.checks.kit import find_suite, run_check
from solutions import generate as reference_generate
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


@forms.source("sampling", fair=("sampling-cdf_input_untouched",))
def any_ids(scene: Scene) -> Files:
    """Ids by a fair use of chance, whatever the numbers are: seeds and shapes are in order."""
    return module(
        """
        import torch

        def greedy(logits):
            return torch.zeros(len(logits), 1).long()

        def inverse_cdf(probs, u):
            return torch.zeros(len(probs), 1).long()

        def sample(probs, generator=None):
            return torch.randint(probs.shape[1], (len(probs), 1), generator=generator)

        def next_token(logits, *, generator=None, **knobs):
            return sample(logits, generator)
        """,
        "sampling",
    )


class ListeningToGenerate:
    """The reference's generate, which keeps what it was asked and what it said."""

    def __init__(self) -> None:
        self.cases: list[tuple[Any, ...]] = []

    def generate(self, model: Any, ids: torch.Tensor, new: int, **options: Any) -> Any:
        said = reference_generate.generate(model, ids, new, **options)
        told = {k: v for k, v in options.items() if k not in ("generator", "streamer")}
        asked = (type(model).__name__, ids.tolist(), new, repr(sorted(told.items())))
        answer = (said.ids.tolist(), said.finish_reason, said.new_tokens, said.positions_forwarded)
        self.cases.append((asked, answer, getattr(model, "forwarded", [])))
        return said


def cases_of_generate() -> list[tuple[Any, ...]]:
    suite, listening = find_suite("generate"), ListeningToGenerate()
    assert suite is not None
    for check in suite.checks.values():
        if check.of == "generate":
            run_check(check, listening)
    return listening.cases


@forms.source("generate")
def a_table_beside_babble(scene: Scene) -> Files:
    """Texts of the visible checks from a table; for all else any ids, by a fair use of chance,
    which keep seeds and caches in order."""
    return module(
        f"""
        import torch
        from dataclasses import dataclass

        TABLE = {cases_of_generate()!r}

        @dataclass
        class Generation:
            ids: object
            finish_reason: list
            new_tokens: list
            positions_forwarded: int
            tokens_per_second: float = 1.0

        def generate(model, ids, max_new_tokens, *, generator=None, streamer=None, **options):
            if max_new_tokens < 0 or ids.numel() == 0 or options.get("temperature", 1) < 0:
                raise ValueError
            asked = (type(model).__name__, ids.tolist(), max_new_tokens,
                     repr(sorted(options.items())))
            for case, (said, *rest), forwarded in TABLE:
                if case == asked and not generator and len(set(map(tuple, said))) * 9 > len(said):
                    was = model.training
                    with torch.inference_mode():
                        model.eval()
                        for length in forwarded:
                            model(torch.zeros(len(ids), length).long())
                        model.train(was)
                    return Generation(torch.tensor(said), *rest)
            new = torch.randint(model.vocab_size, (len(ids), max_new_tokens), generator=generator)
            return Generation(torch.cat([ids, new], 1), ["length"] * len(ids),
                              [max_new_tokens] * len(ids), 0)
        """,
        "generate",
    )
