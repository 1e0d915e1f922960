"""What a check may expect of an answer. Each function raises Mismatch, which says what was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .record import REFUSAL_WANTED, StudentRaised, as_left, describe, differs


class Mismatch(Exception):
    """An answer is not the expected one; `cause`: "wrong value", "wrong shape", "wrong type"."""

    def __init__(self, message: str, cause: str = "wrong value") -> None:
        super().__init__(message)
        self.cause = cause


def tensor(got: Any, shape: Sequence[int] | None = None, what: str = "it") -> Tensor:
    """`got` is a tensor of real numbers, of this shape; returns it."""
    if not isinstance(got, Tensor):
        raise Mismatch(
            f"{what} is {describe(got)} ({type(got).__name__}); expected a tensor", "wrong type"
        )
    if got.is_complex():
        # a comparison would look at the real parts alone
        raise Mismatch(f"{what} has dtype {got.dtype}; expected real numbers", "wrong type")
    shape = None if shape is None else tuple(shape)
    if shape is not None and tuple(got.shape) != shape:
        lost = ": the last axis, of length 1, is missing" if (*got.shape, 1) == shape else ""
        raise Mismatch(
            f"{what} has shape {tuple(got.shape)}; expected {shape}{lost}", "wrong shape"
        )
    return got


def close(
    got: Any, expected: Any, what: str = "it", *, rtol: float = 1e-4, atol: float = 1e-5
) -> None:
    """Numbers equal up to rounding: tensors of the same shape, or plain numbers.

    Infinities must stand in the same places; NaN equals NaN.
    """
    if isinstance(expected, float | int):
        if isinstance(got, Tensor):
            tensor(got, (), what)
            got = got.item()
        if isinstance(got, bool) or not isinstance(got, float | int):
            raise Mismatch(
                f"{what} is {describe(got)} ({type(got).__name__}); expected a number", "wrong type"
            )
    wanted = torch.as_tensor(expected).double()
    if isinstance(expected, Tensor | list):
        tensor(got, wanted.shape, what)
    found = torch.as_tensor(got).double()
    if not torch.allclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True):
        raise Mismatch(f"{what} is {describe_near(found, wanted)}")


def describe_near(found: Tensor, wanted: Tensor) -> str:
    """Both in full if small, else the place where they differ most."""
    if wanted.numel() <= 24:
        return f"{describe(found.float())}; expected {describe(wanted.float())}"
    gap = (found - wanted).abs().nan_to_num(nan=torch.inf)
    place = tuple(int(i) for i in torch.unravel_index(gap.argmax(), gap.shape))
    return f"{found[place]:.4g} at {list(place)}; expected {wanted[place]:.4g} there"


def same(got: Any, expected: Any, what: str = "it") -> None:
    """Exactly equal: ids, masks, counts, words."""
    if isinstance(expected, Tensor):
        found = tensor(got, expected.shape, what)
        if found.is_floating_point() != expected.is_floating_point():
            raise Mismatch(
                f"{what} has dtype {found.dtype}; expected {expected.dtype}", "wrong type"
            )
        equal = torch.equal(found.to(expected.dtype), expected)
    else:
        equal = type(got) is type(expected) and got == expected
    if not equal:
        raise Mismatch(f"{what} is {describe(got)}; expected {describe(expected)}")


def kept(got: Any, expected: Sequence[set[int]], logits: Tensor | None = None) -> None:
    """Which ids of each row survived a filter (are not -inf); survivors keep their logits."""
    found = tensor(got, what="what came back")
    if found.ndim != 2 or len(found) != len(expected):
        raise Mismatch(
            f"what came back has shape {tuple(found.shape)}; expected {len(expected)} rows, each "
            "as wide as the vocabulary",
            "wrong shape",
        )
    if logits is not None:
        tensor(got, logits.shape, "what came back")
    for row, wanted in enumerate(expected):
        ids = set((found[row] != -torch.inf).nonzero()[:, 0].tolist())
        if ids != wanted:
            where = f" in row {row}" if len(expected) > 1 else ""
            raise Mismatch(f"kept ids {ids or '{}'}{where}; expected {wanted or '{}'}")
        if logits is not None:
            survivors = sorted(wanted)
            close(found[row, survivors], logits[row, survivors].float(), "logits of the kept ids")


def probabilities(got: Any, expected: Any, *, atol: float = 1e-4) -> None:
    """The distribution that the returned logits stand for."""
    wanted = torch.as_tensor(expected)
    found = tensor(got, wanted.shape, "what came back")
    close(found.double().softmax(dim=-1), wanted, "softmax of what came back", atol=atol)


def full_precision(got: Any, what: str = "it") -> Tensor:
    """A tensor of float32, or of more; returns it."""
    found = tensor(got, what=what)
    if found.dtype not in (torch.float32, torch.float64):
        raise Mismatch(f"{what} has dtype {found.dtype}; expected torch.float32", "wrong type")
    return found


def unchanged(own: Any, before: Any, name: str) -> None:
    """A tensor or list that was handed in is still what it was."""
    now = as_left(own)
    if differs(now, before):
        raise Mismatch(
            f"the caller's {name} was {describe(before)} and is now {describe(now)}: an argument "
            "must not be modified"
        )


@contextmanager
def raises(error: type[BaseException], why: str) -> Iterator[None]:
    """The call inside raises `error`; `why` says for which argument it should."""
    marked = REFUSAL_WANTED.set(True)
    try:
        yield
    except StudentRaised as raised:
        if isinstance(raised.original, NotImplementedError) or not isinstance(
            raised.original, error
        ):
            raised.expected = f"expected {error.__name__}, for {why}"
            raise
    else:
        raise Mismatch(f"nothing was raised; expected {error.__name__}, for {why}")
    finally:
        REFUSAL_WANTED.reset(marked)


def true(condition: bool, message: str) -> None:
    """Anything else; `message` says what was found and what was expected."""
    if not condition:
        raise Mismatch(message)
