"""What the README says of speed is what was measured last."""

from __future__ import annotations

from tests.bench import report


def test_the_readme_tells_the_figures_of_the_last_run() -> None:
    text = report.README.read_text(encoding="utf-8")
    told = text.partition(report.BEGIN)[2].partition(report.END)[0].strip()
    assert told == report.readme(report.read())


def test_the_table_of_all_figures_is_that_of_the_last_run() -> None:
    text = (report.RESULTS / "README.md").read_text(encoding="utf-8")
    for section in report.sections(report.read()):
        assert section in text


def test_every_plot_has_its_numbers_as_text() -> None:
    text = (report.RESULTS / "README.md").read_text(encoding="utf-8")
    for figure in report.figures(report.read()):
        assert f"![{figure.alt}]" in text
        assert any(sign.isdigit() for sign in figure.alt)
