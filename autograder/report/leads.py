"""Leads in the instructor's report: what deserves a conversation, and proves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..similarity import Alike, Leads, Same
from .page import plural, table, text
from .plots import percent

MOST_NOTES = 300
MOST_NAMES = 12


def integrity(notes: Mapping[str, Sequence[str]]) -> str:
    """The judge's notes on submissions, by student."""
    lines = [(student, note) for student, own in sorted(notes.items()) for note in own]
    parts = ['<h2 id="integrity">Integrity leads</h2>']
    if not lines:
        parts.append("<p>The judge noted nothing.</p>")
        return "\n".join(parts)
    parts.append(
        "<p>What the judge noted beside its verdicts. No points depend on it: <strong>a lead, not "
        "proof</strong>.</p>"
    )
    shown = [(text(student, 200), text(note, 500)) for student, note in lines[:MOST_NOTES]]
    parts.append(table(("@Learner", "~Note"), shown, scrolls=True))
    if len(lines) > MOST_NOTES:
        parts.append(f'<p class="soft">and {len(lines) - MOST_NOTES:,} more</p>')
    return "\n".join(parts)


def similarity(leads: Leads | None) -> str:
    """Whose own lines are alike; nothing if nobody looked."""
    if leads is None:
        return ""
    parts = [
        '<h2 id="similarity">Similarity leads</h2>',
        f"<p>{plural(leads.files, 'file')} compared, after the lines of the stub and of the "
        "reference were taken away. Short functions have few natural forms, and learners may have "
        "worked together as you allowed: <strong>a lead, not proof</strong>. Read both files "
        "before you speak to anyone.</p>",
    ]
    if not leads.same and not leads.alike:
        parts.append("<p>No two stand out.</p>")
    if leads.same:
        parts += [
            "<h3>The same lines, names and comments included</h3>",
            table(("@Learners", "#Lines", "Beginning"), [_same(group) for group in leads.same]),
        ]
    if leads.alike:
        parts += [
            "<h3>The same code under other names</h3>",
            "<p>By kinds of tokens, as copydetect reads them. Rare fragments are those that hardly "
            "anyone else has.</p>",
            table(
                ("@Learners", "#Shared, of each", "#Rare fragments", "A part of it"),
                [_alike(lead) for lead in leads.alike],
            ),
        ]
    return "\n".join(parts)


def _same(group: Same) -> tuple[str, ...]:
    names = ", ".join(text(name, 200) for name in group.students[:MOST_NAMES])
    left = len(group.students) - MOST_NAMES
    more = f" and {left:,} more: perhaps the natural way to write it" if left > 0 else ""
    return (names + more, str(group.lines), f"<pre>{text(group.excerpt, 700)}</pre>")


def _alike(lead: Alike) -> tuple[str, ...]:
    return (
        ", ".join(text(name, 200) for name in lead.students),
        ", ".join(percent(share) for share in lead.shares),
        str(lead.rare),
        f"<pre>{text(lead.excerpt, 700)}</pre>",
    )
