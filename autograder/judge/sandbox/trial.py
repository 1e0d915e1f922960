"""Serves a trial instead of a submission: runs the code that the driver sends, tells its result.

The driver tries every sandbox with it before it trusts one, and `autograder doctor` tells what came
out. It runs where a submission runs, and may do no more than one.
"""

from __future__ import annotations

import json
import socket
import struct
import traceback
from typing import Any

LENGTH = struct.Struct("!I")


def serve(connection: socket.socket) -> None:
    """Run one trial: source and arguments come as JSON, `run(**arguments)` goes back as JSON."""
    sent = receive(connection)
    module: dict[str, Any] = {"__name__": "trial"}
    try:
        exec(compile(sent["source"], "<trial>", "exec"), module)
        reply = {"result": module["run"](**sent["arguments"])}
    except Exception as error:
        reply = {"raised": "".join(traceback.format_exception(error)[-2:])}
    send(connection, reply)


def send(connection: socket.socket, value: Any) -> None:
    data = json.dumps(value).encode()
    connection.sendall(LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> Any:
    """Raises EOFError when the other side is gone."""
    (length,) = LENGTH.unpack(_read(connection, LENGTH.size))
    return json.loads(_read(connection, length))


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError("the other side is gone")
        data += part
    return data
