"""Reading a report: its lines are parsed, staged in the database and previewed, piece by piece.

A batch of lines and how far the reading is are committed together, so that whoever goes on after
a crash begins where the last batch ended.
"""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import islice

from django.db import connection, transaction
from django.db.models import Q

from operations.domain.report_columns import HeaderRefused, read_mapping
from operations.domain.report_lines import FileRefused, ReportLine, ReportReader
from operations.domain.report_preview import Preview
from operations.models.report_file import ReportFile, ReportState, RowResult
from operations.providers.storable import storable_text
from operations.queries.reports import foresee
from operations.services.engine import Engine

MOST_ROWS = 1_000_000
_BATCH = 2_000
#: How long a batch may take before somebody else goes on, in seconds.
LEASE_S = 120


class _Overtaken(Exception):
    """Somebody else has read on meanwhile."""


def claim_report(*, engine: Engine, report_id: int, state: ReportState) -> ReportFile | None:
    """Take a report for a while, unless somebody has it or it is not in this state."""
    now = engine.clock()
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=now)
    rows = ReportFile.objects.filter(free, pk=report_id, state=state)
    if not rows.update(claimed_until=now + timedelta(seconds=LEASE_S)):
        return None
    return ReportFile.objects.select_related("account").get(pk=report_id)


def read_report(
    *,
    engine: Engine,
    report_id: int,
    is_over: Callable[[], bool],
    say: Callable[[ReportFile], None] = lambda report: None,
) -> bool:
    """Read on until the end, or until `is_over` after a batch. True when there is more to read.

    `say` is told after each batch how far it is. Harmless when run by two at once.
    """
    report = claim_report(engine=engine, report_id=report_id, state=ReportState.READING)
    if report is None:
        return False
    pieces = _Pieces(report)
    try:
        reader = ReportReader(io.BufferedReader(pieces, 2**18), read_mapping(report.mapping))
        report.columns = {
            name[:80]: text[:80] for name, text in sorted(reader.columns().items())[:60]
        }
        lines = reader.lines(after=report.read_to_line)
        while batch := list(islice(lines, _BATCH)):
            if report.rows + len(batch) > MOST_ROWS:
                raise FileRefused(f"The file has more than {MOST_ROWS:,} lines. Split it.")
            report = _stage(engine, report, batch, pieces.delivered)
            say(report)
            if is_over():
                ReportFile.objects.filter(pk=report.pk).update(claimed_until=None)
                return True
        if not report.rows:
            raise FileRefused("The file has a first line and nothing after it.")
        _finish(engine, report)
    except (HeaderRefused, FileRefused) as error:
        _refuse(engine, report, str(error))
    except _Overtaken:
        return False
    return False


class _Pieces(io.RawIOBase):
    """The bytes of a file, one piece of it in memory. `delivered`: how many were read."""

    def __init__(self, report: ReportFile) -> None:
        self._report = report
        self._number = 0
        self._rest = memoryview(b"")
        self.delivered = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        if not self._rest:
            found = self._report.pieces.filter(number=self._number).values_list("data", flat=True)
            self._rest = memoryview(bytes(found.first() or b""))
            self._number += 1
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        self.delivered += len(taken)
        return len(taken)


@transaction.atomic
def _stage(
    engine: Engine, report: ReportFile, batch: Sequence[ReportLine], delivered: int
) -> ReportFile:
    now = engine.clock()
    current = ReportFile.objects.select_for_update(no_key=True, of=("self",))
    row = current.select_related("account").get(pk=report.pk)
    if row.state != ReportState.READING or row.read_to_line != report.read_to_line:
        raise _Overtaken
    previewed = dict(row.previewed)
    # Made before the copying begins: nothing else can be asked on the connection meanwhile.
    _copy(list(_staged(engine, row, batch, previewed)))
    row.columns = report.columns
    row.previewed = previewed
    row.rows += len(batch)
    row.read_to_line = batch[-1].line
    row.read_bytes = min(delivered, row.size_bytes)
    row.claimed_until = now + timedelta(seconds=LEASE_S)
    row.save(
        update_fields=[
            *("columns", "previewed", "rows", "read_to_line", "read_bytes", "claimed_until")
        ]
    )
    return row


def _staged(
    engine: Engine, report: ReportFile, batch: Sequence[ReportLine], previewed: dict[str, int]
) -> Iterator[tuple[object, ...]]:
    refunds = [line.refund for line in batch if line.refund]
    foreseen = iter(foresee(report.account, refunds, environment=engine.environment))
    for line in batch:
        refund = line.refund
        kind = next(foreseen).preview if refund else Preview.BAD
        previewed[kind] = previewed.get(kind, 0) + 1
        if refund is None:
            problem = storable_text(line.problem)[:500]
            yield (
                *(report.pk, line.line, "", "", "", None, "", "", 0, "", "{}"),
                *(Preview.BAD, problem, RowResult.BAD),
            )
        else:
            yield (
                *(report.pk, line.line, refund.id, refund.charge, refund.payment_intent),
                *(refund.amount, refund.currency, refund.status, refund.created),
                *(refund.failure_reason, json.dumps(dict(refund.metadata))),
                *(kind, "", RowResult.WAITING),
            )


_COPY = """
COPY operations_reportrow (report_id, line, refund_id, charge, payment_intent, amount, currency,
    status, created, failure_reason, metadata, preview, problem, result) FROM STDIN
"""


def _copy(rows: Sequence[tuple[object, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for row in rows:
            copy.write_row(row)


@transaction.atomic
def _finish(engine: Engine, report: ReportFile) -> None:
    """The file is read; its bytes have served."""
    rows = ReportFile.objects.filter(pk=report.pk, state=ReportState.READING)
    rows.update(
        state=ReportState.READ,
        read_at=engine.clock(),
        read_bytes=report.size_bytes,
        claimed_until=None,
    )
    report.pieces.all().delete()


@transaction.atomic
def _refuse(engine: Engine, report: ReportFile, problem: str) -> None:
    rows = ReportFile.objects.filter(pk=report.pk, state=ReportState.READING)
    rows.update(
        state=ReportState.REFUSED,
        problem=storable_text(problem)[:500],
        read_at=engine.clock(),
        claimed_until=None,
    )
    report.pieces.all().delete()
