"""Lesson 8: what generate and stream must do.

The models here are toys of `models.py` whose next token a person can work out: no training, no
chance.
"""

from typing import Any

import torch
from torch import Tensor

from . import expect
from .chance import exactly
from .expect import Mismatch
from .kit import Suite
from .models import (
    Bigram,
    ByteTokenizer,
    Listener,
    NoisyModel,
    PlacedSum,
    Script,
    SumModel,
    Table,
    tiny_gpt,
)
from .record import describe

suite = Suite("generate")

# what follows what: 0 -> 1 -> 4 -> 2 -> 3 -> 0; mostly 4 is the end of a text
CHAIN = [1, 4, 3, 0, 2]
FIELDS = ("ids", "finish_reason", "new_tokens", "tokens_per_second", "positions_forwarded")


def text(result: Any, expected: list[list[int]]) -> None:
    """`result` is a Generation with these ids."""
    if not all(hasattr(result, field) for field in FIELDS):
        raise Mismatch(
            f"it is {describe(result)} ({type(result).__name__}); expected a Generation, the "
            "dataclass at the top of generate.py",
            "wrong type",
        )
    expect.same(result.ids, torch.tensor(expected), "ids")


def ends(result: Any, reasons: list[str], new_tokens: list[int]) -> None:
    """How each row ended, and the number of tokens that it made."""
    expect.same(result.finish_reason, reasons, "finish_reason")
    expect.same(result.new_tokens, new_tokens, "new_tokens")


def by_hand(prompt: list[int], new: int, block_size: int, vocab_size: int) -> list[int]:
    """What PlacedSum says: the last block_size tokens, the first of them once, the second twice."""
    told = list(prompt)
    for _ in range(new):
        window = told[-block_size:]
        told.append(sum(place * token for place, token in enumerate(window, 1)) % vocab_size)
    return told


# --- what of the draws is remembered for the diagnosis: right samplers differ in the rest ---


def drawn(results: list[Any]) -> list[Any]:
    """Which ids came last in a row of each text."""
    return [sorted(set(result.ids[:, -1].tolist())) for result in results]


def twins(results: list[Any]) -> list[Any]:
    """Which earlier text each one repeats, itself if none; and whether it says one token only."""
    texts = [result.ids[:, 1:].tolist() for result in results]
    return [[texts.index(ids), all(len(set(row)) == 1 for row in ids)] for ids in texts]


# --- what comes back ---


@suite.check(
    "continues_each_row",
    of="generate",
    points=0.25,
    claim="adds max_new_tokens tokens to each row, and gives back prompt and continuation",
)
def continues_each_row(student: Any) -> None:
    # a model that counts 0, 1, 2, 3, 0, ...
    result = student.generate(Bigram([1, 2, 3, 0]), torch.tensor([[0, 1, 2]]), 3, do_sample=False)
    text(result, [[0, 1, 2, 3, 0, 1]])
    ends(result, ["length"], [3])
    expect.true(
        result.ids.dtype == torch.int64, f"ids has dtype {result.ids.dtype}; expected torch.int64"
    )
    # how fast it was is nobody's merit, but it has to be told
    speed = result.tokens_per_second
    expect.true(
        isinstance(speed, float | int) and speed >= 0,
        f"tokens_per_second is {describe(speed)}; expected a number, 0 or more",
    )
    result = student.generate(Bigram(CHAIN), torch.tensor([[0], [2]]), 3, do_sample=False)
    text(result, [[0, 1, 4, 2], [2, 3, 0, 1]])
    ends(result, ["length", "length"], [3, 3])


@suite.check(
    "none_or_one",
    of="generate",
    points=0.25,
    claim="max_new_tokens = 0 gives back the prompt, 1 adds one token",
    teaching="the smallest cases, where an off-by-one is easiest to see",
)
def none_or_one(student: Any) -> None:
    model = Bigram([1, 0])
    result = student.generate(model, torch.tensor([[0, 1]]), 0)
    text(result, [[0, 1]])
    ends(result, ["length"], [0])
    expect.same(result.positions_forwarded, sum(model.forwarded), "positions_forwarded")
    result = student.generate(Bigram([1, 0]), torch.tensor([[0, 1]]), 1, do_sample=False)
    text(result, [[0, 1, 0]])
    ends(result, ["length"], [1])


