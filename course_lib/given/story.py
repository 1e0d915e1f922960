"""A story on the terminal, told by the learner's own functions or by the reference."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from .faults import one_line, own_line, unwritten
from .minigpt import MiniGPT
from .progress import HOME, workspace
from .tokenizer import Tokenizer


def has_solutions() -> bool:
    """Whether the reference lies beside this `course_lib`; not every edition has it."""
    return (HOME / "solutions" / "generate.py").is_file()


def takes_mine(asked: bool | None) -> bool:
    """Whether the learner's functions tell the story; `asked` is --mine, --solution or neither.

    Raises ValueError if the reference is asked for where there is none.
    """
    if asked is None:
        return workspace() is not None or not has_solutions()
    if not asked and not has_solutions():
        raise ValueError("this edition has no solutions: leave --solution out to use your own")
    return asked


# what each knob may be, and how to say so; the course's functions draw the same lines
_KNOBS: dict[str, tuple[Callable[[float], bool], str]] = {
    "max_new_tokens": (lambda value: value >= 0, "0 or more"),
    "temperature": (lambda value: 0 <= value < math.inf, "0 (greedy) or a positive number"),
    "top_k": (lambda value: value >= 0, "0 (off) or more"),
    "top_p": (lambda value: 0 <= value <= 1, "from 0 to 1 (off)"),
    "repetition_penalty": (lambda value: 0 < value < math.inf, "a positive number, 1 for off"),
}


def refuse_knobs(**knobs: float | None) -> None:
    """Raise ValueError for the first knob out of its range; None is off.

    Before a story begins, so that a slip is told whoever tells it, and before any of it is out.
    """
    for name, value in knobs.items():
        fits, allowed = _KNOBS[name]
        if value is not None and not fits(value):
            raise ValueError(f"{name}={value} is not allowed: it must be {allowed}")


def tell(
    mine: bool, prompt: str, max_new_tokens: int, write: Callable[[str], None], **options: Any
) -> Any:
    """Write a story piece by piece; returns the Generation, None if `stream` returns another thing.

    `options` are those of `generate`. Raises ModelFileError, and whatever the functions raise.
    """
    # a fraction faster at batch 1, and leaves the other cores to others
    torch.set_num_threads(1)
    module = _generate_module(mine)
    tokenizer = Tokenizer.from_pretrained()
    pieces = module.stream(
        MiniGPT.from_pretrained(),
        tokenizer,
        prompt,
        max_new_tokens,
        eos_id=tokenizer.eos_id,
        **options,
    )
    while True:
        try:
            piece = next(pieces)
        except StopIteration as end:
            return end.value if isinstance(end.value, module.Generation) else None
        write(piece)


def generator(seed: int) -> torch.Generator:
    """Random numbers that are the same for the same seed."""
    return torch.Generator().manual_seed(seed)


def explain(error: Exception, mine: bool) -> str:
    """Why no story came, in one line: a function not written, a wrong argument, or a crash."""
    if stub := unwritten(error):
        return f"{stub}, or use --solution" if has_solutions() else stub
    if isinstance(error, ValueError) and is_wrong_argument(error):
        return f"{error} ({own_line(error)})" if mine else str(error)
    return one_line(error)


def is_wrong_argument(error: Exception) -> bool:
    """Whether a lesson's function itself raised this ValueError, as it does for wrong arguments."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = trace.tb_frame.f_globals.get("__package__") if trace is not None else None
    return isinstance(error, ValueError) and raised_in in ("course_lib", "solutions")


def _generate_module(mine: bool) -> ModuleType:
    # by name, when it is wanted: nothing of course_lib imports the solutions
    return importlib.import_module("course_lib.generate" if mine else "solutions.generate")
