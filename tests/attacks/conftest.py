import socket
from collections.abc import Iterator

import pytest

from autograder.judge import judging
from autograder.judge.sandbox import Limits, WarmParent

from .forms import Scene
from .scenes import scene_in


@pytest.fixture(scope="module")
def parent() -> Iterator[WarmParent]:
    with WarmParent() as parent:
        yield parent


@pytest.fixture(scope="module")
def unsandboxed() -> Iterator[WarmParent]:
    """A judge weakened on purpose: nothing holds its children, who may write files too."""
    with WarmParent(sandboxed=False, limits=Limits(file_size=1 << 20)) as parent:
        yield parent


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Scene, socket.socket]]:
    with scene_in(tmp_path_factory.mktemp("instructor")) as found:
        yield found


@pytest.fixture(scope="module")
def scene(place: tuple[Scene, socket.socket]) -> Scene:
    return place[0]


@pytest.fixture(autouse=True)
def less_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are given up sooner: what an honest check needs is a few thousandths of a second."""
    monkeypatch.setattr(judging, "SECONDS", 1.0)
