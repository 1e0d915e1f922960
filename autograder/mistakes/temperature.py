"""Wrong ways to write apply_temperature and entropy."""

import math

import torch
from torch import Tensor

from ..bank import Bank

bank = Bank("temperature")


def checked(temperature: float) -> float:
    """Everything that the function must refuse is refused."""
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature={temperature}")
    return temperature


# --- apply_temperature: the wrong arithmetic ---


@bank.mistake("apply_temperature")
def multiplies(logits: Tensor, temperature: float) -> Tensor:
    """The knob turns the wrong way: 0.5 flattens and 2 sharpens. A small temperature has to make
    the gaps between logits larger; which operation does that?
    """
    return logits.float() * checked(temperature)


@bank.mistake("apply_temperature")
def divides_the_probabilities(logits: Tensor, temperature: float) -> Tensor:
    """Dividing every probability by the same number and normalising again gives back what was
    there: the temperature does nothing. It must act before the exponential.
    """
    probs = logits.float().softmax(dim=-1) / checked(temperature)
    return (probs / probs.sum(dim=-1, keepdim=True)).log()


@bank.mistake("apply_temperature")
def softmax_first(logits: Tensor, temperature: float) -> Tensor:
    """The softmax came first, and its probabilities were divided as if they were logits. They all
    lie between 0 and 1, so a second softmax leaves them nearly uniform. Divide the scores
    themselves.
    """
    return logits.float().softmax(dim=-1) / checked(temperature)


@bank.mistake("apply_temperature")
def returns_probabilities(logits: Tensor, temperature: float) -> Tensor:
    """Probabilities came back where logits are wanted: whoever takes their softmax flattens them,
    and a banned token is no longer at -inf. Leave the softmax to the end.
    """
    return (logits.float() / checked(temperature)).softmax(dim=-1)


@bank.mistake("apply_temperature")
def divides_twice(logits: Tensor, temperature: float) -> Tensor:
    """The temperature acts twice: the logits are divided by its square. At 1 that cannot be seen.
    Where do you divide, and is there a second place?
    """
    return logits.float() / checked(temperature) / temperature


@bank.mistake("apply_temperature")
def divides_by_the_root(logits: Tensor, temperature: float) -> Tensor:
    """The logits are divided by the root of the temperature, so the knob does half of what it says.
    Attention scales by a root, temperature does not.
    """
    return logits.float() / math.sqrt(checked(temperature))


@bank.mistake("apply_temperature")
def divides_by_one_plus(logits: Tensor, temperature: float) -> Tensor:
    """Something is added to the temperature before the division, so 1 is no longer the setting that
    changes nothing. Refuse the temperatures you cannot divide by, and divide by the others as they
    are.
    """
    return logits.float() / (1 + checked(temperature))


@bank.mistake("apply_temperature")
def subtracts(logits: Tensor, temperature: float) -> Tensor:
    """A number taken from every logit changes no probability: the softmax sees differences only. To
    make the differences larger or smaller, something else must be done to all of them.
    """
    return logits.float() - checked(temperature)


@bank.mistake("apply_temperature")
def does_nothing(logits: Tensor, temperature: float) -> Tensor:
    """The logits came back as they were. `logits / x` makes a new tensor and changes nothing by
    itself: where does yours go?
    """
    logits = logits.float()
    logits / checked(temperature)
    return logits


@bank.mistake("apply_temperature")
def whole_number_division(logits: Tensor, temperature: float) -> Tensor:
    """`//` rounds every quotient down, so tokens that differed now tie. Divide with `/`."""
    return logits.float() // checked(temperature)


@bank.mistake("apply_temperature")
def whole_number_temperature(logits: Tensor, temperature: float) -> Tensor:
    """The temperature was cut to a whole number. It is a real number, and most of those in use lie
    between 0 and 1.
    """
    return logits.float() / max(1, int(checked(temperature)))


