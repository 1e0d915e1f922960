"""course_lib/given/tokenizer.py on the tokenizer that the course ships."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.given.pretrained import ModelFileError, shipped_models
from course_lib.given.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_pretrained()


def test_it_has_the_vocabulary_of_the_model(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocab_size == 4096
    assert tokenizer.piece(tokenizer.eos_id) == "<|endoftext|>"


def test_encode_gives_a_list_of_int(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("Once upon a time")
    assert type(ids) is list
    assert all(type(i) is int for i in ids)
    assert tokenizer.encode("") == []


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    if "<|endoftext|>" not in text:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_decode_leaves_special_tokens_out(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("The end.")
    assert tokenizer.decode([*ids, tokenizer.eos_id]) == "The end."


def test_decode_takes_a_tensor_of_ids(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(torch.tensor(tokenizer.encode("a dog"))) == "a dog"


@pytest.mark.parametrize("wrong", [-1, 4096, 10**9])
def test_an_id_outside_of_the_vocabulary_is_told(tokenizer: Tokenizer, wrong: int) -> None:
    """The library drops such an id in silence, and a learner would look for it in vain."""
    for call in (tokenizer.piece, lambda i: tokenizer.decode([5, i])):
        with pytest.raises(ValueError, match=rf"id {wrong} is not in the vocabulary.* 0 to 4095"):
            call(wrong)


def test_a_piece_shows_space_and_line_end(tokenizer: Tokenizer) -> None:
    assert [tokenizer.piece(i) for i in tokenizer.encode("a dog\n")] == ["a", "·dog", "⏎"]


def test_a_piece_shows_part_of_a_character_as_its_byte(tokenizer: Tokenizer) -> None:
    pieces = [tokenizer.piece(i) for i in tokenizer.encode("你")]
    assert "".join(pieces) == r"\xe4\xbd\xa0"


def test_a_piece_shows_control_characters_as_escapes(tokenizer: Tokenizer) -> None:
    assert "".join(tokenizer.piece(i) for i in tokenizer.encode("\t\x00")) == r"\t\x00"


def test_every_piece_is_short_visible_text(tokenizer: Tokenizer) -> None:
    pieces = [tokenizer.piece(i) for i in range(tokenizer.vocab_size)]
    assert all(piece and piece.isprintable() and " " not in piece for piece in pieces)


def test_pieces_of_a_text_are_that_text(tokenizer: Tokenizer) -> None:
    text = "Once upon a time,\nthere was a little girl."
    shown = "".join(tokenizer.piece(i) for i in tokenizer.encode(text))
    assert shown.replace("·", " ").replace("⏎", "\n") == text


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(shipped_models() / name, tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"tokenizer\.json is damaged"):
        Tokenizer.from_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ModelFileError, match=r"tokenizer\.json is missing"):
        Tokenizer.from_pretrained(tmp_path)


def test_a_tokenizer_without_end_of_text_is_refused() -> None:
    with pytest.raises(ValueError, match=r"<\|endoftext\|>"):
        Tokenizer(tokenizers.Tokenizer(tokenizers.models.BPE()))
