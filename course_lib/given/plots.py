"""The figures of the course, in one style.

A figure is a picture and a text that says the same. Its colours are those of Okabe and Ito, which
colour-blind readers can tell apart; hatching, dashes and markers say it again for print in grey.
It brings its own white paper: no grey reads well enough on a white page and on a dark one both.
"""

from __future__ import annotations

import base64
import html
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL import Image

BLUE, ORANGE, GREEN, VERMILLION, PURPLE, BLACK = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#000000",
)
BAR_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, BLACK)
HATCHES = ("", "///", "...", "xx", "\\\\\\", "")
# a bar has an edge of ink, but a line of orange would be too pale for white paper
LINE_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, BLACK)
MARKERS = ("o", "s", "^", "D", "v")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)))
INK, GREY, FAINT, PAPER = "#1f2328", "#767676", "#d0d4d9", "#ffffff"

WIDTH = 640  # of the picture on the page, in its pixels; the file holds twice as many
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,  # a token may be a dollar sign
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "figure.facecolor": PAPER,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 2,
    "lines.markersize": 5,
    "legend.frameon": False,
}

BARS_ROOM, DIGIT = 520, 7  # pixels: what a row of bars has across, and a digit of their numbers

TOLD = 6  # values of a row that the text names before it sums up
WHEEL = 5  # looks of a wheel's stretches, used again and again: neighbours always differ


class Pieces(Protocol):
    """What a plot needs of a tokenizer: a token as a person may read it."""

    def piece(self, token_id: int) -> str: ...


@dataclass(frozen=True)
class Figure:
    """A picture (PNG) with the text that stands for it."""

    alt: str
    png: bytes = field(repr=False)

    def __repr__(self) -> str:
        return self.alt

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.png).decode("ascii")
        alt = html.escape(self.alt)
        return f'<img alt="{alt}" src="data:image/png;base64,{data}" width="{WIDTH}">'


def bars(
    labels: Sequence[object],
    series: Mapping[str, Iterable[float]],
    title: str,
    xlabel: str = "token",
    ylabel: str = "probability",
) -> Figure:
    """Grouped bars: for each label one bar of each series, such as before and after a filter.

    Raises ValueError for a series that has not one value a label.
    """
    names = [str(label) for label in labels]
    rows = _rows(series, len(names), at_most=len(BAR_COLOURS))
    told = "; ".join(f"{name}: {_told_values(names, row)}" for name, row in rows.items())
    alt = f"{title}. Bar chart. Across: {xlabel}. Up: {ylabel}. {told}."
    width = 0.8 / len(rows)
    room = BARS_ROOM * width / len(names)
    longest = max(len(_short(value)) for row in rows.values() for value in row)
    # beside each other if they fit, else upright; over very narrow bars there are no numbers
    upright = longest * DIGIT > room
    numbered = room > 1.5 * DIGIT

    def draw(axes: Axes) -> None:
        for place, (name, row) in enumerate(rows.items()):
            offset = (place - (len(rows) - 1) / 2) * width
            drawn = axes.bar(
                [at + offset for at in range(len(names))],
                row,
                width,
                label=name,
                color=BAR_COLOURS[place],
                edgecolor=INK,
                linewidth=0.8,
                hatch=HATCHES[place],
            )
            if numbered:
                numbers = [_short(value) for value in row]
                turn = 90 if upright else 0
                axes.bar_label(drawn, numbers, padding=3, fontsize=8, rotation=turn)
        axes.set_xticks(range(len(names)), names)
        if sum(len(name) + 2 for name in names) > 70:
            # side by side they would run into each other
            for label in axes.get_xticklabels():
                label.set(rotation=40, ha="right", rotation_mode="anchor")
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.set_title(title)
        axes.grid(axis="y")
        axes.margins(y=0.26 if numbered and upright else 0.12)

    return _figure(draw, 3.4, alt)


