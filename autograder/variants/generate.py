"""Right ways to write generate and stream."""

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import torch
from torch import Tensor

from solutions import generate as solution
from solutions.generate import Generation
from solutions.kv_cache import KVCache
from solutions.repetition import apply_repetition_penalty
from solutions.sampling import next_token

from ..bank import Bank

bank = Bank("generate")


@bank.variant("generate")
def one_plain_loop(
    model: Any,
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
    streamer: Callable[[Tensor], object] | None = None,
) -> Generation:
    """All in one function: always a mask, a cache of full size, lists for the rows."""
    if max_new_tokens < 0 or ids.shape[1] == 0 or on_overflow not in ("slide", "stop"):
        raise ValueError("a wrong argument")
    ends = [] if eos_id is None else [eos_id] if isinstance(eos_id, int) else [*eos_id]
    if pad_id is None:
        pad_id = ends[0] if ends else 0
    mask = torch.ones_like(ids) if attention_mask is None else attention_mask
    size, batch = model.block_size, len(ids)
    reasons, counts = [""] * batch, [0] * batch
    read, work, begun, training = 0, 0, time.time(), model.training
    cache = KVCache(model.n_layers, batch, model.n_heads, model.head_dim, size)
    model.eval()
    try:
        while max(counts) < max_new_tokens and "" in reasons:
            if on_overflow == "stop" and read == size:
                reasons = [reason or "overflow" for reason in reasons]
                break
            with torch.inference_mode():
                if use_cache and 0 < read < size:
                    fed, read = ids[:, -1:], read + 1
                    logits = model(fed, cache=cache, attention_mask=mask)
                else:
                    fed = ids[:, -size:]
                    read = fed.shape[1]
                    # the window slid: a fresh cache for it
                    cache = KVCache(model.n_layers, batch, model.n_heads, model.head_dim, size)
                    logits = model(
                        fed, cache=cache if use_cache else None, attention_mask=mask[:, -size:]
                    )
                work += fed.shape[1]
                token = next_token(
                    apply_repetition_penalty(logits[:, -1], ids, repetition_penalty, mask),
                    temperature=temperature,
                    top_k=top_k,
                    top_p=top_p,
                    do_sample=do_sample,
                    generator=generator,
                )
            column = []
            for row, chosen in enumerate(token.flatten().tolist()):
                column.append(pad_id if reasons[row] else chosen)
                counts[row] += not reasons[row]
                reasons[row] = reasons[row] or ("eos" if chosen in ends else "")
            new = torch.tensor(column)[:, None]
            ids, mask = torch.cat([ids, new], 1), torch.cat([mask, torch.ones_like(new)], 1)
            if streamer:
                streamer(new)
    finally:
        model.train(training)
    speed = sum(counts) / max(time.time() - begun, 1e-9)
    return Generation(ids, [reason or "length" for reason in reasons], counts, speed, work)


# --- the same step by other means ---

CHOOSE = """\
            token = next_token(
                logits,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                do_sample=do_sample,
                generator=generator,
            )
"""
PENALTY = """\
            if repetition_penalty != 1.0:
                logits = apply_repetition_penalty(logits, ids, repetition_penalty, mask)
"""
IMPORT = "from .sampling import next_token\n"
FILTERS = (
    "from .temperature import apply_temperature\n"
    "from .top_k import top_k_filter\n"
    "from .top_p import top_p_filter\n"
)
# next_token still says what is greedy, and which rows decide nothing
DRAW = """\
            best = next_token(logits, temperature=0, top_k=top_k, top_p=top_p)
            if do_sample and temperature != 0:
                logits = apply_temperature(logits, temperature)
                logits = top_p_filter(top_k_filter(logits, top_k), top_p)
                DRAWN
            else:
                token = best
"""

