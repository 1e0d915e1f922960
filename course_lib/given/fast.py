"""How fast MiniGPT can decode on a CPU: the same step in fewer and fewer calls, for one text.

Lesson 9 goes through it. `FlatStep` is a step as a flat list of torch calls, `CompiledStep` is one
call of C++ (fast.cpp), in float32 or with weights in int8. Both know one row and no padding, and
both say what MiniGPT says. `continue_text` decodes with either.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from .minigpt import Block, MiniGPT

SOURCE = Path(__file__).with_name("fast.cpp")
# what lets a compiler use the processor's wide registers: sums may be taken in another order, as
# torch takes them. Not -ffast-math, which also changes how the whole process rounds tiny numbers
FLAGS = ["-std=c++17", "-fPIC", "-shared", "-O3", "-fno-math-errno", "-fno-trapping-math"]
FLAGS += ["-fno-signed-zeros", "-fassociative-math"]


class NoCompiler(RuntimeError):
    """There is no C++ compiler, or it can't compile fast.cpp; the message says what to do."""


class Step(Protocol):
    """Reads one token after the other and says the logits for the next."""

    block_size: int
    length: int

    def reset(self) -> None: ...

    def __call__(self, token: int) -> Tensor: ...


def decoding_weights(model: MiniGPT) -> list[Tensor]:
    """The weights that a step reads from one end to the other: all but the two embeddings.

    The head counts: it is the token embedding, read whole.
    """
    looked_up = model.position_embedding.weight
    return [weight.detach() for weight in model.parameters() if weight is not looked_up]


class FlatStep:
    """A step as a flat list of torch calls over plain tensors.

    With `by_input` a matrix is stored (in, out), so that a product reads memory in one sweep.
    """

    def __init__(self, model: MiniGPT, *, by_input: bool = True) -> None:
        self.block_size, self.n_heads, self.head_dim = (
            model.block_size,
            model.n_heads,
            model.head_dim,
        )

        def transposed(weight: Tensor) -> Tensor:
            """(in, out) for x @ w; the memory as asked for."""
            weight = weight.detach().t()
            return weight.contiguous() if by_input else weight.t().contiguous().t()

        self.tokens = model.token_embedding.weight.detach().contiguous()
        self.positions = model.position_embedding.weight.detach().contiguous()
        self.head = transposed(model.token_embedding.weight)
        self.final_norm = model.final_norm.weight.detach(), model.final_norm.bias.detach()
        self.layers = [
            (
                (block.attention_norm.weight.detach(), block.attention_norm.bias.detach()),
                transposed(block.attention.qkv.weight),
                transposed(block.attention.out.weight),
                (block.mlp_norm.weight.detach(), block.mlp_norm.bias.detach()),
                transposed(block.mlp_up.weight),
                transposed(block.mlp_down.weight),
            )
            for block in _blocks(model)
        ]
        shape = 1, self.n_heads, self.block_size, self.head_dim
        self.caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in self.layers]
        self.length = 0

    def reset(self) -> None:
        """Forget the text."""
        self.length = 0

    @torch.inference_mode()
    def __call__(self, token: int) -> Tensor:
        """Logits (vocab,) for the token after `token`.

        Raises ValueError when the window is full.
        """
        _check_room(self)
        at = self.length
        x = (self.tokens[token] + self.positions[at])[None]
        width = x.shape[1:]
        for layer, cache in zip(self.layers, self.caches, strict=True):
            norm, qkv, out, mlp_norm, up, down = layer
            # (1, 3W) -> query, key and value of each head
            q, *new = (F.layer_norm(x, width, *norm) @ qkv).view(3, 1, self.n_heads, 1, -1)
            for kept, piece in zip(cache, new, strict=True):
                kept[:, :, at : at + 1] = piece
            keys, values = (kept[:, :, : at + 1] for kept in cache)
            # the newest position may look at all the others: no mask
            y = F.scaled_dot_product_attention(q, keys, values)
            x = torch.addmm(x, y.view(1, -1), out)
            hidden = F.gelu(F.layer_norm(x, width, *mlp_norm) @ up, approximate="tanh")
            x = torch.addmm(x, hidden, down)
        self.length = at + 1
        return (F.layer_norm(x, width, *self.final_norm) @ self.head)[0]


