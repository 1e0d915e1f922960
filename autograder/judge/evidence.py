"""Whether a function that is right on printed examples is right on their twins.

Only functions that were wrong on an input of the grader's are looked at so: a right one is no
table.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress, zip_longest
from typing import Any

import torch

from course_lib.checks.record import Summary, alike, encode

from .twins import (
    LIVES,
    MODES,
    AskedCall,
    Session,
    change,
    is_plain,
    numbers_of,
    twin_of_call,
    twin_of_session,
    vocabulary,
)
from .wire import WireError

TURNS = 6  # twins of one call that are made, to have two that agree
MOST_CALLS = 24  # of one check

REFUSED = "refused"
AS_DISTRIBUTIONS = {"apply_temperature"}  # right answers of these have one softmax in common
Seeds = Callable[[str], int]


@dataclass(frozen=True)
class Found:
    """What came of the twins of one printed call, or of one object's life."""

    right: int = 0
    wrong: int = 0
    right_by_insight: int = 0  # where no argument, nothing and no babble is the answer
    wrong_by_insight: int = 0
    refused: bool = False  # the printed call has wrong arguments

    @property
    def is_table(self) -> bool:
        """Whether it is wrong on most; what can be said without insight counts if nothing else."""
        if self.right_by_insight or self.wrong_by_insight:
            return self.wrong_by_insight > self.right_by_insight
        return self.wrong > self.right

    def and_one(self, is_right: bool, by_insight: bool) -> Found:
        return replace(
            self,
            right=self.right + is_right,
            wrong=self.wrong + (not is_right),
            right_by_insight=self.right_by_insight + (is_right and by_insight),
            wrong_by_insight=self.wrong_by_insight + (not is_right and by_insight),
        )

    @property
    def is_settled(self) -> bool:
        """Whether two of three twins that could be compared agree."""
        return max(self.right_by_insight, self.wrong_by_insight) == 2 or self.right + self.wrong > 3


@dataclass(frozen=True)
class Lived:
    """Stands for an object of the learner's among the arguments of a call: its life so far."""

    session: Session


@dataclass(frozen=True)
class Sides:
    """Who answers: the learner's function or class, the reference's, and one that knows nothing."""

    student: Callable[..., Any]
    reference: Callable[..., Any]
    babble: Callable[..., Any]
    summary: Summary | None = None  # what of answers can be compared, if not all
    cache: Any = None  # the reference's KVCache


def try_call(call: AskedCall, sides: Sides, seeds: Seeds) -> Found:
    """Compare student and reference on twins of a call. Raises WireError when the child ends."""
    call = revived(call, sides)
    printed = outcome(sides.reference, call, sides, 0)
    if printed is None:
        return Found()
    found = Found(refused=printed == REFUSED)
    for turn in range(TURNS):
        if found.is_settled:
            break
        how = change(MODES[turn % len(MODES)], seeds(f"twin {turn}"))
        try:
            twin = twin_of_call(call, sides.reference, how, refused=found.refused)
        except (IndexError, RuntimeError, TypeError, ValueError):
            continue  # arguments so wrong that they have none
        if look(twin) == look(call):
            continue  # what was printed already
        wanted, again = (outcome(sides.reference, twin, sides, seed) for seed in (1, 2))
        if wanted is None or (wanted == REFUSED) is not found.refused or not agree(wanted, again):
            continue  # other numbers may not stand everywhere, and chance is no answer
        given = [reduced(value, sides) for value in (*twin[1], *twin[2].values())]
        idle = [outcome(sides.babble, twin, sides, 1), *given]
        by_insight = not found.refused and not any(agree(wanted, one) for one in idle)
        said = outcome(sides.student, twin, sides, 1)
        is_idle = any(alike(said, one) for one in idle)
        is_right = alike(said, wanted) or (not is_idle and agree(said, wanted))
        found = found.and_one(is_right, by_insight)
    return found


def agree(a: Any, b: Any) -> bool:
    """Whether two answers are the same in what all right answers have in common."""
    if isinstance(a, dict) and isinstance(b, dict):
        return bool(alike(a.get("common"), b.get("common")))
    return alike(a, b)


