"""Properties that hold for all inputs: Hypothesis looks for the input that breaks one.

The inputs are rows of sixteenths, so that shifts and doublings are exact in float32 and no property
fails by rounding alone. Examples are derandomized for all tests (tests/conftest.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from solutions.generate import generate
from solutions.kv_cache import KVCache, attend, causal_mask
from solutions.repetition import apply_frequency_penalty, apply_repetition_penalty
from solutions.sampling import greedy, inverse_cdf, next_token, sample
from solutions.temperature import apply_temperature, entropy
from solutions.top_k import top_k_filter
from solutions.top_p import min_p_filter, top_p_filter
from solutions.training import last_logits, next_token_loss, perplexity

from .helpers import INF, Bigram, seeded

# --- what inputs are made of ---

numbers = st.integers(-160, 160).map(lambda n: n / 16)
# one in six is banned
banned_too = st.integers(-224, 160).map(lambda n: -INF if n < -160 else n / 16)
temperatures = st.floats(0.05, 20)
shares = st.one_of(st.floats(0, 1), st.integers(0, 64).map(lambda n: n / 64))


@st.composite
def rows(draw: st.DrawFn, *, ties: bool = True) -> Tensor:
    """Logits (batch, vocab), each row with at least one token that is not banned."""
    batch, vocab = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    row = st.lists(banned_too, min_size=vocab, max_size=vocab, unique=not ties)
    logits = torch.tensor([draw(row) for _ in range(batch)])
    logits[:, 0] = torch.where((logits > -INF).any(dim=-1), logits[:, 0], 0)
    return logits


@st.composite
def rows_and_history(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (batch, vocab), ids (batch, pos) and a mask (batch, pos) that belong together."""
    logits = draw(rows())
    batch, vocab = logits.shape
    pos = draw(st.integers(1, 7))

    def table(largest: int) -> Tensor:
        row = st.lists(st.integers(0, largest), min_size=pos, max_size=pos)
        return torch.tensor(draw(st.lists(row, min_size=batch, max_size=batch)))

    return logits, table(vocab - 1), table(1)


Change = Callable[[Tensor], Tensor]

# every function from logits to logits, at a setting that does something, with the name of its kind
FILTERS: dict[str, Change] = {
    "top_k": lambda logits: top_k_filter(logits, 3),
    "top_p": lambda logits: top_p_filter(logits, 0.75),
    "min_p": lambda logits: min_p_filter(logits, 0.2),
}
CHANGES: dict[str, Change] = FILTERS | {
    "temperature": lambda logits: apply_temperature(logits, 0.7)
}
a_filter = pytest.mark.parametrize("keep", FILTERS.values(), ids=FILTERS.keys())
a_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())


def mass(logits: Tensor, kept: Tensor) -> Tensor:
    """The probability (batch,) that `logits` give to the ids where `kept` is finite."""
    return logits.double().softmax(-1).masked_fill(~kept.isfinite(), 0).sum(-1)


# --- all changes of logits ---


@a_change
@given(logits=rows())
def test_the_input_is_not_modified(change: Change, logits: Tensor) -> None:
    before = logits.clone()
    change(logits)
    assert torch.equal(logits, before)


@a_change
@given(logits=rows())
def test_a_batch_is_its_rows_one_by_one(change: Change, logits: Tensor) -> None:
    one_by_one = torch.cat([change(row[None]) for row in logits])
    assert torch.equal(change(logits), one_by_one)
    assert torch.equal(change(logits[0]), one_by_one[0]), "a row alone needs no batch axis"
    assert torch.equal(change(logits[None])[0], one_by_one), "and may have several"


@a_change
@given(logits=rows())
def test_banned_stays_banned_and_the_best_stays(change: Change, logits: Tensor) -> None:
    result = change(logits)
    assert result[logits == -INF].eq(-INF).all()
    assert not result.isnan().any()
    best = logits.argmax(-1, keepdim=True)
    assert torch.equal(result.argmax(-1, keepdim=True), best)
    assert result.gather(1, best).isfinite().all()


