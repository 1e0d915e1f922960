"""What is measured, section by section; each answers with plain data for the JSON."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from course_lib.given.fast import CompiledStep, FlatStep, continue_text, decoding_weights
from course_lib.given.minigpt import MiniGPT
from course_lib.given.pretrained import WEIGHTS, shipped_models
from course_lib.given.tokenizer import Tokenizer
from solutions.generate import generate
from solutions.kv_cache import KVCache, prefill
from solutions.sampling import next_token
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter
from tests.bench import training
from tests.bench.clock import interleaved, paired, spread
from tests.bench.rivals import (
    KNOBS,
    OURS,
    PROMPT,
    TOTAL,
    TRANSFORMERS,
    decoders,
    growing,
    prompt_ids,
)
from tests.solutions.shortlist import compare_all
from tests.solutions.test_transformers import as_gpt2
from tests.solutions.test_work import Ledger

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["torch", "transformers", "ctranslate2", "llama-cpp-python", "numpy", "tokenizers"]
FLOOR = "floor: weights read once"
READS = 40  # one reading of the weights is too short to be timed alone


def machine() -> dict[str, Any]:
    """Where and with what this was measured."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    cpu = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(": ")[2] if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "packages": found,
        "date": time.strftime("%Y-%m-%d"),
    }


