"""Lesson 7: KV cache, or reading every token once.

Keys and values of a position do not depend on what comes after it, so a model that has computed
them may keep them, and a new token costs one position instead of the whole text.
"""

import math
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


def causal_mask(query_len: int, key_len: int) -> Bool[Tensor, "query_len key_len"]:
    """Which keys each query may look at: True where allowed.

    The queries are the LAST `query_len` of `key_len` positions, so the last query sees all keys:
    the triangle sits in the bottom right corner.

    Raises ValueError if there are more queries than keys, or a negative number.

    >>> causal_mask(2, 4).int().tolist()
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    """
    ### BEGIN SOLUTION
    if not 0 <= query_len <= key_len:
        raise ValueError(
            f"query_len={query_len} and key_len={key_len} are not allowed: the queries are the "
            "last of the keys, so 0 <= query_len <= key_len"
        )
    # query i stands at position (key_len - query_len) + i and sees the keys up to there
    return torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)
    ### END SOLUTION


def attend(
    q: Float[Tensor, "batch heads queries head_dim"],
    k: Float[Tensor, "batch heads keys head_dim"],
    v: Float[Tensor, "batch heads keys head_dim"],
    mask: Bool[Tensor, "#batch #heads queries keys"] | Bool[Tensor, "queries keys"],
) -> Float[Tensor, "batch heads queries head_dim"]:
    """Attention: for each query the mean of the values, weighted by how well its key fits.

    Scores are q . k / sqrt(head_dim), softmax runs over the keys that `mask` allows (True). `mask`
    broadcasts to (batch, heads, queries, keys). A query that may look at nothing (padding) gives
    finite values, never NaN.

    >>> v = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 4, 1)
    >>> q, k = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 4, 1)
    >>> attend(q, k, v, causal_mask(2, 4)).flatten().tolist()
    [2.0, 2.5]

    Source: Vaswani et al. 2017, "Attention is all you need", section 3.2.1.
    """
    ### BEGIN SOLUTION
    scale = 1 / math.sqrt(q.shape[-1])
    # written out this is
    #   (scale * q @ k.transpose(-2, -1)).masked_fill(~mask, -torch.inf).softmax(dim=-1) @ v
    # but for zeros where a query may look at nothing. One call does it all, and decoding one token
    # at a time spends more on calls than on numbers: so no mask where it forbids nothing, as for
    # the newest token of a text without padding
    forbidding = None if mask.all() else mask.to(q.device)
    return F.scaled_dot_product_attention(q, k, v, forbidding, scale=scale)
    ### END SOLUTION


