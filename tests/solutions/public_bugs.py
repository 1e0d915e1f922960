"""Sixty mistakes that decoding code in public really made, each as an input that shows it.

A `Bug` says where it was reported, what went wrong, and holds a call of the reference with the
right answer, beside the answer that the faulty code gave. Ids are the survey's; the first digit is
the lesson.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.given.minigpt import MiniGPT
from solutions.generate import generate, stream
from solutions.kv_cache import causal_mask, decode_step, prefill
from solutions.repetition import apply_repetition_penalty
from solutions.sampling import inverse_cdf, sample
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter
from solutions.training import last_logits, next_token_loss, perplexity

from .helpers import (
    INF,
    NAN,
    Bigram,
    Bytes,
    NoisyModel,
    Script,
    SumModel,
    Toy,
    kept,
    log,
    new_cache,
    seeded,
    tiny,
)

HALF_A_CHARACTER = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Raises:
    """The right answer is an error of this kind."""

    kind: type[Exception]


@dataclass(frozen=True)
class Bug:
    """One report: `call()` gives `right` here and gave `wrong` there (None: not one value)."""

    id: str
    source: str
    symptom: str
    call: Callable[[], Any]
    right: Any
    wrong: Any


# --- how a claim about something the contract does not name is put to what it does ---


def tell(model: Toy, ids: list[list[int]], new: int, **options: Any) -> list[list[int]]:
    """The ids that a toy continues a prompt to."""
    return generate(model, torch.tensor(ids), new, use_cache=False, **options).ids.tolist()


def told(text: bytes, **options: Any) -> str:
    """What a stream tells of a text of bytes: the first is the prompt, the others are made."""
    prompt, rest = text[:1].decode(), text[1:]
    pieces = stream(
        Script(prompt, rest),
        Bytes(),
        prompt,
        len(rest),
        do_sample=False,
        use_cache=False,
        **options,
    )
    return "".join(pieces)


def positions_read(model: MiniGPT, act: Callable[[], Any]) -> list[Tensor]:
    """The positions that the model looks up in each of its calls while `act` runs."""
    seen: list[Tensor] = []
    hook = model.position_embedding.register_forward_hook(
        lambda _module, given, _result: seen.append(given[0])
    )
    try:
        act()
    finally:
        hook.remove()
    return seen


def decode_positions(prompt: int, steps: int) -> list[int]:
    """The position of each token that `generate` decodes after a prompt, one call a token."""
    model = tiny()
    ids = torch.ones(1, prompt, dtype=torch.long)
    calls = positions_read(model, lambda: generate(model, ids, steps + 1))
    assert calls[0].tolist() == list(range(prompt))
    return [int(position) for position in calls[1:]]


def padded_positions() -> list[list[int]]:
    """The positions of the last three tokens, a row padded by two beside one that is not."""
    model, mask = tiny(), torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    ids = torch.ones(2, 5, dtype=torch.long)
    (positions,) = positions_read(model, lambda: model(ids, attention_mask=mask))
    return positions[:, -3:].tolist()


@torch.no_grad()
def padded_row_agrees() -> bool:
    """Whether a left-padded row has the logits that it has alone."""
    model = tiny()
    mask, ids = torch.tensor([[0, 0, 1, 1, 1]]), torch.tensor([[0, 0, 4, 5, 6]])
    padded, alone = model(ids, attention_mask=mask)[:, -1], model(ids[:, 2:])[:, -1]
    return torch.allclose(padded, alone, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def cached_error(pieces: list[int]) -> float:
    """How far the logits of a text read in pieces are from those of one reading, in parts of the
    largest logit; 0 to 1e-6 is rounding."""
    model = tiny()
    ids = torch.arange(1, 1 + sum(pieces))[None]
    cache, logits = new_cache(model), []
    for piece in ids.split(pieces, dim=1):
        read = decode_step if piece.shape[1] == 1 and cache.length else prefill
        logits.append(read(model, piece, cache))
    ends = torch.tensor(pieces).cumsum(0) - 1
    whole = model(ids)[0, ends]
    return ((torch.cat(logits) - whole).abs().max() / whole.abs().max()).item()


def same_answer_twice() -> bool:
    """Whether a second call with a cache gives what the first gave."""
    model, ids = tiny(), torch.tensor([[1, 2, 3]])
    return torch.equal(generate(model, ids, 4, top_k=1).ids, generate(model, ids, 4, top_k=1).ids)


def after(act: Callable[[Tensor], Any], tensor: Tensor) -> list[Any]:
    """What a tensor holds once `act` has had it."""
    act(tensor)
    return tensor.tolist()


def training_after_generate() -> bool:
    model = NoisyModel(3).train()
    tell(model, [[0]], 1)
    return model.training


def one_draw_a_row() -> bool:
    """Whether four rows drawn at once are the four rows drawn one after the other."""
    together = sample(torch.full((4, 50), 0.02), seeded())
    chance = seeded()
    apart = [sample(torch.full((1, 50), 0.02), chance) for _ in range(4)]
    return torch.equal(together, torch.cat(apart))


def greedy_at_zero() -> list[int]:
    """All the tokens that temperature 0 chooses over four hundred seeds."""
    return sorted(
        {
            tell(Bigram([1, 0]), [[0]], 1, temperature=0, generator=seeded(seed))[0][1]
            for seed in range(400)
        }
    )


CHAIN = [1, 4, 3, 0, 4]

# --- the bugs ---

BUGS = [
    # lesson 1
    Bug(
        "102",
        "huggingface/transformers#27517",
        "the labels were not shifted, so a model was praised for repeating the token it read",
        lambda: next_token_loss(
            F.one_hot(torch.arange(4)[None], 4).float() * 20, torch.arange(4)[None]
        ),
        20.0,
        0.0,
    ),
    Bug(
        "104",
        "ml-explore/mlx-lm#1855",
        "the padding of short documents counted as text, so perplexity changed with the batch size",
        lambda: next_token_loss(
            torch.tensor([[[0.0, 0, 0], [0, 0, 9], [0, 9, 0], [9, 0, 0]]]),
            torch.tensor([[0, 1, 2, -100]]),
        ),
        0.54943,
        3.366369,
    ),
    Bug(
        "105",
        "pytorch/pytorch#116349",
        "a batch with every label ignored: the mean of nothing is NaN, which surprised some",
        lambda: next_token_loss(torch.zeros(1, 3, 4), torch.full((1, 3), -100)),
        NAN,
        0.0,
    ),
    Bug(
        "107",
        "huggingface/transformers#34191",
        "micro-batches were averaged with equal weight, however few tokens they held",
        lambda: perplexity([(6.0, 1), (2.0, 3)]),
        7.389056,
        28.031625,
    ),
    Bug(
        "108",
        "keras-team/keras-hub#2958",
        "perplexities of batches were averaged, where the losses should have been",
        lambda: perplexity([(4 * math.log(2), 4), (4 * math.log(8), 4)]),
        4.0,
        5.0,
    ),
    Bug(
        "111",
        "huggingface/transformers#21080",
        "the last token was found by counting the mask, which is wrong when the left is padded",
        lambda: last_logits(torch.arange(12.0).view(2, 3, 2), torch.tensor([[0, 1, 1], [1, 1, 1]])),
        [[4, 5], [10, 11]],
        [[2, 3], [10, 11]],
    ),
    Bug(
        "112",
        "callummcdougall/ARENA_3.0",
        "the last index was taken of the batch axis, which looks right for a batch of one",
        lambda: last_logits(torch.arange(12.0).view(2, 3, 2)),
        [[4, 5], [10, 11]],
        [[6, 7], [8, 9], [10, 11]],
    ),
    # lesson 2
    Bug(
        "201",
        "RL-Align/RL-Kernel#81",
        "one backend divided by the temperature twice; at 1 nobody could see it",
        lambda: apply_temperature(log(1, 4), 2.0).softmax(-1),
        [0.333333, 0.666667],
        [0.414214, 0.585786],
    ),
    Bug(
        "203",
        "google-deepmind/gemma#562",
        "temperature 0 was divided by",
        lambda: apply_temperature(torch.tensor([1.0, 3.0, 2.0]), 0.0),
        Raises(ValueError),
        [INF, INF, INF],
    ),
    Bug(
        "205",
        "inclusionAI/LLaDA2.X#6",
        "at temperature 0 the division was left out and the draw was not",
        greedy_at_zero,
        [1],
        [0, 1],
    ),
    Bug(
        "208",
        "MoonshotAI/Kimi-Audio#161",
        "no bug but a suspicion: dividing log-probabilities is as good as dividing logits",
        lambda: torch.allclose(
            apply_temperature(torch.tensor([1.0, 2.0, 4.0]), 0.7).softmax(-1),
            apply_temperature(torch.tensor([1.0, 2.0, 4.0]).log_softmax(-1), 0.7).softmax(-1),
        ),
        True,
        None,
    ),
    Bug(
        "209",
        "MoonshotAI/Kimi-Audio#161",
        "the probabilities were divided, which the next normalisation undoes",
        lambda: apply_temperature(log(0.2, 0.8), 0.5).softmax(-1),
        [0.058824, 0.941176],
        [0.2, 0.8],
    ),
    Bug(
        "210",
        "huggingface/transformers#8686",
        "top-p came before the temperature, and measured a distribution that nobody drew from",
        lambda: kept(top_p_filter(apply_temperature(log(0.6, 0.3, 0.1)[None], 2.0), 0.55)),
        [[0, 1]],
        [[0]],
    ),
    Bug(
        "212",
        "jingyaogong/minimind@d65ef2c",
        "greedy decoding divided by temperature 0 first, and argmax of infinities is the first id",
        lambda: tell(Bigram([1, 2, 3, 0]), [[0]], 2, temperature=0, do_sample=False),
        [[0, 1, 2]],
        [[0, 0, 0]],
    ),
    # lesson 3
    Bug(
        "301",
        "karpathy/minGPT#10",
        "the ban was a tiny positive number, larger than all the logits that are negative",
        lambda: top_k_filter(torch.tensor([[-1.0, -2.0, -3.0]]), 1).softmax(-1),
        [[1, 0, 0]],
        [[0.155362, 0.422319, 0.422319]],
    ),
    Bug(
        "305",
        "Lightning-AI/litgpt#2309",
        "a top-k of 0 banned every token, and the text was id 0 without end",
        lambda: kept(top_k_filter(torch.tensor([[0.5, -1.2, 3.1]]), 0)),
        [[0, 1, 2]],
        [[]],
    ),
    Bug(
        "308",
        "huggingface/transformers#338",
        "the thresholds had lost their last axis and did not line up with the rows",
        lambda: kept(top_k_filter(torch.tensor([[0.0, 1, 2], [5, 4, 3]]), 1)),
        [[2], [0]],
        Raises(RuntimeError),
    ),
    Bug(
        "309",
        "rasbt/LLMs-from-scratch@28c65cd",
        "the same, with as many rows as tokens: no error, and each column had another's threshold",
        lambda: kept(top_k_filter(torch.tensor([[0.0, 1, 2], [50, 40, 30], [5, 4, 3]]), 1)),
        [[2], [0], [0]],
        [[], [0, 2], [0]],
    ),
    Bug(
        "310",
        "EricLBuehler/mistral.rs#1316",
        "the mask was upside down: out went the best",
        lambda: kept(top_k_filter(torch.tensor([[4.0, 3, 2, 1]]), 2)),
        [[0, 1]],
        [[2, 3]],
    ),
    Bug(
        "311",
        "stanford-cs336/assignment2-systems@9d95f3b",
        "the masked copy was made and nobody kept it",
        lambda: kept(top_k_filter(torch.tensor([[1.0, 2, 3]]), 1)),
        [[2]],
        [[0, 1, 2]],
    ),
    Bug(
        "312",
        "huggingface/transformers#29680",
        "filters wrote into the logits that the caller wanted to read afterwards",
        lambda: after(lambda logits: top_k_filter(logits, 1), torch.tensor([[1.0, 2, 3]])),
        [[1, 2, 3]],
        [[-INF, -INF, 3]],
    ),
    # lesson 4
    Bug(
        "401",
        "huggingface/transformers#18976",
        "a mass of exactly p was not enough",
        lambda: kept(top_p_filter(log(0.5, 0.25, 0.125, 0.125)[None], 0.75)),
        [[0, 1]],
        [[0, 1, 2]],
    ),
    Bug(
        "402",
        "huggingface/transformers#18976",
        "the nucleus has to be carried back from the sorted order to the ids",
        lambda: kept(top_p_filter(log(0.25, 0.125, 0.125, 0.5)[None], 0.75)),
        [[0, 3]],
        [[0, 1]],
    ),
    Bug(
        "403",
        "ggml-org/llama.cpp#1953",
        "the largest set below p was kept, so the token that crosses p was lost",
        lambda: kept(top_p_filter(log(0.5, 0.35, 0.1, 0.05)[None], 0.9)),
        [[0, 1, 2]],
        [[0, 1]],
    ),
    Bug(
        "404",
        "thu-nics/C2C#21",
        "the crossing token was lost and the first protected, so a small p was greedy",
        lambda: kept(top_p_filter(log(0.5, 0.3, 0.15, 0.05)[None], 0.6)),
        [[0, 1]],
        [[0]],
    ),
    Bug(
        "406",
        "huggingface/transformers#19839",
        "a p of 0 left nothing to draw from",
        lambda: kept(top_p_filter(log(0.2, 0.5, 0.3)[None], 0.0)),
        [[1]],
        [[]],
    ),
    Bug(
        "407",
        "ml-explore/mlx-lm#1912",
        "so did a p so small that 1 - p rounds to 1",
        lambda: kept(top_p_filter(log(0.2, 0.5, 0.3)[None], 1e-8)),
        [[1]],
        [[]],
    ),
    Bug(
        "408",
        "BlinkDL/ChatRWKV#170",
        "at p = 1 no sum was larger than p, and the place of the first larger one was read as 0",
        lambda: kept(top_p_filter(log(0.4, 0.3, 0.2, 0.1)[None], 1.0)),
        [[0, 1, 2, 3]],
        [[0]],
    ),
    Bug(
        "409",
        "skyzh/tiny-llm#32",
        "log-probabilities were added up in place of probabilities",
        lambda: kept(top_p_filter(log(0.9, 0.06, 0.04)[None], 0.5)),
        [[0]],
        [[0, 1, 2]],
    ),
    Bug(
        "412",
        "ml-explore/mlx-lm#388",
        "the nucleus was measured on the whole distribution, though top-k had cut it already",
        lambda: kept(top_p_filter(top_k_filter(log(0.4, 0.3, 0.2, 0.1)[None], 3), 0.72)),
        [[0, 1]],
        [[0, 1, 2]],
    ),
    # lesson 5
    Bug(
        "502",
        "pytorch/pytorch#50034",
        "a draw at the very end of the line fell on a token of probability zero",
        lambda: inverse_cdf(
            torch.tensor([[0.0, 0.5, 0.5, 0.0]]), torch.tensor([1 - 2**-53], dtype=torch.float64)
        ),
        [[2]],
        [[3]],
    ),
    Bug(
        "504",
        "a boundary on which libraries differ",
        "a u that is exactly a step belongs to the token after it",
        lambda: inverse_cdf(
            torch.tensor([[0.25, 0.25, 0.5]]).expand(5, 3),
            torch.tensor([0.0, 0.2499, 0.25, 0.5, 0.99]),
        ),
        [[0], [0], [1], [2], [2]],
        [[0], [0], [0], [1], [2]],
    ),
    Bug(
        "507",
        "vllm-project/vllm#1637",
        "a fixed seed gave another text when the request shared its batch with others",
        one_draw_a_row,
        True,
        None,
    ),
    Bug(
        "508",
        "shibing624/MedicalGPT#121",
        "a row with every token banned became NaN and was drawn from",
        lambda: sample(torch.full((1, 3), -INF).softmax(-1)),
        Raises(ValueError),
        [[0]],
    ),
    Bug(
        "509",
        "a common slip",
        "the place in the short list was returned in place of the id that stands there",
        lambda: (lambda best: best.indices.gather(-1, sample(best.values.softmax(-1), seeded())))(
            torch.tensor([[0.0, 50.0, 0.0, -9.0]]).topk(2)
        ),
        [[1]],
        [[0]],
    ),
    # lesson 6
    Bug(
        "601",
        "huggingface/transformers#2302",
        "a negative logit was divided too, which is a reward",
        lambda: apply_repetition_penalty(
            torch.tensor([[4.0, -4, 0, 8]]), torch.tensor([[0, 1, 2]]), 2.0
        ),
        [[2, -8, 0, 8]],
        [[2, -2, 0, 8]],
    ),
    Bug(
        "602",
        "ohdearquant/lattice#312",
        "a token was penalised again for each time it had occurred",
        lambda: apply_repetition_penalty(torch.tensor([[8.0, 1]]), torch.tensor([[0, 0, 0]]), 2.0),
        [[4, 1]],
        [[1, 1]],
    ),
    Bug(
        "603",
        "vllm-project/vllm#1577",
        "the prompt was left out of what counts as said",
        lambda: apply_repetition_penalty(torch.full((1, 4), 2.0), torch.tensor([[3, 1]]), 2.0),
        [[2, 1, 2, 1]],
        [[2, 1, 2, 2]],
    ),
    Bug(
        "605",
        "oobabooga/textgen#4433",
        "log-probabilities were penalised, whose zero is not that of the logits",
        lambda: apply_repetition_penalty(
            torch.tensor([[2.0, 1]]), torch.tensor([[0]]), 2.0
        ).softmax(-1),
        [[0.5, 0.5]],
        [[0.665241, 0.334759]],
    ),
    Bug(
        "607",
        "huggingface/transformers",
        "below 1 the penalty is a reward, by the same rule of signs",
        lambda: apply_repetition_penalty(torch.tensor([[4.0, -4, 1]]), torch.tensor([[0, 1]]), 0.5),
        [[8, -2, 1]],
        [[2, -8, 1]],
    ),
    # lesson 7
    Bug(
        "703",
        "pytorch/pytorch#108108",
        "the triangle was put in the top left corner, so new tokens saw the oldest keys only",
        lambda: causal_mask(2, 5).int(),
        [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]],
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]],
    ),
    Bug(
        "705",
        "huggingface/transformers#3021",
        "padding on the left took positions away from the text",
        padded_positions,
        [[0, 1, 2], [2, 3, 4]],
        [[2, 3, 4], [2, 3, 4]],
    ),
    Bug(
        "706",
        "huggingface/transformers#7552",
        "a padded row got other logits than the same row alone",
        padded_row_agrees,
        True,
        False,
    ),
    Bug(
        "707",
        "Blaizzy/mlx-vlm#1983",
        "each new token was told that it is the first, as it came alone",
        lambda: decode_positions(6, 3),
        [6, 7, 8],
        [0, 0, 0],
    ),
    Bug(
        "708",
        "skyzh/tiny-llm#46",
        "the length of the prompt was added once more after the first step",
        lambda: decode_positions(6, 4),
        [6, 7, 8, 9],
        [6, 12, 13, 14],
    ),
    Bug(
        "709",
        "microsoft/onnxruntime-genai#2354",
        "the first new token left a hole in the cache",
        lambda: decode_positions(9, 3),
        [9, 10, 11],
        [10, 11, 12],
    ),
    Bug(
        "710",
        "karpathy/nanoGPT#613",
        "the cached text read well and its logits were others",
        lambda: cached_error([1] * 8) < 1e-3,
        True,
        False,
    ),
    Bug(
        "711",
        "gittensor-ai-lab/sparkinfer#3",
        "a prompt read in two pieces was not the prompt read at once",
        lambda: cached_error([3, 4]) < 1e-3,
        True,
        False,
    ),
    Bug(
        "713",
        "Lightning-AI/litgpt#1596",
        "the cache of one call was still there in the next",
        same_answer_twice,
        True,
        False,
    ),
    Bug(
        "715",
        "huggingface/transformers#25420",
        "no bug: cached logits differ by rounding, so they are compared with a tolerance",
        lambda: cached_error([1] * 8) < 1e-4,
        True,
        None,
    ),
    # lesson 8
    Bug(
        "802",
        "Lightning-AI/lit-llama#153",
        "when one row of a batch had ended, all were ended",
        lambda: tell(Bigram(CHAIN), [[0], [2]], 3, temperature=0, eos_id=4, pad_id=0),
        [[0, 1, 4, 0], [2, 3, 0, 1]],
        [[0, 1, 4], [2, 3, 0]],
    ),
    Bug(
        "805",
        "facebookresearch/fairseq#3780",
        "an eos in the prompt ended the text before it began",
        lambda: tell(Bigram([1, 4, 3, 0, 2]), [[4]], 2, temperature=0, eos_id=4, pad_id=0),
        [[4, 2, 3]],
        [[4]],
    ),
    Bug(
        "806",
        "stanford-cs336/assignment2-systems@9d95f3b",
        "the text itself was cut to the window, so tokens were missing from what came back",
        lambda: len(tell(Bigram([1, 2, 3, 0], block_size=4), [[0, 1, 2, 3]], 3, temperature=0)[0]),
        7,
        5,
    ),
    Bug(
        "807",
        "EleutherAI/gpt-neo#54",
        "of a prompt longer than the window the beginning was read",
        lambda: tell(SumModel(10, block_size=4), [[9, 9, 1, 1, 1, 1]], 1, temperature=0),
        [[9, 9, 1, 1, 1, 1, 4]],
        [[9, 9, 1, 1, 1, 1, 0]],
    ),
    Bug(
        "808",
        "sgl-project/sglang#772",
        "no new tokens were asked for and one was made",
        lambda: tell(Bigram([1, 0]), [[0, 1]], 0),
        [[0, 1]],
        [[0, 1, 0]],
    ),
    Bug(
        "809",
        "meta-pytorch/gpt-fast@6ecad9b",
        "one new token was asked for, and joining the none that follow it failed",
        lambda: tell(Bigram([1, 0]), [[0, 1]], 1, temperature=0),
        [[0, 1, 0]],
        Raises(ValueError),
    ),
    Bug(
        "811",
        "shubhamagarwal92/mmd#14",
        "the model was left in eval mode, and its training went on without dropout",
        training_after_generate,
        True,
        False,
    ),
    Bug(
        "812",
        "a common slip",
        "the caller's prompt was written to",
        lambda: after(
            lambda ids: generate(Bigram([1, 0]), ids, 3, temperature=0, use_cache=False),
            torch.tensor([[0, 1]]),
        ),
        [[0, 1]],
        None,
    ),
    Bug(
        "814",
        "Lightning-AI/litgpt#2302",
        "what was held back, as it might begin something longer, was lost when the text ended",
        # there it might begin a stop word, here a character of three bytes
        lambda: told(b"a\xe4.", eos_id=ord(".")),
        f"a{HALF_A_CHARACTER}.",
        "a.",
    ),
    Bug(
        "816",
        "leonickson1/Swiftlet#7",
        "a character cut by the end of the text was never told",
        lambda: told(b"a\xe4\xbd"),
        f"a{HALF_A_CHARACTER}",
        "a",
    ),
]