@a_change
@given(logits=rows(ties=False), data=st.data())
def test_the_order_of_the_ids_means_nothing(
    change: Change, logits: Tensor, data: st.DataObject
) -> None:
    # ties are the exception: there top-p goes by the id
    order = torch.tensor(data.draw(st.permutations(range(logits.shape[1]))))
    assert torch.equal(change(logits[:, order]), change(logits)[:, order])


@a_filter
@given(logits=rows())
def test_a_filter_only_bans(keep: Change, logits: Tensor) -> None:
    result = keep(logits)
    kept = result.isfinite()
    assert torch.equal(result[kept], logits[kept])
    assert result[~kept].eq(-INF).all()


@a_filter
@given(logits=rows())
def test_what_a_filter_keeps_is_at_least_as_probable_as_what_it_bans(
    keep: Change, logits: Tensor
) -> None:
    kept = keep(logits).isfinite()
    worst_kept = logits.masked_fill(~kept, INF).amin(-1)
    best_banned = logits.masked_fill(kept, -INF).amax(-1)
    assert (worst_kept >= best_banned).all()


@a_filter
@given(logits=rows(), shift=numbers)
def test_a_filter_does_not_feel_a_shift(keep: Change, logits: Tensor, shift: float) -> None:
    assert torch.equal(keep(logits + shift), keep(logits) + shift)


@pytest.mark.parametrize("keep", [FILTERS["top_k"], FILTERS["min_p"]], ids=["top_k", "min_p"])
@given(logits=rows())
def test_top_k_and_min_p_applied_twice_are_applied_once(keep: Change, logits: Tensor) -> None:
    # exactly min_p times the best may round to either side once the mass is renormalised
    ratios = (logits - logits.amax(-1, keepdim=True)).exp()
    assume(((ratios - 0.2).abs() > 1e-6).all())
    assert torch.equal(keep(keep(logits)), keep(logits))


def test_top_p_applied_twice_is_not_applied_once() -> None:
    # the survivors' mass is renormalised, so a second pass finds a smaller nucleus
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    once = top_p_filter(logits, 0.75)
    assert once.isfinite().sum() == 3
    assert top_p_filter(once, 0.75).isfinite().sum() == 2


@given(logits=rows(), p=shares)
def test_top_p_applied_twice_keeps_no_more(logits: Tensor, p: float) -> None:
    once = top_p_filter(logits, p)
    assert not top_p_filter(once, p)[~once.isfinite()].isfinite().any()


# --- temperature and entropy ---


@given(logits=rows(), temperature=temperatures)
def test_temperature_keeps_the_order(logits: Tensor, temperature: float) -> None:
    result = apply_temperature(logits, temperature)
    order = logits.argsort(dim=-1, stable=True)
    assert torch.equal(result.argsort(dim=-1, stable=True), order)
    assert torch.equal(result == -INF, logits == -INF)


@given(logits=rows(), one=temperatures, other=temperatures)
def test_two_temperatures_multiply(logits: Tensor, one: float, other: float) -> None:
    twice = apply_temperature(apply_temperature(logits, one), other)
    torch.testing.assert_close(twice, apply_temperature(logits, one * other))


@given(logits=rows(), shift=numbers, temperature=temperatures)
def test_temperature_does_not_feel_a_shift(
    logits: Tensor, shift: float, temperature: float
) -> None:
    plain = apply_temperature(logits, temperature).softmax(-1)
    moved = apply_temperature(logits + shift, temperature).softmax(-1)
    torch.testing.assert_close(plain, moved, rtol=1e-4, atol=1e-6)


@given(logits=rows(), temperature=temperatures, factor=st.floats(1, 10))
def test_entropy_grows_with_the_temperature(
    logits: Tensor, temperature: float, factor: float
) -> None:
    colder = entropy(apply_temperature(logits, temperature))
    warmer = entropy(apply_temperature(logits, temperature * factor))
    assert (warmer >= colder - 1e-5).all()


@given(logits=rows(), temperature=temperatures, factor=st.floats(1, 10))
def test_the_best_token_loses_as_the_temperature_grows(
    logits: Tensor, temperature: float, factor: float
) -> None:
    best = logits.argmax(-1, keepdim=True)
    colder = apply_temperature(logits, temperature).softmax(-1).gather(1, best)
    warmer = apply_temperature(logits, temperature * factor).softmax(-1).gather(1, best)
    assert (warmer <= colder + 1e-6).all()


