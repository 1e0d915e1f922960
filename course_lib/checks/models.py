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
from .record import LARGEST_LISTED

CERTAIN = 10.0  # the logit of the token that a toy model wants; the others have 0


class ToyModel:
    """One layer, one head, head size 1; a subclass says in `wanted` which id comes next.

    What it remembers of a token, in the cache too, is one number, its `value`.
    """

    n_layers, n_heads, head_dim = 1, 1, 1

    def __init__(self, vocab_size: int, block_size: int = 64) -> None:
        self.vocab_size, self.block_size = vocab_size, block_size
        self.training = False
        self.forwarded: list[int] = []
        self.modes: list[tuple[bool, bool]] = []  # (training, gradients on) of each call
        self.title = type(self).__name__  # how a message calls the model

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
        if attention_mask is not None and attention_mask.shape != (len(ids), total):
            raise ValueError(
                f"attention_mask has shape {tuple(attention_mask.shape)}; it must cover all "
                f"positions so far, {(len(ids), total)}"
            )
        self.forwarded.append(ids.shape[1])
        self.modes.append((self.training, torch.is_grad_enabled()))
        real = torch.ones(len(ids), total) if attention_mask is None else attention_mask
        return self.logits(ids, self.visible_sums(ids, cache, real.long()))

    def visible_sums(self, ids: Tensor, cache: Any, real: Tensor) -> Tensor:
        """The sum of the real tokens' values up to each position, the cache's too; (B, T)."""
        new = slice(real.shape[1] - ids.shape[1], None)
        # padding takes no position: a left-padded row counts from 0 at its first real token
        positions = (real.cumsum(dim=1) - 1).clamp(min=0)[:, new]
        values = self.value(ids, positions)
        if cache is None:
            return (values * real).cumsum(dim=1)
        # keys all alike: attention is the mean of the values that may be seen
        nothing = torch.zeros(*ids.shape, 1).unsqueeze(1)
        mean = cache.attend(0, nothing, nothing, values[:, None, :, None].float(), real.bool())
        if mean.shape != nothing.shape:
            raise ValueError(
                f"the cache's attend gave shape {tuple(mean.shape)}; it must be that of q, "
                f"{tuple(nothing.shape)}"
            )
        counts = real.cumsum(dim=1)[:, new]
        return (mean[:, 0, :, 0] * counts).round().long()

    def value(self, ids: Tensor, positions: Tensor) -> Tensor:
        return ids

    def logits(self, ids: Tensor, sums: Tensor) -> Tensor:
        wanted = self.wanted(ids, sums) % self.vocab_size
        return CERTAIN * torch.nn.functional.one_hot(wanted, self.vocab_size).float()

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
        if len(following) <= 8:
            self.title = f"Bigram({list(following)})"

    def wanted(self, ids: Tensor, sums: Tensor) -> Tensor:
        return self.following[ids]


class SumModel(ToyModel):
    """The next id is the sum of all visible ids, modulo the vocabulary: no lost token goes by."""

    def wanted(self, ids: Tensor, sums: Tensor) -> Tensor:
        return sums


class PlacedSum(SumModel):
    """A SumModel where the first token counts once, the second twice, ...: places matter too."""

    def value(self, ids: Tensor, positions: Tensor) -> Tensor:
        return ids * (positions + 1)


class Script(ToyModel):
    """Says one text of ids, whatever it reads: after n tokens comes the n-th of `ids`."""

    def __init__(self, ids: Sequence[int], vocab_size: int = 256, block_size: int = 64) -> None:
        super().__init__(vocab_size, block_size)
        self.ids = torch.tensor(list(ids))

    def value(self, ids: Tensor, positions: Tensor) -> Tensor:
        return torch.ones_like(ids)

    def wanted(self, ids: Tensor, sums: Tensor) -> Tensor:
        return self.ids[sums.clamp(max=len(self.ids) - 1)]


