"""Text to ids and back: the byte-level BPE tokenizer that MiniGPT was trained with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import tokenizers

from .pretrained import RESTORE, TOKENIZER, ModelFileError, checked, shipped_models

END_OF_TEXT = "<|endoftext|>"


class Tokenizer:
    """Cuts a text into tokens of a fixed vocabulary; an id is a token's place in it."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        """Wrap a byte-level tokenizer. Raises ValueError if it lacks `<|endoftext|>`."""
        eos_id = inner.token_to_id(END_OF_TEXT)
        if eos_id is None:
            raise ValueError(f"the tokenizer has no token {END_OF_TEXT}: train it with that one")
        self._inner = inner
        self.eos_id: int = eos_id
        self._special = set(inner.get_added_tokens_decoder())

    @classmethod
    def from_pretrained(cls, folder: str | Path | None = None) -> Tokenizer:
        """The tokenizer of a model's folder, the course's own by default.

        Raises ModelFileError, which says what to do, if its file is missing or damaged.
        """
        path = checked(Path(folder) if folder is not None else shipped_models(), TOKENIZER)
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises bare Exception for what it cannot read
            raise ModelFileError(f"{path} is no tokenizer ({error}). {RESTORE}") from None

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included."""
        return self._inner.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """The ids of a text; an empty text has none."""
        return self._inner.encode(text).ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids (a list, or a tensor of one axis); special tokens are left out.

        Raises ValueError for an id that is not in the vocabulary.
        """
        ids = [int(i) for i in ids]
        for i in ids:
            self._token(i)  # the library drops an id that it does not know, without a word
        return self._inner.decode(ids, skip_special_tokens=True)

    def piece(self, token_id: int) -> str:
        """One token as a person may read it, for plots and tables.

        A space is shown as `·`, a line's end as `⏎`, and a byte that is only a part of a character
        as `\\xe4`. Raises ValueError for an id that is not in the vocabulary.
        """
        token = self._token(token_id)
        if int(token_id) in self._special:
            return token
        text = bytes(_BYTE_OF[sign] for sign in token).decode("utf-8", errors="backslashreplace")
        text = text.replace(" ", "·").replace("\n", "⏎")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def _token(self, token_id: int) -> str:
        """A token as the vocabulary writes it."""
        token = self._inner.id_to_token(int(token_id)) if token_id >= 0 else None
        if token is None:
            raise ValueError(
                f"id {int(token_id)} is not in the vocabulary: ids are 0 to {self.vocab_size - 1}"
            )
        return token


def _byte_of_sign() -> dict[str, int]:
    """How byte-level BPE (of GPT-2) writes bytes in its vocabulary: each as one visible sign.

    A byte that is a visible Latin-1 character stands for itself; the other 68, the space and the
    line's end among them, get the signs from U+0100 on, in order.
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    table = {chr(byte): byte for byte in visible}
    return table | {chr(0x100 + place): byte for place, byte in enumerate(others)}


_BYTE_OF = _byte_of_sign()
