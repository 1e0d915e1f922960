"""course_lib/given/plots.py: what a figure says, how it looks, and what it leaves."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import combinations

import matplotlib.figure
import numpy as np
import pytest
import torch
from IPython.core.formatters import DisplayFormatter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from course_lib.given import plots
from course_lib.given.plots import Figure, bars, column, distribution, grid, lines, roulette

Y = torch.tensor([2.0, 1.0, 0.1, -1.0, -2.0])


class Words:
    """A tokenizer of five words, one of them awkward for HTML, one for mathematics."""

    def piece(self, token_id: int) -> str:
        return ['·<"a">', "$x$", "⏎", "·dog", r"\xe4"][token_id]


def pixels(figure: Figure) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(figure.png)).convert("RGB"))


def texts_overlap(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Figure]) -> bool:
    """Whether of the numbers and names that a figure writes onto its axes two lie on each other."""
    canvas = FigureCanvasAgg(matplotlib.figure.Figure((6.4, 3.4), 100, layout="constrained"))
    axes = canvas.figure.add_subplot()

    def figure(draw: Callable[[Axes], None], height: float, alt: str) -> Figure:
        draw(axes)
        return Figure(alt, b"")

    monkeypatch.setattr(plots, "_figure", figure)
    make()
    canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert boxes
    return any(one.overlaps(other) for one, other in combinations(boxes, 2))


def every_figure() -> list[Figure]:
    return [
        bars("abc", {"before": [0.5, 0.3, 0.2], "after": [0.6, 0.4, 0]}, "Bars"),
        distribution(Y, Words(), kept=Y > 0, title="Distribution"),
        lines([1, 2, 4], {"with": [1, 2, 3], "without": [1, 4, 16]}, "Lines", "n", "s", log="xy"),
        roulette("abc", [0.2, 0.7, 0.1], 0.5, "Roulette"),
        grid(torch.tensor([[0, 1, 2]]), ["not", "old", "new"], ["query"], "abc", "Grid"),
        column(bars("ab", {"p": [0.5, 0.5]}, "Top"), roulette("ab", [0.5, 0.5], 0.1, "Bottom")),
    ]


# --- what is written lies side by side ---


@pytest.mark.parametrize(
    ("labels", "series"), [(3, 1), (3, 4), (5, 1), (5, 2), (5, 3), (8, 1), (8, 4), (12, 1), (12, 3)]
)
def test_the_numbers_of_small_bars_do_not_run_into_each_other(
    monkeypatch: pytest.MonkeyPatch, labels: int, series: int
) -> None:
    rows = {f"p{n}": (torch.arange(labels) * -0.7 * n).softmax(-1).tolist() for n in range(series)}
    assert not texts_overlap(monkeypatch, lambda: bars(range(labels), rows, "Small"))


def test_names_on_a_wheel_stand_upright_where_they_have_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turned: list[float] = []

    def figure(draw: Callable[[Axes], None], height: float, alt: str) -> Figure:
        axes = matplotlib.figure.Figure().add_subplot()
        draw(axes)
        turned.append(max(text.get_rotation() for text in axes.texts))
        return Figure(alt, b"")

    monkeypatch.setattr(plots, "_figure", figure)
    # the short stretch is narrower than its name, but its neighbours leave it room
    roulette(["girl", "little", "dog"], [0.45, 0.05, 0.5])
    # two names that would run into each other stand one above the other
    roulette(["girl", "little", "lovely", "dog"], [0.4, 0.05, 0.05, 0.5])
    roulette(["girl", "little", "lovely", "yellow", "dog"], [0.4, 0.04, 0.04, 0.04, 0.48])
    assert turned == [0, 0, 40]
    for probs in ([0.45, 0.05, 0.5], [0.05, 0.05, 0.9], [0.8, 0.1, 0.1], [0.9, 0.05, 0.05]):
        names = ["girl", "little", "lovely"]
        assert not texts_overlap(monkeypatch, lambda p=probs, n=names: roulette(n, p))


# --- one output, and a text that says the same ---


def test_a_figure_is_one_html_output_with_its_text() -> None:
    for figure in every_figure():
        data, _ = DisplayFormatter().format(figure)
        assert set(data) == {"text/html", "text/plain"}
        assert data["text/plain"] == figure.alt
        found = re.fullmatch(
            r'<img alt="([^"]+)" src="data:image/png;base64,[A-Za-z0-9+/=]+" width="640">',
            data["text/html"],
        )
        assert found


def test_the_text_survives_html() -> None:
    figure = distribution(Y, Words())
    assert '·<"a"> = 0.631' in figure.alt
    assert "·&lt;&quot;a&quot;&gt; = 0.631" in figure._repr_html_()


def test_bars_tell_title_axes_and_values() -> None:
    figure = bars(
        ["·girl", "·boy"],
        {"before": torch.tensor([2 / 3, 1 / 3]), "after": np.array([1.0, 0.0])},
        "Top-k with k = 1",
    )
    assert figure.alt == (
        "Top-k with k = 1. Bar chart. Across: token. Up: probability. "
        "before: ·girl = 0.667, ·boy = 0.333; after: ·girl = 1, ·boy = 0."
    )


def test_a_long_row_is_summed_up() -> None:
    figure = bars(range(30), {"p": [0.5, *[0.01] * 9, *[0.02] * 20]}, "Many")
    assert "5 = 0.01, and 24 more, 0.01 to 0.02." in figure.alt
    assert len(figure.alt) < 200


def test_a_distribution_tells_what_is_kept_and_what_is_banned() -> None:
    figure = distribution(Y, kept=torch.tensor([True, True, False, False, False]), title="k = 2")
    assert figure.alt == (
        "k = 2. Bar chart of the 5 most probable of 5 tokens, the most probable first. Along: "
        "probability. 2 kept, with 0.863 of the probability: 0 = 0.631, 1 = 0.232. 3 banned, with "
        "0.137 of the probability: 2 = 0.0943, 3 = 0.0314, 4 = 0.0116."
    )


def test_a_distribution_is_sorted_and_cut_at_the_top() -> None:
    figure = distribution(Y.flip(0), top=2)
    assert "2 most probable of 5 tokens" in figure.alt
    assert figure.alt.endswith("4 = 0.631, 3 = 0.232.")


def test_a_filtered_row_shows_its_banned_tokens_by_itself() -> None:
    figure = distribution(Y.masked_fill(Y < 1, -torch.inf))
    assert "2 kept, with 1 of the probability" in figure.alt
    assert "3 banned, with 0 of the probability: 2 = 0, 3 = 0, 4 = 0." in figure.alt


def test_a_batch_of_one_and_half_precision_are_fine() -> None:
    assert distribution(Y[None].bfloat16(), kept=(Y > 0)[None]).alt == (
        distribution(Y.bfloat16().float(), kept=Y > 0).alt
    )


def test_a_column_is_one_figure_that_shows_and_tells_all_of_its_own() -> None:
    parts = [bars("ab", {"p": [0.5, 0.5]}, "Top"), roulette("ab", [0.5, 0.5], 0.1, "Bottom")]
    together = column(*parts)
    assert together.alt == f"{parts[0].alt} {parts[1].alt}"
    assert pixels(together).shape[0] == sum(pixels(part).shape[0] for part in parts)
    with pytest.raises(ValueError, match="no figures"):
        column()


def test_lines_tell_scales_and_some_points() -> None:
    figure = lines(
        range(1, 101), {"cost": [n * n for n in range(1, 101)]}, "Cost", "n", "steps", log="y"
    )
    assert figure.alt == (
        "Cost. Line chart. Across: n. Up: steps (log scale). cost: 1 at 1, 441 at 21, 1681 at 41, "
        "3600 at 60, 6400 at 80, 10000 at 100."
    )


def test_a_roulette_tells_where_each_stretch_ends_and_where_the_ball_lies() -> None:
    # shares of the whole: the numbers need not add up to 1
    figure = roulette(["·girl", "·boy", "·dog"], torch.tensor([2.0, 1.0, 1.0]), 0.5, "The wheel")
    assert figure.alt == (
        "The wheel. The line from 0 to 1, cut into stretches: ·girl from 0 to 0.5, ·boy from 0.5 "
        "to 0.75, ·dog from 0.75 to 1. The ball lies at u = 0.5."
    )


def test_a_roulette_without_a_ball_and_with_many_stretches_is_summed_up() -> None:
    figure = roulette(range(40), [1] * 40)
    assert figure.alt.endswith("11 from 0.275 to 0.3, and 28 more.")


def test_the_ball_of_a_roulette_is_drawn_where_u_is() -> None:
    def ink(u: float, side: slice) -> int:
        """Dark pixels under the line, on one side of it."""
        dark = pixels(roulette("ab", [0.5, 0.5], u)).max(axis=-1) < 60
        return int(dark[280:330, side].sum())

    left, right = slice(0, 640), slice(640, None)
    assert ink(0.25, left) > 200 > ink(0.25, right)
    assert ink(0.75, right) > 200 > ink(0.75, left)


def test_a_grid_tells_each_rows_stretches() -> None:
    mask = torch.ones(2, 4, dtype=torch.bool).tril(2)
    figure = grid(mask, ["may not", "may look"], ["·was", "·a"], range(4), "Two new tokens")
    assert figure.alt == (
        "Two new tokens. Grid of 2 rows (query) and 4 columns (key). ·was: may look 0 to 2, "
        "may not 3; ·a: may look 0 to 3."
    )


def test_a_grid_of_many_rows_is_summed_up_but_for_the_last_one() -> None:
    figure = grid(torch.eye(30), ["off", "on"], range(30), range(30), "Diagonal")
    assert figure.alt.endswith("off 11 to 29; after 18 more rows 29: off 0 to 28, on 29.")


def test_the_cells_of_a_grid_are_drawn_where_they_are() -> None:
    def blue(mask: torch.Tensor) -> np.ndarray:
        """Blue pixels left and right, above and below."""
        picture = pixels(grid(mask, ["off", "on"], "ab", "cd", "t")).astype(int)
        is_blue = picture[..., 2] - picture[..., 0] > 100
        height = len(is_blue)
        # the legend lies in the lowest third
        upper, lower = is_blue[: height // 3], is_blue[height // 3 : height // 3 * 2]
        return np.array([side.sum() for half in (upper, lower) for side in np.split(half, 2, 1)])

    top_right = blue(torch.tensor([[0, 1], [0, 0]]))
    bottom_left = blue(torch.tensor([[0, 0], [1, 0]]))
    assert top_right.argmax() == 1 and bottom_left.argmax() == 2, (top_right, bottom_left)


# --- wrong use ---


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: bars("ab", {"p": [1.0]}, "t"), "series 'p' has 1 values, and there are 2 places"),
        (lambda: bars("ab", {}, "t"), "0 series"),
        (lambda: lines([1], {str(n): [1] for n in range(6)}, "t", "x", "y"), "1 to 5 apart"),
        (lambda: lines([1], {"a": [1]}, "t", "x", "y", log="z"), "log='z' is not allowed"),
        (lambda: distribution(torch.zeros(2, 5)), r"logits has shape \(2, 5\)"),
        (lambda: distribution(Y, kept=Y[:3] > 0), "kept has 3 entries and logits 5"),
        (lambda: distribution(Y, top=0), "top=0 is not allowed"),
        (lambda: distribution(Y * torch.nan), "hold NaN"),
        (lambda: distribution(torch.full((5,), -torch.inf)), "nothing but -inf"),
        (lambda: grid(torch.zeros(2, 2), ["a"], "ab", "c", "t"), r"shape \(2, 2\), .* 1 columns"),
        (lambda: grid(torch.eye(2), ["a"], "ab", "cd", "t"), "kinds lie in 0 to 1, .* 1 names"),
        (lambda: grid(-torch.eye(2), ["a", "b"], "ab", "cd", "t"), "kinds lie in -1 to 0"),
        (lambda: roulette("ab", [0.5]), "series 'probs' has 1 values, and there are 2 places"),
        (lambda: roulette("ab", [0.0, 0.0]), "no distribution"),
        (lambda: roulette("ab", [1.5, -0.5]), "no distribution"),
        (lambda: roulette("ab", [1.0, float("nan")]), "no distribution"),
        (lambda: roulette("ab", [0.5, 0.5], 1.0), r"u=1.0 is not allowed: it must lie in \[0, 1\)"),
    ],
)
def test_wrong_use_is_told(wrong: object, told: str) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match=told):
        wrong()


# --- how it looks ---


def luminance(colour: str) -> float:
    """Relative luminance, as the accessibility guidelines WCAG 2 define it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_figure_brings_its_own_paper() -> None:
    """On a dark page a transparent figure would lose its text, or on a light one."""
    for figure in every_figure():
        assert Image.open(io.BytesIO(figure.png)).info.get("transparency") is None
        picture = pixels(figure)
        border = np.concatenate([picture[0], picture[-1], picture[:, 0], picture[:, -1]])
        assert (border == 255).all()


