"""The ground that events are matched on: read and locked for all events of a transaction at once.

Locked in one order by everybody: payments, then operations, then the provider's refunds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from operations.domain.answers import RefundFacts
from operations.domain.events import EventFacts, facts_from_json
from operations.domain.matching import Comparison, our_mark, place_differences
from operations.domain.statuses import Status
from operations.models import (
    Account,
    EvidenceSource,
    InboxItem,
    Operation,
    Payment,
    ProviderRefund,
    collecting,
)
from operations.models.statements import run
from operations.queries.locked import lock_and_read_all
from operations.services.actors import webhook_actor
from operations.services.believing import is_proven
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.seeing import as_shown, see_all


@dataclass(frozen=True, slots=True)
class Told:
    """One event that is being handled. `said`: what was learned of its refunds, by their ids."""

    item: InboxItem
    facts: EventFacts
    said: dict[str, Learned] = field(default_factory=dict)

    def learned_of(self, refund: RefundFacts) -> Learned:
        """What it says of one of its refunds."""
        learned = self.said.get(refund.id)
        if learned is None:
            text = f"refund {refund.id} is {refund.status}."
            learned = self.said[refund.id] = self.learned(text, {"refund": refund.id})
        return learned

    def learned(self, summary: str, about: Mapping[str, str]) -> Learned:
        """What it says, with the ids that it says it of."""
        facts, item = self.facts, self.item
        return Learned(
            source=EvidenceSource.WEBHOOK,
            summary=f"{facts.type}: {summary}",
            actor=webhook_actor(facts.id),
            observed_at=(
                datetime.fromtimestamp(facts.created, UTC) if facts.created else item.received_at
            ),
            event_pk=item.event_id,
            facts={"event_id": facts.id, "type": facts.type, **about},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What is known while events are matched. The operations and refunds in it are locked."""

    engine: Engine
    now: datetime
    events: list[Told]
    accounts: dict[str, Account]
    collected: collecting.Collected
    by_key: dict[str, UUID] = field(default_factory=dict)
    doubts: dict[tuple[str, str], UUID] = field(default_factory=dict)

    def in_doubt_on(self, event: Told) -> UUID | None:
        """An unknown operation on the payment that an event without refunds is about."""
        return self.doubts.get((event.item.event_account, event.facts.charge))

    def is_of_another_mode(self, event: Told) -> bool:
        """Whether the event is about live payments and this is a test installation, or so."""
        return event.facts.livemode is not None and event.facts.livemode != self.engine.livemode

    def account_of(self, event: Told) -> Account | None:
        """The account that the event came from, in our mode."""
        return self.accounts.get(event.item.event_account)

    def operation(self, operation_id: UUID | None) -> Operation | None:
        """The operation, if there is one with this id."""
        return self.collected.locked.get(operation_id) if operation_id else None

    def operation_of(self, event: Told, refund: RefundFacts) -> UUID | None:
        """The id of the operation that a refund is proven to speak of. There may be no such row."""
        account = self.account_of(event)
        seen = self.collected.refunds.get((account.pk, refund.id)) if account else None
        if seen is not None and seen.operation_id is not None:
            found: UUID = seen.operation_id
            return found
        return self.claimed_by(event, refund)

    def claimed_by(self, event: Told, refund: RefundFacts) -> UUID | None:
        """The operation that the refund's metadata or the event's call names."""
        mark = our_mark(refund.metadata)
        if mark is not None:
            return mark.operation_id if mark.environment == self.engine.environment else None
        return self.operation_with_key(event) if len(event.facts.refunds) == 1 else None

    def operation_with_key(self, event: Told) -> UUID | None:
        """The operation whose key the call carried that caused the event."""
        return self.by_key.get(event.facts.request_key)

    def misplacement(self, event: Told, operation: Operation) -> tuple[Comparison, ...]:
        """What differs when the event comes from another account or mode than the operation."""
        livemode = event.facts.livemode
        return place_differences(
            operation.terms(),
            account=event.item.event_account,
            livemode=operation.account.livemode if livemode is None else livemode,
        )

    def names_the_payment(self, event: Told, operation: Operation) -> bool:
        """Whether the event is about the operation's payment, at its account."""
        facts, payment = event.facts, operation.payment
        is_named = facts.charge == payment.charge or (
            bool(facts.payment_intent) and facts.payment_intent == payment.payment_intent
        )
        return is_named and event.item.event_account == operation.account.provider_account

    def touched_by(self, event: Told) -> set[object]:
        """The operations and the refunds that the event speaks of."""
        refunds = event.facts.refunds
        touched: set[object] = {(event.item.event_account, refund.id) for refund in refunds}
        touched |= {self.operation_of(event, refund) for refund in refunds}
        if not refunds:
            touched |= {self.operation_with_key(event), self.in_doubt_on(event)}
        return touched - {None}

    def is_being_written(self, touched: set[object]) -> bool:
        """Whether a change of one of these operations waits to be sent."""
        locked = self.collected.locked
        return any(
            collecting.is_planned(locked[one])
            for one in touched
            if isinstance(one, UUID) and one in locked
        )

    def first_reports(self) -> Iterator[ProviderRefund]:
        """Each refund that the events speak of, as its first report shows it."""
        seen: set[tuple[int, str]] = set()
        for event in self.events:
            account = self.account_of(event)
            if account is None or not event.facts.about_refunds or self.is_of_another_mode(event):
                continue
            for refund in event.facts.refunds:
                if (account.pk, refund.id) in seen:
                    continue
                seen.add((account.pk, refund.id))
                learned = event.learned_of(refund)
                operation = self.operation(self.claimed_by(event, refund))
                fits = (
                    operation is not None
                    and not self.misplacement(event, operation)
                    and is_proven(operation, refund, learned=learned)
                )
                yield as_shown(
                    account.pk,
                    refund,
                    operation=operation if fits else None,
                    learned=learned,
                    now=self.now,
                )