class KVCache:
    """Keys and values of all positions so far, for every layer of a model.

    Room for `capacity` positions is set aside at once, so that adding a token copies that token
    alone. `length` is the number of positions that every layer holds: in the middle of a forward
    pass the first layers are ahead of it.
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
        """Set aside the memory; the cache is empty.

        Raises ValueError for a size below 1.
        """
        ### BEGIN SOLUTION
        names = ("n_layers", "batch", "heads", "head_dim", "capacity")
        sizes = (n_layers, batch, heads, head_dim, capacity)
        for name, size in zip(names, sizes, strict=True):
            if size < 1:
                raise ValueError(f"{name}={size} is not allowed: it must be 1 or more")
        self.capacity = capacity
        shape = (batch, heads, capacity, head_dim)
        # a tensor for each layer: taking one out of a list costs no call of torch
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(n_layers)]
        self.values = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(n_layers)]
        self.lengths = [0] * n_layers
        ### END SOLUTION

    @property
    def length(self) -> int:
        """The number of positions that every layer holds."""
        ### BEGIN SOLUTION
        return min(self.lengths)
        ### END SOLUTION

    def reset(self) -> None:
        """Forget all positions; the memory is kept for the next text."""
        ### BEGIN SOLUTION
        self.lengths = [0] * len(self.lengths)
        ### END SOLUTION

    def append(
        self,
        layer: int,
        k: Float[Tensor, "batch heads pos head_dim"],
        v: Float[Tensor, "batch heads pos head_dim"],
    ) -> tuple[
        Float[Tensor, "batch heads keys head_dim"], Float[Tensor, "batch heads keys head_dim"]
    ]:
        """Add the new positions of one layer; returns all its keys and values, the new ones last.

        Raises ValueError, and changes nothing, if they do not fit into `capacity`, if the layer
        does not exist or if the shapes are not the cache's.
        """
        ### BEGIN SOLUTION
        if not 0 <= layer < len(self.lengths):
            raise ValueError(
                f"layer={layer} is not allowed: the cache has layers 0 to {len(self.lengths) - 1}"
            )
        batch, heads, capacity, head_dim = self.keys[layer].shape
        for name, new in (("k", k), ("v", v)):
            if new.shape != (batch, heads, k.shape[-2], head_dim):
                raise ValueError(
                    f"{name} has shape {tuple(new.shape)}; this cache takes "
                    f"({batch}, {heads}, new positions, {head_dim}), the same for k and v"
                )
        start = self.lengths[layer]
        stop = start + k.shape[-2]
        if stop > capacity:
            raise ValueError(
                f"k brings {k.shape[-2]} positions to the {start} of layer {layer}, more than "
                f"capacity={capacity}: reset the cache or make a larger one"
            )
        # a cache is a store, not a part of the graph that gradients run through
        self.keys[layer][:, :, start:stop] = k.detach()
        self.values[layer][:, :, start:stop] = v.detach()
        self.lengths[layer] = stop
        return self.keys[layer][:, :, :stop], self.values[layer][:, :, :stop]
        ### END SOLUTION

    def attend(
        self,
        layer: int,
        q: Float[Tensor, "batch heads pos head_dim"],
        k: Float[Tensor, "batch heads pos head_dim"],
        v: Float[Tensor, "batch heads pos head_dim"],
        key_mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> Float[Tensor, "batch heads pos head_dim"]:
        """What a model calls in each layer (given): add k and v, let q look at all positions.

        `key_mask` covers all positions so far, the new ones included: True real, False padding.
        """
        k, v = self.append(layer, k, v)
        mask = causal_mask(q.shape[-2], k.shape[-2])
        if key_mask is not None:
            mask = mask.to(key_mask.device) & key_mask[:, None, None, :].bool()
        return attend(q, k, v, mask)


class CachedModel(Protocol):
    """A model that reads new tokens with the help of a cache, as MiniGPT does (given)."""

    def __call__(
        self,
        ids: Int[Tensor, "batch pos"],
        *,
        cache: KVCache | None = None,
        attention_mask: Int[Tensor, "batch keys"] | None = None,
    ) -> Float[Tensor, "batch pos vocab"]: ...


def prefill(
    model: CachedModel,
    ids: Int[Tensor, "batch pos"],
    cache: KVCache,
    attention_mask: Int[Tensor, "batch keys"] | None = None,
) -> Float[Tensor, "batch vocab"]:
    """Read a prompt, or its next piece, into the cache; returns the logits of its last position.

    All positions of `ids` go through the model in one pass. `attention_mask` covers all positions
    so far, those in the cache included (1 real, 0 padding).

    Raises ValueError for an empty prompt.
    """
    ### BEGIN SOLUTION
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise ValueError(
            f"ids has shape {tuple(ids.shape)}; it must be (batch, pos) with at least one position"
        )
    return model(ids, cache=cache, attention_mask=attention_mask)[:, -1]
    ### END SOLUTION


def decode_step(
    model: CachedModel,
    token: Int[Tensor, "batch 1"],
    cache: KVCache,
    attention_mask: Int[Tensor, "batch keys"] | None = None,
) -> Float[Tensor, "batch vocab"]:
    """Read one new token a row; returns the logits for the token after it.

    Only `token` goes through the model: a cache that holds n positions makes it position n.
    `attention_mask` covers all positions so far, the new one included.

    Raises ValueError unless `token` is (batch, 1).
    """
    ### BEGIN SOLUTION
    if token.ndim != 2 or token.shape[1] != 1:
        raise ValueError(f"token has shape {tuple(token.shape)}; it must be (batch, 1)")
    return model(token, cache=cache, attention_mask=attention_mask)[:, -1]
    ### END SOLUTION
