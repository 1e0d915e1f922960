"""What a step of decoding costs, counted and not timed: positions, torch calls, new memory.

A clock would fail on a busy machine. These counts are the same everywhere, and a change that makes
`generate` slower by a habit (a copy of the cache, a walk through the model, a sort) moves them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.given.minigpt import MiniGPT, MiniGPTConfig
from solutions.generate import generate
from solutions.kv_cache import KVCache, decode_step, prefill

from .helpers import random_ids, seeded

PROMPT = 16
USUAL: dict[str, Any] = {"temperature": 0.8, "top_k": 50, "top_p": 0.95}


class Ledger(TorchDispatchMode):
    """Notes every call of torch, and every piece of memory that a call made anew."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.tensors = self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        result = func(*args, **(kwargs or {}))
        self.calls[str(func).removeprefix("aten.").partition(".")[0]] += 1
        old = {memory(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and memory(leaf) not in old:
                self.tensors += 1
                self.bytes += leaf.untyped_storage().nbytes()
        return result


def memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def shipped_shape() -> MiniGPT:
    """A model of the shipped shape; its weights are of no account here."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return MiniGPT(MiniGPTConfig()).eval()


@pytest.fixture(scope="module")
def model() -> MiniGPT:
    return shipped_shape()


def a_step(model: MiniGPT, batch: int = 1, **knobs: Any) -> Ledger:
    """What one more token costs in `generate`: a run of 6 tokens less one of 5."""
    ids, ledgers = random_ids(model, batch, PROMPT), []
    for new in (5, 6):
        with Ledger() as ledger:
            generate(model, ids, new, generator=seeded(), **knobs)
        ledgers.append(ledger)
    step, (short, long) = Ledger(), ledgers
    step.calls = long.calls - short.calls
    step.tensors, step.bytes = long.tensors - short.tensors, long.bytes - short.bytes
    return step


def test_each_token_is_forwarded_once(model: MiniGPT) -> None:
    result = generate(model, random_ids(model, 1, PROMPT), 40, **USUAL)
    assert result.positions_forwarded == PROMPT + 40 - 1


# measured, and a little room: a version of torch may count a call more
@pytest.mark.parametrize(
    "knobs,most",
    [({"do_sample": False}, 135), ({}, 160), ({"top_k": 50}, 149), (USUAL, 149)],
    ids=["greedy", "sampled", "top-k", "top-k and top-p"],
)
def test_a_step_is_few_torch_calls(model: MiniGPT, knobs: dict[str, Any], most: int) -> None:
    assert 100 < a_step(model, **knobs).calls.total() <= most


def test_a_batch_takes_no_more_calls_than_one_row(model: MiniGPT) -> None:
    assert a_step(model, 8, **USUAL).calls == a_step(model, **USUAL).calls


def test_a_usual_step_neither_sorts_the_vocabulary_nor_draws_with_multinomial(
    model: MiniGPT,
) -> None:
    calls = a_step(model, **USUAL).calls
    assert calls["sort"] == 0
    assert calls["multinomial"] == 0
    assert calls["rand"] == 1


def test_a_step_makes_few_new_tensors(model: MiniGPT) -> None:
    step = a_step(model, **USUAL)
    assert 50 < step.tensors <= 71
    # the largest are logits, (vocab,) in float32
    assert step.bytes < 7 * 4 * model.vocab_size


def test_a_step_far_into_the_text_copies_no_cache(model: MiniGPT) -> None:
    """A cache that grows by `torch.cat` copies itself at each step: a megabyte at position 250."""
    spent = []
    for past in (20, 250):
        cache = KVCache(model.n_layers, 1, model.n_heads, model.head_dim, model.block_size)
        with torch.inference_mode():
            prefill(model, random_ids(model, 1, past), cache)
            with Ledger() as ledger:
                decode_step(model, torch.tensor([[1]]), cache)
        spent.append(ledger.bytes)
    # scores and masks grow with the text: for each layer a few numbers a head and position
    grown = (250 - 20) * model.n_layers * (8 * model.n_heads * 4 + 8)
    assert spent[1] - spent[0] <= grown


def test_a_model_in_eval_mode_is_not_walked_through_at_each_step(
    model: MiniGPT, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = []
    monkeypatch.setattr(MiniGPT, "train", lambda self, mode=True: walks.append(mode))
    generate(model, random_ids(model, 1, PROMPT), 3)
    assert walks == []
