"""Refunds without an operation and totals that don't add up, page by page, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from operations.domain.access import Accounts
from operations.domain.identity import METADATA_ENVIRONMENT
from operations.domain.matching import OurMark, our_mark
from operations.domain.money import Money
from operations.domain.orphans import (
    OrphanFacts,
    OrphanReason,
    Possible,
    Weighed,
    can_be_linked,
    likelihood,
    weigh,
    why_orphan,
)
from operations.domain.statuses import Status
from operations.models import Discrepancy, MadeOutside, Operation, Payment, ProviderRefund
from operations.queries.access import narrowed
from operations.queries.figures import COUNT_CAP
from operations.queries.orphan_events import OrphanEventRow, count_orphan_events, orphan_event_page
from operations.queries.places import beyond, place

PAGE_SIZE = 50
_GONE = ("failed", "canceled")


class OrphanView(StrEnum):
    """The lists of the page."""

    PAYMENTS = "payments"
    TOTALS = "totals"
    EVENTS = "events"
    ELSEWHERE = "elsewhere"
    OUTSIDE = "outside"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An operation of the same payment. Possible, never proven."""

    operation: Operation
    hints: tuple[Weighed, ...]
    linkable: bool


@dataclass(frozen=True, kw_only=True)
class OrphanRow:
    """A refund without an operation, why it is here, and what it may belong to."""

    refund: ProviderRefund
    money: Money
    reason: OrphanReason
    names: str
    candidates: tuple[Candidate, ...]
    found: MadeOutside | None


@dataclass(frozen=True, kw_only=True)
class TotalRow:
    """A payment whose total is more than the refunds that we know."""

    discrepancy: Discrepancy
    provider_total: Money
    known_total: Money
    difference: Money
    operations: tuple[Operation, ...]


@dataclass(frozen=True, kw_only=True)
class OrphanPage:
    """Up to 50 lines, and where the next page begins ("" when there is none)."""

    refunds: tuple[OrphanRow, ...] = ()
    totals: tuple[TotalRow, ...] = ()
    events: tuple[OrphanEventRow, ...] = ()
    next_after: str = ""


