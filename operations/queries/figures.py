"""Figures: the money of a payment, and how the system is doing."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from django.core.cache import caches
from django.db import connection

from operations.domain.access import Accounts
from operations.domain.money import Money
from operations.domain.refund_state import counts_as_refunded
from operations.domain.statuses import Status
from operations.queries.dossier import Dossier

#: Counts stop here; the page shows "1,000+".
COUNT_CAP = 1_000


@dataclass(frozen=True, kw_only=True)
class PaymentMoney:
    """What is known of a payment's money. Amounts in its Stripe unit.

    Refunded so far is somewhere from `refunded` to `refunded + exposure`: the exposure is what
    operations with an unknown end may have moved.
    """

    currency: str
    captured: int
    refunded: int
    known_to_us: int
    exposure: int
    read_at: datetime

    def money(self, amount: int) -> Money:
        """An amount with the payment's currency."""
        return Money(amount, self.currency)

    @property
    def at_most(self) -> int:
        """The upper end of the interval, never more than was captured."""
        return max(self.refunded, min(self.captured, self.refunded + self.exposure))

    @property
    def untouched(self) -> int:
        """What was surely not refunded."""
        return max(0, self.captured - self.at_most)

    def share(self, amount: int) -> str:
        """A part of what was captured, in per cent with one decimal, as an SVG length."""
        return f"{100 * amount / self.captured if self.captured else 0:.1f}%"


def payment_money(dossier: Dossier) -> PaymentMoney:
    """The money of the operation's payment, from the newest reading there is."""
    payment = dossier.operation.payment
    refunded, read_at = payment.refunded, payment.read_at
    for row in dossier.lookups:
        total = row.facts.get("provider_total")
        if isinstance(total, int) and row.observed_at > read_at:
            refunded, read_at = total, row.observed_at
    seen = [row for row in dossier.refunds if counts_as_refunded(row.status)]
    known = sum(row.amount for row in seen)
    settled_by_refund = {row.operation_id for row in seen if row.operation_id}
    doubtful = [
        row
        for row in [dossier.operation, *dossier.siblings]
        if row.status in (Status.OPEN, Status.UNKNOWN)
        and row.attempts_made
        and row.pk not in settled_by_refund
    ]
    return PaymentMoney(
        currency=payment.currency,
        captured=payment.captured,
        refunded=max(refunded, known),
        known_to_us=known,
        exposure=sum(row.amount for row in doubtful),
        read_at=read_at,
    )


@dataclass(frozen=True, kw_only=True)
class Health:
    """What the strip shows. `unknown` stops at one more than the cap.

    Of the newest sends that are over, up to 20 in the last 15 minutes before the newest,
    `sends_lost` brought no answer that says what happened; `sends_over` is their number and
    `provider_at` when the newest one ended. `worker_at` is the worker's last sign of life.
    `events_stuck` are events whose handling failed or that name an operation we don't have;
    `paused` are the accounts on which people have stopped sending.
    """

    webhook_at: datetime | None
    provider_at: datetime | None
    sends_over: int
    sends_lost: int
    worker_at: datetime | None
    unknown: int
    oldest_since: datetime | None
    events_stuck: int
    paused: list[str]


#: When the last delivery came; what was only fetched from the provider's list is none.
LAST_WEBHOOK = """
    (SELECT max(last_received_at) FROM (
        SELECT last_received_at FROM operations_webhookevent
        WHERE deliveries > 0 ORDER BY id DESC LIMIT 100) AS newest)"""
