"""Lesson 5: what greedy, inverse_cdf, sample and next_token must do.

Most checks leave nothing to chance: `inverse_cdf` is handed its u, and of draws it only matters
which ids can come at all. Where draws are counted, the check says how often it would refuse a right
answer by bad luck; that is computed, and less than once in a thousand million runs.
"""

import math
from typing import Any

import torch
from torch import Tensor

from . import expect
from .chance import allowed_counts, outside
from .draw import Draw
from .kit import Suite
from .record import describe, occurring, repeating

suite = Suite("sampling")

BANNED = -torch.inf
NAN, INF = float("nan"), float("inf")

DRAWS = 400  # of one row, to see which ids come
COUNTED = 10_000  # of one row, to count how often each id comes
SHARES = (0.4, 0.3, 0.2, 0.1)
ALLOWED = [allowed_counts(COUNTED, share, rate=1e-10) for share in SHARES]

# the row of the worked examples
Z = [1.0, 2.0, 0.5, 0.1]


def ids(got: Any, rows: int) -> list[int]:
    """What came back as a plain list: one int64 id a row, in shape (rows, 1)."""
    found = expect.tensor(got, (rows, 1), "what came back")
    expect.true(
        found.dtype == torch.int64, f"the ids have dtype {found.dtype}; expected torch.int64"
    )
    listed: list[int] = found[:, 0].tolist()
    return listed


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def repeated(*rows: list[float], times: int = DRAWS) -> Tensor:
    """The same rows again and again, so that one call draws from them many times."""
    return torch.tensor(rows).repeat(times, 1)


def comes(got: Any, row: list[float], expected: set[int]) -> None:
    """Of many draws from one row, just the expected ids came."""
    found = set(ids(got, DRAWS))
    expect.true(
        found == expected,
        f"{DRAWS} draws from the row {describe(row)} gave the ids {found}; expected {expected}",
    )


def drawn(student: Any, row: list[float], **knobs: Any) -> Any:
    """What next_token draws, many times, from one row."""
    return student.next_token(repeated(row), generator=seeded(), **knobs)


def each_gives(got: Any, rows: list[list[float]], expected: list[int]) -> None:
    """Of many draws from a few rows in turn, each row gave its expected id and no other."""
    found = ids(got, DRAWS * len(rows))
    for place, (row, token) in enumerate(zip(rows, expected, strict=True)):
        came = set(found[place :: len(rows)])
        expect.true(
            came == {token},
            f"{DRAWS} draws from the row {describe(row)} gave the ids {came}; expected {{{token}}}",
        )


def missed(share: float) -> float:
    """How often an id of this share never comes."""
    return outside(DRAWS, share, 1, DRAWS)


def twentieths(answers: list[Any]) -> list[Any]:
    """Of many draws: how often each id came, in twentieths. Right samplers differ in the rest."""
    found = []
    for answer in answers:
        # an id may be any number, of which no table could be made
        ids, counts = answer.flatten().unique(return_counts=True)
        found.append([list(answer.shape), ids, (20 * counts / answer.numel()).round()])
    return found


def in_threes(answers: list[Any]) -> list[Any]:
    """Of many draws from three rows in turn: which ids came from each."""
    return [occurring([answer[place::3] for place in range(3)]) for answer in answers]


def whatever(answers: list[Any]) -> list[Any]:
    """Of draws that a check does not look at: nothing but that they came."""
    return [None] * len(answers)


# --- greedy ---


@suite.check(
    "greedy_best",
    of="greedy",
    points=1,
    claim="greedy gives the id of the highest logit of each row, in shape (batch, 1)",
    teaching="the worked example, and the first check of the lesson that a learner meets",
)
def greedy_best(student: Any) -> None:
    expect.same(ids(student.greedy(torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])), 1), [0], "the id")
    expect.same(ids(student.greedy(torch.tensor([Z])), 1), [1], "the id")
    # as many rows as tokens: along the wrong axis nothing would break, it would only be wrong
    logits = torch.tensor([[0.0, 9.0, 7.0], [8.0, 1.0, 2.0], [-3.0, BANNED, -4.0]])
    expect.same(ids(student.greedy(logits), 3), [1, 0, 0], "the list of ids")


@suite.check(
    "greedy_tie",
    of="greedy",
    points=0.5,
    claim="greedy takes the lowest id where several are best",
    teaching="next_token fails with it, but here the fault is told where it is",
    exact=True,
)
def greedy_tie(student: Any) -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0], [0.0, 0.0, 5.0, 5.0]])
    expect.same(ids(student.greedy(logits), 3), [1, 0, 2], "the list of ids")


