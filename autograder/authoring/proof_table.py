"""The proof of the checks as a table: on the terminal, and in CONTRIBUTING.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from ..errors import CourseError
from .proof import LessonProof

BEGIN, END = "<!-- proof: begin -->", "<!-- proof: end -->"
HEADINGS = (
    "lesson",
    "visible checks",
    "hidden checks",
    "mistakes",
    "rejected",
    "named by own hint",
    "by family",
    "variants",
    "accepted",
)
TIMES = ("visible, ms", "hidden, ms")


def row(proof: LessonProof) -> list[str]:
    """The counts of one lesson."""
    counts = (
        proof.visible,
        proof.hidden,
        proof.mistakes,
        proof.rejected,
        proof.diagnosed,
        proof.by_family,
        proof.variants,
        proof.accepted,
    )
    return [proof.lesson, *map(str, counts)]


def total(proofs: Sequence[LessonProof]) -> list[str]:
    """The sums of all lessons."""
    columns = zip(*(row(proof)[1:] for proof in proofs), strict=True)
    return ["all", *(str(sum(map(int, column))) for column in columns)]


def as_table(proofs: Sequence[LessonProof]) -> Table:
    """For the terminal, with the milliseconds that the reference took."""
    table = Table(title="Proof of the checks")
    for heading in (*HEADINGS, *TIMES):
        table.add_column(heading, justify="left" if heading == "lesson" else "right")
    for proof in proofs:
        table.add_row(*row(proof), f"{proof.visible_ms:.0f}", f"{proof.hidden_ms:.0f}")
    table.add_section()
    table.add_row(*total(proofs), *("" for _ in TIMES))
    return table


def as_markdown(proofs: Sequence[LessonProof]) -> str:
    """For CONTRIBUTING.md: counts only, since milliseconds are another machine's tomorrow."""
    lines = [
        "| " + " | ".join(HEADINGS) + " |",
        "|---|" + "---:|" * (len(HEADINGS) - 1),
        *("| " + " | ".join(row(proof)) + " |" for proof in proofs),
        "| " + " | ".join(total(proofs)) + " |",
    ]
    return "\n".join(lines)


def with_table(page: str, proofs: Sequence[LessonProof]) -> str:
    """The page with the table between its two marks.

    Raises CourseError if a mark is missing.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise CourseError(f"CONTRIBUTING.md has lost its marks {BEGIN} and {END}: put them back")
    return f"{before}{BEGIN}\n{as_markdown(proofs)}\n{END}{after}"


def stale_table(page: Path, proofs: Sequence[LessonProof]) -> bool:
    """Whether the page's table is not what the proof gives now."""
    text = page.read_text(encoding="utf-8")
    return text != with_table(text, proofs)
