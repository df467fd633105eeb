"""Refunds that belong to no operation: why they are here, and what speaks for a possible one.

Nothing here proves anything: a refund becomes an operation's by proof, or by a person.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from operations.domain.matching import Verdict
from operations.domain.statuses import Status


class OrphanReason(StrEnum):
    """Why nothing ties it to an operation."""

    NO_REFERENCE = "no_reference"
    REFERENCE_UNKNOWN = "reference_unknown"
    DIFFERS = "differs"
    NOT_OUR_PAYMENT = "not_our_payment"


class EventReason(StrEnum):
    """Why nothing ties an event to an operation."""

    NOT_OUR_ACCOUNT = "not_our_account"
    NO_REFUND = "no_refund"
    NOT_OUR_PAYMENT = "event_not_our_payment"


class Hint(StrEnum):
    """What is held against a possible operation."""

    PAYMENT = "payment"
    AMOUNT = "amount"
    CURRENCY = "currency"
    TIME = "time"
    FREE = "free"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFacts:
    """A refund without an operation. `amount` in the Stripe unit, `made_at` in UTC.

    `names` is the operation that its metadata names, "" for none.
    """

    amount: int
    currency: str
    made_at: datetime | None
    names: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """An operation of the same payment, or one that somebody named."""

    operation_id: str
    amount: int
    currency: str
    status: Status
    first_sent_at: datetime | None
    has_refund: bool
    same_payment: bool = True


@dataclass(frozen=True, slots=True)
class Weighed:
    """One hint and whether it speaks for the operation, against it, or not at all."""

    hint: Hint
    verdict: Verdict


def why_orphan(
    *, payment_is_known: bool, names_operation: bool, operation_exists: bool
) -> OrphanReason:
    """The first reason that holds."""
    if names_operation:
        return OrphanReason.DIFFERS if operation_exists else OrphanReason.REFERENCE_UNKNOWN
    return OrphanReason.NO_REFERENCE if payment_is_known else OrphanReason.NOT_OUR_PAYMENT


def weigh(orphan: OrphanFacts, possible: Possible) -> tuple[Weighed, ...]:
    """What speaks for and against an operation. It proves nothing."""
    sent, made = possible.first_sent_at, orphan.made_at
    in_time = Verdict.MISSING
    if sent is not None and made is not None:
        # The provider counts in whole seconds.
        in_time = _verdict(made.timestamp() >= int(sent.timestamp()))
    reference = Verdict.MISSING
    if orphan.names:
        reference = _verdict(orphan.names == possible.operation_id)
    return (
        Weighed(Hint.PAYMENT, _verdict(possible.same_payment)),
        Weighed(Hint.AMOUNT, _verdict(orphan.amount == possible.amount)),
        Weighed(Hint.CURRENCY, _verdict(orphan.currency == possible.currency)),
        Weighed(Hint.TIME, in_time),
        Weighed(Hint.FREE, _verdict(not possible.has_refund)),
        Weighed(Hint.REFERENCE, reference),
    )


def likelihood(weighed: tuple[Weighed, ...]) -> int:
    """How many hints speak for it, less those against: an order to show them in, no more."""
    score = {Verdict.SAME: 1, Verdict.DIFFERENT: -1, Verdict.MISSING: 0}
    return sum(score[row.verdict] for row in weighed)


def can_be_linked(status: Status, weighed: tuple[Weighed, ...]) -> bool:
    """Whether a person may link it at all: terms and reference contradict nothing."""
    against = {row.hint for row in weighed if row.verdict is Verdict.DIFFERENT}
    return status is not Status.OPEN and not against & {
        Hint.PAYMENT,
        Hint.AMOUNT,
        Hint.CURRENCY,
        Hint.REFERENCE,
    }


def _verdict(holds: bool) -> Verdict:
    return Verdict.SAME if holds else Verdict.DIFFERENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A person's finding that something is an operation's, whose `revision` their page showed."""

    operation_id: UUID
    revision: int
    note: str
