"""The wire: values arrive as they left, and nothing else is ever believed."""

import contextlib
import json
import socket
import struct
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.judge.wire import (
    LARGEST_BUFFERS,
    LARGEST_MESSAGE,
    Channel,
    Closed,
    Decoder,
    Encoder,
    ProtocolError,
    TooLarge,
    TooLate,
    differs,
    remember,
    restore,
)


def no_handles(data: Any) -> Any:
    raise ProtocolError("no handle is wanted here")


def there_and_back(value: Any) -> Any:
    encoder = Encoder(no_handles)
    data = json.loads(json.dumps(encoder.encode(value)))
    return Decoder(bytearray(b"".join(encoder.buffers)), no_handles).decode(data)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=12,
)


@given(plain)
def test_plain_values_arrive_as_they_left(value: Any) -> None:
    arrived = there_and_back(value)
    assert arrived == value
    assert type(arrived) is type(value)


DTYPES = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32]


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=4), st.integers(0, 9))
def test_tensors_arrive_with_dtype_shape_and_bytes(
    dtype: torch.dtype, shape: list[int], seed: int
) -> None:
    chance = torch.Generator().manual_seed(seed)
    value = torch.randn(shape, generator=chance).mul(3).to(dtype)
    arrived = there_and_back(value)
    assert (arrived.dtype, arrived.shape) == (dtype, value.shape)
    assert torch.equal(arrived, value)


def test_nan_and_infinities_arrive_in_their_places() -> None:
    value = torch.tensor([torch.nan, torch.inf, -torch.inf, -0.0])
    assert torch.equal(there_and_back(value).view(torch.int32), value.view(torch.int32))
    assert str(there_and_back([float("nan"), float("-inf")])) == "[nan, -inf]"


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.T,
        lambda t: t[::2, 1:],
        lambda t: t[:, :1].expand(6, 3),
        lambda t: t[:, 2],
        lambda t: t[3:3],
        lambda t: t[1, 1],
        lambda t: t[1, 1].expand(1, 1),
    ],
    ids=["transposed", "sliced", "expanded", "column", "empty", "scalar", "one expanded"],
)
def test_the_layout_of_a_view_arrives_too(view: Any) -> None:
    """A learner's `.view(-1)` fails on a transposed tensor, here as in a notebook."""
    value = view(torch.arange(24.0).reshape(6, 4))
    arrived = there_and_back(value)
    assert torch.equal(arrived, value)
    if value.numel():
        assert arrived.stride() == value.stride()
        assert arrived.is_contiguous() == value.is_contiguous()


def test_tensors_of_inference_mode_stay_such_and_others_do_not_become_such() -> None:
    with torch.inference_mode():
        inside = torch.ones(2)
    outside = torch.ones(2)
    assert there_and_back(inside).is_inference()
    with torch.inference_mode():
        assert not there_and_back(outside).is_inference()


def test_a_generator_goes_on_where_it_was() -> None:
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)
    arrived = there_and_back(generator)
    assert torch.equal(torch.rand(4, generator=arrived), torch.rand(4, generator=generator))


def test_an_unknown_array_arrives_as_a_word_for_what_it_was() -> None:
    sparse = torch.eye(2).to_sparse()
    assert type(there_and_back(sparse)).__name__ == "Tensor"
    assert not isinstance(there_and_back(sparse), torch.Tensor)


# --- what a hostile side may say ---

TENSOR = {"$": "tensor", "dtype": "float32", "shape": [2], "stride": [1], "at": 0, "size": 8}

HOSTILE: list[Any] = [
    {"$": "pickle", "data": "gASVBQ=="},
    {"$": "tensor"},
    TENSOR | {"shape": [10**12], "stride": [1]},
    TENSOR | {"shape": [10**6, 10**6], "stride": [0, 0], "size": 4},
    TENSOR | {"shape": [1 << 27], "stride": [0], "size": 4},
    TENSOR | {"shape": [-2]},
    TENSOR | {"shape": [2.0]},
    TENSOR | {"shape": [True, 2], "stride": [1, 1]},
    TENSOR | {"shape": [1] * 99, "stride": [1] * 99},
    TENSOR | {"stride": []},
    TENSOR | {"stride": [9]},
    TENSOR | {"stride": [-1]},
    TENSOR | {"at": 4},
    TENSOR | {"at": -8},
    TENSOR | {"size": 10**9},
    TENSOR | {"dtype": "object"},
    TENSOR | {"dtype": ["float32"]},
    {"$": "generator", "at": 0, "size": 8},
    {"$": "record", "class": "X", "fields": {"class": 1}},
    {"$": "record", "class": "X", "fields": {"__class__": 1}},
    {"$": "record", "class": "__import__", "fields": {}},
    {"$": "record", "class": "X", "fields": {f"f{i}": 0 for i in range(1000)}},
    {"$": "record", "class": "a b", "fields": {}},
    {"$": "float", "is": "1e999"},
    {"$": "int", "hex": "0x" + "f" * 100_000},
    {"$": "int", "hex": "nine"},
    {"$": "tuple", "of": 3},
    {"$": "dict", "of": [[1]]},
    {"$": "dict", "of": [[[1], 2]]},
    {"$": ["tensor"]},
    {},
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: str(data)[:60])
def test_what_no_encoder_writes_is_a_protocol_error(data: Any) -> None:
    with pytest.raises(ProtocolError):
        Decoder(bytearray(8), no_handles).decode(data)