@bank.mistake("apply_temperature")
def divides_positive_logits_only(logits: Tensor, temperature: float) -> Tensor:
    """Only positive logits are divided, and the gaps to the negative ones come out wrong. The sign
    of a logit has no meaning of its own here: treat all alike.
    """
    logits, temperature = logits.float(), checked(temperature)
    return torch.where(logits > 0, logits / temperature, logits)


@bank.mistake("apply_temperature")
def sign_rule_of_the_penalty(logits: Tensor, temperature: float) -> Tensor:
    """Positive logits are divided and negative ones multiplied. That is the rule of the repetition
    penalty, of lesson 6; a temperature treats all logits alike.
    """
    logits, temperature = logits.float(), checked(temperature)
    return torch.where(logits > 0, logits / temperature, logits * temperature)


@bank.mistake("apply_temperature")
def scales_the_row_to_its_maximum(logits: Tensor, temperature: float) -> Tensor:
    """The row was divided by its own largest value too. How sure the model is lies in the size of
    its logits, and that is thrown away; subtracting the maximum would have been harmless.
    """
    logits = logits.float()
    return logits / logits.amax(dim=-1, keepdim=True).abs() / checked(temperature)


@bank.mistake("apply_temperature")
def standardises_the_row(logits: Tensor, temperature: float) -> Tensor:
    """The row was brought to a standard deviation of 1 first. How sure the model is lies in the
    spread of its logits, and that is thrown away; divide them as they come.
    """
    logits = logits.float()
    spread = logits.std(dim=-1, correction=0, keepdim=True)
    return (logits - logits.mean(dim=-1, keepdim=True)) / (spread + 1e-6) / checked(temperature)


@bank.mistake("apply_temperature")
def scales_the_best_only(logits: Tensor, temperature: float) -> Tensor:
    """Only the best token's logit is divided. The temperature must stretch or shrink all gaps,
    those among the others too.
    """
    logits, temperature = logits.float(), checked(temperature)
    best = logits == logits.amax(dim=-1, keepdim=True)
    return torch.where(best, logits / temperature, logits)


# --- apply_temperature: axes, bans, precision ---


@bank.mistake("apply_temperature")
def normalises_down_the_batch(logits: Tensor, temperature: float) -> Tensor:
    """Log-probabilities are a good start, but these were made along the FIRST axis: in a batch the
    rows share one probability of 1. Each row is a distribution of its own; which axis is the
    vocabulary?
    """
    return logits.float().log_softmax(dim=0) / checked(temperature)


@bank.mistake("apply_temperature")
def wants_two_axes(logits: Tensor, temperature: float) -> Tensor:
    """Axis 1 is the vocabulary in a batch of rows, and in nothing else. Count axes from the end:
    the vocabulary is the last one, however many stand before it.
    """
    return logits.float().log_softmax(dim=1) / checked(temperature)


@bank.mistake("apply_temperature")
def adds_an_axis(logits: Tensor, temperature: float) -> Tensor:
    """An axis was added to what came in. The result has the shape of the logits, row or batch."""
    return torch.atleast_2d(logits.float() / checked(temperature))


@bank.mistake("apply_temperature")
def first_row_only(logits: Tensor, temperature: float) -> Tensor:
    """Only row 0 of the batch is scaled. With one row that is right, which is why it went unseen.
    The division needs no index: it reaches every row.
    """
    scaled = logits.float().clone()
    scaled[0] = scaled[0] / checked(temperature)
    return scaled


@bank.mistake("apply_temperature")
def lowest_number_for_a_ban(logits: Tensor, temperature: float) -> Tensor:
    """A banned token now has a very low logit instead of -inf. A filter that asks what is banned
    will not find it, and a second division may bring it back. -inf divided by a temperature is
    -inf: no care is needed.
    """
    scaled = logits.float() / checked(temperature)
    return scaled.clamp(min=torch.finfo(torch.float32).min)


@bank.mistake("apply_temperature")
def ban_becomes_zero(logits: Tensor, temperature: float) -> Tensor:
    """A banned token now has the logit 0, and so a probability, a large one where the others are
    negative. -inf divided by a temperature is -inf: no care is needed.
    """
    logits = logits.float()
    return torch.where(logits.isinf(), torch.zeros_like(logits), logits) / checked(temperature)


