"""Train the course's tokenizer and MiniGPT from any text file of stories.

    python -m models.train stories.txt --validation held_out.txt

A file holds stories separated by lines that say `<|endoftext|>`; `.xz` files are read as they are.
The shipped model was trained on a part of TinyStories (Eldan and Li 2023, arXiv 2305.07759), to be
had as the dataset `roneneldan/TinyStories` on the Hugging Face hub: download
`TinyStoriesV2-GPT4-train.txt` and pass its path.

A run lives in a folder of its own (`--run`). Killed at any moment, the same command goes on from
the last checkpoint and ends with the same weights as an undisturbed run.
"""

from __future__ import annotations

import csv
import json
import lzma
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn import functional as F

from course_lib.given.minigpt import MiniGPT, MiniGPTConfig
from course_lib.given.pretrained import TOKENIZER, save_pretrained, sha256

END = "<|endoftext|>"
console = Console()


# --- text to tokens ---


def read_stories(path: Path) -> list[str]:
    """The stories of a file, in order, without the lines that separate them."""
    opener: Callable[..., Any] = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        stories = [story.strip() for story in file.read().split(END)]
    return [story for story in stories if story]


def train_tokenizer(stories: list[str], vocab_size: int) -> Tokenizer:
    """A byte-level BPE: any text has a spelling, `END` has id 0."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(stories, trainer)
    return tokenizer


def encode_stories(tokenizer: Tokenizer, stories: list[str]) -> list[list[int]]:
    """Each story as END, its tokens, END: the first lets a model begin, the second lets it stop."""
    end = tokenizer.encode(END).ids[0]
    return [[end, *encoding.ids, end] for encoding in tokenizer.encode_batch(stories)]


def pack(encoded: list[list[int]]) -> Tensor:
    """One long row of ids: END, story, END, story, ..., END."""
    return torch.tensor([i for story in encoded for i in story[:-1]] + encoded[-1][-1:])


# --- the schedule: all that a step needs follows from its number, so a run can resume anywhere ---


@dataclass(frozen=True)
class Recipe:
    """What decides the weights, besides the data and the shape of the model."""

    steps: int
    batch: int = 16
    seed: int = 0
    muon_lr: float = 0.02
    adamw_lr: float = 6e-3
    weight_decay: float = 0.1
    warmup: int = 50
    decay_share: float = 0.6

    def rate(self, step: int) -> float:
        """The share of the full learning rate: up in a line, constant, down to zero in a line."""
        left = (self.steps - step) / max(1, round(self.steps * self.decay_share))
        return min(1.0, (step + 1) / self.warmup, left)


def batch_at(step: int, tokens: Tensor, recipe: Recipe, block_size: int) -> Tensor:
    """The `step`-th batch, ids of shape (batch, block_size + 1).

    An epoch cuts the row of tokens into windows, from a new random phase and in a new random order.
    """
    windows = (len(tokens) - 1 - block_size) // block_size
    per_epoch = windows // recipe.batch
    epoch, index = divmod(step, per_epoch)
    chance = torch.Generator().manual_seed(recipe.seed * 1_000_003 + epoch)
    phase = int(torch.randint(block_size, (), generator=chance))
    order = torch.randperm(windows, generator=chance)
    starts = phase + block_size * order[index * recipe.batch : (index + 1) * recipe.batch]
    return tokens[starts[:, None] + torch.arange(block_size + 1)]


def build_optimizers(model: MiniGPT, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the blocks, AdamW for embeddings and norms."""
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    inside = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in inside]
    return [
        torch.optim.Muon(matrices, lr=recipe.muon_lr, weight_decay=recipe.weight_decay),
        torch.optim.AdamW(
            others, lr=recipe.adamw_lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True
        ),
    ]


# --- measuring ---


