"""MiniGPT: a small decoder-only transformer, in the shape of GPT-2.

Read it from the bottom up: `MiniGPT.forward` turns ids into logits, a `Block` is one layer, and
`Attention`, where positions look at each other, is the only place that knows of a cache.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class Cache(Protocol):
    """All that MiniGPT asks of a cache; lesson 7 builds one."""

    @property
    def length(self) -> int: ...

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None = None
    ) -> Tensor: ...


@dataclass(frozen=True)
class MiniGPTConfig:
    """The shape of a model; `models/config.json` holds the shipped one."""

    vocab_size: int = 4096
    block_size: int = 256
    n_layers: int = 4
    n_heads: int = 4
    width: int = 256
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.width % self.n_heads:
            raise ValueError(f"width={self.width} must be a multiple of n_heads={self.n_heads}")


class Attention(nn.Module):
    """Causal self-attention of one layer: each position reads itself and those before it."""

    def __init__(self, config: MiniGPTConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.n_heads = layer, config.n_heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(
        self,
        x: Float[Tensor, "batch pos width"],
        cache: Cache | None,
        attention_mask: Bool[Tensor, "batch keys"] | None,
    ) -> Float[Tensor, "batch pos width"]:
        # (B, T, 3W) -> (B, T, 3, H, D) -> three tensors of (B, H, T, D)
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            # the cache adds k and v to those it holds and lets q look at all of them
            y = cache.attend(self.layer, q, k, v, attention_mask)
        else:
            allowed = None if attention_mask is None else visible_keys(attention_mask)
            y = F.scaled_dot_product_attention(q, k, v, allowed, is_causal=allowed is None)
        return self.out(y.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    """One layer: attention, then a two-layer network a position, both added to their input."""

    def __init__(self, config: MiniGPTConfig, layer: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = Attention(config, layer)
        self.mlp_norm = nn.LayerNorm(config.width)
        self.mlp_up = nn.Linear(config.width, 4 * config.width, bias=False)
        self.mlp_down = nn.Linear(4 * config.width, config.width, bias=False)
        self.dropout = config.dropout

    def forward(self, x: Tensor, cache: Cache | None, attention_mask: Tensor | None) -> Tensor:
        x = x + self.drop(self.attention(self.attention_norm(x), cache, attention_mask))
        hidden = F.gelu(self.mlp_up(self.mlp_norm(x)), approximate="tanh")
        return x + self.drop(self.mlp_down(hidden))

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout) if self.training else x  # a call that does nothing counts


class MiniGPT(nn.Module):
    """Ids in, a score for every possible next id out, at every position."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.config = config
        self.vocab_size, self.block_size = config.vocab_size, config.block_size
        self.n_layers, self.n_heads = config.n_layers, config.n_heads
        self.head_dim = config.width // config.n_heads
        self.token_embedding = nn.Embedding(config.vocab_size, config.width)
        self.position_embedding = nn.Embedding(config.block_size, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.final_norm = nn.LayerNorm(config.width)
        self.apply(initialise)

    @classmethod
    def from_pretrained(cls, folder: str | Path | None = None) -> "MiniGPT":
        """The trained model of `folder` (the course's own by default), in float32 and eval mode.

        Raises ModelFileError, which says what to do, if a file is missing or damaged.
        """
        from .pretrained import load_pretrained, shipped_models

        return load_pretrained(Path(folder) if folder is not None else shipped_models())

    def forward(
        self,
        ids: Int[Tensor, "batch pos"],
        *,
        cache: Cache | None = None,
        attention_mask: Int[Tensor, "batch keys"] | None = None,
    ) -> Float[Tensor, "batch pos vocab"]:
        """Logits for the token after each position.

        With a cache, `ids` are the new tokens only, and the cache's `length` says how many came
        before. `attention_mask` covers all positions so far, those in the cache included: 1 real, 0
        padding. Raises ValueError if the positions do not fit into `block_size`.
        """
        past = cache.length if cache is not None else 0
        total = past + ids.shape[1]
        if total > self.block_size:
            raise ValueError(
                f"ids end at position {total}, but block_size={self.block_size} is the model's "
                f"limit: pass the last {self.block_size} tokens at most"
            )
        if attention_mask is None:
            positions, real = torch.arange(past, total, device=ids.device), None
        else:
            if attention_mask.shape != (ids.shape[0], total):
                raise ValueError(
                    f"attention_mask has shape {tuple(attention_mask.shape)}; it must cover all "
                    f"positions so far, {(ids.shape[0], total)}"
                )
            # padding takes no position: a left-padded row counts from 0 at its first real token
            positions = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, past:]
            real = attention_mask.bool()
        x = self.dropout(self.token_embedding(ids) + self.position_embedding(positions))
        for block in self.blocks:
            x = block(x, cache, real)
        # the head is tied: a token's score is its embedding times the final state
        return F.linear(self.final_norm(x), self.token_embedding.weight)


def initialise(module: nn.Module) -> None:
    """Small normal weights, as GPT-2 has them; `apply` comes to a block after its parts."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    elif isinstance(module, Block):
        # a block starts as the identity: what it adds to its input is zero until it learns
        nn.init.zeros_(module.attention.out.weight)
        nn.init.zeros_(module.mlp_down.weight)


def visible_keys(mask: Bool[Tensor, "batch pos"]) -> Bool[Tensor, "batch 1 pos pos"]:
    """Causal, and no padding; a padding position sees itself, lest its softmax run over nothing."""
    pos = mask.shape[1]
    causal = torch.ones(pos, pos, dtype=torch.bool, device=mask.device).tril()
    itself = torch.eye(pos, dtype=torch.bool, device=mask.device)
    return ((causal & mask[:, None, :]) | itself)[:, None]