def load() -> float:
    """How many processes want to run: ours is one of them."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0


def decoding(batch: int, threads: int, rounds: int) -> dict[str, Any]:
    """The main table: from PROMPT to TOTAL tokens a row, everybody in turn, and the floor."""
    torch.set_num_threads(threads)
    model = MiniGPT.from_pretrained()
    before = load()
    with tempfile.TemporaryDirectory() as folder:
        rivals = decoders(model, batch, threads, Path(folder))
        whole = torch.cat([weight.flatten() for weight in decoding_weights(model)])
        floor = {FLOOR: lambda: [whole.sum() for _ in range(READS)]}
        clock = time.process_time if threads == 1 else time.perf_counter
        seconds = interleaved(rivals | floor, rounds, clock)
    tokens = TOTAL - PROMPT
    a_floor = [value / READS for value in seconds[FLOOR]]
    rows = [
        {
            "name": name,
            "ms": spread(seconds[name], 1000 / tokens),
            "tokens_per_second": round(batch * tokens / spread(seconds[name])["median"]),
            "times_transformers": paired(seconds[TRANSFORMERS], seconds[name]),
            "times_floor": paired(seconds[name], [tokens * value for value in a_floor]),
        }
        for name in rivals
    ]
    return {
        "batch": batch,
        "threads": threads,
        "rounds": rounds,
        "load": [before, load()],
        "floor_ms": spread(a_floor, 1000),
        "rows": rows,
    }


def prefill_and_decode(rounds: int) -> list[dict[str, Any]]:
    """Reading a prompt of 128 tokens, and saying 64 after it, apart."""
    torch.set_num_threads(1)
    model = MiniGPT.from_pretrained()
    theirs = as_gpt2(model)
    ids = prompt_ids(1, 128)

    def new_cache() -> KVCache:
        return KVCache(model.n_layers, 1, model.n_heads, model.head_dim, TOTAL)

    def mine(new: int) -> object:
        return generate(model, ids, new, **KNOBS)

    def other(new: int) -> object:
        return theirs.generate(
            ids,
            max_new_tokens=new,
            do_sample=True,
            attention_mask=torch.ones_like(ids),
            pad_token_id=0,
            eos_token_id=None,
            **KNOBS,
        )

    @torch.inference_mode()
    def reading() -> object:
        return prefill(model, ids, new_cache())

    @torch.inference_mode()
    def their_reading() -> object:
        return theirs(ids, use_cache=True, logits_to_keep=1)

    seconds = interleaved(
        {
            "prefill ours": reading,
            "prefill theirs": their_reading,
            "1 ours": lambda: mine(1),
            "65 ours": lambda: mine(65),
            "1 theirs": lambda: other(1),
            "65 theirs": lambda: other(65),
        },
        rounds,
    )
    rows = []
    for name, who in ((OURS, "ours"), (TRANSFORMERS, "theirs")):
        decode = [b - a for a, b in zip(seconds[f"1 {who}"], seconds[f"65 {who}"], strict=True)]
        rows.append(
            {
                "name": name,
                "prefill_ms": spread(seconds[f"prefill {who}"], 1000),
                "first_token_ms": spread(seconds[f"1 {who}"], 1000),
                "decode_ms": spread(decode, 1000 / 64),
            }
        )
    return rows


def context(rounds: int) -> list[dict[str, Any]]:
    """The cost of a step by the length of the text, with the cache and without."""
    torch.set_num_threads(1)
    model = MiniGPT.from_pretrained()
    rows = []
    for length in (16, 32, 64, 128, 192, 256):
        seconds = interleaved(growing(model, length), 3 * rounds)
        rows.append(
            {"context": length} | {name: spread(row, 1000) for name, row in seconds.items()}
        )
    return rows


def sampling(rounds: int) -> list[dict[str, Any]]:
    """From logits to a token, by vocabulary: the filters one after the other, and next_token."""
    torch.set_num_threads(1)
    rows = []
    for vocab in (4096, 128_000):
        logits = torch.randn(1, vocab, generator=torch.Generator().manual_seed(0)) * 3

        @torch.inference_mode()
        def plainly(logits: torch.Tensor = logits) -> object:
            kept = top_p_filter(top_k_filter(logits / 0.8, 50), 0.95)
            return torch.multinomial(kept.softmax(-1), 1)

        @torch.inference_mode()
        def course(logits: torch.Tensor = logits) -> object:
            return next_token(logits, **KNOBS)

        @torch.inference_mode()
        def nucleus(logits: torch.Tensor = logits) -> object:
            return next_token(logits, top_p=0.95)

        seconds = interleaved(
            {
                "filters and multinomial": plainly,
                "next_token": course,
                "next_token, top-p alone": nucleus,
            },
            10 * rounds,
        )
        rows.append({"vocab": vocab} | {name: spread(row, 1000) for name, row in seconds.items()})
    return rows


def equal() -> dict[str, int]:
    """A million rows, in which `next_token` and the filters one after the other must agree."""
    return asdict(compare_all(1_000_000))


def starting(rounds: int) -> dict[str, Any]:
    """Seconds from Enter to something: imports, the model, a story's first token; memory too."""
    python = [sys.executable, "-P"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def run(*arguments: str) -> None:
        subprocess.run([*python, *arguments], env=env, check=True, capture_output=True, cwd=ROOT)

    whole = "course_lib.given.cli, course_lib.given.story, course_lib.given.notebook"
    whole += ", course_lib.given.plots, course_lib.checks, solutions.generate"
    seconds = interleaved(
        {
            "import torch": lambda: run("-c", "import torch"),
            "import the course": lambda: run("-c", f"import {whole}"),
            "first token of course generate": lambda: run(
                "-m", "course_lib", "generate", "Once upon a time", "--max-new-tokens", "1"
            ),
        },
        rounds,
        lambda: sum(os.times()[2:4]),  # of the processes that were started
    )
    path = shipped_models() / WEIGHTS
    loading = interleaved(
        {
            "model": MiniGPT.from_pretrained,
            "tokenizer": Tokenizer.from_pretrained,
            "reading the file alone": path.read_bytes,
        },
        3 * rounds,
    )
    return {
        "seconds": {name: spread(row, digits=3) for name, row in seconds.items()},
        "import_ratio": paired(seconds["import the course"], seconds["import torch"]),
        "load_ms": {name: spread(row, 1000) for name, row in loading.items()},
        "peak_mb": {name: _peak(code) for name, code in _MEMORY.items()},
    }


_STORY = (
    "import torch; torch.set_num_threads(1); from course_lib.given.minigpt import MiniGPT;"
    "from tests.bench.rivals import *; m = MiniGPT.from_pretrained(); ids = prompt_ids(1);"
)
_MEMORY = {
    "import torch": "import torch",
    "the course, 240 tokens": (
        "from course_lib.given.minigpt import MiniGPT; from solutions.generate import generate;"
        "import torch; generate(MiniGPT.from_pretrained(), torch.ones(1, 16).long(), 240)"
    ),
    "transformers, 240 tokens": _STORY
    + "g = as_gpt2(m); g.generate(ids, attention_mask=ids * 0 + 1, max_new_tokens=240,"
    "do_sample=True, pad_token_id=0, eos_token_id=None)",
}


def _peak(code: str) -> int:
    """The most memory that a process of this code held, in MB; 0 where the system can't say."""
    code += (
        "\nfrom pathlib import Path\nstatus = Path('/proc/self/status')"
        "\nlines = status.read_text().splitlines() if status.exists() else []"
        "\nprint(*[line.split()[1] for line in lines if line.startswith('VmHWM')] or ['0'])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return round(int(run.stdout.split()[-1]) / 1024)


def train(rounds: int) -> dict[str, Any]:
    """A training step, ours beside nanoGPT's way."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    seconds = interleaved(training.steps(), rounds)
    ours, theirs = seconds.values()
    return {
        "batch": training.BATCH,
        "positions": training.POSITIONS,
        "ms": {name: spread(row, 1000, 1) for name, row in seconds.items()},
        "nanogpt_over_course": paired(theirs, ours),
    }


def calls() -> dict[str, int]:
    """How often a step calls torch: where a model is small, that is where the time goes."""
    model = MiniGPT.from_pretrained()
    theirs, ids, flat = as_gpt2(model), prompt_ids(1), FlatStep(model)
    theirs.generation_config.eos_token_id = None

    def other(new: int) -> object:
        options = {"attention_mask": torch.ones_like(ids), "pad_token_id": 0, "do_sample": True}
        return theirs.generate(ids, max_new_tokens=new, **options, **KNOBS)

    rivals = {
        TRANSFORMERS: other,
        OURS: lambda new: generate(model, ids, new, **KNOBS),
        "the course, greedy": lambda new: generate(model, ids, new, do_sample=False),
        "lesson 9: flat": lambda new: continue_text(flat, ids[0].tolist(), new, **KNOBS),
    }
    found = {}
    for name, rival in rivals.items():
        counts = []
        for new in (5, 6):
            with Ledger() as ledger:
                rival(new)
            counts.append(ledger.calls.total())
        found[name] = counts[1] - counts[0]
    return found


def quality(text: Path) -> dict[str, Any]:
    """Bits per byte of held-out stories in float32 and in int8, by the compiled step."""
    tokenizer, model = Tokenizer.from_pretrained(), MiniGPT.from_pretrained()
    stories = [s.strip() for s in text.read_text(encoding="utf-8").split("<|endoftext|>")]
    stories = [s for s in stories if s][:400]
    found: dict[str, Any] = {"stories": len(stories)}
    for name, step in (
        ("float32", CompiledStep(model)),
        ("int8", CompiledStep(model, int8=True)),
    ):
        nats, size = 0.0, 0
        for story in stories:
            ids = [tokenizer.eos_id, *tokenizer.encode(story)][: model.block_size]
            step.reset()
            logits = torch.stack([step(token).clone() for token in ids[:-1]])
            nats += F.cross_entropy(logits, torch.tensor(ids[1:]), reduction="sum").item()
            size += len(tokenizer.decode(ids[1:]).encode())
        found[name] = round(nats / size / torch.tensor(2.0).log().item(), 5)
    return found