@torch.inference_mode()
def bits_per_byte(model: MiniGPT, tokenizer: Tokenizer, stories: list[str]) -> float:
    """Bits the model needs per byte of text, the end of each story included.

    Every token is scored once. A story longer than the window is scored in pieces that overlap by
    half, so that each scored token but the first ones sees at least half a window of context.
    """
    training, size = model.training, model.block_size
    model.eval()
    pieces: list[tuple[list[int], int]] = []  # ids, how many of the last targets count
    for story in encode_stories(tokenizer, stories):
        done = 0  # targets already scored
        while done < len(story) - 1:
            stop = min(len(story) - 1, size if done == 0 else done + size // 2)
            pieces.append((story[max(0, stop - size) : stop + 1], stop - done))
            done = stop
    pieces.sort(key=lambda piece: len(piece[0]))
    nats = 0.0
    for start in range(0, len(pieces), 32):
        group = pieces[start : start + 32]
        width = max(len(ids) for ids, _ in group)
        inputs = torch.zeros(len(group), width, dtype=torch.long)
        targets = torch.full((len(group), width - 1), -100)
        for row, (ids, count) in enumerate(group):
            inputs[row, : len(ids)] = torch.tensor(ids)
            targets[row, len(ids) - 1 - count : len(ids) - 1] = torch.tensor(ids[-count:])
        # padding stands on the right, where causal attention never looks back at it
        logits = model(inputs[:, :-1])
        nats += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").item()
    model.train(training)
    return nats / math.log(2) / sum(len(story.encode()) for story in stories)


# --- a run, and its checkpoints ---


def write_then_rename(path: Path, write: Callable[[Path], object]) -> None:
    """A file that is either the old one or the new one, whenever the process is killed."""
    temporary = path.with_name(path.name + ".new")
    write(temporary)
    os.replace(temporary, path)


@dataclass
class Run:
    """The state of a training: resumed from `folder/checkpoint.pt` where there is one."""

    folder: Path
    model: MiniGPT
    optimizers: list[torch.optim.Optimizer]
    step: int = 0
    seconds: float = 0.0
    log: list[dict[str, float]] | None = None

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "random": torch.get_rng_state(),
            "step": self.step,
            "seconds": self.seconds,
            "log": self.log,
        }
        write_then_rename(self.folder / "checkpoint.pt", lambda path: torch.save(state, path))

    def resume(self) -> bool:
        path = self.folder / "checkpoint.pt"
        if not path.exists():
            return False
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        torch.set_rng_state(state["random"])
        self.step, self.seconds, self.log = state["step"], state["seconds"], state["log"]
        return True


