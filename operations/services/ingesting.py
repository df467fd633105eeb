"""Ingesting: an authentic event is stored and acknowledged; what it means is a job's."""

from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from operations.models import WebhookEvent
from operations.providers.storable import storable
from operations.providers.stripe_events import (
    SignatureRefused,
    UnreadableEvent,
    event_facts,
    parse_json,
    verify_signature,
)
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import Engine


class EventRefused(Exception):
    """The bytes are not proven to be the provider's, or are no event; nothing was stored."""


class EventAccountUnknown(Exception):
    """The address names an account that does not exist; nothing was stored."""


@transaction.atomic
def receive_event(*, engine: Engine, raw: bytes, signature: str, endpoint_account: str) -> bool:
    """Verify and store one delivery. True when the event is new, False for a repetition.

    `endpoint_account` is the account that the address names, "" for none. Raises EventRefused and
    EventAccountUnknown.
    """
    now = engine.clock()
    try:
        verify_signature(
            raw=raw, header=signature, secrets=engine.webhook_secrets, now=now.timestamp()
        )
        body = _stored(parse_json(raw))
    except (SignatureRefused, UnreadableEvent) as error:
        raise EventRefused(str(error)) from error
    facts = event_facts(body)
    account = facts.account
    if not account and endpoint_account:
        account = _named_account(engine, endpoint_account)
    created = WebhookEvent.objects.bulk_create(
        [
            WebhookEvent(
                endpoint_account=endpoint_account[:64],
                event_account=account[:64],
                event_id=facts.id,
                event_type=facts.type[:255],
                livemode=facts.livemode,
                provider_created_at=_moment(facts.created),
                raw=raw,
                payload=body,
                received_at=now,
                last_received_at=now,
                handle_after=now,
                deliveries=0,
            )
        ],
        ignore_conflicts=True,
    )
    rows = WebhookEvent.objects.filter(event_account=account[:64], event_id=facts.id)
    rows.update(deliveries=F("deliveries") + 1, last_received_at=now)
    return bool(created) and rows.filter(deliveries=1).exists()


def _named_account(engine: Engine, name: str) -> str:
    try:
        return account_for(engine=engine, name=name).provider_account
    except UnknownAccount:
        raise EventAccountUnknown(name) from None


def _stored(body: dict[str, Any]) -> dict[str, Any]:
    """The parsed event as jsonb can hold it; the raw bytes stay the durable copy."""
    try:
        return dict(storable(body))
    except RecursionError:
        raise UnreadableEvent("The body is nested too deep.") from None


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
