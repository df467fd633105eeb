"""Notifying: what waits in the outbox is delivered, at least once and in order per operation.

A try is claimed and written down in one short transaction, made with none open, and its end is
written in another. Who dies in between leaves a claim that runs out; the notice goes out again
under the same id. Receivers are tried side by side: one that hangs holds up itself alone.
"""

import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import connection, transaction

from operations.domain import signing
from operations.domain.notices import NoticePolicy, Reply
from operations.models import (
    Delivery,
    DeliveryTry,
    Subscription,
)
from operations.services.engine import Engine
from operations.services.posting import Post, post
from operations.services.trying import Claim, record_all

log = structlog.get_logger(__name__)

#: How many tries are under way at once, in one run and at one receiver that is well.
_AT_ONCE = 32
_AT_ONE_RECEIVER = 8
#: A run begins no new try after this long, so that a worker is free for other tasks. Seconds.
RUN_S = 20.0
#: While tries are under way, what became due meanwhile is looked for this often. Seconds.
_LOOK_AGAIN_S = 0.25
#: How many that are due one claim looks at, and how long one that is blocked is put off at least.
_LOOKED_AT = 200
_PUT_OFF_S = 1.0


def deliver_due(*, engine: Engine, run_s: float = RUN_S, post: Post = post) -> int:
    """Make the tries that are due, until none is or the time is up. Returns how many were made."""
    if transaction.get_connection().in_atomic_block:
        raise RuntimeError("Notices were about to be posted inside a transaction.")
    ends_at = time.monotonic() + run_s
    running: dict[Future[Reply], Claim] = {}
    made = 0
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
        while True:
            room = _AT_ONCE - len(running) if time.monotonic() < ends_at else 0
            claims = claim_due(engine=engine, most=room) if room else []
            for claim in claims:
                running[threads.submit(_try, claim, engine.notices, post)] = claim
            made += len(claims)
            if not running:
                return made
            done, _ = wait(running, _LOOK_AGAIN_S, return_when=FIRST_COMPLETED)
            if done:
                record_all(engine, [(running.pop(ended), ended.result()) for ended in done])


def notices_wait(*, engine: Engine) -> bool:
    """Whether a delivery is due."""
    return bool(_subscriptions_with_due(engine.clock(), most=1))


_DUE = """
    delivery.state = 'waiting' AND delivery.next_try_at <= %(now)s
    AND (delivery.claimed_until IS NULL OR delivery.claimed_until <= %(now)s)
"""

# A receiver in trouble gets one try at a time. Its row is locked, so that two relays that claim
# at once don't give it twice as many.
_WITH_DUE = f"""
SELECT subscriber.id,
       CASE WHEN subscriber.failures = 0 THEN %(each)s ELSE 1 END - (
           SELECT count(*) FROM operations_delivery AS held
           WHERE held.subscription_id = subscriber.id AND held.state = 'waiting'
             AND held.claimed_until > %(now)s
       )
FROM operations_subscription AS subscriber
WHERE subscriber.disabled_at IS NULL
  AND NOT EXISTS (
      SELECT FROM operations_apikey AS key
      WHERE key.id = subscriber.api_key_id
        AND (key.revoked_at IS NOT NULL OR key.expires_at <= %(now)s)
  )
  AND (subscriber.resume_at IS NULL OR subscriber.resume_at <= %(now)s)
  AND EXISTS (
      SELECT 1 FROM operations_delivery AS delivery
      WHERE delivery.subscription_id = subscriber.id AND {_DUE}
  )
ORDER BY random()
LIMIT %(most)s
FOR NO KEY UPDATE OF subscriber SKIP LOCKED
"""  # noqa: S608 - constants

