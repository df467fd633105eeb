"""What acting on many operations rests on, and how far a run is."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from psycopg.types.numeric import Int8

from operations.domain.access import Accounts
from operations.domain.bulk import Outlook, Standing
from operations.domain.closure import Absence, SecondPersonReason
from operations.domain.csv_lines import Cell
from operations.domain.money import Money
from operations.domain.refund_state import RefundStatus, counts_as_refunded
from operations.domain.statuses import Status
from operations.models import BulkResult, BulkRow, BulkRun, BulkState, MadeOutside
from operations.models.bulk import NOT_DONE
from operations.models.statements import run as run_sql

#: How many rows a page shows, and how many runs the list.
PAGE = 50
LISTED = 50


class Stood(NamedTuple):
    """An operation as it stands now, with what identifies the view of it."""

    id: UUID
    revision: int
    account_id: int
    standing: Standing


def stand(ids: Sequence[UUID], *, person: str, now: datetime) -> list[Stood]:
    """How these operations stand for `person`, in their order. One query."""
    return [_stood(row) for row in run_sql(_STAND, [list(ids), now, person])]


def is_large(run: BulkRun) -> bool:
    """Whether one person may not do it alone: as a whole, or one of its amounts."""
    return bool(run.reasons) or run.lines.filter(why__contains=[SecondPersonReason.AMOUNT]).exists()


_OVER = ", ".join(f"'{status}'" for status in RefundStatus if not counts_as_refunded(status))
# An operation's own refund is the one that it names, or the only one that belongs to it.
_STAND = f"""
SELECT o.id, o.revision, o.account_id, o.status, o.amount, o.currency,
       cardinality(o.attention) > 0, o.last_sent_at, coalesce(claim.holder_name, ''),
       EXISTS (SELECT FROM operations_proposal AS proposal
               WHERE proposal.operation_id = o.id AND proposal.state = 'waiting'),
       coalesce(kept.is_live, false),
       CASE WHEN o.provider_object_id <> '' THEN o.provider_object_id
            WHEN kept.number = 1 THEN kept.refund ELSE '' END,
       looked.observed_at, looked.result, looked.is_complete, looked.is_explained
FROM unnest($1::uuid[]) WITH ORDINALITY AS asked (id, place)
JOIN operations_operation AS o ON o.id = asked.id
LEFT JOIN operations_claim AS claim
    ON claim.operation_id = o.id AND claim.expires_at > $2 AND claim.holder <> $3
LEFT JOIN LATERAL (
    SELECT count(*) AS number, min(refund.provider_object_id) AS refund,
           bool_or(refund.status NOT IN ({_OVER})) AS is_live
    FROM operations_providerrefund AS refund WHERE refund.operation_id = o.id
) AS kept ON TRUE
LEFT JOIN LATERAL (
    SELECT evidence.observed_at, evidence.facts ->> 'result' AS result,
           evidence.facts -> 'complete' = 'true' AS is_complete,
           evidence.facts -> 'total_explained' IS DISTINCT FROM 'false' AS is_explained
    FROM operations_evidence AS evidence
    WHERE evidence.operation_id = o.id AND evidence.source = 'lookup'
    ORDER BY evidence.recorded_at DESC LIMIT 1
) AS looked ON TRUE
ORDER BY asked.place
"""  # noqa: S608 - constants


def _stood(row: Sequence[Any]) -> Stood:
    pk, revision, account_id, status, amount, currency, is_flagged, last_sent_at, *rest = row
    holder, proposal_waits, is_live, refund, looked_at, result, is_complete, is_explained = rest
    absence = None
    if result in ("absent", "incomplete"):
        absence = Absence(
            looked_at=looked_at,
            complete=is_complete is True,
            explained=is_explained,
            # From the last send there is, which may be later than the look-up.
            seconds_after_send=(looked_at - last_sent_at).total_seconds() if last_sent_at else None,
        )
    return Stood(
        pk,
        revision,
        account_id,
        Standing(
            status=Status(status),
            money=Money(amount, currency),
            is_flagged=is_flagged,
            has_live_refund=is_live,
            refund=refund,
            holder=holder,
            proposal_waits=proposal_waits,
            absence=absence,
        ),
    )


def moved_since(run: BulkRun) -> list[BulkRow]:
    """The rows that the run acts on whose operation has changed since the preview."""
    acts = run.lines.exclude(outlook=Outlook.CANNOT).exclude(revision=F("operation__revision"))
    return list(acts.select_related("operation").order_by("place"))


def orphans_moved_since(run: BulkRun) -> list[BulkRow]:
    """The same of refunds: another status, an operation, or somebody's finding."""
    found = Exists(MadeOutside.objects.filter(refund=OuterRef("orphan")))
    moved = Q(orphan__operation__isnull=False) | ~Q(seen=F("orphan__status")) | found
    acts = run.lines.exclude(outlook=Outlook.CANNOT).filter(moved)
    return list(acts.order_by("place"))


