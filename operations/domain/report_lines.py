"""A CSV file read line by line in bounded memory, whatever stands in it.

A line that can't be read is one bad row; the ones after it are read on.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from operations.domain.answers import RefundFacts
from operations.domain.report_columns import ColumnMapping, HeaderRefused, Layout, read_header
from operations.domain.report_rows import BadRow, read_row

#: One record, with its quoted line ends, in characters: what is longer lacks a closing quote.
_LONGEST_RECORD = 65_536
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


class FileRefused(ValueError):
    """The file is no CSV that can be read at all. `str` says what to do."""


class _RecordTooLong(Exception):
    """A record does not end; the next line is taken for the beginning of another."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One record. `line` is where it begins, counted from 1; `problem` is set when it is bad."""

    line: int
    refund: RefundFacts | None
    problem: str = ""


class ReportReader:
    """The header, read at once, then the lines.

    Raises FileRefused and HeaderRefused.
    """

    def __init__(self, file: io.BufferedReader, mapping: ColumnMapping) -> None:
        self._lines = _Lines(_as_text(file))
        first = self._lines.first()
        if not first:
            raise FileRefused("The file is empty.")
        self._reader = csv.reader(self._lines, delimiter=_delimiter(first), strict=True)
        try:
            self.header = [cell.strip() for cell in next(self._reader)]
        except (csv.Error, _RecordTooLong) as error:
            raise HeaderRefused("The first line is not a list of column names.") from error
        self.layout: Layout = read_header(self.header, mapping)

    def columns(self) -> dict[str, str]:
        """Which column was taken for what, to be shown."""
        return {
            **{str(column): self.header[place] for column, place in self.layout.places.items()},
            **{f"metadata {key}": self.header[at] for key, at in self.layout.metadata.items()},
        }

    def lines(self, *, after: int = 0) -> Iterator[ReportLine]:
        """The records that begin after line `after`; empty lines are none."""
        while True:
            start = self._lines.begin_record()
            problem, cells = "", []
            try:
                cells = next(self._reader)
            except StopIteration:
                return
            except (csv.Error, _RecordTooLong):
                problem = self._unreadable(start)
            if start <= after or not (cells or problem):
                continue
            yield ReportLine(start, None, problem) if problem else self._read(start, cells)

    def _read(self, start: int, cells: list[str]) -> ReportLine:
        try:
            return ReportLine(start, read_row(cells, self.layout))
        except BadRow as error:
            return ReportLine(start, None, str(error))

    def _unreadable(self, start: int) -> str:
        last = self._lines.number
        if last > start:
            return f"Lines {start} to {last} can't be told apart: a quote is not closed."
        return "The line is not CSV: its quotes do not fit, or it is too long."


class _Lines:
    """The physical lines of a file, none longer than a record may be, and where we are."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self._pushed: str | None = None
        self.number = 0
        self._length = 0

    def first(self) -> str:
        """The first line that says anything; it is read again."""
        for line in iter(lambda: self._text.readline(_LONGEST_RECORD), ""):
            if line.strip():
                self._pushed = line
                return line
            self.number += 1
        return ""

    def begin_record(self) -> int:
        """Say that a record begins; the number of its first line."""
        self._length = 0
        return self.number + 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line, self._pushed = self._pushed or self._text.readline(_LONGEST_RECORD), None
        if not line:
            raise StopIteration
        self.number += 1
        self._length += len(line)
        if self._length < _LONGEST_RECORD:
            return line
        while line and not line.endswith(("\n", "\r")):
            line = self._text.readline(_LONGEST_RECORD)
        raise _RecordTooLong


def _as_text(file: io.BufferedReader) -> io.TextIOWrapper:
    """UTF-8 or, when a mark says so, UTF-16. Bytes that are neither spoil only their own line."""
    start = file.peek(4)[:512]
    if start.startswith((_ZIP, _OLE)):
        raise FileRefused("This is a spreadsheet or an archive. Save the report as CSV.")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return io.TextIOWrapper(file, encoding="utf-16", errors="replace", newline="")
    if b"\x00" in start[:16]:
        raise FileRefused("This is no text. Save the report as CSV in UTF-8.")
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _delimiter(first: str) -> str:
    """A comma, unless the header is split by semicolons or tabs."""
    return max(",;\t", key=first.count)
