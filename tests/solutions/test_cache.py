"""Lessons 7 and 8 on a real model: the cache changes the work and not the text.

Cached and uncached agree in their ids, for the same arguments and seed, and in the logits that
decided them to rtol 1e-4 and atol 1e-5. They are not equal bit by bit: the same sums are added up
in another order.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from course_lib.given.minigpt import MiniGPT
from solutions.generate import Generation, generate, stream
from solutions.kv_cache import decode_step, prefill

from .helpers import left_pad, new_cache, random_ids, seeded, tiny


@pytest.fixture(scope="module")
def small() -> MiniGPT:
    """A window of 16, to overflow soon."""
    return tiny()


@pytest.fixture(scope="module")
def wide() -> MiniGPT:
    """The window of the course's own model."""
    return tiny(seed=1, block_size=256)


@contextmanager
def watched(model: MiniGPT) -> Iterator[list[Tensor]]:
    """The logits (batch, pos, vocab) of each call of the model, while the block runs."""
    seen: list[Tensor] = []
    hook = model.register_forward_hook(lambda _module, _given, logits: seen.append(logits))
    try:
        yield seen
    finally:
        hook.remove()


def both_ways(
    model: MiniGPT, ids: Tensor, new: int, *, seed: int = 0, **options: Any
) -> Generation:
    """Generate with and without the cache; they must agree, and what the cached way gave is
    returned."""
    results, logits = [], []
    for use_cache in (True, False):
        with watched(model) as seen:
            results.append(
                generate(model, ids, new, use_cache=use_cache, generator=seeded(seed), **options)
            )
        assert results[-1].positions_forwarded == sum(call.shape[1] for call in seen)
        logits.append([call[:, -1] for call in seen])
    cached, plain = results
    assert torch.equal(cached.ids, plain.ids)
    assert cached.finish_reason == plain.finish_reason
    assert cached.new_tokens == plain.new_tokens
    assert len(logits[0]) == len(logits[1])
    for one, other in zip(*logits, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    return cached


# --- cached = uncached ---


def test_every_prompt_length_from_1_to_300_gives_the_same_tokens(wide: MiniGPT) -> None:
    text = random_ids(wide, 1, 300)
    for length in range(1, 301):
        both_ways(wide, text[:, :length], 2, seed=length)


def test_every_position_of_the_window_has_the_same_logits(wide: MiniGPT) -> None:
    ids, cache = random_ids(wide, 2, 256), new_cache(wide, 2)
    with torch.inference_mode():
        whole = wide(ids)
        steps = [prefill(wide, ids[:, :1], cache)]
        steps += [decode_step(wide, token, cache) for token in ids[:, 1:].split(1, dim=1)]
    torch.testing.assert_close(torch.stack(steps, dim=1), whole, rtol=1e-4, atol=1e-5)
    assert cache.length == 256


KNOBS: list[dict[str, Any]] = [
    {"do_sample": False},
    {"temperature": 0},
    {},
    {"temperature": 0.7, "top_k": 8},
    {"temperature": 1.5, "top_p": 0.8},
    {"do_sample": False, "repetition_penalty": 1.5},
    {"temperature": 0.9, "top_k": 12, "top_p": 0.9, "repetition_penalty": 1.2},
]


@pytest.mark.parametrize("knobs", KNOBS, ids=str)
@pytest.mark.parametrize("batch,prompt", [(1, 1), (4, 5), (2, 16), (3, 21)])
def test_all_knobs_and_batches_give_the_same_tokens_past_the_window_too(
    small: MiniGPT, batch: int, prompt: int, knobs: dict[str, Any]
) -> None:
    result = both_ways(small, random_ids(small, batch, prompt), 20, **knobs)
    assert result.ids.shape == (batch, prompt + 20)


@pytest.mark.parametrize("on_overflow", ["slide", "stop"])
def test_rows_that_end_give_the_same_tokens(small: MiniGPT, on_overflow: str) -> None:
    ids = random_ids(small, 6, 4)
    free = generate(small, ids, 12, generator=seeded()).ids
    ends = [int(free[0, 6]), int(free[1, 11])]
    result = both_ways(small, ids, 20, eos_id=ends, pad_id=0, on_overflow=on_overflow)
    assert "eos" in result.finish_reason


def test_a_model_in_double_precision_has_a_cache_to_match() -> None:
    model = tiny().double()
    with watched(model) as seen:
        cached = generate(model, random_ids(model, 2, 4), 8, do_sample=False)
    assert {logits.dtype for logits in seen} == {torch.float64}
    plain = generate(model, random_ids(model, 2, 4), 8, do_sample=False, use_cache=False)
    assert torch.equal(cached.ids, plain.ids)


def test_a_model_in_bfloat16_runs_with_the_cache() -> None:
    # no ids are compared: half precision differs enough to change them, as the lesson says
    model = tiny().bfloat16()
    result = generate(model, random_ids(model, 2, 4), 20, generator=seeded())
    assert result.new_tokens == [20, 20]


# --- left padding ---

LENGTHS = (7, 1, 4, 10)


def padded(model: MiniGPT, pad_id: int = 0) -> tuple[list[Tensor], Tensor, Tensor]:
    rows = [random_ids(model, 1, n, seed=n)[0] for n in LENGTHS]
    return rows, *left_pad(rows, pad_id)


@pytest.mark.parametrize("new", [1, 6, 7, 25], ids=lambda new: f"new={new}")
@pytest.mark.parametrize("penalty", [1.0, 1.5], ids=lambda penalty: f"penalty={penalty}")
def test_a_padded_row_says_what_it_says_alone_past_the_window_too(
    small: MiniGPT, new: int, penalty: float
) -> None:
    rows, ids, mask = padded(small)
    options: dict[str, Any] = {"do_sample": False, "repetition_penalty": penalty}
    together = both_ways(small, ids, new, attention_mask=mask, **options).ids
    for row, told in zip(rows, together, strict=True):
        alone = generate(small, row[None], new, **options).ids[0]
        assert torch.equal(told[-len(alone) :], alone)


def test_a_prompt_longer_than_the_window_may_be_padded(small: MiniGPT) -> None:
    rows = [random_ids(small, 1, n, seed=n)[0] for n in (30, 18, 3)]
    ids, mask = left_pad(rows)
    together = both_ways(small, ids, 9, attention_mask=mask, do_sample=False).ids
    for row, told in zip(rows, together, strict=True):
        alone = generate(small, row[None], 9, do_sample=False).ids[0]
        assert torch.equal(told[-len(alone) :], alone)


def test_what_the_padding_holds_means_nothing(small: MiniGPT) -> None:
    _, ids, mask = padded(small)
    _, others, _ = padded(small, pad_id=17)
    one, other = (
        both_ways(small, given, 20, attention_mask=mask, repetition_penalty=1.3).ids[:, 10:]
        for given in (ids, others)
    )
    assert torch.equal(one, other)


def test_a_padded_row_that_ends_is_filled_and_the_others_go_on(small: MiniGPT) -> None:
    rows, ids, mask = padded(small)
    free = generate(small, ids, 20, attention_mask=mask, do_sample=False).ids
    end = int(free[1, 12])
    result = both_ways(small, ids, 20, attention_mask=mask, do_sample=False, eos_id=end, pad_id=5)
    for row, told, made in zip(rows, result.ids, result.new_tokens, strict=True):
        alone = generate(small, row[None], 20, do_sample=False, eos_id=end).ids[0, len(row) :]
        assert made == len(alone)
        assert torch.equal(told[10 : 10 + made], alone)
        assert (told[10 + made :] == 5).all()


@pytest.mark.parametrize("dtype", [torch.long, torch.int32, torch.bool, torch.float32])
def test_a_mask_of_any_number_type_is_taken_and_left_alone(
    small: MiniGPT, dtype: torch.dtype
) -> None:
    _, ids, mask = padded(small)
    expected = generate(small, ids, 12, attention_mask=mask, do_sample=False).ids
    given = mask.to(dtype)
    result = generate(small, ids, 12, attention_mask=given, do_sample=False).ids
    assert torch.equal(result, expected)
    assert torch.equal(given, mask.to(dtype))


def test_a_mask_without_padding_is_no_mask(small: MiniGPT) -> None:
    ids = random_ids(small, 2, 5)
    plain = generate(small, ids, 12, generator=seeded())
    result = generate(small, ids, 12, generator=seeded(), attention_mask=torch.ones_like(ids))
    assert torch.equal(result.ids, plain.ids)


# --- pieces, and caches side by side ---


@pytest.mark.parametrize("pieces", [[16], [1, 15], [15, 1], [5, 5, 6], [1] * 16], ids=str)
def test_a_prompt_in_pieces_fills_the_window_to_its_last_position(
    small: MiniGPT, pieces: list[int]
) -> None:
    ids, cache = random_ids(small, 2, 16), new_cache(small, 2)
    with torch.inference_mode():
        for piece in ids.split(pieces, dim=1):
            logits = prefill(small, piece, cache)
        torch.testing.assert_close(logits, small(ids)[:, -1], rtol=1e-4, atol=1e-5)
        with pytest.raises(ValueError, match="block_size=16"):
            decode_step(small, ids[:, :1], cache)
    assert cache.length == 16, "and the step that did not fit changed nothing"


def test_two_caches_may_take_turns(small: MiniGPT) -> None:
    texts = random_ids(small, 2, 16)
    caches = [new_cache(small) for _ in texts]
    with torch.inference_mode():
        whole = small(texts)
        for row, cache in enumerate(caches):
            prefill(small, texts[row : row + 1, : 3 + row], cache)
        for step in range(10):
            for row, cache in enumerate(caches):
                at = 3 + row + step
                logits = decode_step(small, texts[row : row + 1, at : at + 1], cache)
                torch.testing.assert_close(logits[0], whole[row, at], rtol=1e-4, atol=1e-5)


def test_a_cache_that_is_reset_is_a_new_one(small: MiniGPT) -> None:
    ids, cache = random_ids(small, 1, 9), new_cache(small)
    with torch.inference_mode():
        prefill(small, random_ids(small, 1, 16, seed=5), cache)
        cache.reset()
        logits = prefill(small, ids, cache)
        torch.testing.assert_close(logits, prefill(small, ids, new_cache(small)))


def test_two_calls_in_a_row_do_not_know_of_each_other(small: MiniGPT) -> None:
    ids = random_ids(small, 2, 5)
    first = generate(small, ids, 20, do_sample=False).ids
    generate(small, random_ids(small, 2, 9, seed=3), 20)
    assert torch.equal(generate(small, ids, 20, do_sample=False).ids, first)


def test_with_the_cache_generate_goes_through_its_siblings(
    small: MiniGPT, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in a learner's folder these are the learner's own
    module = importlib.import_module("solutions.generate")
    calls: list[str] = []

    def noted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            return original(*arguments, **options)

        return call

    for name in ("KVCache", "prefill", "decode_step"):
        monkeypatch.setattr(module, name, noted(name, getattr(module, name)))
    generate(small, random_ids(small, 1, 14), 5)
    assert calls == ["KVCache", "prefill", "decode_step", "decode_step", "prefill", "prefill"]
    calls.clear()
    generate(small, random_ids(small, 1, 14), 5, use_cache=False)
    assert calls == []


# --- the window, and the work ---


def forwards(prompt: int, new: int, window: int, *, use_cache: bool) -> int:
    """Positions forwarded, by the rule: without a cache each step reads all that fits; with one a
    token is read once, until the window is full and slides, and then each step reads a window."""
    total = 0
    for step in range(new):
        visible = min(prompt + step, window)
        anew = step == 0 or prompt + step > window or not use_cache
        total += visible if anew else 1
    return total


@pytest.mark.parametrize(
    "prompt,new,window,uncached,cached",
    [
        (11, 80, 32, 2329, 1888),
        (11, 80, 128, 4040, 90),  # the window is never full: P + N - 1
        (9, 150, 128, 12_060, 3_968),
        (9, 300, 256, 46_172, 13_568),
    ],
)
def test_positions_forwarded_are_the_worked_numbers(
    prompt: int, new: int, window: int, uncached: int, cached: int
) -> None:
    assert forwards(prompt, new, window, use_cache=False) == uncached
    assert forwards(prompt, new, window, use_cache=True) == cached
    model = tiny(block_size=window, n_layers=1, width=8, n_heads=1)
    ids = random_ids(model, 1, prompt)
    for use_cache, expected in ((False, uncached), (True, cached)):
        result = generate(model, ids, new, use_cache=use_cache, generator=seeded())
        assert result.positions_forwarded == expected
        assert result.new_tokens == [new]


@pytest.mark.parametrize("prompt", [1, 5, 15, 16, 17, 40])
@pytest.mark.parametrize("new", [1, 2, 11, 12, 30])
def test_positions_forwarded_follow_the_rule(small: MiniGPT, prompt: int, new: int) -> None:
    ids = random_ids(small, 2, prompt)
    for use_cache in (True, False):
        with watched(small) as seen:
            result = generate(small, ids, new, use_cache=use_cache, generator=seeded())
        expected = forwards(prompt, new, 16, use_cache=use_cache)
        assert result.positions_forwarded == expected
        assert sum(logits.shape[1] for logits in seen) == expected
        assert len(seen) == new, "one call a token"
        if use_cache and prompt + new - 1 <= 16:
            assert expected == prompt + new - 1


def test_the_work_is_counted_up_to_the_last_row_that_ends(small: MiniGPT) -> None:
    ids = random_ids(small, 1, 4)
    end = int(generate(small, ids, 6, do_sample=False, repetition_penalty=2.0).ids[0, 9])
    result = generate(small, ids, 50, do_sample=False, repetition_penalty=2.0, eos_id=end)
    assert result.positions_forwarded == 4 + result.new_tokens[0] - 1


@pytest.mark.parametrize("prompt", [1, 7, 11, 15, 16, 17, 40])
def test_stop_ends_when_no_further_forward_fits(small: MiniGPT, prompt: int) -> None:
    ids = random_ids(small, 2, prompt)
    made = 16 - min(prompt, 16) + 1
    stopped = both_ways(small, ids, 50, on_overflow="stop")
    assert stopped.new_tokens == [made, made]
    assert stopped.finish_reason == ["overflow", "overflow"]
    assert stopped.positions_forwarded == 16, "each position of the window once"
    slid = generate(small, ids, 50, generator=seeded())
    assert torch.equal(slid.ids[:, : prompt + made], stopped.ids)


@pytest.mark.parametrize("short", [0, 1])
def test_stop_is_length_if_that_comes_first_or_at_once(small: MiniGPT, short: int) -> None:
    result = both_ways(small, random_ids(small, 1, 10), 7 - short, on_overflow="stop")
    assert result.finish_reason == ["length"]
    assert result.new_tokens == [7 - short]


def test_a_slid_window_is_read_as_if_it_were_the_whole_text(small: MiniGPT) -> None:
    ids = random_ids(small, 1, 10)
    told = generate(small, ids, 30, do_sample=False).ids
    for end in (20, 27, 39):
        window = told[:, end - 16 : end]
        assert torch.equal(generate(small, window, 1, do_sample=False).ids[:, -1], told[:, end])


def test_keeping_the_old_keys_past_the_window_would_change_the_text() -> None:
    """Why the cache is rebuilt: with learned positions a key that stays in the cache still says the
    place where it was read. Cropped it is not what reading the window anew gives."""
    model = tiny(block_size=16)
    ids = random_ids(model, 1, 17)
    with torch.inference_mode():
        cache = new_cache(model)
        prefill(model, ids[:, :16], cache)
        cropped = new_cache(model)
        for layer in range(model.n_layers):
            kept_k, kept_v = cache.keys[layer][:, :, 1:16], cache.values[layer][:, :, 1:16]
            cropped.append(layer, kept_k, kept_v)
        wrong = decode_step(model, ids[:, 16:], cropped)
        right = prefill(model, ids[:, 1:], new_cache(model))
    assert (wrong - right).abs().max() > 0.05


# --- what the caller gets, and in which mode the caller's code runs ---


def train_a_little(model: torch.nn.Module, ids: Tensor) -> float:
    """One step of learning on a copy of the embedding: works on ordinary tensors only."""
    table = torch.nn.Embedding(31, 4)
    loss = table(ids).square().sum()
    loss.backward()
    assert table.weight.grad is not None
    return float(table.weight.grad.abs().sum())


@pytest.mark.parametrize("new", [0, 5])
def test_the_ids_returned_are_ordinary_tensors(small: MiniGPT, new: int) -> None:
    ids = generate(small, random_ids(small, 2, 3), new).ids
    assert not ids.is_inference()
    assert train_a_little(small, ids) > 0
    ids += 0  # and may be written to


def test_a_prompt_made_in_inference_mode_is_taken(small: MiniGPT) -> None:
    with torch.inference_mode():
        ids = random_ids(small, 2, 3)
    for new in (0, 5):
        assert train_a_little(small, generate(small, ids, new).ids) > 0


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_generate_works_inside_another_mode(small: MiniGPT, mode: Any) -> None:
    ids = random_ids(small, 2, 3)
    expected = generate(small, ids, 20, generator=seeded()).ids
    with mode():
        assert torch.equal(generate(small, ids, 20, generator=seeded()).ids, expected)


def test_the_streamer_is_called_once_a_step_outside_inference_mode(small: MiniGPT) -> None:
    seen: list[Tensor] = []

    def streamer(token: Tensor) -> None:
        assert not torch.is_inference_mode_enabled()
        assert torch.is_grad_enabled()
        assert not token.is_inference()
        assert train_a_little(small, token) > 0
        seen.append(token.clone())
        token.fill_(0)  # the token is the streamer's own

    result = generate(small, random_ids(small, 3, 4), 20, generator=seeded(), streamer=streamer)
    assert [tuple(token.shape) for token in seen] == [(3, 1)] * 20
    assert torch.equal(torch.cat(seen, dim=1), result.ids[:, 4:])
    expected = generate(small, random_ids(small, 3, 4), 20, generator=seeded())
    assert torch.equal(result.ids, expected.ids)


class Stop(Exception):
    """Raised by the caller's own code."""


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("use_cache", [True, False])
def test_a_streamer_that_raises_leaves_the_model_as_it_was(training: bool, use_cache: bool) -> None:
    def streamer(_token: Tensor) -> None:
        raise Stop

    model = tiny().train(training)
    with pytest.raises(Stop):
        generate(model, random_ids(model, 1, 3), 9, streamer=streamer, use_cache=use_cache)
    assert all(part.training is training for part in model.modules())
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("training", [True, False])
def test_the_training_flag_is_restored(training: bool) -> None:
    model = tiny().train(training)
    generate(model, random_ids(model, 1, 3), 20)
    assert all(part.training is training for part in model.modules())


@pytest.mark.parametrize("training", [True, False])
def test_the_training_flag_is_restored_when_the_model_raises(training: bool) -> None:
    model = tiny().train(training)
    calls = []

    def fail_at_the_third(*_: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise Stop

    hook = model.register_forward_pre_hook(fail_at_the_third)
    with pytest.raises(Stop):
        generate(model, random_ids(model, 1, 3), 9)
    hook.remove()
    assert all(part.training is training for part in model.modules())


def test_dropout_is_off_while_a_text_is_told_by_a_model_in_training() -> None:
    model, ids = tiny(dropout=0.5), random_ids(tiny(), 2, 3)
    expected = generate(model, ids, 20, do_sample=False).ids
    model.train()
    assert torch.equal(generate(model, ids, 20, do_sample=False).ids, expected)


# --- stream, with a real tokenizer ---

# written for this test: letters of one, two, three and four bytes, and joined emoji
SENTENCES = [
    "The hare ran and ran, and the tortoise walked. Who won? The tortoise!",
    "Der Hase schläft süß; die Schildkröte geht weiter. Größe ist nicht alles.",
    "Le lièvre rêve déjà, la tortue avance à son pas. Ça alors !",
    "兔子睡着了，乌龟慢慢走。最后谁赢了？乌龟！",
    "うさぎはねむる。かめはあるく。",
    "Заяц спит, черепаха идёт. Кто первый?",
    "الأرنب نائم والسلحفاة تمشي.",
    "🐢🐇 → 🏁 👩\u200d🚀👨\u200d👩\u200d👧 🇫🇷 e\u0301 ok 👍🏽",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A byte-level BPE, as the course's own; so few pieces that most letters are cut."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(SENTENCES, trainer)
    return made


@pytest.fixture(scope="module")
def speaker(tokenizer: Tokenizer) -> MiniGPT:
    """A model that draws almost any piece next: its text is a jumble of bytes."""
    return tiny(seed=3, vocab_size=tokenizer.get_vocab_size(), block_size=32)


class Reciter(torch.nn.Module):
    """A model that says the ids of a text one after the other."""

    block_size, n_layers, n_heads, head_dim = 4096, 1, 1, 1

    def __init__(self, text: list[int], start: int, vocab_size: int) -> None:
        super().__init__()
        self.text, self.start, self.vocab_size = text, start, vocab_size

    def forward(self, ids: Tensor, **_: Any) -> Tensor:
        logits = torch.zeros(1, ids.shape[1], self.vocab_size)
        logits[0, -1, self.text[ids.shape[1] - self.start]] = 9
        return logits


def drain(pieces: Generator[str, None, Generation]) -> tuple[list[str], Generation]:
    """All pieces of a stream, and what it returns."""
    told = []
    while True:
        try:
            told.append(next(pieces))
        except StopIteration as end:
            return told, end.value


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_pieces_are_whole_characters_and_joined_the_text(
    tokenizer: Tokenizer, sentence: str
) -> None:
    prompt, ids = "Once: ", tokenizer.encode(sentence).ids
    model = Reciter(ids, len(tokenizer.encode(prompt).ids), tokenizer.get_vocab_size())
    pieces = stream(model, tokenizer, prompt, len(ids), do_sample=False, use_cache=False)
    told, result = drain(pieces)
    assert told[0] == prompt
    assert "".join(told) == prompt + sentence == tokenizer.decode(result.ids[0].tolist())
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in told)
    assert len(told) > 5, "piece by piece"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("prompt", ["Once", "die Größe", "🐢"])
def test_the_pieces_of_any_ids_joined_are_the_decoded_whole(
    tokenizer: Tokenizer, speaker: MiniGPT, prompt: str, seed: int
) -> None:
    pieces = stream(speaker, tokenizer, prompt, 80, temperature=3.0, generator=seeded(seed))
    told, result = drain(pieces)
    assert result.new_tokens == [80]
    whole = tokenizer.decode(result.ids[0].tolist())
    assert "".join(told) == whole
    assert told[0] == prompt
    assert all(told), "no piece is empty"
    # bytes that are no text are in no piece but one that has something whole after them, or the end
    assert not any(piece.endswith("\N{REPLACEMENT CHARACTER}") for piece in told[:-1])


def test_a_stream_says_what_generate_says(tokenizer: Tokenizer, speaker: MiniGPT) -> None:
    ids = torch.tensor([tokenizer.encode("Once").ids])
    expected = generate(speaker, ids, 60, temperature=2.0, generator=seeded(5))
    for use_cache in (True, False):
        pieces = stream(
            speaker,
            tokenizer,
            "Once",
            60,
            temperature=2.0,
            generator=seeded(5),
            use_cache=use_cache,
        )
        _, result = drain(pieces)
        assert torch.equal(result.ids, expected.ids)
    assert result.finish_reason == expected.finish_reason


def test_special_tokens_are_not_told(tokenizer: Tokenizer) -> None:
    end = tokenizer.token_to_id("<|endoftext|>")
    ids = [*tokenizer.encode("The hare").ids, end]
    model = Reciter(ids, len(tokenizer.encode("So: ").ids), tokenizer.get_vocab_size())
    pieces = stream(model, tokenizer, "So: ", 99, do_sample=False, use_cache=False, eos_id=end)
    told, result = drain(pieces)
    assert "".join(told) == "So: The hare"
    assert result.finish_reason == ["eos"]


def modes() -> tuple[bool, bool]:
    return torch.is_inference_mode_enabled(), torch.is_grad_enabled()


def test_no_mode_leaks_into_the_consumer_of_a_stream(tokenizer: Tokenizer) -> None:
    model = tiny(vocab_size=tokenizer.get_vocab_size()).train()
    pieces = stream(model, tokenizer, "Once upon", 20, temperature=2.0, generator=seeded())
    for _ in pieces:
        assert modes() == (False, True)
        assert model.training
        # the consumer may even train the model in between
        model.zero_grad()
        model(torch.tensor([[1, 2, 3]])).sum().backward()
        assert model.token_embedding.weight.grad is not None
    assert modes() == (False, True)
    assert model.training


def test_a_stream_may_be_read_in_one_mode_and_on_in_another(
    tokenizer: Tokenizer, speaker: MiniGPT
) -> None:
    def pieces() -> Generator[str, None, Generation]:
        return stream(speaker, tokenizer, "Once", 50, temperature=2.0, generator=seeded())

    expected, whole = drain(pieces())
    told, reading = [], pieces()
    with torch.inference_mode():
        told += [next(reading) for _ in range(4)]
    told += [next(reading) for _ in range(4)]
    with torch.no_grad():
        told += [next(reading) for _ in range(4)]
    rest, result = drain(reading)
    assert told + rest == expected
    assert torch.equal(result.ids, whole.ids)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_stream_closed_early_leaves_everything_as_it_was(
    tokenizer: Tokenizer, training: bool, after: int
) -> None:
    model = tiny(vocab_size=tokenizer.get_vocab_size()).train(training)
    pieces = stream(model, tokenizer, "Once", 50, temperature=2.0, generator=seeded())
    for _ in range(after):
        next(pieces)
    pieces.close()
    assert all(part.training is training for part in model.modules())
    assert modes() == (False, True)
    assert list(pieces) == []


def test_a_stream_that_is_thrown_into_leaves_everything_as_it_was(tokenizer: Tokenizer) -> None:
    model = tiny(vocab_size=tokenizer.get_vocab_size()).train()
    pieces = stream(model, tokenizer, "Once", 50, temperature=2.0, generator=seeded())
    next(pieces), next(pieces)
    with pytest.raises(Stop):
        pieces.throw(Stop())
    assert model.training
    assert modes() == (False, True)


def test_two_streams_of_one_model_may_take_turns(tokenizer: Tokenizer) -> None:
    """The first to end once gave the model its dropout back while the other still spoke."""
    model = tiny(vocab_size=tokenizer.get_vocab_size(), dropout=0.5).train()

    def pieces(prompt: str, new: int) -> Generator[str, None, Generation]:
        return stream(model, tokenizer, prompt, new, temperature=2.0, generator=seeded(len(prompt)))

    alone = [list(pieces("Once", 10)), list(pieces("The hare", 40))]
    turns = list(zip_longest(pieces("Once", 10), pieces("The hare", 40)))
    for row, expected in enumerate(alone):
        assert [turn[row] for turn in turns if turn[row] is not None] == expected
    assert model.training


def test_the_speed_is_new_tokens_a_second(small: MiniGPT) -> None:
    result = generate(small, random_ids(small, 4, 3), 10)
    assert 0 < result.tokens_per_second < math.inf
    assert generate(small, random_ids(small, 4, 3), 0).tokens_per_second == 0
