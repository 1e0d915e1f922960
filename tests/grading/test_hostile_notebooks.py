"""Notebooks of a student who wants the teacher's pages: to break, to stall, to own them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import InvalidNotebook
from traitlets.config import Config

from autograder.notebook import LONGEST_SOURCE, answers, restored
from autograder.projection import shown
from autograder.safe_markdown import safe_markdown
from tests.attacks.scenes import forget_peak, peak
from tests.grading import fake
from tests.grading.packs import ANSWER, LESSON, REFERENCE, answered, notebook

WRITTEN = "top_k-written"


def as_page(data: bytes) -> str:
    """What the teacher opens, drawn as the feedback and formgrader draw it."""
    verdict = fake.judge({"top_k": REFERENCE}, "top_k", b"", "reference", True)
    book = shown(LESSON, data, verdict.lessons["top_k"]).notebook
    config = Config()
    config.HTMLExporter.filters = {"markdown2html": "autograder.safe_markdown.safe_markdown"}
    exporter = HTMLExporter(config=config, template_name="classic")
    page, _ = exporter.from_notebook_node(nbformat.from_dict(book))
    return str(page)


def with_answer(source: str, attachments: Any = None) -> bytes:
    told = json.loads(answered())
    for cell in told["cells"]:
        if cell["id"] == WRITTEN:
            cell["source"] = source
            if attachments is not None:
                cell["attachments"] = attachments
    return json.dumps(told).encode()


# --- pictures ---

PICTURE = {"mine.png": {"image/png": "aGk="}}


@pytest.mark.parametrize("attachments", [None, {}, PICTURE, {"a.svg": {"image/svg+xml": "<svg>"}}])
def test_a_picture_that_is_missing_costs_nobody_the_page(attachments: Any) -> None:
    """nbconvert refuses the whole notebook, so nobody could grade the answer by hand."""
    source = "Before ![it](attachment:a.svg) and ![mine](attachment:mine.png) after."
    page = as_page(with_answer(source, attachments))
    assert "Before" in page
    assert "after." in page
    assert ("base64,aGk=" in page) == (attachments is PICTURE)


def test_nbconvert_itself_refuses_it() -> None:
    with pytest.raises(InvalidNotebook):
        HTMLExporter().markdown2html({}, "![it](attachment:a.svg)")


# --- what a page would obey ---


class Reader(HTMLParser):
    """The tags of a page, and the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize(
    "backslash", ["\\", "\\\\", "\\&#92;", "&#92;", "&#092;", "&#x5c;", "&#X5C;", "&bsol;"]
)
@pytest.mark.parametrize(
    "command", ["href{javascript:alert(1)}{x}", "cssId{score}{x}", "href_{a}b"]
)
def test_no_formula_makes_links_or_names_elements(backslash: str, command: str) -> None:
    for source in (f"${backslash}{command}$", f"<div>${backslash}{command}$</div>"):
        page = safe_markdown({}, source)
        read = re.sub(r"&#0*92;?|&#x0*5c;?|&bsol;", r"\\", page, flags=re.IGNORECASE)
        assert f"\\{command[:4]}" not in read, page


def test_neither_by_the_command_for_an_element() -> None:
    assert r"\mmlToken" not in safe_markdown({}, r'$\mmlToken{mi}[href="javascript:1"]{x}$')


def test_ordinary_formulas_stay() -> None:
    told = r"$\frac{a}{b}$ and $\classes \hrefs \alpha$ &#92;alpha"
    page = safe_markdown({}, told)
    assert all(word in page for word in (r"\frac", r"\classes", r"\hrefs", r"\alpha"))


@pytest.mark.parametrize(
    "source",
    [
        "[a](data:text/html,<script>alert(1)</script>)",
        '<a href="data:text/html,<script>alert(1)</script>">a</a>',
        '<a href=" DATA:text/html;base64,PHNjcmlwdD4=">a</a>',
        '<a href="data&colon;text/html;base64,PHNjcmlwdD4=">a</a>',
        '<a href="&#1;java&#9;script:alert(1)">a</a>',
    ],
)
def test_no_link_leads_to_a_page_of_the_students(source: str) -> None:
    assert "href" not in safe_markdown({}, source)


@pytest.mark.parametrize(
    "source",
    [
        "<math><mtext><table><mglyph><style><!--</style>"
        '<img title="--&gt;&lt;img src=1 onerror=x()&gt;">',
        '<svg></p><style><a id="</style><img src=1 onerror=x()>">',
        '<noscript><p title="</noscript><img src=x onerror=x()>"></noscript>',
        "$<img src=x onerror=x()>$ $$<script>x()</script>$$",
        r"\begin{a}<script>x()</script>\end{a}",
        '<details open ontoggle=x()><summary onclick="x()">s</summary></details>',
        "```mermaid\ngraph TD; a-->b; click a javascript:x()\n```",
        '<img src="data:image/x&quot; onerror=&quot;x()">',
    ],
)
def test_what_confuses_a_cleaner_of_html_confuses_none_here(source: str) -> None:
    reader = Reader()
    reader.feed(safe_markdown({}, source))
    assert not reader.tags & {"script", "style", "svg", "math", "noscript", "iframe", "form"}
    assert not any(name.startswith("on") or name in ("id", "class") for name in reader.attributes)


