"""Lesson 7: the causal mask, attention, the cache, and reading a text with its help."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from solutions.kv_cache import KVCache, attend, causal_mask, decode_step, prefill

from .helpers import HALVES, left_pad, new_cache, random_ids, seeded, strided, tiny


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed))


# --- causal_mask ---


def test_mask_shows_each_query_the_keys_up_to_its_own_position() -> None:
    for key_len in range(6):
        for query_len in range(key_len + 1):
            mask = causal_mask(query_len, key_len)
            assert mask.shape == (query_len, key_len)
            assert mask.dtype == torch.bool
            first = key_len - query_len  # the position of the first query
            for query in range(query_len):
                expected = [key <= first + query for key in range(key_len)]
                assert mask[query].tolist() == expected


def test_mask_gives_the_worked_example() -> None:
    assert causal_mask(2, 5).int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert causal_mask(3, 3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(1, 4).int().tolist() == [[1, 1, 1, 1]]


@pytest.mark.parametrize("query_len,key_len", [(3, 2), (1, 0), (-1, 2), (-2, -1)])
def test_mask_names_lengths_that_are_not_allowed(query_len: int, key_len: int) -> None:
    with pytest.raises(ValueError, match=f"query_len={query_len} and key_len={key_len}"):
        causal_mask(query_len, key_len)


# --- attend ---


@pytest.mark.parametrize(
    "batch,heads,queries,keys,dim", [(1, 1, 1, 1, 1), (2, 3, 4, 4, 8), (2, 2, 3, 7, 5)]
)
def test_attend_is_torchs_own_attention(
    batch: int, heads: int, queries: int, keys: int, dim: int
) -> None:
    q = noise(batch, heads, queries, dim)
    k, v = noise(batch, heads, keys, dim, seed=1), noise(batch, heads, keys, dim, seed=2)
    mask = causal_mask(queries, keys)
    result = attend(q, k, v, mask)
    assert result.shape == (batch, heads, queries, dim)
    torch.testing.assert_close(result, F.scaled_dot_product_attention(q, k, v, mask))


def test_attend_averages_the_values_that_the_mask_allows() -> None:
    v = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 4, 1)
    q, k = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 4, 1)
    assert attend(q, k, v, causal_mask(2, 4)).flatten().tolist() == [2, 2.5]


def test_attend_scales_by_the_square_root_of_the_head_size() -> None:
    # one key scores 1 * 9 / sqrt(9) = 3 more than the other
    q, v = torch.ones(1, 1, 1, 9), torch.tensor([0.0, 1.0]).view(1, 1, 2, 1).expand(1, 1, 2, 9)
    k = torch.stack([torch.zeros(9), torch.ones(9)]).view(1, 1, 2, 9)
    result = attend(q, k, v, torch.ones(1, 2, dtype=torch.bool))
    expected = math.exp(3) / (1 + math.exp(3))
    assert result[0, 0, 0, 0].item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "shape", [(3, 5), (1, 5), (1, 1, 3, 5), (2, 1, 3, 5), (2, 4, 3, 5), (2, 1, 1, 5)]
)
def test_attend_broadcasts_the_mask(shape: tuple[int, ...]) -> None:
    q, k, v = noise(2, 4, 3, 6), noise(2, 4, 5, 6, seed=1), noise(2, 4, 5, 6, seed=2)
    mask = torch.rand(shape, generator=seeded(3)) < 0.6
    mask[..., 0] = True
    torch.testing.assert_close(
        attend(q, k, v, mask), attend(q, k, v, mask.expand(2, 4, 3, 5).contiguous())
    )


def test_attend_of_a_query_that_may_look_at_nothing_is_finite() -> None:
    q, k, v = noise(2, 1, 3, 4) * 30, noise(2, 1, 3, 4, seed=1) * 30, noise(2, 1, 3, 4, seed=2)
    mask = causal_mask(3, 3) & torch.tensor([[0, 0, 1], [1, 1, 1]]).bool()[:, None, None, :]
    result = attend(q, k, v, mask)
    assert result.isfinite().all()
    # and the rows with something to look at do not notice
    torch.testing.assert_close(result[1], attend(q, k, v, causal_mask(3, 3))[1])
    torch.testing.assert_close(result[0, 0, 2], v[0, 0, 2])


def test_attend_never_reads_a_forbidden_value() -> None:
    q, k, v = noise(1, 2, 3, 4), noise(1, 2, 5, 4, seed=1), noise(1, 2, 5, 4, seed=2)
    mask = causal_mask(3, 5)
    expected = attend(q, k, v, mask)
    k[:, :, -1], v[:, :, -1] = 1e3, -1e3
    changed = attend(q, k, v, mask)
    assert torch.equal(changed[:, :, :2], expected[:, :, :2])
    assert not torch.allclose(changed[:, :, 2], expected[:, :, 2])


@pytest.mark.parametrize("dtype", HALVES)
def test_attend_in_half_precision_stays_finite_where_nothing_is_allowed(dtype: torch.dtype) -> None:
    q, k, v = (noise(1, 1, 2, 4, seed=i).to(dtype) for i in range(3))
    result = attend(q, k, v, torch.tensor([[False, False], [True, True]]))
    assert result.isfinite().all()


def test_attend_takes_strided_tensors_and_leaves_them_alone() -> None:
    given = [
        strided(noise(2, 2, 3, 4)),
        strided(noise(2, 2, 5, 4, seed=1)),
        strided(noise(2, 2, 5, 4, seed=2)),
        strided(causal_mask(3, 5)),
    ]
    before = [tensor.clone() for tensor in given]
    torch.testing.assert_close(attend(*given), attend(*before))
    for tensor, copy in zip(given, before, strict=True):
        assert torch.equal(tensor, copy)


# --- KVCache ---


def small_cache(**changes: Any) -> KVCache:
    sizes = {"n_layers": 2, "batch": 2, "heads": 3, "head_dim": 4, "capacity": 6} | changes
    return KVCache(**sizes)


def some(positions: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    return noise(2, 3, positions, 4, seed=seed), noise(2, 3, positions, 4, seed=seed + 100)


def test_cache_starts_empty() -> None:
    assert small_cache().length == 0


def test_append_returns_all_keys_and_values_the_new_ones_last() -> None:
    cache, pieces = small_cache(), [some(n, seed=n) for n in (3, 1, 2)]
    for upto in range(1, 4):
        k_all, v_all = cache.append(0, *pieces[upto - 1])
        assert torch.equal(k_all, torch.cat([k for k, _ in pieces[:upto]], dim=2))
        assert torch.equal(v_all, torch.cat([v for _, v in pieces[:upto]], dim=2))


def test_length_counts_the_positions_that_every_layer_holds() -> None:
    cache = small_cache()
    cache.append(0, *some(3))
    assert cache.length == 0, "layer 1 has not read them yet"
    cache.append(1, *some(3))
    assert cache.length == 3
    cache.append(1, *some(1))
    assert cache.length == 3
    cache.append(0, *some(1))
    assert cache.length == 4


def test_layers_do_not_share_what_they_hold() -> None:
    cache = small_cache()
    first, second = some(2, seed=1), some(2, seed=2)
    cache.append(0, *first)
    k_all, _ = cache.append(1, *second)
    assert torch.equal(k_all, second[0])
    k_all, _ = cache.append(0, *some(1, seed=3))
    assert torch.equal(k_all[:, :, :2], first[0])


def test_two_caches_do_not_share_what_they_hold() -> None:
    one, other = small_cache(), small_cache()
    one.append(0, *some(2, seed=1))
    k_all, _ = other.append(0, *some(2, seed=2))
    assert torch.equal(k_all, some(2, seed=2)[0])


def test_appending_past_capacity_raises_and_changes_nothing() -> None:
    cache = small_cache()
    for layer in range(2):
        cache.append(layer, *some(4))
    with pytest.raises(ValueError, match=r"k brings 3 positions to the 4 .*capacity=6"):
        cache.append(0, *some(3, seed=9))
    assert cache.length == 4
    k_all, v_all = cache.append(0, *some(2, seed=5))
    assert torch.equal(k_all, torch.cat([some(4)[0], some(2, seed=5)[0]], dim=2))
    assert torch.equal(v_all, torch.cat([some(4)[1], some(2, seed=5)[1]], dim=2))


def test_a_cache_can_be_filled_to_its_capacity_at_once() -> None:
    cache = small_cache()
    k_all, _ = cache.append(0, *some(6))
    assert k_all.shape[2] == 6
    with pytest.raises(ValueError, match="capacity=6"):
        cache.append(0, *some(1))


def test_reset_forgets_and_keeps_the_room() -> None:
    cache = small_cache()
    for layer in range(2):
        cache.append(layer, *some(6))
    cache.reset()
    assert cache.length == 0
    k_all, _ = cache.append(0, *some(6, seed=3))
    assert torch.equal(k_all, some(6, seed=3)[0])


def test_append_copies_so_later_changes_to_k_are_not_felt() -> None:
    cache = small_cache()
    k, v = some(2)
    cache.append(0, k, v)
    expected = k.clone()
    k.zero_()
    k_all, _ = cache.append(0, *some(1, seed=1))
    assert torch.equal(k_all[:, :, :2], expected)


def test_append_takes_strided_tensors_and_leaves_them_alone() -> None:
    cache = small_cache()
    k, v = (strided(tensor) for tensor in some(2))
    k_all, v_all = cache.append(0, k, v)
    assert torch.equal(k_all, some(2)[0])
    assert torch.equal(v_all, some(2)[1])
    assert torch.equal(k, some(2)[0])
    assert torch.equal(v, some(2)[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
def test_cache_holds_the_dtype_it_was_made_for(dtype: torch.dtype) -> None:
    cache = small_cache(dtype=dtype)
    k_all, v_all = cache.append(0, *(tensor.to(dtype) for tensor in some(2)))
    assert k_all.dtype == v_all.dtype == dtype


def test_cache_sets_its_memory_aside_at_once() -> None:
    cache = small_cache()
    first, _ = cache.append(0, *some(1))
    later, _ = cache.append(0, *some(3))
    assert first.untyped_storage().data_ptr() == later.untyped_storage().data_ptr()


def test_cache_is_no_part_of_the_graph() -> None:
    cache = small_cache()
    k, v = some(1)
    k_all, _ = cache.append(0, k.requires_grad_(), v)
    assert not k_all.requires_grad


@pytest.mark.parametrize("layer", [-1, 2, 99])
def test_append_names_a_layer_that_does_not_exist(layer: int) -> None:
    with pytest.raises(ValueError, match=f"layer={layer} .*layers 0 to 1"):
        small_cache().append(layer, *some(1))


@pytest.mark.parametrize(
    "k_shape,v_shape,name",
    [
        ((1, 3, 2, 4), (2, 3, 2, 4), "k"),
        ((2, 2, 2, 4), (2, 3, 2, 4), "k"),
        ((2, 3, 2, 5), (2, 3, 2, 4), "k"),
        ((2, 3, 2, 4), (2, 3, 1, 4), "v"),
        ((2, 3, 2, 4), (2, 3, 2, 1), "v"),
        ((3, 2, 4), (3, 2, 4), "k"),
    ],
)
def test_append_names_a_shape_that_is_not_the_caches_and_changes_nothing(
    k_shape: tuple[int, ...], v_shape: tuple[int, ...], name: str
) -> None:
    cache = small_cache()
    with pytest.raises(ValueError, match=f"^{name} has shape") as error:
        cache.append(0, torch.zeros(k_shape), torch.zeros(v_shape))
    assert str(k_shape if name == "k" else v_shape) in str(error.value)
    k_all, _ = cache.append(0, *some(1))
    assert k_all.shape[2] == 1


@pytest.mark.parametrize("name", ["n_layers", "batch", "heads", "head_dim", "capacity"])
@pytest.mark.parametrize("size", [0, -1])
def test_cache_names_a_size_below_one(name: str, size: int) -> None:
    with pytest.raises(ValueError, match=f"^{name}={size} "):
        small_cache(**{name: size})


def test_cache_attend_is_append_then_causal_mask_then_attend() -> None:
    cache, other = small_cache(), small_cache()
    key_mask = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]]).bool()
    for positions, seed in ((3, 1), (1, 2)):
        q, (k, v) = noise(2, 3, positions, 4, seed=seed + 7), some(positions, seed=seed)
        total = 3 if positions == 3 else 4
        result = cache.attend(0, q, k, v, key_mask[:, :total])
        k_all, v_all = other.append(0, k, v)
        mask = causal_mask(positions, total) & key_mask[:, None, None, :total]
        torch.testing.assert_close(result, attend(q, k_all, v_all, mask))
        assert result.isfinite().all()


# --- prefill and decode_step ---


def test_prefill_gives_the_last_positions_logits_and_fills_the_cache() -> None:
    model = tiny()
    ids, cache = random_ids(model, 3, 7), new_cache(model, 3)
    with torch.no_grad():
        result = prefill(model, ids, cache)
        torch.testing.assert_close(result, model(ids)[:, -1], rtol=1e-4, atol=1e-5)
    assert result.shape == (3, model.vocab_size)
    assert cache.length == 7


def test_decode_step_makes_the_next_token_position_n() -> None:
    model = tiny()
    ids, cache = random_ids(model, 2, 12), new_cache(model, 2)
    with torch.no_grad():
        prefill(model, ids[:, :5], cache)
        for n in range(5, 12):
            assert cache.length == n
            result = decode_step(model, ids[:, n : n + 1], cache)
            expected = model(ids[:, : n + 1])[:, -1]
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pieces", [[1, 9], [9, 1], [3, 3, 4], [1] * 10, [10]], ids=str)
def test_a_prompt_may_be_prefilled_in_pieces(pieces: list[int]) -> None:
    model = tiny()
    ids, cache = random_ids(model, 2, 10), new_cache(model, 2)
    with torch.no_grad():
        for piece in ids.split(pieces, dim=1):
            result = prefill(model, piece, cache)
            expected = model(ids[:, : cache.length])[:, -1]
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pieces", [[8], [1, 7], [4, 4], [1] * 8], ids=str)
def test_the_mask_covers_all_positions_so_far(pieces: list[int]) -> None:
    model = tiny()
    rows = [random_ids(model, 1, n, seed=n)[0] for n in (8, 3, 1)]
    ids, mask = left_pad(rows)
    cache = new_cache(model, 3)
    with torch.no_grad():
        for piece in ids.split(pieces, dim=1):
            result = prefill(model, piece, cache, mask[:, : cache.length + piece.shape[1]])
        token = torch.tensor([[3], [5], [7]])
        after = decode_step(model, token, cache, torch.cat([mask, torch.ones_like(token)], 1))
        for i, row in enumerate(rows):
            alone = torch.cat([row, token[i]])[None]
            expected = model(alone)[0]
            torch.testing.assert_close(result[i], expected[-2], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(after[i], expected[-1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 0), (3,), (1, 2, 3)])
def test_prefill_names_an_empty_prompt(shape: tuple[int, ...]) -> None:
    model = tiny()
    with pytest.raises(ValueError, match="ids has shape") as error:
        prefill(model, torch.zeros(shape, dtype=torch.long), new_cache(model))
    assert str(shape) in str(error.value)


@pytest.mark.parametrize("shape", [(1, 2), (1, 0), (1,)])
def test_decode_step_names_a_token_that_is_not_one_a_row(shape: tuple[int, ...]) -> None:
    model = tiny()
    with pytest.raises(ValueError, match=r"token has shape .* \(batch, 1\)") as error:
        decode_step(model, torch.zeros(shape, dtype=torch.long), new_cache(model))
    assert str(shape) in str(error.value)
