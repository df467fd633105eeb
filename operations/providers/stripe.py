"""Stripe, over the stock SDK with its retries off: every HTTP send is one we wrote down.

`stripe_answers` reads how a send ended, `stripe_objects` what the objects say.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Never, cast

import requests
import stripe

from operations.domain.answers import (
    Answer,
    AnswerKind,
    EventPage,
    PaymentFacts,
    RefundFacts,
    RefundList,
)
from operations.domain.contract import Contract, FindBy, KeyLocation, Page, SavedAnswers
from operations.domain.refund_state import RefundStatus
from operations.providers.base import (
    PaymentNotFound,
    ReadFailed,
    ReadRefused,
    RefundNotFound,
)
from operations.providers.bounded_http import bounded_session
from operations.providers.stripe_answers import (
    answer_of_error,
    answer_of_response,
    answer_of_text,
    first_line,
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
    pages=(
        (
            Page.REFUND,
            "https://dashboard.stripe.com/refunds/{id}",
            "https://dashboard.stripe.com/test/refunds/{id}",
        ),
        (
            Page.PAYMENT,
            "https://dashboard.stripe.com/payments/{id}",
            "https://dashboard.stripe.com/test/payments/{id}",
        ),
    ),
)

#: What is fetched; Stripe takes up to 20 types.
EVENT_TYPES = (
    *("refund.created", "refund.updated", "refund.failed"),
    *("charge.refunded", "charge.refund.updated"),
    *("charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed"),
    *("charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated"),
)
_STRIPE_REASONS = frozenset(["duplicate", "fraudulent", "requested_by_customer"])
_MAX_PAGES = 200
_PAGE_SIZE = 100


class StripeProvider:
    """Refunds at Stripe, or at a provider that is spoken to like it and promises less.

    Timeouts in seconds: one call ends after both together. Safe to use from several threads.
    """

    endpoint = "/v1/refunds"

    def __init__(
        self,
        *,
        api_key: str,
        api_base: str | None,
        connect_timeout_s: float,
        read_timeout_s: float,
        contract: Contract = STRIPE_CONTRACT,
    ) -> None:
        self.contract = contract
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
            raise ValueError("The idempotency key belongs in the header, not in the parameters.")
        options = _options(account)
        if self.contract.has_key:
            longest = self.contract.key_max_length
            if not idempotency_key or len(idempotency_key) > longest:
                raise ValueError(f"An idempotency key of 1 to {longest} characters is needed.")
            options["idempotency_key"] = idempotency_key
        started = time.monotonic()
        self._local.response = None
        try:
            refund = self._client().v1.refunds.create(
                cast("Any", _in_order(parameters)), cast("Any", options)
            )
            answer = self._in_our_words(answer_of_response(refund.last_response))
        except stripe.StripeError as error:
            answer = answer_of_error(error)
        except Exception as error:
            # Whatever it was, the bytes may have left.
            answer = self._answer_so_far(error)
        return replace(answer, duration_ms=int((time.monotonic() - started) * 1000))

    def read_payment(self, *, payment: str, account: str) -> PaymentFacts:
        """Read a payment by charge or payment intent id. Raises PaymentNotFound, ReadFailed."""
        missing = PaymentNotFound(payment)
        if not payment.startswith("pi_"):
            return payment_facts(charge=self._read_charge(payment, account, missing), intent=None)
        intent = self._read(
            lambda client: client.v1.payment_intents.retrieve(
                payment, {"expand": ["latest_charge"]}, cast("Any", _options(account))
            ),
            missing,
        )
        charge = intent.get("latest_charge")
        if isinstance(charge, str) and charge:
            charge = self._read_charge(charge, account, missing)
        return payment_facts(charge=charge if isinstance(charge, dict) else {}, intent=intent)

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
        return self._refund_in_our_words(refund)

    def list_refunds(self, *, payment: str, account: str) -> RefundList:
        """All refunds of a payment, read until `has_more` is false. Raises ReadFailed."""
        name = "payment_intent" if payment.startswith("pi_") else "charge"
        found: list[RefundFacts] = []
        after = ""
        for page in range(1, _MAX_PAGES + 1):
            parameters: dict[str, Any] = {name: payment, "limit": _PAGE_SIZE}
            if after:
                parameters["starting_after"] = after
            body = self._read_page(parameters, account)
            rows = body.get("data")
            if not isinstance(rows, list):
                raise ReadFailed("The provider's answer is not a list.")
            refunds = [refund for refund in map(refund_facts, rows) if refund is not None]
            found.extend(map(self._refund_in_our_words, refunds))
            if body.get("has_more") is not True:
                complete = body.get("has_more") is False and len(refunds) == len(rows)
                return RefundList(refunds=tuple(found), complete=complete, pages=page)
            if not refunds or refunds[-1].id == after:
                return RefundList(refunds=tuple(found), complete=False, pages=page)
            after = refunds[-1].id
        return RefundList(refunds=tuple(found), complete=False, pages=_MAX_PAGES)

    def list_events(self, *, since: int, after: str, account: str) -> EventPage:
        """One page of events about refunds, newest first (Stripe, "List all events").

        Raises ReadFailed.
        """
        parameters: dict[str, Any] = {
            "limit": _PAGE_SIZE,
            "created": {"gte": since},
            "types": list(EVENT_TYPES),
        }
        if after:
            parameters["starting_after"] = after
        body = self._read(
            lambda client: client.v1.events.list(
                cast("Any", parameters), cast("Any", _options(account))
            ),
            ReadRefused("The provider does not list these events (any more)."),
        )
        rows = body.get("data")
        if not isinstance(rows, list) or not isinstance(body.get("has_more"), bool):
            raise ReadFailed("The provider's answer is not a list.")
        events = tuple(row for row in rows if isinstance(row, Mapping))
        last = str(events[-1].get("id", "")) if events else ""
        if body["has_more"] and last in ("", after):
            raise ReadFailed("The provider's list of events does not go on.")
        return EventPage(events=events, next_after=last if body["has_more"] else "")

    def _answer_so_far(self, error: Exception) -> Answer:
        """What had come when something broke: an answer the SDK could not read, or nothing."""
        response: requests.Response | None = self._local.response
        with contextlib.suppress(requests.RequestException, RuntimeError):
            if response is not None:
                text = response.content.decode("utf-8", "replace")
                return answer_of_text(response.status_code, response.headers, text)
        return Answer(kind=AnswerKind.CONNECTION_LOST, message=first_line(error))

    def _remember(self, response: requests.Response, *_: Any, **__: Any) -> None:
        self._local.response = response

    def _in_our_words(self, answer: Answer) -> Answer:
        if answer.refund is None:
            return answer
        return replace(answer, refund=self._refund_in_our_words(answer.refund))

    def _refund_in_our_words(self, refund: RefundFacts) -> RefundFacts:
        """A provider's own word for "received, its end comes later" is pending in ours."""
        if refund.status in self.contract.pending_statuses:
            return replace(refund, status=RefundStatus.PENDING)
        return refund

    def _read_page(self, parameters: Mapping[str, Any], account: str) -> dict[str, Any]:
        return self._read(
            lambda client: client.v1.refunds.list(
                cast("Any", parameters), cast("Any", _options(account))
            ),
            ReadRefused("The provider has no such payment in this account and mode."),
        )

    def _read_charge(self, charge: str, account: str, missing: Exception) -> dict[str, Any]:
        return self._read(
            lambda client: client.v1.charges.retrieve(charge, None, cast("Any", _options(account))),
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
            raise ReadFailed(first_line(error)) from error
        if not isinstance(body, dict):
            raise ReadFailed("The provider's answer is not an object.")
        return body

    def _client(self) -> stripe.StripeClient:
        client: stripe.StripeClient | None = getattr(self._local, "client", None)
        if client is None:
            session = bounded_session(sum(self._timeout))
            session.hooks["response"].append(self._remember)
            bases: Any = {"api": self._api_base} if self._api_base else {}
            client = stripe.StripeClient(
                self._api_key,
                max_network_retries=0,
                base_addresses=bases,
                http_client=stripe.RequestsClient(timeout=self._timeout, session=session),
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


def _raise_read_error(error: stripe.StripeError, missing: Exception) -> Never:
    if error.http_status == 404:
        raise missing from error
    if error.http_status in (400, 401, 403):
        raise ReadRefused(first_line(error)) from error
    raise ReadFailed(first_line(error)) from error
