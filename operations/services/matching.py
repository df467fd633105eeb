"""Matching: which operation an event or a listed refund speaks of, by proof only.

In this order: the refund's id is known; its metadata names the operation; the call that caused
the event carried the operation's key. Never by amount, never because it is the only one.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import transaction

from operations.domain.answers import RefundFacts
from operations.domain.contradiction import other_terms
from operations.domain.dispute import DisputeFacts
from operations.domain.events import EventFacts, facts_from_json
from operations.domain.matching import our_mark, place_differences
from operations.domain.statuses import Status
from operations.models import (
    Account,
    EvidenceSource,
    Handling,
    InboxItem,
    Operation,
    Payment,
    ProviderRefund,
)
from operations.services.actors import webhook_actor
from operations.services.disputing import take_dispute
from operations.services.engine import Engine
from operations.services.inbox import claim_items, fail, finish, hold, put_off
from operations.services.learning import Learned
from operations.services.seeing import see_refund
from operations.services.settling import (
    OperationNotFound,
    Taken,
    lock,
    raise_attention,
    take_refund,
)

#: An event with our mark and no operation is tried again for this long.
_GIVE_UP_AFTER = timedelta(days=3)


@dataclass(frozen=True, kw_only=True)
class Handled:
    """What became of one event. `look_up` asks for a look-up of this operation."""

    handling: Handling
    operation: Operation | None = None
    look_up: UUID | None = None


def handle_next_event(*, engine: Engine) -> UUID | bool | None:
    """Claim the oldest event that waits, and handle it in one transaction.

    None when nothing waits; the id of an operation to look up when the event asks for it; else
    True. An error is kept with the event, which waits for its next turn and blocks no other.
    """
    claimed = claim_items(engine=engine, most=1)
    if not claimed:
        return None
    (item,) = claimed
    try:
        with transaction.atomic():
            if not hold(item):
                return True
            handled = _handle(engine, item)
            _finish(item, handled, engine.clock())
            return handled.look_up or True
    except Exception as error:
        with transaction.atomic():
            if hold(item):
                fail(item, f"{type(error).__name__}: {error}", now=engine.clock())
        return True


def _handle(engine: Engine, item: InboxItem) -> Handled:
    facts = facts_from_json(item.facts)
    if not facts.relevant:
        return Handled(handling=Handling.IGNORED)
    if facts.livemode is not None and facts.livemode != engine.livemode:
        return Handled(handling=Handling.WRONG_MODE)
    if facts.dispute is not None:
        return _handle_dispute(engine, item, facts, facts.dispute)
    if len(facts.refunds) > 1:
        _lock_payment(item, facts)
    results = [_handle_refund(engine, item, facts, refund) for refund in facts.refunds]
    by_key = None
    if not any(result.operation for result in results):
        by_key = _by_request_key(item, facts)
    if by_key is not None:
        return by_key
    order = list(_IMPORTANCE)
    return min(
        results or [Handled(handling=Handling.NOT_OURS)],
        key=lambda result: order.index(result.handling),
    )


def _handle_dispute(
    engine: Engine, item: InboxItem, facts: EventFacts, dispute: DisputeFacts
) -> Handled:
    """A dispute marks the operations of its payment; it settles nothing."""
    account = _account(item, engine)
    if account is None:
        return Handled(handling=Handling.NOT_OURS)
    learned = Learned(
        source=EvidenceSource.WEBHOOK,
        summary=f"{facts.type}: dispute {dispute.id} is {dispute.status}.",
        actor=webhook_actor(facts.id),
        observed_at=_observed_at(item, facts),
        event_pk=item.event_id,
        facts={"event_id": facts.id, "type": facts.type, "dispute": dispute.id},
    )
    now = engine.clock()
    first, is_new = take_dispute(account=account, dispute=dispute, learned=learned, now=now)
    if first is None:
        return Handled(handling=Handling.NOT_OURS)
    handling = Handling.APPLIED if is_new else Handling.NO_CHANGE
    return Handled(handling=handling, operation=first)


def _observed_at(item: InboxItem, facts: EventFacts) -> datetime:
    return datetime.fromtimestamp(facts.created, UTC) if facts.created else item.received_at


#: When an event carries several refunds, the first of these names what became of it.
_IMPORTANCE = (
    Handling.MISMATCH,
    Handling.APPLIED,
    Handling.NEEDS_LOOKUP,
    Handling.NO_CHANGE,
    Handling.UNMATCHED,
    Handling.OTHER_ENVIRONMENT,
    Handling.NOT_OURS,
    Handling.IGNORED,
    Handling.WRONG_MODE,
)


def _handle_refund(
    engine: Engine, item: InboxItem, facts: EventFacts, refund: RefundFacts
) -> Handled:
    """One refund in an event: found by id, by mark, or by the key of a call about one refund."""
    known = (
        ProviderRefund.objects.filter(
            provider_object_id=refund.id,
            operation__isnull=False,
            account=_account(item, engine),
        )
        .values_list("operation_id", flat=True)
        .first()
    )
    mark = our_mark(refund.metadata)
    learned = Learned(
        source=EvidenceSource.WEBHOOK,
        summary=f"{facts.type}: refund {refund.id} is {refund.status}.",
        actor=webhook_actor(facts.id),
        observed_at=_observed_at(item, facts),
        event_pk=item.event_id,
        facts={"event_id": facts.id, "type": facts.type, "refund": refund.id},
    )
    if known is not None:
        operation_id = known
    elif mark is not None and mark.environment != engine.environment:
        _keep_foreign(item, engine, refund, learned)
        return Handled(handling=Handling.OTHER_ENVIRONMENT)
    elif mark is not None:
        operation_id = mark.operation_id
    else:
        keyed = _operation_with_key(facts) if len(facts.refunds) == 1 else None
        if keyed is None:
            _keep_foreign(item, engine, refund, learned)
            return Handled(handling=Handling.NOT_OURS)
        operation_id = keyed
    try:
        operation = lock(operation_id)
    except OperationNotFound:
        _keep_foreign(item, engine, refund, learned)
        return Handled(handling=Handling.UNMATCHED)
    return _apply(engine, item, facts, learned, refund, operation)


def _apply(
    engine: Engine,
    item: InboxItem,
    facts: EventFacts,
    learned: Learned,
    refund: RefundFacts,
    operation: Operation,
) -> Handled:
    now = engine.clock()
    misplaced = place_differences(
        operation.terms(),
        account=item.event_account,
        livemode=operation.account.livemode if facts.livemode is None else facts.livemode,
    )
    if misplaced:
        found = other_terms(refund, misplaced)
        raise_attention(operation, found, learned=learned, now=now, refund=refund)
        _keep_foreign(item, engine, refund, learned)
        return Handled(handling=Handling.MISMATCH, operation=operation)
    taken = take_refund(operation, refund, learned=learned, now=now)
    _plan_check(engine, operation, now)
    return Handled(
        handling=_HANDLING_OF[taken],
        operation=operation,
        # When in doubt, the refund as the provider has it now is what is believed.
        look_up=operation.pk if taken in (Taken.UNDECIDED, Taken.DOUBTFUL) else None,
    )


def _plan_check(engine: Engine, operation: Operation, now: datetime) -> None:
    """Plan the first look-up of a refund that was announced before its send was over.

    Whoever sends plans only what its own answer leaves undecided.
    """
    pause = engine.next_lookup_after(operation.lookups_made, Status(operation.status))
    if operation.status == Status.PROCESSING and operation.next_check_at is None and pause:
        operation.change(now=now, next_check_at=now + pause)


_HANDLING_OF = {
    Taken.CHANGED: Handling.APPLIED,
    Taken.NOTHING_NEW: Handling.NO_CHANGE,
    Taken.UNDECIDED: Handling.NEEDS_LOOKUP,
    Taken.DOUBTFUL: Handling.NEEDS_LOOKUP,
    Taken.SECOND_REFUND: Handling.APPLIED,
    Taken.MISMATCH: Handling.MISMATCH,
}


def _by_request_key(item: InboxItem, facts: EventFacts) -> Handled | None:
    """An event about a charge, caused by a call with our key: the list will show the refund."""
    operation_id = _operation_with_key(facts)
    if operation_id is None or facts.refunds:
        return None
    operation = lock(operation_id)
    payment = operation.payment
    names_it = facts.charge == payment.charge or (
        bool(facts.payment_intent) and facts.payment_intent == payment.payment_intent
    )
    if not names_it or item.event_account != operation.account.provider_account:
        return Handled(handling=Handling.NOT_OURS)
    if operation.provider_object_id:
        return Handled(handling=Handling.NO_CHANGE, operation=operation)
    return Handled(handling=Handling.NEEDS_LOOKUP, operation=operation, look_up=operation.pk)


def _operation_with_key(facts: EventFacts) -> UUID | None:
    if not facts.request_key:
        return None
    return (
        Operation.objects.filter(idempotency_key=facts.request_key)
        .values_list("pk", flat=True)
        .first()
    )


def _lock_payment(item: InboxItem, facts: EventFacts) -> None:
    """Let one at a time see all refunds of a payment; see `look_up`."""
    rows = Payment.objects.select_for_update(no_key=True).filter(
        account__provider_account=item.event_account, charge=facts.charge
    )
    list(rows.order_by("pk"))


def _account(item: InboxItem, engine: Engine) -> Account | None:
    return Account.objects.filter(
        provider_account=item.event_account, livemode=engine.livemode
    ).first()


def _keep_foreign(item: InboxItem, engine: Engine, refund: RefundFacts, learned: Learned) -> None:
    """A refund that is not proven to be an operation's is kept: it counts against the till."""
    account = _account(item, engine)
    if account is not None:
        see_refund(account, refund, operation=None, learned=learned, now=engine.clock())


def _finish(item: InboxItem, handled: Handled, now: datetime) -> None:
    waits_on = handled.handling is Handling.UNMATCHED and now - item.received_at < _GIVE_UP_AFTER
    if waits_on:
        put_off(item, handled.handling, now=now)
    else:
        finish(item, handled.handling, now=now, operation=handled.operation)
