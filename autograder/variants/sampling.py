"""Right ways to write greedy, inverse_cdf, sample and next_token."""

import math
from itertools import accumulate

import torch
from torch import Generator, Tensor

from solutions.sampling import inverse_cdf
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter

from ..bank import Bank

bank = Bank("sampling")

BELOW_ONE = 1 - 2**-53


# --- greedy ---


def two_axes(logits: Tensor) -> Tensor:
    if logits.ndim != 2:
        raise ValueError(f"logits of shape {tuple(logits.shape)} must be (batch, vocab)")
    return logits


@bank.variant("greedy")
def greedy_by_max(logits: Tensor) -> Tensor:
    return two_axes(logits).max(dim=1, keepdim=True).indices


@bank.variant("greedy")
def greedy_by_stable_sort(logits: Tensor) -> Tensor:
    return two_axes(logits).sort(dim=-1, descending=True, stable=True).indices[:, :1]


@bank.variant("greedy")
def greedy_by_a_loop(logits: Tensor) -> Tensor:
    rows = two_axes(logits).tolist()
    return torch.tensor([[max(range(len(row)), key=row.__getitem__)] for row in rows])


@bank.variant("greedy")
def greedy_of_probabilities(logits: Tensor) -> Tensor:
    """In float64 the softmax keeps apart what the logits keep apart."""
    return two_axes(logits).double().log_softmax(dim=-1).argmax(dim=-1).unsqueeze(-1)


# --- inverse_cdf ---


def checked(probs: Tensor, u: Tensor) -> None:
    if probs.ndim != 2 or u.ndim != 1 or len(u) != len(probs):
        raise ValueError(f"probs {tuple(probs.shape)} and u {tuple(u.shape)} do not fit")
    if not all(0 <= x <= 1 for x in u.tolist()):
        raise ValueError(f"u={u.tolist()}")
    checked_rows(probs)


def checked_rows(probs: Tensor) -> None:
    if probs.isnan().any() or probs.isinf().any() or (probs < 0).any():
        raise ValueError("probs holds NaN, an infinity or a negative value")
    if (probs.sum(dim=-1) == 0).any():
        raise ValueError("a row of probs has no mass")


@bank.variant("inverse_cdf")
def cdf_by_counting(probs: Tensor, u: Tensor) -> Tensor:
    """How many steps lie at or below u."""
    checked(probs, u)
    cdf = probs.double().cumsum(dim=-1)
    cdf = cdf / cdf[:, -1:]
    return (cdf <= u.double().clamp(max=BELOW_ONE)[:, None]).sum(dim=-1, keepdim=True)


@bank.variant("inverse_cdf")
def cdf_by_argmax(probs: Tensor, u: Tensor) -> Tensor:
    checked(probs, u)
    wide = probs.double() / probs.double().sum(dim=-1, keepdim=True)
    cdf = wide.cumsum(dim=-1)
    cdf = cdf / cdf[:, -1:]
    above = cdf > u.double().clamp(max=BELOW_ONE).unsqueeze(1)
    return above.int().argmax(dim=1, keepdim=True)


@bank.variant("inverse_cdf")
def cdf_by_a_wheel(probs: Tensor, u: Tensor) -> Tensor:
    """The roulette of many textbooks: walk along the row until u is used up."""
    checked(probs, u)
    found = []
    for row, at in zip(probs.double().tolist(), u.double().tolist(), strict=True):
        steps = list(accumulate(row))
        target = at * steps[-1]
        last = max(i for i, weight in enumerate(row) if weight > 0)
        found.append(next((i for i, step in enumerate(steps) if step > target), last))
    return torch.tensor(found)[:, None]


@bank.variant("inverse_cdf")
def cdf_by_scaling_u(probs: Tensor, u: Tensor) -> Tensor:
    """u is brought to the length of the line instead of the line to 1."""
    checked(probs, u)
    cdf = probs.to(torch.float64).cumsum(dim=-1)
    total = cdf[:, -1:]
    target = torch.minimum(u.double()[:, None] * total, total * (1 - 2**-52))
    return torch.searchsorted(cdf, target, side="right")


# --- sample ---


@bank.variant("sample")
def sample_by_multinomial(probs: Tensor, generator: Generator | None = None) -> Tensor:
    checked_rows(probs)
    return torch.multinomial(probs, 1, generator=generator)


@bank.variant("sample")
def sample_by_gumbel(probs: Tensor, generator: Generator | None = None) -> Tensor:
    checked_rows(probs)
    uniform = torch.rand(probs.shape, generator=generator, dtype=torch.float64)
    gumbel = -(-uniform.clamp(min=1e-300).log()).log()
    return (probs.double().log() + gumbel).argmax(dim=-1, keepdim=True)


@bank.variant("sample")
def sample_by_exponential_race(probs: Tensor, generator: Generator | None = None) -> Tensor:
    checked_rows(probs)
    waiting = torch.empty_like(probs, dtype=torch.float64).exponential_(generator=generator)
    return (probs / waiting).argmax(dim=-1, keepdim=True)


@bank.variant("sample")
def sample_by_single_precision_u(probs: Tensor, generator: Generator | None = None) -> Tensor:
    return inverse_cdf(probs, torch.rand(probs.shape[0], generator=generator))


@bank.variant("sample")
def sample_row_by_row(probs: Tensor, generator: Generator | None = None) -> Tensor:
    us = [torch.rand(1, generator=generator, dtype=torch.float64) for _ in probs]
    return torch.cat([inverse_cdf(row[None], u) for row, u in zip(probs, us, strict=True)])


# --- next_token ---


def usable(logits: Tensor, temperature: float) -> None:
    two_axes(logits)
    if logits.isnan().any() or (logits == -torch.inf).all(dim=-1).any():
        raise ValueError("a row of logits holds NaN, or no token")
    if not math.isfinite(temperature) or temperature < 0:
        raise ValueError(f"temperature={temperature}")


@bank.variant("next_token")
def next_by_multinomial(
    logits: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    do_sample: bool = True,
    generator: Generator | None = None,
) -> Tensor:
    usable(logits, temperature)
    if not do_sample or temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    logits = apply_temperature(logits, temperature)
    logits = top_k_filter(logits, top_k)
    logits = top_p_filter(logits, top_p)
    return torch.multinomial(logits.softmax(dim=-1), num_samples=1, generator=generator)


@bank.variant("next_token")
def next_on_log_probabilities(
    logits: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    do_sample: bool = True,
    generator: Generator | None = None,
) -> Tensor:
    """Log-probabilities are logits too; the wanted token is found in the sorted short list."""
    usable(logits, temperature)
    if not do_sample or temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    scores = apply_temperature(logits.float().log_softmax(dim=-1), temperature)
    kept, order = top_p_filter(top_k_filter(scores, top_k), top_p).sort(dim=-1, descending=True)
    u = torch.rand(len(kept), generator=generator)
    return order.gather(-1, inverse_cdf(kept.softmax(dim=-1), u))


@bank.variant("next_token")
def next_with_filters_only_where_set(
    logits: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    do_sample: bool = True,
    generator: Generator | None = None,
) -> Tensor:
    usable(logits, temperature)
    if do_sample and temperature > 0:
        if temperature != 1:
            logits = apply_temperature(logits, temperature)
        if top_k is not None:
            logits = top_k_filter(logits, top_k)
        if top_p is not None:
            logits = top_p_filter(logits, top_p)
        probs = logits.float().softmax(dim=-1)
        return inverse_cdf(probs, torch.rand(len(probs), generator=generator))
    return torch.stack([row.argmax() for row in logits])[:, None]
