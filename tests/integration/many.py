"""Many unknown operations at once, made from one that a provider really left unknown."""

from uuid import UUID

from django.db import connection

from operations.models import Operation
from operations.services.draining import drain
from operations.services.looking_up import look_up

from .deliveries import deliver, event
from .stage import ENVIRONMENT, JOB, Stage

_COPIED = """
INSERT INTO operations_operation ({columns})
SELECT {values} FROM generate_series(1, %s) AS n, operations_operation AS old WHERE old.id = %s
RETURNING id
"""
# What a copy has of its own; it begins as every operation does.
_OWN = {
    "id": "gen_random_uuid()",
    "order_id": "'many-' || lpad(n::text, 5, '0')",
    "idempotency_key": "'many-' || n || '-' || old.id",
    "status": "'open'",
    "unknown_reason": "''",
    "needs_person_since": "NULL",
    "revision": "1",
}
_DOUBT = """
UPDATE operations_operation AS o
SET status = 'unknown', unknown_reason = 'server_error', revision = 2,
    needs_person_since = o.created_at
WHERE o.id = ANY(%s)
"""
_LOOKED = """
INSERT INTO operations_evidence (operation_id, source, provider_object_id, provider_status,
    currency, summary, facts, observed_at, recorded_at, actor_kind, actor_name)
SELECT copy, source, provider_object_id, provider_status, currency, summary, facts, observed_at,
    recorded_at, actor_kind, actor_name
FROM operations_evidence AS seen, unnest(%s::uuid[]) AS copy
WHERE seen.operation_id = %s AND seen.source = 'lookup'
"""


def many_unknown(stage: Stage, count: int) -> list[UUID]:
    """So many operations that a 500 left unknown and a fresh look-up found absent, by order."""
    stage.control.fault("500", when="before")
    first = stage.ask(stage.payment(amount=10**9), order_id="many-00000", amount=500)
    stage.clock.advance(120)
    look_up(engine=stage.engine, operation_id=first.pk, actor=JOB)
    copy_unknown(first, count - 1)
    return list(Operation.objects.order_by("order_id").values_list("pk", flat=True))


def copy_unknown(first: Operation, count: int, **differing: str) -> None:
    """So many more like an unknown operation, with its look-ups."""
    own = _OWN | differing
    columns = [field.column for field in Operation._meta.concrete_fields]
    statement = _COPIED.format(
        columns=", ".join(f'"{column}"' for column in columns),
        values=", ".join(own.get(column, f'old."{column}"') for column in columns),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [count, first.pk])
        copies = [pk for (pk,) in cursor.fetchall()]
        cursor.execute(_DOUBT, [copies])
        cursor.execute(_LOOKED, [copies, first.pk])


def settle_by_webhook(stage: Stage, operation: Operation) -> None:
    """The provider tells that the refund exists; the operation succeeds."""
    refund = {
        "id": "re_late",
        "object": "refund",
        "amount": operation.amount,
        "currency": operation.currency,
        "status": "succeeded",
        "charge": operation.payment.charge,
        "created": 1_795_000_000,
        "metadata": {
            "reconcile_operation_id": str(operation.pk),
            "reconcile_environment": ENVIRONMENT,
        },
    }
    assert deliver(event("evt_late", data={"object": refund})).status_code == 200
    while drain(engine=stage.engine) is not None:
        pass
