"""Lesson 8: generate, the whole machine.

A step: forward, last logits, repetition penalty, temperature, top-k, top-p, draw, append.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Int
from torch import Tensor

from .kv_cache import KVCache, decode_step, prefill
from .repetition import apply_repetition_penalty
from .sampling import next_token
from .training import last_logits


@dataclass(frozen=True)
class Generation:
    """What `generate` returns.

    ids: (batch, prompt + continuation); a row that ended early is filled with the pad id.
    finish_reason: for each row "eos", "length", or "overflow" (only with on_overflow="stop").
    new_tokens: for each row the tokens made, its eos counted, its filling not.
    tokens_per_second: new tokens of all rows, a second of decoding.
    positions_forwarded: positions that the model was called on, summed over its calls.
    """

    ids: Int[Tensor, "batch total"]
    finish_reason: list[str]
    new_tokens: list[int]
    tokens_per_second: float
    positions_forwarded: int


class Model(Protocol):
    """What `generate` needs of a model (given); MiniGPT is one."""

    block_size: int
    vocab_size: int
    n_layers: int
    n_heads: int
    head_dim: int
    training: bool

    def __call__(
        self, ids: Tensor, *, cache: KVCache | None = None, attention_mask: Tensor | None = None
    ) -> Tensor: ...

    def eval(self) -> Any: ...

    def train(self, mode: bool = True) -> Any: ...


class Tokenizer(Protocol):
    """What `stream` needs of a tokenizer (given): text to ids and back."""

    def encode(self, text: str) -> Any: ...

    def decode(self, ids: list[int]) -> str: ...


def generate(
    model: Model,
    ids: Int[Tensor, "batch pos"],
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition_penalty: float = 1.0,
    do_sample: bool = True,
    eos_id: int | Sequence[int] | None = None,
    pad_id: int | None = None,
    attention_mask: Int[Tensor, "batch pos"] | None = None,
    use_cache: bool = True,
    generator: torch.Generator | None = None,
    on_overflow: str = "slide",
    streamer: Callable[[Int[Tensor, "batch 1"]], object] | None = None,
) -> Generation:
    """Continue each row of `ids` by up to `max_new_tokens` tokens.

    Knobs: `temperature`, `top_k`, `top_p`, `do_sample`, `generator` as in `next_token`;
    `repetition_penalty` on prompt and continuation.

    End: a row is finished by an `eos_id` (an int or several) that it makes itself, one in the
    prompt ends nothing; the eos stays in the output and `pad_id` (by default the first eos) fills
    the row. All ends when every row is finished or after `max_new_tokens`; 0 returns the prompt.

    Context: prompts of different lengths are padded on the left, with `attention_mask` 1 real, 0
    padding. A text longer than the model's `block_size`: "slide" goes on with the last `block_size`
    tokens, "stop" ends when no further forward fits.

    With `use_cache` each token is read once, until the window slides; the ids are the same without.
    `streamer` is called once a step with the new ids (batch, 1). The model runs in eval mode
    without gradients, and gets its `training` flag back whatever happens.

    Raises ValueError for wrong arguments.

    >>> from course_lib.checks.models import Bigram
    >>> model = Bigram([1, 4, 3, 0, 2])  # says 1 after 0, 4 after 1, and so on
    >>> prompts = torch.tensor([[0], [2]])
    >>> result = generate(model, prompts, 9, do_sample=False, eos_id=4, pad_id=0)
    >>> result.ids.tolist()
    [[0, 1, 4, 0, 0], [2, 3, 0, 1, 4]]
    >>> result.finish_reason, result.new_tokens, result.positions_forwarded
    (['eos', 'eos'], [2, 4], 4)
    """
    raise NotImplementedError("lesson 8: generate is yours to write")


def stream(
    model: Model, tokenizer: Tokenizer, prompt: str, max_new_tokens: int = 200, **options: Any
) -> Generator[str, None, Generation]:
    """Tell the text piece by piece as it comes, the prompt first.

    `options` are those of `generate`. Joined, the pieces equal the decoding of all ids, prompt
    included. A piece never holds half a character: bytes wait until their character is whole, or
    until the end. Closed early, it leaves the model as it was. Its return value is the
    `Generation`.

    Raises ValueError for wrong arguments, at the latest when the first new token is asked for.

    >>> from course_lib.checks.models import ByteTokenizer, Script
    >>> model = Script("née".encode())  # a token a byte, so the é has two
    >>> list(stream(model, ByteTokenizer(), "n", 3, do_sample=False))
    ['n', 'é', 'e']
    """
    raise NotImplementedError("lesson 8: stream is yours to write")