# --- how a row ends ---


@suite.check(
    "eos_ends_a_row",
    of="generate",
    points=0.5,
    claim="ends at the eos, keeps it in the output and counts it",
    teaching="one row and one eos, before batches make it harder",
)
def eos_ends_a_row(student: Any) -> None:
    result = student.generate(Bigram(CHAIN), torch.tensor([[0]]), 9, do_sample=False, eos_id=4)
    text(result, [[0, 1, 4]])
    ends(result, ["eos"], [2])
    # as the very last token that was allowed it is an eos all the same
    result = student.generate(Bigram(CHAIN), torch.tensor([[0]]), 2, do_sample=False, eos_id=4)
    text(result, [[0, 1, 4]])
    ends(result, ["eos"], [2])


@suite.check(
    "eos_in_the_prompt",
    of="generate",
    points=0.25,
    claim="an eos in the prompt ends nothing",
)
def eos_in_the_prompt(student: Any) -> None:
    # 4 ends row 1's prompt, and starts row 0's: only what the model itself says can end a row
    prompts = torch.tensor([[4, 0], [0, 4]])
    result = student.generate(Bigram(CHAIN), prompts, 2, do_sample=False, eos_id=4)
    text(result, [[4, 0, 1, 4], [0, 4, 2, 3]])
    ends(result, ["eos", "length"], [2, 2])


@suite.check(
    "rows_end_apart",
    of="generate",
    points=0.5,
    claim="fills a finished row with pad_id while the others go on, and ends with the last",
)
def rows_end_apart(student: Any) -> None:
    # the fillings 3 and 0 would lead back to 4: a row that is finished must stay so
    prompts = torch.tensor([[0], [2]])
    result = student.generate(Bigram(CHAIN), prompts, 9, do_sample=False, eos_id=4, pad_id=3)
    text(result, [[0, 1, 4, 3, 3], [2, 3, 0, 1, 4]])
    ends(result, ["eos", "eos"], [2, 4])
    result = student.generate(Bigram(CHAIN), prompts, 3, do_sample=False, eos_id=4, pad_id=0)
    text(result, [[0, 1, 4, 0], [2, 3, 0, 1]])
    ends(result, ["eos", "length"], [2, 3])


@suite.check(
    "several_ends",
    of="generate",
    points=0.25,
    claim="takes a list of eos ids: any ends a row, and the first is the filling",
)
def several_ends(student: Any) -> None:
    prompts = torch.tensor([[0], [2]])
    result = student.generate(Bigram(CHAIN), prompts, 9, do_sample=False, eos_id=[4, 3])
    text(result, [[0, 1, 4], [2, 3, 4]])
    ends(result, ["eos", "eos"], [2, 1])


@suite.check(
    "id_zero",
    of="generate",
    points=0.25,
    claim="an eos_id of 0 is an eos like any other",
)
def id_zero(student: Any) -> None:
    # here 3 -> 2 -> 1 -> 0; python takes 0 for false, a decoder must not
    prompts = torch.tensor([[2], [3]])
    result = student.generate(Bigram([3, 0, 1, 2]), prompts, 9, do_sample=False, eos_id=0)
    text(result, [[2, 1, 0, 0], [3, 2, 1, 0]])
    ends(result, ["eos", "eos"], [2, 3])


# --- how a token is chosen ---


@suite.check(
    "greedy_two_ways",
    of="generate",
    points=0.25,
    claim="temperature = 0 and do_sample = False take the best token each time",
    exact=True,
)
def greedy_two_ways(student: Any) -> None:
    # the best, id 1, is ahead by a hair: one draw by chance among these 24 would show, and so would
    # half precision, which cannot tell it from id 0
    model = Table(torch.tensor([1.1999, 1.2, 1.1, 0.9]))
    prompts = torch.tensor([[0], [1], [2], [3]])
    expected = [[first] + [1] * 6 for first in range(4)]
    text(student.generate(model, prompts, 6, temperature=0), expected)
    text(student.generate(model, prompts, 6, do_sample=False), expected)