@bank.mistake("apply_temperature")
def ban_becomes_nan(logits: Tensor, temperature: float) -> Tensor:
    """A banned token made NaN: somewhere -inf meets an operation that has no answer for it, such as
    0 x inf or inf - inf. Dividing by the temperature is all that is to be done.
    """
    logits, temperature = logits.float(), checked(temperature)
    shift = logits.amin(dim=-1, keepdim=True)
    return (logits - shift) / temperature


@bank.mistake("apply_temperature")
def bans_the_hopeless(logits: Tensor, temperature: float) -> Tensor:
    """Tokens far behind the best were banned. Temperature never removes a token, it only makes it
    rarer; removing is the filters' work, in lessons 3 and 4.
    """
    scaled = logits.float() / checked(temperature)
    return scaled.masked_fill(scaled < scaled.amax(dim=-1, keepdim=True) - 5, -torch.inf)


@bank.mistake("apply_temperature")
def stays_in_half_precision(logits: Tensor, temperature: float) -> Tensor:
    """Half-precision logits came back in half precision: float16 ends at 65504, and bfloat16 has
    two to three digits. Change to float32 before you divide, and not back again.
    """
    return logits / checked(temperature)


@bank.mistake("apply_temperature")
def one_in_half_precision(logits: Tensor, temperature: float) -> Tensor:
    """At temperature 1 the logits were handed back at once, half precision as they were. A shortcut
    has to keep the other promises too: change to float32 before you leave.
    """
    return logits if checked(temperature) == 1 else logits.float() / temperature


@bank.mistake("apply_temperature")
def to_float_too_late(logits: Tensor, temperature: float) -> Tensor:
    """The result is float32, but it was divided in half precision and changed afterwards, when it
    had overflowed. Change to float32 before you divide.
    """
    return (logits / checked(temperature)).float()


@bank.mistake("apply_temperature")
def divides_in_place(logits: Tensor, temperature: float) -> Tensor:
    """The answer is right, but the caller's own logits changed with it: `/=` and `div_` write into
    the tensor that was handed in. Make a new one.
    """
    checked(temperature)
    if logits.dtype != torch.float32:
        return logits.float() / temperature
    logits /= temperature
    return logits


# --- apply_temperature: arguments ---


@bank.mistake("apply_temperature")
def epsilon_for_zero(logits: Tensor, temperature: float) -> Tensor:
    """A small number was added so that zero can be divided by. The logits then explode, and the
    caller never learns that greedy decoding was meant. Refuse 0 with a ValueError.
    """
    if temperature < 0 or not math.isfinite(temperature):
        raise ValueError(f"temperature={temperature}")
    return logits.float() / (temperature + 1e-9)


@bank.mistake("apply_temperature")
def clamps_to_something_small(logits: Tensor, temperature: float) -> Tensor:
    """Temperatures of zero and below were lifted to a small number, as some engines do. A caller
    who asks for -1 has made a slip and should hear of it: raise ValueError.
    """
    if not math.isfinite(temperature):
        raise ValueError(f"temperature={temperature}")
    return logits.float() / max(temperature, 1e-5)


@bank.mistake("apply_temperature")
def zero_is_off(logits: Tensor, temperature: float) -> Tensor:
    """Temperature 0 leaves the logits as they are, which is what temperature 1 means: who asks for
    the most careful setting gets an ordinary draw. `if temperature` is False for 0; refuse it
    instead.
    """
    if temperature < 0 or not math.isfinite(temperature):
        raise ValueError(f"temperature={temperature}")
    if temperature:
        return logits.float() / temperature
    return logits.float()


