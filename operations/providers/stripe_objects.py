"""Reading Stripe's objects from plain JSON, of any version, without trusting a single field."""

from collections.abc import Iterator, Mapping
from typing import Any

from operations.domain.answers import PaymentFacts, RefundFacts


def refund_facts(body: object) -> RefundFacts | None:
    """A refund, or None when this is no readable refund object (Stripe, "The Refund object")."""
    if not isinstance(body, Mapping) or body.get("object") != "refund":
        return None
    refund_id, amount = body.get("id"), body.get("amount")
    if not isinstance(refund_id, str) or not refund_id:
        return None
    if isinstance(amount, bool) or not isinstance(amount, int):
        return None
    return RefundFacts(
        id=refund_id,
        status=_text(body.get("status")),
        amount=amount,
        currency=_text(body.get("currency")).lower(),
        charge=object_id(body.get("charge")),
        payment_intent=object_id(body.get("payment_intent")),
        created=_integer(body.get("created")),
        metadata=_metadata(body.get("metadata")),
        failure_reason=_text(body.get("failure_reason")),
        pending_reason=_text(body.get("pending_reason")),
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


def payment_facts(
    *, charge: Mapping[str, Any], intent: Mapping[str, Any] | None
) -> PaymentFacts:
    """A payment out of its charge and, when it was read, its payment intent."""
    source: Mapping[str, Any] = charge or intent or {}
    captured = charge.get("amount_captured")
    if not isinstance(captured, int):
        captured = charge.get("amount") if charge.get("captured") is True else None
    if not isinstance(captured, int) and intent is not None:
        captured = intent.get("amount_received")
    return PaymentFacts(
        charge=object_id(charge) or object_id(intent),
        payment_intent=object_id(charge.get("payment_intent")) or object_id(intent),
        currency=_text(source.get("currency")).lower(),
        captured=_integer(captured),
        refunded=_integer(charge.get("amount_refunded")),
        livemode=source.get("livemode") is True,
        disputed=charge.get("disputed") is True,
    )


def object_id(value: object) -> str:
    """The id, whether it came as text or as an expanded object; "" for none."""
    if isinstance(value, Mapping):
        value = value.get("id")
    return value if isinstance(value, str) else ""


def _metadata(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(text) for name, text in value.items() if text is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
