"""CSV whose cells no spreadsheet takes for formulas, and the way back to the very same text.

A cell that begins like a formula gets an apostrophe in front, and so does one that begins with an
apostrophe: what `plain` takes away is always ours. The list of beginnings is OWASP's (CSV
Injection, https://owasp.org/www-community/attacks/CSV_Injection). Every cell is quoted, so that a
spreadsheet that separates at semicolons finds no cell inside of another.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from ..errors import CourseError

FORMULA = tuple("=+-@\t\r\n＝＋－＠")
GUARD = "'"


def safe(text: str) -> str:
    """`text` as a cell that is shown and never worked out."""
    # programs that trim a cell first would find the formula behind the blanks
    if text.startswith((*FORMULA, GUARD)) or text.lstrip().startswith(FORMULA):
        return GUARD + text
    return text


def plain(cell: str) -> str:
    """The text that `safe` was given."""
    return cell.removeprefix(GUARD)


def number(value: float) -> str:
    """Points to the hundredth, without zeros at the end: `7.5`."""
    # adding nothing makes a zero of a minus zero
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def write_table(rows: Iterable[Sequence[str]], *, bom: bool) -> bytes:
    """Rows as CSV in UTF-8, lines ended by CR LF (RFC 4180); cells are written as they are.

    `bom`: with the mark by which Excel tells UTF-8 from the encoding of its country.
    """
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8-sig" if bom else "utf-8")


def read_table(data: bytes) -> list[list[str]]:
    """The rows that `write_table` was given. Raises CourseError for what is no such table."""
    try:
        text = data.decode("utf-8-sig")
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"this is no CSV in UTF-8: {error}: export it again") from error
