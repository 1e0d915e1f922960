"""course_lib/given/widgets.py: sliders in a kernel, a picture everywhere else."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from IPython.core.formatters import DisplayFormatter

from course_lib.given import widgets
from course_lib.given.plots import Figure, bars
from course_lib.given.widgets import Explorer, Slider, explore
from course_lib.top_k import top_k_filter

from .conftest import Workspace
from .test_notebook import START, run_in_kernel

VIEW = "application/vnd.jupyter.widget-view+json"


def draw(k: int, temperature: float = 1.0) -> Figure:
    return bars("abc", {"p": [k, temperature, 0]}, f"k = {k}, T = {temperature:g}")


def in_notebook(monkeypatch: pytest.MonkeyPatch, *args: Any, **sliders: Any) -> Explorer:
    monkeypatch.setattr(widgets, "_in_notebook", lambda: True)
    explorer = explore(*args, **sliders)
    assert isinstance(explorer, Explorer)
    return explorer


def shown(explorer: Explorer) -> str:
    (alt,) = re.findall(r'<img alt="([^"]*)"', explorer.picture.value)
    return str(alt)


def test_outside_of_a_notebook_it_is_the_figure_at_the_start() -> None:
    figure = explore(draw, k=(0, 50, 5), temperature=(0.1, 3.0, 0.8))
    assert isinstance(figure, Figure)
    assert figure.alt.startswith("k = 5, T = 0.8")


def test_moving_a_slider_draws_again(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = in_notebook(monkeypatch, draw, k=(0, 50, 5), temperature=(0.1, 3.0, 0.8))
    assert shown(explorer).startswith("k = 5, T = 0.8")
    explorer.sliders["k"].value = 7
    explorer.sliders["temperature"].value = 2.0
    assert shown(explorer).startswith("k = 7, T = 2")


def test_whole_numbers_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sliders = in_notebook(
        monkeypatch, draw, k=(0, 50, 5), temperature=Slider(0, 3, 1, 0.25, "T")
    ).sliders
    assert (type(sliders["k"].value), sliders["k"].step) == (int, 1)
    assert (type(sliders["temperature"].value), sliders["temperature"].step) == (float, 0.25)


def test_every_slider_has_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = in_notebook(
        monkeypatch,
        lambda top_k, temperature: draw(top_k, temperature),
        top_k=(0, 50, 5),
        temperature=Slider(0.1, 3.0, 1.0, label="temperature T"),
    )
    assert [s.description for s in explorer.sliders.values()] == ["top k", "temperature T"]


def test_one_output_holds_sliders_picture_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = DisplayFormatter().format(in_notebook(monkeypatch, draw, k=(0, 50, 5)))
    assert set(data) == {VIEW, "text/html", "text/plain"}
    assert data["text/html"] == draw(5)._repr_html_()
    assert data["text/plain"] == draw(5).alt


def test_an_unwritten_function_is_told_in_place_of_the_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explorer = in_notebook(monkeypatch, lambda k: top_k_filter(torch.zeros(1, 3), k), k=(0, 50, 5))
    line = "top_k_filter is not written yet: open course_lib/top_k.py"
    assert explorer.picture.value == f"<p>{line}</p>"
    assert DisplayFormatter().format(explorer)[0]["text/plain"] == line


def test_an_error_is_one_line_and_the_next_move_draws_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shaky(k: int) -> Figure:
        if k == 6:
            raise IndexError("index <6> is out of range\nand more")
        return draw(k)

    explorer = in_notebook(monkeypatch, shaky, k=(0, 50, 5))
    explorer.sliders["k"].value = 6
    assert explorer.picture.value == "<p>IndexError: index &lt;6&gt; is out of range and more</p>"
    explorer.sliders["k"].value = 7
    assert shown(explorer).startswith("k = 7")
    assert capsys.readouterr() == ("", "")


def test_a_function_that_draws_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = in_notebook(monkeypatch, lambda k: None, k=(0, 50, 5))
    assert "must return a figure, not NoneType" in explorer.picture.value


def test_a_slider_must_start_in_its_range() -> None:
    with pytest.raises(ValueError, match="slider k starts at 60, not in 0 to 50"):
        explore(draw, k=(0, 50, 60))


@pytest.mark.slow
def test_a_kernel_shows_sliders_and_keeps_the_picture(workspace: Workspace) -> None:
    workspace.solve("top_k")
    book = run_in_kernel(
        workspace,
        START,
        "import torch\n"
        "from course_lib.given.plots import distribution\n"
        "from course_lib.given.widgets import explore\n"
        "from course_lib.top_k import top_k_filter\n"
        "logits = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])\n"
        "explorer = explore(lambda k: distribution(top_k_filter(logits, k)), k=(1, 5, 3))\n"
        "explorer",
        "explorer.sliders['k'].value = 2\nexplorer.picture.value[:99]",
    )
    (output,) = book.cells[1].outputs
    assert set(output.data) == {VIEW, "text/html", "text/plain"}
    assert output.data["text/html"].startswith('<img alt="The most probable next tokens.')
    assert "3 kept" in output.data["text/plain"]
    states = book.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    models = {state["model_name"]: state["state"] for state in states.values()}
    assert models["IntSliderModel"]["description"] == "k"
    assert models["IntSliderModel"]["continuous_update"] is not False
    # moved in the kernel: the picture that a reader sees is the new one
    assert "2 kept" in models["HTMLModel"]["value"]
