"""What a check may expect: answers that only look right."""

from __future__ import annotations

import pytest
import torch

from course_lib.checks import expect


@pytest.mark.parametrize("comparison", [expect.close, expect.same, expect.probabilities])
def test_a_complex_answer_is_not_taken_by_its_real_part(comparison: object) -> None:
    assert callable(comparison)
    wanted = torch.tensor([0.25, 0.75])
    with pytest.raises(expect.Mismatch, match="complex64; expected real numbers") as caught:
        comparison(torch.complex(wanted, torch.ones(2)), wanted)
    assert caught.value.cause == "wrong type"


def test_a_complex_number_is_no_number_that_was_asked_for() -> None:
    with pytest.raises(expect.Mismatch, match="expected"):
        expect.close(torch.tensor(0.5 + 2j), 0.5)
