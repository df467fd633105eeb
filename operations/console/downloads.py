"""Files that people take away from the console."""

from collections.abc import Iterable
from typing import cast

from django.http import HttpResponse, StreamingHttpResponse

from operations.domain.csv_lines import Cell, csv_lines


def csv_download(rows: Iterable[Iterable[Cell]], *, name: str) -> HttpResponse:
    """A CSV file of this name, sent while its rows are made. Text that looks like a formula is
    written so that no spreadsheet runs it.
    """
    response = StreamingHttpResponse(csv_lines(rows), content_type="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "no-store"
    # The two classes of Django have only their base in common.
    return cast("HttpResponse", response)