bank.variant_by_edit(
    "multinomial",
    "generate",
    (IMPORT, IMPORT + FILTERS),
    (
        CHOOSE,
        DRAW.replace(
            "DRAWN", "token = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)"
        ),
    ),
)
bank.variant_by_edit(
    "gumbel_noise",
    "generate",
    (IMPORT, IMPORT + FILTERS),
    (
        CHOOSE,
        DRAW.replace(
            "DRAWN",
            "noise = torch.empty_like(logits).exponential_(generator=generator)\n"
            "                token = (logits - noise.log()).argmax(dim=-1, keepdim=True)",
        ),
    ),
)
bank.variant_by_edit(
    "penalty_after_temperature",
    "generate",
    (IMPORT, IMPORT + FILTERS),
    (
        PENALTY + CHOOSE,
        "            if do_sample and temperature != 0:\n"
        "                logits = apply_temperature(logits, temperature)\n"
        "                temperature_left = 1.0\n"
        "            else:\n"
        "                temperature_left = temperature\n"
        + PENALTY
        + CHOOSE.replace("=temperature,", "=temperature_left,"),
    ),
)
bank.variant_by_edit(
    "no_grad",
    "generate",
    ("        with torch.inference_mode():\n", "        with torch.no_grad():\n"),
)
bank.variant_by_edit(
    "always_a_mask",
    "generate",
    (
        "mask = attention_mask if attention_mask is not None and not attention_mask.all() "
        "else None",
        "mask = torch.ones_like(ids) if attention_mask is None else attention_mask",
    ),
)
bank.variant_by_edit(
    "prompt_in_pieces",
    "generate",
    (
        "            return prefill(self.model, context, self.cache, context_mask)\n",
        "            for start in range(0, context.shape[1], 2):\n"
        "                seen = None if context_mask is None else context_mask[:, : start + 2]\n"
        "                logits = prefill(\n"
        "                    self.model, context[:, start : start + 2], self.cache, seen\n"
        "                )\n"
        "            return logits\n",
    ),
)
bank.variant_by_edit(
    "calls_the_model_itself",
    "generate",
    (
        "return prefill(self.model, context, self.cache, context_mask)",
        "return self.model(context, cache=self.cache, attention_mask=context_mask)[:, -1]",
    ),
    (
        "return decode_step(self.model, ids[:, -1:], self.cache, mask)",
        "return self.model(ids[:, -1:], cache=self.cache, attention_mask=mask)[:, -1]",
    ),
)
bank.variant_by_edit(
    "fills_a_row_set_aside",
    "generate",
    (
        "    ids = ids.to(torch.long, copy=True)\n",
        "    whole = torch.full((batch, prompt_len + max_new_tokens), filling)\n"
        "    whole[:, :prompt_len] = ids\n"
        "    ids = whole[:, :prompt_len]\n",
    ),
    (
        "        ids = torch.cat([ids, token], dim=1)\n",
        "        whole[:, ids.shape[1]] = token[:, 0]\n"
        "        ids = whole[:, : ids.shape[1] + 1]\n",
    ),
)


# --- the stream ---


def steps(
    model: Any, tokenizer: Any, prompt: str, new: int, options: dict[str, Any]
) -> tuple[Tensor, Generator[Tensor, None, Generation]]:
    ids = torch.tensor([tokenizer.encode(prompt)], dtype=torch.long)
    return ids, solution._steps(model, ids, new, **options)


@bank.variant("stream")
def tells_what_was_added(
    model: Any, tokenizer: Any, prompt: str, max_new_tokens: int = 200, **options: Any
) -> Generator[str, None, Generation]:
    """Decodes the whole text each time, and tells what it has more than before."""
    ids, tokens = steps(model, tokenizer, prompt, max_new_tokens, options)
    said, told = ids[0].tolist(), ""
    while True:
        text = tokenizer.decode(said)
        if not text.endswith("\ufffd"):
            yield text[len(told) :]
            told = text
        try:
            said.append(next(tokens).item())
        except StopIteration as end:
            yield tokenizer.decode(said)[len(told) :]
            return end.value


@bank.variant("stream")
def one_token_ahead(
    model: Any, tokenizer: Any, prompt: str, max_new_tokens: int = 200, **options: Any
) -> Generator[str, None, Generation]:
    """Tells a token when the next one is there, the prompt with the first."""
    ids, tokens = steps(model, tokenizer, prompt, max_new_tokens, options)
    waiting: list[int] = ids[0].tolist()
    newest: list[int] = []
    while True:
        try:
            token = int(next(tokens))
        except StopIteration as end:
            yield tokenizer.decode(waiting + newest)
            return end.value
        waiting, newest = waiting + newest, [token]
        if not tokenizer.decode(waiting).endswith("\ufffd"):
            yield tokenizer.decode(waiting)
            waiting = []


@bank.variant("stream")
def eval_mode_all_along(
    model: Any, tokenizer: Any, prompt: str, max_new_tokens: int = 200, **options: Any
) -> Generator[str, None, Generation]:
    """Puts the model to eval mode once, and back in `finally`."""
    training = model.training
    model.eval()
    try:
        return (yield from solution.stream(model, tokenizer, prompt, max_new_tokens, **options))
    finally:
        model.train(training)
