"""Wrong ways to write the penalties of lesson 6."""

import math

import torch
from torch import Tensor

from solutions.repetition import count_tokens

from ..bank import Bank

bank = Bank("repetition")

BANNED = -torch.inf
PENALTY, FREQUENCY = "apply_repetition_penalty", "apply_frequency_penalty"


def refuse(penalty: float) -> None:
    if not (math.isfinite(penalty) and penalty > 0):
        raise ValueError(f"penalty={penalty}")


def refuse_knobs(presence: float, frequency: float) -> None:
    if not (math.isfinite(presence) and math.isfinite(frequency)):
        raise ValueError(f"presence={presence}, frequency={frequency}")


def rule(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """The sign rule, right: what most mistakes here get right."""
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, penalised, logits)


# --- the rule ---


@bank.mistake(PENALTY)
def always_divides(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Dividing a NEGATIVE logit brings it nearer to 0, so the repeated token becomes more likely:
    -3 / 2 is -1.5. Popular libraries shipped this for a while. What must happen below zero?
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    return torch.where(seen, logits / penalty, logits)


@bank.mistake(PENALTY)
def always_multiplies(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Multiplying a POSITIVE logit makes it larger, so the repeated token becomes more likely.
    Which way does each sign have to move?
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    return torch.where(seen, logits * penalty, logits)


@bank.mistake(PENALTY)
def swaps_the_signs(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The two cases are the wrong way round: seen tokens are rewarded. Try one positive and one
    negative logit by hand; both must go down.
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    penalised = torch.where(logits > 0, logits * penalty, logits / penalty)
    return torch.where(seen, penalised, logits)


@bank.mistake(PENALTY)
def subtracts_the_penalty(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The penalty is subtracted. That is another rule (the presence penalty); this one is a factor,
    and 1.0 must mean off.
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    return torch.where(seen, logits - penalty, logits)


@bank.mistake(PENALTY)
def sign_of_the_whole_row(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """One sign decides for the whole row: tokens on the other side of zero are rewarded. Each logit
    has a sign of its own.
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    positive = logits.amax(dim=-1, keepdim=True) > 0
    penalised = torch.where(positive, logits / penalty, logits * penalty)
    return torch.where(seen, penalised, logits)


@bank.mistake(PENALTY)
def penalises_the_unseen(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The tokens that did NOT occur are penalised. Look at which branch of your condition the seen
    ones take.
    """
    refuse(penalty)
    logits = logits.float()
    unseen = count_tokens(ids, logits, attention_mask) == 0
    return rule(logits, unseen, penalty)


@bank.mistake(PENALTY)
def penalises_all(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Every token is penalised, also those that never occurred: the whole row changes, not the
    entries that `ids` names.
    """
    refuse(penalty)
    logits = logits.float()
    count_tokens(ids, logits, attention_mask)
    return rule(logits, torch.ones_like(logits, dtype=torch.bool), penalty)


@bank.mistake(PENALTY)
def on_probabilities(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The rule was applied to probabilities. They are all positive, so the sign rule never comes
    into play, and they are no longer logits afterwards. Penalise the logits as the model gave them.
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    probs = rule(logits.softmax(dim=-1), seen, penalty)
    return (probs / probs.sum(dim=-1, keepdim=True)).log()


@bank.mistake(PENALTY)
def on_log_probabilities(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The rule was applied after a log-softmax. This rule depends on where zero is, and
    log-probabilities are all negative, so it gives another distribution than on the model's logits.
    """
    refuse(penalty)
    scores = logits.float().log_softmax(dim=-1)
    return rule(scores, count_tokens(ids, scores, attention_mask) > 0, penalty)


@bank.mistake(PENALTY)
def returns_probabilities(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The penalty is right, but probabilities came back. Temperature and the filters come after it
    and want logits; leave the softmax to the end.
    """
    refuse(penalty)
    logits = logits.float()
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty).softmax(dim=-1)


@bank.mistake(PENALTY)
def returns_the_seen_only(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """What comes back are the penalised scores of the tokens in `ids`, one a position. They have to
    go back to their places: the answer is as wide as the vocabulary.
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    return rule(logits, seen, penalty).gather(1, ids)


@bank.mistake(PENALTY)
def drops_the_result(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Nothing was penalised. `scatter` without an underscore changes nothing in place: it hands
    back a new tensor. Where does yours go?
    """
    refuse(penalty)
    logits = logits.float()
    penalised = rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty)
    logits.scatter(1, ids, penalised.gather(1, ids))
    return logits


# --- which tokens count ---


@bank.mistake(PENALTY)
def once_per_occurrence(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """A token that occurs three times is penalised three times, which soon bans every comma. The
    penalty asks whether a token occurred, not how often.
    """
    refuse(penalty)
    logits = logits.float()
    factor = penalty ** count_tokens(ids, logits, attention_mask).float()
    return torch.where(logits > 0, logits / factor, logits * factor)


@bank.mistake(PENALTY)
def grows_with_the_count(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The factor grows with the number of occurrences. That is the idea of the frequency penalty;
    here once and a hundred times weigh the same.
    """
    refuse(penalty)
    logits = logits.float()
    factor = 1 + (penalty - 1) * count_tokens(ids, logits, attention_mask)
    return torch.where(logits > 0, logits / factor, logits * factor)


@bank.mistake(PENALTY)
def repeats_only(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Only tokens that occurred at least TWICE are penalised. Once is enough: the next one would be
    the repetition.
    """
    refuse(penalty)
    logits = logits.float()
    return rule(logits, count_tokens(ids, logits, attention_mask) > 1, penalty)


@bank.mistake(PENALTY)
def skips_the_prompt(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The beginning of the row is left out. The prompt is part of the text too: a token that stands
    there has been seen.
    """
    refuse(penalty)
    logits = logits.float()
    mask = None if attention_mask is None else attention_mask[:, 1:]
    count_tokens(ids, logits, attention_mask)
    return rule(logits, count_tokens(ids[:, 1:], logits, mask) > 0, penalty)


@bank.mistake(PENALTY)
def last_token_only(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Only the last token of each row is penalised, so "very good very good" goes on for ever. All
    positions count.
    """
    refuse(penalty)
    logits = logits.float()
    mask = None if attention_mask is None else attention_mask[:, -1:]
    count_tokens(ids, logits, attention_mask)
    return rule(logits, count_tokens(ids[:, -1:], logits, mask) > 0, penalty)


@bank.mistake(PENALTY)
def misses_the_newest(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The newest token is left out, the one that is most easily repeated at once. Where does your
    slice end?
    """
    refuse(penalty)
    logits = logits.float()
    mask = None if attention_mask is None else attention_mask[:, :-1]
    count_tokens(ids, logits, attention_mask)
    return rule(logits, count_tokens(ids[:, :-1], logits, mask) > 0, penalty)


@bank.mistake(PENALTY)
def last_64_tokens(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Only the last 64 tokens count. llama.cpp has such a window; in this course the whole text
    counts, so that the result does not jump when a token leaves it.
    """
    refuse(penalty)
    logits = logits.float()
    mask = None if attention_mask is None else attention_mask[:, -64:]
    count_tokens(ids, logits, attention_mask)
    return rule(logits, count_tokens(ids[:, -64:], logits, mask) > 0, penalty)


@bank.mistake(PENALTY)
def one_history_for_the_batch(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """What one row said is held against all rows. Each text of a batch is a text of its own; in
    your set of seen ids, which row do they come from?
    """
    refuse(penalty)
    logits = logits.float()
    seen = (count_tokens(ids, logits, attention_mask) > 0).any(dim=0)
    return rule(logits, seen.expand_as(logits), penalty)


@bank.mistake(PENALTY)
def history_of_row_zero(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Row 0's history is used for every row. With one row that is right, which is why it went
    unseen; look for a fixed index 0.
    """
    refuse(penalty)
    logits = logits.float()
    seen = (count_tokens(ids, logits, attention_mask) > 0)[:1]
    return rule(logits, seen.expand_as(logits), penalty)


@bank.mistake(PENALTY)
def only_row_zero(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Row 0 is penalised, the other rows come back as they were. Does your loop over the rows end
    too early, or does your index name one row only?
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    seen[1:] = False
    return rule(logits, seen, penalty)


# --- padding ---


@bank.mistake(PENALTY)
def counts_padding(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Padding was counted as text, so a short row of a batch is penalised for tokens that it never
    said. The mask is 1 where a token is real; does your code read it?
    """
    refuse(penalty)
    logits = logits.float()
    return rule(logits, count_tokens(ids, logits) > 0, penalty)


@bank.mistake(PENALTY)
def mask_the_wrong_way_round(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """With a mask, the padding is penalised and the text is not: 1 stands for a real token, 0 for
    padding.
    """
    refuse(penalty)
    logits = logits.float()
    mask = None if attention_mask is None else 1 - attention_mask
    return rule(logits, count_tokens(ids, logits, mask) > 0, penalty)


@bank.mistake(PENALTY)
def spares_the_pad_id(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """An id that pads somewhere is never penalised, even where the text itself has it. Often the
    pad id IS a real token (eos); it is the position that is padding, not the id.
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    if attention_mask is not None:
        seen &= count_tokens(ids, logits, 1 - attention_mask) == 0
    return rule(logits, seen, penalty)


@bank.mistake(PENALTY)
def padding_becomes_token_zero(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Token 0 is penalised in rows that only have padding for it: `ids * mask` turns padding into
    id 0, which is a token like any other.
    """
    refuse(penalty)
    logits = logits.float()
    shown = ids
    if attention_mask is not None:
        count_tokens(ids, logits, attention_mask)
        shown = ids * attention_mask
    return rule(logits, count_tokens(shown, logits) > 0, penalty)


# --- the penalty itself ---


@bank.mistake(PENALTY)
def below_one_is_off(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """A penalty below 1 does nothing. It is allowed and encourages repetition: the same rule, with
    no case of its own.
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    return rule(logits, seen, max(penalty, 1.0))


@bank.mistake(PENALTY)
def below_one_is_refused(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """A penalty between 0 and 1 was refused. Encouraging repetition is unusual, but allowed: only
    what cannot be computed with is an error.
    """
    refuse(penalty)
    if penalty < 1:
        raise ValueError(f"penalty={penalty}")
    logits = logits.float()
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty)


@bank.mistake(PENALTY)
def penalty_not_checked(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Any penalty passes, 0 and NaN too, and the nonsense shows up far away, as a strange text or a
    NaN. Refuse it at the door: ValueError, with the argument's name and value.
    """
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    # torch divides by 0.0 without a word
    return rule(logits, seen, torch.tensor(penalty))  # type: ignore[arg-type]


@bank.mistake(PENALTY)
def zero_is_let_through(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """A penalty of 0 passes and divides by zero. The limit itself is not allowed: look at the
    comparison at the top.
    """
    if not (math.isfinite(penalty) and penalty >= 0):
        raise ValueError(f"penalty={penalty}")
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    return rule(logits, seen, torch.tensor(penalty))  # type: ignore[arg-type]


@bank.mistake(PENALTY)
def nan_slips_through(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """NaN or infinity passes as a penalty: `penalty <= 0` is False for both. Ask for what is
    allowed, a finite number, rather than for what is not.
    """
    if penalty <= 0:
        raise ValueError(f"penalty={penalty}")
    logits = logits.float()
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty)


@bank.mistake(PENALTY)
def infinity_slips_through(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """An infinite penalty passes: it is above 0 and not NaN, but infinity times 0 is NaN. A penalty
    has to be finite.
    """
    if not penalty > 0:
        raise ValueError(f"penalty={penalty}")
    logits = logits.float()
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty)


@bank.mistake(PENALTY)
def asserts_the_penalty(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The bad penalty is caught, but by an `assert`: Python leaves those out when it runs with -O.
    What a caller may get wrong raises ValueError.
    """
    assert math.isfinite(penalty) and penalty > 0, f"penalty={penalty}"
    logits = logits.float()
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty)


# --- what comes in, and what becomes of it ---


@bank.mistake(PENALTY)
def writes_into_the_input(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The answer is right, but the caller's own logits changed with it. `float()` and a slice may
    be the same memory; write into a clone, or make a new tensor.
    """
    refuse(penalty)
    seen = count_tokens(ids, logits, attention_mask) > 0
    wide = logits.float()
    wide[seen] = rule(wide, seen, penalty)[seen]
    return wide


@bank.mistake(PENALTY)
def overwrites_the_padding(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """The answer is right, but the caller's `ids` changed with it: padding was overwritten in the
    tensor that was handed in. Every argument belongs to the caller, not the logits alone.
    """
    refuse(penalty)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    if attention_mask is not None:
        newest = ids.gather(1, attention_mask.cumsum(dim=1).argmax(dim=1, keepdim=True))
        ids.copy_(torch.where(attention_mask.bool(), ids, newest))
    return rule(logits, seen, penalty)


@bank.mistake(PENALTY)
def arithmetic_with_the_mask(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """A banned token became NaN: `x * seen + y * (1 - seen)` multiplies -inf by 0. Choose between
    two tensors instead of adding them.
    """
    refuse(penalty)
    logits = logits.float()
    seen = (count_tokens(ids, logits, attention_mask) > 0).float()
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    return penalised * seen + logits * (1 - seen)


@bank.mistake(PENALTY)
def lifts_the_bans(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """A ban (-inf) became a finite number, and a later step may bring the token back. Infinity
    times a penalty is still infinity: nothing needs to be cleaned up.
    """
    refuse(penalty)
    logits = logits.float().nan_to_num()
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty)


@bank.mistake(PENALTY, family="half precision")
def stays_in_half_precision(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Half-precision logits lost their digits: 1/3 came back as 0.334. Change to float32 FIRST,
    apply the rule there, and leave the answer in float32.
    """
    refuse(penalty)
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty)


@bank.mistake(PENALTY, family="half precision")
def widens_too_late(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """float32 came back, but the digits were lost before: widening at the end cannot bring them
    back. Change to float32 first.
    """
    refuse(penalty)
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty).float()


@bank.mistake(PENALTY, family="half precision")
def narrows_again(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Computed in float32, but rounded back to the dtype of the input at the end. The rest of the
    chain wants float32.
    """
    refuse(penalty)
    wide = logits.float()
    return rule(wide, count_tokens(ids, wide, attention_mask) > 0, penalty).to(logits.dtype)


@bank.mistake(PENALTY)
def off_without_a_word(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """A penalty of 1.0 hands the logits back at once, before anything was checked or changed to
    float32. A shortcut has to keep the other promises too: ids, shapes, dtype.
    """
    refuse(penalty)
    if penalty == 1:
        return logits
    logits = logits.float()
    return rule(logits, count_tokens(ids, logits, attention_mask) > 0, penalty)


@bank.mistake(PENALTY)
def trusts_the_ids(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """An id outside the vocabulary is met by Python's own indexing: -1 quietly means the last
    token, and too large a one raises IndexError. Look at the ids before you use them, and raise
    ValueError that names the id and the vocabulary.
    """
    refuse(penalty)
    real = torch.ones_like(ids) if attention_mask is None else attention_mask
    answer = logits.float().clone()
    count_tokens(torch.zeros_like(ids), logits, attention_mask)
    for scores, tokens, mask in zip(answer, ids, real, strict=True):
        for token in {int(t) for t, m in zip(tokens, mask, strict=True) if m}:
            scores[token] = (
                scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
            )
    return answer


@bank.mistake(PENALTY)
def leaves_the_ids_to_scatter(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """An id outside the vocabulary reaches torch, whose RuntimeError speaks of an index and not of
    your argument (on a GPU it takes the whole process down). Check the ids yourself, ValueError.
    """
    refuse(penalty)
    logits = logits.float()
    count_tokens(torch.zeros_like(ids), logits, attention_mask)
    real = torch.ones_like(ids) if attention_mask is None else attention_mask
    counts = torch.zeros_like(logits).scatter_add(1, ids.long(), real.float())
    return rule(logits, counts > 0, penalty)


@bank.mistake(PENALTY)
def ignores_unknown_ids(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Ids outside the vocabulary are passed over in silence. They are a sign that the tokenizer and
    the model do not belong together; say so with ValueError.
    """
    refuse(penalty)
    logits = logits.float()
    real = torch.ones_like(ids) if attention_mask is None else attention_mask
    known = ((ids >= 0) & (ids < logits.shape[-1])).long()
    count_tokens(torch.zeros_like(ids), logits, attention_mask)
    return rule(logits, count_tokens(ids * known, logits, real * known) > 0, penalty)


@bank.mistake(PENALTY)
def broadcasts_the_history(
    logits: Tensor, ids: Tensor, penalty: float, attention_mask: Tensor | None = None
) -> Tensor:
    """Ids or a mask with one row, or one column, were stretched over the whole batch without a
    word. torch broadcasts where it can; compare the shapes and raise ValueError.
    """
    refuse(penalty)
    logits = logits.float()
    every = ids.expand(len(logits), -1)
    mask = None if attention_mask is None else attention_mask.expand_as(every)
    return rule(logits, count_tokens(every, logits, mask) > 0, penalty)


# --- stretch ---


@bank.mistake(FREQUENCY)
def frequency_once(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """Both penalties are subtracted once. Presence asks whether a token occurred; frequency asks
    how often.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    seen = count_tokens(ids, logits, attention_mask) > 0
    return logits - (presence + frequency) * seen


@bank.mistake(FREQUENCY)
def presence_per_occurrence(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The presence penalty grows with the count. It is paid once, by whoever is there at all; only
    frequency is paid each time.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    return logits - (presence + frequency) * count_tokens(ids, logits, attention_mask)


@bank.mistake(FREQUENCY)
def presence_for_all(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The presence penalty is taken from every token, and a softmax does not even notice. Only
    tokens that occur pay it.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    return logits - presence - frequency * count_tokens(ids, logits, attention_mask)


@bank.mistake(FREQUENCY)
def counts_from_the_second(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The first occurrence is not counted. The rule is frequency times count, and one occurrence is
    a count of 1.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask)
    return logits - presence * (counts > 0) - frequency * (counts - 1).clamp(min=0)


@bank.mistake(FREQUENCY)
def adds_instead(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """Seen tokens are rewarded: the penalties are added. A penalty above 0 has to pull down."""
    refuse_knobs(presence, frequency)
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask)
    return logits + presence * (counts > 0) + frequency * counts


@bank.mistake(FREQUENCY)
def share_of_the_text(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The count was divided by the length of the text. "Frequency" means a count here, not a share:
    it is not normalised.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask)
    return logits - presence * (counts > 0) - frequency * counts / ids.shape[1]


@bank.mistake(FREQUENCY)
def counts_the_padding(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """Padding was counted as text. A position with mask 0 adds nothing to any count."""
    refuse_knobs(presence, frequency)
    logits = logits.float()
    counts = count_tokens(ids, logits)
    return logits - presence * (counts > 0) - frequency * counts


@bank.mistake(FREQUENCY)
def counts_the_whole_batch(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The counts of all rows were added up. Each text of a batch has counts of its own: they have
    the shape of the logits.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask).sum(dim=0, keepdim=True)
    return logits - presence * (counts > 0) - frequency * counts


@bank.mistake(FREQUENCY)
def multiplies_by_presence(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The logits of seen tokens were scaled. These penalties are differences, which is why, unlike
    the repetition penalty, they do not care where zero is.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask)
    return logits * (1 - presence * (counts > 0) - frequency * counts)


@bank.mistake(FREQUENCY)
def refuses_encouragement(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """A value below zero was refused. It is allowed, and encourages repetition."""
    refuse_knobs(presence, frequency)
    if presence < 0 or frequency < 0:
        raise ValueError(f"presence={presence}, frequency={frequency}")
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask)
    return logits - presence * (counts > 0) - frequency * counts


@bank.mistake(FREQUENCY)
def frequency_in_half_precision(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """Half-precision logits were computed in half precision, which has too few digits. Change to
    float32 first, and leave the answer there.
    """
    refuse_knobs(presence, frequency)
    counts = count_tokens(ids, logits, attention_mask)
    return logits - (presence * (counts > 0) + frequency * counts).to(logits.dtype)


@bank.mistake(FREQUENCY)
def counts_in_half_precision(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The counts got stuck: `zeros_like(logits)` has the dtype of the logits, and in bfloat16
    256 + 1 is 256. Count in whole numbers, or in float32.
    """
    refuse_knobs(presence, frequency)
    count_tokens(ids, logits, attention_mask)
    real = torch.ones_like(ids) if attention_mask is None else attention_mask
    counts = torch.zeros_like(logits)
    for place in range(ids.shape[1]):
        counts.scatter_add_(1, ids[:, place, None], real[:, place, None].to(counts.dtype))
    return logits.float() - presence * (counts > 0) - frequency * counts.float()


@bank.mistake(FREQUENCY)
def frequency_in_place(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The answer is right, but the caller's own logits changed with it: `-=` writes into the tensor
    that was handed in.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask)
    logits -= presence * (counts > 0) + frequency * counts
    return logits


@bank.mistake(FREQUENCY)
def knobs_not_checked(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """NaN or infinity passes as a penalty, and turns logits into NaN, or into bans that nobody
    asked for. Both knobs have to be finite; raise ValueError for the one that is not.
    """
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask)
    return logits - presence * (counts > 0) - frequency * counts


@bank.mistake(FREQUENCY)
def only_presence_checked(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """`presence` is checked and `frequency` is not: NaN passes there. Both knobs have to be
    finite.
    """
    refuse_knobs(presence, 0.0)
    logits = logits.float()
    counts = count_tokens(ids, logits, attention_mask)
    return logits - presence * (counts > 0) - frequency * counts


@bank.mistake(FREQUENCY)
def frequency_trusts_the_ids(
    logits: Tensor,
    ids: Tensor,
    *,
    presence: float = 0.0,
    frequency: float = 0.0,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """An id outside the vocabulary reaches torch, whose RuntimeError speaks of an index and not of
    your argument. Check the ids first, as the repetition penalty does, and raise ValueError.
    """
    refuse_knobs(presence, frequency)
    logits = logits.float()
    real = torch.ones_like(ids) if attention_mask is None else attention_mask
    counts = torch.zeros_like(logits).scatter_add(1, ids.long(), real.float())
    return logits - presence * (counts > 0) - frequency * counts
