"""Lesson 5, hidden: greedy, inverse_cdf, sample and next_token, where slips hide."""

from typing import Any

import torch
from torch import Generator, Tensor

from course_lib.checks import expect
from course_lib.checks.chance import allowed_counts, outside
from course_lib.checks.draw import Draw
from course_lib.checks.kit import Suite
from solutions import sampling as reference
from solutions.temperature import apply_temperature
from solutions.top_k import top_k_filter
from solutions.top_p import top_p_filter

suite = Suite("sampling", hidden=True)

BANNED = -torch.inf
NAN, INF = float("nan"), float("inf")
HALVES = (torch.float16, torch.bfloat16)
MARGIN = 1e-5  # nearer to p than this no mass is graded: right answers round differently

DRAWS = 600  # of one row, to see which ids come
COUNTED = 4000  # of one row, to count how often each id comes
RARE = 30_000  # of one row, to see ids of a share of one in a thousand
PAIRS = 1000  # neighbouring draws of one fair row, to count how often they differ
RATE = 1e-11  # how often a right sampler may leave the bounds of one count
CERTAIN = 0.06  # an id of this share comes at least once
CHANGES = allowed_counts(PAIRS, 0.5, RATE)


def ids(got: Any, rows: int) -> Tensor:
    """What came back: int64 ids (rows, 1)."""
    found = expect.tensor(got, (rows, 1))
    expect.true(found.dtype == torch.int64, f"the ids have dtype {found.dtype}")
    return found


def generator(draw: Draw) -> Generator:
    return torch.Generator().manual_seed(draw.integer(0, 10**6))


def aimed(draw: Draw, weights: Tensor) -> tuple[Tensor, Tensor]:
    """For each row an id that has weight, (rows, 1), and a u well inside its stretch, (rows,)."""
    aims = []
    for row in weights:
        possible = row.nonzero()[:, 0]
        aims.append(possible[draw.integer(0, len(possible) - 1)])
    found = torch.stack(aims)[:, None]
    mass = weights.double().cumsum(dim=-1)
    end, width = mass.gather(-1, found), weights.double().gather(-1, found)
    u = (end - width * draw.uniform(0.3, 0.7)) / mass[:, -1:]
    return found, u[:, 0]


# --- greedy ---


@suite.check(
    "hidden_greedy",
    of="greedy",
    points=0.5,
    claim="greedy equals the reference: any batch, ties, banned tokens, half precision, slices",
    teaching="secret inputs: catches answers made for the visible ones",
)
def greedy(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (3, 40), (2, 50_000)]:
        logits = draw.logits(batch, vocab)
        expect.same(ids(student.greedy(logits), batch), reference.greedy(logits))
    tied = draw.ids(20, 12, 3).float()
    tied[:, draw.integer(0, 11)] = BANNED
    expect.same(ids(student.greedy(tied), 20), reference.greedy(tied))
    for dtype in HALVES:
        half = draw.logits(4, 60).argsort(dim=-1).to(dtype)
        expect.same(ids(student.greedy(half), 4), reference.greedy(half))
    for strided in (draw.logits(12, 9).view(3, 4, 9)[:, -1], draw.logits(5, 9).T):
        before = strided.clone()
        expect.same(ids(student.greedy(strided), len(strided)), reference.greedy(before))
        expect.unchanged(strided, before, "logits")


# --- inverse_cdf ---


