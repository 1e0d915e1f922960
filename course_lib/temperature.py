"""Lesson 2: temperature, how daring a model is."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def apply_temperature(
    logits: Float[Tensor, "*batch vocab"], temperature: float
) -> Float[Tensor, "*batch vocab"]:
    """Divide the logits by `temperature`, before the softmax.

    Below 1 the distribution gets sharper, above 1 flatter, at 1 it stays. The order of the tokens
    never changes, and a banned token (-inf) stays banned. Half-precision logits are computed in
    float32.

    Raises ValueError for a temperature that is zero, negative, NaN or infinite: "temperature 0" is
    greedy decoding, which is another function.

    >>> apply_temperature(torch.tensor([1.0, 2.0, 4.0]), 0.5).tolist()
    [2.0, 4.0, 8.0]

    Source: Ackley, Hinton and Sejnowski 1985, "A learning algorithm for Boltzmann machines".
    """
    raise NotImplementedError("lesson 2: apply_temperature is yours to write")


def entropy(logits: Float[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch"]:
    """Entropy, in nats, of the distribution softmax(logits): 0 if certain, log(vocab) if uniform.

    A token of probability 0 adds 0, so banned tokens (-inf) do no harm. Half-precision logits are
    computed in float32.

    >>> entropy(torch.zeros(4)).exp().item()
    4.0

    Source: Shannon 1948, "A mathematical theory of communication".
    """
    raise NotImplementedError("lesson 2: entropy is yours to write")
