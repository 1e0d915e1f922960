"""course_lib/given/notebook.py in a real IPython shell and in a real kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import torch
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from traitlets.config import Config

from course_lib.given import notebook
from course_lib.given.notebook import CellWrapper, install, start

from .conftest import Workspace

UNWRITTEN = "top_k_filter is not written yet: open course_lib/top_k.py"


class Cells:
    """A shell in which cells are run, with what they print."""

    def __init__(self, shell: InteractiveShell, capture: pytest.CaptureFixture[str]) -> None:
        self.shell, self.capture = shell, capture
        self.run("import torch\nfrom course_lib.top_k import top_k_filter")

    def run(self, source: str) -> tuple[ExecutionResult, str]:
        self.capture.readouterr()
        result = self.shell.run_cell(source, store_history=True)
        return result, self.capture.readouterr().out


@pytest.fixture
def cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Cells]:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell(config=config, ipython_dir=str(tmp_path))
    install(shell)
    yield Cells(shell, capsys)
    shell.reset()


CALL = "top_k_filter(torch.zeros(1, 3), 2)"


# --- a stub becomes a line ---


@pytest.mark.parametrize(
    "source",
    [
        CALL,
        f"filtered = {CALL}",
        f"a = 1\nif a:\n    b = {CALL}\nprint('never')\n",
        f"for k in range(3):\n    {CALL}",
        f"[{CALL} for _ in range(3)]",
        f"def mine():\n    return {CALL}\nmine()",
        f"{CALL};",
    ],
)
def test_a_cell_that_calls_a_stub_ends_with_one_line(cells: Cells, source: str) -> None:
    result, out = cells.run(source)
    assert out == f"{UNWRITTEN}\n"
    assert result.success


def test_a_method_is_named_with_its_class(cells: Cells) -> None:
    _, out = cells.run("from course_lib.kv_cache import KVCache\nKVCache(1, 1, 1, 1, 1)")
    assert out == "KVCache.__init__ is not written yet: open course_lib/kv_cache.py\n"


def test_what_ran_before_the_stub_stays(cells: Cells) -> None:
    cells.run(f"early = 1\n{CALL}\nlate = 2")
    assert cells.run("early, 'late' in globals()")[0].result == (1, False)


# --- what a cell shows ---


def test_the_last_value_is_shown_and_kept(cells: Cells) -> None:
    result, out = cells.run("6 * 7")
    assert re.fullmatch(r"Out\[\d+\]: 42\n+", out)
    assert result.result == 42
    assert cells.run("_ + 1")[0].result == 43


def test_a_semicolon_hides_the_last_value(cells: Cells) -> None:
    assert cells.run("6 * 7;")[1] == ""


def test_only_the_last_value_is_shown(cells: Cells) -> None:
    assert "1" not in cells.run("1\n2\nx = 3")[1]


def test_names_are_made_where_they_always_were(cells: Cells) -> None:
    cells.run(
        "import math\ndef f():\n    return math.pi\nclass C: ...\nx: int = 1\nfrom re import *"
    )
    assert cells.run("f() > 3, C.__name__, x, findall('a', 'a')")[0].result == (True, "C", 1, ["a"])
    assert not [name for name in cells.shell.user_ns if "course" in name.lower()]


# --- what passes through unchanged ---


def test_other_errors_pass_and_name_their_line(cells: Cells) -> None:
    result, out = cells.run("x = 1\n\nx / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert "----> 3 x / 0" in out
    assert "StubsTold" not in out


@pytest.mark.parametrize(
    "source",
    [
        "raise NotImplementedError('mine')",
        "def f():\n    raise NotImplementedError\nf()",
        "import abc\nfrom collections.abc import Sequence\ntorch.nn.Module()(1)",
    ],
)
def test_a_notimplementederror_from_elsewhere_passes(cells: Cells, source: str) -> None:
    assert isinstance(cells.run(source)[0].error_in_exec, NotImplementedError)


def test_a_failed_check_passes(cells: Cells) -> None:
    result, _ = cells.run("from course_lib.checks import check\ncheck('top_k-keeps_k')")
    assert type(result.error_in_exec).__name__ == "NotEarned"
    assert str(result.error_in_exec) == "no points yet for top_k-keeps_k"


def test_a_syntax_error_is_told_as_always(cells: Cells) -> None:
    result, out = cells.run("x = = 1")
    assert isinstance(result.error_before_exec, SyntaxError)
    assert "invalid syntax" in out
    assert cells.run(CALL)[1] == f"{UNWRITTEN}\n", "the next cell is itself again"


def test_magics_work_as_always(cells: Cells) -> None:
    assert cells.run("%time 6 * 7")[0].result == 42
    # a word, since a time may hold any number
    _, out = cells.run("%timeit -n 20 -r 1 'wo' + 'rd'")
    assert "word" not in out, "the timed line must not be changed into one that shows its value"
    assert "20 loops" in out
    assert cells.run("%%time\nx = 1\nx + 1")[0].result == 2
    assert cells.run("x = !echo hello\nx[0]")[0].result == "hello"
    result, _ = cells.run(f"%time {CALL}")
    assert isinstance(result.error_in_exec, NotImplementedError)


def test_await_works_as_always(cells: Cells) -> None:
    cells.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 42")
    assert cells.run("await f()")[0].result == 42
    assert cells.run("[x async for x in aiter_()]")[0].success is False
    assert cells.run("from __future__ import annotations\n1 + 1")[0].result == 2


def test_a_setting_for_all_values_is_respected(cells: Cells) -> None:
    cells.shell.ast_node_interactivity = "all"
    _, out = cells.run("111\n222")
    assert "111" in out
    assert "222" in out


def test_empty_cells_and_comments_are_fine(cells: Cells) -> None:
    for source in ("", "  \n", "# only a comment"):
        assert cells.run(source)[0].success


def test_installing_twice_wraps_once(cells: Cells) -> None:
    before = list(cells.shell.ast_transformers)
    install(cells.shell)
    assert cells.shell.ast_transformers == before
    assert len([t for t in before if isinstance(t, CellWrapper)]) == 1
    assert cells.run(CALL)[1] == f"{UNWRITTEN}\n"


# --- start ---


def test_start_outside_of_a_notebook_prints_the_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    threads = torch.get_num_threads()
    try:
        start("top_k")
        first = torch.rand(1)
        torch.manual_seed(notebook.SEED)
        assert torch.equal(first, torch.rand(1))
    finally:
        torch.set_num_threads(threads)
    out = capsys.readouterr().out
    assert out.startswith("Lesson 3: top-k, a short list of fixed length\n[----")


def run_in_kernel(workspace: Workspace, *sources: str, raises: bool = False) -> NotebookNode:
    """The notebook of some cells after Run All in a kernel beside `course_lib`."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    client = NotebookClient(
        book,
        timeout=600,
        allow_errors=raises,
        resources={"metadata": {"path": str(workspace.folder)}},
    )
    client.execute(env=workspace.environment)
    return book


