"""What we know of the refunds that a report speaks of, and what became of its lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count
from psycopg.types.numeric import Int8

from operations.domain.answers import RefundFacts
from operations.domain.csv_lines import Cell
from operations.domain.matching import RefundTerms, our_mark
from operations.domain.money import Money
from operations.domain.report_preview import Claimed, Preview, preview
from operations.domain.statuses import Status
from operations.models import Account, statements
from operations.models.report_file import ReportFile, ReportRow, RowResult

#: How many lines a page shows.
PAGE = 50


@dataclass(frozen=True, slots=True)
class Stored:
    """A refund that we have seen. `is_borne_out`: it is an operation's, and the provider itself
    told us of it."""

    status: str
    operation_id: UUID | None
    is_borne_out: bool


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What importing one line would do, and the operation it speaks of."""

    preview: Preview
    operation_id: UUID | None


def foresee(
    account: Account, refunds: Sequence[RefundFacts], *, environment: str
) -> list[Foreseen]:
    """For each refund what importing it would do now. Two queries, however many they are."""
    stored = stored_refunds(account, refunds)
    meant = [_meant(refund, stored, environment) for refund in refunds]
    claimed = _claimed({operation_id for operation_id in meant if operation_id})
    found = []
    for refund, operation_id in zip(refunds, meant, strict=True):
        known = claimed.get(operation_id) if operation_id else None
        kept = stored.get(refund.id)
        told = _elsewhere(known, account) or preview(
            refund,
            stored_status=kept.status if kept else None,
            is_borne_out=kept is not None and kept.is_borne_out,
            claimed=known,
        )
        found.append(Foreseen(told, operation_id if known else None))
    return found


def _meant(refund: RefundFacts, stored: dict[str, Stored], environment: str) -> UUID | None:
    kept = stored.get(refund.id)
    if kept is not None and kept.operation_id is not None:
        return kept.operation_id
    mark = our_mark(refund.metadata)
    return mark.operation_id if mark and mark.environment == environment else None


def _elsewhere(known: Claimed | None, account: Account) -> Preview | None:
    """A refund of one account that names another account's operation."""
    if known is None or known.terms.account == account.provider_account:
        return None
    return Preview.CONTRADICTS


def stored_refunds(account: Account, refunds: Iterable[RefundFacts]) -> dict[str, Stored]:
    """What we know of those of these refunds that we have seen, by their ids."""
    ids = list({refund.id for refund in refunds})
    rows = statements.run(_STORED_SQL, [Int8(account.pk), ids])
    return {refund_id: Stored(*kept) for refund_id, *kept in rows}


def _claimed(ids: set[UUID]) -> dict[UUID, Claimed]:
    rows = statements.run(_CLAIMED_SQL, [list(ids)]) if ids else []
    return {
        row[0]: Claimed(
            terms=RefundTerms(
                operation_id=str(row[0]),
                environment=row[1],
                amount=row[2],
                currency=row[3],
                charge=row[4],
                payment_intent=row[5],
                account=row[6],
                livemode=row[7],
            ),
            status=Status(row[8]),
            provider_object_id=row[9],
            provider_status=row[10],
        )
        for row in rows
    }


# One array each, because thousands of separate values cost more than all the rest of a batch.
_STORED_SQL = """
SELECT seen.provider_object_id, seen.status, seen.operation_id,
    seen.operation_id IS NOT NULL AND EXISTS (
    SELECT FROM operations_refundreport AS report
    WHERE report.refund_id = seen.id AND report.source IN ('answer', 'webhook', 'lookup'))
FROM operations_providerrefund AS seen
WHERE seen.account_id = $1 AND seen.provider_object_id = ANY($2::text[])
"""
_CLAIMED_SQL = """
SELECT operation.id, operation.environment, operation.amount, operation.currency, payment.charge,
    payment.payment_intent, account.provider_account, account.livemode, operation.status,
    operation.provider_object_id, operation.provider_status
FROM operations_operation AS operation
JOIN operations_payment AS payment ON payment.id = operation.payment_id
JOIN operations_account AS account ON account.id = operation.account_id
WHERE operation.id = ANY($1::uuid[])
"""


def count_results(report: ReportFile) -> dict[str, int]:
    """How many lines had which result, waiting ones aside."""
    rows = report.lines.exclude(result=RowResult.WAITING).values_list("result")
    return dict(rows.annotate(Count("pk")))


RESULT_HEADER = (
    *("line", "refund", "charge", "payment_intent", "amount", "currency", "status"),
    *("foreseen", "result", "reason", "operation"),
)


def result_lines(report: ReportFile) -> Iterator[list[Cell]]:
    """Every line with its result as cells for a CSV file, read from the database as they go."""
    rows = report.lines.order_by("line").values_list(
        *("line", "refund_id", "charge", "payment_intent", "amount", "currency", "status"),
        *("preview", "result", "problem", "operation_id"),
    )
    yield list(RESULT_HEADER)
    for row in rows.iterator(chunk_size=2_000):
        line, refund, charge, intent, amount, currency, status, *rest, operation_id = row
        written = Money(amount, currency).major() if amount is not None else None
        yield [line, refund, charge, intent, written, currency, status, *rest, operation_id]


def lines_to_show(report: ReportFile, *, kind: str, after: int) -> list[ReportRow]:
    """One page of lines, and one more if there are more: all, or those foreseen as `kind`."""
    rows = report.lines.filter(line__gt=after)
    if kind in set(Preview):
        rows = rows.filter(preview=kind)
    return list(rows.order_by("line")[: PAGE + 1])
