"""MiniGPT: what it computes, what it asks of a cache, and how its files are read."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from course_lib.given import minigpt
from course_lib.given.minigpt import MiniGPT, MiniGPTConfig
from course_lib.given.pretrained import (
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    ModelFileError,
    checked,
    load_pretrained,
    save_pretrained,
    sha256,
    shipped_models,
)
from solutions.generate import generate
from solutions.kv_cache import KVCache
from solutions.training import next_token_loss
from tests.solutions.helpers import left_pad, new_cache, random_ids, tiny

PARAMETERS = 4_264_448  # of the shipped shape: 4096 and 256 embeddings, 4 blocks, a final norm


# --- what it computes ---


@pytest.mark.parametrize("batch,pos", [(1, 1), (1, 16), (3, 5), (16, 16)])
def test_logits_are_batch_by_pos_by_vocab(batch: int, pos: int) -> None:
    model = tiny()
    logits = model(random_ids(model, batch, pos))
    assert logits.shape == (batch, pos, model.vocab_size)
    assert logits.dtype == torch.float32


def test_it_has_the_attributes_of_the_model_protocol() -> None:
    model = MiniGPT(MiniGPTConfig(vocab_size=50, block_size=8, n_layers=3, n_heads=2, width=12))
    assert (model.vocab_size, model.block_size) == (50, 8)
    assert (model.n_layers, model.n_heads, model.head_dim) == (3, 2, 6)


def test_the_shape_by_default_is_the_shipped_one() -> None:
    config = MiniGPTConfig()
    assert (config.vocab_size, config.block_size, config.width) == (4096, 256, 256)
    assert (config.n_layers, config.n_heads) == (4, 4)
    model = MiniGPT(config)
    assert sum(weights.numel() for weights in model.parameters()) == PARAMETERS


def test_a_position_never_sees_a_later_one() -> None:
    model = tiny()
    ids = random_ids(model, 1, 12)
    expected = model(ids)
    for changed in range(12):
        others = ids.clone()
        others[0, changed] = (others[0, changed] + 1) % model.vocab_size
        logits = model(others)
        torch.testing.assert_close(logits[:, :changed], expected[:, :changed])
        assert not torch.allclose(logits[:, changed:], expected[:, changed:], atol=1e-3)


def test_every_earlier_position_matters() -> None:
    model = tiny()
    ids = random_ids(model, 1, 12)
    last = model(ids)[0, -1]
    for changed in range(12):
        others = ids.clone()
        others[0, changed] = (others[0, changed] + 1) % model.vocab_size
        assert (model(others)[0, -1] - last).abs().max() > 1e-4


def test_positions_matter() -> None:
    model = tiny()
    ids = torch.full((1, 6), 3)
    logits = model(ids)[0]
    assert (logits[1:] - logits[:-1]).abs().amax(-1).min() > 1e-3


def test_rows_of_a_batch_do_not_see_each_other() -> None:
    model = tiny()
    ids = random_ids(model, 4, 9)
    alone = torch.cat([model(row[None]) for row in ids])
    torch.testing.assert_close(model(ids), alone, rtol=1e-4, atol=1e-5)


def test_the_head_is_tied_to_the_embedding() -> None:
    model = tiny()
    assert not [name for name, _ in model.named_parameters() if "head" in name]
    before = model(torch.tensor([[1, 2, 3]]))
    with torch.no_grad():
        model.token_embedding.weight[7] += 1
    after = model(torch.tensor([[1, 2, 3]]))
    changed = (after - before).abs().amax((0, 1)) > 1e-6
    assert changed.nonzero().tolist() == [[7]]


def test_a_fresh_model_knows_nothing() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MiniGPT(MiniGPTConfig(vocab_size=500, block_size=32, width=32, n_layers=2)).eval()
    ids = random_ids(model, 4, 32)
    assert next_token_loss(model(ids), ids).item() == pytest.approx(math.log(500), rel=0.02)


def test_it_learns() -> None:
    model = tiny(dropout=0.0).train()
    ids = random_ids(model, 2, 12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(20):
        loss = next_token_loss(model(ids), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(weights.grad is not None for weights in model.parameters())
    assert losses[-1] < losses[0] / 2


def test_dropout_works_in_training_only() -> None:
    model = tiny(dropout=0.5)
    ids = random_ids(model, 1, 6)
    assert torch.equal(model(ids), model(ids))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model.train()
        assert not torch.equal(model(ids), model(ids))


# --- mask and positions ---


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_row_has_the_logits_that_it_has_alone(side: str) -> None:
    model = tiny()
    rows = [random_ids(model, 1, n, seed=n)[0] for n in (9, 4, 1)]
    ids, mask = left_pad(rows, pad_id=7)
    if side == "right":
        shifts = (mask == 0).sum(-1)
        for row, shift in enumerate(shifts.tolist()):
            ids[row], mask[row] = ids[row].roll(-shift), mask[row].roll(-shift)
    logits = model(ids, attention_mask=mask)
    assert logits.isfinite().all(), "at the padding too"
    for row, real, told in zip(rows, mask.bool(), logits, strict=True):
        torch.testing.assert_close(told[real], model(row[None])[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.long, torch.int32, torch.bool, torch.float32])
def test_a_mask_without_padding_changes_nothing_whatever_its_type(dtype: torch.dtype) -> None:
    model = tiny()
    ids = random_ids(model, 2, 9)
    logits = model(ids, attention_mask=torch.ones_like(ids).to(dtype))
    torch.testing.assert_close(logits, model(ids), rtol=1e-4, atol=1e-5)


def test_a_row_of_padding_alone_is_finite() -> None:
    model = tiny()
    mask = torch.tensor([[0, 0, 0], [1, 1, 1]])
    assert model(random_ids(model, 2, 3), attention_mask=mask).isfinite().all()
    cached = model(random_ids(model, 2, 3), attention_mask=mask, cache=new_cache(model, 2))
    assert cached.isfinite().all()


# --- the cache ---


@pytest.mark.parametrize("pieces", [[12], [1] * 12, [5, 7], [11, 1]], ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_with_a_cache_the_logits_are_the_same(pieces: list[int], masked: bool) -> None:
    model = tiny()
    if masked:
        ids, mask = left_pad([random_ids(model, 1, n, seed=n)[0] for n in (12, 5, 1)])
    else:
        ids, mask = random_ids(model, 3, 12), None
    cache, told = new_cache(model, 3), []
    for piece in ids.split(pieces, dim=1):
        total = cache.length + piece.shape[1]
        so_far = None if mask is None else mask[:, :total]
        told.append(model(piece, cache=cache, attention_mask=so_far))
        assert cache.length == total
    real = torch.ones_like(ids).bool() if mask is None else mask.bool()
    whole = model(ids, attention_mask=mask)
    torch.testing.assert_close(torch.cat(told, 1)[real], whole[real], rtol=1e-4, atol=1e-5)


def test_it_asks_a_cache_for_its_length_and_for_attend_only() -> None:
    class Narrow:
        """A cache of another make: lists of tensors behind the two names."""

        __slots__ = ("_held", "_layers")

        def __init__(self, layers: int) -> None:
            self._held: dict[int, tuple[Tensor, Tensor]] = {}
            self._layers = layers

        @property
        def length(self) -> int:
            lengths = [k.shape[2] for k, _ in self._held.values()]
            return min(lengths) if len(lengths) == self._layers else 0

        def attend(
            self, layer: int, q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None = None
        ) -> Tensor:
            if layer in self._held:
                k = torch.cat([self._held[layer][0], k], dim=2)
                v = torch.cat([self._held[layer][1], v], dim=2)
            self._held[layer] = k, v
            past = k.shape[2] - q.shape[2]
            mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(past)
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)

    model = tiny()
    ids, cache = random_ids(model, 2, 10), Narrow(model.n_layers)
    told = [model(piece, cache=cache) for piece in ids.split([4, 1, 5], dim=1)]
    torch.testing.assert_close(torch.cat(told, 1), model(ids), rtol=1e-4, atol=1e-5)


# --- wrong arguments ---


def test_too_many_positions_are_named() -> None:
    model = tiny()
    with pytest.raises(ValueError, match="position 17, but block_size=16"):
        model(random_ids(model, 1, 17))


def test_too_many_positions_with_a_cache_are_named_and_the_cache_is_left_alone() -> None:
    model = tiny()
    cache = new_cache(model, capacity=40)
    model(random_ids(model, 1, 12), cache=cache)
    with pytest.raises(ValueError, match="position 18, but block_size=16"):
        model(random_ids(model, 1, 6), cache=cache)
    assert cache.length == 12
    model(random_ids(model, 1, 4), cache=cache)


@pytest.mark.parametrize("past,shape", [(0, (2, 4)), (0, (1, 5)), (3, (2, 5)), (0, (5,))], ids=str)
def test_a_mask_that_does_not_cover_the_positions_is_named(
    past: int, shape: tuple[int, ...]
) -> None:
    model, cache = tiny(), new_cache(tiny(), 2)
    if past:
        model(random_ids(model, 2, past), cache=cache)
    with pytest.raises(ValueError, match="attention_mask has shape") as error:
        model(random_ids(model, 2, 5), cache=cache, attention_mask=torch.ones(shape))
    assert str(shape) in str(error.value)
    assert str((2, past + 5)) in str(error.value)


def test_a_width_that_the_heads_cannot_share_is_named() -> None:
    with pytest.raises(ValueError, match="width=10 must be a multiple of n_heads=4"):
        MiniGPTConfig(width=10, n_heads=4)


# --- the file a newcomer reads ---


def test_the_file_is_short_and_knows_of_no_kv_cache_module() -> None:
    source = Path(minigpt.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 170
    imported = {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
    }
    assert not {name for name in imported if name and "kv_cache" in name}


# --- the files of a trained model ---


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with a toy model as it is shipped."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / TOKENIZER).write_text('{"stands": "for a tokenizer"}')
    save_pretrained(tiny(seed=4), folder)
    return folder


def test_a_model_comes_back_as_it_was_but_for_float16(saved: Path) -> None:
    model, original = MiniGPT.from_pretrained(saved), tiny(seed=4)
    assert model.config == original.config
    assert not model.training
    for name, weights in model.state_dict().items():
        assert weights.dtype == torch.float32
        assert torch.equal(weights, original.state_dict()[name].half().float())


def test_a_model_saved_once_more_is_the_same_to_the_byte(saved: Path) -> None:
    before = {name: sha256(saved / name) for name in (WEIGHTS, CONFIG)}
    save_pretrained(MiniGPT.from_pretrained(str(saved)), saved)
    assert {name: sha256(saved / name) for name in (WEIGHTS, CONFIG)} == before


def test_whoever_may_read_the_config_may_read_the_weights(saved: Path) -> None:
    assert (saved / WEIGHTS).stat().st_mode == (saved / CONFIG).stat().st_mode


def test_a_loaded_model_serves_the_solutions_cache(saved: Path) -> None:
    model = MiniGPT.from_pretrained(saved)
    ids = random_ids(model, 2, 5)
    cached, plain = (
        generate(model, ids, 20, do_sample=False, use_cache=on) for on in (True, False)
    )
    assert torch.equal(cached.ids, plain.ids)


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the entries of `config.json`."""
    config = json.loads((folder / CONFIG).read_text())
    change(config)
    (folder / CONFIG).write_text(json.dumps(config))


