"""The sandbox as grading has it, with torch at hand: what a learner's code may use in it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import torch

from autograder.judge.sandbox import Limits, WarmParent, children
from autograder.judge.sandbox.parent import IMPORTS


@pytest.fixture(scope="module")
def run() -> Iterator[Any]:
    """Gives what an expression is worth in a child, or what it raised."""
    imports = [name for name in IMPORTS if name != "autograder.judge.child"]
    with WarmParent(imports=imports) as parent:

        def value(expression: str, setup: str = "") -> Any:
            source = f"import torch\n{setup}\ndef run(): return {expression}"
            return children.try_out(parent._process, source, {}, Limits())

        yield value


def test_torch_computes_as_in_the_driver(run: Any) -> None:
    """A child may not read what the processor can do: asked there, torch took its slowest code."""
    assert run("torch.backends.cpu.get_cpu_capability()") == (
        torch.backends.cpu.get_cpu_capability()
    )
    sums = "(torch.arange(4096.).reshape(64, 64).sin() @ torch.ones(64, 64)).softmax(-1).tolist()"
    assert run(sums) == eval(sums, {"torch": torch})


def test_torch_computes_in_one_thread(run: Any) -> None:
    """With two it would wait for ever for a thread that was not forked."""
    assert run("torch.get_num_threads()") == 1


def test_gradients_optimizers_and_generators_work(run: Any) -> None:
    step = """
def step():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    return weight.tolist()
"""
    assert run("step()", step) == pytest.approx([0.999 - 0.00001] * 3)
    assert run("torch.rand(3, generator=torch.Generator().manual_seed(1)).tolist()") == (
        torch.rand(3, generator=torch.Generator().manual_seed(1)).tolist()
    )


def test_children_draw_different_tensors(run: Any) -> None:
    draws = "[torch.rand(1).item(), numpy.random.rand()]"
    first, second = run(draws, "import numpy"), run(draws, "import numpy")
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_a_tensor_too_large_is_told_as_torch_tells_it(run: Any) -> None:
    setup = """
def big():
    try: torch.empty(1 << 30)
    except RuntimeError as error: return str(error)
"""
    assert "can't allocate memory" in run("big()", setup)


@pytest.mark.parametrize("name", ["numpy", "jaxtyping", "safetensors", "tokenizers", "torchgen"])
def test_what_the_course_uses_can_be_imported(name: str, run: Any) -> None:
    assert run(f"__import__({name!r}).__name__") == name


def test_matplotlib_can_be_imported_where_it_is_installed(run: Any) -> None:
    """It wants to write a cache, which no child may: a learner's leftover import would fail."""
    assert (find_spec("matplotlib") is not None) == ("matplotlib.pyplot" in IMPORTS)
    if find_spec("matplotlib"):
        assert run("plt.figure() is not None", "import matplotlib.pyplot as plt")


@pytest.mark.parametrize(
    "name",
    [
        "transformers",  # holds samplers that could be called instead of written
        "pytest",
        "nbgrader",
        "solutions",
        "solutions.top_k",
        "autograder.hidden",
        "autograder.mistakes",
        "course_lib.top_k",  # the repository's stub; a learner's own comes with the submission
    ],
)
def test_what_a_child_should_not_have_cannot_be_imported(name: str, run: Any) -> None:
    setup = """
def found(name):
    try: __import__(name)
    except ModuleNotFoundError as error: return error.name
    except PermissionError: return name  # without namespaces it is there, and may not be read
"""
    assert run(f"found({name!r})", setup) in {name, name.partition(".")[0]}


def test_no_file_of_the_answers_is_there(run: Any) -> None:
    """Nor is the folder in which they would lie."""
    setup = """
import os, sys
def can_open(path):
    try: open(path).close()
    except OSError: return False
    return True
"""
    root = str(children.__file__).partition("/autograder/")[0]
    for name in ("solutions/top_k.py", "autograder/hidden/top_k.py", "course_lib/top_k.py"):
        assert run(f"can_open({f'{root}/{name}'!r})", setup) is False
    assert run("can_open(__import__('course_lib.given.minigpt').given.minigpt.__file__)", setup)


def test_the_ways_out_of_python_are_as_usual(run: Any) -> None:
    """`exit` is there, and a print goes nowhere."""
    assert run("[callable(exit), print('x')]") == [True, None]