_HEALTH_SQL = f"""
WITH newest AS (
    SELECT outcome, finished_at FROM operations_attempt ORDER BY id DESC LIMIT 20
), ended AS (
    SELECT outcome, finished_at FROM newest
    WHERE outcome <> ''
      AND finished_at > (SELECT max(finished_at) FROM newest) - interval '15 minutes'
)
SELECT {LAST_WEBHOOK},
    (SELECT max(finished_at) FROM ended),
    (SELECT count(*) FROM ended),
    (SELECT count(*) FROM ended WHERE outcome = 'indeterminate'),
    (SELECT at FROM operations_heartbeat WHERE name = 'worker'),
    (SELECT count(*) FROM (
        SELECT 1 FROM operations_operation WHERE status = 'unknown' LIMIT %(most)s) AS capped),
    (SELECT min(needs_person_since) FROM operations_operation WHERE status = 'unknown'),
    (SELECT count(*) FROM (
        SELECT 1 FROM operations_inboxitem
        WHERE (attempts > 0 AND claimed_until IS NULL) OR failures > 0
        LIMIT %(most)s) AS capped),
    (SELECT coalesce(array_agg(name ORDER BY name), '{{}}') FROM operations_account
        WHERE paused_at IS NOT NULL)
"""  # noqa: S608 - our own text


#: How long what was read serves everybody whose strip asks, in seconds.
_LATELY_S = 2


def health_lately(accounts: Accounts = None) -> Health:
    """As of at most two seconds ago: however many strips ask, each process reads it that often."""
    if accounts is not None:
        return health(accounts)
    return cast("Health", caches["process"].get_or_set("health", health, _LATELY_S))


def health(accounts: Accounts = None) -> Health:
    """What concerns these accounts. One query, whatever the size."""
    if accounts is not None:
        return _health_of(sorted(accounts))
    with connection.cursor() as cursor:
        cursor.execute(_HEALTH_SQL, {"most": COUNT_CAP + 1})
        return _health(cursor.fetchone())


# The inbox is the whole installation's, so nothing of it is told. Of the newest thousand sends.
_HEALTH_OF_SQL = """
WITH newest AS (
    SELECT attempt.outcome, attempt.finished_at
    FROM (SELECT operation_id, outcome, finished_at, id FROM operations_attempt
          ORDER BY id DESC LIMIT 1000) AS attempt
    JOIN operations_operation AS sent ON sent.id = attempt.operation_id
    WHERE sent.account_id = ANY (%(accounts)s) ORDER BY attempt.id DESC LIMIT 20
), ended AS (
    SELECT outcome, finished_at FROM newest
    WHERE outcome <> ''
      AND finished_at > (SELECT max(finished_at) FROM newest) - interval '15 minutes'
)
SELECT (SELECT max(last_received_at) FROM (
        SELECT last_received_at, event_account FROM operations_webhookevent
        WHERE deliveries > 0 ORDER BY id DESC LIMIT 1000) AS event
     WHERE event_account IN (SELECT provider_account FROM operations_account
                             WHERE id = ANY (%(accounts)s))),
    (SELECT max(finished_at) FROM ended),
    (SELECT count(*) FROM ended),
    (SELECT count(*) FROM ended WHERE outcome = 'indeterminate'),
    (SELECT at FROM operations_heartbeat WHERE name = 'worker'),
    (SELECT count(*) FROM (SELECT 1 FROM operations_operation
        WHERE status = 'unknown' AND account_id = ANY (%(accounts)s) LIMIT %(most)s) AS capped),
    (SELECT min(needs_person_since) FROM operations_operation
        WHERE status = 'unknown' AND account_id = ANY (%(accounts)s)),
    0,
    (SELECT coalesce(array_agg(name ORDER BY name), '{}') FROM operations_account
        WHERE paused_at IS NOT NULL AND id = ANY (%(accounts)s))
"""


def _health_of(accounts: list[int]) -> Health:
    with connection.cursor() as cursor:
        cursor.execute(_HEALTH_OF_SQL, {"accounts": accounts, "most": COUNT_CAP + 1})
        return _health(cursor.fetchone())


def _health(row: tuple[Any, ...]) -> Health:
    *found, paused = row
    names = (field.name for field in fields(Health))
    return Health(**dict(zip(names, [*found, list(paused)], strict=True)))
