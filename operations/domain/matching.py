"""When a refund at the provider is ours, and what differs when it claims to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from operations.domain.answers import RefundFacts
from operations.domain.identity import METADATA_ENVIRONMENT, METADATA_OPERATION


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundTerms:
    """What an operation asked the provider for. `amount` in the Stripe unit of `currency`."""

    operation_id: str
    environment: str
    amount: int
    currency: str
    charge: str
    payment_intent: str
    account: str = ""
    livemode: bool = False


class Field(StrEnum):
    """The fields that are compared after any hit."""

    AMOUNT = "amount"
    CURRENCY = "currency"
    CHARGE = "charge"
    PAYMENT_INTENT = "payment_intent"
    REFERENCE = "reference"
    ACCOUNT = "account"
    MODE = "mode"


class Verdict(StrEnum):
    """How one field compares."""

    SAME = "same"
    DIFFERENT = "different"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One field, sent against provider."""

    field: Field
    sent: str
    provider: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class OurMark:
    """The operation and environment that a refund's metadata names."""

    operation_id: UUID
    environment: str


def our_mark(metadata: Mapping[str, str]) -> OurMark | None:
    """Our reference in the metadata, or None when there is none or it is not an operation id."""
    text = metadata.get(METADATA_OPERATION)
    if not text:
        return None
    try:
        operation_id = UUID(text)
    except ValueError:
        return None
    return OurMark(operation_id, metadata.get(METADATA_ENVIRONMENT, ""))


def compare(terms: RefundTerms, refund: RefundFacts) -> tuple[Comparison, ...]:
    """Sent against provider, field by field. A field the provider leaves out is missing."""
    mark = our_mark(refund.metadata)
    reference = str(mark.operation_id) if mark else ""
    if mark and mark.environment != terms.environment:
        reference = f"{mark.operation_id} ({mark.environment})"
    rows = (
        (Field.AMOUNT, str(terms.amount), str(refund.amount)),
        (Field.CURRENCY, terms.currency, refund.currency),
        (Field.CHARGE, terms.charge, refund.charge),
        (Field.PAYMENT_INTENT, terms.payment_intent, refund.payment_intent),
        (Field.REFERENCE, terms.operation_id, reference),
    )
    return tuple(Comparison(name, sent, seen, _verdict(sent, seen)) for name, sent, seen in rows)


def differences(terms: RefundTerms, refund: RefundFacts) -> tuple[Comparison, ...]:
    """The fields that contradict: a missing one (a charge refund has no intent) does not."""
    return tuple(row for row in compare(terms, refund) if row.verdict is Verdict.DIFFERENT)


def names_the_payment(terms: RefundTerms, refund: RefundFacts) -> bool:
    """Whether the refund shows the charge or the payment intent that was asked for."""
    return any(
        row.verdict is Verdict.SAME
        for row in compare(terms, refund)
        if row.field in (Field.CHARGE, Field.PAYMENT_INTENT)
    )


def place_differences(
    terms: RefundTerms, *, account: str, livemode: bool
) -> tuple[Comparison, ...]:
    """Account and mode of an event against those of the operation."""
    rows = (
        (Field.ACCOUNT, terms.account, account),
        (Field.MODE, _mode(terms.livemode), _mode(livemode)),
    )
    return tuple(
        Comparison(name, sent, seen, Verdict.DIFFERENT) for name, sent, seen in rows if sent != seen
    )


def _verdict(sent: str, seen: str) -> Verdict:
    if not sent or not seen:
        return Verdict.MISSING
    return Verdict.SAME if sent == seen else Verdict.DIFFERENT


def _mode(livemode: bool) -> str:
    return "live" if livemode else "test"