def test_text_and_lines_have_contrast_on_the_paper() -> None:
    assert contrast(plots.INK, plots.PAPER) > 12
    assert contrast(plots.GREY, plots.PAPER) > 4.5
    assert all(contrast(colour, plots.PAPER) >= 3 for colour in plots.LINE_COLOURS)


def test_series_differ_by_more_than_colour() -> None:
    looks = list(zip(plots.BAR_COLOURS, plots.HATCHES, strict=True))
    for (colour, hatch), (other_colour, other_hatch) in combinations(looks, 2):
        assert hatch != other_hatch or contrast(colour, other_colour) > 3
    assert len(set(plots.MARKERS)) == len(set(plots.DASHES)) == len(plots.LINE_COLOURS)


def test_kept_and_banned_differ_in_grey() -> None:
    def greys(kept: torch.Tensor) -> np.ndarray:
        return pixels(distribution(Y, kept=kept)).mean(axis=-1)[60:75, 200:700]

    everything, nothing = torch.ones(5, dtype=torch.bool), torch.zeros(5, dtype=torch.bool)
    assert greys(everything).mean() < 120 < 200 < greys(nothing).mean()


def test_a_picture_is_sharp_and_small() -> None:
    figure = distribution(torch.arange(4096.0) / 500)
    assert pixels(figure).shape[1] == 2 * plots.WIDTH
    assert len(figure.png) < 60_000