@suite.check(
    "greedy_shape",
    of="greedy",
    points=0.5,
    claim="greedy refuses logits that are not (batch, vocab)",
)
def greedy_shape(student: Any) -> None:
    # a model's logits are (batch, positions, vocab): whoever hands them in forgot the last position
    with expect.raises(ValueError, "logits of shape (1, 2, 3)"):
        student.greedy(torch.zeros(1, 2, 3))
    with expect.raises(ValueError, "logits of shape (3,)"):
        student.greedy(torch.zeros(3))


# --- inverse_cdf ---


@suite.check(
    "cdf_stretches",
    of="inverse_cdf",
    points=0.75,
    claim="inverse_cdf finds the id on whose stretch u falls",
    teaching="the worked example: the nucleus of lesson 4, laid end to end",
)
def cdf_stretches(student: Any) -> None:
    # the stretches end at .231, .860, 1 and 1
    probs = torch.tensor([[0.231224, 0.628532, 0.140244, 0.0]])
    u = torch.tensor([0.0, 0.2, 0.24, 0.85, 0.87, 0.999])
    found = ids(student.inverse_cdf(probs.repeat(6, 1), u), 6)
    expect.same(found, [0, 0, 1, 1, 2, 2], "the list of ids")


@suite.check(
    "cdf_step",
    of="inverse_cdf",
    points=0.25,
    claim="a u at the very end of a stretch belongs to the next id",
    teaching="half-open stretches: each point of the line belongs to one id, and to one only",
    exact=True,
)
def cdf_step(student: Any) -> None:
    # quarters are exact in floating point, so at a step means at the step
    probs = torch.tensor([[0.25, 0.25, 0.5]])
    u = torch.tensor([0.0, 0.25, 0.5])
    expect.same(ids(student.inverse_cdf(probs.repeat(3, 1), u), 3), [0, 1, 2], "the list of ids")


@suite.check(
    "cdf_probability_zero",
    of="inverse_cdf",
    points=0.5,
    claim="inverse_cdf never finds an id of probability 0, whether u is 0 or nearly 1",
    teaching="what the filters ban rests on this: a banned token must not come, ever",
    exact=True,
)
def cdf_probability_zero(student: Any) -> None:
    # weights that do not sum to 1 exactly: the last stretch must reach to the end all the same
    probs = torch.tensor([[0.0, 0.3, 0.0, 0.6, 0.0]])
    lowest = torch.tensor([0.0], dtype=torch.float64)
    expect.same(ids(student.inverse_cdf(probs, lowest), 1), [1], "the id at u = 0")
    # the largest u below 1 in float64, which float32 would round up to 1
    highest = torch.tensor([1 - 2**-53], dtype=torch.float64)
    expect.same(ids(student.inverse_cdf(probs, highest), 1), [3], "the id at u = 1 - 2^-53")


@suite.check(
    "cdf_weights",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf takes weights of any sum, each with its share of the whole",
    teaching="the sum that is not 1, told on rows that a person can add up",
)
def cdf_weights(student: Any) -> None:
    probs = torch.tensor([[0.3, 0.3, 0.3], [3.0, 1.0, 4.0], [1e-30, 2e-30, 1e-30]])
    u = torch.tensor([0.95, 0.45, 0.7])
    expect.same(ids(student.inverse_cdf(probs, u), 3), [2, 1, 1], "the list of ids")


@suite.check(
    "cdf_rows",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf takes each row's own probabilities and own u",
    teaching="as many rows as tokens, so that sums along the wrong axis fit and no error says so",
    exact=True,
)
def cdf_rows(student: Any) -> None:
    probs = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.2, 0.8], [0.7, 0.2, 0.1]])
    u = torch.tensor([0.75, 0.9, 0.1])
    expect.same(ids(student.inverse_cdf(probs, u), 3), [1, 2, 0], "the list of ids")


@suite.check(
    "cdf_float64",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf adds up the mass in float64, where small terms are not lost",
    exact=True,
)
def cdf_float64(student: Any) -> None:
    # 5000 short stretches, of which u marks the middle of one
    u = torch.tensor([4320.5 / 5000], dtype=torch.float64)
    expect.same(ids(student.inverse_cdf(torch.ones(1, 5000), u), 1), [4320], "the id")
    # next to 2^25 float32 does not see 1: there the sum would stand still after the first id
    probs = torch.tensor([[2.0**25, 1.0, 1.0]])
    u = torch.tensor([(2.0**25 + 1.5) / (2.0**25 + 2)], dtype=torch.float64)
    expect.same(ids(student.inverse_cdf(probs, u), 1), [2], "the id")


