"""Right ways to write apply_temperature and entropy."""

import math

import torch
from torch import Tensor
from torch.distributions import Categorical

from ..bank import Bank

bank = Bank("temperature")


def checked(temperature: float) -> float:
    if temperature <= 0 or math.isnan(temperature) or math.isinf(temperature):
        raise ValueError(f"temperature={temperature} must be above 0")
    return temperature


@bank.variant("apply_temperature")
def subtracts_the_maximum(logits: Tensor, temperature: float) -> Tensor:
    logits = logits.float()
    return (logits - logits.max(dim=-1, keepdim=True).values) / checked(temperature)


@bank.variant("apply_temperature")
def divides_log_probabilities(logits: Tensor, temperature: float) -> Tensor:
    return logits.float().log_softmax(dim=-1) / checked(temperature)


@bank.variant("apply_temperature")
def returns_log_probabilities(logits: Tensor, temperature: float) -> Tensor:
    return (logits.float() / checked(temperature)).log_softmax(dim=-1)


@bank.variant("apply_temperature")
def multiplies_by_the_inverse(logits: Tensor, temperature: float) -> Tensor:
    return logits.float().mul(1.0 / checked(temperature))


@bank.variant("apply_temperature")
def computes_in_double(logits: Tensor, temperature: float) -> Tensor:
    return logits.double().div(checked(temperature))


@bank.variant("apply_temperature")
def one_needs_no_division(logits: Tensor, temperature: float) -> Tensor:
    checked(temperature)
    if temperature == 1:
        return logits.to(torch.float32)
    scaled = torch.clone(logits).to(torch.float32)
    scaled /= temperature
    return scaled


@bank.variant("apply_temperature")
def divides_by_a_tensor(logits: Tensor, temperature: float) -> Tensor:
    divisor = torch.tensor(checked(temperature), dtype=torch.float32)
    return torch.true_divide(logits.float(), divisor)


@bank.variant("entropy")
def mean_of_log_sum_exp(logits: Tensor) -> Tensor:
    logits = logits.float()
    probs = logits.softmax(dim=-1)
    return logits.logsumexp(dim=-1) - (probs * logits.where(probs > 0, 0.0)).sum(dim=-1)


@bank.variant("entropy")
def leaves_the_zeros_out(logits: Tensor) -> Tensor:
    probs = torch.softmax(logits, dim=-1, dtype=torch.float32)
    return -torch.where(probs > 0, probs * probs.log(), 0.0).sum(dim=-1)


@bank.variant("entropy")
def multiplies_with_xlogy(logits: Tensor) -> Tensor:
    probs = logits.double().softmax(-1)
    return torch.special.xlogy(probs, probs).sum(-1).neg().float()


@bank.variant("entropy")
def clamps_the_log(logits: Tensor) -> Tensor:
    log_probs = logits.float().log_softmax(dim=-1)
    return -(log_probs.exp() * log_probs.clamp(min=-1e4)).sum(dim=-1)


@bank.variant("entropy")
def mends_the_terms(logits: Tensor) -> Tensor:
    log_probs = logits.to(torch.float32).log_softmax(dim=-1)
    return -(log_probs.exp() * log_probs).nan_to_num(nan=0.0).sum(dim=-1)


@bank.variant("entropy")
def adds_a_tiny_epsilon(logits: Tensor) -> Tensor:
    probs = logits.float().softmax(dim=-1)
    return -(probs * (probs + 1e-12).log()).sum(dim=-1)


@bank.variant("entropy")
def asks_torch_distributions(logits: Tensor) -> Tensor:
    return Categorical(probs=logits.double().softmax(dim=-1)).entropy()


@bank.variant("entropy")
def loops_over_rows(logits: Tensor) -> Tensor:
    rows = logits.float().reshape(-1, logits.shape[-1])
    values = []
    for row in rows:
        probs = row.softmax(dim=0)
        probs = probs[probs > 0]
        values.append((probs * -probs.log()).sum())
    return torch.stack(values).view(logits.shape[:-1])