START = 'from course_lib.given.notebook import start\nstart("top_k")'


@pytest.mark.slow
def test_run_all_goes_on_past_a_stub(workspace: Workspace) -> None:
    book = run_in_kernel(
        workspace,
        START,
        "start('top_k')",
        f"import torch\nfrom course_lib.top_k import top_k_filter\n{CALL}",
        "torch.get_num_threads(), torch.initial_seed()",
        # the learner writes the function: the next cell has it, without a restart
        "from pathlib import Path\nfile = Path('course_lib/top_k.py')\nsource = file.read_text()\n"
        "where = source.index('    raise NotImplementedError')\n"
        "_ = file.write_text(source[:where] + '    return logits\\n')",
        CALL,
    )
    first, again, stub, seeds, edit, written = (cell.outputs for cell in book.cells)
    (bar,) = first
    assert bar.output_type == "display_data"
    assert 'role="progressbar"' in bar.data["text/html"]
    assert bar.data["text/plain"].startswith("Lesson 3: top-k")
    assert again == first, "a second start says the same, and nothing of extensions"
    (line,) = stub
    assert (line.output_type, line.name, line.text) == ("stream", "stdout", f"{UNWRITTEN}\n")
    assert seeds[0].data["text/plain"] == "(1, 42)"
    assert edit == []
    (value,) = written
    assert value.output_type == "execute_result"
    assert value.execution_count == 6
    assert value.data["text/plain"] == "tensor([[0., 0., 0.]])"


def save(source: str, later: int) -> str:
    """The code of a cell that saves the learner's file; a second is what a file's time may tell."""
    return (
        "import os, time\nfrom pathlib import Path\n"
        f"_ = Path('course_lib/top_k.py').write_text({source!r})\n"
        f"os.utime('course_lib/top_k.py', (time.time() + {later},) * 2)"
    )


def test_an_edited_file_is_what_the_next_cell_calls_helpers_and_all(workspace: Workspace) -> None:
    """By parts, as IPython reloads at first, the function did not find a helper saved with it."""
    with_helper = (
        "def doubled(x):\n    return 2 * x\n\n\n"
        "def top_k_filter(logits, k):\n    return doubled(logits) + k\n"
    )
    *_, stub, _, written, _, broken, again, _, mended = (
        cell.outputs
        for cell in run_in_kernel(
            workspace,
            START,
            "import torch\nfrom course_lib.top_k import top_k_filter",
            CALL,
            save(with_helper, 1),
            CALL,
            save(with_helper.replace("2 * x", "(2 * x"), 2),
            CALL,
            CALL,
            save(with_helper.replace("2 * x", "x + 1"), 3),
            CALL,
        ).cells
    )
    assert [output.text for output in stub] == [f"{UNWRITTEN}\n"]
    assert [output.data["text/plain"] for output in written] == ["tensor([[2., 2., 2.]])"]
    line, value = broken
    assert (line.name, line.text) == (
        "stdout",
        "course_lib/top_k.py, line 2: SyntaxError: '(' was never closed: until that is mended, "
        "cells use what was there before\n",
    )
    assert value.data["text/plain"] == "tensor([[2., 2., 2.]])"
    assert [output.output_type for output in again] == ["execute_result"], "it is said once"
    assert [output.data["text/plain"] for output in mended] == ["tensor([[3., 3., 3.]])"]


def test_a_check_shows_its_panel_and_raises_one_line(workspace: Workspace) -> None:
    (cell,) = run_in_kernel(
        workspace, "from course_lib.checks import check\ncheck('top_k-keeps_k')", raises=True
    ).cells
    panel, error = cell.outputs
    assert 'role="status"' in panel.data["text/html"]
    for told in panel.data["text/html"], panel.data["text/plain"]:
        assert told.count("not attempted") == 1
        assert "open course_lib/top_k.py and write top_k_filter" in told
    assert error.traceback == ["no points yet for top_k-keeps_k"]


@pytest.mark.slow
def test_run_all_stops_at_any_other_error(workspace: Workspace) -> None:
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run_in_kernel(workspace, START, "1 / 0")