ROWS = 256
KNOBS: list[tuple[dict[str, float], set[int]]] = [
    # each set follows from the worked examples of lessons 2 to 4
    ({}, {0, 1, 2}),
    ({"top_k": 2}, {0, 1}),
    ({"top_p": 0.5}, {0}),
    # at T = 2 they are .47, .33, .19: top-p measures what the temperature left
    ({"temperature": 2.0, "top_p": 0.55}, {0, 1}),
    ({"temperature": 2.0, "top_p": 0.78}, {0, 1}),
    # at T = 0.5 they are .78, .20, .02
    ({"temperature": 0.5, "top_p": 0.75}, {0}),
    # top-k first leaves .67 and .33, and .65 is reached by the first alone
    ({"top_k": 2, "top_p": 0.65}, {0}),
]


@suite.check(
    "sampling_knobs",
    of="generate",
    points=0.5,
    claim="draws by chance, each row for itself, from what temperature, top-k and top-p leave",
    # nine ids must turn up in the sets of more than one; the least likely has .1
    false_alarm=9 * exactly(ROWS, 0.1, 0),
    remember=drawn,
)
def sampling_knobs(student: Any) -> None:
    model, prompts = Table(torch.tensor([0.6, 0.3, 0.1]).log()), torch.zeros(ROWS, 1).long()

    def draws(knobs: dict[str, float]) -> set[int]:
        result = student.generate(model, prompts, 1, **knobs)
        return set(expect.tensor(result.ids, (ROWS, 2), "ids")[:, 1].tolist())

    # all of them first: the more answers, the surer is the diagnosis
    found = [draws(knobs) for knobs, _ in KNOBS]
    for ids, (knobs, wanted) in zip(found, KNOBS, strict=True):
        if ids != wanted:
            draws(knobs)  # once more, so that the message shows this call
            raise Mismatch(
                f"{ROWS} rows drew the ids {ids}; expected {wanted}, of probabilities 0.6, 0.3, 0.1"
            )


@suite.check(
    "penalty_before_filters",
    of="generate",
    points=0.25,
    claim="applies the repetition penalty, and before top-k and top-p",
)
def penalty_before_filters(student: Any) -> None:
    # id 0 is best until the penalty halves it; a top-k of 1 before that would keep it alone
    model = Table(torch.tensor([3.0, 2.9, 1.0]))
    text(student.generate(model, torch.tensor([[0]]), 1, repetition_penalty=2.0, top_k=1), [[0, 1]])
    # a logit of 3 becomes 1.5 and is still ahead
    model = Table(torch.tensor([3.0, 1.0, 0.0]))
    result = student.generate(
        model, torch.tensor([[0]]), 1, repetition_penalty=2.0, do_sample=False
    )
    text(result, [[0, 0]])
    # below 1 it does the reverse: here 1.0 becomes 2.0, and overtakes 1.5
    model = Table(torch.tensor([1.0, 1.5, 0.0]))
    result = student.generate(
        model, torch.tensor([[0]]), 1, repetition_penalty=0.5, do_sample=False
    )
    text(result, [[0, 0]])


@suite.check(
    "penalty_remembers",
    of="generate",
    points=0.25,
    claim="penalises prompt and continuation, what left the window too, and no padding",
)
def penalty_remembers(student: Any) -> None:
    one = torch.tensor([[0]])
    model = Table(torch.tensor([3.0, 2.9, 2.8, 2.7]))
    result = student.generate(model, one, 3, repetition_penalty=1.5, do_sample=False)
    text(result, [[0, 1, 2, 3]])
    # the model sees one token at a time, but 0 has been said
    model = Table(torch.tensor([3.0, 2.0, 1.0]), block_size=1)
    two = torch.tensor([[0, 2]])
    text(student.generate(model, two, 1, repetition_penalty=4.0, do_sample=False), [[0, 2, 1]])
    # the zeros are padding here, and nobody said them
    model = Table(torch.tensor([3.0, 2.0, 1.0]))
    padded, mask = torch.tensor([[0, 0, 2]]), torch.tensor([[0, 0, 1]])
    result = student.generate(
        model, padded, 1, repetition_penalty=10.0, do_sample=False, attention_mask=mask
    )
    text(result, [[0, 0, 2, 0]])