@bank.mistake("apply_temperature")
def zero_is_greedy(logits: Tensor, temperature: float) -> Tensor:
    """Temperature 0 was answered by keeping the best token alone. A sensible reading, but in this
    course greedy decoding is a function of its own (lesson 5), and this one refuses 0.
    """
    if temperature < 0 or not math.isfinite(temperature):
        raise ValueError(f"temperature={temperature}")
    logits = logits.float()
    if temperature == 0:
        return logits.masked_fill(logits < logits.amax(dim=-1, keepdim=True), -torch.inf)
    return logits / temperature


@bank.mistake("apply_temperature")
def divides_by_zero(logits: Tensor, temperature: float) -> Tensor:
    """Tensors divide by 0 without an error, into inf and NaN, and argmax of that is some token or
    other. Negative values are refused already: where does 0 belong?
    """
    if temperature < 0 or not math.isfinite(temperature):
        raise ValueError(f"temperature={temperature}")
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def zero_division_error(logits: Tensor, temperature: float) -> Tensor:
    """`1 / temperature` fails for 0 with ZeroDivisionError, which does not say what to do instead.
    Look at the temperature first and raise ValueError.
    """
    if temperature < 0 or not math.isfinite(temperature):
        raise ValueError(f"temperature={temperature}")
    return logits.float() * (1 / temperature)


@bank.mistake("apply_temperature")
def takes_negative_temperatures(logits: Tensor, temperature: float) -> Tensor:
    """A negative temperature passes and turns the order around: the worst token becomes the best.
    It can only be a slip of the caller's; raise ValueError.
    """
    if temperature == 0 or not math.isfinite(temperature):
        raise ValueError(f"temperature={temperature}")
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def takes_the_absolute_value(logits: Tensor, temperature: float) -> Tensor:
    """A negative temperature was used without its sign. It can only be a slip of the caller's, and
    guessing what was meant hides it; raise ValueError.
    """
    return logits.float() / checked(abs(temperature))


@bank.mistake("apply_temperature")
def checks_nothing(logits: Tensor, temperature: float) -> Tensor:
    """No temperature is refused: 0 gives inf and NaN, a negative one turns the order around. Say
    first which values make sense, and raise ValueError for the others.
    """
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def takes_nan(logits: Tensor, temperature: float) -> Tensor:
    """NaN passes: every comparison with it is False, `temperature <= 0` too. Ask for what is
    allowed instead of what is not, or look for NaN by name.
    """
    if temperature <= 0 or temperature == math.inf:
        raise ValueError(f"temperature={temperature}")
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def takes_infinity(logits: Tensor, temperature: float) -> Tensor:
    """An infinite temperature passes, and a banned token over infinity is NaN. Uniform draws can
    be had with a large number; refuse this one.
    """
    if not temperature > 0:
        raise ValueError(f"temperature={temperature}")
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def takes_what_is_not_finite(logits: Tensor, temperature: float) -> Tensor:
    """Zero and negative temperatures are refused, NaN and infinity are not: no comparison with 0
    finds them. `math` has a function that tells a finite number.
    """
    if temperature <= 0:
        raise ValueError(f"temperature={temperature}")
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def refuses_whole_numbers(logits: Tensor, temperature: float) -> Tensor:
    """A temperature of 2 is refused for being an int. Ints are numbers: look at the value, not at
    the type.
    """
    if not isinstance(temperature, float):
        raise ValueError(f"temperature={temperature} must be a float")
    return logits.float() / checked(temperature)


@bank.mistake("apply_temperature")
def refuses_temperatures_above_one(logits: Tensor, temperature: float) -> Tensor:
    """Temperatures above 1 are refused. Most settings in use lie below, but above 1 the
    distribution gets flatter, which is allowed; only the lower end has a limit.
    """
    if checked(temperature) > 1:
        raise ValueError(f"temperature={temperature}")
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def refuses_high_temperatures(logits: Tensor, temperature: float) -> Tensor:
    """Very high temperatures are refused. They make poor text but a fine experiment: the nearer to
    uniform the higher. Only the lower end has a limit.
    """
    if checked(temperature) > 10:
        raise ValueError(f"temperature={temperature}")
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def lifts_low_temperatures(logits: Tensor, temperature: float) -> Tensor:
    """Temperatures near zero were lifted to a higher one, so the coldest settings all do the same.
    Every number above 0 is allowed, and means what it says.
    """
    return logits.float() / max(checked(temperature), 0.05)