def flip_a_bit(folder: Path) -> None:
    data = bytearray((folder / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (folder / WEIGHTS).write_bytes(data)


def cut_in_half(folder: Path) -> None:
    data = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(data[: len(data) // 2])


def be_no_weights(folder: Path) -> None:
    (folder / WEIGHTS).write_text("<html>not found</html>")
    edit(folder, lambda config: config["sha256"].update({WEIGHTS: sha256(folder / WEIGHTS)}))


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), WEIGHTS, "is missing"),
    "no config": (lambda folder: (folder / CONFIG).unlink(), CONFIG, "is missing"),
    "a bit flipped": (flip_a_bit, WEIGHTS, "is damaged"),
    "cut in half": (cut_in_half, WEIGHTS, "is damaged"),
    "empty": (lambda folder: (folder / WEIGHTS).write_bytes(b""), WEIGHTS, "is damaged"),
    "not weights": (be_no_weights, WEIGHTS, "does not fit"),
    "config is cut": (
        lambda folder: (folder / CONFIG).write_text('{"model": {'),
        CONFIG,
        "cannot be read",
    ),
    "config is no text": (
        lambda folder: (folder / CONFIG).write_bytes(b"\xff\xfe\x00"),
        CONFIG,
        "cannot be read",
    ),
    "config is a list": (lambda folder: (folder / CONFIG).write_text("[]"), CONFIG, "lacks"),
    "config has no sha256": (
        lambda folder: edit(folder, lambda config: config.pop("sha256")),
        CONFIG,
        "lacks",
    ),
    "no sha256 of the weights": (
        lambda folder: edit(folder, lambda config: config["sha256"].pop(WEIGHTS)),
        WEIGHTS,
        "is damaged",
    ),
    "another width": (
        lambda folder: edit(folder, lambda config: config["model"].update(width=32)),
        WEIGHTS,
        "does not fit",
    ),
    "another depth": (
        lambda folder: edit(folder, lambda config: config["model"].update(n_layers=9)),
        WEIGHTS,
        "does not fit",
    ),
    "heads that do not share": (
        lambda folder: edit(folder, lambda config: config["model"].update(n_heads=3)),
        WEIGHTS,
        "does not fit",
    ),
    "an unknown entry": (
        lambda folder: edit(folder, lambda config: config["model"].update(colour="red")),
        WEIGHTS,
        "does not fit",
    ),
}


@pytest.mark.parametrize("damage,file,told", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_told_in_a_line_that_names_the_file_and_the_mend(
    saved: Path, damage: Callable[[Path], object], file: str, told: str
) -> None:
    damage(saved)
    with pytest.raises(ModelFileError) as error:
        MiniGPT.from_pretrained(saved)
    message = str(error.value)
    assert str(saved / file) in message
    assert told in message
    assert "git checkout -- models" in message
    assert "\n" not in message
    assert len(message) < 600


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is missing"):
        load_pretrained(tmp_path / "nowhere")


def test_a_damaged_tokenizer_is_told(saved: Path) -> None:
    assert checked(saved, TOKENIZER) == saved / TOKENIZER
    (saved / TOKENIZER).write_text("{}")
    with pytest.raises(ModelFileError, match="is damaged"):
        checked(saved, TOKENIZER)


# --- the shipped model ---


@pytest.fixture(scope="module")
def shipped() -> MiniGPT:
    return MiniGPT.from_pretrained()


def test_the_shipped_files_are_whole_and_small() -> None:
    folder = shipped_models()
    files = [checked(folder, WEIGHTS), checked(folder, TOKENIZER), folder / CONFIG]
    assert sum(path.stat().st_size for path in files) <= 10_000_000


def test_the_shipped_model_has_the_shape_of_the_course(shipped: MiniGPT) -> None:
    assert sum(weights.numel() for weights in shipped.parameters()) == PARAMETERS
    assert shipped.config == MiniGPTConfig()
    assert not shipped.training


def test_the_shipped_model_tells_the_same_with_the_cache_and_without(shipped: MiniGPT) -> None:
    ids = random_ids(shipped, 1, 253)  # so that the window slides soon
    with torch.inference_mode():
        cached_logits = shipped(ids, cache=KVCache(4, 1, 4, 64, 256))
        torch.testing.assert_close(cached_logits, shipped(ids), rtol=1e-4, atol=1e-5)
    cached, plain = (
        generate(shipped, ids, 6, do_sample=False, use_cache=on) for on in (True, False)
    )
    assert torch.equal(cached.ids, plain.ids)
    assert cached.positions_forwarded == 253 + 3 + 2 * 256
    assert plain.positions_forwarded == 253 + 254 + 255 + 3 * 256
