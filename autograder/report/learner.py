"""A learner's report: one lesson, every check, what to do next. One file, under 200 kB.

Of a hidden check it tells the property and whether it holds, never a value. Of a visible one it
tells what was called, what came back and what was expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from course_lib.given.lessons import heading

from ..judge.verdict import CheckVerdict
from ..late import Lateness, When
from ..records import Record
from .case import as_case, without_middle
from .page import page, plural, prose, text

# bytes: a page is as long as this at most, whatever the messages hold
LONGEST = 200_000
ROOM = 90_000  # of it for what the checks told; names, claims and style take the rest
LONGEST_MESSAGE, LONGEST_HINT, LONGEST_CLAIM = 6_000, 900, 300

UNSANDBOXED = "none"
NOT_ATTEMPTED = "not attempted"


def learner_page(record: Record, late: Lateness, earlier: Record | None = None) -> str:
    """The report of one record; `earlier` is the record of what was handed in before, if any."""
    title = heading(record.lesson)
    checks = record.verdict.checks
    visible = [check for check in checks if not check.hidden]
    hidden = [check for check in checks if check.hidden]
    body = [
        '<main class="learner">',
        f"<h1>{text(title)}</h1>",
        f'<p class="soft">Report for <strong>{text(record.student, 300)}</strong></p>',
        _banner(record),
        _score(record, late),
        f"<p>{_passed(visible, 'visible')} {_passed(hidden, 'hidden')}</p>",
        _since(record, earlier) if earlier else "",
        "<h2>Visible checks</h2>",
        "<p>Run them yourself as often as you like: in the folder of your course, "
        f"<code>course check {text(record.lesson)}</code>.</p>",
        *_visible(visible),
        *_hidden(hidden),
        "<h2>Receipt</h2>",
        _receipt(record, late),
        "</main>",
    ]
    return page(f"{title}: {record.student}", "\n".join(part for part in body if part))


def unsandboxed(sandbox: str) -> bool:
    """Whether a record's code ran unguarded."""
    return sandbox == UNSANDBOXED


def moment(when: datetime) -> str:
    """A time to the minute, with its zone: `2 November 2026, 12:05 UTC`."""
    return f"{when.day} {when:%B %Y, %H:%M} {when.tzname()}"


def _banner(record: Record) -> str:
    if not unsandboxed(record.sandbox):
        return ""
    return (
        '<p class="banner" role="note">Graded without a sandbox. The code was not held apart from '
        "the grader, so this result is as trustworthy as the code itself.</p>"
    )


def _score(record: Record, late: Lateness) -> str:
    score, most = record.verdict.score, record.verdict.max
    penalty = late.penalty(score)
    told = f"{score:g} of {most:g} points"
    share = 100 * score / most if most else 0
    lines = [
        f'<p class="score">{score:g} <small>of {most:g} points</small></p>',
        f'<svg class="meter" viewBox="0 0 100 3" preserveAspectRatio="none" role="img" '
        f'aria-label="{told}"><rect class="base" width="100" height="3" rx="1"/>'
        f'<rect class="right" width="{share:.1f}" height="3" rx="1"/></svg>',
    ]
    if late.when is When.CLOSED:
        lines.append("<p><strong>Received after the lesson closed:</strong> no points count.</p>")
    elif late.when is When.LATE:
        taken = "point is" if penalty == 1 else "points are"
        lines.append(
            f"<p><strong>{text(late.told())}:</strong> {penalty:g} {taken} taken off, "
            f"{round(score - penalty, 2):g} count.</p>"
        )
    lines.append(
        '<p class="soft small">Written answers are graded by a person and come on top.</p>'
    )
    return "\n".join(lines)


def _passed(checks: Sequence[CheckVerdict], kind: str) -> str:
    if not checks:
        return f"The {kind} checks were not run."
    count = sum(check.passed for check in checks)
    word = "good" if count == len(checks) else "bad"
    return f'<span class="{word}">{count} of {plural(len(checks), f"{kind} check")} passed.</span>'


