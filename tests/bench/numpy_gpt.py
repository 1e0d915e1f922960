"""MiniGPT's decoding in NumPy alone, one text: what is left of the time without torch's calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.given.minigpt import MiniGPT

Array = np.ndarray[Any, np.dtype[np.float32]]


def norm(x: Array, weight: Array, bias: Array) -> Array:
    x = x - x.mean()
    return x / np.sqrt((x * x).mean() + 1e-5) * weight + bias


class NumpyGPT:
    """The weights as arrays (in, out), and a cache."""

    def __init__(self, model: MiniGPT) -> None:
        self.w: dict[str, Array] = {}
        for name, weight in model.state_dict().items():
            array = weight.numpy()
            self.w[name] = np.ascontiguousarray(array if "embedding" in name else array.T)
        self.head = np.ascontiguousarray(self.w["token_embedding.weight"].T)
        self.layers, self.heads, self.size = model.n_layers, model.n_heads, model.head_dim
        shape = model.n_layers, model.n_heads, model.block_size, model.head_dim
        self.keys, self.values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def step(self, token: int, at: int) -> Array:
        """Logits (vocab,) for the token after `token`, which is at position `at`."""
        w = self.w
        x = w["token_embedding.weight"][token] + w["position_embedding.weight"][at]
        for layer in range(self.layers):
            name = f"blocks.{layer}."
            y = norm(x, w[name + "attention_norm.weight"], w[name + "attention_norm.bias"])
            q, k, v = (y @ w[name + "attention.qkv.weight"]).reshape(3, self.heads, self.size)
            self.keys[layer, :, at], self.values[layer, :, at] = k, v
            scores = (self.keys[layer, :, : at + 1] @ q[:, :, None])[:, :, 0] / self.size**0.5
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            y = (weights[:, None] @ self.values[layer, :, : at + 1]).reshape(-1)
            x = x + y @ w[name + "attention.out.weight"]
            y = norm(x, w[name + "mlp_norm.weight"], w[name + "mlp_norm.bias"])
            y = y @ w[name + "mlp_up.weight"]
            y = 0.5 * y * (1 + np.tanh(np.float32(0.7978845608) * (y + 0.044715 * y**3)))
            x = x + y @ w[name + "mlp_down.weight"]
        logits: Array = norm(x, w["final_norm.weight"], w["final_norm.bias"]) @ self.head
        return logits

    def generate(
        self,
        ids: list[int],
        new: int,
        rng: np.random.Generator,
        temperature: float,
        top_k: int,
        top_p: float,
    ) -> list[int]:
        """`ids` and `new` sampled tokens more."""
        ids = list(ids)
        for at, token in enumerate(ids):
            logits = self.step(token, at)
        for made in range(new):
            best = np.argpartition(logits, -top_k)[-top_k:]
            best = best[np.argsort(-logits[best])]
            mass = np.exp((logits[best] - logits[best[0]]).astype(np.float64) / temperature)
            mass = mass.cumsum()
            kept = int(np.searchsorted(mass, top_p * mass[-1])) + 1
            ids.append(int(best[np.searchsorted(mass[:kept], rng.random() * mass[kept - 1])]))
            if made < new - 1:
                logits = self.step(ids[-1], len(ids) - 1)
        return ids
