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
    ### BEGIN SOLUTION
    steps = _steps(
        model,
        ids,
        max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        do_sample=do_sample,
        eos_id=eos_id,
        pad_id=pad_id,
        attention_mask=attention_mask,
        use_cache=use_cache,
        generator=generator,
        on_overflow=on_overflow,
    )
    while True:
        try:
            token = next(steps)
        except StopIteration as end:
            result: Generation = end.value
            return result
        if streamer is not None:
            streamer(token)
    ### END SOLUTION


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
    ### BEGIN SOLUTION
    encoded = tokenizer.encode(prompt)
    waiting = list(getattr(encoded, "ids", encoded))  # ids whose text is not told yet
    streamer = options.pop("streamer", None)
    steps = _steps(model, torch.tensor([waiting], dtype=torch.long), max_new_tokens, **options)
    while True:
        text = tokenizer.decode(waiting)
        # a cut character decodes to U+FFFD at the end: wait for the rest of its bytes
        if text and not text.endswith("\N{REPLACEMENT CHARACTER}"):
            yield text
            waiting = []
        try:
            token = next(steps)
        except StopIteration as end:
            if text := tokenizer.decode(waiting):
                yield text
            result: Generation = end.value
            return result
        if streamer is not None:
            streamer(token)
        waiting.append(int(token))
    ### END SOLUTION


### BEGIN SOLUTION
def _steps(
    model: Model,
    ids: Tensor,
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition_penalty: float = 1.0,
    do_sample: bool = True,
    eos_id: int | Sequence[int] | None = None,
    pad_id: int | None = None,
    attention_mask: Tensor | None = None,
    use_cache: bool = True,
    generator: torch.Generator | None = None,
    on_overflow: str = "slide",
) -> Generator[Tensor, None, Generation]:
    """The loop: yields the new ids (batch, 1) of each step, returns the Generation.

    Gradients and dropout are switched off around each step, never around a yield: between two steps
    the caller's code runs, and may train the model or tell a second story with it.
    """
    _check_arguments(model, ids, max_new_tokens, pad_id, attention_mask, on_overflow)
    ends = [] if eos_id is None else [eos_id] if isinstance(eos_id, int) else list(eos_id)
    filling = pad_id if pad_id is not None else ends[0] if ends else 0
    end_ids = torch.tensor(ends, dtype=torch.long, device=ids.device)
    mask = attention_mask if attention_mask is not None and not attention_mask.all() else None
    batch, prompt_len = ids.shape
    ids = ids.to(torch.long, copy=True)
    reader = _Reader(model, use_cache, batch, prompt_len + max_new_tokens)
    finished = torch.zeros(batch, 1, dtype=torch.bool, device=ids.device)
    filled = torch.zeros(batch, 1, dtype=torch.long, device=ids.device)
    made, unfinished_reason = 0, "length"
    seconds = 0.0
    for _ in range(max_new_tokens):
        began = time.perf_counter()
        if on_overflow == "stop" and reader.is_full:
            unfinished_reason = "overflow"
            break
        with _reading(model):
            logits = reader.read(ids, mask)
            if repetition_penalty != 1.0:
                logits = apply_repetition_penalty(logits, ids, repetition_penalty, mask)
            token = next_token(
                logits,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                do_sample=do_sample,
                generator=generator,
            )
        # a copy made out here is an ordinary tensor, free of inference mode
        token = token.clone()
        if ends:
            token = token.masked_fill(finished, filling)
            filled = filled + finished
            finished = finished | torch.isin(token, end_ids)
        ids = torch.cat([ids, token], dim=1)
        made += 1
        if mask is not None:
            mask = torch.cat([mask, torch.ones_like(token, dtype=mask.dtype)], dim=1)
        seconds += time.perf_counter() - began
        yield token
        if ends and finished.all():
            break
    new_tokens = made - filled
    return Generation(
        ids=ids,
        finish_reason=["eos" if row else unfinished_reason for row in finished[:, 0].tolist()],
        new_tokens=new_tokens[:, 0].tolist(),
        tokens_per_second=int(new_tokens.sum()) / seconds if seconds else 0.0,
        positions_forwarded=reader.positions_forwarded,
    )


@contextmanager
def _reading(model: Model) -> Iterator[None]:
    """Eval mode and no gradients; whatever happens, the model gets its `training` flag back."""
    was_training = model.training
    # eval and train walk through the whole model, a tenth of a step's time: only where needed
    if was_training:
        model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if was_training:
            model.train()


class _Reader:
    """Shows the model what it has not read yet, and keeps count of what it was shown."""

    def __init__(self, model: Model, use_cache: bool, batch: int, total: int) -> None:
        self.model, self.use_cache = model, use_cache
        self.positions_forwarded = 0
        self.window = 0  # how many tokens the model saw in its last pass, cached ones included
        if use_cache:
            weight = next(model.parameters(), None) if isinstance(model, torch.nn.Module) else None
            like = torch.empty(0) if weight is None else weight
            self.cache = KVCache(
                model.n_layers,
                batch,
                model.n_heads,
                model.head_dim,
                min(total, model.block_size),
                dtype=like.dtype,
                device=like.device,
            )

    @property
    def is_full(self) -> bool:
        """Whether one more token would no longer fit beside those the model has seen."""
        return self.window == self.model.block_size

    def read(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """The logits (batch, vocab) that decide the token after `ids`."""
        size = self.model.block_size
        if self.use_cache and self.window and not self.is_full:
            self.window += 1
            self.positions_forwarded += 1
            return decode_step(self.model, ids[:, -1:], self.cache, mask)
        # the first pass, or the window slides: each token's position changes, nothing kept is right
        context = ids[:, -size:]
        context_mask = None if mask is None else mask[:, -size:]
        self.window = context.shape[1]
        self.positions_forwarded += self.window
        if self.use_cache:
            self.cache.reset()
            return prefill(self.model, context, self.cache, context_mask)
        if context_mask is None:
            return last_logits(self.model(context))
        return last_logits(self.model(context, attention_mask=context_mask))


def _check_arguments(
    model: Model,
    ids: Tensor,
    max_new_tokens: int,
    pad_id: int | None,
    attention_mask: Tensor | None,
    on_overflow: str,
) -> None:
    """What the parts of the loop do not check themselves."""
    if ids.ndim != 2 or 0 in ids.shape:
        raise ValueError(
            f"ids has shape {tuple(ids.shape)}; it must be (batch, pos), at least one token a row"
        )
    allowed = f"0 to {model.vocab_size - 1}"
    unknown = ids[(ids < 0) | (ids >= model.vocab_size)]
    if len(unknown):
        raise ValueError(f"ids holds {unknown[0].item()}; the model knows {allowed}, padding too")
    if pad_id is not None and not 0 <= pad_id < model.vocab_size:
        raise ValueError(f"pad_id={pad_id} is not allowed: the model reads it, so {allowed}")
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens={max_new_tokens} is not allowed: it must be 0 or more")
    if on_overflow not in ("slide", "stop"):
        raise ValueError(f'on_overflow="{on_overflow}" is not allowed: it is "slide" or "stop"')
    if attention_mask is not None:
        if attention_mask.shape != ids.shape:
            raise ValueError(
                f"attention_mask has shape {tuple(attention_mask.shape)}; it must be that of ids, "
                f"{tuple(ids.shape)}"
            )
        real = attention_mask.bool()
        if not real[:, -1].all() or (real[:, :-1] & ~real[:, 1:]).any():
            raise ValueError(
                "attention_mask has padding right of a token; pad prompts on the left, so that "
                "every row ends with its last token"
            )


### END SOLUTION
