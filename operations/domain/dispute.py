"""A dispute of a payment: what it says of refunds, whatever order its events come in.

A dispute never settles a refund. While the provider refuses refunds of the payment, sending one
is pointless; an inquiry leaves them possible. Source: Stripe, "The Dispute object".
"""

from dataclasses import dataclass

from operations.domain.contradiction import Aspect, Contradiction, Side
from operations.domain.statuses import UNRESOLVED, Attention, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeFacts:
    """A dispute as the provider shows it. `amount` in the Stripe unit.

    `refundable` is None when the provider does not say whether the payment can be refunded.
    """

    id: str
    status: str
    refundable: bool | None
    amount: int
    currency: str
    reason: str
    charge: str
    payment_intent: str


def is_over(status: str) -> bool:
    """Whether nothing more comes of it for the customer: won, or an inquiry that was closed."""
    return status in ("won", "warning_closed")


def blocks_refunds(status: str, refundable: bool | None) -> bool:
    """Whether the provider refuses refunds of the payment because of it."""
    if is_over(status):
        return False
    if refundable is not None:
        return not refundable
    return not status.startswith("warning_")


def newer(*, kept_as_of: int, kept_status: str, as_of: int, status: str) -> bool:
    """Whether a report replaces the one that is kept; equal seconds go by how far it got.

    Times in UTC seconds. Any order of the same reports ends in the same state.
    """
    return (as_of, _rank(status), status) > (kept_as_of, _rank(kept_status), kept_status)


def _rank(status: str) -> int:
    if status in ("won", "lost", "warning_closed"):
        return 2
    return 1 if status.endswith("under_review") else 0


def concerns(status: Status) -> bool:
    """Whether an operation in this status is marked: its money may go out twice, or is in doubt."""
    return status in UNRESOLVED or status is Status.SUCCEEDED


def raised_by(dispute: DisputeFacts) -> Contradiction | None:
    """The flag that a dispute raises; None when it is over. A new stage of it is a new fact."""
    if is_over(dispute.status):
        return None
    blocks = blocks_refunds(dispute.status, dispute.refundable)
    stage = "lost" if dispute.status == "lost" else "blocks" if blocks else "inquiry"
    return Contradiction(
        attention=Attention.DISPUTED,
        fact=f"{dispute.id}:{stage}",
        sides=(
            Side(Aspect.DISPUTE, "", f"{dispute.id} {dispute.status} {dispute.reason}".strip()),
            Side(Aspect.SENDING, "", "refused by the provider" if blocks else "still possible"),
        ),
    )
