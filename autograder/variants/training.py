"""Right ways to write next_token_loss, perplexity and last_logits."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..bank import Bank

bank = Bank("training")


def checked(logits: Tensor, tokens: Tensor, ignore_index: int) -> None:
    if logits.shape[:-1] != tokens.shape:
        raise ValueError(f"tokens {list(tokens.shape)} do not belong to logits")
    for token in tokens[:, 1:].flatten().tolist():
        if token != ignore_index and not 0 <= token < logits.shape[-1]:
            raise ValueError(f"tokens holds {token}")


@bank.variant("next_token_loss")
def turns_the_axes(logits: Tensor, tokens: Tensor, ignore_index: int = -100) -> Tensor:
    checked(logits, tokens, ignore_index)
    predictions = logits[:, :-1].float().transpose(1, 2)
    return F.cross_entropy(predictions, tokens[:, 1:], ignore_index=ignore_index)


@bank.variant("next_token_loss")
def gathers_log_probabilities(logits: Tensor, tokens: Tensor, ignore_index: int = -100) -> Tensor:
    checked(logits, tokens, ignore_index)
    targets = tokens[:, 1:]
    counts = targets != ignore_index
    log_probs = logits[:, :-1].log_softmax(dim=-1, dtype=torch.float32)
    picked = log_probs.gather(-1, targets.where(counts, 0).unsqueeze(-1)).squeeze(-1)
    return -picked[counts].mean()


@bank.variant("next_token_loss")
def log_sum_exp_minus_the_target(
    logits: Tensor, tokens: Tensor, ignore_index: int = -100
) -> Tensor:
    checked(logits, tokens, ignore_index)
    counts = tokens[:, 1:] != ignore_index
    predictions, targets = logits[:, :-1][counts].double(), tokens[:, 1:][counts]
    picked = predictions[torch.arange(len(targets)), targets]
    return (predictions.logsumexp(dim=-1) - picked).sum() / counts.sum()


@bank.variant("next_token_loss")
def sums_and_divides(logits: Tensor, tokens: Tensor, ignore_index: int = -100) -> Tensor:
    checked(logits, tokens, ignore_index)
    predictions = logits[:, :-1].float().reshape(-1, logits.size(-1))
    targets = tokens[:, 1:].reshape(-1)
    total = F.cross_entropy(predictions, targets, ignore_index=ignore_index, reduction="sum")
    return total / (targets != ignore_index).sum()


@bank.variant("next_token_loss")
def marks_the_last_position_as_ignored(
    logits: Tensor, tokens: Tensor, ignore_index: int = -100
) -> Tensor:
    checked(logits, tokens, ignore_index)
    targets = F.pad(tokens[:, 1:], (0, 1), value=ignore_index)
    log_probs = logits.float().log_softmax(dim=-1)
    return F.nll_loss(log_probs.flatten(0, 1), targets.flatten(), ignore_index=ignore_index)


@bank.variant("next_token_loss")
def loops_over_pairs(logits: Tensor, tokens: Tensor, ignore_index: int = -100) -> Tensor:
    checked(logits, tokens, ignore_index)
    losses = [
        answer.float().logsumexp(dim=0) - answer[target].float()
        for row, ids in zip(logits, tokens, strict=True)
        for answer, target in zip(row[:-1], ids[1:], strict=True)
        if target != ignore_index
    ]
    return torch.stack(losses).mean() if losses else torch.tensor(torch.nan)


@bank.variant("perplexity")
def adds_up_lists(batches: Iterable[tuple[float, int]]) -> float:
    pairs = list(batches)
    if any(tokens < 0 for _, tokens in pairs):
        raise ValueError("a count is negative")
    total = sum(tokens for _, tokens in pairs)
    if total < 1:
        raise ValueError("batches holds no token")
    return math.exp(math.fsum(nll for nll, _ in pairs) / total)


@bank.variant("perplexity")
def sums_columns_of_a_tensor(batches: Iterable[tuple[float, int]]) -> Tensor:
    table = torch.tensor(list(batches), dtype=torch.float64).reshape(-1, 2)
    nll, tokens = table.unbind(dim=1)
    if (tokens < 0).any() or tokens.sum() == 0:
        raise ValueError("batches needs counts of 0 or more, and one above 0")
    return (nll.sum() / tokens.sum()).exp()


@bank.variant("perplexity")
def weighs_batch_means(batches: Iterable[tuple[float, int]]) -> float:
    mean, seen = 0.0, 0
    for nll, tokens in batches:
        if tokens < 0:
            raise ValueError(f"batches holds a count of {tokens}")
        if tokens:
            seen += tokens
            mean += (nll / tokens - mean) * tokens / seen
    if not seen:
        raise ValueError("batches holds no token")
    return float(2 ** (mean / math.log(2)))


def checked_mask(logits: Tensor, attention_mask: Tensor) -> None:
    if attention_mask.shape != logits.shape[:2]:
        raise ValueError(f"attention_mask is {tuple(attention_mask.shape)}")
    if (attention_mask.sum(dim=1) == 0).any():
        raise ValueError("attention_mask has a row without a 1")


@bank.variant("last_logits")
def searches_from_the_end(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    logits = logits.float()
    if attention_mask is None:
        return logits[:, -1, :]
    checked_mask(logits, attention_mask)
    last = logits.shape[1] - 1 - attention_mask.flip(1).argmax(dim=1)
    return logits[torch.arange(logits.shape[0]), last]


@bank.variant("last_logits")
def counts_up_to_the_last(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    if attention_mask is None:
        attention_mask = torch.ones(logits.shape[:2], dtype=torch.int64)
    checked_mask(logits, attention_mask)
    last = attention_mask.cumsum(dim=1).argmax(dim=1)
    return logits.double().gather(1, last[:, None, None].expand(-1, 1, logits.shape[2]))[:, 0]


@bank.variant("last_logits")
def multiplies_positions_by_the_mask(
    logits: Tensor, attention_mask: Tensor | None = None
) -> Tensor:
    if attention_mask is None:
        return logits.select(1, -1).to(torch.float32, copy=True)
    checked_mask(logits, attention_mask)
    last = (attention_mask * torch.arange(logits.shape[1])).max(dim=1).values
    return torch.take_along_dim(logits, last.view(-1, 1, 1), dim=1).squeeze(1).float()


@bank.variant("last_logits")
def loops_over_rows(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    rows = []
    if attention_mask is not None and attention_mask.shape != logits.shape[:2]:
        raise ValueError(f"attention_mask is {tuple(attention_mask.shape)}")
    for row in range(len(logits)):
        last = logits.shape[1] - 1
        while attention_mask is not None and not attention_mask[row, last]:
            last -= 1
            if last < 0:
                raise ValueError(f"row {row} of attention_mask is empty")
        rows.append(logits[row, last].float())
    return torch.stack(rows)