def outcome(function: Callable[..., Any], call: AskedCall, sides: Sides, seed: int) -> Any:
    """What a function answers on copies of the arguments, as data; None if it breaks."""
    _, args, kwargs = call
    values = [lent(value, seed) for value in (*args, *kwargs.values())]
    named = dict(zip(kwargs, values[len(args) :], strict=True))
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        return reduced(function(*values[: len(args)], **named), sides)
    except WireError:
        raise
    except ValueError:
        return REFUSED
    except Exception:  # whatever a learner's function raises where it should answer
        return None
    finally:
        torch.set_rng_state(before)


def lent(value: Any, seed: int) -> Any:
    if isinstance(value, torch.Generator):
        return torch.Generator().manual_seed(seed)
    return copy.deepcopy(value)


def reduced(value: Any, sides: Sides) -> Any:
    """An answer as data: the text of a stream, and of what differs between right answers only what
    the check itself remembers.
    """
    if isinstance(value, Iterator):
        pieces = list(value)
        return (
            "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else encode(pieces)
        )
    common = value
    if sides.summary is not None:
        # an answer may be of another kind than asked for
        with suppress(AttributeError, TypeError, ValueError, RuntimeError, LookupError):
            common = sides.summary([value])[0]
    return {"whole": encode(value), "common": encode(common)}


def distributions(answers: list[Any]) -> list[Any]:
    return [[answer.double().softmax(dim=-1), answer == -torch.inf] for answer in answers]


def look(call: AskedCall) -> Any:
    """What a call is made of, as data."""
    _, args, kwargs = call
    return [
        [encode(held) for held in numbers_of(value)]
        if vocabulary(value) is not None
        else encode(value)
        for value in (*args, *kwargs.values())
    ]


def revived(call: AskedCall, sides: Sides) -> AskedCall:
    """The call with the reference's objects in place of the learner's."""
    name, args, kwargs = call

    def alive(value: Any) -> Any:
        return live(sides.cache, value.session)[0] if isinstance(value, Lived) else value

    return name, tuple(map(alive, args)), {key: alive(value) for key, value in kwargs.items()}


# --- objects ---


def try_session(session: Session, sides: Sides, seeds: Seeds) -> Found:
    """Compare two classes on twins of an object's life. Raises WireError when the child ends."""
    _, printed = live(sides.reference, session)
    _, own = live(sides.student, session)
    # an answer that is another one on what is printed is none that the check looks at
    seen = [roughly(a, b) for a, b in zip(own, printed, strict=False)]
    found = Found(refused=set(map(str, printed)) == {REFUSED})
    for turn, mode in enumerate(LIVES):
        if mode != "values" and not is_plain(session):
            continue
        twin = twin_of_session(session, change(mode, seeds(f"life {turn}")))
        _, wanted = live(sides.reference, twin)
        if found.refused is not (set(map(str, wanted)) == {REFUSED}):
            continue
        _, said = live(sides.student, twin)
        pairs = list(compress(zip_longest(said, wanted), seen))
        # an empty length, and what was appended to nothing, are soon said; so is one answer always
        idle = [[encode([x for x in args if isinstance(x, torch.Tensor)])] for _, args, _ in twin]
        answers = {
            str(one)
            for (_, one), same in zip(pairs, compress(idle, seen), strict=False)
            if one not in ([None], [0], REFUSED) and not alike(one, same)
        }
        by_insight = len(answers) > (0 if all(seen) else 1)
        found = found.and_one(all(alike(a, b) for a, b in pairs), by_insight)
    return found


def roughly(a: Any, b: Any) -> bool:
    """Whether two answers could pass for the same in any check."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(roughly(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(roughly, a, b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=0.05, abs_tol=0.05)
    return bool(a == b)


def live(cls: Callable[..., Any], session: Session) -> tuple[Any, list[Any]]:
    """An object after that life, and what it answered."""
    made: Any = None
    answers: list[Any] = []
    for name, args, kwargs in session:
        args, kwargs = copy.deepcopy((args, kwargs))
        try:
            if name == "__init__":
                made = cls(*args, **kwargs)
                answers.append([None])
                continue
            held = getattr(made, name)
            answers.append([encode(held if name == "length" else held(*args, **kwargs))])
        except WireError:
            raise
        except ValueError:
            answers.append(REFUSED)
        except Exception:  # as above
            answers.append(None)
        if made is None:
            break
    return made, answers


def verdict(found: Sequence[Found], *, manners: bool) -> bool:
    """Whether a check's examples are answered from a table: one of its calls is enough.

    Of a check of `manners` only the refusals say something: whoever leaves the input as it is has
    done so whatever the answer was.
    """
    return any(one.is_table for one in found if one.refused or not manners)