def test_dollar_signs_and_unknown_signs_are_only_text() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bars(["$", "$$", "$\\frac", "你", "_^{}"], {"p": [1, 1, 1, 1, 1]}, "Costs $5 and $6")


# --- what it leaves behind ---


def test_the_same_data_gives_the_same_bytes() -> None:
    for first, second in zip(every_figure(), every_figure(), strict=True):
        assert first.png == second.png
    assert b"Matplotlib" not in every_figure()[0].png


def test_a_persons_own_style_changes_nothing_and_is_kept() -> None:
    plain = every_figure()[0].png
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "text.usetex": True}):
        assert every_figure()[0].png == plain
        assert matplotlib.rcParams["font.size"] == 30
    assert matplotlib.rcParams["text.parse_math"] is True


def test_the_first_figure_on_a_machine_says_nothing_of_fonts_and_folders() -> None:
    """Matplotlib logs when it can keep no cache, and that landed in a learner's first cell."""
    source = "import course_lib.given.plots as plots\nplots.bars('ab', {'p': [1, 2]}, 'title')\n"
    result = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, "MPLCONFIGDIR": os.path.join(os.devnull, "nowhere")},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert (result.stdout, result.stderr) == ("", "")


def test_matplotlib_waits_until_something_is_drawn_and_pyplot_is_never_touched() -> None:
    source = (
        "import sys, course_lib.given.plots as plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plots.bars('ab', {'p': [1, 2]}, 'title')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=600)
