"""Which events are delivered, when, how often and to which address; and their signature.

Source of the signature: Stripe, "Verify webhook signatures manually".
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .answers import JsonObject
from .events import Event, EventLog

MODES = ("deliver", "hold", "drop", "double", "reorder")
DEFAULT_REORDER = 2


class ModeNotPossibleError(ValueError):
    """The control path asked for a way of delivery that does not exist."""


@dataclass(frozen=True)
class Address:
    """Where events go and the secret that signs them."""

    url: str
    secret: str


@dataclass
class Rule:
    """A mode for the events of one payment, or of all. Without `times` it stays until changed.

    For `reorder`, `times` is how many events are collected before they go out in reverse.
    """

    mode: str
    payment: str | None = None
    times: int | None = None
    collected: list[Event] = field(default_factory=list)

    def covers(self, event: Event) -> bool:
        """Whether the event is meant."""
        return self.payment is None or self.payment in event.payments


def signature(secret: str, body: bytes, timestamp: int) -> str:
    """The `Stripe-Signature` header for a raw body; `timestamp` in real UTC seconds."""
    signed = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={signed}"


def raw_body(event: Event) -> bytes:
    """The event's bytes, the same on every delivery."""
    return json.dumps(event.body).encode()


class Addresses:
    """The platform's address, and those of connected accounts that have one of their own."""

    def __init__(self, default: Address | None) -> None:
        self.default = default
        self.of_account: dict[str, Address] = {}

    def of(self, event: Event) -> Address | None:
        """Where this event goes, if anywhere."""
        return self.of_account.get(event.account, self.default)


class Webhooks:
    """Sorts every new event by the rules; `send` queues events to be delivered one by one."""

    def __init__(
        self, log: EventLog, addresses: Addresses, send: Callable[[Sequence[Event]], None]
    ) -> None:
        self.log = log
        self.addresses = addresses
        self._send = send
        self.rules: list[Rule] = []
        self._held: dict[str, Event] = {}

    @property
    def held(self) -> list[Event]:
        """The events that are being held, oldest first."""
        return list(self._held.values())

    def announce(self, event: Event) -> None:
        """Deliver, hold, drop, double or collect a new event. The newest matching rule decides."""
        rule = next((rule for rule in reversed(self.rules) if rule.covers(event)), None)
        if rule is None:
            self._queue([event])
            return
        match rule.mode:
            case "hold":
                self._hold(event)
            case "drop":
                self.log.set_delivery(event, "dropped")
            case "double":
                self._queue([event])
                self._queue([event])
            case "reorder":
                self._collect(rule, event)
                return
        if rule.times is not None:
            rule.times -= 1
            if rule.times <= 0:
                self.rules.remove(rule)

    def set_mode(self, mode: str, *, payment: str | None, times: int | None) -> None:
        """Change how new events are treated; `deliver` ends the rules with the same match."""
        if mode not in MODES:
            raise ModeNotPossibleError(f"mode {mode!r} is none of {', '.join(MODES)}")
        self._end_rules(payment)
        if mode != "deliver":
            self.rules.append(Rule(mode, payment, times))

    def release(self, payment: str | None = None, *, reverse: bool = False) -> int:
        """Deliver what is held, in order or reversed, and stop holding; says how many events."""
        self._end_rules(payment)
        chosen = [event for event in self.held if payment is None or payment in event.payments]
        for event in chosen:
            del self._held[event.id]
        self._queue(chosen[::-1] if reverse else chosen)
        return len(chosen)

    def resend(self, event: Event) -> None:
        """Deliver an event once more, or at last."""
        self._held.pop(event.id, None)
        self._queue([event])

    def resume(self) -> None:
        """After a restart: hold what was held and queue what was not yet delivered."""
        for event in self.log.events.values():
            if event.delivery == "held":
                self._held[event.id] = event
            elif event.delivery == "queued":
                self._send([event])

    def clear(self) -> None:
        """Forget rules and held events, for a reset."""
        self.rules.clear()
        self._held.clear()

    def state(self) -> JsonObject:
        """For the control path: the address, the rules, what is held."""
        default = self.addresses.default
        return {
            "url": default.url if default else None,
            "account_urls": {name: a.url for name, a in self.addresses.of_account.items()},
            "rules": [
                {"mode": rule.mode, "payment": rule.payment, "times": rule.times}
                for rule in self.rules
            ],
            "held": [event.id for event in self.held],
        }

    def _end_rules(self, payment: str | None) -> None:
        self.rules = [
            rule for rule in self.rules if payment is not None and rule.payment != payment
        ]

    def _hold(self, event: Event) -> None:
        self._held[event.id] = event
        self.log.set_delivery(event, "held")

    def _collect(self, rule: Rule, event: Event) -> None:
        self._hold(event)
        rule.collected.append(event)
        if len(rule.collected) >= (rule.times or DEFAULT_REORDER):
            self.rules.remove(rule)
            for collected in rule.collected:
                self._held.pop(collected.id, None)
            self._queue(rule.collected[::-1])

    def _queue(self, events: Sequence[Event]) -> None:
        addressed = [event for event in events if self.addresses.of(event) is not None]
        for event in addressed:
            self.log.set_delivery(event, "queued")
        if addressed:
            self._send(addressed)