def test_a_value_nested_too_deeply_is_a_protocol_error() -> None:
    data: Any = 0
    for _ in range(200):
        data = [data]
    with pytest.raises(ProtocolError):
        Decoder(bytearray(), no_handles).decode(data)
    with pytest.raises(TooLarge):
        Encoder(no_handles).encode(data)


def test_a_bool_of_another_byte_is_true() -> None:
    data = TENSOR | {"dtype": "bool", "shape": [2], "size": 2}
    arrived = Decoder(bytearray(b"\x02\x00"), no_handles).decode(data)
    assert arrived.tolist() == [True, False]
    assert (arrived.int() == torch.tensor([1, 0])).all()


def test_half_characters_do_not_get_through() -> None:
    assert Decoder(bytearray(), no_handles).decode("a\ud800b").encode()


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5) | st.floats(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["$", "of", "shape", "stride", "dtype", "at", "size", "fields", "class"]
                ),
                inner
                | st.sampled_from(["tensor", "tuple", "dict", "record", "generator", "float32"]),
                max_size=6,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json_is_a_value_or_a_protocol_error(data: Any) -> None:
    with contextlib.suppress(ProtocolError):
        Decoder(bytearray(16), no_handles).decode(data)


# --- frames ---


def pair() -> tuple[Channel, socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs


def frame(body: bytes, buffers: bytes = b"") -> bytes:
    return struct.pack("!II", len(body), len(buffers)) + body + buffers


@pytest.mark.parametrize(
    "said",
    [
        frame(b"no json"),
        frame(b"[1]"),
        frame(b"[" * 100_000),
        frame(b"\xff\xfe"),
        frame(b"1" * 5000),
        struct.pack("!II", LARGEST_MESSAGE + 1, 0),
        struct.pack("!II", 2, LARGEST_BUFFERS + 1),
    ],
    ids=["words", "a list", "deep", "no text", "a long number", "long", "large"],
)
def test_a_frame_that_is_none_is_a_protocol_error(said: bytes) -> None:
    channel, theirs = pair()
    theirs.settimeout(5)
    theirs.sendall(said)
    with pytest.raises(ProtocolError):
        channel.receive()


def test_hanging_up_in_the_middle_is_told() -> None:
    for said in (b"", b"\x00\x00", frame(b"{}")[:-1]):
        channel, theirs = pair()
        theirs.sendall(said)
        theirs.close()
        with pytest.raises(Closed):
            channel.receive()


def test_a_side_that_neither_speaks_nor_listens_is_too_late() -> None:
    channel, theirs = pair()
    channel.deadline = 0.0  # long past
    with pytest.raises(TooLate):
        channel.receive()
    with pytest.raises(TooLate):
        channel.send({"op": "call"}, [b"x" * 1_000_000])
    theirs.close()


# --- what a call does to its arguments ---


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.fill_(7),
        lambda t: t.unsqueeze_(0),
        lambda t: setattr(t, "data", torch.zeros(5)),
    ],
    ids=["values", "shape", "data"],
)
def test_a_tensor_that_was_changed_is_told_and_restored(change: Any) -> None:
    sent, received = torch.ones(2, 3), torch.ones(2, 3)
    before = remember(received)
    assert not differs(received, before)
    change(received)
    assert differs(received, before)
    restore(sent, received.clone())
    assert torch.equal(sent, received)


def test_a_list_that_was_changed_is_told_and_restored() -> None:
    sent, received = [1, 2], [1, 2]
    before = remember(received)
    assert not differs(received, before)
    received.append(3)
    assert differs(received, before)
    restore(sent, received)
    assert sent == [1, 2, 3]


def test_an_argument_cannot_become_something_else() -> None:
    with pytest.raises(ProtocolError):
        restore(torch.ones(2), [1])
