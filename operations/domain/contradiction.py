"""Two facts about one operation that don't fit, side by side.

A contradiction has a name of its own, `fact`: as long as it is the same, nothing new was learned,
however often and under whatever event it is told. A flag that a person cleared comes back only
with another one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from operations.domain.answers import RefundFacts
from operations.domain.matching import Comparison, RefundTerms
from operations.domain.refund_state import fact_of
from operations.domain.statuses import Attention, Fact, Status


class Aspect(StrEnum):
    """What is held against each other, beside the fields of a refund."""

    OUTCOME = "outcome"
    REFUND = "refund"
    OPERATION = "operation"
    SENDING = "sending"
    DISPUTE = "dispute"


@dataclass(frozen=True, slots=True)
class Side:
    """One line of the comparison: what we hold, what the provider says. Amounts in minor units."""

    aspect: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Why a flag is raised. `fact` is at most 400 characters."""

    attention: Attention
    fact: str
    sides: tuple[Side, ...]


def against_the_outcome(
    attention: Attention,
    *,
    status: Status,
    own_refund: str,
    terms: RefundTerms,
    refund: RefundFacts,
    reported: str,
) -> Contradiction:
    """The provider says of our refund the opposite of what was settled. `reported`: its status."""
    said = fact_of(reported) or Fact.PROVIDER_PENDING
    return Contradiction(
        attention=attention,
        fact=f"{refund.id}:{said}",
        sides=(
            Side(Aspect.OUTCOME, status, reported),
            Side(Aspect.REFUND, own_refund, refund.id),
            Side("amount", str(terms.amount), str(refund.amount)),
        ),
    )


def second_refund(*, own_refund: str, terms: RefundTerms, refund: RefundFacts) -> Contradiction:
    """Another refund carries the operation that has one already."""
    return Contradiction(
        attention=Attention.DUPLICATE_REFUND,
        fact=refund.id,
        sides=(
            Side(Aspect.REFUND, own_refund, refund.id),
            Side("amount", str(terms.amount), str(refund.amount)),
        ),
    )


def other_terms(refund: RefundFacts, rows: Iterable[Comparison]) -> Contradiction:
    """A refund with our reference differs in these fields."""
    sides = tuple(Side(row.field, row.sent, row.provider) for row in rows)
    differs = ",".join(f"{side.aspect}={side.theirs}" for side in sides)
    return Contradiction(
        attention=Attention.MISMATCH,
        fact=f"{refund.id}:{differs}"[:400],
        sides=(Side(Aspect.REFUND, "", refund.id), *sides),
    )


def other_owner(refund: RefundFacts, *, operation: str, owner: str) -> Contradiction:
    """A refund that claims this operation was proven to be another's."""
    return Contradiction(
        attention=Attention.MISMATCH,
        fact=f"{refund.id}:operation={owner}"[:400],
        sides=(Side(Aspect.REFUND, "", refund.id), Side(Aspect.OPERATION, operation, owner)),
    )


def unlike_what_was_kept(refund: RefundFacts, kept: RefundFacts) -> Contradiction:
    """A refund differs from what was kept of it before, which therefore was tied to nothing."""
    rows = (
        ("amount", str(kept.amount), str(refund.amount)),
        ("currency", kept.currency, refund.currency),
        ("charge", kept.charge, refund.charge),
    )
    sides = tuple(Side(*row) for row in rows if row[1] != row[2] and row[1] and row[2])
    differs = ",".join(f"{side.aspect}={side.ours}" for side in sides)
    return Contradiction(
        attention=Attention.MISMATCH,
        fact=f"{refund.id}:kept,{differs}"[:400],
        sides=(Side(Aspect.REFUND, "", refund.id), *sides),
    )


def of_an_answer(attention: Attention, *, attempt: str, said: str) -> Contradiction:
    """An answer to a send that needs a person. Each attempt that gets one is a new fact."""
    return Contradiction(
        attention=attention,
        fact=f"attempt:{attempt}",
        sides=(Side(Aspect.SENDING, attempt, said),),
    )
