"""A client of the control path, for the demo and the tests. Amounts in Stripe's unit, times in
seconds."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

JsonObject = dict[str, Any]
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ControlRefusedError(Exception):
    """The sandbox refused a control call; the text is its answer."""


class NotInTimeError(Exception):
    """What was waited for did not happen in time."""


class SandboxControl:
    """Talks to a running sandbox, in this process or another."""

    def __init__(self, url: str, timeout_s: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s

    def payment(
        self,
        *,
        amount: int,
        currency: str = "usd",
        captured: bool | int = True,
        charge_id: str | None = None,
        payment_intent_id: str | None = None,
        account: str | None = None,
        type: str = "card",
        metadata: Mapping[str, str] | None = None,
    ) -> JsonObject:
        """A payment made elsewhere; gives back its `charge` and `payment_intent`."""
        given = {
            "amount": amount,
            "currency": currency,
            "captured": captured,
            "charge_id": charge_id,
            "payment_intent_id": payment_intent_id,
            "account": account,
            "type": type,
            "metadata": dict(metadata or {}),
        }
        return self._call("POST", "payments", given)

    def fault(
        self,
        kind: str,
        *,
        endpoint: str = "refunds.create",
        when: str = "before",
        times: int = 1,
        seconds: float | None = None,
        code: str | None = None,
        message: str | None = None,
        param: str | None = None,
        then: str = "drop",
        reset: bool = False,
        location: str | None = None,
        retry_after_s: int | None = None,
        payment: str | None = None,
        operation: str | None = None,
        key: str | None = None,
    ) -> int:
        """Let the next `times` matching calls meet a fault; gives back its number."""
        given = {
            "kind": kind,
            "endpoint": endpoint,
            "when": when,
            "times": times,
            "seconds": seconds,
            "code": code,
            "message": message,
            "param": param,
            "then": then,
            "reset": reset,
            "location": location,
            "retry_after_s": retry_after_s,
            "match": {"payment": payment, "operation": operation, "key": key},
        }
        return int(self._call("POST", "faults", given)["id"])

    def lag(
        self, seconds: float, *, payment: str | None = None, endpoint: str = "refunds.list"
    ) -> None:
        """Leave what is younger than this out of lists, until changed; 0 ends it.

        `endpoint` may be `events.list`.
        """
        self.fault("lag", endpoint=endpoint, seconds=seconds, payment=payment)

    def faults(self) -> list[JsonObject]:
        """The faults that no call has met yet."""
        return self._rows("faults", "faults")

    def clear_faults(self) -> None:
        """Forget all faults and the lag."""
        self._call("DELETE", "faults")

    def webhook_mode(
        self, mode: str, *, payment: str | None = None, times: int | None = None
    ) -> None:
        """`deliver`, `hold`, `drop`, `double` or `reorder` new events; without `times` for good."""
        match = {"payment": payment} if payment else {}
        self._call("POST", "webhooks", {"mode": mode, "match": match, "times": times})

    def hold_webhooks(self, *, payment: str | None = None, times: int | None = None) -> None:
        """Keep new events back until they are released."""
        self.webhook_mode("hold", payment=payment, times=times)

    def release_webhooks(self, *, payment: str | None = None, reverse: bool = False) -> int:
        """Deliver what is held and stop holding; gives back how many events."""
        match = {"payment": payment} if payment else {}
        given = {"match": match, "reverse": reverse}
        return int(self._call("POST", "webhooks/release", given)["released"])

    def webhook_url(
        self, url: str | None, *, account: str | None = None, secret: str | None = None
    ) -> None:
        """Send events, or those of one account, elsewhere; None sends them nowhere."""
        given = {"url": url, "account": account, "secret": secret}
        self._call("POST", "webhooks/url", given)

    def webhooks(self) -> JsonObject:
        """The address, the rules, the held events, and how many are `queued` and `retrying`."""
        return self._call("GET", "webhooks")

    def resend_event(self, event_id: str) -> None:
        """Deliver an event once more."""
        self._call("POST", f"events/{event_id}/resend", {})

    def set_refund_status(
        self, refund_id: str, status: str, *, failure_reason: str | None = None
    ) -> None:
        """Let a refund change by itself, as banks do."""
        given = {"status": status, "failure_reason": failure_reason}
        self._call("POST", f"refunds/{refund_id}/status", given)

    def finish_refunds(self, status: str = "succeeded", *, payment: str | None = None) -> int:
        """Bring the refunds that were only received to their end; gives back how many."""
        given = {"status": status, "payment": payment}
        return int(self._call("POST", "refunds/finish", given)["finished"])

    def refund_outside(
        self,
        payment: str,
        *,
        amount: int | None = None,
        metadata: Mapping[str, str] | None = None,
        status: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> str:
        """A refund made without the product, as from the dashboard; gives back its id."""
        given = {
            "charge": payment,
            "amount": amount,
            "metadata": dict(metadata or {}),
            "status": status,
            "reason": reason,
            "idempotency_key": idempotency_key,
        }
        return str(self._call("POST", "refunds", given)["refund"])

    def dispute(self, charge_id: str, *, refundable: bool = False) -> None:
        """Open a dispute, or an inquiry if the charge stays refundable."""
        self._call("POST", f"charges/{charge_id}/dispute", {"refundable": refundable})

    def advance_clock(self, seconds: float) -> float:
        """Move the sandbox's clock; gives back its time in UTC seconds."""
        return float(self._call("POST", "clock", {"advance_s": seconds})["now"])

    def expire_keys(self, key: str | None = None) -> int:
        """Let the provider forget a key, or all; gives back how many."""
        return int(self._call("POST", "keys/expire", {"key": key})["expired"])

    def reset(self) -> None:
        """Forget everything but the webhook addresses."""
        self._call("POST", "reset", {})

    def counts(self, *, payment: str | None = None) -> JsonObject:
        """What the provider counted, in total, `by_payment` and `by_operation`."""
        return self._call("GET", "counts", payment=payment)

    def sends(self, *, payment: str | None = None) -> list[JsonObject]:
        """Every `POST /v1/refunds` that arrived, oldest first."""
        return self._rows("sends", "sends", payment=payment)

    def in_flight(self) -> list[JsonObject]:
        """The calls that are being held right now."""
        return self._rows("in_flight", "in_flight")

    def let_go(self, key: str | None = None) -> int:
        """End the holding of calls with this key, or of all, early; gives back how many."""
        return int(self._call("POST", "in_flight/release", {"key": key})["released"])

    def deliveries(self) -> list[JsonObject]:
        """Every try to deliver an event."""
        return self._rows("deliveries", "deliveries")

    def healthy(self) -> bool:
        """Whether the sandbox answers."""
        try:
            with OPENER.open(f"{self.url}/healthz", timeout=self.timeout_s) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def wait_in_flight(self, number: int = 1, *, timeout_s: float = 5.0) -> list[JsonObject]:
        """Wait until at least `number` calls are being held; raises `NotInTimeError`."""
        over = time.monotonic() + timeout_s
        while len(held := self.in_flight()) < number:
            if time.monotonic() > over:
                raise NotInTimeError(f"{len(held)} of {number} calls are held: {held}")
            time.sleep(0.01)
        return held

    def wait_delivered(self, *, timeout_s: float = 5.0) -> None:
        """Wait until nothing is queued or waiting to be tried again, held events aside."""
        over = time.monotonic() + timeout_s
        while (state := self.webhooks())["queued"] + state["retrying"]:
            if time.monotonic() > over:
                raise NotInTimeError(f"events are still to be delivered: {state}")
            time.sleep(0.01)

    def _rows(self, path: str, name: str, **query: str | None) -> list[JsonObject]:
        rows: list[JsonObject] = self._call("GET", path, None, **query)[name]
        return rows

    def _call(
        self, method: str, path: str, given: JsonObject | None = None, **query: str | None
    ) -> JsonObject:
        asked = urlencode({name: value for name, value in query.items() if value is not None})
        request = urllib.request.Request(  # noqa: S310 (the address is the caller's own sandbox)
            f"{self.url}/_sandbox/{path}" + (f"?{asked}" if asked else ""),
            data=None if given is None else json.dumps(given).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        try:
            with OPENER.open(request, timeout=self.timeout_s) as answer:
                body: JsonObject = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise ControlRefusedError(error.read().decode()) from error
        return body
