"""The model card says what is so."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from course_lib.given.minigpt import MiniGPT
from course_lib.given.pretrained import TOKENIZER, WEIGHTS, read_config, sha256, shipped_models

MODELS = shipped_models()
CARD = (MODELS / "README.md").read_text(encoding="utf-8")
LARGEST_MB = 10


def test_checksums_in_the_card_are_those_of_the_files() -> None:
    for name in (WEIGHTS, TOKENIZER):
        (line,) = [line for line in CARD.splitlines() if line.startswith(f"| `{name}`")]
        assert f"`{sha256(MODELS / name)}`" in line


def test_the_parameters_in_the_card_are_counted() -> None:
    count = sum(weight.numel() for weight in MiniGPT.from_pretrained().parameters())
    assert f"| parameters | {count:,}," in CARD


def test_steps_and_bits_per_byte_in_the_card_are_the_last_of_the_loss_curve() -> None:
    with (MODELS / "loss_curve.csv").open(newline="", encoding="utf-8") as file:
        last = list(csv.DictReader(file))[-1]
    assert f"{int(last['step']):,} steps" in CARD
    assert f"**{last['bits_per_byte']} bits per byte**" in CARD
    assert float(last["bits_per_byte"]) <= 0.70


def test_the_shipped_model_has_the_shape_of_the_course() -> None:
    expected = {
        "vocab_size": 4096,
        "block_size": 256,
        "n_layers": 4,
        "n_heads": 4,
        "width": 256,
        "dropout": 0.1,
    }
    assert read_config(MODELS)["model"] == expected
    assert (
        json.loads((MODELS / TOKENIZER).read_text(encoding="utf-8"))["added_tokens"][0]["id"] == 0
    )


def test_all_that_is_shipped_of_the_model_is_small() -> None:
    shipped = [path for path in MODELS.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in shipped) < LARGEST_MB * 1_000_000


def test_the_picture_in_the_card_has_an_alt_text() -> None:
    alt = " ".join(CARD.partition("![")[2].partition("](loss_curve.png)")[0].split())
    assert len(alt) > 100
    assert (MODELS / "loss_curve.png").is_file()
    assert Path(MODELS / "loss_curve.csv").is_file()
