"""Webhooks as the provider delivers them, signed or signed wrongly."""

import hashlib
import hmac
import json
import time
from typing import Any

from django.test import Client

from .stage import SECRET

WEBHOOKS = "/webhooks/stripe/"


def signature(raw: bytes, *, secret: str = SECRET, at: float | None = None) -> str:
    """The header `Stripe-Signature` for these bytes; `at` in UTC seconds."""
    moment = int(time.time() if at is None else at)
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + raw, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def deliver(raw: bytes | dict[str, Any], *, header: str | None = None, path: str = WEBHOOKS) -> Any:
    """One delivery to the endpoint, signed unless `header` says something else."""
    data = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    headers = {"Stripe-Signature": signature(data) if header is None else header}
    return Client().post(path, data, content_type="application/json", headers=headers)


def event(event_id: str = "evt_1", **changes: Any) -> dict[str, Any]:
    """An event about a refund that is nobody's."""
    refund = {
        "id": "re_1",
        "object": "refund",
        "amount": 100,
        "currency": "usd",
        "status": "succeeded",
        "charge": "ch_1",
        "created": 1_795_000_000,
        "metadata": {},
    }
    return {
        "id": event_id,
        "object": "event",
        "type": "refund.created",
        "created": 1_795_000_000,
        "livemode": False,
        "data": {"object": refund},
    } | changes
