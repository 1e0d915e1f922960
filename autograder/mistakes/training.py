"""Wrong ways to write next_token_loss, perplexity and last_logits."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..bank import Bank

bank = Bank("training")

IGNORED = -100

Pairs = Iterable[tuple[float, int]]


def fit(logits: Tensor, tokens: Tensor) -> None:
    if logits.ndim != 3 or logits.shape[:2] != tokens.shape:
        raise ValueError(f"logits {tuple(logits.shape)} and tokens {tuple(tokens.shape)}")


def are_ids(targets: Tensor, vocab: int, ignore_index: int = IGNORED) -> None:
    wrong = (targets != ignore_index) & ((targets < 0) | (targets >= vocab))
    if wrong.any():
        raise ValueError(f"tokens holds {targets[wrong][0].item()}")


def checked(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> None:
    """Everything that the function must refuse is refused."""
    fit(logits, tokens)
    are_ids(tokens[:, 1:], logits.shape[-1], ignore_index)


def cross_entropy(predictions: Tensor, targets: Tensor, ignore_index: int) -> Tensor:
    """The mean over all that is handed in, position by position; no shift."""
    return F.cross_entropy(
        predictions.float().flatten(0, -2), targets.flatten(), ignore_index=ignore_index
    )


def nats(logits: Tensor, tokens: Tensor, ignore_index: int) -> Tensor:
    """The loss of each position (batch, pos - 1), 0 where it is ignored."""
    return F.cross_entropy(
        logits[:, :-1].float().transpose(1, 2),
        tokens[:, 1:],
        ignore_index=ignore_index,
        reduction="none",
    )


# --- next_token_loss: the shift ---


@bank.mistake("next_token_loss")
def does_not_shift(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Position t is scored by token t, which the model has just read: a model that repeats its
    input looks perfect. What is each position meant to answer, and where in `tokens` does that
    stand?
    """
    fit(logits, tokens)
    are_ids(tokens, logits.shape[-1], ignore_index)
    return cross_entropy(logits, tokens, ignore_index)


@bank.mistake("next_token_loss")
def shifts_the_wrong_way(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Position t is scored by token t-1: the model is asked for its past. Write down for a text of
    three tokens which answer belongs to which token, then look at which end each of your two
    slices cuts.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, 1:], tokens[:, :-1], ignore_index)


@bank.mistake("next_token_loss")
def shifts_twice(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Position t is scored by token t+2: the shift happens twice. It is easily done where the data
    comes shifted and the loss shifts again, and training then goes on without a word; do it in one
    place.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-2], tokens[:, 2:], ignore_index)


@bank.mistake("next_token_loss")
def rolls_the_tokens(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """`roll` moves in a circle: the last position is now scored by the first token of the same
    row. The last position has no target at all, so it has to go.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits, tokens.roll(-1, dims=1), ignore_index)


@bank.mistake("next_token_loss")
def shifts_after_flattening(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The batch was made one long row before the shift, so the end of one row is asked for the
    beginning of the next, of which it knows nothing. Cut first, row by row, and flatten then.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits.flatten(0, 1)[None, :-1], tokens.flatten()[None, 1:], ignore_index)


@bank.mistake("next_token_loss")
def shifts_the_batch(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The slices cut the first axis, which counts the rows of the batch: each row is scored by its
    neighbour's tokens, and a batch of one has nothing left. Which axis is time?
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:-1], tokens[1:], ignore_index)


@bank.mistake("next_token_loss")
def loses_the_last_target(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """One target too few: the last token of each row is never asked for. T positions give T-1
    pairs; count yours.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-2], tokens[:, 1:-1], ignore_index)


@bank.mistake("next_token_loss")
def scores_the_last_pair_only(
    logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED
) -> Tensor:
    """Only the last pair of each row is scored. That is what inference looks at; training learns
    from every position at once, which is why it needs one pass only.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, -2:-1], tokens[:, -1:], ignore_index)


# --- next_token_loss: the axes ---


@bank.mistake("next_token_loss")
def views_for_a_transpose(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """`view` and `reshape` cut the same run of numbers anew, they do not turn axes: scores of
    different positions got mixed. To bring the vocabulary to another place, swap axes; or keep it
    last and flatten those before it.
    """
    checked(logits, tokens, ignore_index)
    batch, pos, vocab = logits[:, :-1].shape
    turned = logits[:, :-1].float().reshape(batch, vocab, pos)
    return F.cross_entropy(turned, tokens[:, 1:], ignore_index=ignore_index)


@bank.mistake("next_token_loss")
def leaves_the_classes_last(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """torch's `cross_entropy` looks for the vocabulary on axis 1; here it found positions there.
    Flatten batch and positions into one axis first, or turn the axes.
    """
    checked(logits, tokens, ignore_index)
    return F.cross_entropy(logits[:, :-1].float(), tokens[:, 1:], ignore_index=ignore_index)


@bank.mistake("next_token_loss")
def softmax_over_positions(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The softmax runs along the positions, so it is the positions that share a probability of 1.
    It must be the tokens of the vocabulary at each position: which axis is that?
    """
    checked(logits, tokens, ignore_index)
    targets = tokens[:, 1:]
    counts = targets != ignore_index
    log_probs = logits[:, :-1].float().log_softmax(dim=1)
    asked = log_probs.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    return -asked[counts].mean()


