"""Every refund that anything told us of, ours or not: its furthest state, and each report of it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from operations.domain.answers import RefundFacts
from operations.domain.refund_state import details_of, earliest, furthest, merged
from operations.models import (
    Account,
    EvidenceSource,
    Operation,
    ProviderRefund,
    RefundReport,
    collecting,
)
from operations.models.grouping import as_json, column_of, recordset
from operations.models.statements import build, columns, made, run
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
    row = collected.refunds.get((account.pk, refund.id)) if collected else None
    if row is None:
        shown = as_shown(account.pk, refund, operation=operation, learned=learned, now=now)
        row = _see_as_new(shown) or see_all([shown])[0]
    _learn(row, refund, operation, learned, now)
    collecting.insert(_report(row, refund, learned, now), once=True)
    return row


def as_shown(
    account_id: int,
    refund: RefundFacts,
    *,
    operation: Operation | None,
    learned: Learned,
    now: datetime,
) -> ProviderRefund:
    """The row of a refund as it is if this is the first report of it."""
    at = learned.observed_at
    return made(
        ProviderRefund,
        account_id=account_id,
        operation_id=operation.pk if operation else None,
        provider_object_id=refund.id,
        status=refund.status[:64],
        amount=refund.amount,
        currency=refund.currency[:3],
        charge=refund.charge,
        payment_intent=refund.payment_intent,
        metadata=dict(refund.metadata),
        details=merged({}, details_of(refund), at),
        status_since=at,
        provider_created_at=_moment(refund.created),
        first_seen_at=now,
        last_seen_at=now,
    )


def see_all(shown: Sequence[ProviderRefund]) -> list[ProviderRefund]:
    """Insert each of these refunds, or lock the row that is there already; the rows as they are.

    Each refund once. A transaction that collects its writes finds them again by `see_refund`.
    """
    # In one order for everybody, so that nobody waits for one that waits for him.
    ordered = sorted(shown, key=lambda row: (row.account_id, row.provider_object_id))
    rows = [build(ProviderRefund, row) for row in run(_SEE, [as_json(ordered, _SHOWN)])]
    collected = collecting.current()
    if collected is not None:
        collected.refunds.update({(row.account_id, row.provider_object_id): row for row in rows})
    return rows


def _see_as_new(shown: ProviderRefund) -> ProviderRefund | None:
    """Insert a refund that nobody has seen, where an id was drawn for one.

    When somebody has, the writes fail with IntegrityError.
    """
    collected = collecting.current()
    if collected is None or not collected.spare_refund_ids:
        return None
    shown.pk = collected.spare_refund_ids.pop()
    collecting.insert(shown)
    return shown


_SHOWN = tuple(
    field.attname for field in ProviderRefund._meta.concrete_fields if not field.primary_key
)
_COLUMNS = ", ".join(f'"{column_of(ProviderRefund, name)}"' for name in _SHOWN)
# A row that is there already is locked; what is new in a report is found by rule, not here.
_SEE = f"""
INSERT INTO operations_providerrefund AS seen ({_COLUMNS})
SELECT {_COLUMNS} FROM {recordset(ProviderRefund, _SHOWN)}
ON CONFLICT (account_id, provider_object_id) DO UPDATE SET last_seen_at = EXCLUDED.last_seen_at
RETURNING {columns(ProviderRefund, "seen")}
"""  # noqa: S608 - columns of our own table


def _learn(
    row: ProviderRefund,
    refund: RefundFacts,
    operation: Operation | None,
    learned: Learned,
    now: datetime,
) -> None:
    """Take what a report adds to the row; nothing when the row was made from it."""
    new: dict[str, object] = {}
    at = learned.observed_at
    # A file is anybody's: what it says of whose a refund is adds nothing to what is known.
    is_file = learned.source == EvidenceSource.REPORT_ROW
    if operation is not None and row.operation_id is None and _is_the_same(row, refund):
        new["operation_id"] = operation.pk
    status = furthest(row.status, refund.status[:64])
    if status != row.status:
        row.status = status
        new |= {"status": status, "status_since": at}
    elif refund.status == status and earliest(row.status_since, at) != row.status_since:
        new["status_since"] = at
    filled = {
        "charge": row.charge or refund.charge,
        "payment_intent": row.payment_intent or refund.payment_intent,
        "metadata": row.metadata or ({} if is_file else dict(refund.metadata)),
        "provider_created_at": row.provider_created_at or _moment(refund.created),
        "details": merged(row.details, details_of(refund), at),
        "last_seen_at": now,
    }
    held = row.__dict__
    new |= {name: value for name, value in filled.items() if held[name] != value}
    if new:
        for name, value in new.items():
            setattr(row, name, value)
        collecting.update(row, list(new))


def _is_the_same(row: ProviderRefund, refund: RefundFacts) -> bool:
    """Whether the refund that was kept is no other than the one that is reported."""
    same_charge = row.charge == refund.charge or "" in (row.charge, refund.charge)
    return same_charge and (row.amount, row.currency) == (refund.amount, refund.currency)


def _report(
    row: ProviderRefund, refund: RefundFacts, learned: Learned, now: datetime
) -> RefundReport:
    details = details_of(refund)
    return made(
        RefundReport,
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
