"""Ingesting: an authentic event is stored and acknowledged; what it means is a job's."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from operations.models import WebhookEvent
from operations.providers.stripe_events import event_facts, parse_json, verify_signature
from operations.services.engine import Engine

_NUL = re.compile("\x00")


@transaction.atomic
def receive_event(
    *, engine: Engine, raw: bytes, signature: str, endpoint_account: str
) -> bool:
    """Verify and store one delivery. True when the event is new, False for a repetition.

    Raises SignatureRefused and UnreadableEvent; then nothing is stored.
    """
    now = engine.clock()
    verify_signature(
        raw=raw, header=signature, secrets=engine.webhook_secrets, now=now.timestamp()
    )
    body = parse_json(raw)
    facts = event_facts(body)
    account = facts.account or endpoint_account
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
                payload=without_nul(body),
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


def without_nul(body: dict[str, Any]) -> dict[str, Any]:
    """The parsed event as jsonb can hold it: NUL becomes the replacement character.

    The raw bytes stay the durable copy.
    """
    text = json.dumps(body)
    if "\\u0000" not in text and not _LONE_SURROGATE.search(text):
        return body
    return dict(_cleaned(body))


_LONE_SURROGATE = re.compile(r"\\\\ud[89a-f][0-9a-f]{2}", re.IGNORECASE)


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return _NUL.sub("\ufffd", value).encode("utf-8", "replace").decode("utf-8")
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return {_cleaned(name): _cleaned(item) for name, item in value.items()}
        case _:
            return value


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
