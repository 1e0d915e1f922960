"""What runs in the sandbox: the learner's functions, called over the wire.

Nothing here is secret, and nothing that this process says is believed: the driver checks the form
of every message, and compares values itself.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import linecache
import random
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

from course_lib.checks.diagnose import uses

from .peer import Peer
from .wire import LONGEST_NAME, MOST_FIELDS, Channel, clean

LONGEST_MESSAGE = 4_000  # characters of an exception's text
MOST_FRAMES, MOST_NAMES = 4, 200


def serve(connection: socket.socket) -> None:
    """Answer the driver until it hangs up."""
    child = Child(Channel(connection))
    while True:
        child.answer(*child.channel.receive())


class Child(Peer):
    """The learner's package, and what the driver may ask of it."""

    told = BaseException  # SystemExit too: the driver shall see what a function raised

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.module: ModuleType | None = None
        self.sources: dict[str, bytes] = {}

    def perform(
        self, op: str, on: Any, name: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if op == "load":
            return self.load(*args)
        if op == "begin":
            return self.begin(*args)
        if op == "call":
            target = getattr(self.module, on) if isinstance(on, str) else on
            return (target if name is None else getattr(target, name))(*args, **kwargs)
        if op == "get":
            return getattr(on, name)
        if op == "next":
            return next(on)
        close = getattr(on, "close", None)
        return None if close is None else close()

    def load(
        self, lesson: str, files: dict[str, str], served: dict[str, dict[str, str]]
    ) -> dict[str, Any]:
        """Import the learner's module of `lesson`; tells what it holds.

        `files` are the learner's, a character a byte. `served` says of each other lesson whose
        functions the driver serves what its names are, "function" or "class".
        """
        sources = {name: text.encode("latin-1") for name, text in files.items()}
        self.sources = sources
        sys.meta_path.insert(0, Finder(self, sources, served))
        for name in [*sources, *served]:
            sys.modules.pop(f"course_lib.{name}", None)
        for name, source in sources.items():
            # tracebacks show the learner's lines, which are on no disk
            lines = source.decode(errors="replace").splitlines(keepends=True)
            linecache.cache[file_name(name)] = (len(source), None, lines, file_name(name))
        self.module = importlib.import_module(f"course_lib.{lesson}")
        return {"names": describe_module(self.module), "uses": told_uses(sources[lesson])}

    def begin(self, seed: int) -> None:
        """A new check: nothing is left of the last one but what the learner's module remembers."""
        self.forget()
        self.modes.reset()
        random.seed(seed)
        torch.default_generator.manual_seed(seed)

    def stand_in(self, number: int, data: dict[str, Any]) -> Any:
        kind = RemoteIterator if data.get("iterator") else Remote
        return type(data["class"], (kind,), {})(self, number, data["constants"])

    def describe(self, value: Any) -> dict[str, Any]:
        methods = class_methods(type(value)) if not isinstance(value, Iterator) else {}
        return {
            "class": type(value).__name__,
            "iterator": isinstance(value, Iterator),
            "methods": methods,
        }

    def held(self, value: Any) -> dict[str, Any] | None:
        # a plain object with attributes and no methods is as good as a dataclass
        values = getattr(value, "__dict__", None)
        if not values or callable(value) or isinstance(value, Remote | ModuleType):
            return None
        if class_methods(type(value)) or len(values) > MOST_FIELDS:
            return None
        return {name: item for name, item in values.items() if not name.startswith("_")}

    def tell_error(self, error: BaseException) -> dict[str, Any]:
        """Class, text, and the learner's own lines that it went through."""
        builtin = [cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "builtins"]
        try:
            message = error.msg if isinstance(error, SyntaxError) else str(error)
        except Exception as broken:  # a learner's own __str__ may be wrong
            message = f"(its text cannot be told: {type(broken).__name__})"
        return {
            "class": tellable(type(error).__name__),
            "bases": builtin,
            "message": clean(str(message))[:LONGEST_MESSAGE],
            "frames": self.own_frames(error)[-MOST_FRAMES:],
        }

    def own_frames(self, error: BaseException) -> list[list[Any]]:
        """(lesson, line, function, text) of each of the learner's lines, the innermost last."""
        files = {file_name(name): name for name in self.sources}
        found: list[list[Any]] = [
            [files[frame.filename], frame.lineno or 0, frame.name, frame.line or ""]
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename in files
        ]
        if isinstance(error, SyntaxError) and error.filename in files:
            found.append([files[error.filename], error.lineno or 0, "", error.text or ""])
        return found

    def make_error(self, data: dict[str, Any]) -> BaseException:
        kind = getattr(builtins, data["class"], RuntimeError)
        error: BaseException = kind(data["message"])
        return error


# --- the learner's package ---


def file_name(lesson: str) -> str:
    return f"<course_lib/{lesson}.py>"


class Finder(Loader):
    """Finds the learner's modules among the bytes that were handed in."""

    def __init__(self, child: Child, sources: dict[str, bytes], served: dict[str, Any]) -> None:
        self.child, self.sources, self.served = child, sources, served

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != "course_lib" or name not in self.sources | self.served:
            return None
        return ModuleSpec(fullname, self, origin=file_name(name))

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__.rpartition(".")[2]
        if name in self.served:
            self.serve_module(module, name)
        else:
            run_source(module, name, self.sources[name])

    def serve_module(self, module: ModuleType, name: str) -> None:
        """Another lesson's functions, computed by the driver.

        What the reference has no such name for (a helper of the learner's own, which another file
        of the same learner imports) is the learner's.
        """
        for served, kind in self.served[name].items():
            make = remote_class if kind == "class" else remote_function
            value = make(self.child, f"{name}.{served}")
            value.__module__ = module.__name__
            setattr(module, served, value)
        own: list[ModuleType] = []

        def get(attribute: str) -> Any:
            if attribute.startswith("__") or name not in self.sources:
                raise AttributeError(f"module {module.__name__!r} has no attribute {attribute!r}")
            if not own:
                own.append(ModuleType(module.__name__))
                own[0].__package__ = "course_lib"
                run_source(own[0], name, self.sources[name])
            return getattr(own[0], attribute)

        module.__dict__["__getattr__"] = get


def run_source(module: ModuleType, name: str, source: bytes) -> None:
    module.__dict__["__file__"] = file_name(name)
    exec(compile(source, file_name(name), "exec", dont_inherit=True), module.__dict__)


def describe_module(module: ModuleType) -> dict[str, Any]:
    """The parameters of each function; of each class those, and those of its methods."""
    found: dict[str, Any] = {}
    for name, value in list(vars(module).items())[:MOST_NAMES]:
        if name.startswith("_") or not callable(value):
            continue
        if not inspect.isclass(value):
            found[name] = {"parameters": parameters(value)}
        elif value.__module__.startswith("course_lib."):  # not torch's, which have many methods
            found[name] = {"parameters": parameters(value), "methods": class_methods(value)}
    return found


def class_methods(cls: type) -> dict[str, list[str]]:
    """The public methods of a class with their parameters, `self` left out."""
    found = {}
    for name in dir(cls):
        value = getattr(cls, name, None)
        if not name.startswith("_") and callable(value):
            found[name] = parameters(value)[1:]
    return found


def parameters(value: Any) -> list[str]:
    try:
        names = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
    return [tellable(name) for name in names[:MOST_NAMES]]


def tellable(name: str) -> str:
    """A name, or a path of names, as the driver takes it: none python's own, and of some length."""
    parts = [p.lstrip("_") or "it" if p.startswith("__") else p for p in name.split(".")]
    return ".".join(part[:LONGEST_NAME] for part in parts)


def told_uses(source: bytes) -> dict[str, list[str]]:
    """The names that each function, class and method of a source uses: for hints alone."""
    try:
        found = uses(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {tellable(name): sorted(map(tellable, used)) for name, used in found.items()}


# --- the driver's objects, as the learner's code sees them ---


class Remote:
    """An object that lives in the driver: a model, a tokenizer, a cache, a streamer."""

    def __init__(self, child: Child, number: int, constants: dict[str, Any]) -> None:
        # sizes that never change are not asked for each time
        self.__dict__.update(constants, _child=child, _number=number)

    def _number_of(self) -> int:
        return int(self._number)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._child.ask("call", self, None, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in METHODS:
            return lambda *args, **kwargs: self._child.ask("call", self, name, args, kwargs)
        return self._child.ask("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._child.ask("set", self, name, (value,))


# what models, tokenizers and caches are asked to do; all else is a value
METHODS = {"eval", "train", "encode", "decode", "append", "attend", "reset"}


class RemoteIterator(Remote):
    """An iterator that lives in the driver, and is as much used up as it was used."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._child.ask("next", self)


def remote_function(child: Child, path: str) -> Any:
    name = path.rpartition(".")[2]

    def call(*args: Any, **kwargs: Any) -> Any:
        return child.ask("call", path, None, args, kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def remote_class(child: Child, path: str) -> Any:
    """A class of the reference: its objects live in the driver."""
    name = path.rpartition(".")[2]

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made = child.ask("call", path, None, args, kwargs)
        Remote.__init__(self, child, made._number, {})
        child.seen[made._number] = self

    cls: Callable[..., Any] = type(name, (Remote,), {"__init__": init})
    return cls
