"""Lesson 8: the rules of `generate` and `stream`, on models whose next token is known by heart.

What concerns the cache and the window of a real model is in test_cache.py.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from solutions.generate import Generation, generate, stream
from solutions.repetition import apply_repetition_penalty
from solutions.sampling import next_token

from .helpers import (
    INF,
    NAN,
    Bigram,
    Bytes,
    NoisyModel,
    Script,
    SumModel,
    Toy,
    random_ids,
    seeded,
    tiny,
)

# 0 -> 1 -> 4 and 2 -> 3 -> 0 -> 1 -> 4
CHAIN = [1, 4, 3, 0, 2]


def tell(model: Toy, ids: list[list[int]], new: int, **options: Any) -> Generation:
    """Greedy continuation by a toy, without a cache."""
    options = {"do_sample": False, "use_cache": False} | options
    return generate(model, torch.tensor(ids), new, **options)


# --- what comes back ---


def test_ids_hold_prompt_and_continuation() -> None:
    result = tell(Bigram(CHAIN), [[0], [2]], 3)
    assert result.ids.tolist() == [[0, 1, 4, 2], [2, 3, 0, 1]]
    assert result.ids.dtype == torch.long
    assert result.new_tokens == [3, 3]
    assert result.finish_reason == ["length", "length"]
    assert result.tokens_per_second > 0


def test_zero_new_tokens_returns_the_prompt() -> None:
    model = Bigram(CHAIN)
    ids = torch.tensor([[0, 1], [2, 3]])
    result = generate(model, ids, 0, use_cache=False)
    assert torch.equal(result.ids, ids)
    assert result.ids is not ids
    assert result.finish_reason == ["length", "length"]
    assert result.new_tokens == [0, 0]
    assert result.positions_forwarded == 0
    assert model.calls == []


@pytest.mark.parametrize("new", [1, 2, 7])
def test_exactly_max_new_tokens_are_made(new: int) -> None:
    result = tell(Bigram([1, 0]), [[0, 1, 0]], new)
    assert result.ids.shape == (1, 3 + new)
    assert result.new_tokens == [new]


def test_integer_ids_of_any_width_are_taken() -> None:
    result = generate(
        Bigram(CHAIN), torch.tensor([[0]], dtype=torch.int32), 2, temperature=0, use_cache=False
    )
    assert result.ids.dtype == torch.long
    assert result.ids.tolist() == [[0, 1, 4]]


def test_strided_ids_are_taken_and_no_argument_is_changed() -> None:
    ids = torch.tensor([[0, 9], [2, 9]])[:, :1]
    mask = torch.ones_like(ids)
    result = generate(
        Bigram(CHAIN), ids, 2, temperature=0, use_cache=False, attention_mask=mask, eos_id=[4, 3]
    )
    assert result.ids.tolist() == [[0, 1, 4], [2, 3, 4]]
    assert ids.tolist() == [[0], [2]]
    assert mask.tolist() == [[1], [1]]


# --- the order of a step ---


class Scripted(Toy):
    """The same logits at each step."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__(len(logits))
        self.logits = torch.tensor(logits)

    def forward(
        self, ids: Tensor, *, cache: object = None, attention_mask: object = None
    ) -> Tensor:
        return self.logits.expand(*ids.shape, -1)


def test_a_step_is_penalty_temperature_top_k_top_p_draw() -> None:
    model = tiny()
    ids = random_ids(model, 3, 4)
    knobs: dict[str, Any] = {"temperature": 1.4, "top_k": 9, "top_p": 0.8}
    result = generate(
        model, ids, 6, repetition_penalty=1.5, generator=seeded(2), use_cache=False, **knobs
    )
    chance = seeded(2)
    with torch.no_grad():
        for _ in range(6):
            logits = apply_repetition_penalty(model(ids)[:, -1], ids, 1.5)
            token = next_token(logits, generator=chance, **knobs)
            ids = torch.cat([ids, token], dim=1)
    assert torch.equal(result.ids, ids)


def test_the_penalty_comes_before_the_filters() -> None:
    # id 0 is best until it is penalised; a top-k of 1 before the penalty would have kept it
    model = Scripted([3.0, 2.9, 1.0])
    result = tell(model, [[0]], 1, do_sample=True, repetition_penalty=2.0, top_k=1)
    assert result.ids.tolist() == [[0, 1]]


