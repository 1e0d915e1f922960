"""What driver and sandbox child say to each other: frames on a stream socket, values as data.

A frame is a JSON message and the raw bytes of its tensors, both of bounded length. Nothing is ever
unpickled. Objects that cannot travel (a model, a cache, a stream) stay where they are; the other
side gets a handle, and using it is a message back. Either side may be hostile to the other: what
does not fit the format is a ProtocolError, never another exception.

Both sides take turns like one thread: a message carries the gradient mode of its sender, and a
reply carries the arguments that the call has changed, so that a call over the wire has the effects
that it has in one process.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from course_lib.checks.record import extent, span

LARGEST_MESSAGE = 2 << 20  # bytes of JSON
LARGEST_BUFFERS = 64 << 20  # bytes of tensors in one frame
LARGEST_TENSORS = 1 << 20  # elements of all tensors of one frame, however few bytes they share
LONGEST_TEXT = 1 << 20  # characters of one string
LARGEST_TALK = 64 << 20  # bytes that one side takes from the other in one check
MOST_ELEMENTS = 1 << 23  # of all tensors that one side takes in one check
MOST_VALUES = 200_000  # numbers, texts, lists and tensors of one frame: each is an object
LONGEST_NAME = 100
MOST_AXES, MOST_FIELDS, DEEPEST = 16, 64, 32
MOST_PAIRS, MOST_RECORDS = 1024, 512  # of one dict, and of one frame: each record is a new class
_HEAD = struct.Struct("!II")

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.complex128,
    )
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class WireError(Exception):
    """The conversation is over; a subclass says why."""


class ProtocolError(WireError):
    """The other side said something that is no message."""


class Closed(WireError):
    """The other side hung up."""


class TooLate(WireError):
    """The other side did not answer in time."""


class TooLarge(ValueError):
    """A message is larger than a frame may be."""


# --- frames ---


class Channel:
    """Sends and receives frames; `deadline` (time.monotonic seconds) bounds both, None waits."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.deadline: float | None = None
        self.taken = 0  # bytes, since somebody set it to 0

    def send(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """Raises TooLarge before a byte is sent, Closed, TooLate."""
        # half characters too may travel; the receiving side cleans them
        body = json.dumps(message, allow_nan=False, ensure_ascii=False).encode(
            errors="surrogatepass"
        )
        size = sum(map(len, buffers))
        if len(body) > LARGEST_MESSAGE or size > LARGEST_BUFFERS:
            raise TooLarge(f"a message of {len(body) + size} bytes is larger than may be sent")
        try:
            self._limit()
            self.connection.sendall(b"".join([_HEAD.pack(len(body), size), body, *buffers]))
        except TimeoutError as error:
            raise TooLate("it took no message in time") from error
        except OSError as error:
            raise Closed("it hung up") from error

    def receive(self) -> tuple[dict[str, Any], bytearray]:
        """The next message and its buffers. Raises ProtocolError, Closed, TooLate."""
        length, size = _HEAD.unpack(self._read(_HEAD.size))
        if length > LARGEST_MESSAGE or size > LARGEST_BUFFERS:
            raise ProtocolError("a frame is larger than allowed")
        self.taken += length + size
        if self.taken > LARGEST_TALK:
            raise ProtocolError("it says more than it may in one check")
        body, buffers = self._read(length), self._read(size)
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ProtocolError("a message is no JSON") from error
        if not isinstance(message, dict):
            raise ProtocolError("a message is no object")
        return message, buffers

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        view, have = memoryview(data), 0
        while have < size:
            try:
                self._limit()
                got = self.connection.recv_into(view[have:])
            except TimeoutError as error:
                raise TooLate("it did not answer in time") from error
            except OSError as error:
                raise Closed("it hung up") from error
            if got == 0:
                raise Closed("it hung up")
            have += got
        return data

    def _limit(self) -> None:
        if self.deadline is None:
            self.connection.settimeout(None)
            return
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)


# --- values ---


class Opaque:
    """Stands for an object of no use to the other side; its class has the name of the original's.

    A message can so say that a list was expected, and a `ndarray` came.
    """


