"""The reference against the transformers library: where they agree, and each place where not.

Compared in float32 on random rows. The library's top-p adds up from the other end, so rows in which
a nucleus ends within rounding of p are left out, and counted.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from course_lib.given.minigpt import MiniGPT
from solutions.generate import generate
from solutions.repetition import apply_repetition_penalty
from solutions.sampling import next_token
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import min_p_filter, top_p_filter

from .helpers import HALVES, INF, hoeffding, kept, left_pad, log, random_ids, seeded, tiny

NO_IDS = torch.zeros(1, 0, dtype=torch.long)


def random_rows(count: int = 3000, vocab: int = 40, seed: int = 0) -> Tensor:
    """Rows flat and sharp, a third of them with a third of their tokens banned; no two logits of a
    row are equal."""
    chance = seeded(seed)
    logits = torch.randn(count, vocab, generator=chance)
    logits *= torch.rand(count, 1, generator=chance) * 8
    banned = torch.rand(count, vocab, generator=chance) < 1 / 3
    banned[::3], banned[1::3] = False, False
    banned[:, 0] = False
    logits = logits.masked_fill(banned, -INF)
    finite = [row[row.isfinite()] for row in logits]
    assert all(len(row.unique()) == len(row) for row in finite)
    return logits


ROWS = random_rows()


def near(logits: Tensor, p: float) -> Tensor:
    """Which rows (batch,) have a nucleus that ends within 1e-5 of p: rounding may decide there."""
    mass = logits.double().sort(descending=True).values.softmax(-1).cumsum(-1)
    return ((mass - p).abs() < 1e-5).any(-1)


# --- the filters agree ---


@pytest.mark.parametrize("temperature", [0.1, 0.7, 1.0, 1.5, 20.0])
def test_temperature_agrees(temperature: float) -> None:
    theirs = TemperatureLogitsWarper(temperature)(NO_IDS, ROWS)
    assert torch.equal(apply_temperature(ROWS, temperature), theirs)


@pytest.mark.parametrize("k", [1, 2, 5, 39, 40, 1000])
def test_top_k_agrees(k: int) -> None:
    assert torch.equal(top_k_filter(ROWS, k), TopKLogitsWarper(k)(NO_IDS, ROWS))


def test_top_k_agrees_on_ties() -> None:
    rows = torch.randint(4, (2000, 9), generator=seeded()).float()
    for k in range(1, 10):
        assert torch.equal(top_k_filter(rows, k), TopKLogitsWarper(k)(NO_IDS, rows))


@pytest.mark.parametrize("p", [0.0, 1e-8, 0.1, 0.5, 0.9, 0.95, 0.99, 0.9999])
def test_top_p_agrees_where_rounding_does_not_decide(p: float) -> None:
    clear = ROWS[~near(ROWS, p)]
    # a mass within 1e-5 of 0.9999 is nothing rare
    assert len(clear) > len(ROWS) * (0.99 if p < 0.999 else 0.5)
    assert torch.equal(top_p_filter(clear, p), TopPLogitsWarper(p)(NO_IDS, clear))


@pytest.mark.parametrize("min_p", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_min_p_agrees(min_p: float) -> None:
    assert torch.equal(min_p_filter(ROWS, min_p), MinPLogitsWarper(min_p)(NO_IDS, ROWS))


@pytest.mark.parametrize("penalty", [0.5, 1.0, 1.2, 3.0])
def test_repetition_penalty_agrees(penalty: float) -> None:
    ids = torch.randint(ROWS.shape[1], (len(ROWS), 30), generator=seeded())
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(ids, ROWS)
    assert torch.equal(apply_repetition_penalty(ROWS, ids, penalty), theirs)


def test_the_chain_of_filters_agrees() -> None:
    ids = torch.randint(ROWS.shape[1], (len(ROWS), 30), generator=seeded())
    theirs = RepetitionPenaltyLogitsProcessor(1.3)(ids, ROWS)
    theirs = TopKLogitsWarper(12)(ids, TemperatureLogitsWarper(0.8)(ids, theirs))
    ours = apply_repetition_penalty(ROWS, ids, 1.3)
    ours = top_k_filter(apply_temperature(ours, 0.8), 12)
    clear = ~near(ours, 0.9)
    assert clear.float().mean() > 0.99
    ours, theirs = top_p_filter(ours, 0.9), TopPLogitsWarper(0.9)(ids, theirs)
    assert torch.equal(ours[clear], theirs[clear])


# --- and differ, each difference by its name ---


def test_difference_temperature_zero_is_an_error_there_and_greedy_in_next_token() -> None:
    with pytest.raises(ValueError, match="strictly positive"):
        TemperatureLogitsWarper(0.0)
    assert next_token(torch.tensor([[1.0, 3.0, 2.0]]), temperature=0.0).tolist() == [[1]]


def test_difference_whole_numbers_are_refused_there_and_taken_here() -> None:
    logits, ids = torch.tensor([[2.0, 4.0]]), torch.tensor([[1]])
    with pytest.raises(ValueError, match="float"):
        TemperatureLogitsWarper(2)
    assert apply_temperature(logits, 2).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="float"):
        RepetitionPenaltyLogitsProcessor(2)
    assert apply_repetition_penalty(logits, ids, 2).tolist() == [[2, 2]]


def test_difference_top_k_zero_is_an_error_of_the_class_and_off_here() -> None:
    with pytest.raises(ValueError, match="strictly positive"):
        TopKLogitsWarper(0)
    assert kept(top_k_filter(torch.tensor([[1.0, 2.0]]), 0)) == [[0, 1]]


def test_difference_top_p_takes_the_highest_id_of_a_tie_there_and_the_lowest_here() -> None:
    logits = torch.zeros(1, 4)
    assert kept(top_p_filter(logits, 0.5)) == [[0, 1]]
    assert kept(TopPLogitsWarper(0.5)(NO_IDS, logits)) == [[2, 3]]


def test_difference_top_p_zero_keeps_the_last_of_the_best_there_and_the_first_here() -> None:
    logits = log(0.4, 0.2, 0.4)[None]
    assert kept(top_p_filter(logits, 0.0)) == [[0]]
    assert kept(TopPLogitsWarper(0.0)(NO_IDS, logits)) == [[2]]


def test_top_p_agrees_at_an_equality_that_floats_hold_exactly() -> None:
    logits = log(0.5, 0.25, 0.125, 0.0625, 0.0625)[None]
    for p in (0.5, 0.75, 0.875):
        assert torch.equal(top_p_filter(logits, p), TopPLogitsWarper(p)(NO_IDS, logits))


def test_difference_at_any_other_equality_rounding_decides() -> None:
    # ten equal steps of 0.1: the mass of n tokens is n/10, up to rounding that differs by the end
    # from which it is added up
    logits = log(*[0.1] * 10)[None]
    ours = [len(kept(top_p_filter(logits, n / 10))[0]) for n in range(1, 10)]
    theirs = [len(kept(TopPLogitsWarper(n / 10)(NO_IDS, logits))[0]) for n in range(1, 10)]
    assert ours != theirs
    for n, sizes in enumerate(zip(ours, theirs, strict=True), 1):
        assert set(sizes) <= {n, n + 1}


def test_difference_top_p_one_bans_what_has_no_probability_there_and_is_off_here() -> None:
    logits = torch.tensor([[0.0, -200.0, 1.0]])
    assert kept(top_p_filter(logits, 1.0)) == [[0, 1, 2]]
    assert kept(TopPLogitsWarper(1.0)(NO_IDS, logits)) == [[0, 2]]


def test_difference_padding_is_history_there_unless_its_length_is_given() -> None:
    logits, ids = torch.full((1, 3), 4.0), torch.tensor([[0, 0, 2]])
    theirs = RepetitionPenaltyLogitsProcessor(2.0)(ids, logits)
    assert theirs.tolist() == [[2, 4, 2]]
    ours = apply_repetition_penalty(logits, ids, 2.0, torch.tensor([[0, 0, 1]]))
    assert ours.tolist() == [[4, 4, 2]]
    # their `generate` does give it, see below
    told = RepetitionPenaltyLogitsProcessor(2.0, prompt_ignore_length=torch.tensor([2]))
    assert torch.equal(told(ids, logits), ours)


@pytest.mark.parametrize("dtype", HALVES)
def test_difference_half_precision_stays_there_and_is_float32_here(dtype: torch.dtype) -> None:
    logits = torch.tensor([[11.0625, 2.955]]).to(dtype)
    assert TemperatureLogitsWarper(0.7)(NO_IDS, logits).dtype == dtype
    assert apply_temperature(logits, 0.7).dtype == torch.float32


def test_difference_a_row_with_every_token_banned_is_an_error_here() -> None:
    banned = torch.full((1, 3), -INF)
    assert TopPLogitsWarper(0.9)(NO_IDS, banned).softmax(-1).isnan().all()
    with pytest.raises(ValueError, match="logits row 0"):
        next_token(banned, top_p=0.9)


# --- generate ---


def as_gpt2(model: MiniGPT) -> GPT2LMHeadModel:
    """The library's GPT-2 with MiniGPT's weights: one is the other without biases."""
    shape = model.config
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=shape.vocab_size,
            n_positions=shape.block_size,
            n_embd=shape.width,
            n_layer=shape.n_layers,
            n_head=shape.n_heads,
            activation_function="gelu_new",
            layer_norm_epsilon=1e-5,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    names = {
        "attn.c_attn": "attention.qkv",
        "attn.c_proj": "attention.out",
        "mlp.c_fc": "mlp_up",
        "mlp.c_proj": "mlp_down",
    }
    norms = {"ln_1": "attention_norm", "ln_2": "mlp_norm"}
    mine = model.state_dict()
    state = {
        "transformer.wte.weight": mine["token_embedding.weight"],
        "transformer.wpe.weight": mine["position_embedding.weight"],
        "lm_head.weight": mine["token_embedding.weight"],
    }
    for part in ("weight", "bias"):
        state[f"transformer.ln_f.{part}"] = mine[f"final_norm.{part}"]
        for layer in range(shape.n_layers):
            for theirs_name, name in norms.items():
                state[f"transformer.h.{layer}.{theirs_name}.{part}"] = mine[
                    f"blocks.{layer}.{name}.{part}"
                ]
    for layer in range(shape.n_layers):
        for theirs_name, name in names.items():
            weight = mine[f"blocks.{layer}.{name}.weight"]
            # their Conv1D keeps a matrix the other way round, and has a bias
            state[f"transformer.h.{layer}.{theirs_name}.weight"] = weight.T
            state[f"transformer.h.{layer}.{theirs_name}.bias"] = torch.zeros(weight.shape[0])
    theirs.load_state_dict(state)
    return theirs


@pytest.fixture(scope="module")
def ours() -> MiniGPT:
    return tiny(block_size=40, n_layers=3, width=24, n_heads=3)


@pytest.fixture(scope="module")
def theirs(ours: MiniGPT) -> GPT2LMHeadModel:
    return as_gpt2(ours)


def their_generate(model: GPT2LMHeadModel, ids: Tensor, new: int, **options: Any) -> Tensor:
    """The library's generate, with every knob off that is not named."""
    off = {"do_sample": False, "top_k": 0, "top_p": 1.0, "temperature": 1.0, "pad_token_id": 0}
    if not options.get("do_sample"):
        off = {"do_sample": False, "pad_token_id": 0}
    options = {"attention_mask": torch.ones_like(ids)} | off | options
    return model.generate(ids, max_new_tokens=new, **options)


