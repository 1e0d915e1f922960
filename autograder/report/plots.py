"""Plots as inline SVG. The words that stand for each are made from the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from .page import plural, text

WIDTH, HEIGHT, SIDE, BOTTOM, TOP = 460, 190, 24, 34, 14


def histogram(scores: Sequence[float], most: float) -> str:
    """How many learners have how many points, in ten bars."""
    bins = 10
    counts, _ = np.histogram(scores, bins=bins, range=(0, most or 1))
    labels = [f"{most * place / bins:g}" for place in range(bins + 1)]
    mean, middle = float(np.mean(scores)), float(np.median(scores))
    fullest = int(np.argmax(counts))
    alt = (
        f"Scores of {plural(len(scores), 'learner')}, of {most:g} points: mean {mean:.1f}, median "
        f"{middle:g}, lowest {min(scores):g}, highest {max(scores):g}. Most, {counts[fullest]:,}, "
        f"lie between {labels[fullest]} and {labels[fullest + 1]} points."
    )
    return _bars([int(count) for count in counts], labels, "points", alt)


def arrivals(received: Sequence[datetime], due: datetime | None) -> str:
    """How many submissions came in when, in some dozen bars; `received` is aware, UTC."""
    first, last = min(received), max(received)
    step = _step(last - first)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    begin = midnight + (first - midnight) // step * step
    count = (last - begin) // step + 1
    counts = [0] * count
    for when in received:
        counts[(when - begin) // step] += 1
    labels = [_day(begin + step * place, step) for place in range(count + 1)]
    fullest = int(np.argmax(counts))
    alt = (
        f"Submissions over time, from {_day(first)} to {_day(last)} UTC, in steps of "
        f"{_length(step)}. Most, {counts[fullest]:,}, came in the one from "
        f"{_day(begin + step * fullest)}."
    )
    if due is not None:
        late = sum(when > due for when in received)
        alt += f" {late:,} came after the due date, {_day(due)} {due.tzname()}."
    return _bars(counts, labels, "day and month, UTC", alt)


def inline(share: float) -> str:
    """A small bar beside a number, which says the same."""
    return (
        '<svg class="inline" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="base" width="100" height="10"/><rect class="bar" width="{100 * share:.0f}" '
        'height="10"/></svg>'
    )


def percent(share: float) -> str:
    """Whole per cent; 0 % and 100 % are nobody and everybody."""
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return ">99 %"
    return f"{100 * share:.0f} %"


def _bars(counts: Sequence[int], labels: Sequence[str], unit: str, alt: str) -> str:
    """Vertical bars between `labels`, of which there is one more than of bars."""
    wide, high = WIDTH - 2 * SIDE, HEIGHT - BOTTOM - TOP
    step, most = wide / len(counts), max(counts) or 1
    floor = HEIGHT - BOTTOM
    parts = [f'<line class="axis" x1="{SIDE}" x2="{WIDTH - SIDE}" y1="{floor}" y2="{floor}"/>']
    for place, count in enumerate(counts):
        tall = high * count / most
        x = SIDE + step * place
        parts.append(
            f'<rect class="bar" x="{x + 1:.1f}" y="{floor - tall:.1f}" width="{step - 2:.1f}" '
            f'height="{tall:.1f}"/>'
        )
        if count:
            parts.append(
                f'<text x="{x + step / 2:.1f}" y="{floor - tall - 3:.1f}" text-anchor="middle">'
                f"{count}</text>"
            )
    # as many labels as fit beside each other
    every = -(-len(labels) // 7)
    for place in range(0, len(labels), every):
        # a long one at an end would reach out of the picture
        anchor = {0: "start", len(counts): "end"}.get(place, "middle")
        parts.append(
            f'<text x="{SIDE + step * place:.1f}" y="{floor + 14}" text-anchor="{anchor}">'
            f"{text(labels[place])}</text>"
        )
    parts.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{unit}</text>')
    return _figure("".join(parts), WIDTH, HEIGHT, alt)


def _figure(drawing: str, width: float, height: float, alt: str) -> str:
    words = text(alt)
    return (
        f'<figure><svg class="plot" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{words}">{drawing}</svg><figcaption>{words}</figcaption></figure>'
    )


def _step(span: timedelta) -> timedelta:
    """A length of which a dozen or so cover `span`."""
    for hours in (1, 3, 6, 12, 24, 48, 24 * 7):
        if span / timedelta(hours=hours) <= 16:
            return timedelta(hours=hours)
    return span / 12


def _day(when: datetime, step: timedelta = timedelta(hours=1)) -> str:
    """`9 Nov 14:00`, or `9 Nov` where a step is a day or more."""
    day = f"{when.day} {when:%b}"
    return day if step >= timedelta(days=1) else f"{day} {when:%H:%M}"


def _length(step: timedelta) -> str:
    hours = round(step / timedelta(hours=1))
    return plural(hours // 24, "day") if hours % 24 == 0 else plural(hours, "hour")
