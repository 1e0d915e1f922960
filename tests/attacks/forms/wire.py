"""Hostile files that speak on the child's own socket to the driver."""

import textwrap

from .base import Files, hostile

# finds the connection, and sends what an honest child never would
WIRE = """
import gc, json, os, struct, sys, time

peer = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Child")
channel = peer.channel
wire = channel.connection

def frame(message, *buffers):
    body = json.dumps(message).encode()
    head = struct.pack("!II", len(body), sum(map(len, buffers)))
    wire.sendall(head + body + b"".join(buffers))

def reply(value, *buffers, op="return", changed=(), modes=(True, False)):
    frame({"op": op, "value": value, "changed": list(changed), "modes": list(modes)}, *buffers)

def table(**pairs):
    return {"$": "dict", "of": [[name, value] for name, value in pairs.items()]}

def tensor(data, shape, stride, dtype="float32", at=0):
    return {"$": "tensor", "dtype": dtype, "shape": shape, "stride": stride, "at": at,
            "size": len(data), "inference": False}
"""

# takes over the conversation at import: the judge then talks to `answer` alone
ROGUE = """
reply(table(names=table(top_k_filter=table(parameters=["logits", "k"])), uses=table()))
count = 0
while True:
    message, buffers = channel.receive()
    if message["op"] == "begin":
        reply(None)
    elif message["op"] in ("return", "raise", "stop"):
        continue
    else:
        count += 1
        answer(message, buffers)
"""


def on_the_wire(at_import: str = "", inside: str = "", lesson: str = "top_k") -> Files:
    """The stub with hostile lines that have the wire at hand."""
    return hostile(lesson, at_import=WIRE + textwrap.dedent(at_import), inside=inside)


def rogue(answer: str) -> Files:
    """A file that answers the judge itself: `answer(message, buffers)` is called for each call."""
    return hostile(at_import=WIRE + textwrap.dedent(answer) + ROGUE)