def survey(*, engine: Engine, items: Sequence[InboxItem]) -> Ground:
    """Read and lock what these events are about, in a handful of statements."""
    collected = collecting.current()
    if collected is None:
        raise RuntimeError("Events are matched in a transaction that collects its writes.")
    events = [Told(item, facts_from_json(item.facts)) for item in items]
    ground = Ground(
        engine=engine,
        now=engine.clock(),
        events=events,
        accounts=_accounts(engine, {event.item.event_account for event in events}),
        collected=collected,
        by_key=_operations_with_keys(events),
        doubts=_in_doubt(engine, events),
    )
    _lock_payments(ground)
    told = [
        (event, refund)
        for event in events
        if not ground.is_of_another_mode(event)
        for refund in event.facts.refunds
    ]
    claimed = {ground.claimed_by(event, refund) for event, refund in told}
    known = _known_operations(ground, told)
    lock_and_read_all(
        {*known, *ground.by_key.values(), *ground.doubts.values(), *claimed} - {None},  # type: ignore[arg-type]
        collected=collected,
        spare_ids=len(told),
    )
    shown = list(ground.first_reports())
    if shown:
        see_all(shown)
    return ground


def _accounts(engine: Engine, names: set[str]) -> dict[str, Account]:
    rows = Account.objects.filter(livemode=engine.livemode, provider_account__in=names)
    return {row.provider_account: row for row in rows.order_by("-pk")}


def _operations_with_keys(events: Iterable[Told]) -> dict[str, UUID]:
    """Of the events that no mark explains, the operations whose keys their calls carried."""
    keys = {
        event.facts.request_key
        for event in events
        if event.facts.request_key
        # A dispute locks its payment's operations itself, after the payment.
        and event.facts.dispute is None
        and not any(our_mark(refund.metadata) for refund in event.facts.refunds)
    }
    if not keys:
        return {}
    rows = Operation.objects.filter(idempotency_key__in=keys).order_by("-pk")
    return dict(rows.values_list("idempotency_key", "pk"))


def _in_doubt(engine: Engine, events: Iterable[Told]) -> dict[tuple[str, str], UUID]:
    """The unknown operations on the payments of events that say that something was refunded."""
    charges = {
        event.facts.charge
        for event in events
        if event.facts.about_refunds and not event.facts.refunds and event.facts.charge
    }
    if not charges:
        return {}
    rows = Operation.objects.filter(
        status=Status.UNKNOWN, payment__charge__in=charges, account__livemode=engine.livemode
    ).order_by("-pk")
    return {
        (account, charge): pk
        for account, charge, pk in rows.values_list(
            "account__provider_account", "payment__charge", "pk"
        )
    }


def _known_operations(ground: Ground, told: Iterable[tuple[Told, RefundFacts]]) -> set[UUID]:
    """The operations to which refunds of these ids are known to belong."""
    places = {
        (account.pk, refund.id)
        for event, refund in told
        if (account := ground.account_of(event)) is not None
    }
    if not places:
        return set()
    accounts, refunds = zip(*places, strict=True)
    return {row for (row,) in run(_KNOWN, [list(accounts), list(refunds)])}


_KNOWN = """
SELECT DISTINCT refund.operation_id
FROM unnest($1::bigint[], $2::text[]) AS told (account_id, id)
JOIN operations_providerrefund AS refund
  ON refund.account_id = told.account_id AND refund.provider_object_id = told.id
WHERE refund.operation_id IS NOT NULL
"""


def _lock_payments(ground: Ground) -> None:
    """Let one at a time see all refunds of a payment; see `look_up`."""
    places = {
        (event.item.event_account, event.facts.charge)
        for event in ground.events
        if len(event.facts.refunds) > 1 or event.facts.dispute is not None
    }
    if places:
        rows = Payment.objects.select_for_update(no_key=True, of=("self",)).filter(
            account__provider_account__in={account for account, _ in places},
            charge__in={charge for _, charge in places},
        )
        list(rows.order_by("pk").values_list("pk"))
