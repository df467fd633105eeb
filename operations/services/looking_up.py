"""Looking up: reading what the provider has for a payment, to the last page. It moves no money."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import transaction

from operations.domain.answers import PaymentFacts, RefundFacts, RefundList
from operations.domain.audit import Actor
from operations.domain.matching import our_mark
from operations.domain.refund_state import counts_as_refunded
from operations.domain.statuses import UNRESOLVED, Status
from operations.models import Evidence, EvidenceSource, Operation, Payment
from operations.providers import PaymentNotFound, Provider, ReadFailed, RefundNotFound
from operations.queries.absence import grade_of, look_of, lookups_of
from operations.services.adding_up import compare_total
from operations.services.believing import take_refund
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.seeing import see_refund
from operations.services.settling import lock, void_proposals, write_evidence


class LookupResult(StrEnum):
    """What a look-up brought."""

    FOUND = "found"
    ABSENT = "absent"
    INCOMPLETE = "incomplete"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What the provider showed. `error` is set when it could not be read.

    `proves_absence`: whether a refund that is not on the list may be called absent at all.
    """

    refunds: RefundList
    payment: PaymentFacts | None = None
    error: str = ""
    proves_absence: bool = True


def look_up(*, engine: Engine, operation_id: UUID, actor: Actor) -> LookupResult:
    """Read the refunds of an operation's payment and take what proves to be its own.

    Safe to run at any time and any number of times. Absence is kept as evidence and settles
    nothing.
    """
    operation = Operation.objects.select_related("payment", "account").get(pk=operation_id)
    started_at = engine.clock()
    provider = engine.provider(operation.account)
    proves = provider.contract.lookup_conclusive_after_s is not None
    seen = replace(_read(provider, operation), proves_absence=proves)
    with transaction.atomic():
        # The payment before the operation, as everywhere: what sees all refunds of a payment goes
        # one after the other, and so never waits for another that waits for it.
        payment = Payment.objects.select_for_update(no_key=True).get(pk=operation.payment_id)
        # Figures that were read since are not held against older ones.
        if seen.payment is not None and started_at >= payment.read_at:
            payment.refresh(seen.payment, read_at=started_at)
            compare_total(
                payment,
                provider_total=seen.payment.refunded,
                listed_total=_listed_total(seen),
                complete=seen.refunds.complete,
                now=started_at,
            )
        return _take(
            engine,
            lock(operation_id),
            seen,
            actor,
            started_at,
            planned_before=operation.next_check_at,
        )


def _read(provider: Provider, operation: Operation) -> _Seen:
    account = operation.account.provider_account
    payment = operation.parameters.get("payment_intent") or operation.payment.charge
    nothing = RefundList(refunds=(), complete=False, pages=0)
    try:
        listed = provider.list_refunds(payment=payment, account=account)
        if operation.provider_object_id and not _has(listed, operation.provider_object_id):
            refund = provider.read_refund(refund_id=operation.provider_object_id, account=account)
            listed = RefundList(
                refunds=(*listed.refunds, refund),
                complete=listed.complete,
                pages=listed.pages,
            )
    except (ReadFailed, RefundNotFound) as error:
        return _Seen(refunds=nothing, error=str(error) or type(error).__name__)
    try:
        facts = provider.read_payment(payment=payment, account=account)
    except (ReadFailed, PaymentNotFound):
        facts = None
    return _Seen(refunds=listed, payment=facts)


def _has(listed: RefundList, refund_id: str) -> bool:
    return any(refund.id == refund_id for refund in listed.refunds)


def _take(
    engine: Engine,
    operation: Operation,
    seen: _Seen,
    actor: Actor,
    started_at: datetime,
    *,
    planned_before: datetime | None,
) -> LookupResult:
    now = engine.clock()
    asked = operation.next_check_at if operation.next_check_at != planned_before else None
    ours = [refund for refund in seen.refunds.refunds if _is_ours(operation, refund)]
    result = _result(seen, ours)
    facts = _facts(operation, seen, result, started_at)
    earlier = lookups_of(operation)
    worth = grade_of(
        operation,
        earlier,
        conclusive_after_s=engine.provider(operation.account).contract.lookup_conclusive_after_s,
        now_seen=look_of(facts, started_at),
    )
    learned = Learned(
        source=EvidenceSource.LOOKUP,
        summary=_in_words(seen, ours, result),
        actor=actor,
        observed_at=started_at,
        facts=facts | {"lacks": list(worth.lacks)} if _is_absent(result) else facts,
    )
    before = earlier[-1] if earlier else None
    evidence = write_evidence(operation, learned, now=now, refund=ours[0] if ours else None)
    for refund in sorted(seen.refunds.refunds, key=lambda refund: refund.id):
        if refund not in ours:
            see_refund(operation.account, refund, operation=None, learned=learned, now=now)
    for refund in sorted(ours, key=lambda refund: (refund.created, refund.id)):
        take_refund(operation, refund, learned=learned, now=now, evidence=evidence)
    _write_plan(
        engine,
        operation,
        is_same=_shows_the_same(before, evidence),
        was_read=not seen.error,
        asked=asked,
        now=now,
    )
    return result


