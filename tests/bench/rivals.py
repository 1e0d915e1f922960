"""Everything that decodes with MiniGPT's weights, each as a function without arguments."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.given.fast import CompiledStep, FlatStep, NoCompiler, continue_text
from course_lib.given.minigpt import MiniGPT
from solutions.generate import generate
from tests.bench.clock import Work
from tests.bench.exports import pieces, to_ctranslate2, to_gguf
from tests.bench.numpy_gpt import NumpyGPT
from tests.solutions.test_transformers import as_gpt2

KNOBS: dict[str, Any] = {"temperature": 0.8, "top_k": 50, "top_p": 0.95}
PROMPT, TOTAL = 16, 256

TRANSFORMERS = "transformers"
OURS = "the course"


def prompt_ids(batch: int, length: int = PROMPT) -> Tensor:
    """The same ids for everybody: (batch, length), no end of text among them."""
    row = torch.randint(1, 4096, (1, length), generator=torch.Generator().manual_seed(0))
    return row.expand(batch, -1).contiguous()


def decoders(model: MiniGPT, batch: int, threads: int, folder: Path) -> dict[str, Work]:
    """All that can make TOTAL - PROMPT sampled tokens a row, by name; ends are switched off."""
    ids, new = prompt_ids(batch), TOTAL - PROMPT
    found: dict[str, Work] = {
        TRANSFORMERS: transformers(model, ids, new, **KNOBS, do_sample=True),
        "transformers, greedy": transformers(model, ids, new, do_sample=False),
        OURS: lambda: generate(model, ids, new, **KNOBS),
        "the course, no filter": lambda: generate(model, ids, new),
        "the course, greedy": lambda: generate(model, ids, new, do_sample=False),
    }
    if find_spec("ctranslate2"):
        found["CTranslate2"] = _ctranslate2(model, ids, new, threads, folder, None)
        found["CTranslate2, int8"] = _ctranslate2(model, ids, new, threads, folder, "int8")
    if batch > 1:
        return found
    found["the course, no cache"] = lambda: generate(model, ids, new, use_cache=False, **KNOBS)
    row = ids[0].tolist()
    flat = FlatStep(model)
    found["lesson 9: flat"] = lambda: continue_text(flat, row, new, **KNOBS)
    try:
        compiled, small = CompiledStep(model), CompiledStep(model, int8=True)
        found["lesson 9: C++"] = lambda: continue_text(compiled, row, new, **KNOBS)
        found["lesson 9: C++, int8"] = lambda: continue_text(small, row, new, **KNOBS)
    except NoCompiler as error:
        print(error)
    in_numpy, chance = NumpyGPT(model), np.random.default_rng(0)
    found["NumPy"] = lambda: in_numpy.generate(row, new, chance, **KNOBS)
    if find_spec("llama_cpp") and find_spec("gguf"):
        found["llama.cpp"] = _llama(model, row, new, threads, folder, q8=False)
        found["llama.cpp, q8_0"] = _llama(model, row, new, threads, folder, q8=True)
    return found


def transformers(model: MiniGPT, ids: Tensor, new: int, **options: Any) -> Work:
    """Their `generate`, with the model's weights."""
    theirs = as_gpt2(model)
    theirs.generation_config.eos_token_id = None
    options |= {"attention_mask": torch.ones_like(ids), "pad_token_id": 0}
    return lambda: theirs.generate(ids, max_new_tokens=new, **options)


def _ctranslate2(
    model: MiniGPT, ids: Tensor, new: int, threads: int, folder: Path, quantization: str | None
) -> Work:
    import ctranslate2

    path = to_ctranslate2(model, folder / f"ctranslate2-{quantization}", quantization)
    engine = ctranslate2.Generator(
        str(path), intra_threads=threads, inter_threads=1, compute_type=quantization or "float32"
    )
    names = pieces()
    rows = [[names[i] for i in row] for row in ids.tolist()]
    return lambda: engine.generate_batch(
        rows,
        max_length=new,
        min_length=new,
        sampling_topk=KNOBS["top_k"],
        sampling_topp=KNOBS["top_p"],
        sampling_temperature=KNOBS["temperature"],
        include_prompt_in_result=False,
        end_token=[],
    )


def _llama(
    model: MiniGPT, row: list[int], new: int, threads: int, folder: Path, *, q8: bool
) -> Work:
    import llama_cpp

    path = to_gguf(model, folder / f"minigpt-{'q8' if q8 else 'f32'}.gguf", q8=q8)
    engine = llama_cpp.Llama(
        str(path), n_ctx=TOTAL, n_threads=threads, n_threads_batch=threads, verbose=False
    )

    def run() -> list[int]:
        engine.reset()
        made = []
        for token in engine.generate(
            row,
            temp=KNOBS["temperature"],
            top_k=KNOBS["top_k"],
            top_p=KNOBS["top_p"],
            min_p=0.0,
            repeat_penalty=1.0,
        ):
            made.append(token)
            if len(made) == new:
                break
        return made

    return run


def growing(model: MiniGPT, length: int) -> dict[str, Callable[[], object]]:
    """One more token after `length`, with our cache and without: what a step costs by context."""
    from solutions.kv_cache import KVCache, decode_step, prefill

    ids = prompt_ids(1, length)
    cache = KVCache(model.n_layers, 1, model.n_heads, model.head_dim, TOTAL)
    with torch.inference_mode():
        prefill(model, ids[:, :-1], cache)

    @torch.inference_mode()
    def cached() -> None:
        cache.lengths = [length - 1] * model.n_layers
        decode_step(model, ids[:, -1:], cache)

    @torch.inference_mode()
    def again() -> None:
        model(ids)

    return {"cached": cached, "no cache": again}
