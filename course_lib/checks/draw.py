"""Random inputs for checks: the same seed draws the same inputs.

A check that asks for a `draw` is run on a fixed seed in the notebook, and on a secret one by the
grader.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Draw:
    """A source of inputs."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        return low + (high - low) * float(torch.rand((), generator=self.generator))

    def ids(self, batch: int, pos: int, vocab: int) -> Tensor:
        """Token ids, int64 (batch, pos)."""
        return torch.randint(vocab, (batch, pos), generator=self.generator)

    def normal(self, *shape: int, spread: float = 1.0) -> Tensor:
        return spread * torch.randn(shape, generator=self.generator)

    def logits(self, batch: int, vocab: int, spread: float = 3.0) -> Tensor:
        """Logits (batch, vocab), no two of a row closer than 0.0006: no ties, no near ties."""
        order = torch.stack([torch.randperm(vocab, generator=self.generator) for _ in range(batch)])
        step = max(0.001, 2 * spread / vocab)
        jitter = 0.4 * step * torch.rand((batch, vocab), generator=self.generator)
        return (order - vocab / 2) * step + jitter
