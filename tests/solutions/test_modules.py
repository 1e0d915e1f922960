"""What holds for all eight modules of the reference: names, signatures, imports."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import solutions

MODULES = [
    "training",
    "temperature",
    "top_k",
    "top_p",
    "sampling",
    "repetition",
    "kv_cache",
    "generate",
]

# the contract's table, a line a function: its parameters, `*` before those given by name
SIGNATURES = {
    "training.next_token_loss": "logits, tokens, ignore_index=-100",
    "training.perplexity": "batches",
    "training.last_logits": "logits, attention_mask=None",
    "temperature.apply_temperature": "logits, temperature",
    "temperature.entropy": "logits",
    "top_k.top_k_filter": "logits, k",
    "top_p.top_p_filter": "logits, p",
    "top_p.min_p_filter": "logits, min_p",
    "sampling.greedy": "logits",
    "sampling.inverse_cdf": "probs, u",
    "sampling.sample": "probs, generator=None",
    "sampling.next_token": (
        "logits, *, temperature=1.0, top_k=None, top_p=None, do_sample=True, generator=None"
    ),
    "repetition.apply_repetition_penalty": "logits, ids, penalty, attention_mask=None",
    "repetition.apply_frequency_penalty": (
        "logits, ids, *, presence=0.0, frequency=0.0, attention_mask=None"
    ),
    "kv_cache.causal_mask": "query_len, key_len",
    "kv_cache.attend": "q, k, v, mask",
    "kv_cache.KVCache": (
        "n_layers, batch, heads, head_dim, capacity, *, dtype=torch.float32, device='cpu'"
    ),
    "kv_cache.KVCache.append": "self, layer, k, v",
    "kv_cache.KVCache.reset": "self",
    "kv_cache.KVCache.attend": "self, layer, q, k, v, key_mask=None",
    "kv_cache.prefill": "model, ids, cache, attention_mask=None",
    "kv_cache.decode_step": "model, token, cache, attention_mask=None",
    "generate.generate": (
        "model, ids, max_new_tokens, *, temperature=1.0, top_k=None, top_p=None, "
        "repetition_penalty=1.0, do_sample=True, eos_id=None, pad_id=None, attention_mask=None, "
        "use_cache=True, generator=None, on_overflow='slide', streamer=None"
    ),
    "generate.stream": "model, tokenizer, prompt, max_new_tokens=200, **options",
    "generate.Generation": (
        "ids, finish_reason, new_tokens, tokens_per_second, positions_forwarded"
    ),
}


def find(path: str) -> Any:
    """The object of a dotted path such as kv_cache.KVCache.append."""
    module, *names = path.split(".")
    found: Any = importlib.import_module(f"solutions.{module}")
    for name in names:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("path", SIGNATURES)
def test_signature_is_the_contracts(path: str) -> None:
    signature = inspect.signature(find(path))
    bare = signature.replace(
        parameters=[
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in signature.parameters.values()
        ],
        return_annotation=inspect.Signature.empty,
    )
    assert str(bare) == f"({SIGNATURES[path]})"


def test_the_modules_are_the_eight_of_the_contract() -> None:
    folder = Path(solutions.__file__).parent
    assert sorted(path.stem for path in folder.glob("[!_]*.py")) == sorted(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_names_the_lesson_number(name: str) -> None:
    number = MODULES.index(name) + 1
    assert (find(name).__doc__ or "").startswith(f"Lesson {number}: ")


@pytest.mark.parametrize("name", MODULES)
def test_imports_only_torch_jaxtyping_the_standard_library_and_siblings(name: str) -> None:
    tree = ast.parse(Path(find(name).__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots = {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level in (0, 1), "a sibling is one dot away"
            # `from .top_k import ...`: a sibling, which has to be one of the eight
            roots = {node.module.split(".")[0]} if node.level == 0 and node.module else set()
            if node.level:
                assert node.module in MODULES
        else:
            continue
        assert roots <= {"torch", "jaxtyping"} | sys.stdlib_module_names


@pytest.mark.parametrize("name", MODULES)
def test_each_function_of_the_contract_has_a_docstring(name: str) -> None:
    module = find(name)
    for path in SIGNATURES:
        owner, *rest = path.split(".")
        if owner == name and len(rest) == 1:
            assert inspect.getdoc(getattr(module, rest[0])), path
