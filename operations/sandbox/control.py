"""The control path under /_sandbox: payments, faults, webhooks, the clock, counts and logs."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl

from .answers import Answer, JsonObject, StripeError, as_json
from .assembly import Assembly
from .events import Cause
from .faults import FaultNotPossibleError, read_fault
from .ledger import STATUSES, Charge, new_id
from .sends import counts
from .webhooks import ModeNotPossibleError

Action = Callable[[JsonObject, str], object]


class ControlError(ValueError):
    """A control call that can't be carried out; the text says why."""


class Control:
    """Carries out control calls; every one is JSON in and JSON out."""

    def __init__(self, parts: Assembly) -> None:
        self.parts = parts
        self._actions: dict[tuple[str, str], Action] = {
            ("POST", "payments"): self._add_payment,
            ("POST", "faults"): self._add_fault,
            ("GET", "faults"): self._faults,
            ("DELETE", "faults"): self._clear_faults,
            ("POST", "webhooks"): self._set_mode,
            ("GET", "webhooks"): self._webhooks,
            ("POST", "webhooks/url"): self._set_url,
            ("POST", "webhooks/release"): self._release,
            ("POST", "events/*/resend"): self._resend,
            ("POST", "refunds"): self._refund_outside,
            ("POST", "refunds/*/status"): self._set_status,
            ("POST", "refunds/finish"): self._finish_refunds,
            ("POST", "charges/*/dispute"): self._dispute,
            ("POST", "clock"): self._advance,
            ("GET", "clock"): self._clock,
            ("POST", "keys/expire"): self._expire_keys,
            ("POST", "reset"): self._reset,
            ("GET", "counts"): self._counts,
            ("GET", "sends"): self._sends,
            ("GET", "in_flight"): self._in_flight,
            ("POST", "in_flight/release"): self._let_go,
            ("GET", "deliveries"): self._deliveries,
        }

    def reply(self, method: str, path: str, query: str, body: JsonObject) -> Answer:
        """The answer to one control call; `path` is what follows `/_sandbox/`."""
        if path == "redirected":
            return as_json(200, {})
        parts = path.strip("/").split("/")
        middle = parts[1] if len(parts) == 3 else ""
        pattern = "/".join((parts[0], "*", parts[2])) if middle else "/".join(parts)
        action = self._actions.get((method, pattern))
        if action is None:
            return as_json(404, {"error": f"no such control call: {method} {path}"})
        try:
            with self.parts.guard.changing():
                return as_json(200, action(body | dict(parse_qsl(query)), middle))
        except StripeError as error:
            return as_json(error.status, {"error": str(error)})
        except KeyError as error:
            return as_json(400, {"error": f"the field {error} is missing"})
        except (ControlError, FaultNotPossibleError, ModeNotPossibleError) as error:
            return as_json(400, {"error": str(error)})

    def _add_payment(self, given: JsonObject, _: str) -> object:
        amount, kind = given["amount"], given.get("type") or "card"
        captured = given.get("captured", True)
        if not isinstance(amount, int) or amount < 1 or kind not in ("card", "sepa_debit"):
            raise ControlError("amount is a positive integer, type is card or sepa_debit")
        charge = Charge(
            id=given.get("charge_id") or new_id("ch" if kind == "card" else "py"),
            payment_intent=given.get("payment_intent_id") or new_id("pi"),
            account=given.get("account") or "",
            created=self.parts.clock.seconds(),
            amount=amount,
            currency=str(given["currency"]).lower(),
            amount_captured=amount * captured if isinstance(captured, bool) else int(captured),
            type=kind,
            metadata=given.get("metadata") or {},
        )
        if charge.id in self.parts.ledger.charges:
            raise ControlError(f"{charge.id} exists already")
        self.parts.ledger.add_charge(charge)
        return {"charge": charge.id, "payment_intent": charge.payment_intent}

    def _add_fault(self, given: JsonObject, _: str) -> object:
        return {"id": self.parts.faults.add(read_fault(given)).id}

    def _faults(self, _: JsonObject, __: str) -> object:
        waiting = self.parts.faults.waiting
        return {"faults": [vars(fault) | {"match": vars(fault.match)} for fault in waiting]}

    def _clear_faults(self, _: JsonObject, __: str) -> object:
        self.parts.faults.clear()
        return {}

    def _set_mode(self, given: JsonObject, _: str) -> object:
        self.parts.webhooks.set_mode(
            given["mode"], payment=_payment(given), times=given.get("times")
        )
        return self.parts.webhooks.state()

    def _webhooks(self, _: JsonObject, __: str) -> object:
        return self.parts.webhooks.state() | self.parts.deliverer.state()

    def _set_url(self, given: JsonObject, _: str) -> object:
        self.parts.set_address(given["url"], given.get("account"), given.get("secret"))
        return self.parts.webhooks.state()

    def _release(self, given: JsonObject, _: str) -> object:
        reverse = bool(given.get("reverse"))
        return {"released": self.parts.webhooks.release(_payment(given), reverse=reverse)}

    def _resend(self, _: JsonObject, event_id: str) -> object:
        event = self.parts.events.events.get(event_id)
        if event is None:
            raise ControlError(f"there is no event {event_id}")
        self.parts.webhooks.resend(event)
        return {"event": event.id}

    def _refund_outside(self, given: JsonObject, _: str) -> object:
        parts = self.parts
        charge = self._charge(given.get("charge") or given["payment_intent"])
        refund = parts.ledger.create_refund(
            charge,
            amount=given.get("amount"),
            reason=given.get("reason"),
            metadata=given.get("metadata") or {},
            status=given.get("status"),
        )
        cause = Cause(new_id("req"), given.get("idempotency_key") or new_id("dashboard"))
        parts.events.refund_created(charge, refund, cause)
        return {"refund": refund.id}

    def _set_status(self, given: JsonObject, refund_id: str) -> object:
        parts, status = self.parts, given["status"]
        refund = parts.ledger.refunds.get(refund_id)
        if refund is None or status not in STATUSES:
            raise ControlError(f"there is no refund {refund_id}, or no status {status!r}")
        reason = given.get("failure_reason")
        previous = parts.ledger.set_status(
            refund, status, reason or ("unknown" if status == "failed" else None)
        )
        charge = parts.ledger.charges[refund.charge]
        parts.events.refund_changed(charge, refund, Cause(), previous)
        return {"refund": refund.id, "status": refund.status}

    def _finish_refunds(self, given: JsonObject, _: str) -> object:
        ledger, received = self.parts.ledger, self.parts.promises.new_status
        known = ledger.known_payments(given.get("payment"))
        waiting = [
            refund
            for refund in ledger.refunds.values()
            if refund.status == received and (not known or refund.charge in known)
        ]
        for refund in waiting:
            self._set_status({"status": given["status"]}, refund.id)
        return {"finished": len(waiting)}

    def _dispute(self, given: JsonObject, charge_id: str) -> object:
        charge = self._charge(charge_id)
        self.parts.ledger.dispute(charge, refundable=bool(given.get("refundable")))
        self.parts.events.dispute_opened(charge)
        return {"charge": charge.id, "refundable": charge.refundable}

    def _advance(self, given: JsonObject, _: str) -> object:
        return {"now": self.parts.advance_clock(float(given["advance_s"]))}

    def _clock(self, _: JsonObject, __: str) -> object:
        return {"now": self.parts.clock.now(), "offset_s": self.parts.clock.offset_s}

    def _expire_keys(self, given: JsonObject, _: str) -> object:
        return {"expired": self.parts.keys.expire(given.get("key"))}

    def _reset(self, _: JsonObject, __: str) -> object:
        self.parts.reset()
        return {}

    def _counts(self, given: JsonObject, _: str) -> object:
        parts = self.parts
        tries = parts.deliverer.tries
        return counts(parts.ledger, parts.sends.sends.values(), given.get("payment")) | {
            "events": len(parts.events.events),
            "deliveries": len(tries),
            "delivered": sum(one["outcome"] == "delivered" for one in tries),
        }

    def _sends(self, given: JsonObject, _: str) -> object:
        known = self.parts.ledger.known_payments(given.get("payment"))
        sends = self.parts.sends.sends.values()
        return {"sends": [vars(send) for send in sends if not known or send.payment in known]}

    def _in_flight(self, _: JsonObject, __: str) -> object:
        return {"in_flight": self.parts.holds.in_flight()}

    def _let_go(self, given: JsonObject, _: str) -> object:
        return {"released": self.parts.holds.let_go(key=given.get("key"))}

    def _deliveries(self, _: JsonObject, __: str) -> object:
        return {"deliveries": self.parts.deliverer.tries}

    def _charge(self, payment: str) -> Charge:
        charge = self.parts.ledger.charges.get(self.parts.ledger.known_payments(payment)[0])
        if charge is None:
            raise ControlError(f"there is no payment {payment}")
        return charge


def _payment(given: JsonObject) -> str | None:
    match = given.get("match") or {}
    payment = match.get("payment")
    if set(match) - {"payment"}:
        raise ControlError("webhooks can be matched by payment only")
    return str(payment) if payment else None
