"""Wrong ways to write min_p_filter."""

from torch import Tensor

from .common import BANNED, ban, bank, mass_before, nucleus_mask, prepared


@bank.mistake("min_p_filter")
def min_p_as_a_probability(logits: Tensor, min_p: float | None) -> Tensor:
    """min_p is taken for a probability that a token must have. It is a share of the BEST token's
    probability, so the threshold falls where the model is unsure.
    """
    logits = prepared(logits, min_p, "min_p")
    if not min_p:
        return logits
    return logits.masked_fill(logits.softmax(dim=-1) < min_p, BANNED)


@bank.mistake("min_p_filter")
def min_p_of_the_best_logit(logits: Tensor, min_p: float | None) -> Tensor:
    """Logits are compared with a share of the best LOGIT. Shares are for probabilities: half a
    logit means nothing, and of a negative one it is even larger.
    """
    logits = prepared(logits, min_p, "min_p")
    if not min_p:
        return logits
    return logits.masked_fill(logits < min_p * logits.amax(dim=-1, keepdim=True), BANNED)


@bank.mistake("min_p_filter")
def min_p_of_the_whole_batch(logits: Tensor, min_p: float | None) -> Tensor:
    """The best probability of the whole batch sets the threshold for every row. Each row has a best
    token of its own; `max` without an axis forgets the rows.
    """
    logits = prepared(logits, min_p, "min_p")
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.max(), BANNED)


@bank.mistake("min_p_filter")
def min_p_threshold_lost_its_axis(logits: Tensor, min_p: float | None) -> Tensor:
    """Taking the maximum dropped an axis: thresholds of shape (B,) line up with the columns of
    (B, V), not with its rows. The last axis must stay, with length 1.
    """
    logits = prepared(logits, min_p, "min_p")
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1), BANNED)


@bank.mistake("min_p_filter")
def min_p_strictly_above(logits: Tensor, min_p: float | None) -> Tensor:
    """With min_p = 1 no token is left, not even the best: a token exactly at the threshold is
    dropped. At least is the rule.
    """
    logits = prepared(logits, min_p, "min_p")
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs <= min_p * probs.amax(dim=-1, keepdim=True), BANNED)


@bank.mistake("min_p_filter")
def min_p_one_is_off(logits: Tensor, min_p: float | None) -> Tensor:
    """min_p = 1 switched the filter off. That is the rule of top-p; here 1 is the strictest value,
    and 0 is off.
    """
    logits = prepared(logits, min_p, "min_p")
    if not min_p or min_p == 1:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), BANNED)


@bank.mistake("min_p_filter")
def min_p_upside_down(logits: Tensor, min_p: float | None) -> Tensor:
    """The tokens above the threshold are banned, those below stay. Read the mask aloud: where it is
    True, what happens?
    """
    logits = prepared(logits, min_p, "min_p")
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs >= min_p * probs.amax(dim=-1, keepdim=True), BANNED)


@bank.mistake("min_p_filter")
def min_p_is_top_p(logits: Tensor, min_p: float | None) -> Tensor:
    """That is top-p again, under another name. Here nothing is added up: each token is measured
    against the best one.
    """
    logits = prepared(logits, min_p, "min_p")
    if min_p is None or min_p == 1:
        return logits
    before, order = mass_before(logits)
    return ban(logits, order, nucleus_mask(before, min_p))


@bank.mistake("min_p_filter")
def min_p_fills_with_zero(logits: Tensor, min_p: float | None) -> Tensor:
    """A logit of 0 is not a ban: e to the 0 is 1, so such a token still gets probability. What
    logit does the softmax turn into probability 0?
    """
    logits = prepared(logits, min_p, "min_p")
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), 0.0)


@bank.mistake("min_p_filter")
def min_p_returns_probabilities(logits: Tensor, min_p: float | None) -> Tensor:
    """Probabilities came back where logits are wanted: whatever comes next takes a softmax of them
    and flattens them. Compare probabilities, but filter the scores.
    """
    probs = prepared(logits, min_p, "min_p").softmax(dim=-1)
    return probs.masked_fill(probs < (min_p or 0) * probs.amax(dim=-1, keepdim=True), 0.0)


@bank.mistake("min_p_filter")
def min_p_writes_into_the_input(logits: Tensor, min_p: float | None) -> Tensor:
    """The answer is right, but the caller's own logits changed with it. Writing into a tensor that
    was handed in is seen everywhere it is used; make a new one.
    """
    probs = prepared(logits, min_p, "min_p").softmax(dim=-1)
    if min_p:
        logits[probs < min_p * probs.amax(dim=-1, keepdim=True)] = BANNED
    return logits.float()


@bank.mistake("min_p_filter")
def min_p_stays_in_half_precision(logits: Tensor, min_p: float | None) -> Tensor:
    """Half-precision logits came back in half precision. What follows (softmax, sums) loses digits
    there; change to float32 first.
    """
    prepared(logits, min_p, "min_p")
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), BANNED)


@bank.mistake("min_p_filter")
def min_p_none_is_not_off(logits: Tensor, min_p: float) -> Tensor:
    """min_p = None reaches arithmetic that needs a number. A knob that is not set is None: say what
    happens then before you use it.
    """
    if not 0 <= min_p <= 1:
        raise ValueError(f"min_p={min_p}")
    probs = logits.float().softmax(dim=-1)
    return logits.float().masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), BANNED)


@bank.mistake("min_p_filter")
def min_p_accepts_anything(logits: Tensor, min_p: float | None) -> Tensor:
    """A min_p outside [0, 1] passes silently: below 0 nothing is banned, above 1 everything is.
    Neither can be meant; ValueError, with the argument's name and value.
    """
    logits = logits.float()
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), BANNED)


@bank.mistake("min_p_filter")
def min_p_lets_nan_through(logits: Tensor, min_p: float | None) -> Tensor:
    """NaN passed your test: it is neither below 0 nor above 1, for every comparison with it is
    false. Ask what min_p must BE instead of what it must not be.
    """
    if min_p is not None and (min_p < 0 or min_p > 1):
        raise ValueError(f"min_p={min_p}")
    logits = logits.float()
    if not min_p:
        return logits
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), BANNED)
