"""Reading Stripe's webhooks: the signature on the raw bytes, and what the event says.

Sources: Stripe, "Verify webhook signatures" and "The Event object". Events of every API version
come here, so the object in `data.object` is read by its own `object`, not by the event's type.
"""

import hmac
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from operations.domain.events import EventFacts
from operations.providers.stripe_objects import (
    dispute_facts,
    object_id,
    refund_facts,
    refunds_of_charge,
    seconds,
    text_of,
)

#: Stripe's tolerance in seconds; used in both directions, because its SDK accepts future times.
TOLERANCE_S = 300
_ABOUT_REFUNDS = ("refund.", "charge.refund")


class SignatureRefused(Exception):
    """The bytes are not proven to be the provider's. `str` says why."""


class UnreadableEvent(Exception):
    """Signed, but not an event that can be stored. `str` says why."""


def verify_signature(*, raw: bytes, header: str, secrets: Iterable[str], now: float) -> None:
    """Check `Stripe-Signature` on the raw bytes. `now` in UTC seconds. Raises SignatureRefused."""
    if not header.isascii():
        raise SignatureRefused("The signature header is not ASCII.")
    parts = [item.strip().partition("=") for item in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not given:
        raise SignatureRefused("The signature header lacks t or v1.")
    if not times[0].isdigit() or len(times[0]) > 12:
        raise SignatureRefused("The signature's time is not a number.")
    if not _is_signed(raw, times[0], given, secrets):
        raise SignatureRefused("No signature fits the configured secrets.")
    if abs(now - int(times[0])) > TOLERANCE_S:
        raise SignatureRefused("The signature's time is more than 300 seconds away.")


def _is_signed(raw: bytes, time: str, given: list[str], secrets: Iterable[str]) -> bool:
    message = time.encode() + b"." + raw
    # An empty secret would let anybody sign.
    expected = [
        hmac.digest(secret.encode(), message, "sha256").hex() for secret in secrets if secret
    ]
    return any(hmac.compare_digest(one, other) for one in expected for other in given)


def parse_json(raw: bytes) -> dict[str, Any]:
    """The body as an object. Raises UnreadableEvent for anything else."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnreadableEvent("The body is not JSON in UTF-8.") from error
    if not isinstance(body, dict):
        raise UnreadableEvent("The body is not a JSON object.")
    event_id = body.get("id")
    if not isinstance(event_id, str) or not 0 < len(event_id) <= 255:
        raise UnreadableEvent("The event has no id of at most 255 characters.")
    return body


def event_facts(body: Mapping[str, Any]) -> EventFacts:
    """What a parsed event says. Never raises on a missing or odd field."""
    event_type = text_of(body.get("type"))
    thing = _object(body)
    kind = thing.get("object")
    charge, intent, refunds = "", object_id(thing.get("payment_intent")), []
    if kind == "charge":
        charge = object_id(thing)
        refunds = list(refunds_of_charge(thing))
    else:
        charge = object_id(thing.get("charge"))
        refund = refund_facts(thing)
        refunds = [refund] if refund else []
    return EventFacts(
        id=text_of(body.get("id")),
        type=event_type,
        account=text_of(body.get("account")),
        livemode=body["livemode"] if isinstance(body.get("livemode"), bool) else None,
        created=_created(body.get("created")),
        request_key=_request_key(body.get("request")),
        refunds=tuple(refunds),
        charge=charge,
        payment_intent=intent,
        about_refunds=bool(refunds) or event_type.startswith(_ABOUT_REFUNDS),
        dispute=dispute_facts(thing),
    )


def _object(body: Mapping[str, Any]) -> Mapping[str, Any]:
    data = body.get("data")
    thing = data.get("object") if isinstance(data, Mapping) else None
    return thing if isinstance(thing, Mapping) else {}


def _created(value: object) -> int:
    """UTC seconds; events of the second version write it out (Stripe, "Event destinations")."""
    if not isinstance(value, str):
        return seconds(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return 0
    return seconds(int(moment.timestamp())) if moment.tzinfo else 0


def _request_key(request: object) -> str:
    """Null for automatic changes, and a plain string (the request's id) in old versions."""
    return text_of(request.get("idempotency_key")) if isinstance(request, Mapping) else ""