def test_minigpt_is_a_gpt2_without_biases(ours: MiniGPT, theirs: GPT2LMHeadModel) -> None:
    ids = random_ids(ours, 4, 40)
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch,prompt,new", [(1, 1, 30), (5, 7, 25), (3, 30, 10)])
def test_greedy_ids_agree(
    ours: MiniGPT, theirs: GPT2LMHeadModel, batch: int, prompt: int, new: int
) -> None:
    ids = random_ids(ours, batch, prompt)
    expected = their_generate(theirs, ids, new)
    for use_cache in (True, False):
        result = generate(ours, ids, new, do_sample=False, use_cache=use_cache)
        assert torch.equal(result.ids, expected)


@pytest.mark.parametrize("penalty", [0.8, 1.2, 2.0])
def test_greedy_ids_with_a_repetition_penalty_agree(
    ours: MiniGPT, theirs: GPT2LMHeadModel, penalty: float
) -> None:
    ids = random_ids(ours, 4, 6)
    expected = their_generate(theirs, ids, 25, repetition_penalty=penalty)
    result = generate(ours, ids, 25, do_sample=False, repetition_penalty=penalty)
    assert torch.equal(result.ids, expected)


@pytest.mark.parametrize("penalty", [1.0, 1.5])
def test_greedy_ids_of_left_padded_rows_agree(
    ours: MiniGPT, theirs: GPT2LMHeadModel, penalty: float
) -> None:
    # with the padding an id that the rows say themselves, so that a penalty on it would be seen
    pad_id = int(generate(ours, random_ids(ours, 1, 9, seed=9), 1, do_sample=False).ids[0, -1])
    ids, mask = left_pad([random_ids(ours, 1, n, seed=n)[0] for n in (9, 1, 4, 6)], pad_id)
    options: dict[str, Any] = {"attention_mask": mask, "repetition_penalty": penalty}
    expected = their_generate(theirs, ids, 25, **options)
    assert pad_id in expected[:, 9:]
    for use_cache in (True, False):
        result = generate(ours, ids, 25, do_sample=False, use_cache=use_cache, **options)
        assert torch.equal(result.ids, expected)


