"""What the sandbox answers: a status, headers and a body, and Stripe's error bodies.

Shapes: Stripe's API reference, "Errors".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

JsonObject = dict[str, Any]

KEY_MISMATCH_MESSAGE = (
    "Keys for idempotent requests can only be used with the same parameters they were first used "
    "with. Try using a key other than '{key}' if you meant to execute a different request."
)
KEY_IN_USE_MESSAGE = (
    "There is currently another in-progress request using this Idempotent Key (that probably means "
    "you submitted twice, and the other request is still going through): {key}."
)


@dataclass(frozen=True)
class Answer:
    """One HTTP answer before it is put on the wire."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


def as_json(status: int, value: object, headers: dict[str, str] | None = None) -> Answer:
    """An answer whose body is `value` as JSON."""
    return Answer(status, json.dumps(value).encode(), headers or {})


class StripeError(Exception):
    """A refusal in Stripe's form. `executed` says whether the endpoint had begun its work.

    Only refusals of an endpoint that had begun are saved for the idempotency key.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        executed: bool = False,
        extra: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.executed = executed
        self.error: JsonObject = {"message": message, "type": kind}
        if code is not None:
            self.error["code"] = code
            self.error["doc_url"] = f"https://stripe.com/docs/error-codes/{code.replace('_', '-')}"
        if param is not None:
            self.error["param"] = param
        self.error.update(extra or {})

    @property
    def code(self) -> str | None:
        """The machine-readable code, which many of Stripe's errors lack."""
        value = self.error.get("code")
        return value if isinstance(value, str) else None

    def answer(self) -> Answer:
        """The refusal as an HTTP answer."""
        return as_json(self.status, {"error": self.error})


def no_such(what: str, identifier: str, param: str) -> StripeError:
    """404 for an id that this account does not have; `what` is e.g. `charge`."""
    return StripeError(
        404, f"No such {what}: '{identifier}'", code="resource_missing", param=param, executed=True
    )


def key_mismatch(key: str) -> StripeError:
    """400 for a key that was first used with other parameters or another endpoint."""
    return StripeError(400, KEY_MISMATCH_MESSAGE.format(key=key), kind="idempotency_error")


def key_in_use(key: str) -> StripeError:
    """409 for a key whose first request is still running."""
    return StripeError(
        409,
        KEY_IN_USE_MESSAGE.format(key=key),
        kind="idempotency_error",
        code="idempotency_key_in_use",
    )


def unauthorized(given: str) -> StripeError:
    """401; `given` is what the Authorization header held, possibly nothing."""
    message = (
        f"Invalid API Key provided: {given[:12]}****"
        if given
        else "You did not provide an API key. Send it as 'Authorization: Bearer YOUR_SECRET_KEY'."
    )
    return StripeError(401, message)


def server_error() -> StripeError:
    """Stripe's 500: it says nothing about whether money moved."""
    return StripeError(500, "An unknown error occurred", kind="api_error", executed=True)
