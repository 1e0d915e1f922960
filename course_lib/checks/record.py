"""Remember what a check called and what came back, and compare it with what is known.

A check calls `student.top_k_filter(...)`; the student it is handed is a `Recorder`, which passes
the call on and keeps a `Call`: the arguments as they were, the outcome, and what the call did to
its arguments.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

# set while a check makes calls that should raise
REFUSAL_WANTED: ContextVar[bool] = ContextVar("refusal_wanted", default=False)
# what calls of this check have made of its tensors and lists, by the id of the check's own
CHANGED: ContextVar[dict[int, tuple[Any, Any]]] = ContextVar("changed")
LARGEST_LISTED = 64  # a tensor of more elements is remembered by its shape and a few projections
MOST_REMEMBERED = 10_000  # items of a list, characters of a text
REL, ABS = 1e-4, 1e-5

# what is to be remembered of the answers to some calls, a value an answer
Summary = Callable[[list[Any]], list[Any]]


class StudentRaised(Exception):
    """The learner's function raised; `original` is what it raised, `call` is the call."""

    def __init__(self, call: Call, original: BaseException) -> None:
        super().__init__(f"{call.function} raised {type(original).__name__}: {original}")
        self.call, self.original = call, original
        self.expected = ""  # what the check wanted to see raised, if it wanted that at all


@dataclass
class Call:
    """One call of a learner's function."""

    function: str  # "top_k_filter", "KVCache", "KVCache.append"
    arguments: list[tuple[str | None, Any]]  # (name, value as it was before the call)
    returned: Any = None
    raised: BaseException | None = None
    outcome: dict[str, Any] | None = None  # `returned` or `raised` as comparable data

    def describe(self) -> str:
        """The call as a person would write it: `top_k_filter(logits=[[4, 3]], k=1)`."""
        inside = ", ".join(
            describe(value) if name is None else f"{name}={describe(value)}"
            for name, value in self.arguments
        )
        return f"{self.function}({inside})"


class Recorder:
    """Stands for a learner's module (or the judge's proxy of it) and keeps every call."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self._calls: list[Call] = []

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._target, name)
        if not callable(target):
            return target
        return lambda *args, **kwargs: recorded_call(self._calls, name, target, args, kwargs)


class RecordedObject:
    """A learner's object, such as a KVCache: its methods are recorded too."""

    def __init__(self, calls: list[Call], name: str, target: Any) -> None:
        self._calls, self._name, self._target = calls, name, target

    def __getattr__(self, name: str) -> Any:
        function = f"{self._name}.{name}"
        # a property may raise as a method may, so reading it is a call too
        holder = getattr(type(self._target), name, None)
        if not callable(holder):
            return recorded_call(self._calls, function, lambda: getattr(self._target, name), (), {})
        method = getattr(self._target, name)
        return lambda *args, **kwargs: recorded_call(self._calls, function, method, args, kwargs)


