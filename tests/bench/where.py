"""Where the time of a step goes: the few calls that work on many numbers, and all the rest.

The work is torch's own, the same for all who decode in torch; what a decoder can do better is the
rest: small calls, and Python between them.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from course_lib.given.minigpt import MiniGPT
from solutions.generate import generate
from tests.bench.clock import Work
from tests.bench.rivals import KNOBS, OURS, PROMPT, TOTAL, TRANSFORMERS, prompt_ids, transformers

KINDS = {
    "matrix products": ("mm", "addmm", "bmm"),
    "attention": ("_scaled_dot_product_flash_attention_for_cpu",),
    "top-k, sorting, drawing": ("topk", "sort", "multinomial"),
}
REST = "all else"


def the_time_goes(rounds: int) -> list[dict[str, Any]]:
    """Milliseconds a step by kind, for one text and for 32: transformers and the course."""
    torch.set_num_threads(1)
    model = MiniGPT.from_pretrained()
    rows = []
    for batch in (1, 32):
        ids, new = prompt_ids(batch), TOTAL - PROMPT
        rivals: dict[str, Work] = {
            TRANSFORMERS: transformers(model, ids, new, **KNOBS, do_sample=True),
            OURS: partial(generate, model, ids, new, **KNOBS),
        }
        for name, work in rivals.items():
            found = milliseconds(work, rounds)
            per_step = {kind: round(ms / new, 4) for kind, ms in found.items()}
            rows.append({"name": name, "batch": batch, "ms": per_step})
    return rows


def milliseconds(work: Work, rounds: int) -> dict[str, float]:
    """By kind, the least of all rounds: whatever else the machine does can only add.

    The profiler slows down what is small, so the whole is timed without it.
    """
    work()
    wholes: list[float] = []
    kinds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        wholes.append(1000 * (time.perf_counter() - began))
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            work()
        spent = {event.key: event.self_cpu_time_total / 1000 for event in seen.key_averages()}
        for kind, calls in KINDS.items():
            kinds[kind].append(sum(spent.get(f"aten::{call}", 0.0) for call in calls))
    found = {kind: min(times) for kind, times in kinds.items()}
    return found | {REST: min(wholes) - sum(found.values())}
