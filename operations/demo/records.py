"""What the demo reads in the product's own tables, beside what it is told over HTTP."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from operations.domain.statuses import SETTLED, Status
from operations.models import AuditEntry, Evidence, EvidenceSource, Operation
from operations.models.audit import chain_of
from operations.services.sending import holder_pid


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """An operation as it stands. `settled_by`: the kind of evidence that settled it, or ""."""

    operation_id: str
    status: Status
    reason: str
    attempts: int
    settled_by: str


def sender_of(operation_id: str) -> int | None:
    """The process that holds the lease of a send in flight, if one does."""
    operation = Operation.objects.get(pk=UUID(operation_id))
    if not operation.is_leased(datetime.now(UTC)):
        return None
    return holder_pid(operation.lease_owner)


def absence_is_recorded(operation_id: str) -> bool:
    """Whether a look-up read the payment's refunds to the end and found none of this operation."""
    return Evidence.objects.filter(
        operation_id=UUID(operation_id),
        source=EvidenceSource.LOOKUP,
        facts__result="absent",
        facts__complete=True,
    ).exists()


def states(operation_ids: Iterable[str]) -> list[State]:
    """The operations with these ids, in the order in which they were made."""
    rows = Operation.objects.filter(pk__in=[UUID(each) for each in operation_ids])
    return [
        State(
            operation_id=str(row.pk),
            status=Status(row.status),
            reason=str(row.unknown_reason),
            attempts=row.attempts_made,
            settled_by=_settled_by(row),
        )
        for row in rows.order_by("id")
    ]


def run_number(order_numbers: Sequence[str]) -> int:
    """The first number of a run under which none of these orders has been played here."""
    number = 1
    while Operation.objects.filter(
        order_id__in=[order_in_run(order, number) for order in order_numbers]
    ).exists():
        number += 1
    return number


def order_in_run(order_number: str, run: int) -> str:
    """An order's number in one run: plain in the first, with the run's number later."""
    return order_number if run == 1 else f"{order_number}-{run}"


def _settled_by(operation: Operation) -> str:
    if operation.status not in SETTLED:
        return ""
    entry = (
        AuditEntry.objects.filter(chain=chain_of(operation.pk), after__status=operation.status)
        .exclude(before__status=operation.status)
        .order_by("number")
        .last()
    )
    if entry is None or not entry.evidence_id:
        return ""
    evidence = Evidence.objects.filter(pk=entry.evidence_id).first()
    return str(evidence.source) if evidence else ""