@suite.check(
    "cdf_bad_values",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf refuses a row that holds a negative value, NaN or an infinity",
)
def cdf_bad_values(student: Any) -> None:
    good, u = [0.2, 0.3, 0.5], torch.tensor([0.5, 0.5])
    for bad in ([0.7, -0.2, 0.5], [0.5, NAN, 0.5], [0.5, INF, 0.5]):
        with expect.raises(ValueError, f"row 1, which is {describe(bad)}"):
            student.inverse_cdf(torch.tensor([good, bad]), u)


@suite.check(
    "cdf_no_mass",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf refuses a row without mass",
    teaching="sample fails with it, but here the fault is told where it is",
)
def cdf_no_mass(student: Any) -> None:
    with expect.raises(ValueError, "row 1, which has no mass"):
        student.inverse_cdf(torch.tensor([[0.2, 0.8], [0.0, 0.0]]), torch.tensor([0.5, 0.5]))


@suite.check(
    "cdf_wrong_u",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf refuses a u off the line, or another number of them than rows",
)
def cdf_wrong_u(student: Any) -> None:
    probs = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    for wrong in ([0.5, -0.1], [0.5, 1.5], [0.5, NAN], [0.5, 0.5, 0.5]):
        with expect.raises(ValueError, f"u={describe(wrong)}"):
            student.inverse_cdf(probs, torch.tensor(wrong))


@suite.check(
    "cdf_input_untouched",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf leaves the caller's probs and u as they are",
)
def cdf_input_untouched(student: Any) -> None:
    probs, u = torch.tensor([[2.0, 6.0]]).double(), torch.tensor([0.9]).double()
    before = probs.clone(), u.clone()
    student.inverse_cdf(probs, u)
    expect.unchanged(probs, before[0], "probs")
    expect.unchanged(u, before[1], "u")


@suite.check(
    "cdf_against_a_loop",
    of="inverse_cdf",
    points=0.25,
    claim="inverse_cdf agrees with a walk along random rows",
    teaching="a property on random rows: catches answers made for the examples",
)
def cdf_against_a_loop(student: Any, draw: Draw) -> None:
    for batch, vocab in [(1, 1), (3, 7), (7, 7), (4, 50)]:
        weights = draw.logits(batch, vocab).exp()
        # aim for the middle of the stretch of an id that is drawn: no rounding can matter there
        aims = [draw.integer(0, vocab - 1) for _ in range(batch)]
        u = []
        for row, aim in zip(weights.double().tolist(), aims, strict=True):
            u.append((sum(row[:aim]) + row[aim] / 2) / sum(row))
        found = student.inverse_cdf(weights, torch.tensor(u, dtype=torch.float64))
        expect.same(ids(found, batch), aims, "the list of ids")


# --- sample ---


@suite.check(
    "sample_certain",
    of="sample",
    points=0.25,
    claim="sample gives the only possible id of each row, in shape (batch, 1)",
    teaching="draws without chance: what is certain must come",
    remember=in_threes,
)
def sample_certain(student: Any) -> None:
    rows = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.3]]
    each_gives(student.sample(repeated(*rows), seeded()), rows, [1, 0, 2])


@suite.check(
    "sample_shares",
    of="sample",
    points=0.5,
    claim="sample draws each id as often as its probability says",
    false_alarm=sum(
        outside(COUNTED, share, *allowed) for share, allowed in zip(SHARES, ALLOWED, strict=True)
    ),
    remember=twentieths,
)
def sample_shares(student: Any) -> None:
    drawn = ids(student.sample(repeated([*SHARES], times=COUNTED), seeded()), COUNTED)
    for token, (share, (low, high)) in enumerate(zip(SHARES, ALLOWED, strict=True)):
        count = drawn.count(token)
        expect.true(
            low <= count <= high,
            f"id {token} with probability {share} came {count} times in {COUNTED} draws; expected "
            f"{low} to {high} times",
        )


@suite.check(
    "sample_own_draw",
    of="sample",
    points=0.25,
    claim="sample draws anew for each row of a batch",
    teaching="the shares come out wrong too, but do not say why",
    false_alarm=2 * missed(0.5),
    remember=occurring,
    exact=True,
)
def sample_own_draw(student: Any) -> None:
    comes(student.sample(repeated([0.5, 0.5]), seeded()), [0.5, 0.5], {0, 1})