def train(
    run: Run,
    recipe: Recipe,
    tokens: Tensor,
    evaluate: Callable[[], float],
    *,
    save_every: int = 200,
    evaluate_every: int = 500,
    compile_model: bool = False,
) -> Iterator[dict[str, float]]:
    """Train to the last step; yields a line of the log for each step, `bits_per_byte` in some."""
    model = run.model
    run.log = run.log or []

    def loss_of(ids: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(ids[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())

    step_loss = torch.compile(loss_of) if compile_model else loss_of
    full_rates = [o.param_groups[0]["lr"] for o in build_optimizers(model, recipe)]
    while run.step < recipe.steps:
        began = time.perf_counter()
        model.train()
        loss = step_loss(batch_at(run.step, tokens, recipe, model.block_size))
        loss.backward()
        for optimizer, full in zip(run.optimizers, full_rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = full * recipe.rate(run.step)
            optimizer.step()
            optimizer.zero_grad()
        run.step += 1
        line = {"step": float(run.step), "loss": loss.item()}
        if run.step % evaluate_every == 0 or run.step == recipe.steps:
            line["bits_per_byte"] = evaluate()
        run.seconds += time.perf_counter() - began
        run.log.append(line)
        if run.step % save_every == 0 or run.step == recipe.steps:
            run.save()
        yield line


# --- what a run leaves ---


def write_log(log: list[dict[str, float]], path: Path, every: int) -> None:
    """The loss curve as a table: the mean of each `every` steps, bits per byte where measured."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["step", "loss", "bits_per_byte"])
        for start in range(0, len(log), every):
            lines = log[start : start + every]
            loss = sum(line["loss"] for line in lines) / len(lines)
            bits = next((line["bits_per_byte"] for line in lines if "bits_per_byte" in line), None)
            table.writerow(
                [int(lines[-1]["step"]), f"{loss:.4f}", "" if bits is None else f"{bits:.4f}"]
            )


def draw_log(table: Path, picture: Path) -> None:
    """The loss curve as a picture, drawn from its table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    measured = [row for row in rows if row["bits_per_byte"]]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    left.plot([int(r["step"]) for r in rows], [float(r["loss"]) for r in rows], color="#0072b2")
    left.set(xlabel="step", ylabel="nats per token", title="training loss")
    right.plot(
        [int(r["step"]) for r in measured],
        [float(r["bits_per_byte"]) for r in measured],
        color="#d55e00",
        marker="o",
        markersize=3,
    )
    right.set(xlabel="step", ylabel="bits per byte", title="held-out stories")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)


def claim(folder: Path, settings: dict[str, object]) -> None:
    """Note in a run's folder what decides its weights, or refuse a folder that another run has."""
    path = folder / "settings.json"
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
        others = [name for name, value in settings.items() if kept.get(name) != value]
        if others:
            raise typer.BadParameter(
                f"{folder} holds a run with another {' and '.join(others)}; delete that folder to "
                "start anew, or pass another one with --run"
            )
    text = json.dumps(settings, indent=2) + "\n"
    write_then_rename(path, lambda new: new.write_text(text, encoding="utf-8"))


def prepare(
    text: Path, validation: Path | None, folder: Path, vocab_size: int
) -> tuple[Tokenizer, Tensor, list[str]]:
    """Tokenizer, packed training tokens, held-out stories; computed once a run, then read back."""
    stories = read_stories(text)
    if validation is not None:
        held_out = read_stories(validation)
    else:
        cut = max(1, len(stories) // 50)
        stories, held_out = stories[:-cut], stories[-cut:]
    if not stories or not held_out:
        raise typer.BadParameter(f"{text} holds too few stories; separate them by lines `{END}`")
    tokenizer_path, tokens_path = folder / TOKENIZER, folder / "tokens.pt"
    if not tokenizer_path.exists():
        tokenizer = train_tokenizer(stories, vocab_size)
        write_then_rename(tokenizer_path, lambda path: tokenizer.save(str(path)))
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    if not tokens_path.exists():
        tokens = pack(encode_stories(tokenizer, stories))
        write_then_rename(tokens_path, lambda path: torch.save(tokens, path))
    return tokenizer, torch.load(tokens_path, weights_only=True), held_out


def main(
    text: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="stories to learn")],
    validation: Annotated[
        Path | None,
        typer.Option(exists=True, help="held-out stories; else the last 2 % of TEXT"),
    ] = None,
    run_folder: Annotated[Path, typer.Option("--run", help="where checkpoints live")] = Path(
        "models/run"
    ),
    out: Annotated[Path, typer.Option(help="where the finished model goes")] = Path("models/new"),
    steps: int = 9_000,
    batch: int = 16,
    seed: int = 0,
    block_size: int = 256,
    vocab_size: int = 4096,
    layers: int = 4,
    heads: int = 4,
    width: int = 256,
    dropout: float = 0.1,
    save_every: int = 200,
    evaluate_every: int = 500,
    compile_model: Annotated[
        bool, typer.Option("--compile", help="a quarter faster; needs a C++ compiler")
    ] = False,
) -> None:
    """Train tokenizer and model, and write them to --out."""
    for folder in (run_folder, out):
        folder.mkdir(parents=True, exist_ok=True)
    recipe = Recipe(steps=steps, batch=batch, seed=seed)
    shape = MiniGPTConfig(vocab_size, block_size, layers, heads, width, dropout)
    texts = {
        "text": sha256(text),
        "validation": None if validation is None else sha256(validation),
    }
    claim(run_folder, {**texts, **asdict(shape), **asdict(recipe)})
    tokenizer, tokens, held_out = prepare(text, validation, run_folder, vocab_size)
    torch.manual_seed(seed)
    # a small text may not have as many pieces as were asked for
    model = MiniGPT(replace(shape, vocab_size=tokenizer.get_vocab_size()))
    if len(tokens) < block_size * (batch + 1) + 1:
        raise typer.BadParameter(f"{text} has {len(tokens)} tokens, too few for one batch")
    run = Run(run_folder, model, build_optimizers(model, recipe))
    if run.resume():
        console.print(f"going on from step {run.step:,} of {steps:,}")
    columns = (
        TextColumn("step {task.completed:,.0f}/{task.total:,.0f}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  bits/byte {task.fields[bits]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=steps, completed=run.step, loss=math.nan, bits=math.nan)
        for line in train(
            run,
            recipe,
            tokens,
            lambda: bits_per_byte(model, tokenizer, held_out),
            save_every=save_every,
            evaluate_every=evaluate_every,
            compile_model=compile_model,
        ):
            progress.update(task, completed=line["step"], loss=line["loss"])
            if "bits_per_byte" in line:
                progress.update(task, bits=line["bits_per_byte"])
                if not console.is_terminal:
                    console.print(
                        f"step {line['step']:,.0f} of {steps:,}: loss {line['loss']:.3f}, "
                        f"{line['bits_per_byte']:.4f} bits per byte"
                    )
    (out / TOKENIZER).write_bytes((run_folder / TOKENIZER).read_bytes())
    save_pretrained(model, out)
    write_log(run.log or [], out / "loss_curve.csv", every=max(1, steps // 400))
    draw_log(out / "loss_curve.csv", out / "loss_curve.png")
    stored = MiniGPT.from_pretrained(out)
    console.print(
        f"{steps:,} steps, {steps * batch * block_size:,} tokens, {run.seconds / 60:.0f} minutes; "
        f"{bits_per_byte(stored, tokenizer, held_out):.4f} bits per byte as stored in {out}"
    )


if __name__ == "__main__":
    typer.run(main)
