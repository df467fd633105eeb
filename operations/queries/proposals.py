"""What waits for a second person."""

from typing import NamedTuple

from operations.domain.access import Accounts
from operations.models import Proposal
from operations.models.proposal import ProposalState
from operations.queries.access import narrowed

#: More than these are never shown at once; the counts tell of all.
MOST_SHOWN = 100


class Waiting(NamedTuple):
    """How many wait in all, and how many of them this person proposed."""

    total: int
    own: int


def waiting_proposals(actor_id: str, accounts: Accounts = None) -> tuple[list[Proposal], Waiting]:
    """The proposals that wait, oldest first, with their operations, and how many there are."""
    waiting = Proposal.objects.filter(
        state=ProposalState.WAITING, **narrowed(accounts, "operation__account")
    )
    rows = waiting.select_related("operation__account").order_by("proposed_at", "pk")
    total = waiting.count()
    own = waiting.filter(proposed_by=actor_id).count()
    return list(rows[:MOST_SHOWN]), Waiting(total, own)