@suite.check(
    "hidden_cdf_any_batch",
    of="inverse_cdf",
    points=1,
    claim="inverse_cdf finds the id for any batch, vocabulary, sum and precision, in slices",
    teaching="secret inputs: catches answers made for the visible ones",
)
def cdf_any_batch(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (3, 40), (2, 50_000)]:
        weights = draw.logits(batch, vocab).exp() * draw.uniform(0.1, 5)
        weights = weights.masked_fill(draw.ids(batch, vocab, 4) == 0, 0)
        weights[:, draw.integer(0, vocab - 1)] = 1
        # far in the tail of a large vocabulary stretches are shorter than u can tell apart
        weights = weights.where(weights > 1e-6 * weights.sum(dim=-1, keepdim=True), 0)
        for dtype in (torch.float32, torch.float64):
            aims, u = aimed(draw, weights.to(dtype))
            expect.same(ids(student.inverse_cdf(weights.to(dtype), u), batch), aims)
    for dtype in HALVES:
        weights = draw.ids(4, 30, 9).to(dtype)
        weights[:, 0] = 1
        aims, u = aimed(draw, weights)
        expect.same(ids(student.inverse_cdf(weights, u), 4), aims)
    block = draw.logits(12, 9).exp().view(3, 4, 9)
    for strided in (block[:, -1], draw.logits(5, 9).exp().T):
        before = strided.clone()
        aims, u = aimed(draw, before)
        spread = torch.stack([u, u], dim=1)[:, 0]
        expect.same(ids(student.inverse_cdf(strided, spread), len(strided)), aims)
        expect.unchanged(strided, before, "probs")
        expect.unchanged(spread, u, "u")


@suite.check(
    "hidden_cdf_edges",
    of="inverse_cdf",
    points=0.5,
    claim="inverse_cdf is right at the ends of stretches, and never finds an impossible id",
    teaching="secret inputs: catches answers made for the visible ones",
)
def cdf_edges(student: Any, draw: Draw) -> None:
    # sixteenths, some of them 0: every step is exact, so u can stand at each of them
    for _ in range(3):
        probs = draw.ids(1, 16, 12)[0].bincount(minlength=12) / 16
        u = torch.arange(16) / 16
        answer = student.inverse_cdf(probs.repeat(16, 1), u)
        expect.same(ids(answer, 16), reference.inverse_cdf(probs.repeat(16, 1), u))
    uneven = draw.logits(6, 12).exp()
    uneven[:, : draw.integer(1, 4)], uneven[:, -draw.integer(1, 4) :] = 0, 0
    for value, dtype in [
        (0.0, torch.float32),
        (5e-324, torch.float64),
        (1 - 2**-24, torch.float32),
        (1 - 2**-53, torch.float64),
    ]:
        u = torch.full((6,), value, dtype=dtype)
        found = ids(student.inverse_cdf(uneven, u), 6)
        expect.true(bool((uneven.gather(-1, found) > 0).all()), "an id of probability 0 is found")
        possible = (uneven > 0).int()
        first, last = possible.argmax(dim=-1), 11 - possible.flip(-1).argmax(dim=-1)
        if value < 0.5:
            expect.same(found[:, 0], first)
        elif value == 1 - 2**-53:
            expect.same(found[:, 0], last)


@suite.check(
    "hidden_cdf_refuses",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf refuses rows that are no distribution, and u that do not fit them",
    teaching="secret inputs: catches answers made for the visible ones",
)
def cdf_refuses(student: Any, draw: Draw) -> None:
    rows, vocab = draw.integer(2, 5), draw.integer(3, 9)
    u = torch.rand(rows, generator=draw.generator)
    for spoilt in spoilt_rows(draw, rows, vocab, (NAN, -1e-6, INF, -INF)):
        with expect.raises(ValueError, "a row that is no distribution"):
            student.inverse_cdf(spoilt, u)
    good = torch.ones(rows, vocab)
    for value in (-1e-6, 1.0001, -INF, INF, NAN):
        wrong = u.clone()
        wrong[draw.integer(0, rows - 1)] = value
        with expect.raises(ValueError, "a u off the line"):
            student.inverse_cdf(good, wrong)
    for shape in [(rows + 1,), (rows - 1,)]:
        with expect.raises(ValueError, "another number of u than rows"):
            student.inverse_cdf(good, torch.full(shape, 0.5))


