"""The training command, on a toy: it learns, it resumes to the bit, and it measures right.

The stories are made from templates here; a run takes forty steps of a model of 11,488 weights.
"""

from __future__ import annotations

import csv
import itertools
import lzma
import math
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from safetensors.torch import load_file
from tokenizers import Tokenizer
from typer.testing import CliRunner

from course_lib.given.minigpt import MiniGPT, MiniGPTConfig
from course_lib.given.pretrained import CONFIG, TOKENIZER, WEIGHTS, checked
from models import train as training
from models.train import (
    END,
    Recipe,
    batch_at,
    bits_per_byte,
    build_optimizers,
    claim,
    draw_log,
    encode_stories,
    pack,
    prepare,
    read_stories,
    train_tokenizer,
    write_log,
    write_then_rename,
)
from tests.solutions.helpers import tiny

ROOT = Path(__file__).resolve().parents[2]

HEROES = ["Mila", "the old goat", "a small robot", "Yusuf", "the baker"]
PLACES = ["by the lake", "in the attic", "under the bridge", "on the roof"]
FINDS = ["a brass key", "a torn map", "a singing shell", "three blue eggs"]
ENDS = ["and gave it back", "and slept well", "and laughed until it was dark"]


def make_stories() -> list[str]:
    """240 little stories, each another."""
    return [
        f"One morning {hero} was {place}. There lay {find}!\n{hero.capitalize()} looked at it "
        f"for a long time, took it home, {end}."
        for hero, place, find, end in itertools.product(HEROES, PLACES, FINDS, ENDS)
    ]


STORIES = make_stories()
SHAPE = {"block_size": 24, "vocab_size": 300, "layers": 2, "heads": 2, "width": 16}
RUN: dict[str, Any] = {
    "validation": None,
    "steps": 40,
    "batch": 4,
    "save_every": 10,
    "evaluate_every": 20,
    **SHAPE,
}


def write_text(path: Path, stories: list[str]) -> Path:
    path.write_text(f"\n{END}\n".join(stories), encoding="utf-8")
    return path


