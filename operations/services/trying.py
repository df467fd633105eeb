"""Tries to deliver a notice: one that was claimed, and how tries ended and what follows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import F

from operations.domain.audit import Actor
from operations.domain.notices import Reply, after_failure
from operations.models import AuditEntry, Delivery, DeliveryState, Subscription
from operations.services.actors import NOTICES
from operations.services.engine import Engine

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A try that was written down and is about to be made."""

    delivery_id: int
    subscription_id: UUID
    operation_id: UUID
    message_id: str
    address: str
    body: str
    secrets: tuple[str, ...] = field(repr=False)
    try_id: int
    number: int
    tries_of_round: int
    started_at: datetime


@transaction.atomic
def record_all(engine: Engine, ended: Sequence[tuple[Claim, Reply]]) -> None:
    """Write down how tries ended, and what follows: those of one receiver with few statements.

    Receivers in the order of their ids, as two relays may write of the same ones.
    """
    now = engine.clock()
    taken: dict[UUID, list[tuple[Claim, Reply]]] = {}
    for claim, reply in ended:
        taken.setdefault(claim.subscription_id, []).append((claim, reply))
    for subscription_id in sorted(taken):
        of_one = taken[subscription_id]
        delivered = [(claim, reply) for claim, reply in of_one if reply.taken]
        for claim, reply in of_one:
            if not reply.taken:
                _end_tries([(claim, reply)], now)
                _failed(engine, claim, reply, now)
        if delivered:
            _end_tries(delivered, now)
            _delivered(subscription_id, [claim for claim, _ in delivered], now)


def _end_tries(ended: Sequence[tuple[Claim, Reply]], now: datetime) -> None:
    """Unless they were ended before."""
    values = [
        (claim.try_id, now, reply.duration_ms, reply.http_status, reply.body, reply.error)
        for claim, reply in ended
    ]
    with connection.cursor() as cursor:
        cursor.execute(_END_TRIES, [list(column) for column in zip(*values, strict=True)])


_END_TRIES = """
UPDATE operations_deliverytry AS try
SET finished_at = given.finished_at, duration_ms = given.duration_ms,
    http_status = given.http_status, body = given.body, error = given.error
FROM unnest(%s::bigint[], %s::timestamptz[], %s::bigint[], %s::integer[], %s::text[], %s::text[])
     AS given (id, finished_at, duration_ms, http_status, body, error)
WHERE try.id = given.id AND try.finished_at IS NULL
"""


def _delivered(subscription_id: UUID, claims: Sequence[Claim], now: datetime) -> None:
    """Whoever holds the claims meanwhile: the receiver has them."""
    # In the order of the claim, which it must not overlap: the receiver's row before deliveries.
    subscription = Subscription.objects.select_for_update(no_key=True).get(pk=subscription_id)
    if subscription.failures or subscription.resume_at is not None:
        subscription.failures = 0
        subscription.failing_since = None
        subscription.resume_at = None
        subscription.save(update_fields=["failures", "failing_since", "resume_at"])
    ended = Delivery.objects.filter(
        pk__in=[claim.delivery_id for claim in claims], state=DeliveryState.WAITING
    )
    ended.update(state=DeliveryState.DELIVERED, ended_at=now, claimed_until=None)
    _let_the_next_go(subscription_id, claims, now)


def _let_the_next_go(subscription_id: UUID, claims: Sequence[Claim], now: datetime) -> None:
    """What was put off for these deliveries is due."""
    Delivery.objects.filter(
        subscription=subscription_id,
        operation__in=[claim.operation_id for claim in claims],
        state=DeliveryState.WAITING,
        tries=F("round_began"),
        next_try_at__gt=now,
    ).update(next_try_at=now)


def _failed(engine: Engine, claim: Claim, reply: Reply, now: datetime) -> None:
    subscription = Subscription.objects.select_for_update(no_key=True).get(pk=claim.subscription_id)
    subscription.failures += 1
    subscription.failing_since = subscription.failing_since or claim.started_at
    then = after_failure(
        reply,
        tries=claim.tries_of_round,
        failures=subscription.failures,
        failing_since=subscription.failing_since,
        policy=engine.notices,
        now=now,
        jitter=engine.jitter(),
    )
    subscription.resume_at = then.resume_at
    subscription.save(update_fields=["failures", "failing_since", "resume_at"])
    # Unless another relay took over after this one was lost for longer than its claim.
    held = Delivery.objects.filter(
        pk=claim.delivery_id, state=DeliveryState.WAITING, tries=claim.number
    )
    if then.next_try_at is not None:
        held.update(next_try_at=then.next_try_at, claimed_until=None)
    else:
        held.update(state=DeliveryState.FAILED, ended_at=now, claimed_until=None)
        _let_the_next_go(claim.subscription_id, [claim], now)
        log.warning("notice_given_up", delivery=claim.delivery_id, reply=reply.in_words())
    if then.disable and subscription.disabled_at is None:
        disable_row(subscription, reason=then.disable, by=NOTICES, now=now)
        AuditEntry.append(
            operation_id=None,
            actor=NOTICES,
            action="subscription_disabled",
            now=now,
            after={"subscription": str(subscription.pk), "address": subscription.address},
            reason=then.disable,
        )
        log.error("subscription_disabled", address=subscription.address, reason=then.disable)


def disable_row(subscription: Subscription, *, reason: str, by: Actor, now: datetime) -> None:
    """Write to this address no more. The caller holds the row's lock."""
    subscription.disabled_at = now
    subscription.disabled_reason = reason
    subscription.disabled_by = str(by.kind)
    subscription.save(update_fields=["disabled_at", "disabled_reason", "disabled_by"])
