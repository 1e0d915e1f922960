"""Lesson 1: the loss of training, perplexity, and the logits that decide the next token."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from solutions.training import last_logits, next_token_loss, perplexity

from .helpers import HALVES, NAN, random_ids, random_logits, seeded, strided, tiny


def slow_loss(logits: Tensor, tokens: Tensor, ignore_index: int = -100) -> float:
    """The loss by its definition: one prediction at a time, in Python's own numbers."""
    losses = []
    for row in range(len(tokens)):
        for t in range(tokens.shape[1] - 1):
            target = int(tokens[row, t + 1])
            if target != ignore_index:
                scores = logits[row, t].tolist()
                top = max(scores)
                total = sum(math.exp(score - top) for score in scores)
                losses.append(math.log(total) + top - scores[target])
    return sum(losses) / len(losses)


# --- next_token_loss ---


def test_loss_lets_position_t_predict_token_t_plus_one() -> None:
    successors = torch.nn.functional.one_hot(torch.tensor([[1, 2, 3, 0]]), 4).float() * 20
    assert next_token_loss(successors, torch.tensor([[0, 1, 2, 3]])).item() == pytest.approx(0)
    copies = torch.nn.functional.one_hot(torch.tensor([[0, 1, 2, 3]]), 4).float() * 20
    assert next_token_loss(copies, torch.tensor([[0, 1, 2, 3]])).item() == pytest.approx(20)


def test_loss_is_a_float32_scalar() -> None:
    loss = next_token_loss(torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.long))
    assert loss.shape == ()
    assert loss.dtype == torch.float32


@pytest.mark.parametrize("batch,pos,vocab", [(1, 2, 1), (1, 5, 7), (4, 4, 4), (3, 6, 2)])
def test_loss_equals_one_prediction_at_a_time(batch: int, pos: int, vocab: int) -> None:
    logits = random_logits(batch, pos, vocab)
    tokens = torch.randint(vocab, (batch, pos), generator=seeded())
    assert next_token_loss(logits, tokens).item() == pytest.approx(
        slow_loss(logits, tokens), rel=1e-5, abs=1e-6
    )


def test_loss_of_a_uniform_model_is_log_vocab() -> None:
    tokens = torch.randint(6400, (2, 5), generator=seeded())
    loss = next_token_loss(torch.zeros(2, 5, 6400), tokens)
    assert loss.item() == pytest.approx(math.log(6400))


def test_loss_does_not_pair_the_end_of_a_row_with_the_start_of_the_next() -> None:
    logits = random_logits(2, 3, 5)
    tokens = torch.tensor([[0, 1, 2], [3, 4, 0]])
    rows = [next_token_loss(logits[i : i + 1], tokens[i : i + 1]) for i in range(2)]
    torch.testing.assert_close(next_token_loss(logits, tokens), torch.stack(rows).mean())


def test_loss_ignores_the_last_positions_logits_and_the_first_token() -> None:
    logits, tokens = random_logits(2, 4, 5), torch.randint(5, (2, 4), generator=seeded())
    expected = next_token_loss(logits, tokens)
    changed, others = logits.clone(), tokens.clone()
    changed[:, -1] = 1e4
    others[:, 0] = (others[:, 0] + 1) % 5
    assert next_token_loss(changed, others) == expected


@pytest.mark.parametrize("ignore_index", [-100, 0, 3])
def test_loss_is_the_mean_over_targets_that_count(ignore_index: int) -> None:
    logits = random_logits(2, 5, 4)
    tokens = torch.tensor([[1, ignore_index, 2, ignore_index, 1], [2, 2, 1, 1, ignore_index]])
    loss = next_token_loss(logits, tokens, ignore_index)
    assert loss.item() == pytest.approx(slow_loss(logits, tokens, ignore_index), rel=1e-5)


def test_loss_with_all_targets_ignored_is_nan() -> None:
    assert next_token_loss(torch.zeros(1, 3, 4), torch.full((1, 3), -100)).isnan()


def test_loss_of_a_single_position_has_no_target_and_is_nan() -> None:
    assert next_token_loss(torch.zeros(2, 1, 4), torch.zeros(2, 1, dtype=torch.long)).isnan()