class Encoder:
    """Makes JSON data and buffers of values.

    `held` gives the values of an object that is nothing but these, or None; `export` gives the
    handle of any other object, which stays where it is; `disguise` may change a tensor, or a number
    within a list, before it is sent.
    """

    def __init__(
        self,
        export: Callable[[Any], dict[str, Any]],
        held: Callable[[Any], dict[str, Any] | None] = lambda value: None,
        disguise: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.export, self.held, self.disguise = export, held, disguise
        self.buffers: list[bytes] = []
        self.size = 0
        self.mutables: list[Any] = []  # tensors, lists and generators, in order

    def encode(self, value: Any, depth: int = 0) -> Any:
        if depth > DEEPEST:
            raise TooLarge("a value is nested too deeply to be sent")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            # JSON has no bound, python has one on digits
            return int(value) if abs(value) < 1 << 63 else {"$": "int", "hex": hex(value)}
        if isinstance(value, float):
            # (args, kwargs) is a tuple of containers, so what is deeper is an item of an argument
            value = self.disguise(value) if depth > 2 else value
            return float(value) if math.isfinite(value) else {"$": "float", "is": str(float(value))}
        if isinstance(value, str):
            if len(value) > LONGEST_TEXT:
                raise TooLarge(f"a text of {len(value)} characters is too long to be sent")
            return str(value)
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, torch.Generator):
            self.mutables.append(value)
            state = value.get_state()
            return {"$": "generator", "at": self.keep(state.numpy().tobytes()), "size": len(state)}
        if isinstance(value, torch.dtype):
            return {"$": "dtype", "name": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"$": "device"}
        if isinstance(value, tuple):
            items = [self.encode(item, depth + 1) for item in value]
            names = getattr(type(value), "_fields", None)
            if names is not None:
                return self.record(value, dict(zip(names, items, strict=True)))
            return {"$": "tuple", "of": items}
        if isinstance(value, list):
            self.mutables.append(value)
            return [self.encode(item, depth + 1) for item in value]
        if isinstance(value, dict):
            pairs = [
                [self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in value.items()
            ]
            return {"$": "dict", "of": pairs}
        if is_dataclass(value) and not isinstance(value, type):
            found = {f.name: self.encode(getattr(value, f.name), depth + 1) for f in fields(value)}
            return self.record(value, found)
        values = self.held(value)
        if values is not None:
            found = {name: self.encode(item, depth + 1) for name, item in values.items()}
            return self.record(value, found)
        return self.export(value)

    def record(self, value: Any, found: dict[str, Any]) -> dict[str, Any]:
        return {"$": "record", "class": type(value).__name__, "fields": found}

    def tensor(self, value: Tensor) -> dict[str, Any]:
        """Dtype, shape and strides, and the bytes from the first to the last element."""
        plain = value.detach()
        name = _NAMES.get(plain.dtype)
        if name is None or plain.layout != torch.strided or plain.device.type != "cpu":
            return {"$": "opaque", "class": type(value).__name__}
        self.mutables.append(value)
        data = span(self.disguise(plain)).resolve_conj().resolve_neg()
        raw = data.view(torch.uint8).numpy().tobytes()
        return {
            "$": "tensor",
            "dtype": name,
            "shape": list(plain.shape),
            "stride": list(plain.stride()),
            "at": self.keep(raw),
            "size": len(raw),
            "inference": plain.is_inference(),
        }

    def keep(self, data: bytes) -> int:
        at = self.size
        self.size += len(data)
        if self.size > LARGEST_BUFFERS:
            raise TooLarge(f"{self.size} bytes of tensors are more than may be sent at once")
        self.buffers.append(data)
        return at


class Decoder:
    """Makes values of JSON data and buffers. `find` gives the object of a handle."""

    def __init__(self, buffers: bytearray, find: Callable[[dict[str, Any]], Any]) -> None:
        self.buffers, self.find = buffers, find
        self.mutables: list[Any] = []
        self.elements = self.records = self.values = 0

    def decode(self, data: Any, depth: int = 0) -> Any:
        """Raises ProtocolError for whatever no Encoder writes."""
        if depth > DEEPEST + 2:
            raise ProtocolError("a value is nested too deeply")
        self.values += 1
        if self.values > MOST_VALUES:
            raise ProtocolError("a frame holds too many values")
        if data is None or isinstance(data, bool | int | float):
            return data
        if isinstance(data, str):
            return clean(data)
        if isinstance(data, list):
            items: list[Any] = []
            self.mutables.append(items)
            items.extend(self.decode(item, depth + 1) for item in data)
            return items
        if not isinstance(data, dict):
            raise ProtocolError("a value is of no known kind")
        kind = data.get("$")
        if kind == "tensor":
            return self.tensor(data)
        if kind == "generator":
            return self.generator(data)
        if kind == "tuple":
            return tuple(self.decode(item, depth + 1) for item in a_list(data.get("of")))
        if kind == "dict":
            return self.pairs(data, depth)
        if kind == "float":
            return a_float(data.get("is"))
        if kind == "int":
            return a_long_int(data.get("hex"))
        if kind == "dtype":
            return a_dtype(data.get("name"))
        if kind == "device":
            return torch.device("cpu")  # no other is there
        if kind == "record":
            return self.record(data, depth)
        if kind == "opaque":
            return type(a_name(data.get("class")), (Opaque,), {})()
        return self.find(data)

    def pairs(self, data: dict[str, Any], depth: int) -> dict[Any, Any]:
        found = {}
        pairs = a_list(data.get("of"))
        # keys may be chosen so that each takes as long as all before it
        if len(pairs) > MOST_PAIRS:
            raise ProtocolError("a dict has too many keys")
        for pair in pairs:
            key, value = two(pair)
            key = self.decode(key, depth + 1)
            if not isinstance(key, str | int | float | bool | None):
                raise ProtocolError("a key is neither text nor number")
            found[key] = self.decode(value, depth + 1)
        return found

    def record(self, data: dict[str, Any], depth: int) -> Any:
        """A dataclass of this name and these fields, which is all that a check can ask of it."""
        held = data.get("fields")
        if not isinstance(held, dict) or len(held) > MOST_FIELDS:
            raise ProtocolError("a record has no fields, or too many")
        self.records += 1
        if self.records > MOST_RECORDS:
            raise ProtocolError("a frame holds too many records")
        values = {a_name(name): self.decode(value, depth + 1) for name, value in held.items()}
        return make_record(a_name(data.get("class")), values)

    def generator(self, data: dict[str, Any]) -> torch.Generator:
        made = torch.Generator()
        try:
            made.set_state(torch.frombuffer(self.slice(data), dtype=torch.uint8).clone())
        except (RuntimeError, TypeError, ValueError) as error:
            raise ProtocolError("a generator has no such state") from error
        self.mutables.append(made)
        return made

    def tensor(self, data: dict[str, Any]) -> Tensor:
        dtype = a_dtype(data.get("dtype"))
        shape, stride = sizes(data.get("shape")), sizes(data.get("stride"))
        if len(shape) != len(stride):
            raise ProtocolError("a tensor has more axes than strides")
        raw = self.slice(data)
        places = extent(shape, stride)
        # an axis of 0 makes no tensor small: a list of its rows may be long
        self.elements += math.prod(max(1, n) for n in shape)
        if self.elements > LARGEST_TENSORS:
            raise ProtocolError("tensors claim more elements than may be sent")
        if places * dtype.itemsize != len(raw):
            raise ProtocolError("a tensor's bytes do not fit its shape")
        inference = data.get("inference") is True
        # whatever the mode is here, the tensor is of the kind that it was there
        with torch.inference_mode(inference):
            if not places:
                made = torch.empty(shape, dtype=dtype)
            else:
                flat = torch.frombuffer(raw, dtype=torch.uint8).clone()
                # a bool of any byte but 0 and 1 would be neither True nor False
                typed = flat != 0 if dtype is torch.bool else flat.view(dtype)
                made = typed.as_strided(shape, stride)
        self.mutables.append(made)
        return made

    def slice(self, data: dict[str, Any]) -> memoryview:
        at, size = data.get("at"), data.get("size")
        if type(at) is not int or type(size) is not int or at < 0 or size < 0:
            raise ProtocolError("a tensor says not where its bytes are")
        if at + size > len(self.buffers):
            raise ProtocolError("a tensor's bytes are not there")
        return memoryview(self.buffers)[at : at + size]


# --- what may stand where ---


def a_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ProtocolError("a list is missing")
    return value


def two(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise ProtocolError("a pair is missing")
    return value[0], value[1]


def a_name(value: Any) -> str:
    """A word that can name a class, a field or a function; never one of python's own."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not value.isidentifier():
        raise ProtocolError("a name is missing")
    if value.startswith("__"):
        raise ProtocolError("a name is one of python's own")
    return value


def a_public_name(value: Any) -> str:
    if a_name(value).startswith("_"):
        raise ProtocolError("a name is private")
    return str(value)


def a_float(value: Any) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise ProtocolError("a float is none")
    return float(value)


def a_long_int(value: Any) -> int:
    if not isinstance(value, str) or len(value) > 10_000:
        raise ProtocolError("an int is none")
    try:
        return int(value, 16)
    except ValueError as error:
        raise ProtocolError("an int is none") from error


def a_dtype(value: Any) -> torch.dtype:
    if not isinstance(value, str) or value not in DTYPES:
        raise ProtocolError("a dtype is unknown")
    return DTYPES[value]


def sizes(value: Any) -> list[int]:
    if not isinstance(value, list) or len(value) > MOST_AXES:
        raise ProtocolError("a shape is none")
    for size in value:
        # a stride too: no memory here is larger
        if type(size) is not int or not 0 <= size <= 1 << 40:
            raise ProtocolError("a shape holds what is no size")
    return value


def clean(text: str) -> str:
    """Text without half characters, which could not be written to a file later."""
    return text[:LONGEST_TEXT].encode(errors="replace").decode()


def make_record(name: str, values: dict[str, Any]) -> Any:
    """An object of a dataclass `name` that holds `values`."""
    from dataclasses import make_dataclass

    try:
        cls = make_dataclass(name, list(values), eq=False)
    except (TypeError, ValueError) as error:  # a field named `class`, say
        raise ProtocolError("a record has a field of no use") from error
    return cls(**values)


# --- what a call did to its arguments ---


def remember(value: Any) -> Any:
    """What `differs` needs to know later of a tensor, a list or a generator."""
    if isinstance(value, Tensor):
        return layout(value), as_bytes(value).clone()
    return value.get_state() if isinstance(value, torch.Generator) else list(value)


def differs(now: Any, before: Any) -> bool:
    """Whether a tensor, list or generator is no longer what it was when it was remembered."""
    if isinstance(now, Tensor):
        return layout(now) != before[0] or not torch.equal(as_bytes(now), before[1])
    if isinstance(now, torch.Generator):
        return not torch.equal(now.get_state(), before)
    # elements that are tensors or lists are looked at by themselves
    return len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True))


def layout(value: Tensor) -> tuple[Any, ...]:
    return value.dtype, value.shape, value.stride()


def as_bytes(value: Tensor) -> Tensor:
    return span(value.detach()).view(torch.uint8)


def restore(target: Any, value: Any) -> None:
    """Make `target`, the sender's own argument, what the call has made of it."""
    if isinstance(target, torch.Generator) and isinstance(value, torch.Generator):
        target.set_state(value.get_state())
    elif isinstance(target, list) and isinstance(value, list):
        target[:] = value
    elif isinstance(target, Tensor) and isinstance(value, Tensor):
        # a tensor of inference mode may be written to in that mode alone
        with torch.inference_mode(target.is_inference()), torch.no_grad():
            if target.shape == value.shape and target.dtype == value.dtype:
                target.copy_(value)
            else:
                target.data = value
    else:
        raise ProtocolError("an argument has become something else")
