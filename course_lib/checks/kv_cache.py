"""Lesson 7: what causal_mask, attend, KVCache, prefill and decode_step must do."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import expect
from .draw import Draw
from .kit import Suite
from .models import StandInCache, Witness, tiny_gpt

suite = Suite("kv_cache")


def mask(*rows: Sequence[int]) -> Tensor:
    """A mask from rows of 1 (may look) and 0 (may not)."""
    return torch.tensor(rows).bool()


def column(*numbers: float) -> Tensor:
    """One number a position, for one row, one head, head size 1: (1, 1, T, 1)."""
    return torch.tensor(numbers, dtype=torch.float32).view(1, 1, -1, 1)


# --- causal_mask ---


@suite.check(
    "mask_of_a_prompt",
    of="causal_mask",
    points=0.5,
    claim="without a past, each position sees itself and those before it",
    teaching="shows the triangle itself, where a model only shows that something is wrong",
)
def mask_of_a_prompt(student: Any) -> None:
    answer = expect.tensor(student.causal_mask(4, 4), (4, 4), "the mask")
    expect.same(answer, mask([1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]), "the mask")
    expect.same(student.causal_mask(1, 1), mask([1]), "the mask")


@suite.check(
    "mask_with_a_past",
    of="causal_mask",
    points=1,
    claim="with a past, the queries are the last positions, so the newest one sees every key",
    teaching="shows the mask itself, where a model only shows that something is wrong",
)
def mask_with_a_past(student: Any) -> None:
    # one new token, three in the cache: it may look at all four
    expect.same(student.causal_mask(1, 4), mask([1, 1, 1, 1]), "the mask")
    expect.same(student.causal_mask(2, 5), mask([1, 1, 1, 1, 0], [1, 1, 1, 1, 1]), "the mask")


@suite.check(
    "mask_is_bool",
    of="causal_mask",
    points=0.25,
    claim="answers in bool: True and False, not 1 and 0",
    teaching="names the cause, where attend would only stumble over it",
)
def mask_is_bool(student: Any) -> None:
    # `~` turns True into False, but the number 1 into -2
    answer = expect.tensor(student.causal_mask(2, 3), (2, 3), "the mask")
    expect.true(
        answer.dtype == torch.bool, f"the mask has dtype {answer.dtype}; expected torch.bool"
    )


@suite.check(
    "mask_bad_sizes",
    of="causal_mask",
    points=0.25,
    claim="more queries than keys, or a negative number, raises ValueError",
)
def mask_bad_sizes(student: Any) -> None:
    with expect.raises(ValueError, "query_len=3 with key_len=2"):
        student.causal_mask(3, 2)
    with expect.raises(ValueError, "query_len=-1"):
        student.causal_mask(-1, 2)


# --- attend ---


@suite.check(
    "attend_means",
    of="attend",
    points=0.5,
    claim="takes the mean of the values that the mask allows, if all keys fit alike",
    teaching="the first example of the lesson: without scores attention is a plain mean",
)
def attend_means(student: Any) -> None:
    # a query of zeros fits every key alike
    keys, values = column(0, 0, 0, 0), column(1, 2, 3, 4)
    answer = student.attend(column(0), keys, values, mask([1, 1, 1, 1]))
    expect.close(answer, column(2.5))
    answer = student.attend(column(0, 0), keys, values, mask([1, 1, 1, 0], [1, 1, 1, 1]))
    expect.close(answer, column(2.0, 2.5))
    triangle = mask([1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1])
    answer = student.attend(column(0, 0, 0, 0), keys, values, triangle)
    expect.close(answer, column(1.0, 1.5, 2.0, 2.5))


@suite.check(
    "attend_weights",
    of="attend",
    points=0.5,
    claim="weighs each value by the softmax of q . k / sqrt(head_dim)",
    teaching="the rule itself, in numbers that can be followed by hand",
)
def attend_weights(student: Any) -> None:
    # q . k is 2 log 3 for the first key and 0 for the second; divided by sqrt(4): log 3 and 0, so
    # the weights are 3/4 and 1/4
    q = torch.tensor([2.0, 0.0, 0.0, 0.0]).view(1, 1, 1, 4)
    k = torch.tensor([[math.log(3), 0.0, 0.0, 0.0], [0.0, 5.0, 5.0, 5.0]]).view(1, 1, 2, 4)
    v = torch.tensor([[4.0, 0.0, 0.0, 8.0], [0.0, 4.0, 0.0, 8.0]]).view(1, 1, 2, 4)
    answer = student.attend(q, k, v, mask([1, 1]))
    expect.close(answer, torch.tensor([3.0, 1.0, 0.0, 8.0]).view(1, 1, 1, 4))


@suite.check(
    "attend_masked_out",
    of="attend",
    points=0.25,
    claim="gives a forbidden key no weight at all, however well it fits",
)
def attend_masked_out(student: Any) -> None:
    # the forbidden key fits by far the best, the allowed one badly
    answer = student.attend(column(1), column(-300, 50), column(1, 1000), mask([1, 0]))
    expect.close(answer, column(1.0))


@suite.check(
    "attend_mask_shapes",
    of="attend",
    points=0.25,
    claim="takes a mask for all, one a row of the batch, or one a head",
)
def attend_mask_shapes(student: Any) -> None:
    values = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])[..., None]
    q, k = torch.zeros(2, 2, 1, 1), torch.zeros(2, 2, 2, 1)
    # row 0 has its first key padded
    a_row = mask([0, 1], [1, 1]).view(2, 1, 1, 2)
    expected = torch.tensor([[2.0, 4.0], [5.5, 7.5]]).view(2, 2, 1, 1)
    expect.close(student.attend(q, k, values, a_row), expected)
    a_head = mask([0, 1], [1, 1]).view(1, 2, 1, 2)
    expected = torch.tensor([[2.0, 3.5], [6.0, 7.5]]).view(2, 2, 1, 1)
    expect.close(student.attend(q, k, values, a_head), expected)


def but_the_first(answers: list[Any]) -> list[Any]:
    """Of a query that may look at nothing only whether it is finite: any number is right."""
    return [[bool(answer.isfinite().all()), answer[:, :, 1:]] for answer in answers]


@suite.check(
    "attend_nothing_allowed",
    of="attend",
    points=0.25,
    claim="a query that may look at nothing gives finite values, never NaN",
    remember=but_the_first,
)
def attend_nothing_allowed(student: Any) -> None:
    # the first position is padding: it may not even look at itself
    triangle = mask([0, 0, 0], [0, 1, 0], [0, 1, 1])
    answer = student.attend(column(0, 0, 0), column(0, 0, 0), column(9, 1, 2), triangle)
    answer = expect.tensor(answer, (1, 1, 3, 1))
    expect.true(bool(answer.isfinite().all()), "not every value is finite")
    expect.close(answer[:, :, 1:], column(1.0, 1.5), "what the other queries get")


@suite.check(
    "attend_half_precision",
    of="attend",
    points=0.25,
    claim="works on float16 and bfloat16 too",
)
def attend_half_precision(student: Any) -> None:
    # float16 ends at 65,504: a mask of -1e9 is no number there
    for dtype in (torch.bfloat16, torch.float16):
        q, k, v = (x.to(dtype) for x in (column(0, 0), column(0, 0), column(1, 2)))
        answer = expect.tensor(student.attend(q, k, v, mask([1, 0], [1, 1])), (1, 1, 2, 1))
        expect.close(answer.float(), column(1.0, 1.5), rtol=0.01)


@suite.check(
    "attend_input_untouched",
    of="attend",
    points=0.25,
    claim="leaves q, k, v and the mask as they are",
)
def attend_input_untouched(student: Any) -> None:
    before = torch.ones(1, 1, 1, 4), torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), mask([1, 0])
    given = [tensor.clone() for tensor in before]
    student.attend(*given)
    for name, old, new in zip(("q", "k", "v", "mask"), before, given, strict=True):
        expect.unchanged(new, old, name)


@suite.check(
    "attend_against_lists",
    of="attend",
    points=0.5,
    claim="agrees with sums over plain lists on random numbers, for each row and head by itself",
    teaching="a property on random numbers: catches answers made for the examples",
)
def attend_against_lists(student: Any, draw: Draw) -> None:
    for batch, heads, queries, keys, size in [(1, 1, 1, 1, 1), (2, 3, 4, 5, 6), (3, 3, 3, 3, 3)]:
        q = draw.normal(batch, heads, queries, size)
        k, v = draw.normal(batch, heads, keys, size), draw.normal(batch, heads, keys, size)
        allowed = draw.ids(queries, keys, 2).bool()
        allowed[:, 0] = True
        expected = torch.empty(batch, heads, queries, size)
        for row in range(batch):
            for head in range(heads):
                one = [x[row, head].tolist() for x in (q, k, v)]
                answer = plain_attention(one[0], one[1], one[2], allowed.tolist())
                expected[row, head] = torch.tensor(answer)
        expect.close(student.attend(q, k, v, allowed), expected)


def plain_attention(
    q: list[list[float]], k: list[list[float]], v: list[list[float]], allowed: list[list[bool]]
) -> list[list[float]]:
    """One row, one head, number by number."""
    answer = []
    for query, may_look in zip(q, allowed, strict=True):
        scores = [sum(map(float.__mul__, query, key)) / len(query) ** 0.5 for key in k]
        weights = [math.exp(s) if ok else 0.0 for s, ok in zip(scores, may_look, strict=True)]
        sums = [sum(map(float.__mul__, weights, numbers)) for numbers in zip(*v, strict=True)]
        answer.append([number / sum(weights) for number in sums])
    return answer


# --- KVCache ---


@suite.check(
    "cache_append",
    of="KVCache",
    points=0.5,
    claim="append returns all keys and values of the layer, the new ones last",
    teaching="the first thing that a cache is for, in numbers that a person can read",
)
def cache_append(student: Any) -> None:
    cache = student.KVCache(1, 1, 1, 1, 5)
    k_all, v_all = cache.append(0, column(1, 2), column(10, 20))
    expect.close(k_all, column(1, 2), "k_all")
    expect.close(v_all, column(10, 20), "v_all")
    k_all, v_all = cache.append(0, column(3), column(30))
    expect.close(k_all, column(1, 2, 3), "k_all")
    expect.close(v_all, column(10, 20, 30), "v_all")
    k_all, v_all = cache.append(0, column(4, 5), column(40, 50))
    expect.close(k_all, column(1, 2, 3, 4, 5), "k_all")
    expect.close(v_all, column(10, 20, 30, 40, 50), "v_all")


@suite.check(
    "cache_shapes",
    of="KVCache",
    points=0.25,
    claim="keeps rows, heads and numbers in their places, whatever their shape",
    teaching="a property on random numbers: catches answers made for the examples",
)
def cache_shapes(student: Any, draw: Draw) -> None:
    for batch, heads, size in [(2, 3, 4), (3, 2, 1), (4, 4, 4)]:
        k, v = draw.normal(batch, heads, 7, size), draw.normal(batch, heads, 7, size)
        cache = student.KVCache(1, batch, heads, size, 7)
        for start, stop in [(0, 4), (4, 5), (5, 7)]:
            k_all, v_all = cache.append(0, k[:, :, start:stop], v[:, :, start:stop])
            expect.close(k_all, k[:, :, :stop], "k_all")
            expect.close(v_all, v[:, :, :stop], "v_all")


@suite.check(
    "cache_length",
    of="KVCache",
    points=0.5,
    claim="length counts the positions that every layer holds",
)
def cache_length(student: Any) -> None:
    cache = student.KVCache(2, 1, 1, 1, 8)
    expect.same(cache.length, 0, "length")
    cache.append(0, column(1, 2, 3), column(1, 2, 3))
    # the second layer has yet to run, and it must not see the length move under its feet
    expect.same(cache.length, 0, "length between the two layers")
    cache.append(1, column(1, 2, 3), column(1, 2, 3))
    expect.same(cache.length, 3, "length")
    cache.append(0, column(4), column(4))
    expect.same(cache.length, 3, "length between the two layers")
    cache.append(1, column(4), column(4))
    expect.same(cache.length, 4, "length")


@suite.check(
    "cache_layers",
    of="KVCache",
    points=0.25,
    claim="keeps each layer's keys and values apart",
    teaching="told on two layers that a person can follow, before a model mixes them",
)
def cache_layers(student: Any) -> None:
    cache = student.KVCache(2, 1, 1, 1, 4)
    cache.append(0, column(1, 2), column(10, 20))
    k_all, v_all = cache.append(1, column(5, 6), column(50, 60))
    expect.close(k_all, column(5, 6), "k_all of layer 1")
    expect.close(v_all, column(50, 60), "v_all of layer 1")
    k_all, v_all = cache.append(0, column(3), column(30))
    expect.close(k_all, column(1, 2, 3), "k_all of layer 0")
    expect.close(v_all, column(10, 20, 30), "v_all of layer 0")


@suite.check(
    "cache_reset",
    of="KVCache",
    points=0.25,
    claim="reset forgets every position of every layer, and all the room is free again",
)
def cache_reset(student: Any) -> None:
    cache = student.KVCache(2, 1, 1, 1, 3)
    for layer in (0, 1):
        cache.append(layer, column(1, 2), column(10, 20))
    cache.reset()
    for layer in (0, 1):
        k_all, v_all = cache.append(layer, column(7), column(70))
        expect.close(k_all, column(7), "k_all after reset")
        expect.close(v_all, column(70), "v_all after reset")
    expect.same(cache.length, 1, "length")
    cache.reset()
    expect.same(cache.length, 0, "length after reset")
    for layer in (0, 1):
        k_all, _ = cache.append(layer, column(1, 2, 3), column(1, 2, 3))
        expect.close(k_all, column(1, 2, 3), "k_all of the full cache")


@suite.check(
    "cache_capacity",
    of="KVCache",
    points=0.5,
    claim="may be filled to the last place; one more raises ValueError and changes nothing",
)
def cache_capacity(student: Any) -> None:
    cache = student.KVCache(1, 1, 1, 1, 3)
    cache.append(0, column(1, 2, 3), column(10, 20, 30))
    expect.same(cache.length, 3, "length of the full cache")
    with expect.raises(ValueError, "2 positions beyond a capacity of 3"):
        cache.append(0, column(4, 5), column(40, 50))
    # torch may drop a single one without a word
    with expect.raises(ValueError, "a position beyond a capacity of 3"):
        cache.append(0, column(4), column(40))
    expect.same(cache.length, 3, "length after what did not fit")
    # now the first of two would fit
    cache = student.KVCache(1, 1, 1, 1, 3)
    cache.append(0, column(1, 2), column(10, 20))
    with expect.raises(ValueError, "2 new positions where 1 fits"):
        cache.append(0, column(3, 4), column(30, 40))
    expect.same(cache.length, 2, "length after what did not fit")
    k_all, v_all = cache.append(0, column(5), column(50))
    expect.close(k_all, column(1, 2, 5), "k_all")
    expect.close(v_all, column(10, 20, 50), "v_all")


@suite.check(
    "cache_separate",
    of="KVCache",
    points=0.25,
    claim="two caches have nothing to do with each other",
)
def cache_separate(student: Any) -> None:
    first, second = student.KVCache(1, 1, 1, 1, 4), student.KVCache(1, 1, 1, 1, 4)
    first.append(0, column(1, 2), column(10, 20))
    expect.same(second.length, 0, "length of the other cache")
    second.append(0, column(8, 9), column(80, 90))
    k_all, v_all = first.append(0, column(3), column(30))
    expect.close(k_all, column(1, 2, 3), "k_all")
    expect.close(v_all, column(10, 20, 30), "v_all")


@suite.check(
    "cache_bad_sizes",
    of="KVCache",
    points=0.25,
    claim="a size below 1 raises ValueError",
)
def cache_bad_sizes(student: Any) -> None:
    with expect.raises(ValueError, "capacity=-1"):
        student.KVCache(1, 1, 1, 1, -1)
    for place, name in enumerate(("capacity", "head_dim", "heads", "batch", "n_layers")):
        sizes = [2, 2, 2, 2, 2]
        sizes[4 - place] = 0
        with expect.raises(ValueError, f"{name}=0"):
            student.KVCache(*sizes)


@suite.check(
    "cache_bad_append",
    of="KVCache",
    points=0.25,
    claim="a layer that is not there, or a wrong shape, raises ValueError and changes nothing",
)
def cache_bad_append(student: Any) -> None:
    cache = student.KVCache(1, 2, 1, 1, 4)
    fine = torch.tensor([1.0, 2.0]).view(2, 1, 1, 1)
    cache.append(0, fine, fine)
    # a list would take -1 for its last layer, and a row would be copied into both of the batch
    for layer in (1, -1):
        with expect.raises(ValueError, f"layer={layer} of a cache with one layer"):
            cache.append(layer, fine, fine)
    with expect.raises(ValueError, "k and v with head_dim 3 in a cache for 1"):
        cache.append(0, fine.expand(2, 1, 1, 3), fine.expand(2, 1, 1, 3))
    with expect.raises(ValueError, "k and v of one row in a cache for two"):
        cache.append(0, fine[:1], fine[:1])
    with expect.raises(ValueError, "k and v of two heads in a cache for one"):
        cache.append(0, fine.expand(2, 2, 1, 1), fine.expand(2, 2, 1, 1))
    with expect.raises(ValueError, "two positions of k and one of v"):
        cache.append(0, fine.expand(2, 1, 2, 1), fine)
    expect.same(cache.length, 1, "length after what was refused")
    k_all, _ = cache.append(0, 3 * fine, 3 * fine)
    expect.close(k_all, torch.tensor([[1.0, 3.0], [2.0, 6.0]]).view(2, 1, 2, 1), "k_all")


@suite.check(
    "cache_dtype",
    of="KVCache",
    points=0.25,
    claim="keeps half precision if it is made for it",
)
def cache_dtype(student: Any) -> None:
    cache = student.KVCache(1, 1, 1, 1, 4, dtype=torch.bfloat16, device="cpu")
    half = column(1, 2).bfloat16()
    for name, answer in zip(("k_all", "v_all"), cache.append(0, half, half), strict=True):
        expect.tensor(answer, (1, 1, 2, 1), name)
        expect.true(
            answer.dtype == torch.bfloat16,
            f"{name} has dtype {answer.dtype}; expected torch.bfloat16",
        )


@suite.check(
    "cache_in_a_model",
    of="KVCache",
    points=0.5,
    claim="a model that reads a text in pieces gives the logits of one that reads it at once",
    teaching="what it is all for: with causal_mask and attend at work in a model of two layers",
)
def cache_in_a_model(student: Any) -> None:
    model = tiny_gpt().requires_grad_(False)
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8], [8, 1, 7, 2, 6, 3, 5, 4]])
    at_once = model(ids)
    cache = student.KVCache(model.n_layers, 2, model.n_heads, model.head_dim, model.block_size)
    for start, stop in [(0, 3), (3, 4), (4, 5), (5, 8)]:
        in_pieces = model(ids[:, start:stop], cache=cache)
        # other shapes, other rounding: close, but not bit for bit
        expect.close(
            in_pieces,
            at_once[:, start:stop],
            f"logits of positions {start} to {stop - 1} (the cache's attend calls your causal_mask "
            "and attend: mend these first, if their own checks fail)",
        )


# --- prefill and decode_step ---


@suite.check(
    "prefill_last",
    of="prefill",
    points=0.25,
    claim="reads the prompt in one pass and returns the logits of its last position",
)
def prefill_last(student: Any) -> None:
    # the two logits of a Witness: the token, and the sum of all tokens up to there, each times its
    # place; 5 x 1 + 1 x 2 + 2 x 3 = 13
    model, cache = Witness(), StandInCache()
    answer = student.prefill(model, torch.tensor([[5, 1, 2], [3, 3, 4]]), cache)
    expect.close(answer, torch.tensor([[2.0, 13.0], [4.0, 21.0]]), "logits")
    expect.same(model.forwarded, [3], "the list of positions in each forward pass")
    expect.same(cache.length, 3, "the length of the cache")


@suite.check(
    "prefill_in_pieces",
    of="prefill",
    points=0.25,
    claim="goes on where the cache ends, so that a prompt may be read in pieces",
    teaching="shows that prefill never starts over, before masks come into it",
)
def prefill_in_pieces(student: Any) -> None:
    model, cache = Witness(), StandInCache()
    student.prefill(model, torch.tensor([[5, 1, 2]]), cache)
    answer = student.prefill(model, torch.tensor([[6, 3]]), cache)
    expect.close(answer, torch.tensor([[3.0, 52.0]]), "logits")


@suite.check(
    "prefill_mask",
    of="prefill",
    points=0.15,
    claim="hands the attention mask on to the model, whole",
)
def prefill_mask(student: Any) -> None:
    model, cache = Witness(), StandInCache()
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    ids = torch.tensor([[9, 9, 4, 5, 6], [2, 3, 4, 5, 6]])
    answer = student.prefill(model, ids[:, :3], cache, mask[:, :3])
    expect.close(answer, torch.tensor([[4.0, 4.0], [4.0, 20.0]]), "logits")
    # the mask of a second piece covers the first one too
    answer = student.prefill(model, ids[:, 3:], cache, attention_mask=mask)
    expect.close(answer, torch.tensor([[6.0, 32.0], [6.0, 70.0]]), "logits")


@suite.check("prefill_empty", of="prefill", points=0.1, claim="an empty prompt raises ValueError")
def prefill_empty(student: Any) -> None:
    with expect.raises(ValueError, "a prompt without a position"):
        student.prefill(Witness(), torch.zeros(1, 0, dtype=torch.long), StandInCache())


@suite.check(
    "decode_one_token",
    of="decode_step",
    points=0.25,
    claim="sends the new token alone through the model, after all that the cache holds",
    teaching="the step itself, counted by hand, before a real model takes it",
)
def decode_one_token(student: Any) -> None:
    model, cache = Witness(), StandInCache()
    model(torch.tensor([[5, 1, 2], [3, 3, 4]]), cache=cache)
    answer = student.decode_step(model, torch.tensor([[6], [1]]), cache)
    expect.close(answer, torch.tensor([[6.0, 37.0], [1.0, 25.0]]), "logits")
    answer = student.decode_step(model, torch.tensor([[2], [9]]), cache)
    expect.close(answer, torch.tensor([[2.0, 47.0], [9.0, 70.0]]), "logits")
    expect.same(model.forwarded, [3, 1, 1], "the list of positions in each forward pass")
    expect.same(cache.length, 5, "the length of the cache")


@suite.check(
    "decode_mask",
    of="decode_step",
    points=0.15,
    claim="hands the attention mask on to the model, whole",
)
def decode_mask(student: Any) -> None:
    model, cache = Witness(), StandInCache()
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]])
    model(torch.tensor([[9, 4], [2, 4]]), cache=cache, attention_mask=mask[:, :2])
    answer = student.decode_step(model, torch.tensor([[5], [5]]), cache, mask)
    expect.close(answer, torch.tensor([[5.0, 14.0], [5.0, 25.0]]), "logits")


@suite.check(
    "decode_one_column",
    of="decode_step",
    points=0.1,
    claim="anything but one token a row raises ValueError",
)
def decode_one_column(student: Any) -> None:
    for shape in [(2, 2), (2, 0), (2,)]:
        with expect.raises(ValueError, f"token of shape {shape}"):
            student.decode_step(Witness(), torch.ones(shape, dtype=torch.long), StandInCache())


@suite.check(
    "decode_equals_full",
    of="decode_step",
    points=0.25,
    claim="token by token, MiniGPT gives the logits of one pass over the whole text",
    teaching="the learner's own cache and decode_step together, in a model that minds positions",
    exact=True,
)
def decode_equals_full(student: Any) -> None:
    model = tiny_gpt().requires_grad_(False)
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8]])
    at_once = model(ids)
    cache = student.KVCache(model.n_layers, 1, model.n_heads, model.head_dim, model.block_size)
    model(ids[:, :4], cache=cache)
    for position in range(4, 8):
        answer = student.decode_step(model, ids[:, position : position + 1], cache)
        expect.close(
            answer,
            at_once[:, position],
            f"logits of position {position} (your KVCache is at work too: mend it first, if its "
            "own checks fail)",
        )