@given(logits=rows(), shift=numbers)
def test_entropy_lies_between_zero_and_log_of_the_tokens_allowed(
    logits: Tensor, shift: float
) -> None:
    nats = entropy(logits)
    allowed = logits.isfinite().sum(-1)
    assert (nats >= 0).all()
    assert (nats <= allowed.log() + 1e-5).all()
    torch.testing.assert_close(entropy(logits + shift), nats, rtol=1e-4, atol=1e-5)


@a_filter
@given(logits=rows())
def test_a_filter_leaves_ratios_as_they_were(keep: Change, logits: Tensor) -> None:
    result = keep(logits)
    expected = logits.softmax(-1).masked_fill(~result.isfinite(), 0)
    expected = expected / expected.sum(-1, keepdim=True)
    torch.testing.assert_close(result.softmax(-1), expected, rtol=1e-5, atol=1e-7)


# --- top-k ---


@given(logits=rows(), k=st.integers(1, 12))
def test_top_k_keeps_k_and_what_ties_with_the_kth(logits: Tensor, k: int) -> None:
    kept = top_k_filter(logits, k).isfinite()
    for row, inside in zip(logits, kept, strict=True):
        allowed = row[row > -INF]
        threshold = allowed.sort(descending=True).values[: min(k, len(allowed))][-1]
        assert torch.equal(inside, (row >= threshold) & (row > -INF))
        assert inside.sum() >= min(k, len(allowed))


@given(logits=rows(), k=st.integers(1, 9))
def test_a_larger_k_keeps_more(logits: Tensor, k: int) -> None:
    fewer, more = top_k_filter(logits, k), top_k_filter(logits, k + 1)
    assert more[fewer.isfinite()].isfinite().all()


@given(logits=rows(), k=st.integers(1, 9), temperature=temperatures)
def test_top_k_and_temperature_commute(logits: Tensor, k: int, temperature: float) -> None:
    one = top_k_filter(apply_temperature(logits, temperature), k)
    other = apply_temperature(top_k_filter(logits, k), temperature)
    assert torch.equal(one, other)


# --- top-p ---


@given(logits=rows(), p=shares)
def test_the_nucleus_has_its_mass_and_no_token_too_many(logits: Tensor, p: float) -> None:
    result = top_p_filter(logits, p)
    # the filter reads float32 probabilities; a mass this near to p may fall on either side
    close = 1e-6
    assert (mass(logits, result) >= p - close).all()
    if p == 1:
        return
    for row, kept in zip(logits, result, strict=True):
        inside = kept.isfinite().nonzero()[:, 0].tolist()
        if len(inside) > 1:
            # without its last token, the least probable with the highest id, it is below p
            last = min(inside, key=lambda i: (float(row[i]), -i))
            smaller = kept.clone()
            smaller[last] = -INF
            assert mass(row[None], smaller[None]).item() < p + close


@given(logits=rows(), p=shares, q=shares)
def test_a_larger_p_keeps_more(logits: Tensor, p: float, q: float) -> None:
    fewer, more = top_p_filter(logits, min(p, q)), top_p_filter(logits, max(p, q))
    assert more[fewer.isfinite()].isfinite().all()


@given(size=st.integers(1, 64), count=st.integers(0, 63))
def test_the_nucleus_of_equal_tokens_is_counted_off_by_id(size: int, count: int) -> None:
    assume(count < size)
    power = 2 ** math.ceil(math.log2(size))  # a power of two, so that 1/size is exact
    kept = top_p_filter(torch.zeros(1, power), count / power).isfinite()[0]
    expected = max(1, count)
    assert kept.tolist() == [True] * expected + [False] * (power - expected)


# --- min-p ---


@given(logits=rows(), one=shares, other=shares)
def test_a_larger_min_p_keeps_less(logits: Tensor, one: float, other: float) -> None:
    fewer, more = min_p_filter(logits, max(one, other)), min_p_filter(logits, min(one, other))
    assert more[fewer.isfinite()].isfinite().all()