def _write_plan(
    engine: Engine,
    operation: Operation,
    *,
    is_same: bool,
    was_read: bool,
    asked: datetime | None,
    now: datetime,
) -> None:
    """Plan the next look-up. `asked`: when somebody asked for one while this one was under way."""
    pause = _pause(engine, operation, was_read=was_read)
    times = [time for time in (now + pause if pause else None, asked) if time]
    plan = {
        "lookups_made": operation.lookups_made + 1,
        "next_check_at": min(times, default=None),
    }
    if is_same:
        # A look-up that shows what the last one showed takes the ground from nobody's decision.
        operation.plan(now=now, **plan)
        return
    operation.change(now=now, **plan)
    void_proposals(operation, now)


#: What a person who decides has seen of a look-up.
_SHOWN = ("result", "complete", "refunds_seen", "refunds_seen_count", "listed_total")
_SHOWN_TOTAL = ("provider_total", "total_explained", "disputed")


def _is_absent(result: LookupResult) -> bool:
    return result in (LookupResult.ABSENT, LookupResult.INCOMPLETE)


def _shows_the_same(before: Evidence | None, evidence: Evidence) -> bool:
    names = (*_SHOWN, *_SHOWN_TOTAL)
    return before is not None and all(
        before.facts.get(name) == evidence.facts.get(name) for name in names
    )


#: How long until the provider is asked again about a settled operation, in seconds.
_ASK_AGAIN_S = 900


def _pause(engine: Engine, operation: Operation, *, was_read: bool) -> timedelta | None:
    """How long until the next check; None when there is nothing more to look for.

    Look-ups come to an end, but an open operation is checked until it is open no more, and one
    that is settled until the provider could be asked about what is in doubt.
    """
    if operation.status not in UNRESOLVED:
        is_answered = was_read or operation.next_check_at is None
        return None if is_answered else timedelta(seconds=_ASK_AGAIN_S)
    pause = engine.next_lookup_after(operation.lookups_made + 1, Status(operation.status))
    return pause or timedelta(days=1) if operation.status == Status.OPEN else pause


def _is_ours(operation: Operation, refund: RefundFacts) -> bool:
    if refund.id == operation.provider_object_id:
        return True
    mark = our_mark(refund.metadata)
    return (
        mark is not None
        and mark.operation_id == operation.pk
        and mark.environment == operation.environment
    )


def _result(seen: _Seen, ours: list[RefundFacts]) -> LookupResult:
    if seen.error:
        return LookupResult.UNREADABLE
    if ours:
        return LookupResult.FOUND
    return LookupResult.ABSENT if seen.refunds.complete else LookupResult.INCOMPLETE


def _facts(
    operation: Operation, seen: _Seen, result: LookupResult, started_at: datetime
) -> dict[str, Any]:
    """What the absence is worth: completeness, age since the last send, and the second witness."""
    since = operation.last_sent_at
    listed = _listed_total(seen)
    total = seen.payment.refunded if seen.payment else None
    return {
        "result": result,
        "complete": seen.refunds.complete,
        "proves_absence": seen.proves_absence,
        "pages": seen.refunds.pages,
        "refunds_seen": [refund.id for refund in seen.refunds.refunds][:200],
        "refunds_seen_count": len(seen.refunds.refunds),
        "listed_total": listed,
        "provider_total": total,
        "total_explained": None if total is None else total == listed,
        "seconds_after_send": (started_at - since).total_seconds() if since else None,
        "error": seen.error,
        "disputed": seen.payment.disputed if seen.payment else None,
    }


def _listed_total(seen: _Seen) -> int:
    return sum(
        refund.amount for refund in seen.refunds.refunds if counts_as_refunded(refund.status)
    )


def _in_words(seen: _Seen, ours: list[RefundFacts], result: LookupResult) -> str:
    match result:
        case LookupResult.FOUND:
            first = ours[0]
            return f"Refund {first.id} carries our reference: {first.status}."
        case LookupResult.ABSENT:
            count = len(seen.refunds.refunds)
            others = f" {count} other refund{'s' if count != 1 else ''} seen." if count else ""
            return f"No refund with our reference was found on the payment.{others}"
        case LookupResult.INCOMPLETE:
            return "The list of refunds could not be read to its end; ours was not on it so far."
        case LookupResult.UNREADABLE:
            return f"The provider could not be read: {seen.error}"