def test_the_penalty_counts_prompt_and_continuation_also_when_greedy() -> None:
    result = tell(Scripted([3.0, 2.9, 2.8, 2.7]), [[0]], 3, repetition_penalty=1.5)
    assert result.ids.tolist() == [[0, 1, 2, 3]]


def test_the_penalty_does_not_count_padding() -> None:
    result = tell(
        Scripted([3.0, 2.0, 1.0]),
        [[0, 0, 2]],
        1,
        repetition_penalty=10.0,
        attention_mask=torch.tensor([[0, 0, 1]]),
    )
    assert result.ids.tolist() == [[0, 0, 2, 0]]


def test_the_penalty_counts_what_the_window_has_left_behind() -> None:
    model = Scripted([3.0, 2.0, 1.0])
    model.block_size = 1
    assert tell(model, [[0, 2]], 1, repetition_penalty=4.0).ids.tolist() == [[0, 2, 1]]


def test_temperature_zero_is_greedy() -> None:
    model = tiny()
    ids = random_ids(model, 2, 5)
    greedy = generate(model, ids, 20, do_sample=False)
    assert torch.equal(generate(model, ids, 20, temperature=0).ids, greedy.ids)
    assert torch.equal(generate(model, ids, 20, temperature=0, do_sample=False).ids, greedy.ids)
    assert torch.equal(generate(model, ids, 20, top_k=1).ids, greedy.ids)