def distribution(
    logits: Tensor,
    tokenizer: Pieces | None = None,
    kept: Tensor | None = None,
    top: int = 20,
    title: str = "The most probable next tokens",
) -> Figure:
    """The `top` most probable tokens of one row of logits, (vocab,) or (1, vocab).

    `kept` is True for the tokens that a filter keeps, as in `top_k_filter(logits, 5).isfinite()`:
    they are coloured, the banned ones hatched. Without it a token is banned if its logit is -inf.

    Raises ValueError for another shape, and for a row that gives no probabilities.
    """
    row = _one_row("logits", logits).float()
    probs = row.softmax(dim=-1)
    if not probs.isfinite().all():
        raise ValueError("logits give no probabilities: they hold NaN, +inf, or nothing but -inf")
    if top < 1:
        raise ValueError(f"top={top} is not allowed: it must be 1 or more")
    keeps = row > -torch.inf if kept is None else _one_row("kept", kept).bool()
    if keeps.shape != row.shape:
        raise ValueError(f"kept has {len(keeps)} entries and logits {len(row)}: one a token each")
    shown = probs.sort(descending=True, stable=True).indices[:top].tolist()
    names = [str(i) if tokenizer is None else tokenizer.piece(i) for i in shown]
    groups = [
        _Group(
            "kept" if keep else "banned",
            count=int((keeps == keep).sum()),
            mass=float(probs[keeps == keep].sum()),
            places=[place for place, i in enumerate(shown) if bool(keeps[i]) is keep],
        )
        for keep in (True, False)
    ]
    filtered = not bool(keeps.all())
    values = probs[shown].tolist()
    alt = (
        f"{title}. Bar chart of the {len(shown)} most probable of {len(row)} tokens, the most "
        f"probable first. Along: probability.{_told_groups(groups, names, values, filtered)}"
    )

    def draw(axes: Axes) -> None:
        for group in groups:
            heights = [values[at] for at in group.places]
            drawn = axes.barh(
                group.places,
                heights,
                label=f"{group.word} ({group.count} of {len(row)})" if filtered else None,
                color=BLUE if group.word == "kept" else PAPER,
                edgecolor=INK if group.word == "kept" else GREY,
                hatch="" if group.word == "kept" else "/////",
                linewidth=0.8,
            )
            axes.bar_label(drawn, [_short(height) for height in heights], padding=3, fontsize=8)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel("probability")
        axes.set_ylabel("token" if tokenizer is not None else "token id")
        axes.set_title(title)
        axes.grid(axis="x")
        axes.margins(x=0.12, y=0.02)

    return _figure(draw, 1.3 + 0.21 * len(shown), alt)


