"""Lesson 6: repetition, frequency and presence penalty."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from solutions.repetition import apply_frequency_penalty, apply_repetition_penalty

from .helpers import HALVES, INF, NAN, random_logits, seeded, strided


def slow_penalty(
    logits: Tensor, ids: Tensor, penalty: float, mask: Tensor | None = None
) -> list[list[float]]:
    """The rule by its definition: row by row, each id that occurs once."""
    rows = logits.tolist()
    for i, row in enumerate(rows):
        real = [True] * ids.shape[1] if mask is None else mask[i].bool().tolist()
        for seen in {int(ids[i, t]) for t in range(ids.shape[1]) if real[t]}:
            row[seen] = row[seen] / penalty if row[seen] > 0 else row[seen] * penalty
    return rows


def repeat(logits: Tensor, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    return apply_repetition_penalty(logits, ids, 1.5, attention_mask)


def frequency(logits: Tensor, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    return apply_frequency_penalty(
        logits, ids, presence=0.5, frequency=0.25, attention_mask=attention_mask
    )


BOTH: list[Callable[..., Tensor]] = [repeat, frequency]


# --- repetition penalty ---


@pytest.mark.parametrize(
    "batch,pos,vocab", [(1, 1, 1), (1, 6, 4), (4, 5, 4), (3, 0, 5), (3, 9, 50)]
)
@pytest.mark.parametrize("penalty", [0.5, 1.0, 1.3, 2])
def test_penalty_equals_the_rule_applied_one_by_one(
    batch: int, pos: int, vocab: int, penalty: float
) -> None:
    logits = random_logits(batch, vocab)
    ids = torch.randint(vocab, (batch, pos), generator=seeded())
    mask = torch.randint(2, (batch, pos), generator=seeded(1))
    for given in (None, mask):
        result = apply_repetition_penalty(logits, ids, penalty, given)
        expected = torch.tensor(slow_penalty(logits, ids, penalty, given))
        torch.testing.assert_close(result, expected)


def test_penalty_divides_a_positive_logit_and_multiplies_any_other() -> None:
    logits = torch.tensor([[4.0, -4.0, 0.0, 8.0]])
    result = apply_repetition_penalty(logits, torch.tensor([[0, 1, 2]]), 2.0)
    assert result.tolist() == [[2, -8, 0, 8]]


def test_penalty_gives_the_worked_numbers() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
    result = apply_repetition_penalty(logits, torch.tensor([[0, 3]]), 1.2)
    expected = torch.tensor([[1.666667, 1, 0.1, -1.2, -2]])
    torch.testing.assert_close(result, expected)
    probs = torch.tensor([[0.554137, 0.284504, 0.115671, 0.031524, 0.014165]])
    torch.testing.assert_close(result.softmax(-1), probs, atol=1e-6, rtol=0)


def test_penalty_makes_a_repeated_token_less_likely_also_below_zero() -> None:
    logits = torch.tensor([[-4.0, -3.0]])
    before = logits.softmax(-1)[0, 1].item()
    after = apply_repetition_penalty(logits, torch.tensor([[1]]), 2.0).softmax(-1)[0, 1].item()
    assert before == pytest.approx(0.731, abs=1e-3)
    assert after == pytest.approx(0.119, abs=1e-3)


def test_penalty_counts_an_id_once_however_often_it_occurs() -> None:
    logits = torch.tensor([[8.0, 1.0]])
    once = apply_repetition_penalty(logits, torch.tensor([[0]]), 2.0)
    often = apply_repetition_penalty(logits, torch.tensor([[0, 0, 0, 0]]), 2.0)
    assert once.tolist() == often.tolist() == [[4, 1]]


def test_penalty_one_is_off() -> None:
    logits = random_logits(3, 5)
    ids = torch.randint(5, (3, 9), generator=seeded())
    for one in (1, 1.0):
        assert torch.equal(apply_repetition_penalty(logits, ids, one), logits)


def test_penalty_below_one_encourages_repetition() -> None:
    logits = torch.tensor([[4.0, -4.0, 1.0]])
    result = apply_repetition_penalty(logits, torch.tensor([[0, 1]]), 0.5)
    assert result.tolist() == [[8, -2, 1]]


def test_penalty_depends_on_where_the_logits_zero_is() -> None:
    # softmax does not feel a shift, the penalty does: a trap that the lesson shows
    logits = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
    first = [
        apply_repetition_penalty(logits + shift, torch.tensor([[0]]), 1.2).softmax(-1)[0, 0].item()
        for shift in (0, -3, 3)
    ]
    assert first == pytest.approx([0.550, 0.583, 0.426], abs=1e-3)


@pytest.mark.parametrize("penalty", [0, 0.0, -1.0, -0.5, NAN, INF, -INF])
def test_penalty_names_a_value_that_is_not_allowed(penalty: float) -> None:
    with pytest.raises(ValueError, match="above 0") as error:
        apply_repetition_penalty(torch.zeros(1, 3), torch.tensor([[0]]), penalty)
    assert f"penalty={penalty} " in str(error.value)


# --- frequency and presence penalty ---


def test_frequency_penalty_subtracts_presence_once_and_frequency_by_count() -> None:
    logits = torch.tensor([[4.0, 4.0, 4.0, -4.0]])
    ids = torch.tensor([[0, 0, 1, 3]])
    result = apply_frequency_penalty(logits, ids, presence=0.5, frequency=1.0)
    assert result.tolist() == [[1.5, 2.5, 4.0, -5.5]]
    assert apply_frequency_penalty(logits, ids, presence=0.5).tolist() == [[3.5, 3.5, 4.0, -4.5]]
    assert apply_frequency_penalty(logits, ids, frequency=1.0).tolist() == [[2.0, 3.0, 4.0, -5.0]]


def test_frequency_penalty_is_off_by_default_and_negative_encourages() -> None:
    logits, ids = random_logits(2, 4), torch.tensor([[0, 1], [2, 2]])
    assert torch.equal(apply_frequency_penalty(logits, ids), logits)
    result = apply_frequency_penalty(logits, ids, presence=-1.0, frequency=-2)
    expected = logits + torch.tensor([[3, 3, 0, 0], [0, 0, 5, 0]])
    torch.testing.assert_close(result, expected)


def test_frequency_penalty_does_not_depend_on_where_the_logits_zero_is() -> None:
    logits, ids = random_logits(3, 6), torch.randint(6, (3, 9), generator=seeded())
    plain, moved = frequency(logits, ids), frequency(logits + 7, ids)
    torch.testing.assert_close(plain.softmax(-1), moved.softmax(-1))


@pytest.mark.parametrize("name", ["presence", "frequency"])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_frequency_penalty_names_a_value_that_is_not_finite(name: str, value: float) -> None:
    with pytest.raises(ValueError, match="finite") as error:
        apply_frequency_penalty(torch.zeros(1, 3), torch.tensor([[0]]), **{name: value})
    assert str(error.value).startswith(f"{name}={value} ")


# --- both ---


@pytest.mark.parametrize("penalise", BOTH)
def test_each_row_has_its_own_history(penalise: Callable[..., Tensor]) -> None:
    logits = torch.full((2, 2), 4.0)
    result = penalise(logits, torch.tensor([[0], [1]]))
    assert result[0, 0] == result[1, 1] < 4
    assert result[0, 1] == result[1, 0] == 4


@pytest.mark.parametrize("penalise", BOTH)
def test_the_whole_row_counts_prompt_included(penalise: Callable[..., Tensor]) -> None:
    logits = torch.full((1, 4), 2.0)
    result = penalise(logits, torch.tensor([[3, 1]]))
    assert (result < 2).tolist() == [[False, True, False, True]]


@pytest.mark.parametrize("penalise", BOTH)
@pytest.mark.parametrize("dtype", [torch.long, torch.int32, torch.bool, torch.float32])
def test_padding_is_not_history_whatever_it_holds(
    penalise: Callable[..., Tensor], dtype: torch.dtype
) -> None:
    logits = torch.full((2, 3), 4.0)
    mask = torch.tensor([[0, 0, 1], [1, 0, 1]]).to(dtype)
    for filling in (0, 1, -1, 99):
        ids = torch.tensor([[filling, filling, 2], [2, filling, 0]])
        changed = penalise(logits, ids, mask) != 4
        assert changed.tolist() == [[False, False, True], [True, False, True]]


@pytest.mark.parametrize("penalise", BOTH)
def test_an_id_that_is_real_and_padding_too_counts(penalise: Callable[..., Tensor]) -> None:
    logits = torch.full((1, 2), 4.0)
    result = penalise(logits, torch.tensor([[0, 0, 1]]), torch.tensor([[0, 1, 1]]))
    assert torch.equal(result, penalise(logits, torch.tensor([[0, 1]])))


@pytest.mark.parametrize("penalise", BOTH)
def test_an_empty_history_changes_nothing(penalise: Callable[..., Tensor]) -> None:
    logits = random_logits(2, 4)
    assert torch.equal(penalise(logits, torch.zeros(2, 0, dtype=torch.long)), logits)
    ids = torch.zeros(2, 3, dtype=torch.long)
    assert torch.equal(penalise(logits, ids, torch.zeros_like(ids)), logits)


@pytest.mark.parametrize("penalise", BOTH)
def test_banned_tokens_stay_banned(penalise: Callable[..., Tensor]) -> None:
    logits = torch.tensor([[-INF, 1.0, -INF]])
    result = penalise(logits, torch.tensor([[0, 1]]))
    assert (result == -INF).tolist() == [[True, False, True]]
    assert not result.isnan().any()


@pytest.mark.parametrize("penalise", BOTH)
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_is_computed_in_float32(
    penalise: Callable[..., Tensor], dtype: torch.dtype
) -> None:
    logits = random_logits(2, 30).to(dtype)
    ids = torch.randint(30, (2, 9), generator=seeded())
    result = penalise(logits, ids)
    assert result.dtype == torch.float32
    assert torch.equal(result, penalise(logits.float(), ids))


@pytest.mark.parametrize("penalise", BOTH)
def test_integer_logits_and_any_integer_ids_are_taken(penalise: Callable[..., Tensor]) -> None:
    result = penalise(torch.tensor([[4, -4, 1]]), torch.tensor([[0, 1]], dtype=torch.int32))
    expected = penalise(torch.tensor([[4.0, -4.0, 1.0]]), torch.tensor([[0, 1]]))
    assert result.dtype == torch.float32
    assert torch.equal(result, expected)


@pytest.mark.parametrize("penalise", BOTH)
def test_strided_tensors_are_taken_and_left_alone(penalise: Callable[..., Tensor]) -> None:
    given = [
        strided(random_logits(3, 5)),
        strided(torch.randint(5, (3, 4), generator=seeded())),
        strided(torch.randint(2, (3, 4), generator=seeded(1))),
    ]
    before = [tensor.clone() for tensor in given]
    assert torch.equal(penalise(*given), penalise(*before))
    for tensor, copy in zip(given, before, strict=True):
        assert torch.equal(tensor, copy)


@pytest.mark.parametrize("penalise", BOTH)
@pytest.mark.parametrize("wrong", [3, -1, 99])
def test_an_id_outside_the_vocabulary_is_named(penalise: Callable[..., Tensor], wrong: int) -> None:
    with pytest.raises(ValueError, match=rf"ids holds {wrong};.* 0 to 2"):
        penalise(torch.zeros(1, 3), torch.tensor([[0, wrong]]))


@pytest.mark.parametrize("penalise", BOTH)
@pytest.mark.parametrize(
    "logits_shape,ids_shape", [((3,), (1, 2)), ((2, 3), (2,)), ((2, 3), (3, 1))]
)
def test_shapes_that_do_not_belong_together_are_named(
    penalise: Callable[..., Tensor], logits_shape: tuple[int, ...], ids_shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=r"logits.*ids") as error:
        penalise(torch.zeros(logits_shape), torch.zeros(ids_shape, dtype=torch.long))
    assert str(logits_shape) in str(error.value)
    assert str(ids_shape) in str(error.value)


@pytest.mark.parametrize("penalise", BOTH)
def test_a_mask_of_another_shape_is_named(penalise: Callable[..., Tensor]) -> None:
    ids = torch.zeros(2, 3, dtype=torch.long)
    with pytest.raises(ValueError, match=r"attention_mask has shape \(2, 4\).*\(2, 3\)"):
        penalise(torch.zeros(2, 3), ids, torch.ones(2, 4))