@given(logits=rows(), min_p=st.floats(0.001, 1))
def test_min_p_keeps_by_the_distance_to_the_best(logits: Tensor, min_p: float) -> None:
    kept = min_p_filter(logits, min_p).isfinite()
    distance = (logits.amax(-1, keepdim=True) - logits).double()
    assert kept[distance < -math.log(min_p) - 1e-5].all()
    assert not kept[distance > -math.log(min_p) + 1e-5].any()


# --- choosing a token ---


@given(logits=rows(), shift=numbers, temperature=temperatures)
def test_greedy_does_not_feel_a_shift_nor_a_temperature(
    logits: Tensor, shift: float, temperature: float
) -> None:
    assert torch.equal(greedy(logits + shift), greedy(logits))
    assert torch.equal(greedy(apply_temperature(logits, temperature)), greedy(logits))


@given(logits=rows(), u=st.floats(0, 1))
def test_inverse_cdf_finds_the_stretch_that_u_lies_in(logits: Tensor, u: float) -> None:
    probs = logits.softmax(-1)
    found = inverse_cdf(probs, torch.full((len(probs),), u, dtype=torch.float64))
    assert (probs.gather(1, found) > 0).all()
    exact = probs.double() / probs.double().sum(-1, keepdim=True)
    upto = exact.cumsum(-1).gather(1, found)
    before = upto - exact.gather(1, found)
    assert (before <= u + 1e-12).all()
    assert (upto >= u - 1e-12).all()


@given(logits=rows(), one=st.floats(0, 1), other=st.floats(0, 1))
def test_a_larger_u_finds_no_lower_id(logits: Tensor, one: float, other: float) -> None:
    low, high = (
        inverse_cdf(logits.softmax(-1), torch.full((len(logits),), u, dtype=torch.float64))
        for u in sorted((one, other))
    )
    assert (low <= high).all()


@given(logits=rows(), u=st.floats(0, 1), scale=st.integers(-20, 20).map(lambda n: 2.0**n))
def test_inverse_cdf_does_not_feel_a_scale(logits: Tensor, u: float, scale: float) -> None:
    probs, us = logits.double().softmax(-1), torch.full((len(logits),), u, dtype=torch.float64)
    assert torch.equal(inverse_cdf(probs * scale, us), inverse_cdf(probs, us))


@given(logits=rows(), seed=st.integers(0, 2**32))
def test_a_batch_is_sampled_as_its_rows_one_after_the_other(logits: Tensor, seed: int) -> None:
    probs, chance = logits.softmax(-1), seeded(seed)
    one_by_one = torch.cat([sample(row[None], chance) for row in probs])
    assert torch.equal(sample(probs, seeded(seed)), one_by_one)