def spoilt_rows(draw: Draw, rows: int, vocab: int, values: tuple[float, ...]) -> list[Tensor]:
    """Batches with one row that is no distribution, for each of the values and for no mass."""
    batches = []
    for value in values:
        batch = draw.logits(rows, vocab).exp()
        batch[draw.integer(0, rows - 1), draw.integer(0, vocab - 1)] = value
        batches.append(batch)
    empty = draw.logits(rows, vocab).exp()
    empty[draw.integer(0, rows - 1)] = 0
    return [*batches, empty]


# --- sample ---


def counts_as(found: Tensor, probs: Tensor) -> None:
    """Of many draws from one distribution each id came about as often as it should."""
    for token, share in enumerate(probs.double().tolist()):
        low, high = allowed_counts(len(found), share, RATE)
        count = int((found == token).sum())
        expect.true(low <= count <= high, "an id comes too often or too rarely")


@suite.check(
    "hidden_sample_shares",
    of="sample",
    points=0.25,
    claim="sample draws each id as often as its weight says, whatever their sum",
    teaching="secret inputs: catches answers made for the visible ones",
    false_alarm=2 * 6 * RATE,
)
def sample_shares(student: Any, draw: Draw) -> None:
    for scale in (1.0, draw.uniform(0.1, 5)):
        weights = draw.logits(1, 6, spread=1.5).exp()
        weights[0, draw.integer(0, 5)] = 0
        weights = weights / weights.sum() * scale
        found = ids(student.sample(weights.repeat(COUNTED, 1), generator(draw)), COUNTED)
        counts_as(found, weights[0].double() / weights[0].double().sum())


@suite.check(
    "hidden_sample_rows",
    of="sample",
    points=0.25,
    claim="sample gives each row a possible id of its own, for any batch, vocabulary and precision",
    teaching="secret inputs: catches answers made for the visible ones",
)
def sample_rows(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (30, 40), (2, 50_000)]:
        # one possible id in each row, then a few
        single = torch.nn.functional.one_hot(draw.ids(batch, 1, vocab)[:, 0], vocab).float()
        found = ids(student.sample(single, generator(draw)), batch)
        expect.same(found, single.argmax(dim=-1, keepdim=True))
        few = single + (draw.ids(batch, vocab, 5) == 0)
        for probs in (few, few.double(), few.half(), few.T.contiguous().T):
            before = probs.clone()
            found = ids(student.sample(probs, generator(draw)), batch)
            expect.true(bool((few.gather(-1, found) > 0).all()), "an impossible id is drawn")
            expect.unchanged(probs, before, "probs")


@suite.check(
    "hidden_sample_independent",
    of="sample",
    points=0.25,
    claim="sample draws for each row independently of the others, and finely enough",
    teaching="rows that share their chance have the right shares all the same",
    # of 1000 draws half of 500 ids never come: at most 2^500 ways, each of probability 2^-1000
    false_alarm=outside(PAIRS, 0.5, *CHANGES) + 2.0**-500 + 4 * outside(RARE, 0.001, 1, RARE),
)
def sample_independent(student: Any, draw: Draw) -> None:
    fair = torch.full((PAIRS + 1, 2), 0.5)
    found = ids(student.sample(fair, generator(draw)), PAIRS + 1)[:, 0]
    changes = int((found[1:] != found[:-1]).sum())
    expect.true(CHANGES[0] <= changes <= CHANGES[1], "rows depend on their neighbours")
    flat = torch.full((1000, 500), 1 / 500)
    found = ids(student.sample(flat, generator(draw)), 1000)
    expect.true(len(found.unique()) > 250, "many ids never come")
    rare = torch.tensor([[0.996, 0.001, 0.001, 0.001, 0.001]]).repeat(RARE, 1)
    found = ids(student.sample(rare, generator(draw)), RARE)
    expect.true(len(found.unique()) == 5, "rare ids never come")


