"""Operations whose end nobody knows, and the webhooks that tell it, as the product keeps them."""

import itertools
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from django.conf import settings
from django.db import models, transaction

from operations.domain.statuses import UnknownReason
from operations.models import Account, Operation, Payment
from operations.models.grouping import insert_many
from operations.models.statements import count_together, run

_CHUNK = 1_000


def account() -> Account:
    """The account that all of it belongs to."""
    return Account.objects.get_or_create(
        name="bench", livemode=settings.RECONCILE.livemode, defaults={"provider_account": ""}
    )[0]


def operations(count: int) -> list[Operation]:
    """Insert so many operations whose one send ended in doubt, each on a payment of its own."""
    owner, now, rows = account(), datetime.now(UTC), []
    for size in _sizes(count):
        names = [uuid.uuid4().hex for _ in range(size)]
        payments = [_payment(owner, name, now) for name in names]
        with transaction.atomic():
            _insert(payments)
            ids = dict(
                Payment.objects.filter(charge__in=[row.charge for row in payments]).values_list(
                    "charge", "pk"
                )
            )
            chunk = [_operation(owner, ids[f"ch_{name}"], name, now) for name in names]
            _insert(chunk)
            run(_DOUBT, [[row.pk for row in chunk], now])
        rows += chunk
    return rows


_DOUBT = f"""
UPDATE operations_operation
SET status = 'unknown', unknown_reason = '{UnknownReason.BUDGET_SPENT}', needs_person_since = $2,
    revision = revision + 1
WHERE id = ANY($1) RETURNING 1
"""  # noqa: S608 - a constant


def webhook(operation: Operation, *, status: str = "succeeded") -> bytes:
    """The body of the event that tells what became of its refund, 1.5 KB of it."""
    name = operation.idempotency_key
    charge = f"ch_{name}"
    refund = {
        "id": f"re_{name[:24]}",
        "object": "refund",
        "amount": operation.amount,
        "balance_transaction": f"txn_{name[:24]}",
        "charge": charge,
        "created": int(time.time()),
        "currency": operation.currency,
        "destination_details": {
            "card": {"reference_status": "pending", "type": "refund"},
            "type": "card",
        },
        "metadata": {
            "reconcile_operation_id": str(operation.pk),
            "reconcile_environment": operation.environment,
        },
        "payment_intent": f"pi_{name[:24]}",
        "reason": "requested_by_customer",
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": status,
        "transfer_reversal": None,
    }
    event = {
        "id": f"evt_{uuid.uuid4().hex[:24]}",
        "object": "event",
        "api_version": "2026-04-22.dahlia",
        "created": int(time.time()),
        "data": {"object": refund},
        "livemode": settings.RECONCILE.livemode,
        "pending_webhooks": 1,
        "request": {"id": f"req_{name[:14]}", "idempotency_key": name},
        "type": "refund.updated",
    }
    return json.dumps(event, indent=1).encode()


def _payment(owner: Account, name: str, now: datetime) -> Payment:
    return Payment(
        account_id=owner.pk,
        charge=f"ch_{name}",
        payment_intent=f"pi_{name[:24]}",
        currency="usd",
        captured=10_000,
        refunded=0,
        read_at=now,
    )


def _operation(owner: Account, payment_id: int, name: str, now: datetime) -> Operation:
    return Operation(
        id=uuid.uuid4(),
        account_id=owner.pk,
        payment_id=payment_id,
        order_id=f"order-{name}",
        amount=1_234,
        currency="usd",
        input_hash="0" * 64,
        environment=settings.RECONCILE.environment,
        endpoint="/v1/refunds",
        idempotency_key=name,
        parameters={"payment_intent": f"pi_{name[:24]}", "amount": 1_234},
        created_at=now,
        attempts_made=3,
        first_sent_at=now,
        last_sent_at=now,
    )


def _insert(rows: Sequence[models.Model]) -> None:
    names = tuple(
        field.attname
        for field in type(rows[0])._meta.concrete_fields
        if rows[0].pk is not None or not field.primary_key
    )
    count_together(insert_many(rows, names, once=False))


def _sizes(count: int) -> Iterator[int]:
    for start in itertools.count(0, _CHUNK):
        if start >= count:
            return
        yield min(_CHUNK, count - start)
