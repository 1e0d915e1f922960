"""Sliders over a figure: move one, and the figure is drawn again."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .faults import one_line
from .plots import Figure

if TYPE_CHECKING:
    import ipywidgets


class Slider(NamedTuple):
    """The values that a slider offers. Whole numbers give a slider of whole numbers."""

    low: float
    high: float
    start: float
    step: float | None = None  # by default 1 for whole numbers, else 0.05
    label: str | None = None  # by default the name of the argument


class Message(NamedTuple):
    """A line in the place of a figure that could not be drawn."""

    line: str

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.line)}</p>"


class Explorer:
    """Sliders and their figure, as a notebook shows them.

    A notebook that runs gets the sliders. The same output holds the figure at the start values as
    plain HTML and its text, for readers without a kernel. All sliders work with the arrow keys.
    """

    def __init__(self, draw: Callable[..., Figure], sliders: dict[str, Slider]) -> None:
        import ipywidgets

        self._draw = draw
        # names stand in one column, as wide as the longest needs
        room = max(len(_label(name, slider)) for name, slider in sliders.items())
        self.sliders = {name: _widget(name, slider, room) for name, slider in sliders.items()}
        self.start = self._shown()
        self.picture = ipywidgets.HTML(self.start._repr_html_())
        self._box = ipywidgets.VBox([*self.sliders.values(), self.picture])
        for slider in self.sliders.values():
            slider.observe(self._redraw, names="value")

    def _redraw(self, _change: object) -> None:
        self.picture.value = self._shown()._repr_html_()

    def _shown(self) -> Figure | Message:
        """The figure at the sliders' values, or in one line why there is none."""
        try:
            figure = self._draw(**{name: slider.value for name, slider in self.sliders.items()})
            if not hasattr(figure, "_repr_html_"):
                raise TypeError(f"what draws must return a figure, not {type(figure).__name__}")
            return figure
        except Exception as error:  # a learner's function may raise anything
            return Message(one_line(error))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {
            **self._box._repr_mimebundle_(),
            "text/html": self.start._repr_html_(),
            "text/plain": repr(self.start),
        }


def explore(draw: Callable[..., Figure], **sliders: tuple[Any, ...]) -> Explorer | Figure:
    """Sliders over the keyword arguments of `draw`, which makes a figure of their values.

    A slider is `(low, high, start)`, with a step and a label if need be: `k=(0, 50, 5)`. As the
    last line of a cell the sliders show themselves. Outside of a notebook the figure at the start
    values is returned.

    Raises ValueError for a slider that starts outside of its range.
    """
    known = {name: _slider(name, values) for name, values in sliders.items()}
    if not _in_notebook():
        return draw(**{name: slider.start for name, slider in known.items()})
    return Explorer(draw, known)


def _slider(name: str, values: tuple[Any, ...]) -> Slider:
    slider = Slider(*values)
    if not slider.low <= slider.start <= slider.high:
        raise ValueError(
            f"slider {name} starts at {slider.start}, not in {slider.low} to {slider.high}"
        )
    return slider


def _in_notebook() -> bool:
    # IPython is not imported to ask: where nobody has, there is no notebook
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def _label(name: str, slider: Slider) -> str:
    return slider.label or name.replace("_", " ")


def _widget(name: str, slider: Slider, room: int) -> ipywidgets.Widget:
    import ipywidgets

    numbers = (slider.low, slider.high, slider.start, slider.step)
    whole = all(number is None or isinstance(number, int) for number in numbers)
    kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
    return kind(
        value=slider.start,
        min=slider.low,
        max=slider.high,
        step=slider.step or (1 if whole else 0.05),
        description=_label(name, slider),
        # ipywidgets cuts off long names unless it is told to give them room; a sign is half as
        # wide as it is high
        style={"description_width": f"{0.55 * room + 0.5:.1f}em"},
        layout={"width": "min(36em, 100%)"},
    )
