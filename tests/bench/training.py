"""A training step: MiniGPT with the course's loss, beside the same model as nanoGPT would have it.

Written here in nanoGPT's manner and with its habits: inputs and targets come shifted, the heads are
views of one projection, attention is torch's own, the loss is a cross-entropy of flat views.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.given.minigpt import MiniGPT, MiniGPTConfig
from solutions.training import next_token_loss
from tests.bench.clock import Work

BATCH, POSITIONS = 8, 256


class Layer(nn.Module):
    def __init__(self, shape: MiniGPTConfig) -> None:
        super().__init__()
        width = shape.width
        self.heads, self.dropout = shape.n_heads, shape.dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width, bias=False)
        self.c_proj = nn.Linear(width, width, bias=False)
        self.c_fc = nn.Linear(width, 4 * width, bias=False)
        self.c_out = nn.Linear(4 * width, width, bias=False)
        self.gelu = nn.GELU(approximate="tanh")
        self.drop_1, self.drop_2 = nn.Dropout(shape.dropout), nn.Dropout(shape.dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in (q, k, v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop_1(self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c)))
        return x + self.drop_2(self.c_out(self.gelu(self.c_fc(self.ln_2(x)))))


class Other(nn.Module):
    def __init__(self, shape: MiniGPTConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(shape.vocab_size, shape.width)
        self.wpe = nn.Embedding(shape.block_size, shape.width)
        self.drop = nn.Dropout(shape.dropout)
        self.h = nn.ModuleList(Layer(shape) for _ in range(shape.n_layers))
        self.ln_f = nn.LayerNorm(shape.width)
        self.lm_head = nn.Linear(shape.width, shape.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        x = self.drop(self.wte(x) + self.wpe(torch.arange(x.shape[1])))
        for layer in self.h:
            x = layer(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def steps() -> dict[str, Work]:
    """One training step of each: forward, backward, AdamW."""
    shape = MiniGPTConfig()
    tokens = torch.randint(shape.vocab_size, (BATCH, POSITIONS))
    ours, other = MiniGPT(shape).train(), Other(shape).train()
    mine = torch.optim.AdamW(ours.parameters(), lr=1e-4)
    theirs = torch.optim.AdamW(other.parameters(), lr=1e-4)

    def course() -> None:
        loss = next_token_loss(ours(tokens), tokens)
        mine.zero_grad(set_to_none=True)
        loss.backward()
        mine.step()

    def nanogpt() -> None:
        loss = other(tokens[:, :-1], tokens[:, 1:].contiguous())
        theirs.zero_grad(set_to_none=True)
        loss.backward()
        theirs.step()

    return {"the course": course, "as nanoGPT writes it": nanogpt}
