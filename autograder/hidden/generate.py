"""Lesson 8, hidden: generate and stream against the reference, where slips hide."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from course_lib.checks import expect
from course_lib.checks.chance import allowed_counts
from course_lib.checks.draw import Draw
from course_lib.checks.generate import FIELDS, MANY, back, follows, outside
from course_lib.checks.kit import Suite
from course_lib.checks.models import (
    Bigram,
    ByteTokenizer,
    Listener,
    NoisyModel,
    PlacedSum,
    Script,
    Table,
    ToyModel,
    tiny_gpt,
)
from solutions import generate as reference

suite = Suite("generate", hidden=True)

BANNED = -torch.inf


def as_reference(
    student: Any, make: Callable[[], ToyModel], ids: Tensor, new: int, **options: Any
) -> None:
    """The student's Generation is the reference's in every field but the speed.

    Each gets a model of its own, and what the student's model counted is what was reported.
    """
    model = make()
    result = student.generate(model, ids, new, **options)
    wanted = reference.generate(make(), ids, new, **options)
    for field in FIELDS:
        expect.true(hasattr(result, field), f"what came back has no {field}")
        if field != "tokens_per_second":
            expect.same(getattr(result, field), getattr(wanted, field), field)
    expect.same(sum(model.forwarded), wanted.positions_forwarded, "the positions that it read")


def padded(draw: Draw, batch: int, pos: int, vocab: int) -> tuple[Tensor, Tensor]:
    """Ids (batch, pos) and a mask that pads on the left: row 0 not at all, row 1 but for one."""
    starts = torch.tensor([0, pos - 1, *(draw.integer(0, pos - 1) for _ in range(batch - 2))])
    return draw.ids(batch, pos, vocab), (torch.arange(pos) >= starts[:, None]).long()


def odd_logits(draw: Draw, vocab: int) -> Tensor:
    """Odd whole logits (vocab, vocab), no two of a row alike, also after a penalty of 2."""
    rows = [torch.randperm(2 * vocab, generator=draw.generator)[:vocab] for _ in range(vocab)]
    return (2 * torch.stack(rows) + 1 - 2 * vocab).float()


@suite.check(
    "hidden_any_batch",
    of="generate",
    points=0.5,
    claim="equals the reference for any batch, vocabulary and length, with and without an eos",
)
def any_batch(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (4, 1), (1, 9), (6, 6), (5, 3)]:
        ids = draw.ids(batch, draw.integer(1, 5), vocab)
        new = draw.integer(2, 7)
        eos, other, pad = draw.ids(1, 3, vocab)[0].tolist()
        for ending in ({"eos_id": eos}, {"eos_id": [eos, other], "pad_id": pad}):
            as_reference(
                student,
                partial(PlacedSum, vocab),
                ids,
                new,
                do_sample=False,
                use_cache=draw.integer(0, 1) == 1,
                **ending,
            )


@suite.check(
    "hidden_rows_end_apart",
    of="generate",
    points=0.25,
    claim="rows that end at different steps are filled, told and counted as the contract says",
)
def rows_end_apart(student: Any, draw: Draw) -> None:
    vocab = draw.integer(6, 9)
    # one long cycle through all ids, so that each row meets the eos after another number of steps
    cycle = torch.randperm(vocab, generator=draw.generator)
    following = torch.empty(vocab, dtype=torch.long)
    following[cycle] = cycle.roll(-1)
    # 0 is no eos here, so that it may be the filling; the others are two different ids
    eos, other, pad = (1 + torch.randperm(vocab - 1, generator=draw.generator)[:3]).tolist()
    prompts, make = torch.arange(vocab)[:, None], partial(Bigram, following.tolist())
    for ending in (
        {"eos_id": eos, "pad_id": 0},
        {"eos_id": [eos, other]},
        {"eos_id": [other, eos], "pad_id": pad},
    ):
        for new in (draw.integer(2, vocab - 1), 2 * vocab):
            as_reference(student, make, prompts, new, do_sample=False, **ending)
    model = make()
    listener = Listener(model)
    result = student.generate(
        model, prompts, vocab, do_sample=False, eos_id=eos, pad_id=pad, streamer=listener
    )
    expect.true(len(listener.heard) == result.ids.shape[1] - 1, "not one call a step")
    expect.same(torch.cat(listener.heard, dim=1), result.ids[:, 1:], "what the streamer heard")
    expect.true(listener.calls[0] < len(model.forwarded), "the streamer hears it too late")


@suite.check(
    "hidden_window",
    of="generate",
    points=0.5,
    claim="the window slides as the contract says, for prompts around block_size, cached or not",
    teaching="secret inputs: catches answers made for the visible ones",
)
def window(student: Any, draw: Draw) -> None:
    block_size, vocab = draw.integer(3, 6), draw.integer(7, 20)
    for length in (1, block_size, draw.integer(block_size + 1, 2 * block_size)):
        ids = draw.ids(draw.integer(1, 3), length, vocab)
        for use_cache in (True, False):
            as_reference(
                student,
                partial(PlacedSum, vocab, block_size),
                ids,
                block_size + 1,
                do_sample=False,
                use_cache=use_cache,
            )


@suite.check(
    "hidden_stop",
    of="generate",
    points=0.25,
    claim='"stop" ends exactly when no further forward fits, and tells why each row ended',
)
def stop(student: Any, draw: Draw) -> None:
    block_size, vocab = draw.integer(2, 5), draw.integer(3, 5)
    for length in (1, block_size, draw.integer(block_size + 1, block_size + 3)):
        ids = draw.ids(draw.integer(1, 3), length, vocab)
        fits = block_size - min(length, block_size) + 1
        for new in (fits - 1, fits, draw.integer(fits + 1, fits + 9)):
            as_reference(
                student,
                partial(PlacedSum, vocab, block_size),
                ids,
                new,
                do_sample=False,
                eos_id=draw.integer(0, vocab - 1),
                use_cache=draw.integer(0, 1) == 1,
                on_overflow="stop",
            )


@suite.check(
    "hidden_left_padding",
    of="generate",
    points=0.5,
    claim="each row of a left-padded batch says what it says alone, past the window too",
)
def left_padding(student: Any, draw: Draw) -> None:
    vocab = draw.integer(7, 12)
    length = draw.integer(3, 5)
    ids, mask = padded(draw, 3, length, vocab)
    # so that the window slides while some padding is still in it
    for block_size in (length + draw.integer(0, 1), 32):
        for use_cache in (True, False):
            as_reference(
                student,
                partial(PlacedSum, vocab, block_size),
                ids,
                5,
                do_sample=False,
                attention_mask=mask,
                eos_id=draw.integer(0, vocab - 1),
                use_cache=use_cache,
            )
    # a mask without padding says nothing new
    as_reference(
        student,
        partial(PlacedSum, vocab),
        ids,
        3,
        do_sample=False,
        attention_mask=torch.ones_like(ids),
    )


@suite.check(
    "hidden_penalty",
    of="generate",
    points=0.25,
    claim="the penalty counts prompt and continuation, whatever the window holds, and no padding",
)
def penalty(student: Any, draw: Draw) -> None:
    vocab = draw.integer(5, 9)
    logits = odd_logits(draw, vocab)
    ids, mask = padded(draw, 4, draw.integer(2, 5), vocab)
    # once a model that would say the same id for ever, once one that looks at the last id
    for factor, rows in ((2.0, logits[:1].expand(vocab, vocab)), (0.5, logits)):
        # the padding is the very id that a row would say next, if nobody has said it yet
        ids = torch.where(mask.bool(), ids, rows[ids[:, -1:]].argmax(dim=-1))
        for options in ({}, {"attention_mask": mask}):
            as_reference(
                student,
                partial(Table, rows, 3),
                ids,
                4,
                # either way greedy: what comes after the penalty must not be asked before it
                **draw_greedy(draw),
                repetition_penalty=factor,
                **options,
            )


def draw_greedy(draw: Draw) -> dict[str, Any]:
    """One of the ways to say greedy."""
    ways: list[dict[str, Any]] = [
        {"do_sample": False, "temperature": 3.0},
        {"temperature": 0},
        {"temperature": 0.0, "do_sample": False},
        {"top_k": 1},
        {"top_p": 0.0},
    ]
    return ways[draw.integer(0, len(ways) - 1)]


DRAWS, RATE = 1000, 1e-11
limits = cache(lambda p: allowed_counts(DRAWS, p, RATE))


@suite.check(
    "hidden_frequencies",
    of="generate",
    points=0.25,
    claim="draws each id as often as penalty, temperature, top-k and top-p in turn make it likely",
    # of six calls, at most four ids each are counted
    false_alarm=24 * RATE,
)
def frequencies(student: Any, draw: Draw) -> None:
    order = torch.randperm(4, generator=draw.generator)
    # these ids are the best in turn; the logits are negative, so a penalty makes them more so
    logits = torch.empty(4)
    logits[order] = torch.tensor([-0.5, -1.0, -1.5, -2.0])
    best, second, third, _ = order.tolist()
    halves = {best: 0.6225, second: 0.3775}
    calls: list[tuple[dict[str, float], dict[int, float]]] = [
        ({}, {best: 0.4551, second: 0.2760, third: 0.1674}),
        ({"temperature": 0.25}, {best: 0.8650, second: 0.1171}),
        ({"top_k": 2}, halves),
        # from logits -1 and -1: the penalty comes first
        ({"top_k": 2, "repetition_penalty": 2.0}, {best: 0.5, second: 0.5}),
        # after top-k the best has 0.6225, so 0.62 is reached by it alone
        ({"top_k": 2, "top_p": 0.62}, {best: 1.0}),
        # at T = 2 the best has 0.35 only, and the second is needed to reach 0.4
        ({"temperature": 2.0, "top_p": 0.4}, {best: 0.5622, second: 0.4378}),
    ]
    for knobs, wanted in calls:
        ids = torch.full((DRAWS, 1), best)
        result = student.generate(Table(logits), ids, 1, **knobs)
        drawn = expect.tensor(result.ids, (DRAWS, 2))[:, 1]
        for token, p in wanted.items():
            low, high = limits(p)
            count = int((drawn == token).sum())
            expect.true(low <= count <= high, "an id is drawn too often or too seldom")


@suite.check(
    "hidden_same_seed",
    of="generate",
    points=0.25,
    claim="the same seed gives the same text, cached or not, in batches and past the window",
    teaching="secret inputs: catches answers made for the visible ones",
    # six draws of MANY alike ids give one id
    false_alarm=float(MANY) ** -5,
)
def same_seed(student: Any, draw: Draw) -> None:
    vocab, seed = draw.integer(5, 9), draw.integer(0, 10**6)
    ids, mask = padded(draw, 3, 3, vocab)
    for options in ({}, {"attention_mask": mask}, {"eos_id": draw.integer(0, vocab - 1)}):
        runs = [
            student.generate(
                PlacedSum(vocab, 4),
                ids,
                5,
                temperature=9.0,
                use_cache=use_cache,
                generator=torch.Generator().manual_seed(seed),
                **options,
            ).ids
            for use_cache in (True, False)
        ]
        expect.same(runs[0], runs[1], "ids")
    said = student.generate(
        Table(torch.zeros(MANY)), ids[:1], 6, generator=torch.Generator().manual_seed(seed)
    ).ids[0, 3:]
    expect.true(len(set(said.tolist())) > 1, "each draw gives the same id")


@suite.check(
    "hidden_half_precision",
    of="generate",
    points=0.25,
    claim="takes a model of float16 or bfloat16 logits, and never says a banned token",
    teaching="secret inputs: catches answers made for the visible ones",
)
def half_precision(student: Any, draw: Draw) -> None:
    vocab = 8
    ids = draw.ids(5, 2, vocab)
    for dtype in (torch.float16, torch.bfloat16):
        rows = odd_logits(draw, vocab).to(dtype)
        as_reference(
            student,
            partial(Table, rows),
            ids,
            3,
            **draw_greedy(draw),
            repetition_penalty=2.0,
        )
        banned = draw.ids(vocab, vocab, 2).bool()
        banned[torch.arange(vocab), draw.ids(1, vocab, vocab)[0]] = False
        model = Table(torch.zeros(vocab, vocab, dtype=dtype).masked_fill(banned, BANNED))
        result = student.generate(model, ids, 9, repetition_penalty=1.5)
        said = expect.tensor(result.ids, (5, 11))
        expect.true(not banned[said[:, 1:-1], said[:, 2:]].any(), "a banned token was said")


@suite.check(
    "hidden_big_vocabulary",
    of="generate",
    points=0.25,
    claim="equals the reference at a vocabulary of 50,000",
    teaching="secret inputs: catches answers made for the visible ones",
)
def big_vocabulary(student: Any, draw: Draw) -> None:
    ids = draw.ids(2, 3, 50_000)
    as_reference(student, partial(PlacedSum, 50_000), ids, 2, **draw_greedy(draw))


@suite.check(
    "hidden_not_contiguous",
    of="generate",
    points=0.25,
    claim="takes slices, transposes and expanded ids, and leaves its arguments as they are",
    teaching="secret inputs: catches answers made for the visible ones",
)
def not_contiguous(student: Any, draw: Draw) -> None:
    block = draw.ids(6, 4, 9)
    for ids in (block.T, block[::2, 1:], block[:, :1].expand(6, 3)):
        before, mask, eos = ids.clone(), torch.ones_like(ids), [8, 3]
        mask[0, 0] = 0
        mask_before = mask.clone()
        as_reference(
            student, partial(PlacedSum, 9), ids, 3, temperature=0, eos_id=eos, attention_mask=mask
        )
        expect.unchanged(ids, before, "ids")
        expect.unchanged(mask, mask_before, "attention_mask")
        expect.unchanged(eos, [8, 3], "list of eos ids")


@suite.check(
    "hidden_transformer",
    of="generate",
    points=0.25,
    claim="gives a transformer's best token at each step, with the cache, past the window too",
)
def transformer(student: Any, draw: Draw) -> None:
    model = tiny_gpt(draw.integer(0, 10**6), n_layers=draw.integer(2, 3), vocab_size=13)
    ids = draw.ids(draw.integer(1, 4), draw.integer(5, 10), 13)
    result = student.generate(model, ids, 5, **draw_greedy(draw))
    follows(model, expect.tensor(result.ids, (len(ids), ids.shape[1] + 5)), ids.shape[1])


@suite.check(
    "hidden_exceptions",
    of="generate",
    points=0.25,
    claim="what cannot be done raises ValueError, also in the middle; the model's mode is restored",
)
def exceptions(student: Any, draw: Draw) -> None:
    vocab = draw.integer(4, 8)
    ids, following = torch.ones(2, 9).long(), torch.arange(vocab).roll(-1)
    rows = 10 * torch.nn.functional.one_hot(following, vocab).float()
    for broken in (torch.nan, BANNED):
        rows[3] = broken
        model = Table(rows).train()
        with expect.raises(ValueError, "logits that decide nothing, at the third step"):
            student.generate(model, ids, 9, do_sample=draw.integer(0, 1) == 1, top_k=1)
        expect.true(model.training, "the model is left in eval mode")
    for wrong in (
        {"temperature": torch.nan},
        {"temperature": torch.inf},
        {"top_k": -draw.integer(1, 9)},
        {"top_p": 1 + draw.uniform(0.01, 1)},
        {"top_p": -0.1},
        {"repetition_penalty": -draw.uniform(0.5, 2)},
        {"repetition_penalty": torch.inf},
        {"on_overflow": "slid"},
        {"max_new_tokens": -draw.integer(1, 5)},
        {"ids": ids[:, :0]},
    ):
        noisy = NoisyModel(following.tolist())
        noisy.train()
        with expect.raises(ValueError, "a wrong argument"):
            student.generate(noisy, **{"ids": ids, "max_new_tokens": 2, **wrong})
        expect.true(noisy.training and noisy.noisy, "the model is left in eval mode")


@suite.check(
    "hidden_manners",
    of="generate",
    points=0.25,
    claim="the model runs in eval mode and without gradients, and is given back as it was",
)
def manners(student: Any, draw: Draw) -> None:
    following, ids = torch.randperm(7, generator=draw.generator).tolist(), draw.ids(2, 2, 7)
    for training in (True, False):
        model, new = NoisyModel(following).train(training), draw.integer(2, 5)
        options: dict[str, Any] = {"do_sample": False, "use_cache": draw.integer(0, 1) == 1}
        result = student.generate(model, ids, new, **options)
        expect.same(result.ids, reference.generate(Bigram(following), ids, new, **options).ids)
        expect.true(not any(map(any, model.modes)), "training mode or gradients are on")
        expect.true(not result.ids.is_inference(), "ids is a tensor of inference mode")
        back(model, training, "after generate")
        outside("after generate")


ALPHABET = "abc .\né߷漢字€🐢🐇\u0301"


@suite.check(
    "hidden_stream",
    of="stream",
    points=0.25,
    claim="tells any text whole and piece by piece, each character once its last byte is there",
)
def stream(student: Any, draw: Draw) -> None:
    said = "".join(ALPHABET[int(i)] for i in draw.ids(1, 12, len(ALPHABET))[0])
    model = Script(b">" + said.encode(), block_size=128)
    model.train()
    told, made = "", 0
    for piece in tell(student, model, ">", said.encode(), use_cache=draw.integer(0, 1) == 1):
        outside("between two pieces")
        # the bytes of what was told before, the four of one character, and one token ahead
        made = len(model.forwarded)
        expect.true(made <= len(told.encode()) + 5, "the pieces come too late")
        expect.true("\N{REPLACEMENT CHARACTER}" not in piece, "a piece holds half a character")
        told += piece
    expect.same(told, ">" + said, "the pieces, joined,")
    expect.true(model.training, "the model is left in eval mode")
    # closed in the middle
    pieces = tell(student, model, ">", said.encode())
    for _ in range(draw.integer(1, 6)):
        next(pieces, "")
    pieces.close()
    expect.true(model.training, "the model is left in eval mode after close()")
    # tokens that hold more than a character, or less, or an end and a beginning
    tokens: list[bytes] = []
    rest = said.encode()
    while rest:
        size = draw.integer(1, 4)
        tokens, rest = [*tokens, rest[:size]], rest[size:]
    longer = Script([ord(">"), *range(256, 256 + len(tokens))], 256 + len(tokens))
    pieces = list(student.stream(longer, ByteTokenizer(*tokens), ">", len(tokens), do_sample=False))
    expect.same("".join(pieces), ">" + said, "the pieces, joined,")
    expect.true("\N{REPLACEMENT CHARACTER}" not in "".join(pieces), "half a character is told")
    # bytes that are no text, and a text cut in the middle of a character
    for junk in (bytes(draw.ids(1, 9, 256)[0].tolist()), "🐢漢".encode()[: draw.integer(1, 6)]):
        model = Script(said.encode() + junk, block_size=128)
        pieces = list(tell(student, model, said, junk))
        whole = (said.encode() + junk).decode(errors="replace")
        expect.same("".join(pieces), whole, "the pieces, joined,")


@suite.check(
    "hidden_stream_options",
    of="stream",
    points=0.25,
    claim="hands each option on to generate, and returns its Generation",
)
def stream_options(student: Any, draw: Draw) -> None:
    letters = [ord("a") + i for i in range(4)]
    rows = torch.full((128, 128), BANNED)
    rows[:, letters] = odd_logits(draw, 4)[draw.ids(1, 128, 4)[0]]
    prompt = "".join(chr(letters[int(i)]) for i in draw.ids(1, 3, 4)[0])
    for options in (
        {"repetition_penalty": 2.0},
        {"eos_id": letters[draw.integer(0, 3)]},
        {"on_overflow": "stop"},
        {"use_cache": False},
    ):
        pieces = student.stream(
            Table(rows, 4), ByteTokenizer(), prompt, 6, do_sample=False, **options
        )
        told, result = [], None
        while result is None:
            try:
                told.append(next(pieces))
            except StopIteration as end:
                result = end.value
                expect.true(hasattr(result, "ids"), "the return value is no Generation")
        ids = torch.tensor([list(prompt.encode())])
        wanted = reference.generate(Table(rows, 4), ids, 6, do_sample=False, **options)
        expect.same(result.ids, wanted.ids, "ids")
        expect.same(result.finish_reason, wanted.finish_reason, "finish_reason")
        expect.same(result.positions_forwarded, wanted.positions_forwarded, "positions_forwarded")
        expect.same("".join(told), bytes(wanted.ids[0].tolist()).decode(), "the pieces, joined,")
    for wrong in ({"prompt": ""}, {"max_new_tokens": -draw.integer(1, 5)}, {"temperature": -1.0}):
        arguments = {"prompt": prompt + "abcd", "max_new_tokens": 3, **wrong}
        with expect.raises(ValueError, "a wrong argument"):
            list(student.stream(Table(rows), ByteTokenizer(), **arguments))


SIGNS, LETTERS = range(ord("!"), ord("a")), 8


@suite.check(
    "hidden_stream_by_chance",
    of="stream",
    points=0.25,
    claim="draws by default, and with the same seed tells the same story",
    # LETTERS of SIGNS that are equally likely: two stories alike, or one of the same sign
    false_alarm=len(SIGNS) ** -float(LETTERS) + len(SIGNS) ** (1.0 - LETTERS),
)
def stream_by_chance(student: Any, draw: Draw) -> None:
    rows = torch.full((128,), BANNED)
    rows[SIGNS.start : SIGNS.stop] = 0.0
    seed = draw.integer(0, 10**6)

    def story(**options: Any) -> str:
        return "".join(student.stream(Table(rows), ByteTokenizer(), "once", LETTERS, **options))

    first, second = (story(generator=torch.Generator().manual_seed(seed)) for _ in range(2))
    expect.true(len(set(first[4:])) > 1, "the story says the same sign all the time")
    expect.true(first == second, "the same seed told two stories")
    expect.true(story() != story(), "without a seed the story is always the same")


def tell(student: Any, model: ToyModel, prompt: str, said: bytes, **options: Any) -> Any:
    """The stream of a model that says these bytes after the prompt."""
    return student.stream(model, ByteTokenizer(), prompt, len(said), do_sample=False, **options)