# --- much of everything ---


def test_an_answer_behind_very_long_cells_is_not_lost() -> None:
    """It was cut off with the rest, and earned nothing as if nobody had written it."""
    told = json.loads(answered())
    long = {"cell_type": "code", "metadata": {}, "source": "x = 1\n" * 3_000}
    told["cells"][:0] = [long] * 100
    told["cells"][:0] = [{"cell_type": "markdown", "metadata": {}, "source": "."}] * 3_000
    book, notes = restored(LESSON, json.dumps(told).encode())
    assert answers(LESSON, book) == {WRITTEN: ANSWER.decode()}
    assert any("cells are not shown" in note for note in notes)
    assert len(book["cells"]) < 2_100


def test_the_same_note_is_told_once() -> None:
    told = json.loads(answered())
    told["cells"] += [cell for cell in told["cells"] if cell["id"] == WRITTEN] * 5_000
    _, notes = restored(LESSON, json.dumps(told).encode())
    assert len(notes) < 10


def test_an_answer_is_as_long_as_a_page_bears() -> None:
    book, _ = restored(LESSON, with_answer("*" * 10 * LONGEST_SOURCE))
    assert len(answers(LESSON, book)[WRITTEN] or "") < LONGEST_SOURCE + 200


def test_metadata_changes_no_page() -> None:
    """Tags, widgets, kernels, formats: none of it is taken over."""
    told = json.loads(answered())
    told["metadata"] = {
        "kernelspec": {"name": "x", "display_name": "<script>", "language": "<b>"},
        "language_info": {"name": "x", "pygments_lexer": "html", "file_extension": "/../.py"},
        "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {"x": "<script>"}}},
        "title": "</title><script>x()</script>",
        "authors": [{"name": "<script>"}],
    }
    told |= {"nbformat": 5, "nbformat_minor": 99}
    for cell in told["cells"]:
        cell["metadata"] |= {"tags": ["remove_cell", "raises-exception"], "collapsed": True}
        cell["metadata"] |= {"jupyter": {"source_hidden": True}}
    assert as_page(json.dumps(told).encode()) == as_page(answered())


@pytest.mark.parametrize("part", [b"[],", b'{"a":1},', b'[{"":[]}],'])
def test_few_bytes_that_are_many_things_in_memory_are_not_read(part: bytes) -> None:
    """Twenty megabytes of them are half a gigabyte of lists and tables."""
    data = b'{"cells": [' + part * (19 * 2**20 // len(part)) + b"{}]}"
    memory = forget_peak()
    _, notes = restored(LESSON, data)
    assert "too many parts" in notes[0]
    assert peak() - memory < 60 << 20


def test_a_long_text_of_brackets_is_a_notebook_all_the_same() -> None:
    """Printed tensors hold many."""
    told = json.loads(answered())
    told["cells"][0]["source"] = '[[0.1, "0.2"], \\ ' * 400_000
    book, _ = restored(LESSON, json.dumps(told).encode())
    assert answers(LESSON, book) == {WRITTEN: ANSWER.decode()}


@pytest.mark.parametrize("how", ["deleted", "broken", "of another format"])
def test_an_answer_that_cannot_be_found_is_for_a_person_to_look_for(how: str) -> None:
    """It got zero points, as if nobody had written anything."""
    told = json.loads(answered())
    if how == "deleted":
        told["cells"] = [cell for cell in told["cells"] if cell["id"] != WRITTEN]
        told["cells"].append({"cell_type": "markdown", "metadata": {}, "source": ANSWER.decode()})
    data = {"deleted": json.dumps(told), "broken": "{" + json.dumps(told)}.get(how, "[]").encode()
    verdict = fake.judge({"top_k": REFERENCE}, "top_k", b"", "reference", True).lessons["top_k"]
    result = shown(LESSON, data, verdict)
    assert result.scores[WRITTEN] is None
    assert sum(score or 0.0 for score in result.scores.values()) == verdict.score
    assert "handed in" in (answers(LESSON, result.notebook)[WRITTEN] or "")
    page = as_page(data)
    assert "handed in" in page
    assert (ANSWER.decode() in page) == (how == "deleted")


def test_an_answer_that_was_left_blank_is_for_nobody() -> None:
    verdict = fake.judge({"top_k": REFERENCE}, "top_k", b"", "reference", True).lessons["top_k"]
    for data in (None, notebook()):
        assert shown(LESSON, data, verdict).scores[WRITTEN] == 0.0
