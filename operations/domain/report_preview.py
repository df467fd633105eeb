"""What importing one line of a report would do, said before anything is done."""

from dataclasses import dataclass
from enum import StrEnum

from operations.domain.answers import RefundFacts
from operations.domain.matching import RefundTerms, differences, is_hearsay
from operations.domain.refund_state import counts_as_refunded, fact_of, furthest
from operations.domain.statuses import UNRESOLVED, Status, transition


class Preview(StrEnum):
    """What a line would do."""

    MATCHES = "matches"
    NEEDS_LOOKUP = "needs_lookup"
    NOTHING_NEW = "nothing_new"
    CONTRADICTS = "contradicts"
    UNKNOWN = "unknown"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The operation that a line proves to speak of, as it stands."""

    terms: RefundTerms
    status: Status
    provider_object_id: str
    provider_status: str


def preview(
    refund: RefundFacts, *, stored_status: str | None, is_borne_out: bool, claimed: Claimed | None
) -> Preview:
    """What importing this refund would do.

    `stored_status`: how far we know the refund to be, None when it was never seen.
    `is_borne_out`: the provider itself told us of it, and that it is this operation's.
    """
    status = furthest(stored_status or "", refund.status)
    if claimed is None:
        return Preview.NOTHING_NEW if status == stored_status else Preview.UNKNOWN
    if differences(claimed.terms, refund):
        return Preview.CONTRADICTS
    own = claimed.provider_object_id
    is_borne_out = is_borne_out or claimed.status not in UNRESOLVED
    if is_hearsay(claimed.terms, refund, own_refund=own, is_borne_out=is_borne_out):
        return Preview.NEEDS_LOOKUP
    if own not in ("", refund.id) and counts_as_refunded(status):
        return Preview.CONTRADICTS
    fact = fact_of(status)
    if fact is None or transition(claimed.status, fact).attention is not None:
        return Preview.CONTRADICTS
    told = (claimed.status, own, claimed.provider_status, stored_status)
    says_more = bool(refund.failure_reason)
    if told == (transition(claimed.status, fact).to, refund.id, status, status) and not says_more:
        return Preview.NOTHING_NEW
    return Preview.MATCHES