def orphan_page(
    *, view: OrphanView, query: str, after: str, environment: str, accounts: Accounts = None
) -> OrphanPage:
    """The page that follows the place `after`; `query` is an exact id."""
    if view is OrphanView.TOTALS:
        return _totals(query, after, accounts)
    if view is OrphanView.EVENTS:
        events, next_after = orphan_event_page(query=query, after=after, accounts=accounts)
        return OrphanPage(events=events, next_after=next_after)
    rows = orphans(view, environment, accounts).select_related("account", "made_outside")
    if query:
        rows = rows.filter(Q(provider_object_id=query) | Q(charge=query) | Q(payment_intent=query))
    rows = rows.order_by("-first_seen_at", "-pk")
    found = list(beyond(rows, "first_seen_at", after)[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    more = len(found) > PAGE_SIZE
    return OrphanPage(
        refunds=described(shown),
        next_after=place(shown[-1].first_seen_at, shown[-1].pk) if more else "",
    )


def orphans(
    view: OrphanView, environment: str, accounts: Accounts = None
) -> QuerySet[ProviderRefund]:
    """Refunds that count and belong to no operation. Other environments' are theirs to look at."""
    rows = ProviderRefund.objects.filter(operation__isnull=True, **narrowed(accounts))
    rows = rows.exclude(status__in=_GONE)
    key = f"metadata__{METADATA_ENVIRONMENT}"
    rows = rows.filter(Q(**{f"{key}__isnull": True}) | Q(**{key: environment}))
    found = Exists(MadeOutside.objects.filter(refund=OuterRef("pk")))
    ours = Exists(_payments())
    match view:
        case OrphanView.OUTSIDE:
            return rows.filter(found)
        case OrphanView.ELSEWHERE:
            return rows.filter(~found, ~ours)
        case _:
            return rows.filter(~found, ours)


def chosen_orphans(
    *,
    view: OrphanView,
    query: str,
    environment: str,
    accounts: Accounts,
    only: Sequence[int] | None,
    most: int,
) -> list[int]:
    """Our ids of the refunds of a list that are among `only`; None: of all of it, up to `most`."""
    rows = orphans(view, environment, accounts)
    if query:
        rows = rows.filter(Q(provider_object_id=query) | Q(charge=query) | Q(payment_intent=query))
    if only is not None:
        rows = rows.filter(pk__in=only)
    return list(rows.order_by("-first_seen_at", "-pk").values_list("pk", flat=True)[:most])


def described(
    refunds: Sequence[ProviderRefund], *, also: UUID | None = None
) -> tuple[OrphanRow, ...]:
    """Each refund with its reason and its candidates: three queries for all of them.

    `also` is an operation that somebody named: it is a candidate of each, if it is of its account.
    """
    payments = Payment.objects.filter(
        Q(charge__in={row.charge for row in refunds if row.charge})
        | Q(payment_intent__in={row.payment_intent for row in refunds if row.payment_intent})
    )
    operations = list(
        Operation.objects.filter(Q(payment__in=payments) | Q(pk=also))
        .select_related("payment", "account")
        .annotate(has_refund=Exists(_counted_refunds()))
        .order_by("created_at", "pk")
    )
    known = {
        (row.account_id, name) for row in payments for name in (row.charge, row.payment_intent)
    }
    marks = {row.pk: mark for row in refunds if (mark := our_mark(row.metadata))}
    exist = set(
        Operation.objects.filter(pk__in=[mark.operation_id for mark in marks.values()])
        .values_list("pk", flat=True)
        .order_by()
    )
    return tuple(_row(row, operations, known, marks.get(row.pk), exist, also) for row in refunds)


def _row(
    refund: ProviderRefund,
    operations: Sequence[Operation],
    known: set[tuple[int, str]],
    mark: OurMark | None,
    exist: set[UUID],
    also: UUID | None,
) -> OrphanRow:
    facts = OrphanFacts(
        amount=refund.amount,
        currency=refund.currency,
        made_at=refund.provider_created_at,
        names=str(mark.operation_id) if mark else "",
    )
    names = {refund.charge, refund.payment_intent} - {""}
    mine = [
        row
        for row in operations
        if row.account_id == refund.account_id
        and (row.pk == also or names & {row.payment.charge, row.payment.payment_intent})
    ]
    candidates = [_candidate(facts, row, names) for row in mine]
    return OrphanRow(
        refund=refund,
        money=Money(refund.amount, refund.currency),
        reason=why_orphan(
            payment_is_known=any((refund.account_id, name) in known for name in names),
            names_operation=mark is not None,
            operation_exists=mark is not None and mark.operation_id in exist,
        ),
        names=facts.names,
        candidates=tuple(sorted(candidates, key=lambda row: -likelihood(row.hints))),
        found=getattr(refund, "made_outside", None),
    )


def _candidate(facts: OrphanFacts, operation: Operation, names: set[str]) -> Candidate:
    payment = operation.payment
    status = Status(operation.status)
    hints = weigh(
        facts,
        Possible(
            operation_id=str(operation.pk),
            amount=operation.amount,
            currency=operation.currency,
            status=status,
            first_sent_at=operation.first_sent_at,
            has_refund=bool(getattr(operation, "has_refund", False)),
            same_payment=bool(names & {payment.charge, payment.payment_intent}),
        ),
    )
    return Candidate(operation=operation, hints=hints, linkable=can_be_linked(status, hints))


def orphan_counts(environment: str, accounts: Accounts = None) -> dict[OrphanView, int]:
    """How many each list holds; no count goes beyond one more than the cap."""
    most = COUNT_CAP + 1
    counts = {
        view: orphans(view, environment, accounts).order_by()[:most].count()
        for view in (OrphanView.PAYMENTS, OrphanView.ELSEWHERE, OrphanView.OUTSIDE)
    }
    counts[OrphanView.EVENTS] = count_orphan_events(most, accounts)
    counts[OrphanView.TOTALS] = _open_totals(accounts)[:most].count()
    return counts


def _open_totals(accounts: Accounts) -> QuerySet[Discrepancy]:
    return Discrepancy.objects.filter(
        closed_at__isnull=True, **narrowed(accounts, "payment__account")
    )


def _totals(query: str, after: str, accounts: Accounts) -> OrphanPage:
    rows = _open_totals(accounts).select_related("payment__account")
    if query:
        rows = rows.filter(Q(payment__charge=query) | Q(payment__payment_intent=query))
    rows = rows.order_by("-opened_at", "-pk")
    found = list(beyond(rows, "opened_at", after)[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    more = len(found) > PAGE_SIZE
    operations = list(
        Operation.objects.filter(payment__in=[row.payment_id for row in shown]).order_by(
            "created_at", "pk"
        )
    )
    return OrphanPage(
        totals=tuple(
            TotalRow(
                discrepancy=row,
                provider_total=Money(row.provider_total, row.payment.currency),
                known_total=Money(row.known_total, row.payment.currency),
                difference=Money(row.difference, row.payment.currency),
                operations=tuple(op for op in operations if op.payment_id == row.payment_id),
            )
            for row in shown
        ),
        next_after=place(shown[-1].opened_at, shown[-1].pk) if more else "",
    )


def _payments() -> QuerySet[Payment]:
    """The payment of a refund, under either of its names."""
    by_charge = Q(charge=OuterRef("charge"))
    by_intent = Q(payment_intent=OuterRef("payment_intent")) & ~Q(payment_intent="")
    return Payment.objects.filter(by_charge | by_intent, account_id=OuterRef("account_id"))


def _counted_refunds() -> QuerySet[ProviderRefund]:
    return ProviderRefund.objects.filter(operation=OuterRef("pk")).exclude(status__in=_GONE)
