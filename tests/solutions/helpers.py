"""Small things that the tests of the reference share: distributions by hand, and toy models."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from course_lib.given.minigpt import MiniGPT, MiniGPTConfig
from solutions.kv_cache import KVCache

INF = math.inf
NAN = math.nan
HALVES = (torch.float16, torch.bfloat16)


def log(*probs: float) -> Tensor:
    """Logits (vocab,) whose softmax is `probs`; 0 becomes -inf."""
    return torch.tensor(probs).log()


def kept(logits: Tensor) -> list[list[int]]:
    """The ids of each row (batch, vocab) that are not banned."""
    return [row.isfinite().nonzero()[:, 0].tolist() for row in logits]


def seeded(seed: int = 0) -> torch.Generator:
    """A generator of its own for each call."""
    return torch.Generator().manual_seed(seed)


def random_logits(*shape: int, seed: int = 0, spread: float = 3.0) -> Tensor:
    """Normal logits; no two of a row are equal but by a chance of about 1e-7 a pair."""
    return torch.randn(*shape, generator=seeded(seed)) * spread


def strided(tensor: Tensor) -> Tensor:
    """The same numbers in a tensor that is not contiguous, along no axis."""
    wide = torch.full([2 * size for size in tensor.shape], 7).to(tensor.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in tensor.shape)]
    view.copy_(tensor)
    assert not view.is_contiguous()
    return view


def hoeffding(draws: int, cells: int, alarm: float = 1e-10) -> float:
    """How far a frequency may lie from its probability, so that a right sampler is blamed with a
    chance of at most `alarm`: Hoeffding's bound 2 exp(-2 n e^2) for each of `cells` frequencies."""
    return math.sqrt(math.log(2 * cells / alarm) / (2 * draws))


class Toy(nn.Module):
    """The attributes of the model protocol; `read` says what the last ids of each row lead to.

    It keeps no keys and values, so it is for `use_cache=False`. `calls` notes the shapes it saw.
    """

    n_layers, n_heads, head_dim = 1, 1, 1

    def __init__(self, vocab_size: int, block_size: int = 64) -> None:
        super().__init__()
        self.vocab_size, self.block_size = vocab_size, block_size
        self.calls: list[tuple[int, ...]] = []

    def read(self, ids: Tensor) -> Tensor:
        """The id (batch, pos) that each position says comes next."""
        raise NotImplementedError

    def forward(
        self, ids: Tensor, *, cache: object = None, attention_mask: object = None
    ) -> Tensor:
        assert cache is None, "a toy has no use for a cache"
        assert ids.shape[1] <= self.block_size, "a toy was shown more than its block_size"
        self.calls.append(tuple(ids.shape))
        return torch.nn.functional.one_hot(self.read(ids), self.vocab_size).float() * 5


class Bigram(Toy):
    """The next id is looked up for the last one."""

    def __init__(self, following: list[int], block_size: int = 64) -> None:
        super().__init__(len(following), block_size)
        self.following = torch.tensor(following)

    def read(self, ids: Tensor) -> Tensor:
        return self.following[ids]


class SumModel(Toy):
    """The next id is the sum of all visible ids, modulo the vocabulary."""

    def read(self, ids: Tensor) -> Tensor:
        return ids.cumsum(-1) % self.vocab_size


class NoisyModel(Toy):
    """Its logits are random while it is in train mode, as with dropout."""

    def forward(
        self, ids: Tensor, *, cache: object = None, attention_mask: object = None
    ) -> Tensor:
        logits = super().forward(ids)
        return logits + 100 * torch.rand_like(logits) if self.training else logits

    def read(self, ids: Tensor) -> Tensor:
        return torch.zeros_like(ids)


class Bytes:
    """A tokenizer whose ids are the bytes of the text."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return bytes(ids).decode(errors="replace")


class Script(Toy):
    """Says the bytes of a text one after the other, whatever it reads."""

    def __init__(self, prompt: str, text: bytes) -> None:
        super().__init__(256)
        self.start, self.text = len(prompt.encode()), text

    def read(self, ids: Tensor) -> Tensor:
        following = torch.zeros_like(ids)
        following[:, -1] = self.text[(ids.shape[1] - self.start) % len(self.text)]
        return following


def tiny(
    seed: int = 0,
    *,
    vocab_size: int = 31,
    block_size: int = 16,
    n_layers: int = 2,
    n_heads: int = 2,
    width: int = 16,
    dropout: float = 0.1,
) -> MiniGPT:
    """A MiniGPT of a few thousand weights, in eval mode, large enough for its context to matter."""
    config = MiniGPTConfig(vocab_size, block_size, n_layers, n_heads, width, dropout)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        model = MiniGPT(config)
        for weights in model.parameters():
            # a fresh MiniGPT starts blind to its context (its blocks add nothing yet)
            weights.add_(torch.randn(weights.shape) * (0.4 if weights.ndim == 2 else 0.2))
    return model.eval()


def new_cache(model: MiniGPT, batch: int = 1, capacity: int | None = None) -> KVCache:
    """An empty cache that fits the model."""
    size = model.block_size if capacity is None else capacity
    return KVCache(model.n_layers, batch, model.n_heads, model.head_dim, size)


def random_ids(model: MiniGPT, batch: int, length: int, seed: int = 0) -> Tensor:
    """Ids (batch, length), drawn evenly."""
    return torch.randint(model.vocab_size, (batch, length), generator=seeded(seed))


def left_pad(rows: list[Tensor], pad_id: int = 0) -> tuple[Tensor, Tensor]:
    """Rows (pos,) of different lengths as ids (batch, pos) and attention_mask (batch, pos)."""
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), pad_id)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, width - len(row) :] = row
        mask[i, width - len(row) :] = 1
    return ids, mask
