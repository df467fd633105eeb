"""A store that is full: operations that ended long ago, and the events that told of them."""

import sys
from collections.abc import Mapping

from django.db import connection

from operations.models import Operation, WebhookEvent

_CHUNK = 50_000


def fill(count: int) -> None:
    """Store so many settled operations and events, copies of one that was handled."""
    operation = Operation.objects.filter(status="succeeded").latest("created_at")
    event = WebhookEvent.objects.latest("pk")
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for first in range(0, count, _CHUNK):
            last = min(count, first + _CHUNK)
            for table, changes, row in (
                ("operation", _OPERATION, operation.pk),
                ("webhookevent", _EVENT, event.pk),
            ):
                cursor.execute(copies(table, changes), [first, last - 1, row])
            sys.stderr.write(f"{last} of {count} stored\n")
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE operations_operation")
        cursor.execute("VACUUM ANALYZE operations_webhookevent")
        cursor.execute("CHECKPOINT")


_OPERATION = {
    "id": "gen_random_uuid()",
    "order_id": "'order-old-' || n",
    "idempotency_key": "'old-' || n",
    "provider_object_id": "'re_old_' || n",
    "created_at": "created_at - n * interval '1 second'",
}
_EVENT = {
    "id": "nextval(pg_get_serial_sequence('operations_webhookevent', 'id'))",
    "event_id": "'evt_old_' || n",
    "filed_at": "filed_at - (n % 90) * interval '1 day'",
}


def copies(table: str, changes: Mapping[str, str]) -> str:
    """SQL that copies one row to the numbers `n` of a range, with these columns changed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass"
            " AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [f"operations_{table}"],
        )
        columns = [name for (name,) in cursor.fetchall()]
    names = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(changes.get(name, f'"{name}"') for name in columns)
    return (
        f"INSERT INTO operations_{table} ({names}) SELECT {values}"  # noqa: S608 - constants
        f" FROM generate_series(%s, %s) AS n, operations_{table} AS old WHERE old.id = %s"
    )
