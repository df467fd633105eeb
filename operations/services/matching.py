"""Matching: which operation an event or a listed refund speaks of, by proof only.

In this order: the refund's id is known; its metadata names the operation; the call that caused
the event carried the operation's key. Never by amount, never because it is the only one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from operations.domain.answers import RefundFacts
from operations.domain.contradiction import other_terms
from operations.domain.dispute import DisputeFacts
from operations.domain.events import EventFacts
from operations.domain.matching import our_mark, place_differences
from operations.domain.statuses import Status
from operations.models import (
    Account,
    EvidenceSource,
    Handling,
    Operation,
    Payment,
    ProviderRefund,
    WebhookEvent,
)
from operations.providers.stripe_events import event_facts
from operations.services.actors import webhook_actor
from operations.services.disputing import take_dispute
from operations.services.engine import Engine
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
_RETRY_BASE_S = 5
_RETRY_MOST_S = 3_600


@dataclass(frozen=True, kw_only=True)
class Handled:
    """What became of one event. `look_up` asks for a look-up of this operation."""

    handling: Handling
    operation: Operation | None = None
    look_up: UUID | None = None


def handle_next_event(*, engine: Engine) -> UUID | bool | None:
    """Handle the oldest event that waits, in one transaction.

    None when nothing waits; the id of an operation to look up when the event asks for it; else
    True. An error is kept with the event, which waits for its next turn and blocks no other.
    """
    claimed: int | None = None
    try:
        with transaction.atomic():
            event = _claim(engine.clock())
            if event is None:
                return None
            claimed = event.pk
            handled = _handle(engine, event)
            _finish(event, handled, engine.clock())
            return handled.look_up or True
    except Exception as error:
        if claimed is None:
            raise
        _postpone(claimed, error, engine.clock())
        return True


def _claim(now: datetime) -> WebhookEvent | None:
    return (
        WebhookEvent.objects.select_for_update(no_key=True, skip_locked=True)
        .filter(handled_at__isnull=True, handle_after__lte=now)
        .order_by("handle_after", "id")
        .first()
    )


def _handle(engine: Engine, event: WebhookEvent) -> Handled:
    facts = event_facts(event.payload)
    if not facts.about_refunds and facts.dispute is None:
        return Handled(handling=Handling.IGNORED)
    if facts.livemode is not None and facts.livemode != engine.livemode:
        return Handled(handling=Handling.WRONG_MODE)
    if facts.dispute is not None:
        return _handle_dispute(engine, event, facts, facts.dispute)
    if len(facts.refunds) > 1:
        _lock_payment(event, facts)
    results = [_handle_refund(engine, event, facts, refund) for refund in facts.refunds]
    by_key = None
    if not any(result.operation for result in results):
        by_key = _by_request_key(event, facts)
    if by_key is not None:
        return by_key
    order = list(_IMPORTANCE)
    return min(
        results or [Handled(handling=Handling.NOT_OURS)],
        key=lambda result: order.index(result.handling),
    )


def _handle_dispute(
    engine: Engine, event: WebhookEvent, facts: EventFacts, dispute: DisputeFacts
) -> Handled:
    """A dispute marks the operations of its payment; it settles nothing."""
    account = _account(event, engine)
    if account is None:
        return Handled(handling=Handling.NOT_OURS)
    learned = Learned(
        source=EvidenceSource.WEBHOOK,
        summary=f"{facts.type}: dispute {dispute.id} is {dispute.status}.",
        actor=webhook_actor(facts.id),
        observed_at=event.provider_created_at or event.received_at,
        event=event,
        facts={"event_id": facts.id, "type": facts.type, "dispute": dispute.id},
    )
    now = engine.clock()
    first, is_new = take_dispute(account=account, dispute=dispute, learned=learned, now=now)
    if first is None:
        return Handled(handling=Handling.NOT_OURS)
    handling = Handling.APPLIED if is_new else Handling.NO_CHANGE
    return Handled(handling=handling, operation=first)


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
    engine: Engine, event: WebhookEvent, facts: EventFacts, refund: RefundFacts
) -> Handled:
    """One refund in an event: found by id, by mark, or by the key of a call about one refund."""
    known = (
        ProviderRefund.objects.filter(
            provider_object_id=refund.id,
            operation__isnull=False,
            account=_account(event, engine),
        )
        .values_list("operation_id", flat=True)
        .first()
    )
    mark = our_mark(refund.metadata)
    learned = Learned(
        source=EvidenceSource.WEBHOOK,
        summary=f"{facts.type}: refund {refund.id} is {refund.status}.",
        actor=webhook_actor(facts.id),
        observed_at=event.provider_created_at or event.received_at,
        event=event,
        facts={"event_id": facts.id, "type": facts.type, "refund": refund.id},
    )
    if known is not None:
        operation_id = known
    elif mark is not None and mark.environment != engine.environment:
        _keep_foreign(event, engine, refund, learned)
        return Handled(handling=Handling.OTHER_ENVIRONMENT)
    elif mark is not None:
        operation_id = mark.operation_id
    else:
        keyed = _operation_with_key(facts) if len(facts.refunds) == 1 else None
        if keyed is None:
            _keep_foreign(event, engine, refund, learned)
            return Handled(handling=Handling.NOT_OURS)
        operation_id = keyed
    try:
        operation = lock(operation_id)
    except OperationNotFound:
        _keep_foreign(event, engine, refund, learned)
        return Handled(handling=Handling.UNMATCHED)
    return _apply(engine, event, facts, learned, refund, operation)


def _apply(
    engine: Engine,
    event: WebhookEvent,
    facts: EventFacts,
    learned: Learned,
    refund: RefundFacts,
    operation: Operation,
) -> Handled:
    now = engine.clock()
    misplaced = place_differences(
        operation.terms(),
        account=event.event_account,
        livemode=operation.account.livemode if facts.livemode is None else facts.livemode,
    )
    if misplaced:
        found = other_terms(refund, misplaced)
        raise_attention(operation, found, learned=learned, now=now, refund=refund)
        _keep_foreign(event, engine, refund, learned)
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


def _by_request_key(event: WebhookEvent, facts: EventFacts) -> Handled | None:
    """An event about a charge, caused by a call with our key: the list will show the refund."""
    operation_id = _operation_with_key(facts)
    if operation_id is None or facts.refunds:
        return None
    operation = lock(operation_id)
    payment = operation.payment
    names_it = facts.charge == payment.charge or (
        bool(facts.payment_intent) and facts.payment_intent == payment.payment_intent
    )
    if not names_it or event.event_account != operation.account.provider_account:
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


def _lock_payment(event: WebhookEvent, facts: EventFacts) -> None:
    """Let one at a time see all refunds of a payment; see `look_up`."""
    rows = Payment.objects.select_for_update(no_key=True).filter(
        account__provider_account=event.event_account, charge=facts.charge
    )
    list(rows.order_by("pk"))


def _account(event: WebhookEvent, engine: Engine) -> Account | None:
    return Account.objects.filter(
        provider_account=event.event_account, livemode=engine.livemode
    ).first()


def _keep_foreign(
    event: WebhookEvent, engine: Engine, refund: RefundFacts, learned: Learned
) -> None:
    """A refund that is not proven to be an operation's is kept: it counts against the till."""
    account = _account(event, engine)
    if account is not None:
        see_refund(account, refund, operation=None, learned=learned, now=engine.clock())


def _finish(event: WebhookEvent, handled: Handled, now: datetime) -> None:
    waits_on = handled.handling is Handling.UNMATCHED and now - event.received_at < _GIVE_UP_AFTER
    if not waits_on:
        event.finish(handled.handling, now=now, operation=handled.operation)
        return
    event.handling = handled.handling
    event.handling_attempts += 1
    event.handle_after = now + _pause(event.handling_attempts)
    event.save(update_fields=["handling", "handling_attempts", "handle_after"])


def _postpone(event_pk: int, error: Exception, now: datetime) -> None:
    event = WebhookEvent.objects.get(pk=event_pk)
    event.handling_attempts += 1
    event.handle_after = now + _pause(event.handling_attempts)
    event.handling_error = f"{type(error).__name__}: {error}"[:500]
    event.save(update_fields=["handling_attempts", "handle_after", "handling_error"])


def _pause(attempts: int) -> timedelta:
    return timedelta(seconds=min(_RETRY_MOST_S, _RETRY_BASE_S * 2 ** min(attempts - 1, 20)))