MANY, LONG = 4096, 5


@suite.check(
    "same_seed",
    of="generate",
    points=0.25,
    claim="the same seed gives the same text, and each step draws anew",
    # LONG tokens, each one of MANY alike: that two runs agree, or that one says one token only
    false_alarm=4 * MANY ** (1.0 - LONG),
    remember=twins,
)
def same_seed(student: Any) -> None:
    model, prompt = Table(torch.zeros(MANY)), torch.tensor([[0]])

    def run(seed: int | None) -> Tensor:
        chance = None if seed is None else torch.Generator().manual_seed(seed)
        result = student.generate(model, prompt, LONG, generator=chance)
        return expect.tensor(result.ids, (1, 1 + LONG), "ids")[0, 1:]

    first = run(1)
    expect.true(torch.equal(first, run(1)), "two runs with the same seed differ; expected the same")
    expect.true(not torch.equal(first, run(2)), "another seed gave the same text")
    expect.true(
        len(set(first.tolist())) > 1,
        f"all {LONG} draws gave id {first[0]} out of {MANY} that are equally likely",
    )
    # without a generator chance is torch's own, and goes on from call to call
    expect.true(not torch.equal(run(None), run(None)), "two runs without a generator are the same")


# --- the window and the cache ---


@suite.check(
    "window_slides",
    of="generate",
    points=0.5,
    claim="past block_size goes on with the last block_size tokens, and loses none of the output",
    teaching="the window by itself, before work and padding come in",
)
def window_slides(student: Any) -> None:
    for prompt in ([1, 2, 3], [9, 9, 1, 2, 1, 1]):
        for use_cache in (True, False):
            model = PlacedSum(11, block_size=4)
            result = student.generate(
                model, torch.tensor([prompt]), 5, do_sample=False, use_cache=use_cache
            )
            text(result, [by_hand(prompt, 5, 4, 11)])
            ends(result, ["length"], [5])


@suite.check(
    "window_stops",
    of="generate",
    points=0.5,
    claim='with on_overflow="stop" ends when no further forward fits, and says "overflow"',
)
def window_stops(student: Any) -> None:
    for length, new in [(2, 3), (4, 1), (6, 1)]:
        prompt = [1] * length
        result = student.generate(
            PlacedSum(11, 4), torch.tensor([prompt]), 9, do_sample=False, on_overflow="stop"
        )
        text(result, [by_hand(prompt, new, 4, 11)])
        ends(result, ["overflow"], [new])
    # no token more was wanted, so nothing overflowed
    prompts = torch.tensor([[1, 1]])
    result = student.generate(PlacedSum(11, 4), prompts, 3, do_sample=False, on_overflow="stop")
    ends(result, ["length"], [3])
    # a row that had ended before is not the one that ran over
    prompts, options = torch.tensor([[0, 0, 0], [2, 2, 2]]), {"eos_id": 4, "use_cache": False}
    result = student.generate(
        Bigram(CHAIN, 4), prompts, 9, do_sample=False, on_overflow="stop", **options
    )
    text(result, [[0, 0, 0, 1, 4], [2, 2, 2, 3, 0]])
    ends(result, ["eos", "overflow"], [2, 2])


@suite.check(
    "work_is_counted",
    of="generate",
    points=0.5,
    claim="with the cache each token is read once, and positions_forwarded tells the work done",
)
def work_is_counted(student: Any) -> None:
    for use_cache, block_size, prompt, new, work in [
        (True, 64, [[1, 2, 3]], 4, [3, 1, 1, 1]),
        (False, 64, [[1, 2, 3]], 4, [3, 4, 5, 6]),
        # two rows side by side cost no more positions than one
        (True, 64, [[1, 2], [2, 1]], 3, [2, 1, 1]),
        # once the window slides every place moves: each step reads the whole window again
        (True, 4, [[1, 2, 3]], 4, [3, 1, 4, 4]),
        (True, 4, [[1, 2, 3, 4, 5]], 2, [4, 4]),
        (False, 4, [[1, 2, 3]], 4, [3, 4, 4, 4]),
    ]:
        model = SumModel(11, block_size)
        options = {} if use_cache else {"use_cache": False}  # to use it is the default
        result = student.generate(model, torch.tensor(prompt), new, do_sample=False, **options)
        found = sum(model.forwarded)
        expect.true(
            found == sum(work),
            f"the model read {found} positions, {model.forwarded} call by call; expected "
            f"{sum(work)}, {work}",
        )
        expect.same(result.positions_forwarded, found, "positions_forwarded")


