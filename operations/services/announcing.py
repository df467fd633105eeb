"""Announcing: a change is put into the outbox of everybody who subscribed, in its transaction.

One statement finds the subscribers and writes their deliveries; it goes out together with the
change. Nobody subscribed: nothing is written. A subscription ends with the API key that made it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from psycopg.types.numeric import Int8

from operations.domain.identity import uuid7
from operations.domain.notices import NoticeType, types_of_change
from operations.domain.statuses import Status
from operations.models import Operation, collecting
from operations.queries.answers import answer

# As the API writes its answers, without blanks.
_JSON = DjangoJSONEncoder(separators=(",", ":"), ensure_ascii=False)
# The values are numbered in the order of their places.
_WRITE = """
INSERT INTO operations_delivery
    (message_id, operation_id, type, revision, occurred_at, next_try_at, body,
     subscription_id, state, tries, round_began)
SELECT %s::text, %s::uuid, %s::text, %s::bigint, %s::timestamptz, %s::timestamptz, %s::text,
       subscriber.id, 'waiting', 0, 0
FROM operations_subscription AS subscriber
 WHERE subscriber.disabled_at IS NULL
   AND NOT EXISTS (
       SELECT FROM operations_apikey AS key
       WHERE key.id = subscriber.api_key_id
         AND (key.revoked_at IS NOT NULL OR key.expires_at <= %s::timestamptz)
   )
   AND (subscriber.types = '{}' OR %s::text = ANY (subscriber.types))
   AND (subscriber.account_id IS NULL OR subscriber.account_id = %s::bigint)
""".replace("\n WHERE", " WHERE")
# Two flags that one transaction raises are one notice.
_ONCE = " ON CONFLICT (subscription_id, operation_id, revision, type) DO NOTHING"


def announce(operation: Operation, *, before: Status, flagged: bool, now: datetime) -> None:
    """Write the notices of a change that was just made to a locked operation.

    `before`: its status before the change; `flagged`: a flag was raised that was not there.
    """
    collected = collecting.current()
    if collected is not None and collected.nobody_subscribed:
        return
    for kind in types_of_change(before=before, after=Status(operation.status), flagged=flagged):
        collecting.execute(_WRITE, partial(_values, operation, kind, now), ending=_ONCE)


def _values(operation: Operation, kind: NoticeType, now: datetime) -> Sequence[Any]:
    """The operation as it is when the transaction is about to be committed."""
    return [
        f"msg_{uuid7(now).hex}",
        operation.pk,
        str(kind),
        Int8(operation.revision),
        now,
        now,
        payload(operation, kind, now),
        now,
        str(kind),
        Int8(operation.account_id),
    ]


def payload(operation: Operation, kind: NoticeType, now: datetime) -> str:
    """The body, byte for byte as it is signed and sent: what a GET would have answered then."""
    _, data = answer(operation, now=now)
    told = {"type": str(kind), "timestamp": now.astimezone(UTC), "data": data}
    return _JSON.encode(told)