def test_the_same_seed_gives_the_same_text_and_another_seed_another() -> None:
    model = tiny()
    ids = random_ids(model, 2, 5)
    runs = [generate(model, ids, 20, generator=seeded(seed)).ids for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_a_generator_goes_on_where_it_was() -> None:
    model, chance = tiny(), seeded(1)
    ids = random_ids(model, 2, 5)
    first, second = (generate(model, ids, 20, generator=chance).ids for _ in range(2))
    assert not torch.equal(first, second)


def test_rows_with_the_same_prompt_are_drawn_apart() -> None:
    ids = random_ids(tiny(), 1, 3).expand(8, 3)
    result = generate(tiny(), ids, 10, generator=seeded())
    assert len({tuple(row) for row in result.ids[:, 3:4].tolist()}) > 1
    assert len({tuple(row) for row in result.ids.tolist()}) == 8


# --- how a row ends ---


def test_eos_stays_in_the_output_and_is_counted() -> None:
    result = tell(Bigram(CHAIN), [[0]], 9, eos_id=4)
    assert result.ids.tolist() == [[0, 1, 4]]
    assert result.finish_reason == ["eos"]
    assert result.new_tokens == [2]


def test_all_ends_when_every_row_is_finished_and_no_sooner() -> None:
    result = tell(Bigram(CHAIN), [[0], [2]], 9, eos_id=4, pad_id=0)
    assert result.ids.tolist() == [[0, 1, 4, 0, 0], [2, 3, 0, 1, 4]]
    assert result.finish_reason == ["eos", "eos"]
    assert result.new_tokens == [2, 4]


def test_a_row_that_is_not_finished_in_time_has_length_as_its_reason() -> None:
    result = tell(Bigram(CHAIN), [[0], [2]], 3, eos_id=4, pad_id=0)
    assert result.ids.tolist() == [[0, 1, 4, 0], [2, 3, 0, 1]]
    assert result.finish_reason == ["eos", "length"]
    assert result.new_tokens == [2, 3]


def test_an_eos_as_the_last_allowed_token_counts_as_eos() -> None:
    result = tell(Bigram(CHAIN), [[0], [2]], 4, eos_id=4, pad_id=0)
    assert result.finish_reason == ["eos", "eos"]
    result = tell(Bigram(CHAIN), [[0]], 2, eos_id=4)
    assert result.finish_reason == ["eos"]


def test_a_finished_row_is_not_started_again_by_its_filling() -> None:
    # the filling 0 leads to 1 and on to 4: the row must be filled to the end all the same
    result = tell(Bigram(CHAIN), [[1], [2]], 9, eos_id=4, pad_id=0)
    assert result.ids.tolist() == [[1, 4, 0, 0, 0], [2, 3, 0, 1, 4]]


@pytest.mark.parametrize("eos_id", [4, [4], [4, 9], (4, 0)], ids=str)
def test_the_filling_is_the_first_eos_by_default(eos_id: Any) -> None:
    ends = [eos_id] if isinstance(eos_id, int) else list(eos_id)
    result = tell(Bigram([1, 4, 3, 1, 2, 0, 0, 0, 0, 0]), [[1], [2]], 9, eos_id=eos_id)
    assert result.ids[0].tolist() == [1, 4, *[ends[0]] * (result.ids.shape[1] - 2)]


def test_any_of_several_eos_ends_a_row() -> None:
    result = tell(Bigram(CHAIN), [[0], [2]], 9, eos_id=[4, 3])
    assert result.ids.tolist() == [[0, 1, 4], [2, 3, 4]]
    assert result.finish_reason == ["eos", "eos"]
    assert result.new_tokens == [2, 1]


def test_an_eos_in_the_prompt_stops_nothing() -> None:
    result = tell(Bigram(CHAIN), [[4]], 2, eos_id=4)
    assert result.ids.tolist() == [[4, 2, 3]]
    assert result.finish_reason == ["length"]
    result = tell(Bigram(CHAIN), [[4, 4, 0], [0, 4, 4]], 2, eos_id=4)
    assert result.ids.tolist() == [[4, 4, 0, 1, 4], [0, 4, 4, 2, 3]]


@pytest.mark.parametrize("eos_id", [None, [], 3], ids=str)
def test_without_an_eos_that_comes_all_rows_run_to_the_end(eos_id: Any) -> None:
    result = tell(Bigram([1, 0, 2, 3]), [[0]], 5, eos_id=eos_id)
    assert result.ids.tolist() == [[0, 1, 0, 1, 0, 1]]


def test_an_eos_of_id_zero_is_an_eos() -> None:
    result = tell(Bigram([3, 0, 1, 2]), [[2], [3]], 9, eos_id=0)
    assert result.ids.tolist() == [[2, 1, 0, 0], [3, 2, 1, 0]]
    assert tell(Bigram([3, 0, 1, 2]), [[2], [3]], 9, eos_id=0, pad_id=3).ids.tolist() == [
        [2, 1, 0, 3],
        [3, 2, 1, 0],
    ]


def test_the_finished_rows_share_of_the_generator_is_drawn_all_the_same() -> None:
    model = tiny()
    ids = random_ids(model, 2, 4)
    free = generate(model, ids, 8, generator=seeded(3)).ids
    end = int(free[0, 5])
    ended = generate(model, ids, 8, generator=seeded(3), eos_id=end, pad_id=0).ids
    if end not in free[1].tolist():
        assert torch.equal(ended[1], free[1])
    assert ended[0, 6:].unique().tolist() == [0]


# --- the window ---


def test_a_prompt_longer_than_the_window_keeps_its_last_tokens() -> None:
    result = tell(SumModel(10, block_size=4), [[9, 9, 1, 1, 1, 1]], 1)
    assert result.ids.tolist() == [[9, 9, 1, 1, 1, 1, 4]]


def test_a_sliding_window_loses_no_token_of_the_output() -> None:
    model = SumModel(10, block_size=4)
    result = tell(model, [[1, 2, 3]], 6)
    expected = [1, 2, 3]
    for _ in range(6):
        expected.append(sum(expected[-4:]) % 10)
    assert result.ids.tolist() == [expected]
    assert model.calls == [(1, 3), *[(1, 4)] * 5]


@pytest.mark.parametrize("prompt", [1, 3, 4, 9])
def test_stop_makes_no_more_tokens_than_forwards_fit(prompt: int) -> None:
    model = SumModel(10, block_size=4)
    result = tell(model, [[1] * prompt, [2] * prompt], 20, on_overflow="stop")
    made = 4 - min(prompt, 4) + 1
    assert result.new_tokens == [made, made]
    assert result.finish_reason == ["overflow", "overflow"]
    assert result.ids.shape == (2, prompt + made)
    slid = tell(SumModel(10, block_size=4), [[1] * prompt, [2] * prompt], made)
    assert torch.equal(result.ids, slid.ids)


def test_stop_that_is_not_reached_is_length_or_eos() -> None:
    model = Bigram(CHAIN, block_size=4)
    result = tell(model, [[0, 0, 0]], 2, on_overflow="stop")
    assert result.finish_reason == ["length"]
    result = tell(model, [[0, 0, 0], [2, 2, 2]], 9, on_overflow="stop", eos_id=4, pad_id=0)
    assert result.finish_reason == ["eos", "overflow"]
    assert result.new_tokens == [2, 2]


# --- the model ---


def test_without_cache_and_mask_the_model_is_called_with_ids_alone() -> None:
    seen = []

    class Bare(Bigram):
        def forward(self, ids: Tensor, **options: Any) -> Tensor:
            seen.append(options)
            return super().forward(ids)

    tell(Bare(CHAIN), [[0], [2]], 2)
    tell(Bare(CHAIN), [[0], [2]], 2, attention_mask=torch.ones(2, 1))
    assert seen == [{}] * 4


def test_the_model_runs_in_eval_mode_without_gradients() -> None:
    seen = []

    class Watched(Bigram):
        def forward(self, ids: Tensor, **options: Any) -> Tensor:
            seen.append((self.training, torch.is_inference_mode_enabled()))
            return super().forward(ids)

    tell(Watched(CHAIN).train(), [[0]], 2)
    assert seen == [(False, True)] * 2


def test_greedy_text_of_a_model_with_dropout_is_the_same_each_time() -> None:
    model = NoisyModel(9).train()
    results = {tuple(tell(model, [[0]], 5).ids[0].tolist()) for _ in range(6)}
    assert results == {(0,) * 6}


@pytest.mark.parametrize("training", [True, False])
def test_the_training_flag_is_restored(training: bool) -> None:
    model = NoisyModel(3).train(training)
    tell(model, [[0]], 2)
    assert model.training is training


@pytest.mark.parametrize("training", [True, False])
def test_the_training_flag_is_restored_on_an_exception(training: bool) -> None:
    class Broken(Bigram):
        def forward(self, ids: Tensor, **options: Any) -> Tensor:
            if ids.shape[1] == 3:
                raise RuntimeError("lost in thought")
            return super().forward(ids)

    model = Broken(CHAIN).train(training)
    with pytest.raises(RuntimeError, match="lost in thought"):
        tell(model, [[0]], 5)
    assert model.training is training


# --- the streamer ---


def test_the_streamer_gets_each_steps_ids() -> None:
    seen: list[Tensor] = []
    result = tell(Bigram(CHAIN), [[0], [2]], 9, eos_id=4, pad_id=0, streamer=seen.append)
    assert [tuple(token.shape) for token in seen] == [(2, 1)] * 4
    assert torch.equal(torch.cat(seen, dim=1), result.ids[:, 1:])


def test_the_streamer_is_not_called_when_nothing_is_made() -> None:
    seen: list[Tensor] = []
    tell(Bigram(CHAIN), [[0]], 0, streamer=seen.append)
    assert seen == []


# --- wrong arguments ---


@pytest.mark.parametrize(
    "changes,told",
    [
        ({"max_new_tokens": -1}, "max_new_tokens=-1"),
        ({"ids": torch.zeros(1, 0, dtype=torch.long)}, "ids has shape (1, 0)"),
        ({"ids": torch.zeros(0, 3, dtype=torch.long)}, "ids has shape (0, 3)"),
        ({"ids": torch.zeros(3, dtype=torch.long)}, "ids has shape (3,)"),
        ({"ids": torch.tensor([[0, 5]])}, "ids holds 5; the model knows 0 to 4"),
        ({"ids": torch.tensor([[-1, 0]])}, "ids holds -1"),
        ({"pad_id": 5}, "pad_id=5"),
        ({"pad_id": -100}, "pad_id=-100"),
        ({"on_overflow": "crop"}, 'on_overflow="crop"'),
        ({"attention_mask": torch.ones(1, 3)}, "attention_mask has shape (1, 3)"),
        ({"attention_mask": torch.tensor([[1, 0]])}, "attention_mask has padding right"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"temperature": NAN}, "temperature=nan"),
        ({"temperature": INF}, "temperature=inf"),
        ({"top_k": -1}, "k=-1"),
        ({"top_p": 1.5}, "p=1.5"),
        ({"repetition_penalty": 0.0}, "penalty=0.0"),
        ({"repetition_penalty": -1.0}, "penalty=-1.0"),
        ({"repetition_penalty": NAN}, "penalty=nan"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("do_sample", [True, False])
def test_a_wrong_argument_is_named_with_its_value(
    changes: dict[str, Any], told: str, do_sample: bool
) -> None:
    model = Bigram(CHAIN).train()
    arguments: dict[str, Any] = {"ids": torch.tensor([[0, 1]]), "max_new_tokens": 2} | changes
    with pytest.raises(ValueError) as error:
        generate(model, **arguments, do_sample=do_sample, use_cache=False)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert model.training, "the flag is restored"


@pytest.mark.parametrize("mask", [[[1, 0, 1]], [[0, 0, 0]], [[1, 1, 0]]], ids=str)
def test_padding_right_of_a_token_is_refused(mask: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="pad prompts on the left"):
        tell(Bigram(CHAIN), [[0, 1, 2]], 2, attention_mask=torch.tensor(mask))


def test_logits_that_decide_nothing_are_an_error() -> None:
    for row in ([-INF, -INF], [0.0, NAN]):
        for do_sample in (True, False):
            with pytest.raises(ValueError, match="logits row 0"):
                tell(Scripted(row), [[0]], 1, do_sample=do_sample)


# --- stream, with a tokenizer made of bytes ---


def told(prompt: str, text: bytes, **options: Any) -> list[str]:
    """The pieces of a greedy stream that says `text` after `prompt`."""
    options = {"do_sample": False, "use_cache": False} | options
    return list(stream(Script(prompt, text), Bytes(), prompt, len(text), **options))


def test_the_stream_starts_with_the_prompt_and_tells_the_rest() -> None:
    assert told("Once ", b"upon") == ["Once ", "u", "p", "o", "n"]


@pytest.mark.parametrize("text", ["né", "漢字", "🐢🐇 ok", "e\u0301", "👩\u200d🚀!"])
def test_the_stream_never_tells_half_a_character(text: str) -> None:
    pieces = told("A ", text.encode())
    assert "".join(pieces) == "A " + text
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)
    assert pieces == ["A ", *text], "and each character as soon as it is whole"


def test_a_character_that_is_still_cut_at_the_end_is_told_once() -> None:
    assert told("a", b"\xe4\xbd") == ["a", "\N{REPLACEMENT CHARACTER}"]


def test_bytes_that_are_no_text_do_not_hold_back_what_follows() -> None:
    pieces = told("a", b"\xff\xfe!ok")
    assert "".join(pieces) == b"a\xff\xfe!ok".decode(errors="replace")
    assert pieces[-2:] == ["o", "k"]


def test_a_prompt_that_ends_in_a_replacement_character_is_told_whole() -> None:
    prompt = "odd \N{REPLACEMENT CHARACTER}"
    assert "".join(told(prompt, b"ok")) == prompt + "ok"


def test_the_stream_takes_a_tokenizer_whose_encoding_has_ids() -> None:
    class Encoding:
        def __init__(self, ids: list[int]) -> None:
            self.ids = ids

    class Wrapped(Bytes):
        def encode(self, text: str) -> Any:
            return Encoding(super().encode(text))

    pieces = stream(Script("a", b"bc"), Wrapped(), "a", 2, do_sample=False, use_cache=False)
    assert list(pieces) == ["a", "b", "c"]


def test_the_streams_return_value_is_the_generation() -> None:
    pieces = stream(Script("ab", b"cd"), Bytes(), "ab", 2, do_sample=False, use_cache=False)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result = end.value
            break
    assert isinstance(result, Generation)
    assert bytes(result.ids[0].tolist()) == b"abcd"
    assert result.finish_reason == ["length"]


def test_the_stream_ends_after_the_eos() -> None:
    assert told("a", b"b.c", eos_id=ord(".")) == ["a", "b", "."]


def test_the_stream_hands_each_token_to_a_streamer_too() -> None:
    seen: list[Tensor] = []
    assert told("a", b"bc", streamer=seen.append) == ["a", "b", "c"]
    assert [token.tolist() for token in seen] == [[[ord("b")]], [[ord("c")]]]


def test_the_stream_of_zero_tokens_is_the_prompt() -> None:
    model = Script("ab", b"c")
    assert list(stream(model, Bytes(), "ab", 0)) == ["ab"]


@pytest.mark.parametrize(
    "prompt,options,named",
    [
        ("", {}, "ids has shape"),
        ("a", {"max_new_tokens": -1}, "max_new_tokens=-1"),
        ("a", {"temperature": -1.0}, "temperature=-1.0"),
        ("a", {"on_overflow": "crop"}, "on_overflow"),
    ],
)
def test_the_stream_names_a_wrong_argument(
    prompt: str, options: dict[str, Any], named: str
) -> None:
    model = Script("a", b"b").train()
    with pytest.raises(ValueError, match=named):
        list(stream(model, Bytes(), prompt, use_cache=False, **options))
    assert model.training
