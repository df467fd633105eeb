"""What fetched events came to, and how long nothing was heard."""

from datetime import datetime

from django.db import connection

from operations.domain.backfilling import Silence
from operations.domain.identity import uuid7
from operations.models import Account, BackfillRun, BackfillState, Operation, WebhookEvent

_CHANGES_SQL = """
SELECT coalesce(last.handling, ''), count(*)
FROM operations_webhookevent AS event
LEFT JOIN LATERAL (
    SELECT handling FROM operations_eventhandling AS handling
    WHERE handling.provider_event_id = event.event_id AND handling.event_id = event.id
    ORDER BY handling.id DESC LIMIT 1
) AS last ON true
WHERE event.backfill = %s
GROUP BY 1
"""


def changes_of(run: BackfillRun) -> dict[str, int]:
    """How many of the run's new events came to what; "" are those that wait to be handled."""
    with connection.cursor() as cursor:
        cursor.execute(_CHANGES_SQL, [run.pk])
        return {str(handling): int(count) for handling, count in cursor.fetchall()}


def silence(account: Account) -> Silence:
    """When the provider was last heard of this account, and the first send on it after that."""
    webhook = (
        WebhookEvent.objects.filter(event_account=account.provider_account, deliveries__gt=0)
        .order_by("-pk")
        .values_list("last_received_at", flat=True)[:100]
    )
    runs = (
        BackfillRun.objects.filter(account=account)
        .order_by("-pk")
        .values_list("started_at", flat=True)
    )
    whole = runs.exclude(state=BackfillState.FAILED).first()
    heard = [moment for moment in [max(webhook, default=None), whole] if moment is not None]
    heard_at = max(heard, default=None)
    return Silence(
        heard_at=heard_at, sent_at=_first_send_after(account, heard_at), tried_at=runs.first()
    )


def _first_send_after(account: Account, heard_at: datetime | None) -> datetime | None:
    """By the operations' ids, which are in the order of their making."""
    sent = Operation.objects.filter(account=account, first_sent_at__isnull=False)
    if heard_at is not None:
        # An operation is made a moment before it is sent.
        sent = sent.filter(pk__gt=uuid7(heard_at), first_sent_at__gt=heard_at)
    return sent.order_by("pk").values_list("first_sent_at", flat=True).first()
