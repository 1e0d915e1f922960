"""What the driver and its warm parent say to each other: one JSON line each way, in turns.

Both ends are the judge's own, and no child ever holds one of them.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any

LONGEST = 1 << 16  # bytes of a message


class Gone(Exception):
    """The other end is closed, or does not answer."""


def send(control: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message, and copies of some descriptors with it. Raises Gone."""
    data = json.dumps(message).encode() + b"\n"
    try:
        if descriptors:
            sent = socket.send_fds(control, [data], list(descriptors))
            data = data[sent:]
        control.sendall(data)
    except OSError as error:
        raise Gone(str(error)) from error


def receive(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message, and the descriptors that came with it. Raises Gone."""
    data, found = b"", []
    try:
        while not data.endswith(b"\n"):
            part, descriptors, _, _ = socket.recv_fds(control, LONGEST, 4)
            if not part:
                raise Gone("closed")
            data += part
            found += descriptors
    except OSError as error:
        raise Gone(str(error)) from error
    return json.loads(data), found