@suite.check(
    "hidden_sample_refuses",
    of="sample",
    points=0.25,
    claim="sample refuses a row that is no distribution, wherever it stands in the batch",
    teaching="secret inputs: catches answers made for the visible ones",
)
def sample_refuses(student: Any, draw: Draw) -> None:
    for spoilt in spoilt_rows(draw, draw.integer(2, 5), draw.integer(3, 9), (NAN, -1e-6)):
        with expect.raises(ValueError, "a row that is no distribution"):
            student.sample(spoilt, generator(draw))
        with expect.raises(ValueError, "a row that is no distribution"):
            student.sample(spoilt)


# --- next_token ---


def clear_p(draw: Draw, logits: Tensor) -> float:
    """A p that no row's mass comes near."""
    steps = logits.double().softmax(dim=-1).sort(dim=-1, descending=True).values.cumsum(dim=-1)
    while True:
        p = draw.uniform(0.3, 0.95)
        if ((steps - p).abs() > MARGIN).all():
            return p


def comes_from(student: Any, draw: Draw, logits: Tensor, **knobs: Any) -> Tensor:
    """Draws from one row of logits, all from what the filters leave, every likely id of it once;
    returns the ids, and checks nothing of how often they come."""
    temperature = knobs.get("temperature", 1.0)
    kept = top_k_filter(apply_temperature(logits, temperature), knobs.get("top_k"))
    probs = top_p_filter(kept, knobs.get("top_p")).softmax(dim=-1)[0]
    answer = student.next_token(logits.repeat(DRAWS, 1), generator=generator(draw), **knobs)
    found = ids(answer, DRAWS)
    expect.true(bool((probs[found] > 0).all()), "an id comes that the filters ban")
    counts = found.flatten().bincount(minlength=len(probs))
    expect.true(bool((counts[probs > CERTAIN] > 0).all()), "a likely id never comes")
    return found


@suite.check(
    "hidden_next_support",
    of="next_token",
    points=0.75,
    claim="next_token draws from what temperature, top-k and top-p leave, in this order",
    teaching="secret inputs: catches answers made for the visible ones",
    # at most 16 ids are as likely as that in a row, and 14 rows are drawn from
    false_alarm=14 * 16 * outside(DRAWS, CERTAIN, 1, DRAWS),
)
def next_support(student: Any, draw: Draw) -> None:
    for _ in range(3):
        logits = draw.logits(1, 12, spread=1.5)
        logits[0, draw.integer(0, 11)] = BANNED
        temperature, k = draw.uniform(0.4, 2.5), draw.integer(3, 8)
        cooled = apply_temperature(logits, temperature)
        p = clear_p(draw, cooled)
        comes_from(student, draw, logits, temperature=temperature, top_p=p)
        comes_from(student, draw, logits, temperature=temperature, top_k=k)
        p = clear_p(draw, top_k_filter(cooled, k))
        comes_from(student, draw, logits, temperature=temperature, top_k=k, top_p=p)
    logits = draw.logits(1, 12, spread=1.5)
    for dtype in HALVES:
        half = logits.to(dtype)
        comes_from(student, draw, half, top_p=clear_p(draw, half.float()))
    # farther apart than float16 reaches: a high temperature brings them near all the same
    far = torch.tensor([[6e4, -6e4]], dtype=torch.float16)
    comes_from(student, draw, far, temperature=1e5)
    for off in ({"top_k": 0}, {"top_k": 99, "top_p": 1.0}):
        comes_from(student, draw, logits, **off)


