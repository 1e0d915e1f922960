"""Toy models whose every answer is known, for the checks of lessons 7 and 8.

They follow the model protocol: `model(ids, *, cache=None, attention_mask=None)` gives logits (B, T,
V). Each keeps `forwarded`, the number of positions of each call, so that a check can count the work
done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..given.minigpt import MiniGPT, MiniGPTConfig

CERTAIN = 10.0  # the logit of the token that a toy model wants; the others have 0


class ToyModel:
    """One layer, one head, head size 1; a subclass says in `wanted` which id comes next."""

    n_layers, n_heads, head_dim = 1, 1, 1

    def __init__(self, vocab_size: int, block_size: int = 64) -> None:
        self.vocab_size, self.block_size = vocab_size, block_size
        self.training = False
        self.forwarded: list[int] = []
        self.modes: list[tuple[bool, bool]] = []  # (training, gradients on) of each call

    def eval(self) -> ToyModel:
        return self.train(False)

    def train(self, mode: bool = True) -> ToyModel:
        self.training = mode
        return self

    def __call__(
        self, ids: Tensor, *, cache: Any = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        past = 0 if cache is None else cache.length
        total = past + ids.shape[1]
        if total > self.block_size:
            raise ValueError(f"ids end at position {total}; block_size={self.block_size}")
        self.forwarded.append(ids.shape[1])
        self.modes.append((self.training, torch.is_grad_enabled()))
        real = torch.ones(len(ids), total) if attention_mask is None else attention_mask
        sums = self.visible_sums(ids, cache, real)
        wanted = self.wanted(ids, sums) % self.vocab_size
        return CERTAIN * torch.nn.functional.one_hot(wanted, self.vocab_size).float()

    def visible_sums(self, ids: Tensor, cache: Any, real: Tensor) -> Tensor:
        """The sum of the real ids up to each position, those in the cache included; (B, T)."""
        if cache is None:
            return (ids * real.long()).cumsum(dim=1)
        # keys all alike: attention is the mean of the values, and the values are the ids
        nothing = torch.zeros(*ids.shape, 1).unsqueeze(1)
        mean = cache.attend(0, nothing, nothing, ids[:, None, :, None].float(), real.bool())
        counts = real.long().cumsum(dim=1)[:, -ids.shape[1] :]
        return (mean[:, 0, :, 0] * counts).round().long()

    def wanted(self, ids: Tensor, sums: Tensor) -> Tensor:
        raise NotImplementedError

    def footprint(self) -> dict[str, Any]:
        """How the model was used: what two ways of calling it can be told apart by."""
        return {"forwarded": list(self.forwarded), "training": self.training}


class Bigram(ToyModel):
    """The next id is looked up by the last one: `Bigram([1, 2, 0])` counts 0, 1, 2, 0, ..."""

    def __init__(self, following: Sequence[int], block_size: int = 64) -> None:
        super().__init__(len(following), block_size)
        self.following = torch.tensor(following)

    def wanted(self, ids: Tensor, sums: Tensor) -> Tensor:
        return self.following[ids]


class SumModel(ToyModel):
    """The next id is the sum of all visible ids, modulo the vocabulary: no lost token goes by."""

    def wanted(self, ids: Tensor, sums: Tensor) -> Tensor:
        return sums


class NoisyModel(Bigram):
    """A Bigram with dropout: in training mode it answers at random."""

    def wanted(self, ids: Tensor, sums: Tensor) -> Tensor:
        if self.training:
            return torch.randint(self.vocab_size, ids.shape)
        return super().wanted(ids, sums)


def tiny_gpt(
    seed: int = 0, *, vocab_size: int = 11, block_size: int = 8, n_layers: int = 2
) -> MiniGPT:
    """A MiniGPT of random weights, small and opinionated, in eval mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MiniGPT(MiniGPTConfig(vocab_size, block_size, n_layers, n_heads=2, width=16))
        for weight in model.parameters():
            if weight.ndim == 2:
                torch.nn.init.normal_(weight, std=0.5)
    return model.eval()
