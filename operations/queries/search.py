"""Search: from any id that people meet to the operations it belongs to."""

from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Q, QuerySet

from operations.models import (
    Account,
    Attempt,
    EventHandling,
    Operation,
    Payment,
    ProviderRefund,
    Request,
)
from operations.queries.queue import QueueRow, listed, rows_of

#: More than this is not a search for an id.
MOST_HITS = 50


def clean_query(text: str) -> str:
    """What is searched for: the text without blanks, or the id at the end of a pasted address."""
    text = text.replace("\x00", "").strip()[:255]
    if text.startswith(("http://", "https://")):
        try:
            path = urlsplit(text).path
        except ValueError:
            return text
        parts = [part for part in path.split("/") if part]
        return parts[-1] if parts else ""
    return text


def find(text: str, *, now: datetime) -> list[QueueRow]:
    """The operations with exactly this id in any role, newest first. One query for the ids."""
    ids = _ids(text)
    operations = listed(Operation.objects.filter(pk__in=ids)).order_by("-created_at", "-pk")
    return rows_of(list(operations), now)


def _ids(text: str) -> set[UUID]:
    if not text:
        return set()
    accounts = list(Account.objects.values_list("pk", flat=True))
    payments = Payment.objects.filter(
        Q(account__in=accounts, charge=text) | Q(account__in=accounts, payment_intent=text)
    )
    hits: list[QuerySet[Any, UUID]] = [
        Operation.objects.filter(order_id=text).values_list("pk", flat=True),
        Operation.objects.filter(idempotency_key=text).values_list("pk", flat=True),
        Operation.objects.filter(provider_object_id=text).values_list("pk", flat=True),
        Operation.objects.filter(payment__in=payments).values_list("pk", flat=True),
    ]
    hits += [
        rows.filter(operation__isnull=False).values_list("operation_id", flat=True)
        for rows in (
            ProviderRefund.objects.filter(account__in=accounts, provider_object_id=text),
            Request.objects.filter(tool_call_id=text),
            Request.objects.filter(agent_run_id=text),
            Attempt.objects.filter(provider_request_id=text),
            EventHandling.objects.filter(provider_event_id=text),
        )
    ]
    as_uuid = _uuid(text)
    if as_uuid is not None:
        hits.append(Operation.objects.filter(pk=as_uuid).values_list("pk", flat=True))
        hits.append(Attempt.objects.filter(pk=as_uuid).values_list("operation_id", flat=True))
    first, *rest = hits
    return set(first.union(*rest)[:MOST_HITS])


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