def lines(
    x: Iterable[float],
    series: Mapping[str, Iterable[float]],
    title: str,
    xlabel: str,
    ylabel: str,
    log: str = "",
) -> Figure:
    """One line a series over the same x; `log` is "", "x", "y" or "xy", the axes in powers of ten.

    Raises ValueError for another `log`, and for a series that has not one value an x.
    """
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f'log={log!r} is not allowed: it is "", "x", "y" or "xy"')
    at = _numbers(x)
    rows = _rows(series, len(at), at_most=len(LINE_COLOURS))
    across, up = (f"{name} (log scale)" if axis in log else name for axis, name in
                  (("x", xlabel), ("y", ylabel)))  # fmt: skip
    told = "; ".join(f"{name}: {_told_line(at, row)}" for name, row in rows.items())
    alt = f"{title}. Line chart. Across: {across}. Up: {up}. {told}."

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import LogLocator, NullLocator

        for place, (name, row) in enumerate(rows.items()):
            axes.plot(
                at,
                row,
                label=name,
                color=LINE_COLOURS[place],
                linestyle=DASHES[place],
                # on a line of many points markers would run together
                marker=MARKERS[place],
                markevery=max(1, len(at) // 10),
            )
        for axis, name, scale in (
            (axes.xaxis, "x", axes.set_xscale),
            (axes.yaxis, "y", axes.set_yscale),
        ):
            if name in log:
                scale("log")
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(lambda value, _: _short(value))
                axis.set_minor_locator(NullLocator())
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.set_title(title)
        axes.grid()

    return _figure(draw, 3.6, alt)


def roulette(
    labels: Sequence[object],
    probs: Iterable[float],
    u: float | None = None,
    title: str = "The wheel, cut open",
) -> Figure:
    """The line from 0 to 1, cut into a stretch for each token; `u`, if given, is where a ball lies.

    A stretch is as long as the token's share of the whole. Tokens stand in the order in which they
    come. Raises ValueError for probs that are no distribution, and for a u that is not in [0, 1).
    """
    names = [str(label) for label in labels]
    weights = _rows({"probs": probs}, len(names), at_most=1)["probs"]
    total = math.fsum(weights)
    if not (math.isfinite(total) and total > 0 and min(weights) >= 0):
        raise ValueError(f"probs are no distribution: {[_short(weight) for weight in weights]}")
    if u is not None and not 0 <= u < 1:
        raise ValueError(f"u={u} is not allowed: it must lie in [0, 1)")
    ends = [math.fsum(weights[: place + 1]) / total for place in range(len(weights))]
    starts = [0.0, *ends[:-1]]
    stretches = [
        f"{name} from {_short(start)} to {_short(end)}"
        for name, start, end in zip(names, starts, ends, strict=True)
    ]
    if len(stretches) > 2 * TOLD:
        stretches[2 * TOLD :] = [f"and {len(stretches) - 2 * TOLD} more"]
    alt = f"{title}. The line from 0 to 1, cut into stretches: {', '.join(stretches)}."
    if u is not None:
        alt += f" The ball lies at u = {_short(u)}."

    def draw(axes: Axes) -> None:
        # over a very short stretch there is no room for a name; the others stand in two rows
        # where they would run into each other, or aslant where two rows are not enough
        rows = _in_rows(
            [
                ((start + end - len(name) * 0.015) / 2, (start + end + len(name) * 0.015) / 2)
                for name, start, end in zip(names, starts, ends, strict=True)
                if end - start >= 0.03
            ]
        )
        slant, heights = (40, None) if rows is None else (0, iter(rows))
        for place, (name, start, end) in enumerate(zip(names, starts, ends, strict=True)):
            axes.barh(
                0,
                end - start,
                left=start,
                height=1,
                color=BAR_COLOURS[place % WHEEL],
                edgecolor=INK,
                linewidth=0.8,
                hatch=HATCHES[place % WHEEL],
            )
            if end - start >= 0.03:
                axes.annotate(
                    name,
                    ((start + end) / 2, 0.5),
                    xytext=(0, 4 + 13 * (next(heights) if heights else 0)),
                    textcoords="offset points",
                    rotation=slant,
                    rotation_mode="anchor",
                    ha="left" if slant else "center",
                )
        if u is not None:
            axes.plot([u, u], [-0.75, 0.5], color=INK, linewidth=1.2)
            axes.plot([u], [-0.75], marker="o", color=INK, markersize=8)
            axes.annotate(
                f"u = {_short(u)}",
                (u, -0.75),
                xytext=(8 if u < 0.8 else -8, 0),
                textcoords="offset points",
                ha="left" if u < 0.8 else "right",
                va="center",
            )
        # the ends of the stretches, where there is room for their numbers
        shown = [0.0]
        shown += [end for start, end in pairwise(starts) if end - start >= 0.07 and end <= 0.93]
        shown += [1.0]
        axes.set_xticks(shown, [f"{end:.2f}" for end in shown])
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(-1.1, 1.2)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_title(title)

    return _figure(draw, 2.0, alt)


def _in_rows(spans: Iterable[tuple[float, float]], rows: int = 2) -> list[int] | None:
    """The lowest row for each span in which it lies on no other; None if there are not enough."""
    full = [-math.inf] * rows
    found = []
    for start, end in spans:
        free = [row for row in range(rows) if full[row] <= start]
        if not free:
            return None
        full[free[0]] = end
        found.append(free[0])
    return found


def grid(
    kinds: Tensor,
    names: Sequence[str],
    rows: Sequence[object],
    columns: Sequence[object],
    title: str,
    xlabel: str = "key",
    ylabel: str = "query",
) -> Figure:
    """Cells of some kinds, such as which query may look at which key; `names[0]` is left white.

    `kinds` (rows, columns) holds the place of each cell's kind in `names`; a bool mask has the two
    kinds 0 and 1. Raises ValueError for a kind without a name, and unless there is a label for each
    row and column.
    """
    if kinds.shape != (len(rows), len(columns)) or not kinds.numel():
        raise ValueError(
            f"kinds has shape {tuple(kinds.shape)}, and there are {len(rows)} rows and "
            f"{len(columns)} columns"
        )
    table = [[int(kind) for kind in row] for row in kinds.tolist()]
    highest = max(map(max, table))
    if min(map(min, table)) < 0 or highest >= len(names) or len(names) > len(BAR_COLOURS):
        raise ValueError(
            f"kinds lie in {min(map(min, table))} to {highest}, and there are {len(names)} names: "
            f"one a kind, at most {len(BAR_COLOURS)}"
        )
    across, down = [str(label) for label in columns], [str(label) for label in rows]
    told = [
        f"{label}: {_told_cells(names, across, row)}"
        for label, row in zip(down, table, strict=True)
    ]
    if len(told) > 2 * TOLD:
        told[2 * TOLD - 1 :] = [f"after {len(told) - 2 * TOLD} more rows {told[-1]}"]
    alt = (
        f"{title}. Grid of {len(down)} rows ({ylabel}) and {len(across)} columns ({xlabel}). "
        f"{'; '.join(told)}."
    )

    def draw(axes: Axes) -> None:
        for kind, name in enumerate(names):
            places = [
                (y, x) for y, row in enumerate(table) for x, of in enumerate(row) if of == kind
            ]
            if not places:
                continue
            axes.barh(
                [y for y, _ in places],
                1,
                left=[x - 0.5 for _, x in places],
                height=1,
                label=name,
                color=PAPER if kind == 0 else BAR_COLOURS[kind - 1],
                edgecolor=FAINT if kind == 0 else INK,
                linewidth=0.8,
                hatch="" if kind == 0 else HATCHES[kind - 1],
                zorder=2 + (kind > 0),
            )
        # of many labels every second, third, ... is enough
        for axis, labels, room in ((axes.xaxis, across, 20), (axes.yaxis, down, 24)):
            step = -(-len(labels) // room)
            axis.set_ticks(range(0, len(labels), step), labels[::step])
        if sum(len(name) + 2 for name in across) > 70:
            for label in axes.get_xticklabels():
                label.set(rotation=40, ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.6, len(across) - 0.4)
        axes.set_ylim(len(down) - 0.4, -0.6)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.set_title(title)

    return _figure(draw, min(1.5 + 0.22 * len(down), 4.6), alt)


def column(*figures: Figure) -> Figure:
    """Several figures as one, from top to bottom, such as the stages of a step.

    Raises ValueError if there are none.
    """
    from PIL import Image

    if not figures:
        raise ValueError("no figures: a column needs 1 or more")
    pictures = [Image.open(io.BytesIO(figure.png)).convert("RGB") for figure in figures]
    size = max(p.width for p in pictures), sum(p.height for p in pictures)
    paper, top = Image.new("RGB", size, PAPER), 0
    for picture in pictures:
        paper.paste(picture, (0, top))
        top += picture.height
    return Figure(" ".join(figure.alt for figure in figures), _png(paper))


def _figure(draw: Callable[[Axes], None], height: float, alt: str) -> Figure:
    """Draw on fresh paper of `height` inches; nothing of matplotlib's own state is touched."""
    # matplotlib takes half a second to import: only who draws shall wait for it
    with _quiet("matplotlib"):
        from matplotlib import style
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Paper
        from PIL import Image

    with style.context(["default", STYLE]), warnings.catch_warnings():
        # a sign that the font lacks is drawn as a box; the text has it
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        paper = Paper(figsize=(WIDTH / 100, height), dpi=200, layout="constrained")
        canvas = FigureCanvasAgg(paper)
        axes = paper.add_subplot()
        draw(axes)
        handles, labels = axes.get_legend_handles_labels()
        if len(labels) > 1:
            # outside, where it never lies on the data
            paper.legend(handles, labels, loc="outside lower center", ncols=3)
        canvas.draw()
        picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return Figure(alt, _png(picture))


def _png(picture: Image.Image) -> bytes:
    """The bytes of a file: few colours make it small; no date and no version are in it."""
    png = io.BytesIO()
    picture.quantize(64).save(png, format="png", optimize=True)
    return png.getvalue()


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """On its first import matplotlib talks of its cache of fonts, which is no part of a lesson."""
    log = logging.getLogger(logger)
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _rows(
    series: Mapping[str, Iterable[float]], length: int, at_most: int
) -> dict[str, list[float]]:
    """The series as plain numbers, `length` of them each."""
    if not 1 <= len(series) <= at_most:
        raise ValueError(f"{len(series)} series: this figure tells 1 to {at_most} apart")
    rows = {name: _numbers(values) for name, values in series.items()}
    for name, row in rows.items():
        if len(row) != length:
            raise ValueError(
                f"series {name!r} has {len(row)} values, and there are {length} places"
            )
    return rows


def _numbers(values: Iterable[float]) -> list[float]:
    """Plain numbers out of a list, an array or a tensor."""
    if isinstance(values, Tensor):
        values = values.detach().flatten().tolist()
    return [float(value) for value in values]


def _one_row(name: str, values: Tensor) -> Tensor:
    """A tensor of one axis, out of one or a batch of one."""
    row = values.detach().cpu()
    if row.ndim == 2 and row.shape[0] == 1:
        row = row[0]
    if row.ndim != 1 or not len(row):
        raise ValueError(f"{name} has shape {tuple(values.shape)}; it must be one row, (vocab,)")
    return row


def _short(value: float) -> str:
    """A number in three digits at most, as a person would write it."""
    if not math.isfinite(value) or value == 0 or 0.001 <= abs(value) < 1_000_000:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value:.1e}"


@dataclass(frozen=True)
class _Group:
    """The tokens that a filter keeps, or those that it bans."""

    word: str
    count: int
    mass: float
    places: list[int]  # of those that are shown, counted from the top


def _told_groups(
    groups: Sequence[_Group], names: Sequence[str], values: Sequence[float], filtered: bool
) -> str:
    """The shown tokens as text, the kept ones apart from the banned ones if there are any."""
    if not filtered:
        return f" {_told_values(names, values)}."
    told = ""
    for group in groups:
        told += f" {group.count} {group.word}, with {_short(group.mass)} of the probability"
        inside = _told_values(
            [names[at] for at in group.places], [values[at] for at in group.places]
        )
        told += f": {inside}." if inside else "."
    return told


def _told_values(names: Sequence[str], values: Sequence[float]) -> str:
    """`the 0.31, a 0.2` and, if there are many, how many more there are and down to what."""
    said = [
        f"{name} = {_short(value)}" for name, value in zip(names[:TOLD], values[:TOLD], strict=True)
    ]
    if more := values[TOLD:]:
        low, high = _short(min(more)), _short(max(more))
        said.append(
            f"and {len(more)} more" + (f" of {low}" if low == high else f", {low} to {high}")
        )
    return ", ".join(said)


def _told_cells(names: Sequence[str], labels: Sequence[str], row: Sequence[int]) -> str:
    """The stretches of equal cells in a row: `may look 0 to 2, may not 3`."""
    said, start = [], 0
    for place in range(1, len(row) + 1):
        if place == len(row) or row[place] != row[start]:
            end = f" to {labels[place - 1]}" if place - 1 > start else ""
            said.append(f"{names[row[start]]} {labels[start]}{end}")
            start = place
    return ", ".join(said)


def _told_line(x: Sequence[float], y: Sequence[float]) -> str:
    """Where a line begins and ends, and some points between."""
    last = len(x) - 1
    some = sorted({round(last * part / (TOLD - 1)) for part in range(TOLD)}) if x else []
    return ", ".join(f"{_short(y[i])} at {_short(x[i])}" for i in some)
