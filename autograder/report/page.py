"""A page that is one file: style, script and data inside, nothing fetched, all text escaped.

The page's own policy names the one script and the one style by their hashes. So even text that got
past the escaping could neither run nor fetch anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Any

GENERATOR = "autograder report"
HERE = Path(__file__).parent
NO_SCRIPT = "'none'"
KINDS = {"#": "number", "~": "wide", "@": "who"}
LONG = 20  # lines of a table that is shown whole where it may scroll
# what cannot be shown, but for a new line and a tab, and the marks that turn the direction of what
# follows: a name with one of those could write itself as another
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def text(value: object, limit: int = 2_000) -> str:
    """`value` as text inside of an element or an attribute, of `limit` bytes at most.

    The limit counts what is written, so that neither signs that need escaping nor those of many
    bytes make a page large.
    """
    told = str(value)
    # each sign takes a byte at least: more need not be looked at
    seen = UNSEEN.sub("\ufffd", told[:limit])
    kept = len(seen)
    if len(escape(seen).encode()) > limit:
        sizes = accumulate(len(escape(sign).encode()) for sign in seen)
        kept = sum(1 for _ in takewhile(lambda size: size <= limit, sizes))
    left = len(told) - kept
    return escape(seen[:kept]) + (f" [{left:,} characters more]" if left else "")


def prose(value: str, limit: int) -> str:
    """`text` with what stands between backticks as code, as hints and claims write it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(value, limit))


def page(title: str, body: str, *, script: str = "", data: Any = None) -> str:
    """The whole page. `body` is HTML; `data` is handed to the script in an element `#data`."""
    style = (HERE / "page.css").read_text(encoding="utf-8")
    scripts = NO_SCRIPT
    if script:
        scripts = _hash(script)
        told = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        # nothing in it may end the element
        told = told.replace("<", "\\u003c")
        body += f'\n<script type="application/json" id="data">{told}</script>'
        body += f"\n<script>{script}</script>"
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {scripts}; base-uri 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{GENERATOR}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def script(name: str) -> str:
    """A script that lies beside this module."""
    return (HERE / name).read_text(encoding="utf-8")


def table(
    head: Iterable[str], rows: Sequence[Iterable[str]], *, kind: str = "", scrolls: bool = False
) -> str:
    """A table of HTML cells; it scrolls in its own box where the window is narrow.

    A head cell that begins with `#` is one of numbers, set to the right; one that begins with `~`
    is one of sentences, which need room, and one with `@` of ids, which may be long words. Where
    it `scrolls`, a long list leaves what comes after it in sight.
    """
    titles = list(head)
    classes = [KINDS.get(title[:1], "") for title in titles]

    def cells(tag: str, row: Iterable[str]) -> str:
        return "".join(
            f'<{tag} class="{name}">{cell}</{tag}>' if name else f"<{tag}>{cell}</{tag}>"
            for cell, name in zip(row, classes, strict=True)
        )

    lines = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    box = "scroll tall" if scrolls and len(rows) > LONG else "scroll"
    return (
        f'<div class="{box}" tabindex="0"><table class="{kind}">\n'
        f"<thead><tr>{cells('th', (title.lstrip('#~@') for title in titles))}</tr></thead>\n"
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


def plural(count: int, one: str, many: str = "") -> str:
    """`1 learner`, `2 learners`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