@given(
    logits=rows(),
    seed=st.integers(0, 2**32),
    temperature=st.one_of(st.just(0.0), temperatures),
    top_k=st.one_of(st.none(), st.integers(0, 12)),
    top_p=st.one_of(st.none(), shares),
)
def test_next_token_is_one_that_the_filters_keep(
    logits: Tensor, seed: int, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    before = logits.clone()
    token = next_token(
        logits, temperature=temperature, top_k=top_k, top_p=top_p, generator=seeded(seed)
    )
    assert torch.equal(logits, before)
    if temperature == 0:
        assert torch.equal(token, greedy(logits))
    else:
        # shifted as next_token does, so that no mass falls on the other side of p by rounding
        logits = apply_temperature(logits - logits.amax(-1, keepdim=True), temperature)
        kept = top_p_filter(top_k_filter(logits, top_k), top_p)
        assert kept.gather(1, token).isfinite().all()


# --- penalties ---


@given(case=rows_and_history(), penalty=st.floats(1, 10))
def test_the_penalty_lowers_what_occurred_and_nothing_else(
    case: tuple[Tensor, Tensor, Tensor], penalty: float
) -> None:
    logits, ids, mask = case
    before = [tensor.clone() for tensor in case]
    result = apply_repetition_penalty(logits, ids, penalty, mask)
    for tensor, copy in zip(case, before, strict=True):
        assert torch.equal(tensor, copy)
    occurred = torch.zeros_like(logits, dtype=torch.bool)
    for row in range(len(ids)):
        occurred[row, ids[row, mask[row].bool()]] = True
    assert torch.equal(result[~occurred], logits[~occurred])
    assert (result <= logits).all()


@given(case=rows_and_history(), penalty=st.floats(0.1, 10))
def test_the_penalty_of_a_batch_is_that_of_its_rows(
    case: tuple[Tensor, Tensor, Tensor], penalty: float
) -> None:
    together = apply_repetition_penalty(case[0], case[1], penalty, case[2])
    apart = [
        apply_repetition_penalty(logits[None], ids[None], penalty, mask[None])
        for logits, ids, mask in zip(*case, strict=True)
    ]
    assert torch.equal(together, torch.cat(apart))


@given(case=rows_and_history(), penalty=st.floats(0.1, 10), data=st.data())
def test_the_penalty_does_not_feel_order_nor_number_of_the_ids(
    case: tuple[Tensor, Tensor, Tensor], penalty: float, data: st.DataObject
) -> None:
    logits, ids, _ = case
    order = torch.tensor(data.draw(st.permutations(range(ids.shape[1]))))
    shuffled = torch.cat([ids[:, order], ids], dim=1)
    one = apply_repetition_penalty(logits, ids, penalty)
    assert torch.equal(apply_repetition_penalty(logits, shuffled, penalty), one)


@given(case=rows_and_history(), penalty=st.floats(0.1, 10), temperature=temperatures)
def test_the_penalty_and_temperature_commute(
    case: tuple[Tensor, Tensor, Tensor], penalty: float, temperature: float
) -> None:
    logits, ids, _ = case
    one = apply_temperature(apply_repetition_penalty(logits, ids, penalty), temperature)
    other = apply_repetition_penalty(apply_temperature(logits, temperature), ids, penalty)
    torch.testing.assert_close(one, other)


def test_the_penalty_feels_a_shift_and_the_frequency_penalty_does_not() -> None:
    logits, ids = torch.tensor([[2.0, 1.0, -1.0]]), torch.tensor([[0]])
    one, other = (
        apply_repetition_penalty(row, ids, 1.5).softmax(-1) for row in (logits, logits + 3)
    )
    assert not torch.allclose(one, other, atol=0.01)


@given(case=rows_and_history(), shift=numbers, presence=numbers, frequency=numbers)
def test_the_frequency_penalty_does_not_feel_a_shift(
    case: tuple[Tensor, Tensor, Tensor], shift: float, presence: float, frequency: float
) -> None:
    logits, ids, mask = case
    plain, moved = (
        apply_frequency_penalty(
            row, ids, presence=presence, frequency=frequency, attention_mask=mask
        )
        for row in (logits, logits + shift)
    )
    assert torch.equal(moved, plain + shift)


@given(case=rows_and_history(), frequency=numbers)
def test_the_frequency_penalty_adds_up_over_a_text(
    case: tuple[Tensor, Tensor, Tensor], frequency: float
) -> None:
    logits, ids, _ = case
    step_by_step = logits
    for t in range(ids.shape[1]):
        step_by_step = apply_frequency_penalty(step_by_step, ids[:, t : t + 1], frequency=frequency)
    at_once = apply_frequency_penalty(logits, ids, frequency=frequency)
    assert torch.equal(at_once, step_by_step)


# --- training ---


@st.composite
def texts(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Logits (batch, pos, vocab) and tokens (batch, pos), some of them ignored."""
    batch, pos, vocab = draw(st.integers(1, 3)), draw(st.integers(2, 5)), draw(st.integers(1, 5))
    seed = draw(st.integers(0, 2**32))
    logits = torch.randn(batch, pos, vocab, generator=seeded(seed)) * 3
    row = st.lists(st.sampled_from([-100, *range(vocab)]), min_size=pos, max_size=pos)
    return logits, torch.tensor(draw(st.lists(row, min_size=batch, max_size=batch)))


@given(case=texts(), shift=numbers)
def test_the_loss_does_not_feel_a_shift(case: tuple[Tensor, Tensor], shift: float) -> None:
    logits, tokens = case
    torch.testing.assert_close(
        next_token_loss(logits + shift, tokens),
        next_token_loss(logits, tokens),
        rtol=1e-4,
        atol=1e-4,
        equal_nan=True,
    )


@given(case=texts())
def test_perplexity_is_exp_of_the_loss_however_the_rows_are_batched(
    case: tuple[Tensor, Tensor],
) -> None:
    logits, tokens = case
    counts = [int((row[1:] != -100).sum()) for row in tokens]
    assume(sum(counts) > 0)
    pairs = [
        (
            next_token_loss(logits[i : i + 1], tokens[i : i + 1]).item() * count if count else 0.0,
            count,
        )
        for i, count in enumerate(counts)
    ]
    expected = next_token_loss(logits, tokens).exp().item()
    assert perplexity(pairs) == pytest.approx(expected, rel=1e-4)
    assert perplexity(reversed(pairs)) == pytest.approx(expected, rel=1e-4)


@given(case=texts(), data=st.data())
def test_last_logits_are_a_row_of_the_logits(
    case: tuple[Tensor, Tensor], data: st.DataObject
) -> None:
    logits, _ = case
    batch, pos, _ = logits.shape
    row = st.lists(st.integers(0, 1), min_size=pos, max_size=pos).filter(any)
    mask = data.draw(st.lists(row, min_size=batch, max_size=batch))
    result = last_logits(logits, torch.tensor(mask))
    for i in range(batch):
        last = max(t for t in range(pos) if mask[i][t])
        assert torch.equal(result[i], logits[i, last])


# --- the cache ---


@given(lengths=st.lists(st.integers(0, 4), min_size=1, max_size=6), seed=st.integers(0, 2**32))
def test_a_cache_fed_in_pieces_attends_as_one_fed_at_once(lengths: list[int], seed: int) -> None:
    total = sum(lengths)
    assume(total > 0)
    q, k, v = torch.randn(3, 2, 2, total, 4, generator=seeded(seed))
    whole = attend(q, k, v, causal_mask(total, total))
    cache = KVCache(1, 2, 2, 4, capacity=total)
    pieces = zip(*(tensor.split(lengths, dim=2) for tensor in (q, k, v)), strict=True)
    told = torch.cat([cache.attend(0, *piece) for piece in pieces], dim=2)
    torch.testing.assert_close(told, whole, rtol=1e-4, atol=1e-5)
    assert cache.length == total


@given(query_len=st.integers(0, 9), past=st.integers(0, 9))
def test_the_causal_mask_is_the_last_rows_of_the_square_one(query_len: int, past: int) -> None:
    key_len = query_len + past
    square = causal_mask(key_len, key_len)
    assert torch.equal(causal_mask(query_len, key_len), square[past:])
    assert square.sum() == key_len * (key_len + 1) // 2


# --- generate ---


@given(data=st.data(), new=st.integers(0, 12))
def test_every_row_is_its_prompt_its_tokens_and_its_filling(data: st.DataObject, new: int) -> None:
    following = data.draw(st.lists(st.integers(0, 5), min_size=6, max_size=6))
    starts = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    eos_id = data.draw(st.lists(st.integers(0, 5), max_size=2))
    pad_id = data.draw(st.one_of(st.none(), st.integers(0, 5)))
    result = generate(
        Bigram(following),
        torch.tensor(starts)[:, None],
        new,
        do_sample=False,
        use_cache=False,
        eos_id=eos_id,
        pad_id=pad_id,
    )
    rows_told = []
    for start in starts:
        row = [start]
        while len(row) <= new and (len(row) == 1 or row[-1] not in eos_id):
            row.append(following[row[-1]])
        rows_told.append(row)
    width = max(len(row) for row in rows_told)
    assert result.new_tokens == [len(row) - 1 for row in rows_told]
    assert result.finish_reason == [
        "eos" if len(row) > 1 and row[-1] in eos_id else "length" for row in rows_told
    ]
    filling = pad_id if pad_id is not None else (eos_id or [0])[0]
    assert result.ids.tolist() == [row + [filling] * (width - len(row)) for row in rows_told]