def run_main(text: Path, run: Path, out: Path, **changes: Any) -> None:
    """The command, in this process."""
    with torch.random.fork_rng():
        training.main(text, run_folder=run, out=out, **(RUN | changes))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(STORIES, 300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("training")


@pytest.fixture(scope="module")
def text(folder: Path) -> Path:
    return write_text(folder / "stories.txt", STORIES)


@pytest.fixture(scope="module")
def finished(folder: Path, text: Path) -> Path:
    """A folder with an undisturbed `run` and its `out`."""
    run_main(text, folder / "run", folder / "out")
    return folder


# --- text to tokens ---


def test_stories_are_read_without_what_separates_them(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(f"{END}\n One.\nTwo. \n{END}\n\n{END}\nÉté 🐢\n", encoding="utf-8")
    assert read_stories(path) == ["One.\nTwo.", "Été 🐢"]


def test_an_xz_file_is_read_as_it_is(tmp_path: Path, text: Path) -> None:
    packed = tmp_path / "stories.txt.xz"
    packed.write_bytes(lzma.compress(text.read_bytes()))
    assert read_stories(packed) == read_stories(text) == STORIES


def test_end_is_id_zero_and_one_token(tokenizer: Tokenizer) -> None:
    assert tokenizer.token_to_id(END) == 0
    assert tokenizer.encode(END).ids == [0]
    assert tokenizer.encode(f"a{END}b").ids.count(0) == 1


def test_the_vocabulary_has_the_size_asked_for(tokenizer: Tokenizer) -> None:
    assert tokenizer.get_vocab_size() == 300
    assert sorted(tokenizer.get_vocab().values()) == list(range(300))


@pytest.mark.parametrize(
    "sentence",
    ["", " ", "  two  spaces ", "Mila", "\n\n\t", "süß, où?", "乌龟", "👩\u200d🚀🏁", "\x00\x7f"],
)
def test_any_text_round_trips(tokenizer: Tokenizer, sentence: str) -> None:
    assert tokenizer.decode(tokenizer.encode(sentence).ids) == sentence


def test_the_same_text_makes_the_same_tokenizer(tokenizer: Tokenizer) -> None:
    assert train_tokenizer(STORIES, 300).to_str() == tokenizer.to_str()


def test_pieces_of_common_words_are_learned(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode(STORIES[0]).ids) < 0.7 * len(STORIES[0].encode())


def test_each_story_stands_between_two_ends_and_neighbours_share_one(tokenizer: Tokenizer) -> None:
    encoded = encode_stories(tokenizer, STORIES[:3])
    for story, ids in zip(STORIES, encoded, strict=False):
        assert ids[0] == ids[-1] == 0
        assert 0 not in ids[1:-1]
        assert tokenizer.decode(ids) == story
    packed = pack(encoded)
    assert packed.tolist() == [0, *(i for ids in encoded for i in ids[1:])]
    assert packed.dtype == torch.long
    assert (packed == 0).sum() == 4


# --- the schedule ---


def test_batches_follow_from_their_number_alone() -> None:
    tokens, recipe = torch.arange(1000), Recipe(steps=9, batch=4)
    for step in (0, 3, 200):
        batch = batch_at(step, tokens, recipe, 24)
        assert torch.equal(batch, batch_at(step, tokens, recipe, 24))
        assert batch.shape == (4, 25)
        assert torch.equal(batch, batch[:, :1] + torch.arange(25)), "a window is a run of the text"
    assert not torch.equal(batch_at(0, tokens, recipe, 24), batch_at(1, tokens, recipe, 24))
    other = Recipe(steps=9, batch=4, seed=1)
    assert not torch.equal(batch_at(0, tokens, recipe, 24), batch_at(0, tokens, other, 24))


def test_an_epoch_reads_no_token_twice() -> None:
    tokens, recipe = torch.arange(1000), Recipe(steps=99, batch=4)
    per_epoch = (1000 - 1 - 24) // 24 // 4
    for epoch in range(3):
        batches = [
            batch_at(epoch * per_epoch + index, tokens, recipe, 24) for index in range(per_epoch)
        ]
        targets = torch.cat(batches)[:, 1:].flatten().tolist()
        assert len(set(targets)) == len(targets) == per_epoch * 4 * 24
    phases = {
        batch_at(per_epoch * epoch, tokens, recipe, 24)[0, 0].item() % 24 for epoch in range(9)
    }
    assert len(phases) > 3, "and each epoch cuts the text elsewhere"


@pytest.mark.parametrize("length", [121, 122, 150])
def test_the_shortest_text_has_one_batch(length: int) -> None:
    # block_size 24, batch 4: the command asks for 24 * 5 + 1 tokens at least
    for step in range(40):
        batch = batch_at(step, torch.arange(length), Recipe(steps=1, batch=4), 24)
        assert batch.shape == (4, 25)


def test_the_rate_rises_stays_and_falls_to_nearly_nothing() -> None:
    recipe = Recipe(steps=1000)
    rates = [recipe.rate(step) for step in range(1000)]
    assert rates[0] == pytest.approx(1 / 50)
    assert rates[49] == rates[399] == 1
    assert rates[:50] == sorted(rates[:50])
    assert rates[400:] == sorted(rates[400:], reverse=True)
    assert rates[-1] == pytest.approx(1 / 600)
    assert all(0 < rate <= 1 for rate in rates)


def test_each_weight_has_one_optimizer_and_muon_has_the_matrices_of_the_blocks() -> None:
    model = tiny()
    muon, adamw = build_optimizers(model, Recipe(steps=1))
    assert isinstance(muon, torch.optim.Muon)
    held = [[id(p) for g in o.param_groups for p in g["params"]] for o in (muon, adamw)]
    assert Counter(held[0] + held[1]) == Counter(id(p) for p in model.parameters())
    matrices = {id(p) for p in model.blocks.parameters() if p.ndim == 2}
    assert set(held[0]) == matrices


# --- measuring ---


def slow_bits_per_byte(model: MiniGPT, tokenizer: Tokenizer, stories: list[str]) -> float:
    """One prediction at a time, each with the context that the rule grants it."""
    size, half = model.block_size, model.block_size // 2
    nats = 0.0
    for ids in encode_stories(tokenizer, stories):
        last = len(ids) - 1  # there are as many targets
        for target in range(1, last + 1):
            if target <= size:
                start = 0
            else:
                # which piece of half a window it falls into, and where that piece's window begins
                piece = (target - size - 1) // half + 1
                start = min(last, size + piece * half) - size
                assert target - start >= half, "at least half a window is in sight"
            logits = model(torch.tensor([ids[start:target]]))[0, -1].double()
            nats -= logits.log_softmax(-1)[ids[target]].item()
    return nats / math.log(2) / sum(len(story.encode()) for story in stories)


@pytest.mark.parametrize("block_size", [7, 8, 24, 200])
def test_bits_per_byte_is_what_one_prediction_at_a_time_gives(
    tokenizer: Tokenizer, block_size: int
) -> None:
    model = tiny(vocab_size=300, block_size=block_size, n_layers=1).train()
    # short ones, some that fill the window to the token, and long ones
    stories = ["A", "Mila ran.", STORIES[0], STORIES[7][:40], " ".join(STORIES[:2]), "süß 🐢"]
    ids = tokenizer.encode(STORIES[3]).ids
    stories += [tokenizer.decode(ids[: block_size + extra]) for extra in (-2, -1, 0, 1)]
    measured = bits_per_byte(model, tokenizer, stories)
    assert model.training, "and the model is left in the mode it was in"
    model.eval()
    with torch.inference_mode():
        assert measured == pytest.approx(slow_bits_per_byte(model, tokenizer, stories), rel=1e-5)


def test_bits_per_byte_does_not_depend_on_how_stories_are_grouped(tokenizer: Tokenizer) -> None:
    model = tiny(vocab_size=300, block_size=24)
    stories = STORIES[:40]
    sizes = [len(story.encode()) for story in stories]
    together = bits_per_byte(model, tokenizer, stories)
    alone = [bits_per_byte(model, tokenizer, [story]) for story in stories]
    weighted = sum(bits * size for bits, size in zip(alone, sizes, strict=True)) / sum(sizes)
    assert together == pytest.approx(weighted, rel=1e-5)


def test_bits_per_byte_of_a_uniform_model_counts_tokens(tokenizer: Tokenizer) -> None:
    model = tiny(vocab_size=300, block_size=24)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
    tokens = sum(len(ids) - 1 for ids in encode_stories(tokenizer, STORIES[:9]))
    expected = tokens * math.log2(300) / sum(len(story.encode()) for story in STORIES[:9])
    assert bits_per_byte(model, tokenizer, STORIES[:9]) == pytest.approx(expected, rel=1e-5)


# --- a run ---


def log_of(run: Path) -> list[dict[str, float]]:
    return torch.load(run / "checkpoint.pt", weights_only=True)["log"]


def test_the_loss_falls(finished: Path) -> None:
    log = log_of(finished / "run")
    assert [line["step"] for line in log] == list(range(1, 41))
    losses = [line["loss"] for line in log]
    assert losses[0] == pytest.approx(math.log(300), rel=0.05)
    assert sum(losses[-5:]) / 5 < losses[0] - 1
    measured = [line["bits_per_byte"] for line in log if "bits_per_byte" in line]
    assert len(measured) == 2, "every 20 steps"
    assert measured[1] < measured[0]


def test_the_learning_rates_follow_the_schedule(finished: Path) -> None:
    state = torch.load(finished / "run" / "checkpoint.pt", weights_only=True)
    recipe = Recipe(steps=40)
    for optimizer, full in zip(state["optimizers"], (0.02, 6e-3), strict=True):
        rates = [group["lr"] for group in optimizer["param_groups"]]
        assert rates == pytest.approx([full * recipe.rate(39)])


def test_a_run_leaves_a_model_that_can_be_loaded(finished: Path) -> None:
    out = finished / "out"
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [WEIGHTS, CONFIG, TOKENIZER, "loss_curve.csv", "loss_curve.png"]
    )
    model = MiniGPT.from_pretrained(out)
    assert model.config == MiniGPTConfig(300, 24, 2, 2, 16)
    assert {w.dtype for w in load_file(out / WEIGHTS).values()} == {torch.float16}
    tokenizer = Tokenizer.from_file(str(checked(out, TOKENIZER)))
    state = torch.load(finished / "run" / "checkpoint.pt", weights_only=True)
    for name, weights in model.state_dict().items():
        assert torch.equal(weights, state["model"][name].half().float())
    held_out = STORIES[-4:]
    measured = log_of(finished / "run")[-1]["bits_per_byte"]
    assert bits_per_byte(model, tokenizer, held_out) == pytest.approx(measured, rel=0.01)


# the command as it is, but for a death at a step, or in the middle of writing a checkpoint
DOOMED = """
import os, signal, sys, typer
from models import train

def die():
    os.kill(os.getpid(), signal.SIGKILL)

at, where = int(sys.argv.pop(1)), sys.argv.pop(1)
steps, save = train.train, train.torch.save

def until(run, *arguments, **options):
    for line in steps(run, *arguments, **options):
        if where == "step" and line["step"] == at:
            die()
        yield line

def half_a_file(state, path):
    save(state, path)
    if where == "saving" and isinstance(state, dict) and state["step"] == at:
        os.truncate(path, os.path.getsize(path) // 2)
        die()

train.train, train.torch.save = until, half_a_file
typer.run(train.main)
"""


def kill(text: Path, run: Path, out: Path, at: int, where: str) -> str:
    """Run the command in a process of its own until it is killed; returns what it printed."""
    numbers = {"batch": 4, "save-every": 10, "evaluate-every": 20, "steps": 40}
    numbers |= {name.replace("_", "-"): value for name, value in SHAPE.items()}
    options = [f"--{name}={value}" for name, value in numbers.items()]
    ended = subprocess.run(
        [sys.executable, "-c", DOOMED, str(at), where, text, "--run", run, "--out", out, *options],
        cwd=ROOT,
        # as many threads as here, so that sums are added up in the same order
        env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return ended.stdout


def test_a_run_that_is_killed_ends_with_the_same_bits(
    finished: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    # first between two checkpoints, then in the middle of writing one
    kill(text, run, out, 17, "step")
    assert not (out / WEIGHTS).exists()
    assert "going on from step 10 of 40" in kill(text, run, out, 30, "saving")
    assert (run / "checkpoint.pt.new").exists(), "half a file, beside the whole one"
    run_main(text, run, out)
    assert "going on from step 20 of 40" in capsys.readouterr().out
    undisturbed, disturbed = (
        torch.load(folder / "checkpoint.pt", weights_only=True)
        for folder in (finished / "run", run)
    )
    del undisturbed["seconds"], disturbed["seconds"]
    torch.testing.assert_close(disturbed, undisturbed, rtol=0, atol=0)
    for name in (WEIGHTS, CONFIG, TOKENIZER, "loss_curve.csv"):
        assert (out / name).read_bytes() == (finished / "out" / name).read_bytes()


def test_a_finished_run_is_not_trained_on(finished: Path, text: Path, tmp_path: Path) -> None:
    run_main(text, finished / "run", tmp_path / "again")
    for name in (WEIGHTS, CONFIG, TOKENIZER, "loss_curve.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (finished / "out" / name).read_bytes()


@pytest.mark.parametrize(
    "changes,named",
    [({"steps": 50}, "steps"), ({"seed": 1, "width": 32}, "width and seed")],
    ids=str,
)
def test_a_folder_of_a_run_with_other_settings_is_refused(
    finished: Path, text: Path, tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(typer.BadParameter, match=f"another {named}; delete that folder"):
        run_main(text, finished / "run", tmp_path / "out", **changes)


def test_a_folder_of_a_run_on_another_text_is_refused(finished: Path, tmp_path: Path) -> None:
    """Its tokens were read back, and the second text was never looked at."""
    other = write_text(tmp_path / "other.txt", STORIES[::-1])
    with pytest.raises(typer.BadParameter, match="another text"):
        run_main(other, finished / "run", tmp_path / "out")


def test_a_claim_is_made_once_and_kept(tmp_path: Path) -> None:
    for _ in range(2):
        claim(tmp_path, {"text": "abc", "steps": 5, "rate": 0.02, "validation": None})
    with pytest.raises(typer.BadParameter, match="rate"):
        claim(tmp_path, {"text": "abc", "steps": 5, "rate": 0.03, "validation": None})


# --- which stories are learned, and which are held out ---


@pytest.mark.parametrize("count,held", [(2, 1), (49, 1), (100, 2), (240, 4)])
def test_the_last_two_percent_are_held_out_by_default(
    tmp_path: Path, count: int, held: int
) -> None:
    path = write_text(tmp_path / "text", STORIES[:count])
    tokenizer, tokens, held_out = prepare(path, None, tmp_path, 300)
    assert held_out == STORIES[count - held : count]
    assert torch.equal(tokens, pack(encode_stories(tokenizer, STORIES[: count - held])))


def test_with_a_validation_file_all_of_the_text_is_learned(tmp_path: Path) -> None:
    path = write_text(tmp_path / "text", STORIES[:9])
    validation = write_text(tmp_path / "validation", STORIES[100:103])
    tokenizer, tokens, held_out = prepare(path, validation, tmp_path, 300)
    assert held_out == STORIES[100:103]
    assert torch.equal(tokens, pack(encode_stories(tokenizer, STORIES[:9])))
    # computed once a run: a second call reads what the first wrote
    again = prepare(path, validation, tmp_path, 300)
    assert again[0].to_str() == tokenizer.to_str()
    assert torch.equal(again[1], tokens)


@pytest.mark.parametrize(
    "stories,told",
    [([], "too few stories"), (STORIES[:1], "too few stories"), (STORIES[:3], "too few for one")],
    ids=["none", "one", "three"],
)
def test_too_small_a_text_is_told(tmp_path: Path, stories: list[str], told: str) -> None:
    command = typer.Typer()
    command.command()(training.main)
    text = write_text(tmp_path / "few.txt", stories)
    result = CliRunner().invoke(
        command,
        [str(text), "--run", str(tmp_path / "run"), "--out", str(tmp_path / "out")],
        env={"COLUMNS": "400"},
    )
    assert result.exit_code == 2
    assert told in result.output
    assert "few.txt" in result.output
    assert not (tmp_path / "out" / WEIGHTS).exists()


# --- what a run leaves ---

LOG = [{"step": float(n), "loss": 10.0 - n} for n in range(1, 8)]
LOG[2]["bits_per_byte"] = 1.25
LOG[6]["bits_per_byte"] = 0.9999


def test_the_log_is_a_table_of_means(tmp_path: Path) -> None:
    write_log(LOG, tmp_path / "log.csv", every=3)
    with (tmp_path / "log.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {"step": "3", "loss": "8.0000", "bits_per_byte": "1.2500"},
        {"step": "6", "loss": "5.0000", "bits_per_byte": ""},
        {"step": "7", "loss": "3.0000", "bits_per_byte": "0.9999"},
    ]


def test_the_log_is_drawn(tmp_path: Path) -> None:
    write_log(LOG, tmp_path / "log.csv", every=1)
    draw_log(tmp_path / "log.csv", tmp_path / "log.png")
    picture = (tmp_path / "log.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000


def test_a_file_is_the_old_one_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail(new: Path) -> None:
        new.write_text("ne")
        raise OSError("no space left")

    with pytest.raises(OSError):
        write_then_rename(path, fail)
    assert path.read_text() == "old"
    write_then_rename(path, lambda new: new.write_text("new"))
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_training_does_not_depend_on_what_the_process_drew_before(
    finished: Path, text: Path, tmp_path: Path
) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(12345)
        run_main(text, tmp_path / "run", tmp_path / "out")
    assert (tmp_path / "out" / WEIGHTS).read_bytes() == (finished / "out" / WEIGHTS).read_bytes()
