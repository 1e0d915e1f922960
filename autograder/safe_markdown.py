"""A student's markdown in the pages that a teacher opens: text, formulas, pictures, no orders.

A script there would run as the teacher in formgrader, and could give points.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import bleach
from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter

# what a written answer may hold once markdown has become HTML
_TAGS = bleach.ALLOWED_TAGS | {
    *("p", "br", "hr", "pre", "div", "span", "img", "details", "summary", "sub", "sup", "del", "s"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt"),
    *("dd",),
}
_ATTRIBUTES = {
    # data: is for pictures alone, a link to it would be a page of the student's
    "a": lambda tag, name, value: (
        name == "title" or (name == "href" and "data:" not in unescape(value).lower())
    ),
    "img": lambda tag, name, value: (
        name in ("alt", "title") or (name == "src" and value.startswith("data:image/"))
    ),
    "th": ["align"],
    "td": ["align"],
}
# formulas are drawn by MathJax, which knows commands that make links and name elements. A browser
# reads a backslash in each of these ways, a command ends where its letters do, and of two
# backslashes before one both have to go
_MATHJAX = re.compile(
    r"(?:\\|&#0*92;?|&#x0*5c;?|&bsol;)+"
    r"(?=(?:href|cssId|class|style|require|unicode|url|mmlToken|bbox|texttip|mathtip)(?![A-Za-z]))",
    re.IGNORECASE,
)


@pass_context
def safe_markdown(context: Any, source: str) -> str:
    """Markdown as HTML for formgrader and feedback, without scripts: a student wrote it."""
    exporter = HTMLExporter(exclude_anchor_links=True)
    pictures = Pictures(context.get("cell", {}).get("attachments", {}))
    page = exporter.markdown2html({"cell": {"attachments": pictures}}, source)
    clean: str = bleach.clean(
        page, tags=_TAGS, attributes=_ATTRIBUTES, protocols={"http", "https", "mailto", "data"}
    )
    return _MATHJAX.sub("", clean)


class Pictures(dict[str, dict[str, str]]):
    """A cell's pictures by name; one that is missing is empty, and costs nobody the whole page."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> dict[str, str]:
        return {"image/png": ""}
