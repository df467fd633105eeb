"""Events that match nothing, page by page, newest first, with the operations they may be about."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from operations.domain.access import Accounts
from operations.domain.orphans import EventReason
from operations.models import EventHandling, Operation, OrphanEvent, ProviderRefund
from operations.queries.access import narrowed
from operations.queries.places import beyond, place

PAGE_SIZE = 50
#: How many operations of its payment are shown beside an event.
_CANDIDATES = 20
#: A refund made this shortly before an event is what the event speaks of.
_TOLD_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class OrphanEventRow:
    """An event, why it is here, and the operations of its payment: possible, never proven."""

    event: OrphanEvent
    reason: EventReason
    candidates: tuple[Operation, ...]


def orphan_events(accounts: Accounts = None) -> QuerySet[OrphanEvent]:
    """Those that nobody answered for, that no known refund explains, and that match nothing yet.

    The provider tells of one refund in several events, so that most of them are explained by the
    refund that another one carried.
    """
    told = ProviderRefund.objects.filter(
        account=OuterRef("account_id"),
        charge=OuterRef("charge"),
        provider_created_at__lte=OuterRef("happened_at"),
        provider_created_at__gte=OuterRef("happened_at") - _TOLD_WITHIN,
    )
    matched = EventHandling.objects.filter(
        provider_event_id=OuterRef("provider_event_id"),
        event=OuterRef("event_id"),
        operation__isnull=False,
    )
    return OrphanEvent.objects.filter(
        ~Exists(told), ~Exists(matched), found_at__isnull=True, **narrowed(accounts)
    )


def orphan_event_page(
    *, query: str, after: str, accounts: Accounts = None
) -> tuple[tuple[OrphanEventRow, ...], str]:
    """Up to 50 of them, and where the next page begins ("" for none). `query` is an exact id."""
    rows = orphan_events(accounts).select_related("account")
    if query:
        rows = rows.filter(Q(provider_event_id=query) | Q(charge=query) | Q(payment_intent=query))
    found = list(beyond(rows.order_by("-seen_at", "-pk"), "seen_at", after)[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    more = len(found) > PAGE_SIZE
    return described_events(shown), place(shown[-1].seen_at, shown[-1].pk) if more else ""


def described_events(events: Sequence[OrphanEvent]) -> tuple[OrphanEventRow, ...]:
    """Each event with its reason and its candidates: one query for all of them."""
    charges = {event.charge for event in events if event.charge}
    intents = {event.payment_intent for event in events if event.payment_intent}
    by_payment: dict[tuple[int, str], list[Operation]] = defaultdict(list)
    if charges or intents:
        operations = (
            Operation.objects.filter(
                Q(payment__charge__in=charges) | Q(payment__payment_intent__in=intents)
            )
            .select_related("payment", "account")
            .order_by("created_at", "pk")
        )
        for operation in operations:
            for name in {operation.payment.charge, operation.payment.payment_intent} - {""}:
                by_payment[operation.account_id, name].append(operation)
    return tuple(_row(event, by_payment) for event in events)


def _row(event: OrphanEvent, by_payment: dict[tuple[int, str], list[Operation]]) -> OrphanEventRow:
    if event.account_id is None:
        return OrphanEventRow(event=event, reason=EventReason.NOT_OUR_ACCOUNT, candidates=())
    found: dict[object, Operation] = {}
    for name in (event.charge, event.payment_intent):
        for operation in by_payment.get((event.account_id, name), ()):
            found.setdefault(operation.pk, operation)
    return OrphanEventRow(
        event=event,
        reason=EventReason.NO_REFUND if found else EventReason.NOT_OUR_PAYMENT,
        candidates=tuple(found.values())[:_CANDIDATES],
    )


def count_orphan_events(most: int, accounts: Accounts = None) -> int:
    """How many there are, at most `most`."""
    return orphan_events(accounts).order_by()[:most].count()