@suite.check(
    "cache_changes_nothing",
    of="generate",
    points=0.5,
    claim="cached and uncached give the same ids for the same seed, call after call",
    remember=twins,
)
def cache_changes_nothing(student: Any) -> None:
    # so warm that chance decides each token; and past the window, where a stale cache would tell
    for prompts in ([[1, 2, 3]], [[5], [6]]):
        runs = []
        for use_cache in (True, False):
            result = student.generate(
                PlacedSum(11, 4),
                torch.tensor(prompts),
                6,
                temperature=8.0,
                use_cache=use_cache,
                generator=torch.Generator().manual_seed(3),
            )
            runs.append(expect.tensor(result.ids, what="ids"))
        expect.same(runs[0], runs[1], "ids with the cache")


@suite.check(
    "real_transformer",
    of="generate",
    points=0.5,
    claim="gives a transformer's best token at each step, with the cache, past the window too",
)
def real_transformer(student: Any) -> None:
    model = tiny_gpt(n_layers=3)
    result = student.generate(model, torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]]), 6, top_k=1)
    follows(model, expect.tensor(result.ids, (2, 11), "ids"), start=5)


def follows(model: Any, ids: Tensor, start: int) -> None:
    """Each id from `start` on is the model's best after the window before it, read afresh."""
    for place in range(start, ids.shape[1]):
        window = ids[:, max(0, place - model.block_size) : place]
        with torch.inference_mode():
            logits = model(window)[:, -1]
        chosen = logits.gather(1, ids[:, place, None])[:, 0]
        # two ways to add up the same numbers differ by rounding, so a near tie is nobody's fault
        lost = logits.amax(dim=-1) - chosen > 1e-3
        if lost.any():
            row = int(lost.nonzero()[0])
            raise Mismatch(
                f"new token {place - start + 1} of row {row} is {ids[row, place]}; expected "
                f"{int(logits[row].argmax())}, the best when the window is read afresh"
            )


@suite.check(
    "left_padding",
    of="generate",
    points=0.5,
    claim="a row of a left-padded batch says what it says alone",
)
def left_padding(student: Any) -> None:
    rows = [[3, 1, 2], [5]]
    ids = torch.tensor([[3, 1, 2], [7, 7, 5]])
    mask = torch.tensor([[1, 1, 1], [0, 0, 1]])
    for block_size in (16, 4):
        for use_cache in (False, True):
            result = student.generate(
                PlacedSum(11, block_size),
                ids,
                5,
                do_sample=False,
                attention_mask=mask,
                use_cache=use_cache,
            )
            alone = [by_hand(row, 5, block_size, 11) for row in rows]
            text(result, [alone[0], [7, 7, *alone[1]]])


# --- manners ---


@suite.check(
    "mode_is_restored",
    of="generate",
    points=0.5,
    claim="runs the model in eval mode, and gives it back in the mode it was in, whatever happens",
)
def mode_is_restored(student: Any) -> None:
    for training in (True, False):
        model = NoisyModel(CHAIN).train(training)
        result = student.generate(model, torch.tensor([[0]]), 4, do_sample=False)
        text(result, [[0, 1, 4, 2, 3]])
        expect.true(
            not any(trained for trained, _ in model.modes),
            "the model was called in training mode; expected eval mode",
        )
        back(model, training, "after generate")
    # a wrong knob is told with an exception, and the model is none the worse for it
    model = NoisyModel(CHAIN).train()
    with expect.raises(ValueError, "top_k=-1"):
        student.generate(model, torch.tensor([[0]]), 4, top_k=-1)
    back(model, True, "after an exception")


def back(model: Any, training: bool, when: str) -> None:
    """The model is in the mode it was in, and so are its parts."""
    for name, found in (("training", model.training), ("the dropout's training", model.noisy)):
        expect.true(found is training, f"{when} {name} is {found}; expected {training}")