@suite.check(
    "sample_repeats",
    of="sample",
    points=0.5,
    claim="sample repeats itself with the same seed, and only then",
    # two independent answers, of twelve ids out of fifty, are the same this often
    false_alarm=4 * 50.0**-12,
    remember=repeating,
)
def sample_repeats(student: Any) -> None:
    probs, generator = torch.full((12, 50), 0.02), seeded(1)
    first = ids(student.sample(probs, generator), 12)
    again = ids(student.sample(probs, seeded(1)), 12)
    expect.true(again == first, f"with the same seed came {first}, then {again}; expected the same")
    other = ids(student.sample(probs, seeded(2)), 12)
    expect.true(other != first, f"with another seed {first} came again")
    further = ids(student.sample(probs, generator), 12)
    expect.true(further != first, f"the generator went on, yet {first} came again")
    # without a generator torch's own serves, which nobody winds back
    one, two = ids(student.sample(probs), 12), ids(student.sample(probs), 12)
    expect.true(one != two, f"without a generator {one} came twice")


@suite.check(
    "sample_no_distribution",
    of="sample",
    points=0.25,
    claim="sample refuses a row with a negative value, NaN, or without mass",
    remember=whatever,
)
def sample_no_distribution(student: Any) -> None:
    good = [0.2, 0.3, 0.5]
    # the last is what softmax makes of a row where every token is banned
    for bad in ([0.7, -0.2, 0.5], [0.0, 0.0, 0.0], [NAN, NAN, NAN]):
        with expect.raises(ValueError, f"row 1, which is {describe(bad)}"):
            student.sample(torch.tensor([good, bad]), seeded())


@suite.check(
    "sample_input_untouched",
    of="sample",
    points=0.25,
    claim="sample leaves the caller's probs as they are",
    remember=whatever,
)
def sample_input_untouched(student: Any) -> None:
    probs = torch.tensor([[0.0, 6.0]])
    before = probs.clone()
    student.sample(probs, seeded())
    expect.unchanged(probs, before, "probs")


# --- next_token ---


@suite.check(
    "next_greedy",
    of="next_token",
    points=0.5,
    claim="next_token is greedy at temperature 0, and with do_sample=False at any temperature",
    remember=occurring,
    exact=True,
)
def next_greedy(student: Any) -> None:
    # logits near each other, and a tie at the top: whoever draws here will not get 1 every time
    row = [1.0, 1.2, 1.1, 1.2]
    comes(drawn(student, row, temperature=0), row, {1})
    comes(drawn(student, row, temperature=0.0, top_p=0.9), row, {1})
    comes(drawn(student, row, do_sample=False), row, {1})
    comes(drawn(student, row, do_sample=False, temperature=5.0, top_k=3), row, {1})


@suite.check(
    "next_ids",
    of="next_token",
    points=0.25,
    claim="next_token gives an id of the vocabulary for each row, in shape (batch, 1)",
    teaching="draws without chance: the best token has all but a 10^-21th of the mass",
    false_alarm=2 * 3 * DRAWS * 3 * math.exp(-50),
    remember=in_threes,
)
def next_ids(student: Any) -> None:
    # the best of what top-k left stands at rank 0, but that is not its id
    rows = [[0.0, 50.0, 0.0, -9.0], [50.0, 0.0, 0.0, 0.0], [BANNED, BANNED, 3.0, -60.0]]
    each_gives(student.next_token(repeated(*rows), top_k=2, generator=seeded()), rows, [1, 0, 2])
    each_gives(student.next_token(repeated(*rows), generator=seeded()), rows, [1, 0, 2])


@suite.check(
    "next_support",
    of="next_token",
    points=0.25,
    claim="next_token draws from the whole row by default, and from the survivors of its filters",
    # the rarest of the expected ids has .0859 of the mass; the others have next to none
    false_alarm=5 * 4 * missed(0.085) + DRAWS * math.exp(-60),
    remember=occurring,
)
def next_support(student: Any) -> None:
    comes(drawn(student, Z), Z, {0, 1, 2, 3})
    comes(drawn(student, Z, top_k=0, top_p=1.0), Z, {0, 1, 2, 3})
    comes(drawn(student, Z, top_k=2), Z, {0, 1})
    comes(drawn(student, Z, top_p=0.9), Z, {0, 1, 2})
    # allowed, but of a probability that nobody lives to see
    row = [0.0, -60.0, 0.0]
    comes(drawn(student, row), row, {0, 2})


