"""What waits for a second person."""

from typing import NamedTuple

from operations.models import Proposal
from operations.models.proposal import ProposalState

#: More than these are never shown at once; the counts tell of all.
MOST_SHOWN = 100


class Waiting(NamedTuple):
    """How many wait in all, and how many of them this person proposed."""

    total: int
    own: int


def waiting_proposals(actor_id: str) -> tuple[list[Proposal], Waiting]:
    """The proposals that wait, oldest first, with their operations, and how many there are."""
    waiting = Proposal.objects.filter(state=ProposalState.WAITING)
    rows = waiting.select_related("operation__account").order_by("proposed_at", "pk")
    total = waiting.count()
    own = waiting.filter(proposed_by=actor_id).count()
    return list(rows[:MOST_SHOWN]), Waiting(total, own)