@suite.check(
    "no_gradients",
    of="generate",
    points=0.25,
    claim="computes without gradients, and neither the ids nor the caller notice it",
)
def no_gradients(student: Any) -> None:
    model = NoisyModel(CHAIN)
    result = student.generate(model, torch.tensor([[0]]), 2, do_sample=False)
    expect.true(
        not any(gradients for _, gradients in model.modes),
        "the model was called with gradients on; expected torch.inference_mode()",
    )
    # a tensor born in inference mode may never be trained on
    expect.true(
        not expect.tensor(result.ids, what="ids").is_inference(),
        "ids is an inference tensor; expected an ordinary one, made outside of inference mode",
    )
    outside("after generate")


def outside(when: str) -> None:
    """The caller's own code is free to train."""
    expect.true(
        torch.is_grad_enabled() and not torch.is_inference_mode_enabled(),
        f"gradients are off for the caller {when}; expected them on, as they were",
    )


@suite.check(
    "streamer_hears",
    of="generate",
    points=0.25,
    claim="calls the streamer once a step, with the new ids (B, 1), as they come",
)
def streamer_hears(student: Any) -> None:
    model = Bigram(CHAIN)
    listener = Listener(model)
    student.generate(
        model,
        torch.tensor([[0], [2]]),
        9,
        do_sample=False,
        eos_id=4,
        pad_id=0,
        streamer=listener,
    )
    expect.true(
        len(listener.heard) == 4,
        f"the streamer was called {len(listener.heard)} times; expected 4, the number of steps",
    )
    for heard, wanted in zip(listener.heard, [[1, 3], [4, 0], [0, 1], [0, 4]], strict=True):
        expect.same(heard, torch.tensor(wanted)[:, None], "what the streamer was handed")
    expect.true(
        listener.calls[0] < len(model.forwarded),
        "the streamer heard the first token after the last forward; expected it as it came",
    )


@suite.check(
    "arguments_untouched",
    of="generate",
    points=0.25,
    claim="leaves the caller's ids, mask and list of eos ids as they are",
    teaching="a slip that harms the caller, told apart from right and wrong",
)
def arguments_untouched(student: Any) -> None:
    ids, mask, eos = torch.tensor([[7, 1], [2, 3]]), torch.tensor([[0, 1], [1, 1]]), [9, 8]
    before, mask_before = ids.clone(), mask.clone()
    student.generate(SumModel(11), ids, 4, temperature=0, attention_mask=mask, eos_id=eos)
    expect.unchanged(ids, before, "ids")
    expect.unchanged(mask, mask_before, "attention_mask")
    expect.unchanged(eos, [9, 8], "list of eos ids")


@suite.check(
    "bad_arguments",
    of="generate",
    points=0.25,
    claim="wrong arguments raise ValueError",
)
def bad_arguments(student: Any) -> None:
    ids = torch.tensor([[0, 1]])
    with expect.raises(ValueError, "max_new_tokens=-1"):
        student.generate(Bigram([1, 0]), ids, -1)
    with expect.raises(ValueError, "an empty prompt, ids of shape (1, 0)"):
        student.generate(Bigram([1, 0]), ids[:, :0], 1)
    with expect.raises(ValueError, 'on_overflow="crop"'):
        student.generate(Bigram([1, 0]), ids, 1, on_overflow="crop")
    with expect.raises(ValueError, "repetition_penalty=0"):
        student.generate(Bigram([1, 0]), ids, 1, repetition_penalty=0.0)
    with expect.raises(ValueError, "temperature=-1"):
        student.generate(Bigram([1, 0]), ids, 1, temperature=-1.0)


# --- the stream ---


def speaker(said: str | bytes) -> tuple[Script, ByteTokenizer]:
    """A model that says this text from its first byte on, and a tokenizer of bytes."""
    return Script(said.encode() if isinstance(said, str) else said), ByteTokenizer()


