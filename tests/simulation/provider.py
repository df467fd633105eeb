"""The provider of a simulated world: Stripe's rules for keys, refunds and lists, in memory.

It is built on the sandbox's objects and answers through the product's own readers of them. What
happens to a call on its way is a `Fate`; the rules here hold whatever the fate is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from operations.domain.answers import (
    Answer,
    AnswerKind,
    EventPage,
    PaymentFacts,
    RefundFacts,
    RefundList,
)
from operations.domain.identity import METADATA_OPERATION
from operations.providers import PaymentNotFound, ReadFailed, RefundNotFound
from operations.providers.stripe import STRIPE_CONTRACT, StripeProvider
from operations.providers.stripe_objects import payment_facts, refund_facts
from operations.sandbox.ledger import Charge, Refund
from operations.sandbox.shapes import charge_object, refund_object
from tests.simulation.clock import Clock
from tests.simulation.fates import CONNECTION_LOST, NOT_SENT, Fate, answered, draw_life, refusal
from tests.simulation.records import Flight, Made, SavedKey, Send
from tests.simulation.weather import Weather

#: Keys are kept for no longer than Stripe promises: the worst that it allows.
KEY_KEPT_S = STRIPE_CONTRACT.key_window_s or 86_400
#: When the product's client stops waiting for an answer, in seconds.
READ_TIMEOUT_S = 10.0


@dataclass
class Surroundings:
    """What the provider needs of its world. `travel` lets time pass and others act meanwhile."""

    clock: Clock
    rng: Random
    weather: Weather
    draw_fate: Callable[[bool], Fate]
    travel: Callable[[float], None]
    reached: Callable[[str], None]
    announce: Callable[[str, Made, str], None]
    note: Callable[..., None]


@dataclass
class SimulatedProvider:
    """Implements `operations.providers.Provider`. `sends` is what it counted by itself."""

    around: Surroundings
    charges: dict[str, Charge] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)
    keys: dict[str, SavedKey] = field(default_factory=dict)
    sends: list[Send] = field(default_factory=list)
    flights: list[Flight] = field(default_factory=list)
    last_answer: Answer | None = None
    contract = STRIPE_CONTRACT
    endpoint = StripeProvider.endpoint
    refund_parameters = StripeProvider.refund_parameters

    # --- What the product calls -------------------------------------------------------------

    def create_refund(
        self, *, parameters: Mapping[str, Any], idempotency_key: str, account: str
    ) -> Answer:
        """Send once, and let the fate decide what becomes of it on either way."""
        flight = Flight(
            key=idempotency_key,
            payment=str(parameters.get("charge") or parameters["payment_intent"])[3:],
            began=self.around.clock.now,
            offset_s=self.around.clock.offset_s,
        )
        self.flights.append(flight)
        try:
            return self._travel_and_arrive(dict(parameters), idempotency_key)
        finally:
            flight.ended = self.around.clock.now

    def _travel_and_arrive(self, parameters: dict[str, Any], key: str) -> Answer:
        fate = self.around.draw_fate(any(send.key == key for send in self.sends))
        self.around.reached("before the bytes leave")
        self.around.note("send", key, fate.name)
        if fate.name == "not_sent":
            self.around.travel(3.0)
            return NOT_SENT
        self.around.clock.advance(fate.way_there_s)
        if fate.name == "lost_on_the_way":
            self.around.travel(READ_TIMEOUT_S)
            return CONNECTION_LOST
        answer = self._arrive(parameters, key, fate)
        shown = answer if fate.shown is None or answer is CONNECTION_LOST else fate.shown
        self.last_answer = shown
        self.around.reached("after the provider acted")
        self.around.travel(fate.way_back_s)
        self.around.reached("before the answer is read")
        return shown

    def read_payment(self, *, payment: str, account: str) -> PaymentFacts:
        """Raises PaymentNotFound, ReadFailed."""
        self._read("payment")
        charge = self._charge(payment)
        if charge is None:
            raise PaymentNotFound(payment)
        return payment_facts(charge=charge_object(charge), intent=None)

    def read_refund(self, *, refund_id: str, account: str) -> RefundFacts:
        """Raises RefundNotFound, ReadFailed."""
        self._read("refund")
        made = self.made.get(refund_id)
        if made is None:
            raise RefundNotFound(refund_id)
        return facts_of(made.refund)

    def list_refunds(self, *, payment: str, account: str) -> RefundList:
        """Newest first, without the youngest, and at times not to the end. Raises ReadFailed."""
        self._read("list")
        charge = self._charge(payment)
        shown = [
            made
            for made in reversed(self.made.values())
            if charge is not None
            and made.refund.charge == charge.id
            and made.made_at + self.around.weather.list_lag_s <= self.around.clock.now
        ]
        complete = self.around.rng.random() >= self.around.weather.read_trouble / 2
        if not complete:
            shown = shown[: len(shown) // 2]
        return RefundList(refunds=tuple(facts_of(made.refund) for made in shown), complete=complete)

    # --- What happens there by itself or by people --------------------------------------------

    def list_events(self, *, since: int, after: str, account: str) -> EventPage:
        """None: news reach the simulation in its own mail. Raises ReadFailed."""
        self._read("events")
        return EventPage(events=(), next_after="")

    def add_charge(self, charge_id: str, captured: int) -> Charge:
        """A payment that was made before the world began."""
        charge = Charge(
            id=charge_id,
            payment_intent=charge_id.replace("ch_", "pi_"),
            account="",
            created=int(self.around.clock.now) - 86_400,
            amount=captured,
            currency="usd",
            amount_captured=captured,
        )
        self.charges[charge.id] = charge
        return charge

    def refund(
        self, charge: Charge, amount: int, metadata: Mapping[str, str], *, key: str = ""
    ) -> Made | None:
        """Make a refund if the charge bears it, and plan what becomes of it. None: refused."""
        if amount > charge.left:
            return None
        now, number = self.around.clock.now, len(self.made) + 1
        status, later = draw_life(self.around.rng, self.around.weather.late_refunds)
        refund = Refund(
            id=f"re_{number:04d}",
            seq=number,
            account="",
            created=int(now),
            amount=amount,
            currency=charge.currency,
            charge=charge.id,
            payment_intent=charge.payment_intent,
            status=status,
            metadata=dict(metadata),
            made=now,
        )
        made = Made(refund=refund, key=key, made_at=now, succeeded_once=status == "succeeded")
        self.made[refund.id] = made
        charge.amount_refunded += amount
        self.around.note("provider", refund.id, f"{status} for {key or 'somebody else'}")
        self.around.announce("refund.created", made, key)
        for pause, following in later:
            now += pause
            self.around.clock.at(now, lambda status=following: self._change(made, status))  # type: ignore[misc]
        return made

    def refunds_of(self, operation_id: str) -> list[Made]:
        """The refunds that carry an operation's mark, oldest first."""
        return [
            made
            for made in self.made.values()
            if made.refund.metadata.get(METADATA_OPERATION) == operation_id
        ]

    # --- Rules ----------------------------------------------------------------------------------

    def _arrive(self, parameters: dict[str, Any], key: str, fate: Fate) -> Answer:
        send = Send(
            time=self.around.clock.now,
            key=key,
            operation=str(parameters.get("metadata", {}).get(METADATA_OPERATION, "")),
            parameters=parameters,
        )
        self.sends.append(send)
        answer = self._answer(send, fate)
        send.status = answer.http_status
        if fate.name == "doubled":
            return self._answer(replace(send), fate)
        return answer

    def _answer(self, send: Send, fate: Fate) -> Answer:
        """In the order of Stripe's layers: what stands in front, the keys, the execution."""
        parameters, key = send.parameters, send.key
        if fate.in_front is not None:
            send.outcome = "turned away"
            return fate.in_front
        saved = self.keys.get(key)
        if saved is not None and self._is_over(saved):
            saved = None
        fingerprint = send.fingerprint
        if saved is None:
            send.outcome = "executed"
            return self._execute(parameters, key, fingerprint, fate)
        if saved.fingerprint != fingerprint:
            send.outcome = "other parameters"
            return refusal(400, "idempotency_error", "")
        if saved.answer is None:
            send.outcome = "in use"
            return refusal(409, "idempotency_error", "idempotency_key_in_use")
        send.outcome = "replayed"
        return answered(saved.answer, replayed=True)

    def _is_over(self, saved: SavedKey) -> bool:
        return saved.answer is not None and self.around.clock.now >= saved.first_used + KEY_KEPT_S

    def _execute(
        self, parameters: dict[str, Any], key: str, fingerprint: str, fate: Fate
    ) -> Answer:
        """Hold the key, act when the fate lets it, and keep the first answer."""
        saved = SavedKey(fingerprint=fingerprint, first_used=self.around.clock.now)
        self.keys[key] = saved

        def act() -> None:
            saved.answer = self._act(parameters, key, fate)

        if fate.takes_s <= 0:
            act()
        else:
            self.around.clock.at(self.around.clock.now + fate.takes_s, act)
            self.around.travel(min(fate.takes_s, READ_TIMEOUT_S))
        return saved.answer or CONNECTION_LOST

    def _act(self, parameters: dict[str, Any], key: str, fate: Fate) -> Answer:
        charge = self._charge(str(parameters.get("charge") or parameters["payment_intent"]))
        if charge is None:
            return refusal(404, "invalid_request_error", "resource_missing")

        def refund() -> Made | None:
            return self.refund(charge, parameters["amount"], parameters["metadata"], key=key)

        if fate.name == "error_before":
            return refusal(500, "api_error", "")
        if fate.name == "error_rolls_forward":
            later = self.around.clock.now + self.around.rng.choice((5.0, 90.0, 4_000.0))
            self.around.clock.at(later, lambda: void(refund()))
            return refusal(500, "api_error", "")
        if fate.name == "refused":
            return refusal(402, "card_error", "insufficient_funds")
        made = refund()
        if made is None:
            code = "charge_already_refunded" if charge.left <= 0 else ""
            return refusal(400, "invalid_request_error", code)
        if fate.name == "error_after":
            return refusal(500, "api_error", "")
        body = refund_object(made.refund)
        return Answer(
            kind=AnswerKind.RESPONSE, http_status=200, body=body, refund=refund_facts(body)
        )

    def _charge(self, payment: str) -> Charge | None:
        return self.charges.get(payment.replace("pi_", "ch_"))

    def _read(self, what: str) -> None:
        self.around.reached(f"before the {what} is read")
        self.around.travel(0.2)
        if self.around.rng.random() < self.around.weather.read_trouble:
            raise ReadFailed("The connection ended before an answer came.")

    def _change(self, made: Made, status: str) -> None:
        was_live = made.refund.live
        made.refund.status = status
        made.succeeded_once |= status == "succeeded"
        charge = self.charges[made.refund.charge]
        charge.amount_refunded += made.refund.amount * (made.refund.live - was_live)
        self.around.note("provider", made.refund.id, status)
        kind = "refund.failed" if status == "failed" else "refund.updated"
        self.around.announce(kind, made, "")


def facts_of(refund: Refund) -> RefundFacts:
    """A refund as the product's own reader sees it."""
    facts = refund_facts(refund_object(refund))
    if facts is None:
        raise RuntimeError("The provider's own refund can't be read.")
    return facts


def void(_: object) -> None:
    """Drop a value where a callback must give none."""
