"""Reading Stripe's objects from plain JSON, of any version, without trusting a single field.

Nothing here raises, and what comes out can be stored: ids and texts of bounded length, amounts
and times that a column holds.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from operations.domain.answers import PaymentFacts, RefundFacts
from operations.domain.dispute import DisputeFacts
from operations.domain.privacy import kept
from operations.providers.storable import storable_text

_LONGEST_ID = 255
_LONGEST_TEXT = 500
_LARGEST_INTEGER = 2**63 - 1
#: The year 9999, the last that a date holds.
_LAST_SECOND = 253_402_300_799


def refund_facts(body: object) -> RefundFacts | None:
    """A refund, or None when this is no readable refund object (Stripe, "The Refund object")."""
    if not isinstance(body, Mapping) or body.get("object") != "refund":
        return None
    refund_id, amount = object_id(body), body.get("amount")
    if not refund_id or not is_amount(amount):
        return None
    return RefundFacts(
        id=refund_id,
        status=text_of(body.get("status")),
        amount=amount,
        currency=text_of(body.get("currency")).lower(),
        charge=object_id(body.get("charge")),
        payment_intent=object_id(body.get("payment_intent")),
        created=seconds(body.get("created")),
        metadata=_metadata(kept(body.get("metadata"))),
        failure_reason=text_of(body.get("failure_reason")),
        pending_reason=text_of(body.get("pending_reason")),
        reference=_bank_reference(body.get("destination_details")),
        action_expires_at=_action_expires_at(body.get("next_action")),
    )


def _bank_reference(details: object) -> str:
    """The bank's reference, an acquirer reference number say, whichever way the money went."""
    if not isinstance(details, Mapping):
        return ""
    way = details.get(text_of(details.get("type")))
    return text_of(way.get("reference")) if isinstance(way, Mapping) else ""


def _action_expires_at(action: object) -> int:
    """Until when the customer may act, out of what the action shows."""
    if not isinstance(action, Mapping):
        return 0
    shown = action.get(text_of(action.get("type")))
    return seconds(shown.get("expires_at")) if isinstance(shown, Mapping) else 0


def dispute_facts(body: object) -> DisputeFacts | None:
    """A dispute, or None when this is no readable dispute (Stripe, "The Dispute object")."""
    if not isinstance(body, Mapping) or body.get("object") != "dispute":
        return None
    dispute_id, amount = object_id(body), body.get("amount")
    if not dispute_id or not is_amount(amount):
        return None
    refundable = body.get("is_charge_refundable")
    return DisputeFacts(
        id=dispute_id,
        status=text_of(body.get("status")),
        refundable=refundable if isinstance(refundable, bool) else None,
        amount=amount,
        currency=text_of(body.get("currency")).lower(),
        reason=text_of(body.get("reason")),
        charge=object_id(body.get("charge")),
        payment_intent=object_id(body.get("payment_intent")),
    )


def refunds_of_charge(body: Mapping[str, Any]) -> Iterator[RefundFacts]:
    """The refunds a charge carries: a list object, an array in old versions, or none."""
    refunds = body.get("refunds")
    rows = refunds.get("data") if isinstance(refunds, Mapping) else refunds
    if not isinstance(rows, list):
        return
    for row in rows:
        refund = refund_facts(row)
        if refund is not None:
            yield refund


def payment_facts(*, charge: Mapping[str, Any], intent: Mapping[str, Any] | None) -> PaymentFacts:
    """A payment out of its charge and, when it was read, its payment intent."""
    source: Mapping[str, Any] = charge or intent or {}
    captured = charge.get("amount_captured")
    if not is_amount(captured):
        # Only a charge that says it was not captured has nothing to give back.
        captured = None if charge.get("captured") is False else charge.get("amount")
    if not is_amount(captured) and intent is not None:
        captured = intent.get("amount_received")
        if not is_amount(captured) and intent.get("status") == "succeeded":
            captured = intent.get("amount")
    return PaymentFacts(
        charge=object_id(charge) or object_id(intent),
        payment_intent=object_id(charge.get("payment_intent")) or object_id(intent),
        currency=text_of(source.get("currency")).lower(),
        captured=integer(captured),
        refunded=integer(charge.get("amount_refunded")),
        livemode=source.get("livemode") is True,
        disputed=charge.get("disputed") is True,
    )


def object_id(value: object) -> str:
    """The id, whether it came as text or as an expanded object; "" for none."""
    if isinstance(value, Mapping):
        value = value.get("id")
    return text_of(value) if isinstance(value, str) and len(value) <= _LONGEST_ID else ""


def text_of(value: object) -> str:
    """The text, cut to 500 characters; "" for anything else."""
    return storable_text(value)[:_LONGEST_TEXT] if isinstance(value, str) else ""


def is_amount(value: object) -> TypeGuard[int]:
    """Whether this is a whole number from 0 to what a column holds; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return 0 <= value <= _LARGEST_INTEGER


def integer(value: object) -> int:
    """The amount; 0 for anything else."""
    return value if is_amount(value) else 0


def seconds(value: object) -> int:
    """A time in UTC seconds that a date holds; 0 for anything else."""
    found = integer(value)
    return found if found <= _LAST_SECOND else 0


def _metadata(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {
        storable_text(str(name)): storable_text(str(text))
        for name, text in value.items()
        if text is not None
    }
