"""course_lib/given/faults.py: a learner's error in one line."""

from __future__ import annotations

import pytest
import torch

from course_lib import top_k
from course_lib.given import faults
from course_lib.kv_cache import KVCache


def caught(call: object) -> BaseException:
    assert callable(call)
    with pytest.raises(BaseException) as info:
        call()
    return info.value


def test_a_stub_is_told_with_its_file() -> None:
    error = caught(lambda: top_k.top_k_filter(torch.zeros(1), 1))
    told = "top_k_filter is not written yet: open course_lib/top_k.py"
    assert faults.unwritten(error) == faults.one_line(error) == told


def test_a_method_is_told_with_its_class() -> None:
    told = faults.unwritten(caught(lambda: KVCache(1, 1, 1, 1, 1)))
    assert told == "KVCache.__init__ is not written yet: open course_lib/kv_cache.py"


def test_a_notimplementederror_of_others_is_an_error_like_any() -> None:
    for error in (caught(torch.nn.Module()), NotImplementedError("never raised")):
        assert faults.unwritten(error) is None
        assert faults.one_line(error).startswith("NotImplementedError: ")


def test_the_last_line_of_the_learner_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes out of torch, but the line to look at is the one that called it."""
    source = "def top_k_filter(logits, k):\n    return logits.topk(k)\n"
    exec(compile(source, top_k.__file__, "exec"), top_k.__dict__ | (made := {}), made)
    monkeypatch.setattr(top_k, "top_k_filter", made["top_k_filter"])
    error = caught(lambda: top_k.top_k_filter(torch.zeros(1), 5))
    assert faults.own_line(error) == "course_lib/top_k.py, line 2"
    assert faults.one_line(error).startswith("course_lib/top_k.py, line 2: RuntimeError: ")
    assert "\n" not in faults.one_line(error)


def test_a_syntax_error_names_its_line() -> None:
    error = caught(lambda: compile("x = 1\nx = = 2\n", top_k.__file__, "exec"))
    assert faults.one_line(error) == ("course_lib/top_k.py, line 2: SyntaxError: invalid syntax")


def test_an_error_without_words_or_place_has_its_kind() -> None:
    assert faults.one_line(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert faults.own_line(ValueError("x")) is None
