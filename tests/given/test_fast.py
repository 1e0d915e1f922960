"""The fast ways to decode say what MiniGPT and the reference say, also without a compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from course_lib.given import fast
from course_lib.given.fast import (
    CompiledStep,
    FlatStep,
    NoCompiler,
    Step,
    continue_text,
    decoding_weights,
    quantised,
)
from course_lib.given.minigpt import MiniGPT
from solutions.generate import generate
from solutions.sampling import inverse_cdf
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter
from tests.solutions.helpers import random_ids, seeded, tiny

KNOBS: list[dict[str, Any]] = [
    {"do_sample": False},
    {},
    {"temperature": 0.0},
    {"temperature": 0.8, "top_k": 50, "top_p": 0.95},
    {"temperature": 1.3, "top_k": 5},
    {"top_p": 0.9},
    {"top_k": 10_000, "top_p": 0.0},
]


@pytest.fixture(scope="module")
def shipped() -> MiniGPT:
    return MiniGPT.from_pretrained()


@pytest.fixture(scope="module")
def steps(shipped: MiniGPT) -> dict[str, Step]:
    return {
        "flat": FlatStep(shipped),
        "flat, (out, in)": FlatStep(shipped, by_input=False),
        "compiled": CompiledStep(shipped),
    }


NAMES = ["flat", "flat, (out, in)", "compiled"]


@pytest.mark.parametrize("name", NAMES)
def test_a_step_gives_the_logits_of_the_model(
    shipped: MiniGPT, steps: dict[str, Step], name: str
) -> None:
    ids = random_ids(shipped, 1, 40)
    with torch.inference_mode():
        expected = shipped(ids)[0]
    step = steps[name]
    step.reset()
    for position, token in enumerate(ids[0].tolist()):
        torch.testing.assert_close(step(token), expected[position], rtol=1e-4, atol=1e-4)
        assert step.length == position + 1


@pytest.mark.parametrize("knobs", KNOBS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_ids_are_those_of_generate_with_the_same_seed(
    shipped: MiniGPT, steps: dict[str, Step], name: str, knobs: dict[str, Any]
) -> None:
    ids = torch.tensor([[412, 88, 1034]])
    for seed in range(2):
        expected = generate(shipped, ids, 60, eos_id=0, generator=seeded(seed), **knobs)
        found = continue_text(
            steps[name], ids[0].tolist(), 60, eos_id=0, generator=seeded(seed), **knobs
        )
        assert found == expected.ids[0].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_it_ends_where_the_window_is_full(steps: dict[str, Step], name: str) -> None:
    step = steps[name]
    text = continue_text(step, [5] * 250, 100, do_sample=False)
    # the last token is decided by the full window and not read any more
    assert len(text) == step.block_size + 1
    with pytest.raises(ValueError, match="window is full: 256 tokens"):
        step(1)
    assert continue_text(step, [5], 0) == [5]


@pytest.mark.parametrize("sizes", [{"vocab_size": 31}, {"width": 24, "n_heads": 3}], ids=str)
def test_sizes_that_are_no_multiples_of_four_are_right_too(sizes: dict[str, int]) -> None:
    model = tiny(**{"n_layers": 3, **sizes})
    ids = random_ids(model, 1, 10)
    with torch.inference_mode():
        expected = model(ids)[0, -1]
    for step in (FlatStep(model), CompiledStep(model)):
        for token in ids[0].tolist():
            logits = step(token)
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("token", [-1, 31])
def test_cpp_is_never_asked_for_a_token_outside_of_the_vocabulary(token: int) -> None:
    with pytest.raises(ValueError, match=f"token={token} is not allowed: ids are 0 to 30"):
        CompiledStep(tiny())(token)


def test_the_model_is_left_as_it_was() -> None:
    model = tiny()
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    strides = [weights.stride() for weights in model.parameters()]
    for step in (FlatStep(model), CompiledStep(model), CompiledStep(model, int8=True)):
        continue_text(step, [1, 2], 5)
    assert all(torch.equal(model.state_dict()[name], weights) for name, weights in before.items())
    assert [weights.stride() for weights in model.parameters()] == strides


# --- the choice in C++ ---


def choices(logits: torch.Tensor, us: list[float], **knobs: Any) -> list[int]:
    return [
        fast._choice_in_cpp(
            logits, knobs.get("temperature", 1.0), knobs.get("top_k", 0), knobs.get("top_p"), u
        )
        for u in us
    ]


@pytest.mark.parametrize("vocab", [1, 7, 300])
@pytest.mark.parametrize("banned", [False, True])
def test_the_choice_in_cpp_is_the_filters_and_the_inverse_cdf(vocab: int, banned: bool) -> None:
    us = torch.rand(20, dtype=torch.float64, generator=seeded(3))
    for seed in range(40):
        logits = torch.randn(vocab, generator=seeded(seed)) * (1 + seed % 5)
        if seed % 3 == 0:
            logits = (logits * 2).round() / 2  # ties
        if banned:
            logits[1::2] = -torch.inf
        knobs: dict[str, Any] = {
            "temperature": (0.5, 1.0, 2.0)[seed % 3],
            "top_k": (0, 1, 3, 50, 400)[seed % 5],
            "top_p": (None, 0.0, 0.3, 0.9, 1.0)[seed // 5 % 5],
        }
        kept = top_k_filter(apply_temperature(logits[None], knobs["temperature"]), knobs["top_k"])
        probs = top_p_filter(kept, knobs["top_p"]).softmax(-1)
        expected = inverse_cdf(probs.expand(20, -1), us)[:, 0].tolist()
        assert choices(logits, us.tolist(), **knobs) == expected


@pytest.mark.parametrize("u", [0.0, 1 - 2**-53])
def test_the_choice_in_cpp_never_finds_a_banned_token(u: float) -> None:
    logits = torch.tensor([-torch.inf, 1.0, 0.5, -torch.inf])
    assert choices(logits, [u]) == [1 if u == 0 else 2]


def test_the_choice_in_cpp_takes_the_lowest_id_of_a_tie_when_greedy() -> None:
    assert choices(torch.tensor([1.0, 3.0, 3.0]), [0.0], temperature=0.0) == [1]


# --- int8 ---


def test_a_quantised_weight_is_right_to_half_a_step() -> None:
    weight = torch.randn(30, 17, generator=seeded()) * 3
    weight[4] = 0
    small, scale = quantised(weight)
    assert small.dtype == torch.int8
    assert ((small * scale[:, None] - weight).abs() <= scale[:, None] * 0.501).all()
    assert small[weight.abs().amax(1) > 0].abs().amax(1).eq(127).all()


def test_int8_is_near_to_the_model_and_not_the_same(shipped: MiniGPT) -> None:
    ids = random_ids(shipped, 1, 20)
    with torch.inference_mode():
        expected = shipped(ids)[0, -1]
    step = CompiledStep(shipped, int8=True)
    for token in ids[0].tolist():
        logits = step(token)
    distance = (logits.softmax(-1) - expected.softmax(-1)).abs().sum()
    assert 0 < distance < 0.2


def test_int8_computes_what_its_rounded_weights_say() -> None:
    model, rounded = tiny(), tiny()
    with torch.no_grad():
        for name, weights in rounded.named_parameters():
            if weights.ndim == 2 and "embedding" not in name:
                small, scale = quantised(weights)
                weights.copy_(small * scale[:, None])
    step, ids = CompiledStep(model, int8=True), random_ids(model, 1, 8)
    for token in ids[0].tolist():
        step(token)
    with torch.inference_mode():
        x: list[torch.Tensor] = []
        handle = rounded.final_norm.register_forward_hook(lambda _, __, out: x.append(out))
        rounded(ids)
        handle.remove()
    small, scale = quantised(model.token_embedding.weight.detach())
    expected = x[0][0, -1] @ (small * scale[:, None]).T
    torch.testing.assert_close(step.logits, expected, rtol=1e-4, atol=1e-4)


# --- the floor ---


def test_the_floor_counts_every_weight_but_the_table_of_positions(shipped: MiniGPT) -> None:
    counted = sum(weight.numel() for weight in decoding_weights(shipped))
    assert counted == 4_264_448 - 256 * 256


# --- no compiler ---


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_library", None)


@pytest.mark.usefixtures("uncompiled")
def test_without_a_compiler_one_line_says_so_and_the_flat_step_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(NoCompiler, match="there is no C\\+\\+ compiler here: install one") as error:
        CompiledStep(tiny())
    assert "\n" not in str(error.value)
    assert len(continue_text(FlatStep(tiny()), [1], 3)) == 4


@pytest.mark.usefixtures("uncompiled")
def test_a_compiler_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "fast.cpp"
    broken.write_text("this is no C++")
    monkeypatch.setattr(fast, "SOURCE", broken)
    with pytest.raises(NoCompiler, match=r"can't compile fast.cpp: .*error"):
        CompiledStep(tiny())


def test_compiling_does_not_change_how_torch_rounds_tiny_numbers() -> None:
    """With -ffast-math a library sets the processor to flush tiny numbers to 0, for all others."""
    fast.compiled()
    tiny_number = torch.tensor([1e-40]) * torch.tensor([1.0])
    assert tiny_number.item() > 0


# --- what starting costs ---


def test_starting_imports_nothing_that_a_story_does_not_need() -> None:
    code = (
        "import sys, course_lib.given.cli, course_lib.given.story, course_lib.generate;"
        "heavy = {'matplotlib', 'PIL', 'IPython', 'ipywidgets', 'transformers', 'pandas', 'scipy'};"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
