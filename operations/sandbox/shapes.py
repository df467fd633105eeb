"""Renders charges, payment intents, refunds and disputes as Stripe's JSON objects.

Field names and nesting: Stripe's API reference for version 2026-04-22.dahlia. Since 2022-11-15 a
charge has no `refunds` unless it is expanded.
"""

from __future__ import annotations

from collections.abc import Sequence

from .answers import JsonObject, StripeError
from .ledger import Charge, Ledger, Refund
from .params import PAGE_DEFAULT

DEEPEST_EXPAND = 4
DAY_S = 86_400
EXPANDABLE = {
    "refund": {"charge": "charge", "payment_intent": "payment_intent"},
    "charge": {"payment_intent": "payment_intent", "refunds": "refund"},
    "payment_intent": {"latest_charge": "charge"},
}


def charge_object(charge: Charge) -> JsonObject:
    """A charge; `refunded` is true only when nothing is left."""
    return {
        "id": charge.id,
        "object": "charge",
        "amount": charge.amount,
        "amount_captured": charge.amount_captured,
        "amount_refunded": charge.amount_refunded,
        "balance_transaction": f"txn_{charge.id}",
        "billing_details": {"address": None, "email": None, "name": None, "phone": None},
        "captured": charge.amount_captured > 0,
        "created": charge.created,
        "currency": charge.currency,
        "customer": None,
        "description": None,
        "disputed": charge.disputed,
        "failure_code": None,
        "failure_message": None,
        "fraud_details": {},
        "livemode": False,
        "metadata": dict(charge.metadata),
        "paid": True,
        "payment_intent": charge.payment_intent,
        "payment_method": f"pm_{charge.id}",
        "payment_method_details": {"type": charge.type, charge.type: {"last4": "4242"}},
        "receipt_email": None,
        "receipt_number": None,
        "refunded": charge.refunded,
        "status": "succeeded",
    }


def payment_intent_object(charge: Charge) -> JsonObject:
    """The payment intent of a charge."""
    captured = charge.amount_captured > 0
    return {
        "id": charge.payment_intent,
        "object": "payment_intent",
        "amount": charge.amount,
        "amount_capturable": 0 if captured else charge.amount,
        "amount_received": charge.amount_captured,
        "created": charge.created,
        "currency": charge.currency,
        "latest_charge": charge.id,
        "livemode": False,
        "metadata": dict(charge.metadata),
        "payment_method_types": [charge.type],
        "status": "succeeded" if captured else "requires_capture",
    }


def refund_object(refund: Refund) -> JsonObject:
    """A refund, with the fields that only some statuses have."""
    settled = refund.status in ("succeeded", "failed")
    shape: JsonObject = {
        "id": refund.id,
        "object": "refund",
        "amount": refund.amount,
        "balance_transaction": f"txn_{refund.id}" if settled else None,
        "charge": refund.charge,
        "created": refund.created,
        "currency": refund.currency,
        "metadata": dict(refund.metadata),
        "payment_intent": refund.payment_intent,
        "reason": refund.reason,
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": refund.status,
        "transfer_reversal": None,
    }
    if refund.id.startswith("re_"):
        shape["destination_details"] = {
            "card": {
                "reference_status": "pending",
                "reference_type": "acquirer_reference_number",
                "type": "refund",
            },
            "type": "card",
        }
    return shape | _by_status(refund)


def _by_status(refund: Refund) -> JsonObject:
    match refund.status:
        case "pending":
            return {"pending_reason": "processing"}
        case "failed":
            return {
                "failure_reason": refund.failure_reason or "unknown",
                "failure_balance_transaction": f"txn_{refund.id}_failed",
            }
        case "requires_action":
            details = {
                "email_sent": {
                    "email_sent_at": refund.created,
                    "email_sent_to": "customer@example.invalid",
                },
                "expires_at": refund.created + 45 * DAY_S,
            }
            return {"next_action": {"type": "display_details", "display_details": details}}
        case _:
            return {}


def dispute_object(charge: Charge, identifier: str, created: int) -> JsonObject:
    """A dispute over all of a charge; an inquiry if the charge can still be refunded."""
    inquiry = charge.refundable
    return {
        "id": identifier,
        "object": "dispute",
        "amount": charge.amount,
        "charge": charge.id,
        "created": created,
        "currency": charge.currency,
        "evidence_details": {
            "due_by": created + 7 * DAY_S,
            "has_evidence": False,
            "past_due": False,
            "submission_count": 0,
        },
        "is_charge_refundable": charge.refundable,
        "livemode": False,
        "metadata": {},
        "payment_intent": charge.payment_intent,
        "reason": "product_not_received",
        "status": "warning_needs_response" if inquiry else "needs_response",
    }


def list_object(url: str, data: Sequence[JsonObject], *, has_more: bool) -> JsonObject:
    """One page of a list."""
    return {"object": "list", "url": url, "has_more": has_more, "data": list(data)}


def check_expand(kind: str, paths: Sequence[str]) -> None:
    """400 for a path that can't be expanded on a `kind` (`refund`, `charge`, `payment_intent`).

    A list is expanded through `data.`. Checked before anything is executed.
    """
    for path in paths:
        steps = path.split(".")
        current: str | None = kind
        for step in steps[1:] if steps[0] == "data" else steps:
            current = EXPANDABLE.get(current or "", {}).get(step)
        if current is None or len(steps) > DEEPEST_EXPAND:
            raise StripeError(400, f"This property cannot be expanded ({path}).", param="expand")


class Expander:
    """Puts whole objects where `expand[]` asks for them instead of their ids."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def expand(self, shape: JsonObject, paths: Sequence[str]) -> JsonObject:
        """Expand every path of `shape` in place; the paths were checked by `check_expand`."""
        for path in paths:
            self._step(shape, path.split("."))
        return shape

    def _step(self, shape: JsonObject, steps: Sequence[str]) -> None:
        if not steps:
            return
        name, rest = steps[0], steps[1:]
        if name == "data":
            for item in shape["data"]:
                self._step(item, rest)
            return
        if not isinstance(shape.get(name), dict):
            shape[name] = self._whole(shape, name)
        self._step(shape[name], rest)

    def _whole(self, shape: JsonObject, name: str) -> JsonObject:
        if name == "refunds":
            newest = self.ledger.refunds_of(self.ledger.charges[shape["id"]])[::-1]
            return list_object(
                f"/v1/charges/{shape['id']}/refunds",
                [refund_object(refund) for refund in newest[:PAGE_DEFAULT]],
                has_more=len(newest) > PAGE_DEFAULT,
            )
        charge_id, _ = self.ledger.known_payments(shape[name])
        charge = self.ledger.charges[charge_id]
        return payment_intent_object(charge) if name == "payment_intent" else charge_object(charge)