class CompiledStep:
    """A step as one call of C++. With `int8` a weight takes a byte instead of four."""

    def __init__(self, model: MiniGPT, *, int8: bool = False) -> None:
        """Compile fast.cpp, which takes a second or two. Raises NoCompiler."""
        self.library = compiled()
        self.block_size, self.vocab_size = model.block_size, model.vocab_size
        config = model.config
        shape = config.vocab_size, config.block_size, config.n_layers, config.n_heads, config.width
        self.shape = (ctypes.c_int32 * 5)(*shape)
        # C++ is given addresses alone, so the tensors must live as long as this object does
        self.parts: list[Tensor | None] = []
        embedding = _plain(model.token_embedding.weight)
        self._add_matrix(embedding, int8)
        self.parts += [embedding, _plain(model.position_embedding.weight)]
        for block in _blocks(model):
            self.parts += [_plain(block.attention_norm.weight), _plain(block.attention_norm.bias)]
            self._add_matrix(_plain(block.attention.qkv.weight), int8)
            self._add_matrix(_plain(block.attention.out.weight), int8)
            self.parts += [_plain(block.mlp_norm.weight), _plain(block.mlp_norm.bias)]
            self._add_matrix(_plain(block.mlp_up.weight), int8)
            self._add_matrix(_plain(block.mlp_down.weight), int8)
        self.parts += [_plain(model.final_norm.weight), _plain(model.final_norm.bias)]
        addresses = [None if part is None else part.data_ptr() for part in self.parts]
        self.addresses = (ctypes.c_void_p * len(addresses))(*addresses)
        self.cache = torch.zeros(config.n_layers, 2, config.block_size, config.width)
        self.logits = torch.zeros(config.vocab_size)
        self.step = self.library.step_int8 if int8 else self.library.step_float
        self.length = 0

    def _add_matrix(self, weight: Tensor, int8: bool) -> None:
        self.parts += quantised(weight) if int8 else (weight, None)

    def reset(self) -> None:
        """Forget the text."""
        self.length = 0

    def __call__(self, token: int) -> Tensor:
        """Logits (vocab,) for the token after `token`, overwritten by the next call.

        Raises ValueError when the window is full, and for a token that is not in the vocabulary.
        """
        _check_room(self)
        if not 0 <= token < self.vocab_size:
            raise ValueError(f"token={token} is not allowed: ids are 0 to {self.vocab_size - 1}")
        self.step(
            self.shape,
            self.addresses,
            self.cache.data_ptr(),
            token,
            self.length,
            self.logits.data_ptr(),
        )
        self.length += 1
        return self.logits


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix (out, in) as int8 and a scale a row, (out,): weight = int8 x scale, nearly."""
    scale = (weight.abs().amax(dim=1) / 127).clamp(min=1e-12)
    return (weight / scale[:, None]).round().to(torch.int8), scale


def continue_text(
    step: Step,
    ids: Sequence[int],
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    do_sample: bool = True,
    eos_id: int | None = None,
    generator: torch.Generator | None = None,
) -> list[int]:
    """`ids` and up to `max_new_tokens` more, as `generate` makes them from the same seed.

    It ends where the window is full, and its knobs are those of `next_token`, unchecked.
    """
    choose = _choice_in_cpp if isinstance(step, CompiledStep) else _choice_in_torch
    step.reset()
    text = [int(token) for token in ids]
    for token in text:
        logits = step(token)
    us = [0.0] * max_new_tokens
    if do_sample and temperature > 0:
        # one a step, as `generate` draws them, but in one call
        us = torch.rand(max_new_tokens, dtype=torch.float64, generator=generator).tolist()
    for made, u in enumerate(us, start=1):
        token = choose(logits, temperature if do_sample else 0.0, top_k or 0, top_p, u)
        text.append(token)
        if token == eos_id or made == max_new_tokens or step.length == step.block_size:
            break
        logits = step(token)
    return text


def _choice_in_cpp(
    logits: Tensor, temperature: float, top_k: int, top_p: float | None, u: float
) -> int:
    chosen: int = compiled().choose(
        logits.data_ptr(), len(logits), temperature, top_k, 1.0 if top_p is None else top_p, u
    )
    return chosen


def _choice_in_torch(
    logits: Tensor, temperature: float, top_k: int, top_p: float | None, u: float
) -> int:
    """The same with torch: keep few, in the order of ids, and find where u falls among them."""
    if temperature == 0:
        return int(logits.argmax())
    logits = (logits - logits.max()) / temperature
    if top_k:
        logits = logits.masked_fill(
            logits < logits.topk(min(top_k, len(logits))).values[-1], -math.inf
        )
    if top_p is not None and top_p < 1:
        best, order = logits.sort(descending=True, stable=True)
        mass = best.exp().double().cumsum(dim=0)
        banned = order[1:][mass[:-1] >= top_p * mass[-1]]
        logits = logits.index_fill(0, banned, -math.inf)
    cdf = logits.exp().double().cumsum(dim=0)
    return int(torch.searchsorted(cdf / cdf[-1], u, right=True))


_library: ctypes.CDLL | None = None


def compiled() -> ctypes.CDLL:
    """fast.cpp, compiled when it is first wanted. Raises NoCompiler."""
    global _library
    if _library is None:
        _library = _compile()
    return _library


def _compile() -> ctypes.CDLL:
    names = [os.environ.get("CXX"), "c++", "g++", "clang++"]
    compiler = next((found for name in names if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise NoCompiler(
            "there is no C++ compiler here: install one (Debian: apt-get install g++; macOS: "
            "xcode-select --install), or go on without, FlatStep needs none"
        )
    with tempfile.TemporaryDirectory(prefix="fast-", ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "fast.so"
        # not every compiler knows the processor that it runs on
        for more in (["-march=native"], []):
            command = [compiler, *FLAGS, *more, str(SOURCE), "-o", str(target)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode == 0:
                break
        else:
            raise NoCompiler(f"{compiler} can't compile {SOURCE.name}: {run.stderr.strip()[:300]}")
        library = ctypes.CDLL(str(target))
    address, whole, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
    for step in (library.step_float, library.step_int8):
        step.argtypes, step.restype = [address, address, address, whole, whole, address], None
    library.choose.argtypes = [address, whole, real, whole, real, real]
    library.choose.restype = whole
    return library


def _blocks(model: MiniGPT) -> list[Block]:
    return [block for block in model.blocks if isinstance(block, Block)]


def _plain(weight: Tensor) -> Tensor:
    """A weight as C++ reads it: float32, row after row."""
    return weight.detach().float().contiguous()


def _check_room(step: Step) -> None:
    if step.length >= step.block_size:
        raise ValueError(
            f"the window is full: {step.length} tokens are read, and block_size={step.block_size}"
        )