# The first that are due are looked at, however many wait. One that has to wait for an earlier
# notice of its operation is put off until that one's turn, so that it is not looked at again and
# again; it comes back when that one has ended.
_CLAIM = f"""
WITH candidate AS MATERIALIZED (
    SELECT delivery.id, delivery.operation_id, delivery.next_try_at
    FROM operations_delivery AS delivery
    WHERE delivery.subscription_id = %(subscription)s AND {_DUE}
    ORDER BY delivery.next_try_at, delivery.id
    LIMIT %(looked_at)s
), judged AS MATERIALIZED (
    SELECT candidate.id, candidate.next_try_at, blocker.free_at
    FROM candidate LEFT JOIN LATERAL (
        SELECT greatest(earlier.next_try_at, earlier.claimed_until, %(soon)s) AS free_at
        FROM operations_delivery AS earlier
        WHERE earlier.subscription_id = %(subscription)s
          AND earlier.operation_id = candidate.operation_id
          AND earlier.state = 'waiting' AND earlier.id < candidate.id
        ORDER BY earlier.id LIMIT 1
    ) AS blocker ON true
), put_off AS (
    UPDATE operations_delivery AS later SET next_try_at = judged.free_at
    FROM judged WHERE later.id = judged.id AND judged.free_at IS NOT NULL
)
UPDATE operations_delivery AS claimed
SET claimed_until = %(until)s, tries = claimed.tries + 1
FROM (
    SELECT id FROM judged WHERE free_at IS NULL ORDER BY next_try_at, id LIMIT %(places)s
) AS due
WHERE claimed.id = due.id
RETURNING claimed.id
"""  # noqa: S608 - constants


def _subscriptions_with_due(now: datetime, *, most: int) -> list[tuple[UUID, int]]:
    """Receivers with something due, and how many tries each may get now. Locks their rows."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WITH_DUE, {"now": now, "each": _AT_ONE_RECEIVER, "most": most})
        return [(subscription, places) for subscription, places in cursor.fetchall() if places > 0]


@transaction.atomic
def claim_due(*, engine: Engine, most: int) -> list[Claim]:
    """Claim up to `most` tries that are due, each written down before it is made."""
    now = engine.clock()
    claimed: list[int] = []
    for subscription, places in _subscriptions_with_due(now, most=most):
        places = min(places, most - len(claimed))
        if places <= 0:
            break
        with connection.cursor() as cursor:
            until = now + timedelta(seconds=engine.notices.lease_s)
            cursor.execute(
                _CLAIM,
                {
                    "now": now,
                    "until": until,
                    "soon": now + timedelta(seconds=_PUT_OFF_S),
                    "subscription": subscription,
                    "places": places,
                    "looked_at": _LOOKED_AT,
                },
            )
            claimed += [row for (row,) in cursor.fetchall()]
    return _write_down(claimed, now) if claimed else []


def _write_down(claimed: Iterable[int], now: datetime) -> list[Claim]:
    deliveries = list(
        Delivery.objects.filter(pk__in=claimed).select_related("subscription").order_by("pk")
    )
    tries = DeliveryTry.objects.bulk_create(
        DeliveryTry(delivery=row, number=row.tries, started_at=now) for row in deliveries
    )
    return [
        Claim(
            delivery_id=row.pk,
            subscription_id=row.subscription_id,
            operation_id=row.operation_id,
            message_id=row.message_id,
            address=row.subscription.address,
            body=row.body,
            secrets=secrets_of(row.subscription, now),
            try_id=attempt.pk,
            number=attempt.number,
            tries_of_round=row.tries - row.round_began,
            started_at=now,
        )
        for row, attempt in zip(deliveries, tries, strict=True)
    ]


def secrets_of(subscription: Subscription, now: datetime) -> tuple[str, ...]:
    """The secrets to sign with: while one rolls, the new one and then the old one."""
    until = subscription.previous_secret_until
    if until is not None and until > now:
        return subscription.secret, subscription.previous_secret
    return (subscription.secret,)


def _try(claim: Claim, policy: NoticePolicy, post: Post) -> Reply:
    """In a thread of its own, without the database."""
    try:
        return post(
            address=claim.address,
            body=claim.body,
            headers=signing.headers(
                claim.secrets,
                message_id=claim.message_id,
                timestamp=int(claim.started_at.timestamp()),
                body=claim.body,
            ),
            policy=policy,
        )
    except Exception as error:
        log.exception("notice_not_posted", delivery=claim.delivery_id)
        return Reply(error=f"It could not be posted: {type(error).__name__}.")