def test_eos_and_filling_agree(ours: MiniGPT, theirs: GPT2LMHeadModel) -> None:
    ids = random_ids(ours, 6, 5)
    free = generate(ours, ids, 20, do_sample=False, repetition_penalty=1.3).ids
    # what two rows say soon, but not at once, ends them here
    ends = [int(free[0, 8]), int(free[1, 12])]
    for eos_id in (ends[0], ends):
        expected = their_generate(
            theirs, ids, 20, repetition_penalty=1.3, eos_token_id=eos_id, pad_token_id=30
        )
        result = generate(
            ours, ids, 20, do_sample=False, repetition_penalty=1.3, eos_id=eos_id, pad_id=30
        )
        assert torch.equal(result.ids, expected)
        assert "eos" in result.finish_reason
        assert 30 in result.ids[:, 5:]


def test_sampled_texts_have_the_same_distribution(ours: MiniGPT, theirs: GPT2LMHeadModel) -> None:
    draws = 20_000
    knobs: dict[str, Any] = {"temperature": 0.9, "top_k": 4, "top_p": 0.85}
    prompt = random_ids(ours, 1, 5)
    expected: dict[tuple[int, int], float] = {}
    with torch.no_grad():

        def chances(ids: Tensor) -> Tensor:
            logits = apply_temperature(ours(ids)[:, -1], 0.9)
            return top_p_filter(top_k_filter(logits, 4), 0.85).softmax(-1)[0]

        for first, share in enumerate(chances(prompt).tolist()):
            if share:
                after = chances(torch.cat([prompt, torch.tensor([[first]])], dim=1))
                expected |= {(first, i): share * s for i, s in enumerate(after.tolist()) if s}
    assert len(expected) >= 4, "an example that is worth drawing from"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        many = prompt.expand(draws, -1)
        drawn = {
            "theirs": their_generate(theirs, many, 2, do_sample=True, **knobs),
            "ours": generate(ours, many, 2, generator=seeded(), **knobs).ids,
        }
    # a right sampler fails this with a chance of at most 1e-10 over all seeds
    bound = hoeffding(draws, cells=len(expected))
    for name, ids in drawn.items():
        pairs, counts = ids[:, -2:].unique(dim=0, return_counts=True)
        found = {
            (int(one), int(two)): int(count) / draws
            for (one, two), count in zip(pairs, counts, strict=True)
        }
        assert found.keys() <= expected.keys(), f"{name}: a text that the filters forbid"
        for pair, share in expected.items():
            assert abs(found.get(pair, 0) - share) < bound, (name, pair)


def test_difference_no_new_tokens_is_an_error_there_and_the_prompt_here(
    ours: MiniGPT, theirs: GPT2LMHeadModel
) -> None:
    ids = random_ids(ours, 1, 4)
    with pytest.raises(ValueError, match="max_new_tokens"):
        their_generate(theirs, ids, 0)
    assert torch.equal(generate(ours, ids, 0).ids, ids)


def test_difference_past_the_window_is_an_error_there_and_slides_here(
    ours: MiniGPT, theirs: GPT2LMHeadModel
) -> None:
    ids = random_ids(ours, 1, 38)
    with pytest.raises(IndexError):
        their_generate(theirs, ids, 10)
    assert generate(ours, ids, 10, do_sample=False).new_tokens == [10]