@bank.mistake("next_token_loss")
def first_row_only(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Only row 0 of the batch is scored. With one row that is right, which is why it went unseen;
    look for a 0 where a whole axis should stand.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[0, :-1], tokens[0, 1:], ignore_index)


# --- next_token_loss: the mean ---


@bank.mistake("next_token_loss")
def sums(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """This is the sum over all targets. A loss that grows with the length of the text cannot be
    compared between batches, and the step of the optimiser grows with it.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index) * (
        (tokens[:, 1:] != ignore_index).sum()
    )


@bank.mistake("next_token_loss")
def divides_by_every_target(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Ignored targets are out of the sum but still in the count, so the more padding a batch has,
    the better it looks. What belongs under the fraction bar?
    """
    checked(logits, tokens, ignore_index)
    return nats(logits, tokens, ignore_index).mean()


@bank.mistake("next_token_loss")
def divides_by_every_token(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The sum is divided by B x T, but each row of T tokens has one target fewer. Divide by what
    you added up.
    """
    checked(logits, tokens, ignore_index)
    return nats(logits, tokens, ignore_index).sum() / tokens.numel()


@bank.mistake("next_token_loss")
def mean_of_row_means(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """A mean of each row's mean: a token of a short row weighs more than one of a long row. All
    targets of the batch weigh the same; add up first, divide once.
    """
    checked(logits, tokens, ignore_index)
    rows = nats(logits, tokens, ignore_index).sum(dim=1)
    return (rows / (tokens[:, 1:] != ignore_index).sum(dim=1)).mean()


@bank.mistake("next_token_loss")
def one_loss_a_position(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """What comes back is a loss for each position. An optimiser needs one number: their mean."""
    checked(logits, tokens, ignore_index)
    return nats(logits, tokens, ignore_index)


@bank.mistake("next_token_loss")
def nothing_left_is_zero(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Where no target is left you answer 0, the loss of a perfect model. There is no mean of
    nothing; NaN says so, and a batch that is all padding is then noticed.
    """
    checked(logits, tokens, ignore_index)
    losses = nats(logits, tokens, ignore_index)
    return losses.sum() / (tokens[:, 1:] != ignore_index).sum().clamp(min=1)


@bank.mistake("next_token_loss")
def nothing_left_raises(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """A batch without a target is refused. Batches that are all padding do occur, and a long run
    must not die of one: the answer is NaN there, as torch's own loss gives.
    """
    checked(logits, tokens, ignore_index)
    if not (tokens[:, 1:] != ignore_index).any():
        raise ValueError("tokens holds no target")
    return cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index)


# --- next_token_loss: what is ignored ---


@bank.mistake("next_token_loss")
def forgets_ignore_index(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """`ignore_index` is not used: -100 is left out because torch does so unasked, any other value
    is trained on. A model that learns to predict padding looks better than it is.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-1], tokens[:, 1:], IGNORED)


@bank.mistake("next_token_loss")
def trains_on_padding(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Ignored targets count as token 0: they were moved to an id that exists, so that the look-up
    works, and then not left out. Which positions may enter the mean?
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-1], tokens[:, 1:].clamp(min=0), IGNORED)


@bank.mistake("next_token_loss")
def ignores_by_the_asker(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Positions are left out where the token that was READ is ignored. It is the token to be
    predicted, one further, that decides whether a position counts.
    """
    checked(logits, tokens, ignore_index)
    counts = tokens[:, :-1] != ignore_index
    asked = tokens[:, 1:].masked_fill(tokens[:, 1:] == IGNORED, 0)
    losses = nats(logits, torch.cat([tokens[:, :1], asked], dim=1), IGNORED)
    return losses[counts].mean()


@bank.mistake("next_token_loss")
def refuses_ignored_targets(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """`ignore_index` itself is refused as if it were no id. It is none, and yet allowed: leave it
    out before you look whether the others are ids.
    """
    fit(logits, tokens)
    targets = tokens[:, 1:]
    if ((targets < 0) | (targets >= logits.shape[-1])).any():
        raise ValueError("tokens holds an id that is not in the vocabulary")
    return cross_entropy(logits[:, :-1], targets, ignore_index)


# --- next_token_loss: the arithmetic ---


@bank.mistake("next_token_loss")
def log_of_softmax(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The softmax rounds small probabilities to 0, and the log of 0 is -inf: the loss is infinite
    where it should be large. torch has a function for both steps at once that never leaves the
    logs.
    """
    checked(logits, tokens, ignore_index)
    probs = logits[:, :-1].float().softmax(dim=-1).flatten(0, 1)
    return F.nll_loss(probs.log(), tokens[:, 1:].flatten(), ignore_index=ignore_index)


@bank.mistake("next_token_loss")
def guards_the_log(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """A small number was added to keep the log finite, so no loss can be larger than the log of
    that number: the worst answers look alike, and have no gradient. Stay in logs instead, and
    nothing needs a guard.
    """
    checked(logits, tokens, ignore_index)
    probs = logits[:, :-1].float().softmax(dim=-1).flatten(0, 1)
    return F.nll_loss((probs + 1e-9).log(), tokens[:, 1:].flatten(), ignore_index=ignore_index)


@bank.mistake("next_token_loss")
def exponentials_overflow(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The exponential of a large logit is infinite, and what follows is no number. Only differences
    between logits matter, so something can be taken off all of them first.
    """
    checked(logits, tokens, ignore_index)
    predictions = logits[:, :-1].float()
    log_probs = predictions - predictions.exp().sum(dim=-1, keepdim=True).log()
    return F.nll_loss(log_probs.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=ignore_index)


@bank.mistake("next_token_loss")
def multiplies_by_one_hot(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """A one-hot vector times log-probabilities: for a banned token that is 0 x -inf, which is NaN.
    Pick the one number that is asked for instead of adding up all of them.
    """
    checked(logits, tokens, ignore_index)
    targets = tokens[:, 1:]
    counts = targets != ignore_index
    one_hot = F.one_hot(targets.where(counts, 0), logits.shape[-1])
    losses = -(one_hot * logits[:, :-1].float().log_softmax(dim=-1)).sum(dim=-1)
    return losses[counts].mean()


@bank.mistake("next_token_loss")
def softmax_before_cross_entropy(
    logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED
) -> Tensor:
    """`cross_entropy` was handed probabilities, and it takes a softmax of its own: even a perfect
    model keeps a loss then. Hand it the logits as they are.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-1].float().softmax(dim=-1), tokens[:, 1:], ignore_index)


@bank.mistake("next_token_loss")
def probabilities_without_a_log(
    logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED
) -> Tensor:
    """The probabilities of the targets are averaged without a log. torch's `nll_loss` expects
    log-probabilities, whatever it is given, and takes no log itself.
    """
    checked(logits, tokens, ignore_index)
    probs = logits[:, :-1].float().softmax(dim=-1).flatten(0, 1)
    return F.nll_loss(probs, tokens[:, 1:].flatten(), ignore_index=ignore_index)


@bank.mistake("next_token_loss")
def forgets_the_minus(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The loss is negative: the log of a probability always is. A loss is to be made small, so it
    is the NEGATIVE log-likelihood.
    """
    checked(logits, tokens, ignore_index)
    return -cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index)


@bank.mistake("next_token_loss")
def measures_in_bits(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """These are bits: the logarithm was taken to base 2. Losses are in nats, with the natural
    logarithm, so that exp undoes it.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index) / math.log(2)


@bank.mistake("next_token_loss")
def returns_perplexity(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The exponential came back, which is the perplexity. The loss is the mean in nats, before any
    exp.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index).exp()


@bank.mistake("next_token_loss")
def loss_in_half_precision(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The loss of half-precision logits was computed in half precision, where two or three digits
    are left of a sum over the vocabulary. Change to float32 before, not after.
    """
    checked(logits, tokens, ignore_index)
    predictions, targets = logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
    return F.cross_entropy(predictions, targets, ignore_index=ignore_index)


@bank.mistake("next_token_loss")
def loss_to_float_too_late(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The result is float32, but it was computed in half precision and changed at the end, when
    the digits were gone. Which line should the change stand on?
    """
    checked(logits, tokens, ignore_index)
    predictions, targets = logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
    return F.cross_entropy(predictions, targets, ignore_index=ignore_index).float()


@bank.mistake("next_token_loss")
def returns_a_plain_number(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> float:
    """The value is right, but it is a Python number, from which no gradient flows back into the
    model. Hand back the tensor.
    """
    checked(logits, tokens, ignore_index)
    return cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index).item()


# --- next_token_loss: arguments ---


@bank.mistake("next_token_loss")
def loss_takes_any_shapes(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Logits and tokens of different shapes pass here and there: flattened, six targets are six
    targets, whoever they belong to. Compare batch and positions of both before you cut.
    """
    targets = tokens[:, 1:]
    are_ids(targets, logits.shape[-1], ignore_index)
    return cross_entropy(logits[:, :-1], targets, ignore_index)


@bank.mistake("next_token_loss")
def loss_gathers_any_shapes(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """`gather` is content with fewer tokens than logits: it takes what it finds and leaves the rest
    of the batch out. Compare batch and positions of both before you cut.
    """
    targets = tokens[:, 1:]
    are_ids(targets, logits.shape[-1], ignore_index)
    counts = targets != ignore_index
    log_probs = logits[:, :-1].float().log_softmax(dim=-1)
    return -log_probs.gather(-1, targets.where(counts, 0)[..., None])[..., 0][counts].mean()


@bank.mistake("next_token_loss")
def compares_the_batch_only(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """The number of rows is compared, the number of positions is not, and with `gather` a shorter
    text passes. Two axes must agree.
    """
    if len(logits) != len(tokens):
        raise ValueError(f"a batch of {len(logits)} with tokens of {len(tokens)}")
    return loss_gathers_any_shapes(logits, tokens, ignore_index)


@bank.mistake("next_token_loss")
def loss_takes_any_ids(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """A token beyond the vocabulary ends in an IndexError from the depths of torch, which names
    neither argument nor cure. Look at the targets first and raise ValueError.
    """
    fit(logits, tokens)
    return cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index)


@bank.mistake("next_token_loss")
def loss_takes_negative_ids(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """Every negative target is left out as if it were ignored. Only `ignore_index` means that;
    another negative number is a slip of the caller's, and worth a ValueError.
    """
    fit(logits, tokens)
    targets = tokens[:, 1:].masked_fill(tokens[:, 1:] < 0, ignore_index)
    are_ids(targets, logits.shape[-1], ignore_index)
    return cross_entropy(logits[:, :-1], targets, ignore_index)


@bank.mistake("next_token_loss")
def loss_lets_one_id_too_many_in(
    logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED
) -> Tensor:
    """The id that equals the size of the vocabulary passes your check. Ids begin at 0: which is the
    last one?
    """
    fit(logits, tokens)
    are_ids(tokens[:, 1:], logits.shape[-1] + 1, ignore_index)
    return cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index)


@bank.mistake("next_token_loss")
def loss_asserts(logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED) -> Tensor:
    """An `assert` guards the arguments. It raises AssertionError, names nothing by itself, and is
    gone under `python -O`; use `raise ValueError` with the argument's name and value.
    """
    targets, vocab = tokens[:, 1:], logits.shape[-1]
    assert logits.shape[:2] == tokens.shape
    assert bool(((targets == ignore_index) | ((targets >= 0) & (targets < vocab))).all())
    return cross_entropy(logits[:, :-1], targets, ignore_index)


@bank.mistake("next_token_loss")
def overwrites_ignored_tokens(
    logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED
) -> Tensor:
    """The loss is right, but the caller's tokens changed: a slice is a window on the same memory,
    and writing into it writes into what was handed in. Make a new tensor.
    """
    checked(logits, tokens, ignore_index)
    targets = tokens[:, 1:]
    counts = targets != ignore_index
    losses = nats(logits, tokens, ignore_index)
    targets[~counts] = 0
    return losses[counts].mean()


@bank.mistake("next_token_loss")
def subtracts_the_maximum_in_place(
    logits: Tensor, tokens: Tensor, ignore_index: int = IGNORED
) -> Tensor:
    """The loss is right, but the caller's logits changed: `-=` and methods that end in an
    underscore write into the tensor that was handed in. Make a new one.
    """
    checked(logits, tokens, ignore_index)
    logits -= logits.amax(dim=-1, keepdim=True)
    return cross_entropy(logits[:, :-1], tokens[:, 1:], ignore_index)


# --- perplexity ---


def counted(batches: Pairs) -> list[tuple[float, int]]:
    """The batches as a list, if they are such as must be accepted."""
    pairs = list(batches)
    if any(tokens < 0 for _, tokens in pairs) or not sum(tokens for _, tokens in pairs):
        raise ValueError("batches holds a negative count, or no token")
    return pairs


@bank.mistake("perplexity")
def mean_of_batch_means(batches: Pairs) -> float:
    """Each batch's mean weighs the same here, whether it has one token or a thousand. Add up all
    nats and all tokens, and divide once at the end.
    """
    means = [nll / tokens for nll, tokens in counted(batches) if tokens]
    return math.exp(sum(means) / len(means))


@bank.mistake("perplexity")
def mean_of_perplexities(batches: Pairs) -> float:
    """This is a mean of the batches' perplexities. Exp bends, so it must come last: first one mean
    over all tokens, then exp of that.
    """
    perplexities = [math.exp(nll / tokens) for nll, tokens in counted(batches) if tokens]
    return sum(perplexities) / len(perplexities)


@bank.mistake("perplexity")
def weighted_mean_of_perplexities(batches: Pairs) -> float:
    """The weights are right, but they weigh perplexities. Exp bends, so it must come last: first
    the mean of the nats, then exp of that.
    """
    pairs = counted(batches)
    total = sum(tokens * math.exp(nll / tokens) for nll, tokens in pairs if tokens)
    return total / sum(tokens for _, tokens in pairs)


@bank.mistake("perplexity")
def sums_are_taken_for_means(batches: Pairs) -> float:
    """Each nll was multiplied by its count, as if it were a mean. The pairs hold sums already; what
    is still to be done with them?
    """
    pairs = counted(batches)
    total = sum(nll * tokens for nll, tokens in pairs) / sum(tokens for _, tokens in pairs)
    return math.exp(min(total, 700.0))


@bank.mistake("perplexity")
def divides_by_the_number_of_batches(batches: Pairs) -> float:
    """The nats are divided by the number of batches. Perplexity is a number per TOKEN, so that it
    does not depend on how the text was cut.
    """
    pairs = counted(batches)
    return math.exp(min(sum(nll for nll, _ in pairs) / len(pairs), 700.0))


@bank.mistake("perplexity")
def forgets_exp(batches: Pairs) -> float:
    """This is the mean loss in nats. Perplexity is its exponential: among how many equally likely
    tokens the model hesitates.
    """
    pairs = counted(batches)
    return sum(nll for nll, _ in pairs) / sum(tokens for _, tokens in pairs)


@bank.mistake("perplexity")
def two_to_the_nats(batches: Pairs) -> float:
    """2 to the power of the mean belongs to a loss in bits. This one is in nats, made with the
    natural logarithm; which number undoes that?
    """
    pairs = counted(batches)
    return 2 ** (sum(nll for nll, _ in pairs) / sum(tokens for _, tokens in pairs))


@bank.mistake("perplexity")
def exp_of_minus(batches: Pairs) -> float:
    """This is the (geometric) mean probability of a token: the exponent has the wrong sign. An nll
    carries its minus already.
    """
    pairs = counted(batches)
    return math.exp(-sum(nll for nll, _ in pairs) / sum(tokens for _, tokens in pairs))


@bank.mistake("perplexity")
def last_batch_only(batches: Pairs) -> float:
    """Only the last batch counts: the sums are set anew in each round, not added to. Look at the
    assignment in your loop.
    """
    nll, tokens = counted(batches)[-1]
    if not tokens:
        raise ValueError("batches holds 0 tokens")
    return math.exp(nll / tokens)


@bank.mistake("perplexity")
def first_batch_only(batches: Pairs) -> float:
    """Only the first batch counts: the function is left in the first round of its loop. How far is
    your `return` indented?
    """
    nll, tokens = counted(batches)[0]
    if not tokens:
        raise ValueError("batches holds 0 tokens")
    return math.exp(nll / tokens)


@bank.mistake("perplexity")
def whole_number_division(batches: Pairs) -> float:
    """`//` throws away what stands behind the point. Two thirds of a nat are two thirds of a nat;
    divide with `/`.
    """
    pairs = counted(batches)
    return math.exp(sum(nll for nll, _ in pairs) // sum(tokens for _, tokens in pairs))


@bank.mistake("perplexity")
def rounds_to_whole_nats(batches: Pairs) -> float:
    """Each sum of nats was cut to a whole number. A loss is no count: convert the number of tokens
    to int if you like, but not the nats.
    """
    pairs = counted(batches)
    return math.exp(sum(int(nll) for nll, _ in pairs) / sum(tokens for _, tokens in pairs))


@bank.mistake("perplexity")
def walks_twice(batches: Pairs) -> float:
    """`batches` is walked through twice. An iterator can be had once: the second walk finds
    nothing. Collect both sums in one loop.
    """
    nll = sum(nll for nll, _ in batches)
    tokens = [tokens for _, tokens in batches]
    if not sum(tokens) or min(tokens) < 0:
        raise ValueError("batches holds a negative count, or no token")
    return math.exp(nll / sum(tokens))


@bank.mistake("perplexity")
def wants_a_list(batches: Pairs) -> float:
    """`len` works for lists, but batches may come one by one, from an iterator that knows no
    length. Count as you go.
    """
    if len(batches) == 0:  # type: ignore[arg-type]  # the mistake is to take it for a list
        raise ValueError("batches holds 0 tokens")
    pairs = counted(batches)
    return math.exp(sum(nll for nll, _ in pairs) / sum(tokens for _, tokens in pairs))


@bank.mistake("perplexity")
def empty_batch_divides_by_zero(batches: Pairs) -> float:
    """A batch of 0 tokens divides by zero. There is no need for a division in each batch: it adds
    nothing to either sum, and only the last line divides.
    """
    pairs = counted(batches)
    total = sum(tokens for _, tokens in pairs)
    return math.exp(sum(nll / tokens * (tokens / total) for nll, tokens in pairs))


@bank.mistake("perplexity")
def refuses_empty_batches(batches: Pairs) -> float:
    """One batch without a token is refused, though others have some. A batch that is all padding
    does no harm: it adds 0 to both sums. Look at the total only.
    """
    pairs = counted(batches)
    if any(tokens == 0 for _, tokens in pairs):
        raise ValueError("batches holds a batch of 0 tokens")
    return math.exp(sum(nll for nll, _ in pairs) / sum(tokens for _, tokens in pairs))


@bank.mistake("perplexity")
def no_token_divides_by_zero(batches: Pairs) -> float:
    """Without a token the last division fails with ZeroDivisionError, which does not say what is
    wrong with which argument. Look at the total before you divide.
    """
    nll, tokens = 0.0, 0
    for batch_nll, batch_tokens in batches:
        if batch_tokens < 0:
            raise ValueError(f"batches holds a count of {batch_tokens}")
        nll, tokens = nll + batch_nll, tokens + batch_tokens
    return math.exp(nll / tokens)


@bank.mistake("perplexity")
def no_token_is_perfect(batches: Pairs) -> float:
    """Without a token you answer 1, the perplexity of a perfect model. An evaluation that read no
    data must not look like the best one of all; raise ValueError.
    """
    pairs = list(batches)
    if any(tokens < 0 for _, tokens in pairs):
        raise ValueError("batches holds a negative count")
    total = sum(tokens for _, tokens in pairs)
    return math.exp(sum(nll for nll, _ in pairs) / max(total, 1))


@bank.mistake("perplexity")
def no_token_is_infinite(batches: Pairs) -> float:
    """Without a token you answer infinity. That would be a very bad model; here there was nothing
    to measure, which is an error of the caller's: raise ValueError.
    """
    pairs = list(batches)
    if any(tokens < 0 for _, tokens in pairs):
        raise ValueError("batches holds a negative count")
    total = sum(tokens for _, tokens in pairs)
    return math.exp(sum(nll for nll, _ in pairs) / total) if total else math.inf


@bank.mistake("perplexity")
def no_token_is_nan(batches: Pairs) -> float:
    """Without a token you answer NaN, which travels on through every mean and is noticed late. Say
    it where it happens: raise ValueError.
    """
    pairs = list(batches)
    if any(tokens < 0 for _, tokens in pairs):
        raise ValueError("batches holds a negative count")
    total = sum(tokens for _, tokens in pairs)
    return math.exp(sum(nll for nll, _ in pairs) / total) if total else math.nan


@bank.mistake("perplexity")
def takes_negative_counts(batches: Pairs) -> float:
    """A negative number of tokens passes, and takes other batches' tokens away. It can only be a
    slip of the caller's; look at each count, and raise ValueError.
    """
    nll, tokens = 0.0, 0
    for batch_nll, batch_tokens in batches:
        nll, tokens = nll + batch_nll, tokens + batch_tokens
    if tokens <= 0:
        raise ValueError(f"batches holds {tokens} tokens")
    return math.exp(nll / tokens)


@bank.mistake("perplexity")
def perplexity_asserts(batches: Pairs) -> float:
    """An `assert` guards the arguments. It raises AssertionError, names nothing by itself, and is
    gone under `python -O`; use `raise ValueError` with the argument's name and value.
    """
    pairs = list(batches)
    assert all(tokens >= 0 for _, tokens in pairs)
    assert sum(tokens for _, tokens in pairs) > 0
    return math.exp(sum(nll for nll, _ in pairs) / sum(tokens for _, tokens in pairs))


# --- last_logits ---


def real_rows(logits: Tensor, attention_mask: Tensor | None) -> Tensor:
    """The mask, if it is one that must be accepted; all ones for None."""
    if attention_mask is None:
        return torch.ones(logits.shape[:2], dtype=torch.int64)
    if attention_mask.shape != logits.shape[:2]:
        raise ValueError(f"attention_mask has shape {tuple(attention_mask.shape)}")
    if not attention_mask.any(dim=-1).all():
        raise ValueError("attention_mask has a row of 0")
    return attention_mask.long()


def last_real(mask: Tensor) -> Tensor:
    """The last real position of each row."""
    return (torch.arange(mask.shape[1]) * mask).amax(dim=-1)


def pick(logits: Tensor, positions: Tensor) -> Tensor:
    return logits[torch.arange(len(logits)), positions]


@bank.mistake("last_logits")
def last_row_of_the_batch(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """A single index counts along the first axis, so this is the last ROW of the batch with all of
    its positions. Which axis is time?
    """
    real_rows(logits, attention_mask)
    return logits[-1].float()


@bank.mistake("last_logits")
def last_id_of_the_vocabulary(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The last entry of the LAST axis was taken: one token's score at every position. The
    vocabulary stays whole; it is the position that is picked.
    """
    real_rows(logits, attention_mask)
    return logits[..., -1].float()


@bank.mistake("last_logits")
def one_row_for_the_batch(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Only one row's logits came back, without the axis of the batch. Every row goes on with a
    token of its own.
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits.float(), last_real(mask))[-1]


@bank.mistake("last_logits")
def first_position(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """This is the FIRST position's answer, which knows one token of the prompt. Which position has
    read all of it?
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits.float(), mask.argmax(dim=-1))


@bank.mistake("last_logits")
def position_before_the_last(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """One position too early: this one predicts the last token of the prompt, which is known. No
    shift is wanted here; that belongs to training.
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits.float(), (last_real(mask) - 1).clamp(min=0))


@bank.mistake("last_logits")
def mean_over_positions(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """A mean over all positions came back. Each position answers another question; only the last
    one answers for the token that comes next.
    """
    mask = real_rows(logits, attention_mask)[..., None]
    return (logits.float() * mask).sum(dim=1) / mask.sum(dim=1)


@bank.mistake("last_logits")
def keeps_the_axis_of_time(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """An axis of length 1 was left where the positions were: a slice keeps its axis, an index
    drops it. (batch, vocab) is wanted.
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits.float(), last_real(mask))[:, None]


@bank.mistake("last_logits")
def squeezes_the_batch_away(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """`squeeze` drops EVERY axis of length 1, a batch of one among them. Drop the axis you mean, by
    its number.
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits.float(), last_real(mask))[:, None].squeeze()


@bank.mistake("last_logits")
def returns_probabilities(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Probabilities came back where logits are wanted. Temperature and filters come next, and they
    work on scores; the softmax is for the end.
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits.float(), last_real(mask)).softmax(dim=-1)


@bank.mistake("last_logits")
def ignores_the_mask(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The mask is not looked at: for a row padded on the right this is the answer of a pad token,
    and the text goes on from there.
    """
    real_rows(logits, attention_mask)
    return logits[:, -1].float()


@bank.mistake("last_logits")
def counts_the_real_tokens(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The number of real tokens, less one, is the last position only where the padding is on the
    right. On the left it lies in the middle of the row, and nothing fails. Look for WHERE the last
    1 stands, not for how many there are.
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits.float(), mask.sum(dim=-1) - 1)


@bank.mistake("last_logits")
def counts_one_too_far(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The number of real tokens was taken for the position of the last. Positions begin at 0, so
    this one lies behind it: on a pad token, or outside of the row.
    """
    mask = real_rows(logits, attention_mask)
    return logits[:, -1].float() if mask.all() else pick(logits.float(), mask.sum(dim=-1))


@bank.mistake("last_logits")
def first_real_position(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """`argmax` finds the FIRST of several equal values, so this is where the row begins. What would
    have to grow along the row, for the largest value to stand at its end?
    """
    mask = real_rows(logits, attention_mask)
    return (
        logits[:, -1].float() if attention_mask is None else pick(logits.float(), mask.argmax(-1))
    )


@bank.mistake("last_logits")
def stops_before_the_first_zero(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The position before the first 0 was taken. That is right for padding on the right, but on the
    left the first 0 is where the row begins. Search from the end.
    """
    mask = real_rows(logits, attention_mask)
    ends = (mask == 0).int().argmax(dim=-1) - 1
    return pick(logits.float(), ends)


@bank.mistake("last_logits")
def row_zero_for_all(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Row 0's last position is used for every row. Rows are padded differently: each needs its
    own.
    """
    mask = real_rows(logits, attention_mask)
    return logits[:, last_real(mask)[0]].float()


@bank.mistake("last_logits")
def every_row_at_every_position(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """`logits[:, positions]` takes ALL positions for each row: (batch, batch, vocab). To pair row 0
    with the first position and row 1 with the second, the rows must be counted in the index too.
    """
    mask = real_rows(logits, attention_mask)
    return logits[:, -1].float() if attention_mask is None else logits.float()[:, last_real(mask)]


@bank.mistake("last_logits")
def multiplies_by_the_mask(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The padding was set to 0 and the last position taken, as before: a row padded on the right
    gets zeros, which stand for a uniform distribution. The mask tells WHICH position to take.
    """
    mask = real_rows(logits, attention_mask)
    return (logits.float() * mask[..., None])[:, -1]


@bank.mistake("last_logits")
def takes_ones_for_padding(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The mask was read the other way round. 1 is a real token, 0 is padding."""
    mask = real_rows(logits, attention_mask)
    return logits[:, -1].float() if mask.all() else pick(logits.float(), last_real(1 - mask))


@bank.mistake("last_logits")
def takes_any_mask(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """A mask of another shape passes, and positions are picked from a row that it does not
    describe. Compare its shape with (batch, pos) first.
    """
    if attention_mask is None:
        return logits[:, -1].float()
    if not attention_mask.any(dim=-1).all():
        raise ValueError("attention_mask has a row of 0")
    return pick(logits.float(), last_real(attention_mask.view(-1, attention_mask.shape[-1])))


@bank.mistake("last_logits")
def compares_the_length_only(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The mask's positions are compared, its rows are not: a mask of one row is spread over the
    batch without a word. Both axes must agree.
    """
    if attention_mask is None:
        return logits[:, -1].float()
    if attention_mask.shape[-1] != logits.shape[1] or not attention_mask.any(dim=-1).all():
        raise ValueError(f"attention_mask has shape {tuple(attention_mask.shape)}")
    return pick(logits.float(), last_real(attention_mask.view(-1, logits.shape[1])))


@bank.mistake("last_logits")
def compares_the_rows_only(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The mask's rows are compared, its positions are not: a mask that is too short picks a
    position in the middle of the text. Both axes must agree.
    """
    if attention_mask is None:
        return logits[:, -1].float()
    if len(attention_mask) != len(logits) or not attention_mask.any(dim=-1).all():
        raise ValueError(f"attention_mask has shape {tuple(attention_mask.shape)}")
    return pick(logits.float(), last_real(attention_mask.view(len(logits), -1)))


@bank.mistake("last_logits")
def takes_empty_rows(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """A row that is all padding passes, and gets some pad token's answer. There is no right answer
    for it; raise ValueError, and the caller learns which row is empty.
    """
    if attention_mask is None:
        return logits[:, -1].float()
    if attention_mask.shape != logits.shape[:2]:
        raise ValueError(f"attention_mask has shape {tuple(attention_mask.shape)}")
    return pick(logits.float(), last_real(attention_mask))


@bank.mistake("last_logits")
def finds_no_last_in_empty_rows(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """A row that is all padding ends in an IndexError, for want of a last 1, which names neither
    argument nor row. Look for such rows first and raise ValueError.
    """
    if attention_mask is None:
        return logits[:, -1].float()
    if attention_mask.shape != logits.shape[:2]:
        raise ValueError(f"attention_mask has shape {tuple(attention_mask.shape)}")
    ends = [row.nonzero()[-1, 0].item() for row in attention_mask]
    return pick(logits.float(), torch.tensor(ends))


@bank.mistake("last_logits")
def last_asserts(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """An `assert` guards the arguments. It raises AssertionError, names nothing by itself, and is
    gone under `python -O`; use `raise ValueError` with the argument's name and value.
    """
    if attention_mask is None:
        return logits[:, -1].float()
    assert attention_mask.shape == logits.shape[:2]
    assert bool(attention_mask.any(dim=-1).all())
    return pick(logits.float(), last_real(attention_mask))


@bank.mistake("last_logits")
def last_stays_in_half_precision(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Half-precision logits came back in half precision. What follows (temperature, softmax, sums)
    loses digits there; change to float32 first.
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits, last_real(mask))


@bank.mistake("last_logits")
def masked_stays_in_half_precision(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Without a mask the result is float32, with one it is not: the change stands in one of the two
    branches. Put it before they part.
    """
    if attention_mask is None:
        return logits[:, -1].float()
    return pick(logits, last_real(real_rows(logits, attention_mask)))


@bank.mistake("last_logits")
def zeroes_the_padding_in_place(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The answer is right, but the caller's own logits changed with it. Writing into a tensor that
    was handed in is seen everywhere it is used; make a new one.
    """
    mask = real_rows(logits, attention_mask)
    logits[mask == 0] = 0.0
    return pick(logits.float(), last_real(mask))


@bank.mistake("last_logits")
def numbers_the_mask_in_place(logits: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """The answer is right, but the caller's attention_mask changed with it, and the model needs it
    for the next step. Methods that end in an underscore write in place; make a new tensor.
    """
    mask = real_rows(logits, attention_mask)
    return pick(logits.float(), mask.mul_(torch.arange(mask.shape[1])).amax(dim=-1))