@bank.mistake("apply_temperature")
def asserts(logits: Tensor, temperature: float) -> Tensor:
    """An `assert` guards the temperature. It raises AssertionError, names nothing by itself, and is
    gone under `python -O`; use `raise ValueError` with the argument's name and value.
    """
    assert math.isfinite(temperature) and temperature > 0
    return logits.float() / temperature


@bank.mistake("apply_temperature")
def prints_a_warning(logits: Tensor, temperature: float) -> Tensor | None:
    """A temperature that is not allowed gives None. The caller goes on with it and fails elsewhere,
    far from the cause; raise ValueError, so that it fails here and says why.
    """
    if not (math.isfinite(temperature) and temperature > 0):
        return None
    return logits.float() / temperature


# --- entropy ---


def surprise(probs: Tensor) -> Tensor:
    """-p log p, with 0 for p = 0."""
    return torch.special.entr(probs)


@bank.mistake("entropy")
def forgets_the_minus(logits: Tensor) -> Tensor:
    """The entropy is negative: the log of a probability always is. Uncertainty is counted upwards
    from 0; a sign is missing.
    """
    return -surprise(logits.float().softmax(dim=-1)).sum(dim=-1)


@bank.mistake("entropy")
def measures_in_bits(logits: Tensor) -> Tensor:
    """These are bits: the logarithm was taken to base 2. In this course entropy is in nats, as the
    loss is, so that exp of it counts tokens.
    """
    return surprise(logits.float().softmax(dim=-1)).sum(dim=-1) / math.log(2)


@bank.mistake("entropy")
def measures_in_tens(logits: Tensor) -> Tensor:
    """The logarithm was taken to base 10. Entropy is in nats, with the natural logarithm, as the
    loss is: `log`, not `log10`.
    """
    return surprise(logits.float().softmax(dim=-1)).sum(dim=-1) / math.log(10)


@bank.mistake("entropy")
def mean_over_the_vocabulary(logits: Tensor) -> Tensor:
    """A mean over the vocabulary was taken. Each -log p is weighted by its p already, and the
    weights add up to 1: what is left is a sum.
    """
    return surprise(logits.float().softmax(dim=-1)).mean(dim=-1)


@bank.mistake("entropy")
def share_of_the_largest(logits: Tensor) -> Tensor:
    """The entropy was divided by log(vocab), the largest that it can be. A useful number, but
    another one: here a uniform row must give log(vocab), not 1.
    """
    vocab = logits.shape[-1]
    return surprise(logits.float().softmax(dim=-1)).sum(dim=-1) / max(math.log(vocab), 1e-6)


@bank.mistake("entropy")
def effective_number_of_tokens(logits: Tensor) -> Tensor:
    """The exponential came back: how many equally likely tokens would be as uncertain. The entropy
    is the number before that exp.
    """
    return surprise(logits.float().softmax(dim=-1)).sum(dim=-1).exp()


@bank.mistake("entropy")
def surprise_of_the_best(logits: Tensor) -> Tensor:
    """This is -log p of the best token alone. Entropy is the mean surprise over ALL tokens, each
    weighted by how often it comes.
    """
    return -logits.float().log_softmax(dim=-1).amax(dim=-1)


@bank.mistake("entropy")
def weighs_all_tokens_alike(logits: Tensor) -> Tensor:
    """The surprises -log p were averaged as if all tokens came equally often. A rare token
    surprises much but seldom: weight each by its own probability.
    """
    return -logits.float().log_softmax(dim=-1).mean(dim=-1)


@bank.mistake("entropy")
def sums_bare_surprises(logits: Tensor) -> Tensor:
    """The surprises -log p were added up without weights, so rare tokens rule the sum. Weight each
    by its own probability.
    """
    return -logits.float().log_softmax(dim=-1).sum(dim=-1)


