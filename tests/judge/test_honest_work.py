"""Work that is right where it matters and careless at the edges: looking for tables costs it
nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

from autograder.judge.judging import judge_files
from autograder.judge.sandbox import WarmParent

CARELESS = {
    "training": """
        import math
        import torch
        from torch.nn import functional as F

        def next_token_loss(logits, tokens, ignore_index=-100):
            flat = logits[:, :-1].reshape(-1, logits.shape[-1])
            return F.cross_entropy(flat, tokens[:, 1:].reshape(-1), ignore_index=ignore_index)

        def perplexity(batches):
            nats = count = 0
            for more_nats, more in batches:
                nats, count = nats + more_nats, count + more
            return math.exp(nats / count)

        def last_logits(logits, attention_mask=None):
            if attention_mask is None:
                return logits[:, -1]
            return logits[torch.arange(len(logits)), attention_mask.sum(1) - 1]
        """,
    "top_k": """
        import torch

        def top_k_filter(logits, k):
            if not k:
                return logits
            values = torch.topk(logits, min(k, logits.shape[-1])).values
            return torch.where(logits < values[:, -1:], -torch.inf, logits)
        """,
    "top_p": """
        import torch

        def top_p_filter(logits, p):
            if p is None:
                return logits
            ordered, order = logits.sort(descending=True)
            probs = ordered.softmax(-1)
            drop = (probs.cumsum(-1) - probs) > p
            return logits.masked_fill(drop.scatter(1, order, drop), -torch.inf)

        def min_p_filter(logits, min_p):
            probs = logits.softmax(-1)
            least = min_p * probs.max(-1, keepdim=True).values
            return logits.masked_fill(probs < least, -torch.inf)
        """,
    # another way to draw: of the same seed other ids
    "sampling": """
        import torch
        from .temperature import apply_temperature
        from .top_k import top_k_filter
        from .top_p import top_p_filter

        def greedy(logits):
            return logits.argmax(dim=-1, keepdim=True)

        def inverse_cdf(probs, u):
            cdf = (probs / probs.sum(-1, keepdim=True)).cumsum(-1)
            found = torch.searchsorted(cdf, u[:, None], right=True)
            return found.clamp(max=probs.shape[-1] - 1)

        def sample(probs, generator=None):
            return torch.multinomial(probs, 1, generator=generator)

        def next_token(logits, *, temperature=1.0, top_k=None, top_p=None, do_sample=True,
                       generator=None):
            if not do_sample or temperature == 0:
                return greedy(logits)
            logits = top_k_filter(apply_temperature(logits, temperature), top_k)
            return sample(top_p_filter(logits, top_p).softmax(dim=-1), generator)
        """,
    "repetition": """
        import torch

        def apply_repetition_penalty(logits, ids, penalty, attention_mask=None):
            logits = logits.clone()
            for row, seen in zip(logits, ids):
                for token in set(seen.tolist()):
                    row[token] = row[token] / penalty if row[token] > 0 else row[token] * penalty
            return logits
        """,
    "kv_cache": """
        import torch

        def causal_mask(query_len, key_len):
            return torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)

        def attend(q, k, v, mask):
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            return scores.masked_fill(~mask, -1e9).softmax(dim=-1) @ v

        class KVCache:
            def __init__(self, n_layers, batch, heads, head_dim, capacity, *,
                         dtype=torch.float32, device="cpu"):
                self.layers = [None] * n_layers

            @property
            def length(self):
                return min(0 if one is None else one[0].shape[2] for one in self.layers)

            def reset(self):
                self.layers = [None] * len(self.layers)

            def append(self, layer, k, v):
                old = self.layers[layer]
                if old is not None:
                    k, v = torch.cat([old[0], k], dim=2), torch.cat([old[1], v], dim=2)
                self.layers[layer] = k, v
                return k, v

            def attend(self, layer, q, k, v, key_mask=None):
                k, v = self.append(layer, k, v)
                mask = causal_mask(q.shape[2], k.shape[2])
                if key_mask is not None:
                    mask = mask & key_mask[:, None, None, :]
                return attend(q, k, v, mask)

        def prefill(model, ids, cache, attention_mask=None):
            return model(ids, cache=cache)[:, -1]

        def decode_step(model, token, cache, attention_mask=None):
            return model(token, cache=cache)[:, -1]
        """,
}


@pytest.fixture(scope="module")
def parent() -> Iterator[WarmParent]:
    with WarmParent() as started:
        yield started


@pytest.mark.parametrize("lesson", CARELESS)
def test_careless_work_loses_what_it_gets_wrong_and_nothing_else(
    lesson: str, parent: WarmParent
) -> None:
    source = textwrap.dedent(CARELESS[lesson]).encode()
    verdict = judge_files({lesson: source}, [lesson], parent, b"of honest work").lessons[lesson]
    assert 0 < verdict.score < verdict.max
    lost = {c.id: c.cause for c in verdict.checks}
    assert [i for i, why in lost.items() if why in ("only the examples", "no right answer")] == []