@suite.check(
    "next_temperature",
    of="next_token",
    points=0.25,
    claim="next_token applies the temperature once, before the filters",
    false_alarm=4 * missed(0.2) + 2 * DRAWS * math.exp(-50),
    remember=occurring,
)
def next_temperature(student: Any) -> None:
    # probabilities .6, .3, .1 become .78, .20, .02 at temperature one half, and .47, .33, .19 at 2:
    # how many tokens make up p tells at which temperature it was measured
    row = torch.tensor([0.6, 0.3, 0.1]).log().tolist()
    comes(drawn(student, row, temperature=0.5, top_p=0.85), row, {0, 1})
    # at a fiftieth a distance of 1 becomes one of 50: all but a 10^-21th of the mass is on one id
    comes(drawn(student, Z, temperature=0.02), Z, {1})
    comes(drawn(student, row, temperature=2.0, top_p=0.55), row, {0, 1})
    comes(drawn(student, row, temperature=0.5, top_p=0.75), row, {0})
    comes(drawn(student, row, temperature=2.0, top_p=0.45), row, {0})


@suite.check(
    "next_after_top_k",
    of="next_token",
    points=0.25,
    claim="next_token measures top-p on what top-k left, renormalised",
    false_alarm=4 * missed(0.42),
    remember=occurring,
)
def next_after_top_k(student: Any) -> None:
    # the three that top-k leaves hold .444, .333 and .222 of their mass: two are enough for .72,
    # which of the whole row's mass they would not be
    row = torch.tensor([0.4, 0.3, 0.2, 0.1]).log().tolist()
    comes(drawn(student, row, top_k=3, top_p=0.5), row, {0, 1})
    comes(drawn(student, row, top_k=3, top_p=0.72), row, {0, 1})


@suite.check(
    "next_repeats",
    of="next_token",
    points=0.25,
    claim="next_token draws from the generator it is given, and only when it samples",
    false_alarm=3 * 50.0**-12,
    remember=repeating,
)
def next_repeats(student: Any) -> None:
    logits, generator = torch.zeros(12, 50), seeded(1)
    first = ids(student.next_token(logits, generator=generator), 12)
    again = ids(student.next_token(logits, generator=seeded(1)), 12)
    expect.true(again == first, f"with the same seed came {first}, then {again}; expected the same")
    other = ids(student.next_token(logits, generator=seeded(2)), 12)
    expect.true(other != first, f"with another seed {first} came again")
    further = ids(student.next_token(logits, generator=generator), 12)
    expect.true(further != first, f"the generator went on, yet {first} came again")
    # a greedy step needs no chance, so the draws after it are those that would have come without it
    generator = seeded(1)
    student.next_token(logits, do_sample=False, generator=generator)
    after = ids(student.next_token(logits, generator=generator), 12)
    expect.true(after == first, "a greedy step used up random numbers of the generator")


@suite.check(
    "next_unusable",
    of="next_token",
    points=0.25,
    claim="next_token refuses a row with NaN, or with every token banned, greedy or not",
    remember=whatever,
)
def next_unusable(student: Any) -> None:
    good = [1.0, 2.0, 3.0]
    for bad in ([1.0, NAN, 3.0], [BANNED, BANNED, BANNED]):
        logits = torch.tensor([good, bad])
        with expect.raises(ValueError, f"row 1, which is {describe(bad)}"):
            student.next_token(logits, generator=seeded())
        with expect.raises(ValueError, f"row 1, which is {describe(bad)}"):
            student.next_token(logits, temperature=0)


@suite.check(
    "next_wrong_arguments",
    of="next_token",
    points=0.25,
    claim="next_token refuses logits that are not (batch, vocab), and wrong knobs",
)
def next_wrong_arguments(student: Any) -> None:
    logits = torch.tensor([[0.0, 45.0, 90.0]])
    with expect.raises(ValueError, "temperature=-1"):
        student.next_token(logits, temperature=-1.0)
    with expect.raises(ValueError, "temperature=nan"):
        student.next_token(logits, temperature=NAN)
    with expect.raises(ValueError, "top_k=-1"):
        student.next_token(logits, top_k=-1)
    with expect.raises(ValueError, "top_p=1.5"):
        student.next_token(logits, top_p=1.5)
    # a single row, which a softmax along the last axis would take without a word
    with expect.raises(ValueError, "logits of shape (3,)"):
        student.next_token(logits[0])


@suite.check(
    "next_input_untouched",
    of="next_token",
    points=0.25,
    claim="next_token leaves the caller's logits as they are",
    remember=whatever,
)
def next_input_untouched(student: Any) -> None:
    logits = torch.tensor([[90.0, 2.0, 1.0]])
    before = logits.clone()
    student.next_token(logits, temperature=0.5, top_k=2, top_p=0.9, generator=seeded())
    expect.unchanged(logits, before, "logits")
