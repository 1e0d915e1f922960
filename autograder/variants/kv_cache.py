"""Right ways to write the parts of lesson 7."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from solutions import kv_cache as solution
from solutions.training import last_logits

from ..bank import Bank

bank = Bank("kv_cache")


# --- causal_mask ---


def refuse_lengths(query_len: int, key_len: int) -> None:
    if query_len < 0 or query_len > key_len:
        raise ValueError(f"query_len={query_len} must be 0 to key_len={key_len}")


@bank.variant("causal_mask")
def compares_positions(query_len: int, key_len: int) -> Tensor:
    refuse_lengths(query_len, key_len)
    queries = torch.arange(key_len - query_len, key_len)
    return torch.arange(key_len)[None, :] <= queries[:, None]


@bank.variant("causal_mask")
def last_rows_of_the_square(query_len: int, key_len: int) -> Tensor:
    refuse_lengths(query_len, key_len)
    return torch.ones(key_len, key_len).tril().bool()[key_len - query_len :]


@bank.variant("causal_mask")
def not_the_upper_triangle(query_len: int, key_len: int) -> Tensor:
    refuse_lengths(query_len, key_len)
    future = torch.ones(query_len, key_len, dtype=torch.bool).triu(key_len - query_len + 1)
    return ~future


@bank.variant("causal_mask")
def past_beside_triangle(query_len: int, key_len: int) -> Tensor:
    refuse_lengths(query_len, key_len)
    past = torch.ones(query_len, key_len - query_len, dtype=torch.bool)
    return torch.cat([past, torch.ones(query_len, query_len).tril() == 1], dim=1)


# --- attend ---


@bank.variant("attend")
def by_torch_itself(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    # torch gives zeros, not NaN, to a query that may look at nothing
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@bank.variant("attend")
def infinity_and_zeros(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = (q / math.sqrt(q.shape[-1])) @ k.mT
    weights = torch.where(mask, scores, -torch.inf).softmax(dim=-1)
    return weights.nan_to_num(nan=0.0) @ v


@bank.variant("attend")
def by_einsum_in_float32(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.einsum("bhqd,bhkd->bhqk", q.float(), k.float()) * q.shape[-1] ** -0.5
    weights = scores.masked_fill(mask.logical_not(), -1e9).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, v.float()).to(q.dtype)


@bank.variant("attend")
def adds_a_bias(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.matmul(q, k.permute(0, 1, 3, 2)) / q.shape[-1] ** 0.5
    # a quarter of the lowest number: added to a score it must not leave the range
    bias = torch.zeros(mask.shape, dtype=q.dtype)
    bias = bias.masked_fill(~mask, torch.finfo(q.dtype).min / 4)
    return (scores + bias).softmax(dim=-1) @ v


@bank.variant("attend")
def exponentials_by_hand(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.transpose(2, 3) / math.sqrt(q.size(-1))
    highest = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(dim=-1, keepdim=True)
    weights = (scores - highest).exp().where(mask, 0.0)
    total = weights.sum(dim=-1, keepdim=True)
    return weights / total.where(total > 0, 1.0) @ v


@bank.variant("attend")
def row_by_row_and_head_by_head(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    batch, heads, queries, _ = q.shape
    allowed = mask.expand(batch, heads, queries, k.shape[2])
    answer = torch.empty_like(q)
    for row in range(batch):
        for head in range(heads):
            scores = q[row, head] @ k[row, head].T / math.sqrt(q.shape[-1])
            scores[~allowed[row, head]] = torch.finfo(scores.dtype).min
            answer[row, head] = torch.softmax(scores, dim=1) @ v[row, head]
    return answer


# --- KVCache ---


class Given:
    """What the stub gives, and the checks of the arguments that any right cache makes.

    Each cache says how it keeps things: `set_aside`, `reset`, `append`, `length`.
    """

    def __init__(
        self,
        n_layers: int,
        batch: int,
        heads: int,
        head_dim: int,
        capacity: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        if min(n_layers, batch, heads, head_dim, capacity) < 1:
            raise ValueError("every size must be 1 or more")
        self.n_layers, self.shape, self.capacity = n_layers, (batch, heads, head_dim), capacity
        self.kind: dict[str, Any] = {"dtype": dtype, "device": device}
        self.set_aside()

    def check(self, layer: int, held: int, k: Tensor, v: Tensor) -> None:
        if layer not in range(self.n_layers):
            raise ValueError(f"layer={layer} must be 0 to {self.n_layers - 1}")
        batch, heads, head_dim = self.shape
        if k.shape != v.shape or k.shape != (batch, heads, k.shape[2], head_dim):
            raise ValueError(f"shapes {k.shape} and {v.shape} are not those of the cache")
        if held + k.shape[2] > self.capacity:
            raise ValueError(f"no room: capacity={self.capacity}")

    def set_aside(self) -> None:
        raise NotImplementedError

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None = None
    ) -> Tensor:
        k, v = self.append(layer, k, v)  # type: ignore[attr-defined]  # each cache has its own
        mask = solution.causal_mask(q.shape[2], k.shape[2])
        if key_mask is not None:
            mask = mask & key_mask[:, None, None, :].bool()
        return solution.attend(q, k, v, mask)


@bank.variant("KVCache")
class ListOfTensors(Given):
    """Grows by `torch.cat`: slower, and right."""

    def set_aside(self) -> None:
        batch, heads, head_dim = self.shape
        self.empty = torch.zeros(batch, heads, 0, head_dim, **self.kind)
        self.reset()

    def reset(self) -> None:
        self.layers = [(self.empty, self.empty) for _ in range(self.n_layers)]

    @property
    def length(self) -> int:
        return min(keys.shape[2] for keys, _ in self.layers)

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.check(layer, self.layers[layer][0].shape[2] if layer < self.n_layers else 0, k, v)
        old_k, old_v = self.layers[layer]
        self.layers[layer] = (torch.cat([old_k, k], dim=2), torch.cat([old_v, v], dim=2))
        return self.layers[layer]


@bank.variant("KVCache")
class LengthAsAttribute(Given):
    """One buffer for both, time first; `length` is a plain attribute."""

    def set_aside(self) -> None:
        shape = (self.n_layers, 2, self.capacity, *self.shape)
        self.memory = torch.empty(shape, **self.kind)
        self.filled = torch.zeros(self.n_layers, dtype=torch.long)
        self.length = 0

    def reset(self) -> None:
        self.filled.zero_()
        self.length = 0

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        start = int(self.filled[layer]) if layer < self.n_layers else 0
        self.check(layer, start, k, v)
        stop = start + k.shape[2]
        self.memory[layer, 0, start:stop] = k.permute(2, 0, 1, 3)
        self.memory[layer, 1, start:stop] = v.permute(2, 0, 1, 3)
        self.filled[layer] = stop
        self.length = int(self.filled.min())
        keys, values = self.memory[layer, :, :stop].permute(0, 2, 3, 1, 4)
        return keys, values


@bank.variant("KVCache")
class CountsAtTheLastLayer(Given):
    """One count, moved on by the last layer: right as long as a pass visits the layers in order,
    as every model does.
    """

    def set_aside(self) -> None:
        batch, heads, head_dim = self.shape
        shape = (batch, heads, self.capacity, head_dim)
        self.k = [torch.zeros(shape, **self.kind) for _ in range(self.n_layers)]
        self.v = [torch.zeros(shape, **self.kind) for _ in range(self.n_layers)]
        self.length = 0

    def reset(self) -> None:
        self.length = 0

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.check(layer, self.length, k, v)
        stop = self.length + k.shape[2]
        self.k[layer][:, :, self.length : stop] = k
        self.v[layer][:, :, self.length : stop] = v
        if layer == self.n_layers - 1:
            self.length = stop
        return self.k[layer][:, :, :stop], self.v[layer][:, :, :stop]


@bank.variant("KVCache")
class DictOfCopies(Given):
    """Keeps the pieces as they came and joins them when asked; hands out copies."""

    def set_aside(self) -> None:
        self.pieces: dict[int, list[Tensor]] = {}

    def held(self, layer: int) -> int:
        return sum(piece.shape[3] for piece in self.pieces.get(layer, []))

    @property
    def length(self) -> int:
        return min(self.held(layer) for layer in range(self.n_layers))

    def reset(self) -> None:
        self.pieces.clear()

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.check(layer, self.held(layer), k, v)
        piece = torch.stack([k, v]).to(**self.kind)
        self.pieces.setdefault(layer, []).append(piece)
        keys, values = torch.cat(self.pieces[layer], dim=3).unbind()
        return keys.clone(), values.clone()


@bank.variant("KVCache")
class IndexCopies(Given):
    """Heads and rows as one axis, filled by index; reset makes new memory."""

    def set_aside(self) -> None:
        batch, heads, head_dim = self.shape
        shape = (self.n_layers, batch * heads, self.capacity, head_dim)
        self.blank = torch.zeros(shape, **self.kind)
        self.reset()

    def reset(self) -> None:
        self.k, self.v = self.blank.clone(), self.blank.clone()
        self.counts = dict.fromkeys(range(self.n_layers), 0)

    @property
    def length(self) -> int:
        return min(self.counts.values())

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.check(layer, self.counts.get(layer, 0), k, v)
        places = torch.arange(self.counts[layer], self.counts[layer] + k.shape[2])
        self.k[layer].index_copy_(1, places, k.flatten(0, 1).to(self.k.dtype))
        self.v[layer].index_copy_(1, places, v.flatten(0, 1).to(self.v.dtype))
        self.counts[layer] += k.shape[2]
        rows = self.shape[:2]
        keys, values = (x[layer, :, : self.counts[layer]] for x in (self.k, self.v))
        return keys.unflatten(0, rows), values.unflatten(0, rows)


# --- prefill and decode_step ---


@bank.variant("prefill")
def without_gradients(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    if ids.numel() == 0:
        raise ValueError("ids hold no position")
    with torch.no_grad():
        logits: Tensor = model(ids, cache=cache, attention_mask=attention_mask)
    return logits[:, -1, :].clone()


@bank.variant("prefill")
def by_lesson_one(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    if not ids.shape[-1]:
        raise ValueError("ids hold no position")
    if attention_mask is None:
        return last_logits(model(ids, cache=cache))
    return last_logits(model(ids, cache=cache, attention_mask=attention_mask))


@bank.variant("prefill")
def always_with_a_mask(
    model: Any, ids: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    batch, new = ids.shape
    if new < 1:
        raise ValueError("ids hold no position")
    if attention_mask is None:
        attention_mask = torch.ones(batch, cache.length + new, dtype=torch.long)
    logits: Tensor = model(ids, cache=cache, attention_mask=attention_mask)
    return logits.select(1, new - 1)


@bank.variant("decode_step")
def squeezes_the_position(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    if token.dim() != 2 or token.size(1) != 1:
        raise ValueError("token must be (batch, 1)")
    logits: Tensor = model(token, cache=cache, attention_mask=attention_mask)
    return logits.squeeze(1)


@bank.variant("decode_step")
def as_a_prefill_of_one(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    if tuple(token.shape[1:]) != (1,):
        raise ValueError("token must be (batch, 1)")
    return solution.prefill(model, token, cache, attention_mask)


@bank.variant("decode_step")
@torch.inference_mode()
def in_inference_mode(
    model: Any, token: Tensor, cache: Any, attention_mask: Tensor | None = None
) -> Tensor:
    if token.shape != (len(token), 1):
        raise ValueError("token must be (batch, 1)")
    return model(token, cache=cache, attention_mask=attention_mask)[:, 0]
