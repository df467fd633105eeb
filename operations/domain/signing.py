"""Signatures of notices, as the Standard Webhooks specification has them (version 1.0.0)."""

import base64
import hashlib
import hmac
from collections.abc import Iterable

PREFIX = "whsec_"
#: The specification wants 24 to 64 random bytes.
SECRET_BYTES = 32


def secret_of(key: bytes) -> str:
    """How a secret is written: `whsec_` and base64."""
    return PREFIX + base64.b64encode(key).decode()


def signature(secret: str, *, message_id: str, timestamp: int, body: str) -> str:
    """`v1,` and the base64 HMAC-SHA256 over `id.timestamp.body`. `timestamp` in Unix seconds."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.{body}".encode()
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def headers(
    secrets: Iterable[str], *, message_id: str, timestamp: int, body: str
) -> dict[str, str]:
    """The three headers; one signature for each secret that holds."""
    signatures = [
        signature(secret, message_id=message_id, timestamp=timestamp, body=body)
        for secret in secrets
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
