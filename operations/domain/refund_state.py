"""The state of one provider refund out of many reports of it, whatever order they come in.

A refund only moves forward at Stripe: pending, requires_action, succeeded, then failed or
canceled. The state kept is the furthest that was ever reported, so the order of arrival,
duplicates and equal seconds make no difference. A status this list does not know decides nothing.
"""

from enum import StrEnum
from typing import assert_never

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
