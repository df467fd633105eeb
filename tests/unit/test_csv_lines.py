"""What a spreadsheet gets: no cell of it is run, and no CSV file is written past that."""

import ast
import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.domain.csv_lines import csv_lines, harmless

ROOT = Path(__file__).parents[2]
#: The one module that may write lines, and the one that may send them.
WRITES = "operations/domain/csv_lines.py"
SENDS = "operations/console/downloads.py"


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t1", "\r1", "\n1"),
        *("＝1", "＋1", "－1", "＠A1", "﹢1", "﹣1", "﹫A1", "−1", "⁺1", "₌1"),  # noqa: RUF001
        *(" =1", "\u00a0=1", "\ufeff=1", "\u200b\u202e=1", "\u3000+1", "\x0b=1"),
        "=cmd|' /C calc'!A0",
    ],
)
def test_text_that_a_spreadsheet_would_run_is_written_as_text(text: str) -> None:
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", " ", "re_1", "a=b", "12.50", "Größe", "'=1", "\u200b"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text


def test_numbers_stay_numbers() -> None:
    lines = list(csv_lines([["-5", -5, Decimal("-12.50"), Decimal("1E+3"), None]]))
    assert lines == ["\ufeff", "'-5,-5,-12.50,1000,\r\n"]


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\0")), min_size=1)))
def test_a_file_reads_as_it_was_written_and_no_cell_begins_a_formula(rows: list[list[str]]) -> None:
    text = "".join(csv_lines(rows)).removeprefix("\ufeff")
    read = list(csv.reader(io.StringIO(text, newline="")))

    assert read == [[harmless(cell) for cell in row] for row in rows]
    flat = [cell for row in read for cell in row]
    assert not [cell for cell in flat if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]


def test_every_csv_file_is_written_by_the_one_module() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line} {what}"
        for folder in ("operations", "reconcile")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, what in _writes_of_csv(ast.parse(path.read_text()))
        if str(path.relative_to(ROOT)) not in (WRITES, SENDS)
    }
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "import csv\ncsv.writer(file)",
        "import csv as sheet\nsheet.DictWriter(file)",
        "from csv import writer as w\nw(file)",
        "writer.writerow(cells)",
        "HttpResponse(text, content_type='text/csv')",
        "HttpResponse(text, content_type=f'text/csv; charset={x}')",
        "open('operations.csv', 'w')",
    ],
)
def test_one_that_writes_past_it_is_found(source: str) -> None:
    assert list(_writes_of_csv(ast.parse(source)))


def _writes_of_csv(tree: ast.AST) -> list[tuple[int, str]]:
    """Where a tree uses the writers of `csv`, or names a CSV file's type or a file to write."""
    writers = {"writer", "DictWriter"}
    modules = {
        item.asname or item.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for item in node.names
        if item.name == "csv"
    }
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="csv", names=names) if writers & {n.name for n in names}:
                found.append((node.lineno, "imports a writer"))
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if (
                name in modules and attr in writers
            ):
                found.append((node.lineno, "makes a writer"))
            case ast.Attribute(attr="writerow" | "writerows"):
                found.append((node.lineno, "writes a row"))
            case ast.Constant(value=str(text)) if text.startswith("text/csv"):
                found.append((node.lineno, "names the type"))
            case ast.Call(func=ast.Name(id="open"), args=[ast.Constant(value=str(text)), *_]) if (
                text.endswith(".csv")
            ):
                found.append((node.lineno, "opens a file"))
    return found