def accounts_of(run: BulkRun) -> set[int]:
    """The accounts of what the run acts on."""
    rows = run.lines.exclude(outlook=Outlook.CANNOT).order_by()
    return set(rows.values_list("operation__account", flat=True).distinct())


class Results(NamedTuple):
    """How many rows have which result; "" for those that wait."""

    counts: dict[str, int]
    waiting: int
    done: int
    not_done: int


def results_of(run: BulkRun) -> Results:
    """How far a run is. One query."""
    counts = dict(run.lines.values_list("result").annotate(Count("pk")))
    waiting = counts.get("", 0)
    left = counts.get(BulkResult.LEFT, 0)
    not_done = sum(counts.get(result, 0) for result in NOT_DONE)
    return Results(counts, waiting, sum(counts.values()) - waiting - left, not_done)


def rows_to_show(run: BulkRun, *, show: str, after: int, most: int = PAGE) -> list[BulkRow]:
    """Rows in their order and one more if there are more: of an outlook, of a result, or all."""
    rows = run.lines.filter(place__gt=after).select_related("operation__account", "orphan__account")
    if show in set(Outlook):
        rows = rows.filter(outlook=show)
    elif show in BulkResult.values and show:
        rows = rows.filter(result=show)
    return list(rows.order_by("place")[: most + 1])


def runs_of(accounts: Accounts) -> QuerySet[BulkRun]:
    """The runs that hold operations and refunds of these accounts alone."""
    if accounts is None:
        return BulkRun.objects.all()
    # Named by what a row is of: of the other one there is nothing that could be compared.
    theirs = Q(operation__isnull=False) & ~Q(operation__account__in=accounts)
    theirs |= Q(orphan__isnull=False) & ~Q(orphan__account__in=accounts)
    others = BulkRow.objects.filter(theirs, run=OuterRef("pk"))
    return BulkRun.objects.filter(~Exists(others))


def runs_to_show(accounts: Accounts) -> list[BulkRun]:
    """The newest runs that were started, newest first. One query."""
    return list(runs_of(accounts).exclude(state=BulkState.PREVIEWED).order_by("-pk")[:LISTED])


def runs_that_wait(accounts: Accounts) -> int:
    """How many runs wait for a second person."""
    return runs_of(accounts).filter(state=BulkState.WAITING).count()


RESULT_HEADER = (
    *("row", "operation", "order", "reference", "account", "amount", "currency"),
    *("foreseen", "why", "result", "detail", "status_then", "decided_at"),
)


def result_lines(run: BulkRun) -> Iterator[list[Cell]]:
    """Every row with its result as cells for a CSV file, read from the database as they go."""
    rows = run.lines.order_by("place").values_list(
        *("place", "operation_id", "operation__order_id", "operation__reference"),
        *("operation__account__name", "orphan__account__name", "orphan__provider_object_id"),
        *("amount", "currency", "outlook", "why", "result", "detail", "left_as", "decided_at"),
    )
    yield list(RESULT_HEADER)
    for row in rows.iterator(chunk_size=2_000):
        place, operation, order, reference, account, orphans, orphan, amount, currency, *rest = row
        outlook, why, *result = rest
        money = Money(amount, currency).major()
        named = [place, operation or orphan, order, reference, account or orphans, money, currency]
        yield [*named, outlook, " ".join(why), *result]


EXPORT_HEADER = (
    *("operation", "order", "reference", "account", "amount", "currency", "status", "reason"),
    *("flags", "refund", "asked_at", "needs_person_since"),
)


def export_lines(ids: Sequence[UUID]) -> list[list[Cell]]:
    """These operations as cells for a CSV file, in their order. One query."""
    lines: list[list[Cell]] = [list(EXPORT_HEADER)]
    for row in run_sql(_EXPORT, [list(ids)]):
        pk, order, reference, account, amount, currency, *rest = row
        lines.append(
            [pk, order, reference, account, Money(amount, currency).major(), currency, *rest]
        )
    return lines


_EXPORT = """
SELECT o.id, o.order_id, o.reference, account.name, o.amount, o.currency, o.status,
       o.unknown_reason, array_to_string(o.attention, ' '), o.provider_object_id, o.created_at,
       o.needs_person_since
FROM unnest($1::uuid[]) WITH ORDINALITY AS asked (id, place)
JOIN operations_operation AS o ON o.id = asked.id
JOIN operations_account AS account ON account.id = o.account_id
ORDER BY asked.place
"""


def lines_waiting(run_id: int, most: int) -> list[int]:
    """The next rows that wait, by their ids."""
    found = run_sql(_WAITING, [Int8(run_id), Int8(most)])
    return [pk for (pk,) in found]


_WAITING = """
SELECT id FROM operations_bulkrow WHERE run_id = $1 AND result = '' ORDER BY place LIMIT $2
"""
