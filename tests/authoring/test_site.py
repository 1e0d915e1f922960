"""The static site: every lesson, no dead link, nothing fetched, nothing given away."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from autograder.authoring.layout import ROOT, lessons
from autograder.authoring.site import build_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "html"
    build_site(folder)
    return folder


def pages(site: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in site.glob("*.html")}


def test_every_lesson_is_a_page_and_is_listed(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    for lesson in lessons():
        assert (site / f"{lesson.slug}.html").is_file()
        assert f'href="{lesson.slug}.html"' in index


def test_no_link_inside_is_dead(site: Path) -> None:
    for name, text in pages(site).items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            target = unquote(unescape(link)).partition("#")[0].partition("?")[0]
            if not target or re.match(r"[a-z]+:", target):
                continue
            assert (site / target).exists(), f"{name} links to {link}"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for name, text in pages(site).items():
        assert not re.search(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', text), name
        assert not re.search(r'<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//', text), name


def test_a_word_of_a_lesson_can_be_searched(site: Path) -> None:
    assert "nucleus" in (site / "searchindex.js").read_text(encoding="utf-8")


def test_every_picture_has_an_alt_text(site: Path) -> None:
    for name, text in pages(site).items():
        for picture in re.findall(r"<img[^>]*>", text):
            assert re.search(r'alt="[^"]{20,}"', picture), (name, picture[:120])


def test_a_formula_is_drawn_and_labelled(site: Path) -> None:
    text = (site / "02_temperature.html").read_text(encoding="utf-8")
    assert re.search(r'<svg role="img" aria-label="H = [^"]*log', text)


def test_no_model_answer_is_in_it(site: Path) -> None:
    everything = " ".join(
        path.read_text(encoding="utf-8") for path in site.rglob("*") if path.suffix in SHOWN
    )
    for lesson in lessons():
        for cell in nbformat.read(lesson.notebook, as_version=4).cells:
            if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("solution"):
                assert cell.source[:60] not in everything


SHOWN = {".html", ".js", ".txt", ".ipynb", ".md"}


def test_a_second_build_takes_the_place_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "old.html").write_text("old", encoding="utf-8")
    build_site(folder, ROOT)
    assert not (folder / "old.html").exists()