def recorded_call(
    calls: list[Call],
    name: str,
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call `target` and keep the Call; what it raises becomes StudentRaised.

    It gets copies: a function that changes its arguments must not change what the check goes on to
    compare with. What it made of them is what `as_left` tells.
    """
    # a class or method gets the learner's own object, not its recorder
    lent = [fresh(bare(value)) for value in (*args, *kwargs.values())]
    args, kwargs, given = (
        tuple(lent[: len(args)]),
        dict(zip(kwargs, lent[len(args) :], strict=True)),
        (*args, *kwargs.values()),
    )
    named = name_arguments(target, args, kwargs)
    before = [(key, snapshot(value)) for key, value in named]
    call = Call(name, before)
    calls.append(call)
    try:
        returned = target(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a learner's exit() is an answer like any other
        call.raised = error
        call.outcome = {"raised": type(error).__name__} | effects(named, before) | purpose()
        raise StudentRaised(call, error) from error
    finally:
        remember_changes(given, lent, before)
    call.returned = snapshot(returned)
    call.outcome = {"returned": encode(returned)} | effects(named, before) | purpose()
    if isinstance(returned, Iterator):
        return recorded_pieces(call, returned, named, before)
    if inspect.isclass(target):
        return RecordedObject(calls, name, returned)
    return returned


def fresh(value: Any) -> Any:
    """A tensor or list of the same content and layout, any other value itself."""
    if isinstance(value, Tensor):
        # a view has gaps or repeats: all from its first to its last element is copied
        with torch.inference_mode(value.is_inference()):
            return span(value.detach()).clone().as_strided(value.shape, value.stride())
    return [fresh(item) for item in value] if type(value) is list else value


def span(value: Tensor) -> Tensor:
    """The memory of a tensor from its first to its last element, flat: strides are kept so."""
    return value.as_strided((extent(value.shape, value.stride()),), (1,))


def extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """How many places lie from the first to the last element of such a tensor."""
    if not all(shape):
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


def remember_changes(
    given: tuple[Any, ...], lent: list[Any], before: list[tuple[str | None, Any]]
) -> None:
    """Note which copies are no longer what they were, under the check's own values."""
    noted = CHANGED.get({})
    for own, copy, (_, old) in zip(given, lent, before, strict=True):
        if differs(copy, old):
            noted[id(own)] = (own, copy)


def as_left(value: Any) -> Any:
    """A check's tensor or list as the calls have left it."""
    return CHANGED.get({}).get(id(value), (None, value))[1]


def purpose() -> dict[str, bool]:
    """Marks the outcome of a call that a check makes with a wrong argument, to be refused."""
    return {"refusal": True} if REFUSAL_WANTED.get() else {}


def recorded_pieces(
    call: Call,
    pieces: Iterator[Any],
    named: list[tuple[str | None, Any]],
    before: list[tuple[str | None, Any]],
) -> Iterator[Any]:
    """The pieces of a stream as they are taken; the outcome of the call grows with them.

    It holds each piece, the work that models had done when it came, and the effects at the end.
    """
    taken: list[Any] = []
    encoded: list[Any] = []
    along: list[Any] = []
    call.returned, call.outcome = taken, {"returned": encoded, "along": along} | purpose()
    try:
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                call.outcome["result"] = encode(end.value)
                return end.value
            except (Exception, SystemExit) as error:
                call.raised = error
                call.outcome["raised"] = type(error).__name__
                raise StudentRaised(call, error) from error
            taken.append(snapshot(piece))
            encoded.append(encode(piece))
            now = effects(named, before)
            work = [len(seen.get("forwarded", [])) for seen in now.get("footprints", [])]
            along.append([*work, torch.is_grad_enabled()])
            yield piece
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
        call.outcome |= effects(named, before)


def name_arguments(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str | None, Any]]:
    """Arguments with the names the function gives them, where it can be asked."""
    try:
        names: list[str | None] = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        names = []
    names += [None] * len(args)
    return [*zip(names, args, strict=False), *kwargs.items()]


def bare(value: Any) -> Any:
    return value._target if isinstance(value, RecordedObject) else value


def snapshot(value: Any) -> Any:
    """A value as it is now, safe from what happens to it later."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) in (list, tuple):
        return type(value)(snapshot(item) for item in value)
    return value


def effects(
    after: list[tuple[str | None, Any]], before: list[tuple[str | None, Any]]
) -> dict[str, Any]:
    """What a call did besides returning: arguments it changed, how it used models given to it,
    whether it left gradients switched off.
    """
    changed = [
        name for (name, new), (_, old) in zip(after, before, strict=True) if differs(new, old)
    ]
    # a learner's own object has none, and asking its recorder would be a call
    used = [bare(value) for _, value in after]
    prints = [value.footprint() for value in used if hasattr(value, "footprint")]
    found = {"changed": changed, "footprints": prints, "no_gradients": not torch.is_grad_enabled()}
    return {name: value for name, value in found.items() if value}


def differs(new: Any, old: Any) -> bool:
    """Whether an argument that was handed in has changed, as tensors and lists can."""
    if isinstance(new, Tensor):
        return not identical(new, old)
    return isinstance(new, list) and encode(new) != encode(old)


def identical(a: Tensor, b: Tensor) -> bool:
    """Equal shape, dtype and bytes' worth of values; NaN equals NaN."""
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.equal(a.nan_to_num(nan=1.5e38), b.nan_to_num(nan=1.5e38))
    )


# --- outcomes as data ---


def summarise(calls: list[Call], summary: Summary) -> None:
    """Remember of the calls' answers only what `summary` makes of them."""
    answered = [call for call in calls if call.raised is None]
    try:
        short = summary([call.returned for call in answered])
    except (AttributeError, TypeError, ValueError, RuntimeError, LookupError):
        return  # answers of another kind than asked for: they are remembered as they are
    for call, value in zip(answered, short, strict=True):
        call.outcome = {**(call.outcome or {}), "returned": encode(value)}


def occurring(answers: list[Any]) -> list[Any]:
    """Of draws: the shape, and which ids occur. Right samplers differ in the rest."""
    return [[list(ids.shape), sorted(set(ids.flatten().tolist()))] for ids in answers]


