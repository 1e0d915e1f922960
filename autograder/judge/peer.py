"""One side of the conversation: asks, answers, and keeps the objects that do not travel.

While a side waits for a reply it answers what the other side asks meanwhile (a learner's `prefill`
calls the driver's model, which calls the learner's cache), so calls nest as they do in one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .modes import Modes
from .wire import (
    MOST_ELEMENTS,
    Channel,
    Decoder,
    Encoder,
    ProtocolError,
    TooLarge,
    WireError,
    a_list,
    a_name,
    differs,
    remember,
    restore,
    two,
)

DEEPEST_CALL = 40  # calls within calls
MOST_OBJECTS = 10_000  # objects that one side may show the other in one check


class Peer:
    """What both sides share; a subclass says what may be asked of it."""

    told: type[BaseException] = Exception  # what is told to the other side if it is raised here

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.modes = Modes()
        self.depth = 0
        self.forget()

    def forget(self) -> None:
        """Let go of all objects that were shown or seen."""
        self.shown: list[Any] = []
        self.places: dict[int, int] = {}  # id of a shown object -> its place
        self.seen: dict[int, Any] = {}  # the other side's number -> what stands for its object
        self.elements = self.channel.taken = 0

    # --- what the subclasses give ---

    def perform(
        self, op: str, on: Any, name: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Do what was asked for; whatever it raises is told to the other side."""
        raise NotImplementedError

    def stand_in(self, number: int, data: dict[str, Any]) -> Any:
        """What stands here for the other side's object."""
        raise NotImplementedError

    def tell_error(self, error: BaseException) -> dict[str, Any]:
        """An exception as data."""
        raise NotImplementedError

    def make_error(self, data: dict[str, Any]) -> BaseException:
        """The exception that the other side told."""
        raise NotImplementedError

    def describe(self, value: Any) -> dict[str, Any]:
        """What the other side should know of an object that stays here."""
        return {"class": type(value).__name__, "iterator": isinstance(value, Iterator)}

    def held(self, value: Any) -> dict[str, Any] | None:
        """The values of an object that is nothing but these, None for any other."""
        return None

    def disguise(self, value: Any) -> Any:
        """A tensor or number as it is to be sent."""
        return value

    # --- objects ---

    def export(self, value: Any) -> dict[str, Any]:
        number = getattr(type(value), "_number_of", None)
        if number is not None:
            return {"$": "yours", "id": number(value)}
        if id(value) not in self.places:
            if len(self.shown) >= MOST_OBJECTS:
                raise TooLarge("too many objects were shown")
            self.places[id(value)] = len(self.shown)
            self.shown.append(value)
        return {"$": "mine", "id": self.places[id(value)], **self.describe(value)}

    def find(self, data: dict[str, Any]) -> Any:
        kind, number = data.get("$"), data.get("id")
        if type(number) is not int or number < 0:
            raise ProtocolError("a handle has no number")
        if kind == "yours":
            if number >= len(self.shown):
                raise ProtocolError("there is no such object")
            return self.shown[number]
        if kind != "mine" or len(self.seen) >= MOST_OBJECTS:
            raise ProtocolError("a value is of no known kind")
        if number not in self.seen:
            self.seen[number] = self.stand_in(number, data)
        return self.seen[number]

    # --- asking ---

    def ask(
        self,
        op: str,
        on: Any,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Have the other side do something; returns or raises what that returned or raised."""
        kind, value = self.converse(op, on, name, (args, kwargs or {}))
        if kind == "return":
            return value
        if kind == "stop":
            raise StopIteration(value)
        if not isinstance(value, dict):
            raise ProtocolError("an exception is none")
        raise self.make_error(value)

    def converse(self, op: str, on: Any, name: str | None, arguments: Any) -> tuple[str, Any]:
        """Send what is asked, answer what is asked meanwhile; the kind of the reply and its value.

        What it raises and returns holds on to no frame: an exception keeps the variables of all
        functions that it came through, and a check keeps its exceptions.
        """
        encoder = Encoder(self.export, self.held, self.disguise)
        message = {
            "op": op,
            "on": encoder.encode(on),
            "name": name,
            "value": encoder.encode(arguments),
            "modes": self.modes.now(),
        }
        self.channel.send(message, encoder.buffers)
        while True:
            message, buffers = self.channel.receive()
            if message.get("op") in ("return", "raise", "stop"):
                return message["op"], self.take_reply(message, buffers, encoder.mutables)
            self.answer(message, buffers)

    def take_reply(self, message: dict[str, Any], buffers: bytearray, sent: list[Any]) -> Any:
        """The value of a reply; arguments and mode become what the call has made of them."""
        decoder = Decoder(buffers, self.find)
        value = decoder.decode(message.get("value"))
        for change in a_list(message.get("changed")):
            place, data = two(change)
            if type(place) is not int or not 0 <= place < len(sent):
                raise ProtocolError("an argument that was never sent has changed")
            changed = decoder.decode(data)
            try:
                restore(sent[place], changed)
            except RuntimeError as error:  # memory that cannot be written to
                raise ProtocolError("an argument cannot have changed like that") from error
        self.count(decoder)
        self.modes.follow(message.get("modes"))
        return value

    def count(self, decoder: Decoder) -> None:
        """Count what tensors stand for: they are short on the wire if their elements are one."""
        self.elements += decoder.elements
        if self.elements > MOST_ELEMENTS:
            raise ProtocolError("its tensors have more elements than they may have in one check")

    # --- answering ---

    def answer(self, message: dict[str, Any], buffers: bytearray) -> None:
        """Do what the other side asks, and reply."""
        if self.depth >= DEEPEST_CALL:
            raise ProtocolError("calls within calls go too deep")
        decoder = Decoder(buffers, self.find)
        op, on = a_name(message.get("op")), decoder.decode(message.get("on"))
        value = decoder.decode(message.get("value"))
        if not isinstance(value, tuple) or [type(x) for x in value] != [tuple, dict]:
            raise ProtocolError("a call has no arguments")
        self.count(decoder)
        before = [remember(mutable) for mutable in decoder.mutables]
        self.modes.follow(message.get("modes"))
        reply: dict[str, Any]
        encoder = Encoder(self.export, self.held, self.disguise)
        self.depth += 1
        try:
            result = self.perform(op, on, message.get("name"), *value)
            reply = {"op": "return", "value": encoder.encode(result)}
        except WireError:
            raise
        except self.told as error:
            encoder = Encoder(self.export, self.held, self.disguise)
            if op == "next" and isinstance(error, StopIteration):
                reply = {"op": "stop", "value": encoder.encode(error.value)}
            else:
                reply = {"op": "raise", "value": encoder.encode(self.tell_error(error))}
        finally:
            self.depth -= 1
        reply["changed"] = [
            [place, encoder.encode(now)]
            for place, (now, then) in enumerate(zip(decoder.mutables, before, strict=True))
            if differs(now, then)
        ]
        reply["modes"] = self.modes.now()
        self.channel.send(reply, encoder.buffers)
