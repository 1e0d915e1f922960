"""A learner's module in the sandbox, as the checks see it; and what the driver serves to it."""

from __future__ import annotations

import builtins
import copy
import inspect
from collections.abc import Callable, Iterator
from traceback import FrameSummary
from typing import Any

import torch

from course_lib.checks.load import COURSE_LIB
from course_lib.checks.record import snapshot

from .costs import Account
from .evidence import Lived
from .peer import Peer
from .twins import AskedCall, Session
from .wire import Channel, ProtocolError, WireError, a_list, a_name, a_public_name, clean

# what a learner's code may do with the driver's objects; the checks' own books are no part of it
CONSTANT = ("block_size", "vocab_size", "n_layers", "n_heads", "head_dim")
READABLE = {*CONSTANT, "training", "length"}
CALLABLE = {None, "eval", "train", "encode", "decode", "append", "attend", "reset"}
LIVED = ("append", "attend", "length", "reset")  # what is noted of an object's life
MOST_NAMES = 200  # of a module, of a class, of a function's parameters
LONGEST_MESSAGE = 4_000
MOST_NOTES = 1000  # of an object's life
NOISE = 5e-5  # the width of the disguise of a number, relative to it


class Student(Peer):
    """The learner's module of one lesson, in a child of the sandbox.

    `reference` holds the modules of the other lessons that are served to it. `names` and `uses` are
    what the child tells of the module: they serve descriptions and hints, never points.
    """

    def __init__(self, channel: Channel, reference: dict[str, Any]) -> None:
        super().__init__(channel)
        self.reference = reference
        self.names: dict[str, Any] = {}
        self.uses: dict[str, set[str]] = {}
        self.fault: WireError | None = None  # why the conversation ended, if it did
        self.noise: int | None = None  # the seed of the disguise of inputs, if they get one
        self.account = Account()  # what the learner's code had the driver set aside in this check
        self.asked: list[AskedCall] = []  # the calls of this check
        self.sessions: list[tuple[str, Session]] = []  # class and life of each object of this check
        self.is_disguised = False  # whether a call of this check got numbers that it does not print

    def ask(
        self,
        op: str,
        on: Any,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if self.fault is None:
            try:
                return super().ask(op, on, name, args, kwargs)
            except WireError as error:
                # a check may swallow it as it does any exception, the judge must not; without the
                # frames that it came through, which hold what the child sent
                self.fault = type(error)(str(error))
        raise self.fault

    # --- what the judge does ---

    def load(self, lesson: str, files: dict[str, bytes]) -> None:
        """Import the learner's module. Raises what that raises, as `make_error` gives it."""
        served = {
            name: {
                public: "class" if inspect.isclass(value) else "function"
                for public, value in vars(module).items()
                if getattr(value, "__module__", None) == module.__name__ and public[0] != "_"
            }
            for name, module in self.reference.items()
        }
        texts = {name: data.decode("latin-1") for name, data in files.items()}
        told = self.ask("load", None, None, (lesson, texts, served))
        if not isinstance(told, dict):
            raise ProtocolError("the module tells nothing of itself")
        self.names = {a_public_name(n): described(d) for n, d in a_few(told.get("names")).items()}
        self.uses = {
            a_path(n): {a_path(x) for x in a_list(used)}
            for n, used in a_dict(told.get("uses")).items()
        }

    def begin(self, seed: int, noise: int | None = None) -> None:
        """Start a check: nothing is left of the last one.

        With `noise`, a seed, what the learner's code gets is a little off what the check says: by
        less than answers may be off, and by more than a table of the printed examples bears.
        """
        self.noise = noise
        self.is_disguised = False
        self.asked, self.sessions = [], []
        self.account = Account()
        self.forget()
        self.modes.reset()
        self.ask("begin", None, None, (seed,))

    def module(self) -> Any:
        """What the checks call: functions and classes by their names."""
        found: dict[str, Any] = {}
        for name, told in self.names.items():
            if "methods" in told:
                found[name] = self.child_class(name, told["parameters"], told["methods"])
            else:
                found[name] = self.function(name, told["parameters"])
        return type("LearnersModule", (), {n: staticmethod(f) for n, f in found.items()})()

    def function(self, name: str, names: list[str]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            # as they are now: the child tells what the call has made of its arguments
            self.asked.append((name, *snapshot_all(args, kwargs)))
            return self.ask("call", name, None, args, kwargs)

        call.__name__ = name
        call.__signature__ = signature(names)  # type: ignore[attr-defined]
        return call

    def child_class(self, name: str, names: list[str], methods: dict[str, list[str]]) -> type:
        """A class of the learner's: its objects stay in the child."""
        body: dict[str, Any] = {m: child_method(m, takes) for m, takes in methods.items()}

        def init(made: ChildObject, *args: Any, **kwargs: Any) -> None:
            session: Session = [("__init__", *snapshot_all(args, kwargs))]
            self.sessions.append((name, session))
            known = self.ask("call", name, None, args, kwargs)
            if not isinstance(known, ChildObject):
                raise ProtocolError("a class made no object")
            ChildObject.__init__(made, self, known._number)
            made._session = session

        body["__init__"] = init
        body["__signature__"] = signature(names)
        return type(name, (ChildObject,), body)

    def disguise(self, value: Any) -> Any:
        if self.noise is None:
            return value
        # the same each time, so that equal inputs stay equal
        chance = torch.Generator().manual_seed(self.noise)
        if isinstance(value, float):
            self.is_disguised = True
            return value * (1 + NOISE * float(torch.rand((), generator=chance) - 0.5))
        if value.dtype not in (torch.float32, torch.float64) or not value.is_contiguous():
            return value
        with torch.inference_mode(value.is_inference()):
            factors = torch.rand(value.shape, generator=chance, dtype=value.dtype) - 0.5
            moved = value * (1 + NOISE * factors)
        # what a model answers is no argument: a table would not even ask it
        self.is_disguised |= self.depth == 0 and not torch.equal(moved, value)
        return moved

    # --- what the child may ask ---

    def perform(
        self, op: str, on: Any, name: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if isinstance(on, str):
            if op != "call" or name is not None:
                raise ProtocolError("a served function can only be called")
            return self.serve(on, args, kwargs)
        if not self.is_shown(on):
            raise ProtocolError("that object is not the driver's")
        if op == "call" and name in CALLABLE:
            self.account.weigh(on, name, args, kwargs)
            return (on if name is None else getattr(on, name))(*args, **kwargs)
        if op == "get" and name in READABLE:
            return getattr(on, name)
        if op == "set" and name == "training" and len(args) == 1 and isinstance(args[0], bool):
            on.training = args[0]
            return None
        if op == "next" and isinstance(on, Iterator):
            return next(on)
        raise AttributeError(f"{type(on).__name__!r} object has no attribute {name!r}")

    def is_shown(self, on: Any) -> bool:
        return id(on) in self.places

    def serve(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function or class of another lesson's reference."""
        lesson, _, name = path.partition(".")
        module = self.reference.get(lesson)
        target: Any = None if name.startswith("_") else getattr(module, name, None)
        if module is None or getattr(target, "__module__", None) != module.__name__:
            raise ProtocolError("that function is not served")
        self.account.weigh(target, None, args, kwargs)
        return target(*args, **kwargs)

    # --- objects and exceptions ---

    def describe(self, value: Any) -> dict[str, Any]:
        constants = {name: getattr(value, name) for name in CONSTANT if hasattr(value, name)}
        return super().describe(value) | {"constants": constants}

    def stand_in(self, number: int, data: dict[str, Any]) -> Any:
        takes = methods_of(data.get("methods"))
        base = ChildIterator if data.get("iterator") is True else ChildObject
        body = {name: child_method(name, names) for name, names in takes.items()}
        return type(a_name(data.get("class")), (base,), body)(self, number)

    def tell_error(self, error: BaseException) -> dict[str, Any]:
        builtin = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
        return {"class": builtin.__name__, "message": str(error)[:LONGEST_MESSAGE]}

    def make_error(self, data: dict[str, Any]) -> BaseException:
        """An exception of the learner's: same name, same text, a class that is surely harmless."""
        base: type[Exception] = Exception
        for name in a_list(data.get("bases")):
            found = getattr(builtins, name, None) if isinstance(name, str) else None
            if isinstance(found, type) and found in HARMLESS:
                base = found
                break
        message = clean(str(data.get("message", "")))[:LONGEST_MESSAGE]
        error = type(a_name(data.get("class")), (base,), {})(message)
        error.student_frames = [a_frame(frame) for frame in a_list(data.get("frames", []))[:8]]
        return error


# exceptions that are made of a text alone, and that end no more than a function
HARMLESS = {
    found
    for found in vars(builtins).values()
    if isinstance(found, type)
    and issubclass(found, Exception)
    and not issubclass(
        found, UnicodeError | BaseExceptionGroup | StopIteration | StopAsyncIteration
    )
} - {Exception}


def snapshot_all(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    return tuple(map(as_it_is, args)), {name: as_it_is(value) for name, value in kwargs.items()}


def as_it_is(value: Any) -> Any:
    """A value as it is now; of an object of the learner's what it was asked so far."""
    if isinstance(value, ChildObject):
        return Lived(list(value._session))
    if type(value) is type(iter([])):
        return copy.copy(value)  # the call uses it up
    # a cache of the check's own holds more after the call
    is_cache = inspect.getattr_static(value, "attend", None) is not None
    return copy.deepcopy(value) if is_cache else snapshot(value)


class ChildObject:
    """An object of the learner's, such as a KVCache: using it is a message to the child."""

    def __init__(self, student: Student, number: int) -> None:
        self._student, self._number = student, number
        self._session: Session = []  # its life, if a check has made it

    def _number_of(self) -> int:
        return self._number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._student.ask("call", self, None, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        # the books of toy models and recorders are no business of the learner's objects
        if name.startswith("_") or name in ("footprint", "title"):
            raise AttributeError(name)
        self._note(name)
        return self._student.ask("get", self, name)

    def _note(self, name: str, args: tuple[Any, ...] = (), kwargs: Any = None) -> None:
        if name in LIVED and len(self._session) < MOST_NOTES:
            self._session.append((name, *snapshot_all(args, kwargs or {})))


class ChildIterator(ChildObject):
    """A stream of the learner's: each piece is a message to the child."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._student.ask("next", self)

    def close(self) -> None:
        self._student.ask("close", self)


def child_method(name: str, names: list[str]) -> Callable[..., Any]:
    def method(self: ChildObject, *args: Any, **kwargs: Any) -> Any:
        self._note(name, args, kwargs)
        return self._student.ask("call", self, name, args, kwargs)

    method.__name__ = name
    method.__signature__ = signature(["self", *names])  # type: ignore[attr-defined]
    return method


def signature(names: list[str]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    unique = list(dict.fromkeys(names))
    return inspect.Signature([inspect.Parameter(name, kind) for name in unique])


def a_path(value: Any) -> str:
    """`KVCache.append`: names with dots between them."""
    if not isinstance(value, str):
        raise ProtocolError("a name is missing")
    return ".".join(a_name(part) for part in value.split("."))


def described(value: Any) -> dict[str, Any]:
    """What the child tells of a function or class, in the form that it must have."""
    told = a_dict(value)
    found: dict[str, Any] = {"parameters": names_of(told.get("parameters"))}
    if "methods" in told:
        found["methods"] = methods_of(told["methods"])
    return found


def methods_of(value: Any) -> dict[str, list[str]]:
    return {a_public_name(name): names_of(taken) for name, taken in a_few(value).items()}


def names_of(value: Any) -> list[str]:
    return [a_name(name) for name in a_list(value)[:MOST_NAMES]]


def a_few(value: Any) -> dict[Any, Any]:
    """A table that is made anew for each check, so that a long one would cost much."""
    return dict(list(a_dict(value).items())[:MOST_NAMES])


def a_dict(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ProtocolError("a table is missing")
    return value


def a_frame(value: Any) -> FrameSummary:
    lesson, line, name, text = a_list(value)[:4] if len(a_list(value)) >= 4 else ("", 0, "", "")
    if type(line) is not int or not all(isinstance(x, str) for x in (lesson, name, text)):
        raise ProtocolError("a place in the code is none")
    return FrameSummary(str(COURSE_LIB / f"{lesson[:40]}.py"), line, name[:100], line=text[:300])
