"""The instructor's report on one lesson: one file, to be opened from the disk.

What came in and what could not be graded, how the checks did, which mistakes were made, and an
explorer of the learners behind them. It reads records and what it is handed, nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from course_lib.given.lessons import heading

from ..late import DueDates, When
from ..records import Record
from ..similarity import Leads
from .compact import explorer_data
from .items import Item, Mistake, items, mistakes, not_run, untouched
from .leads import integrity, similarity
from .learner import unsandboxed
from .page import page, plural, prose, script, table, text
from .plots import arrivals, histogram, inline, percent

MOST_NAMES = 300  # in a list on the page; the explorer and the exports have all

EXPLORER = """<p>Every learner under each mistake that the checks named. A click on a name shows
what failed, each with the message of the first learner who failed in that way; the filter looks for
ids, mistakes, causes and checks.</p>
<div class="controls">
<label>Filter <input id="filter" type="search" autocomplete="off"></label>
<label>Group by <select id="group"><option value="mistake">mistake</option>
<option value="cause">cause</option><option value="check">check that fails</option>
<option value="none">nothing</option></select></label>
</div>
<p id="count" class="soft" role="status" aria-live="polite"></p>
<div id="results"></div>"""


@dataclass(frozen=True)
class Findings:
    """What is known of a lesson beside its records."""

    failures: Sequence[tuple[str, str]] = ()  # whose submission was not graded, and why
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the judge's, by student
    leads: Leads | None = None  # None: nobody looked for any


def instructor_page(
    lesson: str, records: Sequence[Record], due: DueDates, findings: Findings
) -> str:
    """The report on the records of one lesson."""
    title = heading(lesson)
    late = [due.judge(record.student, lesson, record.received) for record in records]
    after = sum(entry.when in (When.LATE, When.CLOSED) for entry in late)
    checks, known = items(records), mistakes(records)
    body = [
        '<a class="skip" href="#explorer">To the explorer</a>',
        "<main>",
        f"<h1>{text(title)}</h1>",
        '<p class="soft">Report for the instructor</p>',
        _banner(records),
        _run_sheet(records, findings, after),
    ]
    if records:
        policy = due.policies.get(lesson)
        scores = [record.verdict.score for record in records]
        body += [
            '<h2 id="scores">Scores and arrivals</h2>',
            '<div class="plots">',
            histogram(scores, max(record.verdict.max for record in records)),
            arrivals([record.received for record in records], policy.due if policy else None),
            "</div>",
            '<h2 id="checks">Checks</h2>',
            _checks(records, checks),
            '<h2 id="mistakes">Mistakes</h2>',
            _mistakes(known, len(records)),
            '<section id="explorer" hidden><h2>Explorer</h2>',
            EXPLORER,
            "</section>",
            "<noscript><p>The explorer needs JavaScript; everything else is above.</p></noscript>",
        ]
    body += [integrity(findings.notes), similarity(findings.leads), "</main>"]
    return page(
        f"{title}: report",
        "\n".join(part for part in body if part),
        script=script("explorer.js") if records else "",
        data=explorer_data(records, late),
    )


def _banner(records: Sequence[Record]) -> str:
    free = sum(unsandboxed(record.sandbox) for record in records)
    if not free:
        return ""
    told = plural(free, "submission was", "submissions were")
    return (
        f'<p class="banner" role="note">{told} graded '
        "without a sandbox: that code could have written its own result.</p>"
    )


def _run_sheet(records: Sequence[Record], findings: Findings, late: int) -> str:
    received = len(records) + len(findings.failures)
    scores = [record.verdict.score for record in records]
    whole = sum(all(check.passed for check in record.verdict.checks) for record in records)
    tiles = [
        (f"{received:,}", "received"),
        (f"{len(records):,}", "graded"),
        (f"{len(findings.failures):,}", "not graded"),
        (f"{late:,}", "late"),
        (f"{whole:,}", "pass everything"),
        (f"{sum(map(untouched, records)):,}", "not attempted"),
    ]
    if scores:
        tiles.append((f"{np.mean(scores):.1f}", f"points, the mean of {records[0].verdict.max:g}"))
    shown = "".join(f"<div><b>{number}</b> {what}</div>" for number, what in tiles)
    parts = [f'<div class="tiles">{shown}</div>']
    if findings.failures:
        lines = [(text(name, 200), text(cause, 400)) for name, cause in sorted(findings.failures)]
        parts += [
            "<h3>Not graded</h3>",
            table(("@Submission", "~Why"), lines[:MOST_NAMES], scrolls=True),
            _more(len(lines) - MOST_NAMES),
        ]
    broken: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if cause := not_run(record):
            broken[cause].append(record.student)
    if broken:
        causes = [
            (text(cause).replace(" ", "&nbsp;"), f"{len(names):,}", _names(sorted(names)))
            for cause, names in sorted(broken.items(), key=lambda entry: -len(entry[1]))
        ]
        parts += [
            "<h3>Graded, but every check fails for one cause</h3>",
            table(("Cause", "#Learners", "~Who"), causes),
        ]
    return "\n".join(parts)


def _checks(records: Sequence[Record], checks: Sequence[Item]) -> str:
    parts = [
        "<p>Discrimination is the point-biserial correlation of passing a check with the points of "
        "all other checks: near 1 who passes it does well elsewhere, near 0 it tells nothing, "
        "below 0 something is odd.</p>",
        *(f'<p class="note">{told}</p>' for told in _remarks(records, checks)),
        table(
            ("Check", "~What it claims", "#Points", "#Pass", "#Discrimination", "~Failed for"),
            [_check(check) for check in checks],
            kind="sortable",
        ),
    ]
    return "\n".join(parts)


def _check(check: Item) -> tuple[str, ...]:
    kind = ' <span class="soft">(hidden)</span>' if check.hidden else ""
    causes = ", ".join(f"{count:,} {text(cause)}" for cause, count in check.causes.items())
    told = "–" if check.discrimination is None else f"{check.discrimination:.2f}"
    value = -2 if check.discrimination is None else check.discrimination
    return (
        f"<code>{text(check.id, 200)}</code>{kind}",
        prose(check.claim, 400),
        f"{check.points:g}",
        f'<span data-value="{check.rate:.4f}">{inline(check.rate)} '
        f'<span class="figure">{percent(check.rate)}</span></span>',
        f'<span data-value="{value:.4f}">{told}</span>',
        causes or "–",
    )


def _remarks(records: Sequence[Record], checks: Sequence[Item]) -> list[str]:
    """What deserves a look, in sentences."""
    found = []
    versions = {record.graded_with for record in records}
    if len(versions) > 1:
        found.append(
            f"These grades come from {len(versions)} versions of the checks: run "
            "<code>autograder grade</code> to see who would move."
        )
    if len(records) < 2:
        return found

    def named(chosen: list[Item]) -> str:
        return ", ".join(f"<code>{text(check.id, 200)}</code>" for check in chosen)

    if nobody := [check for check in checks if check.passed == 0]:
        found.append(f"Nobody passes {named(nobody)}: is the task clear, and is the check right?")
    if everybody := [check for check in checks if check.passed == check.count]:
        found.append(f"Everybody passes {named(everybody)}.")
    odd = [c for c in checks if c.discrimination is not None and c.discrimination < 0]
    if odd:
        found.append(f"Who fails {named(odd)} does better elsewhere: look at what it refuses.")
    return found


def _mistakes(known: Sequence[Mistake], learners: int) -> str:
    if not known:
        return "<p>No known mistake was named.</p>"
    lines = [
        (
            f'<button type="button" data-show="{text(mistake.name, 200)}">'
            f"{text(mistake.name, 200)}</button>",
            f"<code>{text(mistake.of, 200)}</code>",
            f'<span data-value="{len(mistake.students)}">'
            f"{inline(len(mistake.students) / learners)} "
            f'<span class="figure">{len(mistake.students):,}</span></span>',
            prose(mistake.hint, 900),
            f"{len(mistake.checks)}",
        )
        for mistake in known
    ]
    head = ("Mistake", "Function", "#Learners", "~What the learner is told", "#Checks failed")
    return table(head, lines, kind="sortable")


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(text(name, 200) for name in names[:20])
    return f"{shown} and {len(names) - 20:,} more" if len(names) > 20 else shown


def _more(count: int) -> str:
    return f'<p class="soft">and {count:,} more</p>' if count > 0 else ""