@suite.check(
    "stream_tells_all",
    of="stream",
    points=0.5,
    claim="the pieces, joined, are prompt and continuation, up to the eos",
)
def stream_tells_all(student: Any) -> None:
    said = "Once upon a time. The end"
    pieces = list(student.stream(*speaker(said), "Once", 7, do_sample=False))
    expect.same("".join(pieces), "Once upon a", "the pieces, joined,")
    # the options are those of generate
    pieces = list(student.stream(*speaker(said), "Once", do_sample=False, eos_id=ord(".")))
    expect.same("".join(pieces), "Once upon a time.", "the pieces, joined,")
    pieces = list(student.stream(*speaker(said), "Once", 0))
    expect.same("".join(pieces), "Once", "the pieces, joined,")


@suite.check(
    "stream_whole_characters",
    of="stream",
    points=0.5,
    claim="no piece holds half a character, and nothing is lost",
)
def stream_whole_characters(student: Any) -> None:
    # characters of two, three and four bytes: each byte is a token here
    said = "né 漢字 🐢!"
    pieces = list(student.stream(*speaker(said), "n", len(said.encode()) - 1, do_sample=False))
    broken = [piece for piece in pieces if "\N{REPLACEMENT CHARACTER}" in piece]
    expect.true(not broken, f"{len(broken)} pieces hold half a character (\\ufffd); expected none")
    expect.same("".join(pieces), said, "the pieces, joined,")
    # tokens may begin and end anywhere: here with one half of a character
    tokenizer = ByteTokenizer("oé".encode()[:2], "é漢".encode()[1:3], "漢!".encode()[1:])
    model = Script([ord("n"), 256, 257, 258], vocab_size=259)
    pieces = list(student.stream(model, tokenizer, "n", 3, do_sample=False))
    broken = [piece for piece in pieces if "\N{REPLACEMENT CHARACTER}" in piece]
    expect.true(not broken, f"{len(broken)} pieces hold half a character (\\ufffd); expected none")
    expect.same("".join(pieces), "noé漢!", "the pieces, joined,")
    # a character that is never finished is told once, at the end, as the decoder writes it
    pieces = list(student.stream(*speaker(b"a\xe4\xbd"), "a", 2, do_sample=False))
    expect.same("".join(pieces), "a\N{REPLACEMENT CHARACTER}", "the pieces, joined,")


@suite.check(
    "stream_as_it_comes",
    of="stream",
    points=0.25,
    claim="tells each piece as soon as it is there",
)
def stream_as_it_comes(student: Any) -> None:
    model, tokenizer = speaker("abcdefghijklmnopqrstuvwxyz")
    heard = ""
    for piece in student.stream(model, tokenizer, "ab", 20, do_sample=False):
        # each forward makes a token of one letter; to be one token ahead is allowed
        expect.true(
            len(model.forwarded) <= max(0, len(heard) - 2) + 2,
            f"after {heard!r} the next piece came when {len(model.forwarded)} tokens were made; "
            "expected each token told as it comes",
        )
        heard += piece
    expect.same(heard, "abcdefghijklmnopqrstuv", "the pieces, joined,")


@suite.check(
    "stream_closed_early",
    of="stream",
    points=0.25,
    claim="closed early it leaves the model as it was, and never switches off the caller's "
    "gradients",
)
def stream_closed_early(student: Any) -> None:
    model, tokenizer = speaker("Once upon a time")
    model.train()
    pieces = student.stream(model, tokenizer, "On", 10, do_sample=False)
    for _ in range(3):
        next(pieces, "")
        outside("between two pieces")
    pieces.close()
    outside("after the stream")
    expect.true(model.training, "the model is in eval mode after close(); expected training mode")


@suite.check(
    "stream_returns",
    of="stream",
    points=0.25,
    claim="its return value is the Generation, and wrong arguments raise ValueError",
)
def stream_returns(student: Any) -> None:
    pieces = student.stream(*speaker("abcdef"), "ab", 3, do_sample=False)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result = end.value
            break
    text(result, [list(b"abcde")])
    ends(result, ["length"], [3])
    expect.same(result.positions_forwarded, 4, "positions_forwarded")
    with expect.raises(ValueError, "max_new_tokens=-1"):
        list(student.stream(*speaker("abc"), "a", -1))
    with expect.raises(ValueError, "an empty prompt"):
        list(student.stream(*speaker("abc"), "", 1))
