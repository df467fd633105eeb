"""The till: what of a payment may still be refunded."""

from collections.abc import Iterable
from dataclasses import dataclass

from operations.domain.answers import PaymentFacts, RefundFacts
from operations.domain.refund_state import counts_as_refunded


@dataclass(frozen=True, slots=True, kw_only=True)
class Till:
    """Of one payment, in its Stripe unit: what was captured and what is or may be out."""

    captured: int
    ours: int
    others: int

    @property
    def free(self) -> int:
        """What may still be asked for; never less than zero."""
        return max(0, self.captured - self.ours - self.others)


def refunded_by_others(
    payment: PaymentFacts,
    refunds: Iterable[RefundFacts],
    *,
    our_refund_ids: frozenset[str],
    our_operation_ids: frozenset[str],
    ours: int,
    marks: dict[str, str],
) -> int:
    """What others refunded of this payment, counted so that it is never too little.

    `ours` is what our operations hold (settled as succeeded, or unresolved). `marks` gives for a
    refund id the operation that its metadata names. The provider's total is a second witness:
    what it holds beyond the listed refunds and beyond ours is counted as others'.
    """
    listed_ours = listed_others = 0
    for refund in refunds:
        if not counts_as_refunded(refund.status):
            continue
        if refund.id in our_refund_ids or marks.get(refund.id) in our_operation_ids:
            listed_ours += refund.amount
        else:
            listed_others += refund.amount
    ours_not_listed = max(0, ours - listed_ours)
    unexplained = payment.refunded - listed_ours - listed_others - ours_not_listed
    return listed_others + max(0, unexplained)