@suite.check(
    "hidden_next_shares",
    of="next_token",
    points=0.25,
    claim="next_token draws by the softmax at its temperature, which is 1 if none is given",
    teaching="secret inputs: catches answers made for the visible ones",
    # the tail of 120 nearly equal ids, which a filter nobody asked for would ban, holds .16
    false_alarm=2 * 6 * RATE + outside(DRAWS, 0.16, 1, DRAWS),
)
def next_shares(student: Any, draw: Draw) -> None:
    logits = draw.logits(1, 6, spread=1.5)
    rows = logits.repeat(COUNTED, 1)
    counts_as(
        ids(student.next_token(rows, generator=generator(draw)), COUNTED), logits[0].softmax(0)
    )
    temperature = draw.uniform(0.5, 2.0)
    found = student.next_token(rows, temperature=temperature, generator=generator(draw))
    counts_as(ids(found, COUNTED), (logits[0] / temperature).softmax(0))
    flat = draw.logits(1, 120, spread=0.06)
    found = ids(student.next_token(flat.repeat(DRAWS, 1), generator=generator(draw)), DRAWS)
    tail = flat[0].argsort()[:20]
    expect.true(bool(torch.isin(found, tail).any()), "unlikely ids never come without filters")


@suite.check(
    "hidden_next_greedy",
    of="next_token",
    points=0.5,
    claim="next_token is greedy when asked to, at any temperature, and draws nothing then",
    teaching="secret inputs: catches answers made for the visible ones",
)
def next_greedy(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (5, 1), (1, 9), (9, 9), (40, 40), (2, 50_000)]:
        logits = draw.ids(batch, vocab, 50).float()
        logits[:, draw.integer(0, vocab - 1)] = 1.0
        for knobs in (
            {"temperature": 0},
            {"temperature": 0.0, "top_k": draw.integer(1, 5)},
            {"do_sample": False, "temperature": draw.uniform(0.1, 9)},
            {"do_sample": False, "temperature": 0, "top_p": draw.uniform()},
        ):
            found = ids(student.next_token(logits, **knobs), batch)
            expect.same(found, reference.greedy(logits))
    # a sharp row, where drawing is greedy too: by top_k = 1, p = 0, or a low temperature
    logits = draw.logits(40, 30)
    for knobs in ({"top_k": 1}, {"top_p": 0.0}, {"temperature": 1e-6}):
        found = ids(student.next_token(logits, generator=generator(draw), **knobs), 40)
        expect.same(found, reference.greedy(logits))
    seed = draw.integer(0, 10**6)
    flat = torch.zeros(12, 50)
    plain = ids(student.next_token(flat, generator=torch.Generator().manual_seed(seed)), 12)
    used = torch.Generator().manual_seed(seed)
    student.next_token(flat, temperature=0, generator=used)
    after = ids(student.next_token(flat, generator=used), 12)
    expect.same(after, plain, "what is drawn after a greedy step")


@suite.check(
    "hidden_next_refuses",
    of="next_token",
    points=0.25,
    claim="next_token refuses rows of which nothing can be chosen, and wrong knobs and shapes",
    teaching="secret inputs: catches answers made for the visible ones",
)
def next_refuses(student: Any, draw: Draw) -> None:
    rows, vocab = draw.integer(2, 5), draw.integer(3, 9)
    good = draw.logits(rows, vocab)
    with_nan, empty = good.clone(), good.clone()
    with_nan[draw.integer(0, rows - 1), draw.integer(0, vocab - 1)] = NAN
    empty[draw.integer(0, rows - 1)] = BANNED
    for logits in (with_nan, empty):
        for knobs in ({}, {"do_sample": False}, {"temperature": 0}, {"top_k": 1}, {"top_p": 0.5}):
            with expect.raises(ValueError, "a row of which nothing can be chosen"):
                student.next_token(logits, **knobs)
    for knobs in (
        {"temperature": -draw.uniform(1e-6, 3)},
        {"temperature": NAN},
        {"temperature": INF},
        {"top_k": -draw.integer(1, 9)},
        {"top_p": -draw.uniform(1e-6, 3)},
        {"top_p": 1 + draw.uniform(1e-6, 3)},
        {"top_p": NAN},
    ):
        with expect.raises(ValueError, "a wrong knob"):
            student.next_token(good, **knobs)
    for shaped in (good[0], good[None]):
        with expect.raises(ValueError, "logits that are not (batch, vocab)"):
            student.next_token(shaped, generator=generator(draw))
