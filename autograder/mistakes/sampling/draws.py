"""Wrong ways to write sample."""

import torch
from torch import Generator, Tensor

from solutions.sampling import inverse_cdf

from .common import bank, look_at_rows


@bank.mistake("sample")
def always_the_best(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """The most probable id comes every time. That is greedy; a draw gives the less probable ones
    their turn too, as often as their probability says.
    """
    look_at_rows(probs)
    return probs.argmax(dim=-1, keepdim=True)


@bank.mistake("sample")
def evenly_among_the_possible(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """All possible ids come equally often. Which ones are possible is not enough: each has to come
    as often as its probability says.
    """
    look_at_rows(probs)
    return torch.multinomial((probs > 0).float(), 1, generator=generator)


@bank.mistake("sample")
def evenly_among_all(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """All ids come equally often, impossible ones included: the probabilities play no part in the
    draw. Where should they come in?
    """
    look_at_rows(probs)
    return torch.randint(probs.shape[-1], (len(probs), 1), generator=generator)


@bank.mistake("sample")
def softmax_again(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """The probabilities went through a softmax, which flattens them and gives the impossible ids a
    share. They are a distribution already.
    """
    look_at_rows(probs)
    return torch.multinomial(probs.softmax(dim=-1), 1, generator=generator)


@bank.mistake("sample")
def squares_the_probabilities(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """Probable ids come too often, improbable ones too rarely: the probabilities count twice. Each
    must enter the draw once.
    """
    look_at_rows(probs)
    return torch.multinomial(probs * probs, 1, generator=generator)


@bank.mistake("sample")
def best_of_noisy_probabilities(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """You add noise to the probabilities and take the best. It looks random, but the shares come
    out wrong, and impossible ids come too: only noise of one special shape keeps them (look up
    "Gumbel").
    """
    look_at_rows(probs)
    return (probs + torch.rand(probs.shape, generator=generator)).argmax(dim=-1, keepdim=True)


@bank.mistake("sample")
def best_of_scaled_probabilities(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """You multiply the probabilities by random numbers and take the best. It looks random, but the
    best id wins too often: the shares must come out as the probabilities are.
    """
    look_at_rows(probs)
    return (probs * torch.rand(probs.shape, generator=generator)).argmax(dim=-1, keepdim=True)


@bank.mistake("sample")
def normal_draw(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """u is drawn from a normal distribution, so it crowds at the low end of the line or falls off
    it. Each place in [0, 1) must be equally likely.
    """
    look_at_rows(probs)
    u = torch.randn(len(probs), generator=generator).abs().clamp(max=1)
    return inverse_cdf(probs, u)


@bank.mistake("sample")
def one_draw_for_all_rows(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """One number was drawn for the whole batch, so equal rows always get equal ids. How many u does
    a batch need?
    """
    look_at_rows(probs)
    return inverse_cdf(probs, torch.rand(1, generator=generator).expand(len(probs)))


@bank.mistake("sample")
def draws_from_row_zero(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """Every row was drawn from the probabilities of row 0. With one row that is right, which is why
    it went unseen. (The second argument of `multinomial` is how many draws each ROW makes.)
    """
    look_at_rows(probs)
    return torch.multinomial(probs[:1].expand_as(probs), 1, generator=generator)


@bank.mistake("sample")
def draws_one_id_for_the_batch(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """One id was drawn for the whole batch. Each row has a distribution of its own, and draws for
    itself.
    """
    look_at_rows(probs)
    return torch.multinomial(probs[:1], 1, generator=generator).expand(len(probs), 1)


@bank.mistake("sample")
def winds_the_generator_back(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """The generator is seeded anew in every call, so each token of a text is drawn with the same u.
    Seeding is for the caller, once; here it is only used.
    """
    look_at_rows(probs)
    if generator is not None:
        generator.manual_seed(generator.initial_seed())
    return torch.multinomial(probs, 1, generator=generator)


@bank.mistake("sample")
def seeds_itself(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """The draw starts from a fixed seed each time, whatever generator was handed in, so the same
    ids come for ever. Seeding is for the caller, once.
    """
    look_at_rows(probs)
    return torch.multinomial(probs, 1, generator=Generator().manual_seed(0))


@bank.mistake("sample")
def ignores_the_generator(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """The generator that was handed in is not used: the draw comes from torch's global one, and the
    caller's seed is without effect. Which of your calls draws, and what is it told?
    """
    look_at_rows(probs)
    return torch.multinomial(probs, 1)


@bank.mistake("sample")
def new_generator_for_none(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """Without a generator the same ids come every time: a new `torch.Generator()` always starts
    from the same seed. None means torch's global one, so hand the None on.
    """
    look_at_rows(probs)
    return torch.multinomial(probs, 1, generator=generator or Generator())


@bank.mistake("sample")
def wants_a_generator(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """Without a generator it raises. None is the default and means torch's global generator, which
    torch's own functions understand: hand the None on.
    """
    look_at_rows(probs)
    if generator is None:
        raise ValueError("generator=None")
    return torch.multinomial(probs, 1, generator=generator)


@bank.mistake("sample")
def sample_loses_an_axis(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """The ids came in shape (batch,). The next step appends them to (batch, positions), so the
    answer has a second axis, of length 1.
    """
    look_at_rows(probs)
    return torch.multinomial(probs, 1, generator=generator)[:, 0]


@bank.mistake("sample")
def returns_u(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """What came back are the random numbers themselves. They say where on the line the ball lies;
    which id's stretch is that?
    """
    look_at_rows(probs)
    return torch.rand(len(probs), 1, generator=generator)


@bank.mistake("sample")
def sample_probability_for_an_id(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """What came back is the probability of the id that was drawn, not the id."""
    look_at_rows(probs)
    return probs.gather(-1, torch.multinomial(probs, 1, generator=generator))


@bank.mistake("sample")
def never_the_last(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """The last id never comes, and others come in its place: a range that ends one too early, or an
    index clamped to one below the last.
    """
    look_at_rows(probs)
    drawn = torch.multinomial(probs, 1, generator=generator)
    return drawn.clamp(max=max(0, probs.shape[-1] - 2))


@bank.mistake("sample")
def sample_normalises_in_place(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """The draw is right, but the caller's probabilities were divided in place. An operation that
    writes into its argument is seen wherever that tensor is used; make a new one.
    """
    look_at_rows(probs)
    probs /= probs.sum(dim=-1, keepdim=True)
    return torch.multinomial(probs, 1, generator=generator)


@bank.mistake("sample")
def leaves_bad_rows_to_torch(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """A row that is no distribution reached torch's `multinomial`, whose RuntimeError names neither
    row nor value. Look at the rows first, and raise a ValueError that says what is wrong.
    """
    return torch.multinomial(probs, 1, generator=generator)


@bank.mistake("sample")
def draws_from_any_row(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """A row that is no distribution gave an id, as if nothing were wrong. Nonsense must stop here,
    where it can still be named: a negative value, NaN, or no mass is a ValueError.
    """
    weights = probs.nan_to_num().clamp(min=0)
    weights = weights.where(weights.sum(dim=-1, keepdim=True) > 0, 1.0)
    return torch.multinomial(weights, 1, generator=generator)


@bank.mistake("sample")
def draws_from_rows_without_mass(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """A row of zeros gave an id, though every id is impossible. That row has no mass, which is as
    good a reason for a ValueError as a negative value.
    """
    if not (probs >= 0).all():
        raise ValueError("a row of probs is no distribution")
    weights = probs.where(probs.sum(dim=-1, keepdim=True) > 0, 1.0)
    return torch.multinomial(weights, 1, generator=generator)


@bank.mistake("sample")
def sample_lets_nan_through(probs: Tensor, generator: Generator | None = None) -> Tensor:
    """A row of NaN passed: NaN is neither below 0 nor is its sum equal to 0, for every comparison
    with it is false. Ask what each value must BE instead of what it must not be.
    """
    if (probs < 0).any() or (probs.sum(dim=-1) == 0).any():
        raise ValueError("a row of probs is no distribution")
    return torch.multinomial(probs.nan_to_num(nan=1.0), 1, generator=generator)