def test_loss_stays_finite_for_huge_logits() -> None:
    logits = torch.tensor([[[1000.0, 0.0], [0.0, 0.0]]])
    assert next_token_loss(logits, torch.tensor([[0, 1]])).item() == 1000


def test_loss_of_a_banned_wrong_token_counts_it_as_probability_zero() -> None:
    logits = torch.tensor([[[-math.inf, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    assert next_token_loss(logits, torch.tensor([[0, 1]])).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("dtype", HALVES)
def test_loss_of_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    logits = random_logits(2, 5, 300).to(dtype)
    tokens = torch.randint(300, (2, 5), generator=seeded())
    loss = next_token_loss(logits, tokens)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(slow_loss(logits.float(), tokens), rel=1e-5)


def test_loss_takes_strided_logits_and_any_integer_tokens() -> None:
    logits, tokens = random_logits(2, 4, 5), torch.randint(5, (2, 4), generator=seeded())
    expected = next_token_loss(logits, tokens)
    assert next_token_loss(strided(logits), strided(tokens)) == expected
    assert next_token_loss(logits, tokens.int()) == expected
    assert next_token_loss(logits.round().long(), tokens) == next_token_loss(logits.round(), tokens)


def test_loss_lets_the_gradient_through() -> None:
    logits = random_logits(2, 4, 5).requires_grad_()
    next_token_loss(logits, torch.randint(5, (2, 4), generator=seeded())).backward()
    assert logits.grad is not None
    assert logits.grad[:, :-1].abs().sum() > 0
    assert logits.grad[:, -1].abs().sum() == 0


def test_loss_changes_no_argument() -> None:
    logits, tokens = random_logits(2, 4, 5), torch.tensor([[0, 1, -100, 2], [3, -100, 4, 0]])
    before = logits.clone(), tokens.clone()
    next_token_loss(logits, tokens)
    assert torch.equal(logits, before[0])
    assert torch.equal(tokens, before[1])


@pytest.mark.parametrize(
    "logits_shape,tokens_shape",
    [((2, 3, 4), (2, 4)), ((2, 3, 4), (3, 3)), ((3, 4), (3,)), ((2, 3, 4), (6,))],
)
def test_loss_names_shapes_that_do_not_belong_together(
    logits_shape: tuple[int, ...], tokens_shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=r"logits.*tokens") as error:
        next_token_loss(torch.zeros(logits_shape), torch.zeros(tokens_shape, dtype=torch.long))
    assert str(logits_shape) in str(error.value)
    assert str(tokens_shape) in str(error.value)


@pytest.mark.parametrize("token", [4, -1, 99])
def test_loss_names_a_token_outside_the_vocabulary(token: int) -> None:
    with pytest.raises(ValueError, match=rf"tokens holds {token};.* 0 to 3"):
        next_token_loss(torch.zeros(1, 2, 4), torch.tensor([[0, token]]))


def test_loss_of_a_fresh_model_is_near_log_vocab() -> None:
    model = tiny(vocab_size=50)
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(0.01)
        loss = next_token_loss(model(random_ids(model, 2, 10)), random_ids(model, 2, 10))
    assert loss.item() == pytest.approx(math.log(50), rel=0.01)


# --- perplexity ---


def test_perplexity_is_exp_of_the_mean_over_all_tokens() -> None:
    assert perplexity([(6.0, 1), (2.0, 3)]) == pytest.approx(math.exp(2))


def test_perplexity_does_not_depend_on_how_tokens_are_batched() -> None:
    nats = [0.5, 1.5, 2.5, 0.1, 3.0]
    expected = math.exp(sum(nats) / 5)
    for cut in range(1, 5):
        pairs = [(sum(nats[:cut]), cut), (sum(nats[cut:]), 5 - cut)]
        assert perplexity(pairs) == pytest.approx(expected)


def test_perplexity_of_a_certain_model_is_one_and_of_a_uniform_one_its_vocabulary() -> None:
    assert perplexity([(0.0, 7)]) == 1
    assert perplexity([(10 * math.log(4096), 10)]) == pytest.approx(4096)


def test_perplexity_takes_any_iterable_tensors_and_empty_batches() -> None:
    pairs = ((torch.tensor(nll), torch.tensor(count)) for nll, count in [(6.0, 1), (2.0, 3)])
    assert perplexity(pairs) == pytest.approx(math.exp(2))
    assert perplexity([(6.0, 1), (0.0, 0), (2.0, 3)]) == pytest.approx(math.exp(2))


def test_perplexity_is_a_float_also_where_it_overflows() -> None:
    assert isinstance(perplexity([(1.0, 2)]), float)
    assert perplexity([(1e6, 1)]) == math.inf
    assert math.isnan(perplexity([(NAN, 1)]))


@pytest.mark.parametrize("batches", [[], [(0.0, 0)]])
def test_perplexity_of_no_token_raises(batches: list[tuple[float, int]]) -> None:
    with pytest.raises(ValueError, match="batches holds 0 tokens"):
        perplexity(batches)


def test_perplexity_names_a_negative_count() -> None:
    with pytest.raises(ValueError, match=r"batches.*-3"):
        perplexity([(1.0, 5), (1.0, -3)])


# --- last_logits ---

LADDER = torch.arange(24.0).view(2, 4, 3)


def test_last_logits_without_a_mask_are_those_of_the_last_position() -> None:
    assert torch.equal(last_logits(LADDER), LADDER[:, -1])


@pytest.mark.parametrize(
    "mask,positions",
    [
        ([[1, 1, 1, 1], [1, 1, 1, 1]], [3, 3]),
        ([[0, 0, 1, 1], [0, 0, 0, 1]], [3, 3]),
        ([[1, 1, 0, 0], [1, 0, 0, 0]], [1, 0]),
        ([[1, 1, 1, 0], [0, 1, 1, 1]], [2, 3]),
        ([[0, 1, 1, 0], [1, 0, 1, 0]], [2, 2]),
    ],
    ids=["no padding", "left", "right", "a side a row", "both sides and a hole"],
)
def test_last_logits_with_a_mask_are_those_of_the_last_real_position(
    mask: list[list[int]], positions: list[int]
) -> None:
    expected = torch.stack([LADDER[row, at] for row, at in enumerate(positions)])
    for dtype in (torch.long, torch.int32, torch.bool, torch.float32):
        assert torch.equal(last_logits(LADDER, torch.tensor(mask).to(dtype)), expected)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 3), (3, 1, 3), (3, 3, 3)])
def test_last_logits_are_batch_by_vocab(shape: tuple[int, int, int]) -> None:
    logits = random_logits(*shape)
    assert last_logits(logits).shape == (shape[0], shape[2])
    mask = torch.ones(shape[:2], dtype=torch.long)
    assert torch.equal(last_logits(logits, mask), logits[:, -1])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("masked", [False, True])
def test_last_logits_of_half_precision_are_float32(dtype: torch.dtype, masked: bool) -> None:
    logits = random_logits(2, 4, 3).to(dtype)
    mask = torch.ones(2, 4, dtype=torch.long) if masked else None
    result = last_logits(logits, mask)
    assert result.dtype == torch.float32
    assert torch.equal(result, logits[:, -1].float())


def test_last_logits_keep_banned_tokens_banned() -> None:
    logits = LADDER.clone()
    logits[0, -1, 1] = -math.inf
    assert last_logits(logits)[0].tolist() == [9, -math.inf, 11]


def test_last_logits_take_strided_tensors_and_change_none() -> None:
    logits, mask = strided(LADDER), strided(torch.tensor([[0, 1, 1, 0], [1, 1, 0, 0]]))
    before = logits.clone(), mask.clone()
    expected = torch.stack([LADDER[0, 2], LADDER[1, 1]])
    assert torch.equal(last_logits(logits, mask), expected)
    assert torch.equal(logits, before[0])
    assert torch.equal(mask, before[1])


@pytest.mark.parametrize("shape", [(2, 3), (2, 5), (3, 4), (4,)])
def test_last_logits_name_a_mask_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="attention_mask") as error:
        last_logits(LADDER, torch.ones(shape, dtype=torch.long))
    assert str(shape) in str(error.value)
    assert "(2, 4)" in str(error.value)


def test_last_logits_name_a_row_without_a_real_position() -> None:
    with pytest.raises(ValueError, match="attention_mask row 1 is all 0"):
        last_logits(LADDER, torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]]))


@pytest.mark.parametrize("shape", [(4, 3), (2, 0, 3), (3,)])
def test_last_logits_name_logits_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="logits has shape") as error:
        last_logits(torch.zeros(shape))
    assert str(shape) in str(error.value)
