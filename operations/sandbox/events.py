"""The event log: what Stripe would announce, each event as it was rendered when it was made.

Source: Stripe, "The Event object" and "Types of events". Kept for 30 days. An event carries the
idempotency key of the call that caused it, or null when nobody's call did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import shapes
from .answers import JsonObject, no_such
from .ledger import Charge, Refund, new_id
from .state import Clock, Record

API_VERSION = "2026-04-22.dahlia"
KEPT_S = 30 * 86_400


@dataclass(frozen=True)
class Cause:
    """The call that an event comes from; both empty for a change that came by itself."""

    request_id: str | None = None
    key: str | None = None


@dataclass
class Event:
    """One event. `delivery` is `queued`, `held`, `dropped`, `done`, `given_up` or `none`."""

    id: str
    seq: int
    account: str
    payments: tuple[str, ...]
    body: JsonObject
    delivery: str = "none"

    @property
    def created(self) -> int:
        """UTC seconds on the sandbox's clock."""
        return int(self.body["created"])

    @property
    def type(self) -> str:
        """For instance `refund.created`."""
        return str(self.body["type"])


class EventLog:
    """All events, oldest first; each one is handed to `announce` when it is made."""

    def __init__(self, clock: Clock, record: Record) -> None:
        self.clock = clock
        self._record = record
        self.events: dict[str, Event] = {}
        self._last_seq = 0
        self.announce: Callable[[Event], None] = lambda event: None

    def refund_created(self, charge: Charge, refund: Refund, cause: Cause) -> None:
        """`refund.created` with the refund, `charge.refunded` with the charge."""
        before = charge.amount_refunded - (refund.amount if refund.live else 0)
        self._emit("refund.created", shapes.refund_object(refund), charge, cause)
        self._emit(
            "charge.refunded",
            shapes.charge_object(charge),
            charge,
            cause,
            {"amount_refunded": before, "refunded": False},
        )

    def refund_changed(
        self, charge: Charge, refund: Refund, cause: Cause, previous: JsonObject
    ) -> None:
        """`refund.updated` and its old twin; before them `refund.failed` if it has just failed."""
        if refund.status == "failed" and "status" in previous:
            self._emit("refund.failed", shapes.refund_object(refund), charge, cause)
        for kind in ("refund.updated", "charge.refund.updated"):
            self._emit(kind, shapes.refund_object(refund), charge, cause, previous)

    def dispute_opened(self, charge: Charge) -> None:
        """`charge.dispute.created` with a dispute."""
        dispute = shapes.dispute_object(charge, new_id("du"), self.clock.seconds())
        self._emit("charge.dispute.created", dispute, charge, Cause())

    def event(self, account: str, identifier: str) -> Event:
        """The account's event with this id, or 404 when there is none or it is too old."""
        event = self.events.get(identifier)
        if event is None or event.account != account or self._is_over(event):
            raise no_such("event", identifier, "id")
        return event

    def of_account(self, account: str) -> list[Event]:
        """The account's events of the last 30 days, oldest first."""
        return [
            event
            for event in self.events.values()
            if event.account == account and not self._is_over(event)
        ]

    def set_delivery(self, event: Event, delivery: str) -> None:
        """Note how far the event's delivery is."""
        event.delivery = delivery
        self._record("event_delivery", {"id": event.id, "delivery": delivery})

    def clear(self) -> None:
        """Forget everything, for a reset."""
        self.events.clear()

    def restore(self, kind: str, payload: JsonObject) -> bool:
        """Take in one journal entry; says whether it was one of ours."""
        if kind == "event":
            event = Event(**{**payload, "payments": tuple(payload["payments"])})
            self.events[event.id] = event
            self._last_seq = max(self._last_seq, event.seq)
        elif kind == "event_delivery":
            if payload["id"] in self.events:
                self.events[payload["id"]].delivery = payload["delivery"]
        else:
            return False
        return True

    def snapshot(self) -> Iterator[tuple[str, JsonObject]]:
        """Journal entries for all events that are not too old."""
        for event in self.events.values():
            if not self._is_over(event):
                yield "event", vars(event)

    def _emit(
        self,
        kind: str,
        shape: JsonObject,
        charge: Charge,
        cause: Cause,
        previous: JsonObject | None = None,
    ) -> None:
        data: JsonObject = {"object": shape}
        if previous is not None:
            data["previous_attributes"] = previous
        body: JsonObject = {
            "id": new_id("evt"),
            "object": "event",
            "api_version": API_VERSION,
            "created": self.clock.seconds(),
            "data": data,
            "livemode": False,
            "pending_webhooks": 1,
            "request": {"id": cause.request_id, "idempotency_key": cause.key},
            "type": kind,
        }
        if charge.account:
            body["account"] = charge.account
        self._last_seq += 1
        event = Event(body["id"], self._last_seq, charge.account, charge.payments, body)
        self.events[event.id] = event
        self.announce(event)
        self._record("event", vars(event))

    def _is_over(self, event: Event) -> bool:
        return self.clock.now() >= event.created + KEPT_S
