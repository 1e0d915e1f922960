"""Lesson 7, hidden: masks, attention and cache against the reference, where slips hide."""

import itertools
from typing import Any

import torch
from torch import Tensor

from course_lib.checks import expect
from course_lib.checks.draw import Draw
from course_lib.checks.kit import Suite
from course_lib.checks.models import StandInCache, Witness, tiny_gpt
from course_lib.given.minigpt import MiniGPT
from solutions import kv_cache as reference

suite = Suite("kv_cache", hidden=True)

SECRET = "secret inputs: catches answers made for the visible ones"


def pieces(draw: Draw, total: int) -> list[tuple[int, int]]:
    """(start, stop) of consecutive pieces of random lengths."""
    cuts = sorted({0, total, *(draw.integer(1, total) for _ in range(3))})
    return list(itertools.pairwise(cuts))


def draw_qkv(draw: Draw, *sizes: int) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v for sizes (batch, heads, queries, keys, head_dim)."""
    batch, heads, queries, keys, size = sizes
    return (
        draw.normal(batch, heads, queries, size),
        draw.normal(batch, heads, keys, size),
        draw.normal(batch, heads, keys, size),
    )


def draw_mask(draw: Draw, *shape: int) -> Tensor:
    """A mask that allows each query something."""
    allowed = draw.normal(*shape) > 0
    allowed[..., draw.integer(0, shape[-1] - 1)] = True
    return allowed


@suite.check(
    "hidden_any_mask",
    of="causal_mask",
    points=0.5,
    claim="equals the reference for any two lengths, a single query and none included; refuses "
    "what cannot be",
)
def any_mask(student: Any, draw: Draw) -> None:
    for key_len in (1, 2, draw.integer(3, 9), draw.integer(10, 40)):
        for query_len in {0, 1, draw.integer(1, key_len), key_len - 1, key_len}:
            answer = student.causal_mask(query_len, key_len)
            expect.same(answer, reference.causal_mask(query_len, key_len))
            expect.true(answer.dtype == torch.bool, "the mask is not bool")
        for query_len in (key_len + 1, key_len + draw.integer(2, 99), -1, -key_len):
            with expect.raises(ValueError, "lengths that cannot be"):
                student.causal_mask(query_len, key_len)


@suite.check(
    "hidden_any_attention",
    of="attend",
    points=0.75,
    claim="equals the reference for any sizes, sizes of 1 and equal sizes included, and any mask",
    teaching=SECRET,
)
def any_attention(student: Any, draw: Draw) -> None:
    for sizes in [(1, 1, 1, 9, 1), (1, 4, 5, 5, 8), (5, 1, 1, 1, 3), (4, 4, 4, 4, 4)]:
        batch, heads, queries, keys, _ = sizes
        q, k, v = draw_qkv(draw, *sizes)
        for shape in [(), (batch, 1), (1, heads), (batch, heads), (1, 1)]:
            allowed = draw_mask(draw, *shape, queries, keys)
            wanted = reference.attend(q, k, v, allowed)
            expect.close(student.attend(q.clone(), k.clone(), v.clone(), allowed.clone()), wanted)


@suite.check(
    "hidden_padding",
    of="attend",
    points=0.5,
    claim="stays finite where a query may look at nothing, and is right everywhere else; a "
    "forbidden key has no weight, however large its numbers are",
    teaching=SECRET,
)
def padding(student: Any, draw: Draw) -> None:
    batch, heads, keys = 4, 2, 7
    q, k, v = draw_qkv(draw, batch, heads, keys, keys, 3)
    # left-padded rows: none, some, all but one, and all padding
    padded = torch.tensor([0, draw.integer(1, keys - 2), keys - 1, keys])
    real = torch.arange(keys) >= padded[:, None]
    allowed = reference.causal_mask(keys, keys) & real[:, None, None, :]
    wanted = reference.attend(q, k, v, allowed)
    sees = allowed.any(dim=-1).expand(batch, heads, keys)
    k = k.masked_fill(~real[:, None, :, None], 100.0)
    v = v.masked_fill(~real[:, None, :, None], 1000.0)
    answer = expect.tensor(student.attend(q, k, v, allowed), q.shape)
    expect.true(bool(answer.isfinite().all()), "a value is not finite")
    expect.close(answer[sees], wanted[sees])


@suite.check(
    "hidden_half_precision",
    of="attend",
    points=0.25,
    claim="works on float16 and bfloat16, with their precision, padding included",
)
def half_precision(student: Any, draw: Draw) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        q, k, v = (x.to(dtype) for x in draw_qkv(draw, 2, 2, 5, 5, 4))
        allowed = reference.causal_mask(5, 5)
        wanted = reference.attend(q.float(), k.float(), v.float(), allowed)
        answer = expect.tensor(student.attend(q, k, v, allowed), q.shape)
        expect.close(answer.float(), wanted, rtol=0.05, atol=0.05)
        allowed = reference.causal_mask(5, 5)
        allowed[0] = False
        answer = expect.tensor(student.attend(q, k, v, allowed), q.shape)
        expect.true(bool(answer.isfinite().all()), "a value is not finite")


@suite.check(
    "hidden_not_contiguous",
    of="attend",
    points=0.25,
    claim="takes slices and transposes, and leaves every argument as it is",
)
def not_contiguous(student: Any, draw: Draw) -> None:
    q = draw.normal(2, 4, 3, 5).transpose(1, 2)
    k, v = draw.normal(2, 12, 3, 5).transpose(1, 2)[:, :, ::2], draw.normal(2, 3, 5, 6).mT
    allowed = draw_mask(draw, 6, 4).T | torch.eye(4, 6, dtype=torch.bool)
    given = {"q": q, "k": k, "v": v, "mask": allowed}
    before = {name: tensor.clone() for name, tensor in given.items()}
    expect.close(student.attend(*given.values()), reference.attend(*before.values()))
    for name, tensor in given.items():
        expect.unchanged(tensor, before[name], name)


@suite.check(
    "hidden_any_cache",
    of="KVCache",
    points=1,
    claim="holds what was appended, layer by layer, pass by pass, for any sizes; length follows",
    teaching=SECRET,
)
def any_cache(student: Any, draw: Draw) -> None:
    for layers, batch, heads, size in [(1, 1, 1, 1), (3, 2, 2, 4), (2, 4, 1, 3), (4, 1, 3, 2)]:
        total = draw.integer(4, 12)
        cache = student.KVCache(layers, batch, heads, size, total)
        k = draw.normal(layers, batch, heads, total, size)
        v = draw.normal(layers, batch, heads, total, size)
        for start, stop in pieces(draw, total):
            for layer in range(layers):
                expect.same(cache.length, start, "length before every layer holds the positions")
                new = slice(start, stop)
                k_all, v_all = cache.append(layer, k[layer, :, :, new], v[layer, :, :, new])
                expect.close(k_all, k[layer, :, :, :stop], "k_all")
                expect.close(v_all, v[layer, :, :, :stop], "v_all")
            expect.same(cache.length, stop, "length after the last layer")


@suite.check(
    "hidden_full_and_reset",
    of="KVCache",
    points=0.5,
    claim="is full at its capacity, not before; what does not fit changes nothing; reset frees "
    "all; the dtype stays",
    teaching=SECRET,
)
def full_and_reset(student: Any, draw: Draw) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        fill_and_reset(student, draw, dtype)


def fill_and_reset(student: Any, draw: Draw, dtype: torch.dtype) -> None:
    layers, capacity = draw.integer(1, 3), draw.integer(3, 9)
    cache = student.KVCache(layers, 2, 2, 3, capacity, dtype=dtype)
    for total in (capacity, draw.integer(1, capacity), capacity):
        k, v = (draw.normal(2, 2, total, 3).to(dtype) for _ in range(2))
        first = draw.integer(1, total)
        for start, stop in [(0, first), (first, total)]:
            too_many = draw.normal(2, 2, capacity - start + draw.integer(1, 3), 3).to(dtype)
            for layer in range(layers):
                with expect.raises(ValueError, "more positions than fit"):
                    cache.append(layer, too_many, too_many)
                expect.same(cache.length, start, "length after what did not fit")
                if stop == start:
                    continue
                k_all, v_all = cache.append(layer, k[:, :, start:stop], v[:, :, start:stop])
                expect.close(k_all, k[:, :, :stop], "k_all")
                expect.close(v_all, v[:, :, :stop], "v_all")
                expect.true(k_all.dtype == v_all.dtype == dtype, "the dtype is not the cache's")
        expect.same(cache.length, total, "length")
        cache.reset()
        expect.same(cache.length, 0, "length after reset")


@suite.check(
    "hidden_wrong_arguments",
    of="KVCache",
    points=0.25,
    claim="refuses sizes below 1, layers that are not there and shapes that are not the cache's",
    teaching=SECRET,
)
def wrong_arguments(student: Any, draw: Draw) -> None:
    for place in range(5):
        for size in (0, -draw.integer(1, 9)):
            sizes = [draw.integer(1, 4) for _ in range(5)]
            sizes[place] = size
            with expect.raises(ValueError, "a size below 1"):
                student.KVCache(*sizes)
    cache = student.KVCache(3, 2, 4, 5, 6)
    k, v = draw.normal(2, 4, 2, 5), draw.normal(2, 4, 2, 5)
    for layer in (3, 3 + draw.integer(1, 9), -1, -3):
        with expect.raises(ValueError, "a layer that is not there"):
            cache.append(layer, k, v)
    for wrong in (k[:1], k[:, :1], k[:, :, :1], k[..., :1], torch.cat([k, k], dim=1)):
        with expect.raises(ValueError, "v of a shape that is not k's"):
            cache.append(0, k, wrong)
        with expect.raises(ValueError, "k of a shape that is not v's"):
            cache.append(0, wrong, v)
        if wrong.shape[2] == 2:
            with expect.raises(ValueError, "a shape that is not the cache's"):
                cache.append(0, wrong, wrong)
    expect.same(cache.length, 0, "length after what was refused")
    k_all, v_all = cache.append(0, k, v)
    expect.close(k_all, k, "k_all")
    expect.close(v_all, v, "v_all")


def witnessed(ids: Tensor, real: Tensor | None) -> Tensor:
    """What a Witness answers after `ids`."""
    real = torch.ones_like(ids) if real is None else real
    return torch.stack([ids[:, -1], (ids * real * real.cumsum(dim=1)).sum(dim=1)], dim=-1).float()


def cache_for(student: Any, model: MiniGPT, batch: int) -> Any:
    return student.KVCache(model.n_layers, batch, model.n_heads, model.head_dim, model.block_size)


@suite.check(
    "hidden_model_in_pieces",
    of="KVCache",
    points=0.5,
    claim="a model that reads in pieces gives the logits of one pass, and a left-padded row those "
    "that it has alone",
    teaching=SECRET,
)
def model_in_pieces(student: Any, draw: Draw) -> None:
    model = tiny_gpt(draw.integer(0, 999), n_layers=draw.integer(1, 3)).requires_grad_(False)
    total = model.block_size
    ids = draw.ids(3, total, model.vocab_size)
    padded = torch.tensor([0, draw.integer(1, 3), draw.integer(4, 6)])
    real = (torch.arange(total) >= padded[:, None]).long()
    whole, padded_cache = cache_for(student, model, 3), cache_for(student, model, 3)
    for start, stop in pieces(draw, total):
        piece = ids[:, start:stop]
        expect.close(model(piece, cache=whole), model(ids)[:, start:stop], "logits")
        logits = model(piece, cache=padded_cache, attention_mask=real[:, :stop])
        for row, empty in enumerate(padded.tolist()):
            seen = max(start, empty)
            if seen < stop:
                alone = model(ids[row : row + 1, empty:])[0, seen - empty : stop - empty]
                expect.close(logits[row, seen - start :], alone, "logits of a padded row")


@suite.check(
    "hidden_prefill",
    of="prefill",
    points=0.25,
    claim="reads each piece of a prompt in one pass, masked or not, and tells the last position",
    teaching=SECRET,
)
def prefill(student: Any, draw: Draw) -> None:
    for batch, total in [(1, 1), (2, 2), (4, 9)]:
        ids = draw.ids(batch, total, 50)
        for masked in (False, True):
            model, cache = Witness(), StandInCache()
            cuts = pieces(draw, total)
            # left-padded, within the first piece
            real = (torch.arange(total) >= draw.ids(batch, 1, cuts[0][1])).long()
            for start, stop in cuts:
                attention_mask = real[:, :stop] if masked else None
                answer = student.prefill(model, ids[:, start:stop], cache, attention_mask)
                expect.close(answer, witnessed(ids[:, :stop], attention_mask))
            passes = [stop - start for start, stop in cuts]
            expect.same(model.forwarded, passes, "the list of positions in each forward pass")
            with expect.raises(ValueError, "an empty prompt"):
                student.prefill(model, ids[:, :0], cache)
    full, batch = tiny_gpt(draw.integer(0, 999)).requires_grad_(False), draw.integer(1, 3)
    ids = draw.ids(batch, full.block_size, full.vocab_size)
    own = cache_for(student, full, batch)
    for start, stop in pieces(draw, full.block_size):
        answer = student.prefill(full, ids[:, start:stop], own)
        expect.close(answer, full(ids)[:, stop - 1], "logits")


@suite.check(
    "hidden_decode",
    of="decode_step",
    points=0.25,
    claim="sends one token a row through the model, masked or not, at the position after the past",
    teaching=SECRET,
)
def decode(student: Any, draw: Draw) -> None:
    for batch, past in [(1, 1), (3, 4)]:
        total = past + 3
        ids, real = draw.ids(batch, total, 50), draw.ids(batch, total, 2)
        real[:, past:] = 1
        for masked in (False, True):
            model, cache = Witness(), StandInCache()
            model(ids[:, :past], cache=cache, attention_mask=real[:, :past] if masked else None)
            for stop in range(past + 1, total + 1):
                attention_mask = real[:, :stop] if masked else None
                answer = student.decode_step(model, ids[:, stop - 1 : stop], cache, attention_mask)
                expect.close(answer, witnessed(ids[:, :stop], attention_mask))
            expect.same(
                model.forwarded, [past, 1, 1, 1], "the list of positions in each forward pass"
            )
    for shape in [(batch, 2), (batch, 0), (batch,), (1, batch, 1)]:
        with expect.raises(ValueError, "a token that is not one a row"):
            student.decode_step(model, torch.zeros(shape, dtype=torch.long), cache)