@bank.mistake("entropy")
def probabilities_times_logits(logits: Tensor) -> Tensor:
    """p was multiplied by the logit instead of by log p. The two differ by the same number in the
    whole row, the log of the softmax's denominator, and here it does not cancel.
    """
    logits = logits.float()
    return -(logits.softmax(dim=-1) * logits.clamp(min=-1e30)).sum(dim=-1)


@bank.mistake("entropy")
def logits_taken_for_probabilities(logits: Tensor) -> Tensor:
    """The formula was fed the logits themselves. They are scores, negative ones among them; make
    probabilities of them first.
    """
    return surprise(logits.float().clamp(min=0)).sum(dim=-1)


@bank.mistake("entropy")
def softmax_twice(logits: Tensor) -> Tensor:
    """A softmax was taken of probabilities: the second one flattens what the first had told, and
    the entropy comes out near its maximum. Once is enough.
    """
    return surprise(logits.float().softmax(dim=-1).softmax(dim=-1)).sum(dim=-1)


@bank.mistake("entropy")
def purity_for_entropy(logits: Tensor) -> Tensor:
    """This is 1 minus the sum of squares, another measure of spread, which stays below 1. Entropy
    is the mean of -log p.
    """
    return 1 - logits.float().softmax(dim=-1).square().sum(dim=-1)


@bank.mistake("entropy")
def zero_times_log_zero(logits: Tensor) -> Tensor:
    """A token of probability 0 made NaN of the whole row: 0 x log 0 is 0 x -inf to a computer. Its
    limit is 0; see to it that such tokens add that.
    """
    probs = logits.float().softmax(dim=-1)
    return -(probs * probs.log()).sum(dim=-1)


@bank.mistake("entropy")
def zero_times_minus_infinity(logits: Tensor) -> Tensor:
    """`log_softmax` takes care of huge logits, but a banned one is still -inf there, and 0 x -inf
    is NaN. Its part in the sum is 0; see to it that it adds that.
    """
    log_probs = logits.float().log_softmax(dim=-1)
    return -(log_probs.exp() * log_probs).sum(dim=-1)


@bank.mistake("entropy")
def banned_tokens_become_zeros(logits: Tensor) -> Tensor:
    """Banned logits were replaced by 0 before the softmax, so banned tokens got a probability and
    count like others. Take the softmax first; it gives them the 0 they should have.
    """
    logits = logits.float()
    return surprise(logits.where(~logits.isinf(), 0.0).softmax(dim=-1)).sum(dim=-1)


@bank.mistake("entropy")
def nan_becomes_zero_at_the_end(logits: Tensor) -> Tensor:
    """The sum is NaN as soon as one token is banned, and replacing it afterwards by 0 says that the
    model is certain. Mend the one term that has no value, before the sum.
    """
    probs = logits.float().softmax(dim=-1)
    return -(probs * probs.log()).sum(dim=-1).nan_to_num(0.0)


@bank.mistake("entropy")
def exponentials_overflow(logits: Tensor) -> Tensor:
    """The exponential of a large logit is infinite, and infinity over infinity is no number. Only
    differences between logits matter; torch's softmax minds that.
    """
    weights = logits.float().exp()
    return surprise(weights / weights.sum(dim=-1, keepdim=True)).sum(dim=-1)


@bank.mistake("entropy")
def too_large_an_epsilon(logits: Tensor) -> Tensor:
    """A small number was added to keep the log finite, and it is not small enough: in a large
    vocabulary most probabilities are smaller. Find a way to leave out the zeros that adds nothing
    to the others.
    """
    probs = logits.float().softmax(dim=-1)
    return -(probs * (probs + 1e-4).log()).sum(dim=-1)


@bank.mistake("entropy")
def sums_over_everything(logits: Tensor) -> Tensor:
    """One number came back for the whole batch: `sum` without an axis adds up all rows. Each row
    has an entropy of its own.
    """
    return surprise(logits.float().softmax(dim=-1)).sum()