class Table(ToyModel):
    """The next logits are looked up by the last id: `rows` (V, V), or one row for all."""

    def __init__(self, rows: Tensor, block_size: int = 64) -> None:
        super().__init__(rows.shape[-1], block_size)
        self.rows = rows.expand(self.vocab_size, self.vocab_size)
        if rows.ndim == 1 and len(rows) <= 8:
            self.title = f"Table({[round(x, 3) for x in rows.tolist()]})"

    def logits(self, ids: Tensor, sums: Tensor) -> Tensor:
        return self.rows[ids]


class Witness(PlacedSum):
    """Tells what it saw: its two logits are the token, and the sum of the real tokens up to it,
    the first counted once, the second twice, ...
    """

    def __init__(self, block_size: int = 64) -> None:
        super().__init__(2, block_size)

    def logits(self, ids: Tensor, sums: Tensor) -> Tensor:
        return torch.stack([ids, sums], dim=-1).float()


class StandInCache:
    """What a toy model needs of a cache, and no more: it keeps a sum, not the tokens.

    With it a check of `prefill` asks nothing of the learner's own cache.
    """

    def __init__(self) -> None:
        self.title = "cache"
        self.reset()

    def reset(self) -> None:
        self.length = 0
        # of the values so far: their sum, and how many of them are real, (B, 1)
        self.sums, self.counts = torch.zeros(1, 1), torch.zeros(1, 1)

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None = None
    ) -> Tensor:
        """The mean of the real values up to each position, (B, 1, T, 1)."""
        new = v[:, 0, :, 0]
        if self.length and len(new) != len(self.sums):
            raise ValueError(f"v has {len(new)} rows; this cache holds {len(self.sums)}")
        real = torch.ones_like(new) if key_mask is None else key_mask[:, self.length :].float()
        sums = self.sums + (new * real).cumsum(dim=1)
        counts = self.counts + real.cumsum(dim=1)
        self.sums, self.counts = sums[:, -1:], counts[:, -1:]
        self.length += new.shape[1]
        return (sums / counts.clamp(min=1))[:, None, :, None]

    def footprint(self) -> dict[str, Any]:
        return {"length": self.length}


class NoisyModel(Bigram):
    """A Bigram with dropout: in training mode it answers at random. Its footprint tells modes."""

    noisy = False  # as the flag of a part, it is set by `train` and `eval` only

    def train(self, mode: bool = True) -> ToyModel:
        self.noisy = mode
        return super().train(mode)

    def wanted(self, ids: Tensor, sums: Tensor) -> Tensor:
        if self.noisy:
            return torch.randint(self.vocab_size, ids.shape)
        return super().wanted(ids, sums)

    def footprint(self) -> dict[str, Any]:
        trained = any(training for training, _ in self.modes)
        gradients = any(on for _, on in self.modes)
        modes = {"noisy": self.noisy, "trained": trained, "gradients": gradients}
        return super().footprint() | modes


class ByteTokenizer:
    """The ids of a text are its bytes in UTF-8: `é` has two, so one of them is half a character.

    Ids from 256 on stand for the `longer` tokens, any bytes; a text is never encoded with these.
    """

    def __init__(self, *longer: bytes) -> None:
        self.tokens = [bytes([byte]) for byte in range(256)] + list(longer)

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(self.tokens[i] for i in ids).decode(errors="replace")


class Listener:
    """A streamer: keeps what it is handed, and how often the model had been called by then."""

    def __init__(self, model: ToyModel) -> None:
        self.model = model
        self.heard: list[Tensor] = []
        self.calls: list[int] = []

    def __call__(self, ids: Tensor) -> None:
        self.heard.append(ids)
        self.calls.append(len(self.model.forwarded))

    def footprint(self) -> dict[str, Any]:
        shapes = [list(ids.shape) if isinstance(ids, Tensor) else None for ids in self.heard]
        values = [
            ids.tolist() if isinstance(ids, Tensor) and ids.numel() <= LARGEST_LISTED else None
            for ids in self.heard
        ]
        return {"shapes": shapes, "values": values, "calls": list(self.calls)}


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
