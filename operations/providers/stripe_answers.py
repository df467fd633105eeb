"""Reading how one send ended: from the SDK's response or error to an answer in our words.

Sources: Stripe, "Error handling" and "Idempotent requests"; stripe-python 16, whose error classes
say less than the HTTP status and the chain of causes.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import requests
import stripe
import urllib3

from operations.domain.answers import Answer, AnswerKind
from operations.domain.masking import masked_text
from operations.domain.privacy import kept
from operations.providers.storable import storable, storable_text
from operations.providers.stripe_objects import refund_facts

_KEPT_TEXT = 2_000
_NETWORK_ERROR = re.compile(r"\(Network error: (.*)\)", re.DOTALL)
_IN_MEMORY = re.compile(r"<\S+ object at 0x[0-9a-f]+>:? ?")
#: A longer pause than this outlives every key window, in seconds.
_LONGEST_PAUSE_S = 30 * 86_400.0


def answer_of_response(response: Any) -> Answer:
    """An answer with a 2xx status and a JSON body."""
    said = storable(json.loads(json.dumps(response.data)))
    refund = refund_facts(said)
    error = said.get("error") if isinstance(said, dict) else None
    return Answer(
        kind=AnswerKind.UNREADABLE if refund is None else AnswerKind.RESPONSE,
        http_status=response.code,
        body=kept(said),
        refund=refund,
        error_type="unknown" if error else "",
        **_headers(response.headers),
    )


def answer_of_error(error: stripe.StripeError) -> Answer:
    """An error answer, an answer that is none of Stripe's, or a connection that broke."""
    if isinstance(error, stripe.APIConnectionError):
        return Answer(kind=_connection_kind(error), message=_network_error(error))
    status = error.http_status
    if status is None:
        return Answer(kind=AnswerKind.CONNECTION_LOST, message=first_line(error))
    body = storable(error.json_body)
    details = body.get("error") if isinstance(body, dict) else None
    if not isinstance(details, dict):
        return answer_of_text(status, error.headers or {}, _as_text(error.http_body))
    return Answer(
        kind=AnswerKind.RESPONSE,
        http_status=status,
        body=kept(body),
        error_type=str(details.get("type") or "unknown"),
        error_code=str(details.get("code") or details.get("message_code") or ""),
        error_param=str(details.get("param") or ""),
        message=masked_text(str(details.get("message") or ""))[:500],
        **_headers(error.headers or {}),
    )


def answer_of_text(status: int, headers: Mapping[str, str], text: str) -> Answer:
    """An answer whose body is none of the provider's, or none that the SDK can read."""
    return Answer(
        kind=AnswerKind.UNREADABLE if 200 <= status < 400 else AnswerKind.RESPONSE,
        http_status=status,
        body=masked_text(storable_text(text[:_KEPT_TEXT])),
        message="The answer is not one of the provider's.",
        **_headers(headers),
    )


def first_line(error: Exception) -> str:
    """The message without the SDK's advice to write to Stripe's support."""
    return storable_text((str(error).splitlines() or [type(error).__name__])[0][:500])


def _network_error(error: Exception) -> str:
    """What broke, out of the SDK's message, without the names of objects in memory."""
    said = _NETWORK_ERROR.search(str(error))
    if said is None:
        return first_line(error)
    return storable_text(_IN_MEMORY.sub("", said[1])[:500])


def _as_text(body: object) -> str:
    if isinstance(body, bytes):
        return body.decode("utf-8", "replace")
    return body if isinstance(body, str) else ""


def _connection_kind(error: stripe.APIConnectionError) -> AnswerKind:
    """Not sent only when the connection was never made, and no proxy stood between."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        reason = getattr(cause, "reason", None)
        argument = cause.args[0] if cause.args else None
        cause = next(
            (
                item
                for item in (cause.__cause__, cause.__context__, reason, argument)
                if isinstance(item, BaseException) and item not in chain
            ),
            None,
        )
    if any(isinstance(item, requests.exceptions.TooManyRedirects) for item in chain):
        return AnswerKind.UNREADABLE
    proxied = (requests.exceptions.ProxyError, urllib3.exceptions.ProxyError)
    never_made = (
        urllib3.exceptions.NewConnectionError,
        urllib3.exceptions.ConnectTimeoutError,
        requests.exceptions.ConnectTimeout,
    )
    if any(isinstance(item, proxied) for item in chain):
        return AnswerKind.CONNECTION_LOST
    if any(isinstance(item, never_made) for item in chain):
        return AnswerKind.NOT_SENT
    return AnswerKind.CONNECTION_LOST


def _headers(headers: Mapping[str, str]) -> dict[str, Any]:
    named = {str(name).lower(): value for name, value in headers.items()}
    should_retry = {"true": True, "false": False}.get(named.get("stripe-should-retry", ""))
    return {
        "replayed": named.get("idempotent-replayed", "").lower() == "true",
        "should_retry": should_retry,
        "retry_after_s": _pause_s(named.get("retry-after", ""), named.get("date", "")),
        "request_id": named.get("request-id", "")[:255],
    }


def _pause_s(text: str, date: str) -> float | None:
    """The seconds of a Retry-After header, given as a number or as a time (RFC 9110, 10.2.3).

    A time counts from the answer's own Date, so that no clock of ours comes in.
    """
    try:
        value = float(text)
    except ValueError:
        moment, sent = _moment(text), _moment(date)
        if moment is None or sent is None:
            return None
        value = max(0.0, (moment - sent).total_seconds())
    return min(value, _LONGEST_PAUSE_S) if value >= 0 else None


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