@bank.mistake("entropy")
def mean_over_the_batch(logits: Tensor) -> Tensor:
    """The rows were averaged into one number. Each row has an entropy of its own, and the lesson
    plots them one by one.
    """
    return surprise(logits.float().softmax(dim=-1)).sum(dim=-1).mean()


@bank.mistake("entropy")
def keeps_the_axis(logits: Tensor) -> Tensor:
    """The axis of the vocabulary is still there, with length 1. One number a row is wanted; what
    does `keepdim` keep?
    """
    return surprise(logits.float().softmax(dim=-1)).sum(dim=-1, keepdim=True)


@bank.mistake("entropy")
def squeezes_the_batch_away(logits: Tensor) -> Tensor:
    """`squeeze` drops EVERY axis of length 1, a batch of one among them. Drop the axis you mean, by
    its number.
    """
    return surprise(logits.float().softmax(dim=-1)).sum(dim=-1, keepdim=True).squeeze()


@bank.mistake("entropy")
def softmax_down_the_batch(logits: Tensor) -> Tensor:
    """The softmax runs along the first axis: in a batch the rows share one probability of 1. Each
    row is a distribution of its own; which axis is the vocabulary?
    """
    return surprise(logits.float().softmax(dim=0)).sum(dim=-1)


@bank.mistake("entropy")
def sums_down_the_batch(logits: Tensor) -> Tensor:
    """The sum runs along the first axis and adds up different rows' terms: one number a TOKEN came
    back, not one a row. Which axis is the vocabulary?
    """
    return surprise(logits.float().softmax(dim=-1)).sum(dim=0)


@bank.mistake("entropy")
def wants_a_batch_of_rows(logits: Tensor) -> Tensor:
    """Axis 1 is the vocabulary in a batch of rows, and in nothing else. Count axes from the end:
    the vocabulary is the last one, however many stand before it.
    """
    return surprise(logits.float().softmax(dim=1)).sum(dim=1)


@bank.mistake("entropy")
def returns_the_terms(logits: Tensor) -> Tensor:
    """What came back is each token's part, -p log p. The entropy of a row is their sum."""
    return surprise(logits.float().softmax(dim=-1))


@bank.mistake("entropy")
def entropy_in_half_precision(logits: Tensor) -> Tensor:
    """The entropy of half-precision logits came back in half precision, where two or three digits
    are left of a sum over the vocabulary. Change to float32 before the softmax, and not back again.
    """
    probs = logits.softmax(dim=-1)
    return -(probs * probs.clamp(min=1e-37).log()).sum(dim=-1)


@bank.mistake("entropy")
def entropy_to_float_too_late(logits: Tensor) -> Tensor:
    """The result is float32, but it was computed in half precision and changed at the end, when the
    digits were gone. Change to float32 before the softmax.
    """
    probs = logits.softmax(dim=-1)
    return -(probs * probs.clamp(min=1e-37).log()).sum(dim=-1).float()


@bank.mistake("entropy")
def softmax_in_half_precision(logits: Tensor) -> Tensor:
    """The sum is in float32, but the softmax before it was taken in half precision, where a small
    probability has two or three digits. One line earlier is early enough.
    """
    return surprise(logits.softmax(dim=-1).float()).sum(dim=-1)


@bank.mistake("entropy")
def subtracts_the_maximum_in_place(logits: Tensor) -> Tensor:
    """The entropy is right, but the caller's own logits changed with it: `-=` and methods that end
    in an underscore write into the tensor that was handed in. Make a new one.
    """
    probs = logits.float().softmax(dim=-1)
    logits -= logits.amax(dim=-1, keepdim=True)
    return surprise(probs).sum(dim=-1)


@bank.mistake("entropy")
def fills_the_bans_in_place(logits: Tensor) -> Tensor:
    """The entropy is right, but banned tokens of the caller's are banned no more: the -inf were
    replaced in the tensor that was handed in. Make a new one.
    """
    probs = logits.float().softmax(dim=-1)
    logits.masked_fill_(logits == -torch.inf, -1e9)
    return surprise(probs).sum(dim=-1)
