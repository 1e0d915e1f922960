"""What the recorder keeps of answers that nobody expects."""

import pytest
import torch
from torch import Tensor

from course_lib.checks.kit import find_suite, run_check
from course_lib.checks.record import describe, encode


def test_complex_numbers_are_told_apart_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    one = torch.ones(3, dtype=torch.complex64)
    assert encode(one) != encode(1j * one)
    assert encode(one) != encode(one.real)
    assert encode(one.conj()) == encode(one)
    assert not recwarn.list


def test_a_list_of_a_hundred_thousand_is_not_told_item_by_item() -> None:
    long = [[0] * 300] * 300
    assert len(describe(long)) < 100
    assert encode(long) == encode([[1] * 300] * 300)


class NoAxes:
    """Gives a scalar where ids of two axes are expected."""

    @staticmethod
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return torch.tensor(0.0)


def test_an_answer_without_the_axes_that_are_remembered_fails_its_check_only() -> None:
    suite = find_suite("kv_cache")
    assert suite is not None
    result = run_check(suite.checks["kv_cache-attend_nothing_allowed"], NoAxes)
    assert result.cause == "wrong shape"
