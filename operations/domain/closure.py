"""When a person may close an operation, alone or with a second person."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from operations.domain.money import Money
from operations.domain.statuses import CLOSED_BY_PERSON, Status


class ClosingOutcome(StrEnum):
    """What a person may find. There is no default."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class EvidenceKind(StrEnum):
    """What a person's decision rests on."""

    PROVIDER_REFUND = "provider_refund"
    DASHBOARD = "dashboard"
    PROVIDER_SUPPORT = "provider_support"
    BANK_STATEMENT = "bank_statement"
    ABSENT_IN_LOOKUP = "absent_in_lookup"


class ReopenGround(StrEnum):
    """Why people take back a closing as failed."""

    CONTRADICTED = "contradicted"
    MISTAKE = "mistake"


#: What a proposal to reopen has as its outcome.
REOPENED = "unknown"


class SecondPersonReason(StrEnum):
    """Why one person is not enough."""

    AMOUNT = "amount"
    NO_FRESH_ABSENCE = "no_fresh_absence"
    CONTRADICTION = "contradiction"
    ABSENCE_ALONE = "absence_alone"
    REOPENING = "reopening"


#: A look-up this old, in seconds, no longer counts as fresh.
FRESH_ABSENCE_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """The newest look-up that did not find the refund. `complete`: list read to its last page.

    `explained`: the list accounts for the total that the provider says is refunded.
    `seconds_after_send` is below zero when something was sent after the look-up.
    """

    looked_at: datetime
    complete: bool
    explained: bool
    seconds_after_send: float | None


def is_closable(status: Status) -> bool:
    """Whether a person may settle it: nothing is sent any more and no end is known."""
    return status in (Status.UNKNOWN, Status.PROCESSING)


def may_be_reopened(status: Status, failure_code: str) -> bool:
    """Whether a closing may be taken back: people found that it failed, and no provider said so."""
    return status is Status.FAILED and failure_code == CLOSED_BY_PERSON


def absence_is_fresh(
    absence: Absence | None, *, now: datetime, conclusive_after_s: int | None
) -> bool:
    """Complete, explained, not older than 15 minutes, and long enough after the last send."""
    if absence is None or conclusive_after_s is None:
        return False
    if not absence.complete or not absence.explained:
        return False
    if now - absence.looked_at > timedelta(seconds=FRESH_ABSENCE_S):
        return False
    return absence.seconds_after_send is None or absence.seconds_after_send >= conclusive_after_s


def second_person_reasons(
    *,
    outcome: ClosingOutcome,
    money: Money,
    limits: Mapping[str, int],
    has_contradiction: bool,
    fresh_absence: bool,
    absence_alone: bool = False,
) -> tuple[SecondPersonReason, ...]:
    """Why this closing wants a second person; empty when one is enough.

    `limits`: per currency the largest amount (Stripe unit) that one person may close. A currency
    without a limit always wants two. `absence_alone`: no other evidence was named.
    """
    reasons: list[SecondPersonReason] = []
    limit = limits.get(money.currency)
    if limit is None or money.amount > limit:
        reasons.append(SecondPersonReason.AMOUNT)
    if outcome is ClosingOutcome.FAILED and not fresh_absence:
        reasons.append(SecondPersonReason.NO_FRESH_ABSENCE)
    if has_contradiction:
        reasons.append(SecondPersonReason.CONTRADICTION)
    if absence_alone:
        reasons.append(SecondPersonReason.ABSENCE_ALONE)
    return tuple(reasons)
