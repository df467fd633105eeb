"""The audit trail of everything, newest first: found by who, what, when and operation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from operations.domain.csv_lines import Cell
from operations.models import AuditEntry

PAGE = 50
#: The most lines of a file that is taken out.
MOST_LINES = 100_000
HEADER = (
    *("number", "at", "chain", "actor_kind", "actor_id", "actor_name", "actor_address"),
    *("action", "reason", "evidence", "entry_hash"),
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is looked for; empty fields narrow nothing. Days in the reader's zone, both included."""

    who: str = ""
    action: str = ""
    operation: UUID | None = None
    first: date | None = None
    last: date | None = None


def entries(wanted: Wanted, *, zone: ZoneInfo) -> QuerySet[AuditEntry]:
    """Those that fit, newest first."""
    found = AuditEntry.objects.order_by("-pk")
    if wanted.who:
        found = found.filter(actor_name__icontains=wanted.who)
    if wanted.action:
        found = found.filter(action=wanted.action)
    if wanted.operation is not None:
        found = found.filter(chain=str(wanted.operation))
    if wanted.first is not None:
        found = found.filter(at__gte=_midnight(wanted.first, zone))
    # There is no day after the last one that can be named.
    if wanted.last is not None and wanted.last < date.max:
        found = found.filter(at__lt=_midnight(wanted.last + timedelta(days=1), zone))
    return found


def page_of(
    wanted: Wanted, *, zone: ZoneInfo, after: int = 0
) -> tuple[list[AuditEntry], int | None]:
    """One page, below the entry with the id `after` if there is one; and where the next begins."""
    found = entries(wanted, zone=zone)
    rows = list(found.filter(pk__lt=after)[: PAGE + 1] if after else found[: PAGE + 1])
    return rows[:PAGE], rows[PAGE - 1].pk if len(rows) > PAGE else None


def lines(found: Iterable[AuditEntry]) -> Iterator[Iterable[Cell]]:
    """The lines of a file, its header first."""
    yield HEADER
    for row in found:
        yield (
            *(row.number, row.at, row.chain, row.actor_kind, row.actor_id, row.actor_name),
            *(row.actor_address, row.action, row.reason, row.evidence_id, row.entry_hash),
        )


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, zone)