def _since(record: Record, earlier: Record) -> str:
    """What is better and what is worse than in the record before."""
    before = {check.id: check.passed for check in earlier.verdict.checks}
    known = [check for check in record.verdict.checks if check.id in before]
    mended = [check for check in known if check.passed and not before[check.id]]
    broken = [check for check in known if not check.passed and before[check.id]]
    gained = round(record.verdict.score - earlier.verdict.score, 2)
    points = "point" if abs(gained) == 1 else "points"
    told = f"{abs(gained):g} {points} {'more' if gained > 0 else 'less'} than"
    if not gained:
        told = "As much as"
    lines = [
        "<h2>Since last time</h2>",
        f"<p>{told} what was received {moment(earlier.received)} earned.</p>",
    ]
    for word, mark, checks in (("passes now", "✓", mended), ("fails now", "✗", broken)):
        for check in checks:
            kind = "good" if check.passed else "bad"
            lines.append(
                f'<p><span class="{kind}"><span aria-hidden="true">{mark}</span> {word}:</span> '
                f"{prose(check.claim, LONGEST_CLAIM)}</p>"
            )
    if earlier.submission == record.submission:
        lines.append('<p class="soft">The files are the same as last time.</p>')
    return "\n".join(lines)


def _visible(checks: Sequence[CheckVerdict]) -> list[str]:
    failed = [check for check in checks if not check.passed]
    limit = min(LONGEST_MESSAGE, ROOM // max(1, len(failed)))
    shown: dict[str, str] = {}
    parts = []
    for check in checks:
        body = ""
        if not check.passed:
            body = _case(check.message, limit)
            # the same slip fails many checks: its hint stands once
            if check.hint and check.hint in shown:
                first = text(shown[check.hint], 200)
                body += f'<p class="soft">The same slip as in <code>{first}</code>.</p>'
            elif check.hint:
                shown[check.hint] = check.id
                body += f'<p class="note">{prose(check.hint, LONGEST_HINT)}</p>'
        parts.append(_check(check, body))
    return parts


def _hidden(checks: Sequence[CheckVerdict]) -> list[str]:
    if not checks:
        return []
    return [
        "<h2>Hidden checks</h2>",
        "<p>They compare your functions with the reference on inputs that nobody knows beforehand. "
        "A report tells the property that fails, never the values.</p>",
        *(_check(check, "") for check in checks),
    ]


def _check(check: CheckVerdict, body: str) -> str:
    if check.passed:
        kind, mark, word = "good", "✓", "passed"
    elif check.cause == NOT_ATTEMPTED:
        kind, mark, word = "wait", "○", NOT_ATTEMPTED
    else:
        kind, mark, word = "bad", "✗", check.cause
    points = f"{check.earned:g} of {check.points:g}"
    name = f"<code>{text(check.id, 200)}</code>"
    told = f'<div class="body">{body}</div>' if body else ""
    return (
        f'<section class="check {kind}"><div class="head">'
        f'<strong class="{kind}"><span aria-hidden="true">{mark}</span> {text(word, 100)}</strong>'
        f'<span class="claim">{prose(check.claim, LONGEST_CLAIM)}</span>'
        f'<span class="soft small">{name}, {points}</span></div>{told}</section>'
    )


def _case(message: str, limit: int) -> str:
    parts = as_case(without_middle(message, limit, limit))
    # a share for each, so that a huge answer leaves room for what was expected
    share = limit // max(1, len(parts))
    lines = "".join(
        f"<dt>{label}</dt><dd><pre>{text(told, share)}</pre></dd>" for label, told in parts
    )
    return f"<dl>{lines}</dl>" if lines else ""


def _receipt(record: Record, late: Lateness) -> str:
    # beside the due date, so on the same clock
    received = record.received.astimezone(late.due.tzinfo if late.due else UTC)
    facts = [
        ("Received", text(moment(received))),
        ("SHA-256", f"<code>{text(record.submission)}</code>"),
        ("Sandbox", f"<code>{text(record.sandbox, 200)}</code>"),
        ("Graded with", f"<code>{text(record.graded_with[:16])}</code>, the version of the checks"),
    ]
    if late.due is not None:
        facts.insert(1, ("Due", f"{text(moment(late.due))} ({text(late.told())})"))
    lines = "".join(f"<dt>{label}</dt><dd>{told}</dd>" for label, told in facts)
    return f'<dl class="facts">{lines}</dl>'
