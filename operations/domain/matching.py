"""When a refund at the provider is ours, and what differs when it claims to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
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
    operation_id = _operation_id(text) if text else None
    if operation_id is None:
        return None
    return OurMark(operation_id, metadata.get(METADATA_ENVIRONMENT, ""))


@lru_cache(maxsize=4_096)
def _operation_id(text: str) -> UUID | None:
    """The id; kept, because an event's mark is asked for several times while it is matched."""
    try:
        return UUID(text)
    except ValueError:
        return None


def compare(terms: RefundTerms, refund: RefundFacts) -> tuple[Comparison, ...]:
    """Sent against provider, field by field. A field the provider leaves out is missing."""
    return tuple(
        Comparison(name, sent, seen, _verdict(sent, seen))
        for name, sent, seen in _rows(terms, refund)
    )


def differences(terms: RefundTerms, refund: RefundFacts) -> tuple[Comparison, ...]:
    """The fields that contradict: a missing one (a charge refund has no intent) does not."""
    return tuple(
        Comparison(name, sent, seen, Verdict.DIFFERENT)
        for name, sent, seen in _rows(terms, refund)
        if sent != seen and sent and seen
    )


def names_the_payment(terms: RefundTerms, refund: RefundFacts) -> bool:
    """Whether the refund shows the charge or the payment intent that was asked for."""
    return (bool(refund.charge) and refund.charge == terms.charge) or (
        bool(refund.payment_intent) and refund.payment_intent == terms.payment_intent
    )


def is_hearsay(
    terms: RefundTerms, refund: RefundFacts, *, own_refund: str, is_borne_out: bool
) -> bool:
    """Whether a refund that was told of elsewhere has to be asked for before it is believed.

    `own_refund`: the one that the operation is known to have. `is_borne_out`: nothing is asked of
    who told of it, or the provider itself told of this refund, too.
    """
    return refund.id != own_refund and not (is_borne_out and names_the_payment(terms, refund))


def _rows(terms: RefundTerms, refund: RefundFacts) -> tuple[tuple[Field, str, str], ...]:
    """Each field that is compared: what was sent, and what the provider shows."""
    mark = our_mark(refund.metadata)
    reference = str(mark.operation_id) if mark else ""
    if mark and mark.environment != terms.environment:
        reference = f"{mark.operation_id} ({mark.environment})"
    return (
        (Field.AMOUNT, str(terms.amount), str(refund.amount)),
        (Field.CURRENCY, terms.currency, refund.currency),
        (Field.CHARGE, terms.charge, refund.charge),
        (Field.PAYMENT_INTENT, terms.payment_intent, refund.payment_intent),
        (Field.REFERENCE, terms.operation_id, reference),
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
