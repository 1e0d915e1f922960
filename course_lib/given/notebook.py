"""What the first cell of each lesson calls: `start("top_k")`."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import torch

from . import progress
from .faults import one_line, unwritten
from .lessons import COURSE_LIB, heading

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

SEED = 42


def start(lesson: str) -> None:
    """Set up a lesson's notebook, and show its title with how much of it is done.

    Edited files of `course_lib` are loaded anew before each cell; a cell that calls a function that
    is not written yet says so in one line. Random numbers begin at the same seed, and torch uses
    one thread, so that a number comes out the same on a machine of 2 cores and of 64.
    """
    # a compiled file can be a second behind the source that it was made from
    sys.dont_write_bytecode = True
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    shown = progress.bar(lesson) or heading(lesson)
    shell = _shell()
    if shell is None:
        print(shown)
        return
    # typed as optional, but a shell that runs cells has one
    shell.extension_manager.load_extension("autoreload")  # type: ignore[union-attr]
    # in full: by parts, functions that are saved with a new helper would not find it
    # its own word on a file that does not load is a traceback of thirty lines; ours is one
    shell.run_line_magic("autoreload", "2 --full --hide-errors")
    install(shell)
    from IPython.display import display

    if isinstance(shown, str):
        print(shown)
    else:
        display(shown)


def _shell() -> InteractiveShell | None:
    # IPython is not imported to ask: where nobody has, there is no notebook
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    return get_ipython()


# --- a stub's NotImplementedError in one line ---


def install(shell: InteractiveShell) -> None:
    """Let cells that call an unwritten function end with one line; doing it twice is doing it once.

    IPython can replace the traceback of an error, but the cell would still count as failed, and Run
    All would stop there. So the cell's code is wrapped before it runs.
    """
    # by name: after a reload of this module the class is another one
    if any(type(wrapper).__name__ == CellWrapper.__name__ for wrapper in shell.ast_transformers):
        return
    wrapper = CellWrapper(shell)
    # after autoreload, which does its work at the same moment
    shell.events.register("pre_run_cell", BrokenFiles().tell)
    shell.events.register("pre_run_cell", wrapper.arm)
    shell.events.register("post_run_cell", wrapper.disarm)
    shell.ast_transformers.append(wrapper)


class BrokenFiles:
    """Says, once for each time it is saved, that a lesson's file does not load any more."""

    def __init__(self) -> None:
        self._told: dict[Path, float] = {}

    def tell(self, _info: object) -> None:
        """Look at the files of the modules that the notebook has imported, if they were saved."""
        names = [name for name in sys.modules if name.startswith("course_lib.")]
        for path in (COURSE_LIB / f"{name.partition('.')[2]}.py" for name in names):
            if not path.is_file() or self._told.get(path) == path.stat().st_mtime:
                continue
            self._told[path] = path.stat().st_mtime
            from ..checks.load import load_fresh

            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    load_fresh(path.stem)
            except (Exception, SystemExit) as error:  # a learner's file may raise anything
                print(f"{one_line(error)}: until that is mended, cells use what was there before")


class StubsTold(AbstractContextManager[None]):
    """Ends its block quietly, with a line, if a lesson's stub raises; other errors pass."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        line = unwritten(error) if error is not None else None
        if line is None:
            return False
        print(line)
        return True


class CellWrapper(ast.NodeTransformer):
    """Turns the code of a cell into `with StubsTold():` and that code."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._armed = False

    def arm(self, _info: object) -> None:
        """Wait for the code of the cell that is about to run."""
        self._armed = True

    def disarm(self, _result: object) -> None:
        self._armed = False

    def visit(self, node: ast.AST) -> ast.AST:
        """What IPython calls with the code of each cell.

        Magics such as %timeit call it too while the cell runs, with code that is not to be touched.
        """
        armed, self._armed = self._armed, False
        # the value of the last line is shown under IPython's default setting; others are left alone
        if not armed or self._shell.ast_node_interactivity != "last_expr":
            return node
        if not isinstance(node, ast.Module) or not node.body or _is_left_alone(node):
            return node
        last = node.body[-1]
        if isinstance(last, ast.Expr):
            # inside of a block IPython would not show it
            last.value = ast.copy_location(_call(_SHOW, last.value), last.value)
        block = ast.With(
            items=[ast.withitem(context_expr=_call(_STUBS_TOLD))], body=node.body, type_comment=None
        )
        node.body = [ast.copy_location(block, node.body[0])]
        return ast.fix_missing_locations(node)


# looked up when the cell runs, so that no name of ours lies among the learner's
_STUBS_TOLD = f"__import__({__name__!r}, fromlist=['StubsTold']).StubsTold"
_SHOW = "__import__('sys').displayhook"


def _call(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.parse(function, mode="eval").body, list(arguments), [])


def _is_left_alone(module: ast.Module) -> bool:
    """Whether a cell has magics, awaits at its top level, or imports from the future."""
    if any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in module.body
    ):
        return True
    # IPython writes every magic, and every !command, as a call on get_ipython()
    if any(isinstance(node, ast.Name) and node.id == "get_ipython" for node in ast.walk(module)):
        return True
    return _awaits(module)


def _awaits(node: ast.AST) -> bool:
    """Whether code awaits, functions inside of it not counted."""
    if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
        return True
    if isinstance(node, ast.comprehension) and node.is_async:
        return True
    inside_function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(
        _awaits(child)
        for child in ast.iter_child_nodes(node)
        if not isinstance(child, inside_function)
    )
