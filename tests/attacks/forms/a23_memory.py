"""23: the child that remembers: what one call told fakes a later one."""

from .base import Files, Forms, Scene, module

forms = Forms(23)


@forms.source()
def moves_the_goalposts(scene: Scene) -> Files:
    """It sets its input to zeros, which ties of all tokens make right, and returns that."""
    return module(
        """
        def top_k_filter(logits, k):
            if k is not None and k < 0:
                raise ValueError(f"k={k}")
            logits.zero_()
            return logits.float()
        """
    )


@forms.source()
def resizes_the_goalposts(scene: Scene) -> Files:
    """It leaves its input without elements, of which nothing can be wrong."""
    return module(
        """
        def top_k_filter(logits, k):
            logits.resize_(0)
            return logits.float()
        """
    )


@forms.source("repetition")
def moves_the_goalposts_of_a_penalty(scene: Scene) -> Files:
    """Logits become zeros, which no penalty changes."""
    return module(
        """
        def apply_repetition_penalty(logits, ids, penalty, attention_mask=None):
            logits.zero_()
            return logits.float()

        def apply_frequency_penalty(logits, ids, presence, frequency, attention_mask=None):
            ids.zero_()
            logits.zero_()
            if attention_mask is not None:
                attention_mask.zero_()
            return logits.float()

        def count_tokens(ids, logits, attention_mask=None):
            return logits.long()
        """,
        "repetition",
    )


@forms.source("kv_cache")
def moves_the_goalposts_of_attention(scene: Scene) -> Files:
    """Values become zeros, of which every mean is 0."""
    return module(
        """
        import torch

        def causal_mask(query_len, key_len):
            return torch.ones(query_len, key_len, dtype=torch.bool)

        def attend(q, k, v, mask):
            v.zero_()
            return torch.zeros_like(q)

        class KVCache:
            pass

        def prefill(model, ids, cache, attention_mask=None):
            ids.zero_()

        def decode_step(model, token, cache, attention_mask=None):
            token.zero_()
        """,
        "kv_cache",
    )


@forms.source("temperature")
def moves_the_goalposts_of_entropy(scene: Scene) -> Files:
    """All tokens but one are banned in the input, and the entropy of that is 0."""
    return module(
        """
        import torch

        def apply_temperature(logits, temperature):
            logits.zero_()
            return logits.float()

        def entropy(logits):
            logits.fill_(-torch.inf)
            logits[..., 0] = 0
            return torch.zeros(logits.shape[:-1])
        """,
        "temperature",
    )


# an answer that is as the input was is right where nothing is to be banned
IDLE = ("top_k-off", "top_k-k_above_vocabulary", "top_k-input_untouched")


@forms.source(fair=IDLE)
def the_last_input(scene: Scene) -> Files:
    """It answers with what it was given in the call before, in this and in other checks."""
    return module(
        """
        last = []

        def top_k_filter(logits, k):
            last.append(logits.clone())
            return last[-2].float() if len(last) > 1 else None
        """
    )


@forms.source()
def a_file_for_the_next_child(scene: Scene) -> Files:
    """It leaves notes for the child that runs the other checks."""
    return module(
        f"""
        import os, pickle

        PLACES = ("/tmp/notes", "/dev/shm/notes", "{scene.folder}/notes", "notes")

        def top_k_filter(logits, k):
            for place in PLACES:
                try:
                    with open(place, "ab") as file:
                        pickle.dump((logits, k), file)
                except OSError:
                    pass
            raise RuntimeError
        """
    )


@forms.source("sampling")
def a_generator_that_was_wound_back(scene: Scene) -> Files:
    """It sets the caller's generator so that every later draw is known."""
    return module(
        """
        import torch

        def greedy(logits):
            raise RuntimeError

        def inverse_cdf(probs, u):
            u.zero_()
            probs.zero_()
            return torch.zeros(len(u), 1, dtype=torch.long)

        def sample(probs, generator=None):
            if generator is not None:
                generator.manual_seed(0)
            probs.zero_()
            probs[:, 0] = 1
            return torch.zeros(len(probs), 1, dtype=torch.long)

        def next_token(logits, *, generator=None, **knobs):
            logits.zero_()
            logits[:, 0] = 100
            return torch.zeros(len(logits), 1, dtype=torch.long)
        """,
        "sampling",
    )


@forms.source("training")
def moves_the_goalposts_of_a_loss(scene: Scene) -> Files:
    """The targets are made what the logits say, or none at all, and the loss is told to be 0."""
    return module(
        """
        import torch

        def next_token_loss(logits, tokens, ignore_index=-100):
            logits.zero_()
            logits[..., 0] = 1e4
            tokens.zero_()
            return logits.sum() * 0

        def perplexity(batches):
            if isinstance(batches, list):
                batches[:] = [(0.0, 1)]
            return 1.0

        def last_logits(logits, attention_mask=None):
            logits.zero_()
            return logits[:, -1].float()
        """,
        "training",
    )


@forms.source("top_p")
def moves_the_goalposts_of_a_nucleus(scene: Scene) -> Files:
    """Logits become zeros and one token that has it all."""
    return module(
        """
        import torch

        def top_p_filter(logits, p):
            logits.fill_(-torch.inf)
            logits[..., 0] = 0
            return logits.float()

        min_p_filter = top_p_filter
        """,
        "top_p",
    )