def repeating(answers: list[Any]) -> list[Any]:
    """Of draws: the shape, and which earlier answer each one repeats, itself if none."""
    return [
        [list(ids.shape), next(i for i, first in enumerate(answers) if identical(ids, first))]
        for ids in answers
    ]


def surviving(answers: list[Any]) -> list[Any]:
    """Of filtered logits: how many ids of each row are not banned. Ties may fall either way."""
    return [(logits != -torch.inf).sum(dim=-1) for logits in answers]


def encode(value: Any) -> Any:
    """A value as JSON data: enough of it to tell one answer from another."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if len(value) <= MOST_REMEMBERED else {"type": "long text"}
    if isinstance(value, int):
        # a larger one is no id and no count, and no float can be compared with it
        return value if abs(value) < 1 << 64 else {"type": "huge int"}
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Tensor):
        return encode_tensor(value)
    if isinstance(value, list | tuple):
        return {"type": "long list"} if is_long(value) else [encode(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode_field(value, field.name) for field in fields(value)}
    return {"type": "object"}


def is_long(items: Sequence[Any]) -> bool:
    """Whether a list holds more than is to be remembered, in lists within it too."""
    count, waiting = 0, [items]
    while waiting:
        found = waiting.pop()
        count += len(found)
        if count > MOST_REMEMBERED:
            return True
        waiting += [item for item in found if isinstance(item, list | tuple)]
    return False


def encode_field(value: Any, name: str) -> Any:
    """A field of a dataclass; of a speed, which differs from run to run, only that it is there."""
    found = getattr(value, name)
    if name == "tokens_per_second" and isinstance(found, float | int):
        return "a number"
    return encode(found)


def encode_tensor(tensor: Tensor) -> dict[str, Any]:
    flat = tensor.detach().flatten()
    if flat.is_complex():
        # no lesson has a use for these: they are told from real ones, and from each other
        return {"complex": encode_tensor(torch.view_as_real(flat.resolve_conj().resolve_neg()))}
    kind = "float" if flat.is_floating_point() else "bool" if flat.dtype == torch.bool else "int"
    if flat.dtype in (torch.float16, torch.bfloat16):
        kind = "half"  # what should have been float32; float64 is as good as that
    data: dict[str, Any] = {"tensor": kind, "shape": list(tensor.shape)}
    if tensor.is_inference():
        data["inference"] = True
    if flat.numel() <= LARGEST_LISTED:
        return data | {"values": [number(x) for x in flat.double().tolist()]}
    values = flat.double()
    finite, zero = values.isfinite(), values.new_zeros(())
    weights = torch.arange(values.numel(), dtype=torch.float64)
    projections = [(weights * pace).sin() for pace in (0.37, 1.13, 2.71)]
    return data | {
        "not_finite": number(float((projections[0] * ~finite).sum())),
        "projections": [
            number(float((p * values.where(finite, zero)).mean())) for p in projections
        ],
    }


def number(x: float) -> float | str:
    """A float in seven digits; what JSON has no sign for as a word."""
    x = float(x)
    return float(f"{x:.7g}") if math.isfinite(x) else str(x)


def alike(a: Any, b: Any) -> bool:
    """Whether two encoded outcomes are the same answer, up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=REL, abs_tol=ABS)
    return bool(a == b)


# --- values for people ---


def describe(value: Any) -> str:
    """A value in a few words: small tensors in full, large ones by their shape."""
    if isinstance(value, Tensor):
        # the rows of an empty tensor may be many
        if value.numel() <= 24 and max(value.shape, default=0) <= 24:
            text = describe_numbers(value.tolist())
        else:
            text = f"tensor of shape {tuple(value.shape)}"
        plain = value.dtype in (torch.float32, torch.int64, torch.bool)
        return text if plain else f"{text} ({str(value.dtype).removeprefix('torch.')})"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, torch.Generator):
        return "generator"
    if isinstance(value, list | tuple):
        if is_long(value):
            return f"a {type(value).__name__} of {len(value)} items"
        inside = ", ".join(describe(item) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if is_dataclass(value) and not isinstance(value, type):
        inside = ", ".join(
            f"{field.name}={describe(getattr(value, field.name))}"
            for field in fields(value)
            if field.name != "tokens_per_second"
        )
        return f"{type(value).__name__}({inside})"
    if isinstance(value, int) and abs(value) >= 1 << 1000:
        return f"an int of {value.bit_length()} bits"  # python has a limit to what it prints
    if isinstance(value, str | int | None):
        return repr(value)
    value = bare(value)
    title = getattr(value, "title", None)  # a toy model says how it is to be called
    return title if isinstance(title, str) else type(value).__name__


def describe_numbers(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(describe_numbers(item) for item in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
