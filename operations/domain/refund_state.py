"""The state of one provider refund out of many reports of it, whatever order they come in.

A refund only moves forward at Stripe: pending, requires_action, succeeded, then failed or
canceled. The state kept is the furthest that was ever reported, so the order of arrival,
duplicates and equal seconds make no difference. A status this list does not know decides nothing.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from operations.domain.answers import RefundFacts
from operations.domain.statuses import Fact


class RefundStatus(StrEnum):
    """The statuses of a refund (Stripe API, "The Refund object")."""

    PENDING = "pending"
    REQUIRES_ACTION = "requires_action"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


_RANK = {
    RefundStatus.PENDING: 1,
    RefundStatus.REQUIRES_ACTION: 2,
    RefundStatus.SUCCEEDED: 3,
    RefundStatus.CANCELED: 4,
    RefundStatus.FAILED: 5,
}


def known_status(text: str) -> RefundStatus | None:
    """The status, or None for one that Stripe may add one day."""
    try:
        return RefundStatus(text)
    except ValueError:
        return None


def furthest(stored: str, reported: str) -> str:
    """The status to keep. Commutative, associative and idempotent over known statuses."""
    before, after = known_status(stored), known_status(reported)
    if after is None:
        return stored
    if before is None:
        return reported
    return max(before, after, key=_RANK.__getitem__)


def details_of(refund: RefundFacts) -> dict[str, str]:
    """What a report says beside the status; what it leaves out is not in it."""
    said = {
        "failure_reason": refund.failure_reason,
        "pending_reason": refund.pending_reason,
        "reference": refund.reference,
        "action_expires_at": str(refund.action_expires_at or ""),
    }
    return {name: text for name, text in said.items() if text}


def merged(
    kept: Mapping[str, list[Any]], told: Mapping[str, str], at: datetime
) -> dict[str, list[Any]]:
    """The details to keep, each as [when it was told, text]: the newest of each.

    Of equal seconds the greater text is kept, so that no order of reports makes a difference. What
    a report leaves out stays.
    """
    new = {name: [at.timestamp(), text] for name, text in told.items()}
    return {**new, **{name: max(entry, new.get(name, entry)) for name, entry in kept.items()}}


def earliest(kept: datetime | None, told: datetime) -> datetime:
    """Since when a refund is in a state: the earliest time at which a report of it was made."""
    return told if kept is None else min(kept, told)


def is_doubtful(kept: str, since: datetime | None, reported: str, told_at: datetime) -> bool:
    """Whether the provider must be asked what is true.

    It used a status that is not known here, or speaks of a refund that had failed as if it had
    not, no earlier than it told of the failure.
    """
    before, after = known_status(kept), known_status(reported)
    if before is None or after is None:
        return True
    is_over = not counts_as_refunded(before)
    return is_over and counts_as_refunded(after) and since is not None and told_at >= since


def fact_of(status: str) -> Fact | None:
    """What a refund in this status says of its operation; None when it decides nothing."""
    known = known_status(status)
    match known:
        case None:
            return None
        case RefundStatus.PENDING | RefundStatus.REQUIRES_ACTION:
            return Fact.PROVIDER_PENDING
        case RefundStatus.SUCCEEDED:
            return Fact.PROVIDER_SUCCEEDED
        case RefundStatus.FAILED | RefundStatus.CANCELED:
            return Fact.PROVIDER_FAILED
        case _:
            assert_never(known)


def counts_as_refunded(status: str) -> bool:
    """Whether money may have left: everything but a refund that failed or was canceled."""
    return known_status(status) not in (RefundStatus.FAILED, RefundStatus.CANCELED)
