"""Every refund that anything told us of, ours or not: its furthest state, and each report of it."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int8

from operations.domain.answers import RefundFacts
from operations.domain.refund_state import details_of, earliest, furthest, merged
from operations.models import Account, Operation, ProviderRefund, RefundReport, collecting
from operations.models.statements import build, columns, run
from operations.services.learning import Learned


def see_refund(
    account: Account,
    refund: RefundFacts,
    *,
    operation: Operation | None,
    learned: Learned,
    now: datetime,
) -> ProviderRefund:
    """Keep a report of a refund, and the furthest state of it.

    It belongs to the first operation that proved it, unless what was kept before contradicts
    that operation: then to none. The order of reports makes no difference to what is kept.
    """
    collected = collecting.current()
    place = (account.pk, refund.id)
    row = collected.refunds.get(place) if collected else None
    if row is None:
        values = _shown(account, refund, operation, learned, now)
        row = build(ProviderRefund, run(_SEE, values)[0])
        if collected is not None:
            collected.refunds[place] = row
    _go_forward(row, refund, learned.observed_at)
    collecting.insert(_report(row, refund, learned, now), once=True)
    return row


def _shown(
    account: Account,
    refund: RefundFacts,
    operation: Operation | None,
    learned: Learned,
    now: datetime,
) -> list[object]:
    at = learned.observed_at
    return [
        account.pk,
        operation.pk if operation else None,
        refund.id,
        refund.status[:64],
        Int8(refund.amount),
        refund.currency[:3],
        refund.charge,
        refund.payment_intent,
        Jsonb(dict(refund.metadata)),
        Jsonb(merged({}, details_of(refund), at)),
        at,
        _moment(refund.created),
        now,
        now,
    ]


# A row that is there already is locked; its status is compared by rule, not here.
_SEE = f"""
INSERT INTO operations_providerrefund AS seen
    (account_id, operation_id, provider_object_id, status, amount, currency, charge,
     payment_intent, metadata, details, status_since, provider_created_at, first_seen_at,
     last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (account_id, provider_object_id) DO UPDATE
SET operation_id = CASE
        WHEN seen.operation_id IS NULL AND seen.amount = EXCLUDED.amount
             AND seen.currency = EXCLUDED.currency
             AND (seen.charge = EXCLUDED.charge OR '' IN (seen.charge, EXCLUDED.charge))
        THEN EXCLUDED.operation_id ELSE seen.operation_id END,
    charge = COALESCE(NULLIF(seen.charge, ''), EXCLUDED.charge),
    payment_intent = COALESCE(NULLIF(seen.payment_intent, ''), EXCLUDED.payment_intent),
    metadata = CASE seen.metadata WHEN '{{}}' THEN EXCLUDED.metadata ELSE seen.metadata END,
    provider_created_at = COALESCE(seen.provider_created_at, EXCLUDED.provider_created_at),
    last_seen_at = EXCLUDED.last_seen_at
RETURNING {columns(ProviderRefund, "seen")}
"""  # noqa: S608 - columns of our own table


def _go_forward(row: ProviderRefund, refund: RefundFacts, at: datetime) -> None:
    status = furthest(row.status, refund.status)
    details = merged(row.details, details_of(refund), at)
    changed = []
    if status != row.status:
        row.status = status
        row.status_since = at
        changed += ["status", "status_since"]
    elif refund.status == status and earliest(row.status_since, at) != row.status_since:
        row.status_since = at
        changed.append("status_since")
    if details != row.details:
        row.details = details
        changed.append("details")
    if changed:
        collecting.update(row, changed)


def _report(
    row: ProviderRefund, refund: RefundFacts, learned: Learned, now: datetime
) -> RefundReport:
    details = details_of(refund)
    return RefundReport(
        refund_id=row.pk,
        source=learned.source,
        told_by=learned.told_by,
        status=refund.status[:64],
        amount=refund.amount,
        currency=refund.currency[:3],
        details=details,
        told_at=learned.observed_at,
        recorded_at=now,
        fingerprint=_fingerprint(refund, details),
    )


def _fingerprint(refund: RefundFacts, details: Mapping[str, object]) -> str:
    """What is the same for two reports of which one says nothing that the other does not."""
    said = [refund.status, refund.amount, refund.currency, sorted(details.items())]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
