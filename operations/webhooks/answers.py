"""What the sender of a delivery is told, whichever server took it."""

import json
from dataclasses import dataclass

#: The largest body that is read, in bytes.
MAX_BODY = 2**20


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer over HTTP. `retry_after_s` is set when sending it again is welcome."""

    status: int
    body: bytes
    content_type: str = "application/json"
    retry_after_s: int | None = None


def _refusal(status: int, detail: str, *, retry_after_s: int | None = None) -> Answer:
    body = {"type": "about:blank", "status": status, "detail": detail}
    return Answer(status, json.dumps(body).encode(), "application/problem+json", retry_after_s)


STORED = Answer(200, b'{"received": true, "new": true}')
STORED_BEFORE = Answer(200, b'{"received": true, "new": false}')
CUT_OFF = _refusal(400, "The body ended early.")
NO_ACCOUNT = _refusal(404, "There is no account of this name.")
ONLY_POST = _refusal(405, "Events are posted.")
TOO_LARGE = _refusal(413, "The body is larger than 1 MiB.")
NOT_STORED = _refusal(503, "The event could not be stored.", retry_after_s=5)


def refused(why: str) -> Answer:
    """It is not proven to be the provider's, or it is no event."""
    return _refusal(400, why)


def headers_of(answer: Answer) -> list[tuple[bytes, bytes]]:
    """Its headers over HTTP."""
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
    ]
    if answer.retry_after_s is not None:
        headers.append((b"retry-after", str(answer.retry_after_s).encode()))
    if answer is ONLY_POST:
        headers.append((b"allow", b"POST"))
    return headers
