"""Stripe, over the stock SDK with its retries off: every HTTP send is one we wrote down.

The facts about errors and headers are Stripe's ("Error handling", "Idempotent requests") and those
of stripe-python 16.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Never, cast

import requests
import stripe
import urllib3

from operations.domain.answers import (
    Answer,
    AnswerKind,
    PaymentFacts,
    RefundFacts,
    RefundList,
)
from operations.domain.contract import Contract, FindBy, KeyLocation, SavedAnswers
from operations.providers.base import (
    PaymentNotFound,
    ReadFailed,
    ReadRefused,
    RefundNotFound,
)
from operations.providers.stripe_objects import payment_facts, refund_facts

STRIPE_CONTRACT = Contract(
    provider="stripe",
    key_location=KeyLocation.HEADER,
    key_max_length=255,
    key_window_s=86_400,
    saved_answers=SavedAnswers.ALL_EXECUTED,
    frozen_statuses=frozenset([500]),
    find_by=frozenset([FindBy.ID, FindBy.PAYMENT]),
    lookup_conclusive_after_s=60,
    reads_per_s=25.0,
    writes_per_s=25.0,
)

_STRIPE_REASONS = frozenset(["duplicate", "fraudulent", "requested_by_customer"])
_MAX_PAGES = 200
_PAGE_SIZE = 100
_KEPT_TEXT = 2_000


class StripeProvider:
    """Refunds at Stripe. Timeouts in seconds; safe to use from several threads."""

    contract = STRIPE_CONTRACT
    endpoint = "/v1/refunds"

    def __init__(
        self,
        *,
        api_key: str,
        api_base: str | None,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> None:
        self._api_key = api_key
        self._api_base = api_base
        self._timeout = (connect_timeout_s, read_timeout_s)
        self._local = threading.local()

    def refund_parameters(
        self, *, payment: str, amount: int, reason: str, metadata: Mapping[str, str]
    ) -> dict[str, Any]:
        """The body of the send. Stripe takes one of three reasons; other texts stay with us."""
        _require_amount(amount)
        name = "payment_intent" if payment.startswith("pi_") else "charge"
        parameters: dict[str, Any] = {
            name: payment,
            "amount": amount,
            "metadata": dict(metadata),
        }
        if reason in _STRIPE_REASONS:
            parameters["reason"] = reason
        return parameters

    def create_refund(
        self, *, parameters: Mapping[str, Any], idempotency_key: str, account: str
    ) -> Answer:
        """Send once. Raises ValueError, before anything is sent, for what must not leave."""
        _require_amount(parameters.get("amount"))
        if "idempotency_key" in parameters:
            raise ValueError(
                "The idempotency key belongs in the header, not in the parameters."
            )
        if not idempotency_key or len(idempotency_key) > self.contract.key_max_length:
            raise ValueError("An idempotency key of 1 to 255 characters is needed.")
        options = _options(account) | {"idempotency_key": idempotency_key}
        started = time.monotonic()
        try:
            refund = self._client().v1.refunds.create(
                cast("Any", _in_order(parameters)), cast("Any", options)
            )
            answer = _answer_of_response(refund.last_response)
        except stripe.StripeError as error:
            answer = _answer_of_error(error)
        except Exception as error:  # noqa: BLE001 - whatever it was, it may have been sent
            answer = Answer(kind=AnswerKind.CONNECTION_LOST, message=_text(error))
        return _timed(answer, started)

    def read_payment(self, *, payment: str, account: str) -> PaymentFacts:
        """Read a payment by charge or payment intent id. Raises PaymentNotFound, ReadFailed."""
        missing = PaymentNotFound(payment)
        if not payment.startswith("pi_"):
            return payment_facts(
                charge=self._read_charge(payment, account, missing), intent=None
            )
        intent = self._read(
            lambda client: client.v1.payment_intents.retrieve(
                payment, {"expand": ["latest_charge"]}, cast("Any", _options(account))
            ),
            missing,
        )
        charge = intent.get("latest_charge")
        if isinstance(charge, str) and charge:
            charge = self._read_charge(charge, account, missing)
        return payment_facts(
            charge=charge if isinstance(charge, dict) else {}, intent=intent
        )

    def read_refund(self, *, refund_id: str, account: str) -> RefundFacts:
        """Read one refund. Raises RefundNotFound, ReadFailed."""
        body = self._read(
            lambda client: client.v1.refunds.retrieve(
                refund_id, None, cast("Any", _options(account))
            ),
            RefundNotFound(refund_id),
        )
        refund = refund_facts(body)
        if refund is None or refund.id != refund_id:
            raise ReadFailed("The provider's answer is not a refund.")
        return refund

    def list_refunds(self, *, payment: str, account: str) -> RefundList:
        """All refunds of a payment, read until `has_more` is false. Raises ReadFailed."""
        name = "payment_intent" if payment.startswith("pi_") else "charge"
        found: list[RefundFacts] = []
        after = ""
        for page in range(1, _MAX_PAGES + 1):
            parameters: dict[str, Any] = {name: payment, "limit": _PAGE_SIZE}
            if after:
                parameters["starting_after"] = after
            body = self._read(
                lambda client, parameters=parameters: client.v1.refunds.list(
                    parameters, cast("Any", _options(account))
                ),
                ReadRefused(
                    f"The provider has no payment {payment} in this account and mode."
                ),
            )
            rows = body.get("data")
            if not isinstance(rows, list):
                raise ReadFailed("The provider's answer is not a list.")
            refunds = [
                refund for refund in map(refund_facts, rows) if refund is not None
            ]
            found.extend(refunds)
            if body.get("has_more") is not True:
                complete = body.get("has_more") is False and len(refunds) == len(rows)
                return RefundList(refunds=tuple(found), complete=complete, pages=page)
            if not refunds or refunds[-1].id == after:
                return RefundList(refunds=tuple(found), complete=False, pages=page)
            after = refunds[-1].id
        return RefundList(refunds=tuple(found), complete=False, pages=_MAX_PAGES)

    def _read_charge(
        self, charge: str, account: str, missing: Exception
    ) -> dict[str, Any]:
        return self._read(
            lambda client: client.v1.charges.retrieve(
                charge, None, cast("Any", _options(account))
            ),
            missing,
        )

    def _read(
        self, call: Callable[[stripe.StripeClient], Any], missing: Exception
    ) -> dict[str, Any]:
        """One read, as a plain dict; `missing` is raised when the provider has no such object."""
        try:
            body = json.loads(call(self._client()).last_response.body)
        except stripe.StripeError as error:
            _raise_read_error(error, missing)
        except Exception as error:
            raise ReadFailed(_text(error)) from error
        if not isinstance(body, dict):
            raise ReadFailed("The provider's answer is not an object.")
        return body

    def _client(self) -> stripe.StripeClient:
        client: stripe.StripeClient | None = getattr(self._local, "client", None)
        if client is None:
            session = requests.Session()
            session.max_redirects = 0
            bases: Any = {"api": self._api_base} if self._api_base else {}
            client = stripe.StripeClient(
                self._api_key,
                max_network_retries=0,
                base_addresses=bases,
                http_client=stripe.RequestsClient(
                    timeout=self._timeout, session=session
                ),
            )
            self._local.client = client
        return client


def _options(account: str) -> dict[str, Any]:
    return {"stripe_account": account} if account else {}


def _in_order(value: Any) -> Any:
    """The same body, byte for byte, on every attempt, however the store orders its keys."""
    if isinstance(value, Mapping):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return value


def _require_amount(amount: object) -> None:
    """A missing amount would be dropped by the SDK, and Stripe would refund everything."""
    if isinstance(amount, bool) or not isinstance(amount, int) or amount <= 0:
        raise ValueError("A refund needs an amount: an integer above zero.")


def _answer_of_response(response: Any) -> Answer:
    body = response.data
    error = body.get("error") if isinstance(body, dict) else None
    return Answer(
        kind=AnswerKind.UNREADABLE
        if refund_facts(body) is None
        else AnswerKind.RESPONSE,
        http_status=response.code,
        body=json.loads(json.dumps(body)),
        refund=refund_facts(body),
        error_type="unknown" if error else "",
        **_headers(response.headers),
    )


def _answer_of_error(error: stripe.StripeError) -> Answer:
    if isinstance(error, stripe.APIConnectionError):
        return Answer(kind=_connection_kind(error), message=_text(error))
    status = error.http_status
    if status is None:
        return Answer(kind=AnswerKind.CONNECTION_LOST, message=_text(error))
    body = error.json_body
    details = body.get("error") if isinstance(body, dict) else None
    if not isinstance(details, dict):
        kind = AnswerKind.UNREADABLE if 200 <= status < 400 else AnswerKind.RESPONSE
        return Answer(
            kind=kind,
            http_status=status,
            body=(error.http_body or "")[:_KEPT_TEXT],
            message="The answer is not one of the provider's.",
            **_headers(error.headers or {}),
        )
    return Answer(
        kind=AnswerKind.RESPONSE,
        http_status=status,
        body=body,
        error_type=str(details.get("type") or "unknown"),
        error_code=str(details.get("code") or details.get("message_code") or ""),
        error_param=str(details.get("param") or ""),
        message=str(details.get("message") or "")[:500],
        **_headers(error.headers or {}),
    )


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
    should_retry = {"true": True, "false": False}.get(
        named.get("stripe-should-retry", "")
    )
    return {
        "replayed": named.get("idempotent-replayed", "").lower() == "true",
        "should_retry": should_retry,
        "retry_after_s": _seconds(named.get("retry-after", "")),
        "request_id": named.get("request-id", "")[:255],
    }


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 3_600 else None


def _raise_read_error(error: stripe.StripeError, missing: Exception) -> Never:
    if error.http_status == 404:
        raise missing from error
    if error.http_status in (400, 401, 403):
        raise ReadRefused(_text(error)) from error
    raise ReadFailed(_text(error)) from error


def _timed(answer: Answer, started: float) -> Answer:
    values = {name: getattr(answer, name) for name in answer.__dataclass_fields__}
    return Answer(**values | {"duration_ms": int((time.monotonic() - started) * 1000)})


def _text(error: Exception) -> str:
    """The message without the SDK's advice to write to Stripe's support."""
    return (str(error).splitlines() or [type(error).__name__])[0][:500]
