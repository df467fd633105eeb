"""Lines of a CSV file that a spreadsheet will open. The only place that writes any.

What was not written by us stands in them (a provider's texts, a person's note), and a spreadsheet
runs a cell that begins like a formula.
"""

import csv
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from uuid import UUID

#: A value of a cell. Numbers are written as they are, so that a spreadsheet can add them up.
Cell = str | int | Decimal | UUID | datetime | None

#: So that spreadsheets take the file for UTF-8.
_MARK = "\ufeff"
_FORMULA = ("=", "+", "-", "@")
_CUT = ("\t", "\r", "\n")


def harmless(text: str) -> str:
    """The text as a cell that no spreadsheet runs (OWASP, "CSV Injection").

    Judged by what a spreadsheet may see first: wide forms as their plain ones, without the blanks
    and the characters that can't be seen before it.
    """
    first = next((char for char in text if not _is_overlooked(char)), "")
    plain = unicodedata.normalize("NFKC", first)
    # U+2212 is the minus sign of typeset text; it has no plain form.
    is_formula = plain.startswith(_FORMULA) or first == "\u2212"
    return f"'{text}" if is_formula or text.startswith(_CUT) else text


def csv_lines(rows: Iterable[Iterable[Cell]]) -> Iterator[str]:
    """A whole file, line by line: a byte order mark, then a line for each row."""
    writer = csv.writer(_Echo())
    yield _MARK
    for cells in rows:
        yield writer.writerow([_written(cell) for cell in cells])


def _written(cell: Cell) -> str:
    if isinstance(cell, str):
        return harmless(cell)
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, Decimal):
        return f"{cell:f}"
    return "" if cell is None else str(cell)


def _is_overlooked(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf", "Zs")


class _Echo:
    def write(self, text: str) -> str:
        return text
