"""One line of a report, matched and taken as every other report of a refund is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from operations.domain.answers import RefundFacts
from operations.domain.audit import Actor
from operations.domain.contradiction import other_terms
from operations.domain.matching import our_mark, place_differences
from operations.domain.statuses import UNRESOLVED
from operations.models import Account, EvidenceSource, Operation, ProviderRefund, collecting
from operations.models.report_file import RowResult
from operations.services.believing import Taken, take_refund
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.seeing import as_shown, see_all, see_refund
from operations.services.settling import OperationNotFound, lock, raise_attention


@dataclass(frozen=True, kw_only=True)
class Told:
    """Where a line stands and who lets it be applied; `at` in UTC."""

    summary: str
    actor: Actor
    at: datetime
    facts: Mapping[str, Any]

    def learned(self) -> Learned:
        """The evidence that the line is."""
        return Learned(
            source=EvidenceSource.REPORT_ROW,
            summary=self.summary,
            actor=self.actor,
            observed_at=self.at,
            facts=self.facts,
        )


@dataclass(frozen=True, kw_only=True)
class LineTaken:
    """What became of a line."""

    result: RowResult
    operation_id: UUID | None = None


def take_line(*, engine: Engine, account: Account, refund: RefundFacts, told: Told) -> LineTaken:
    """Find the operation by the refund's id or by our mark, never by amount, and believe the line.

    In the caller's transaction.
    """
    now = engine.clock()
    learned = told.learned()
    operation_id = _owner(account, refund)
    mark = our_mark(refund.metadata)

    def kept(result: RowResult) -> LineTaken:
        see_refund(account, refund, operation=None, learned=learned, now=now)
        return LineTaken(result=result)

    if operation_id is None and mark is not None and mark.environment != engine.environment:
        return kept(RowResult.OTHER_ENVIRONMENT)
    operation_id = operation_id or (mark.operation_id if mark else None)
    if operation_id is None:
        return kept(RowResult.KEPT)
    try:
        operation = lock(operation_id)
    except OperationNotFound:
        return kept(RowResult.UNMATCHED)
    misplaced = place_differences(
        operation.terms(), account=account.provider_account, livemode=account.livemode
    )
    if misplaced:
        found = other_terms(refund, misplaced)
        raise_attention(operation, found, learned=learned, now=now, refund=refund)
        kept(RowResult.CONTRADICTS)
        return LineTaken(result=RowResult.CONTRADICTS, operation_id=operation.pk)
    return _believe(operation, refund, learned, now)


def see_lines(
    *, engine: Engine, account: Account, lines: Sequence[tuple[RefundFacts, Told]]
) -> None:
    """Lock or insert the refunds of lines that name no operation, in one statement.

    In a transaction that collects its writes; `take_line` then finds each of them.
    """
    shown = {
        refund.id: as_shown(
            account.pk, refund, operation=None, learned=told.learned(), now=engine.clock()
        )
        for refund, told in lines
    }
    see_all(list(shown.values()))


def _owner(account: Account, refund: RefundFacts) -> UUID | None:
    """The operation that a refund of this id is known to belong to."""
    collected = collecting.current()
    seen: ProviderRefund | None = (
        collected.refunds.get((account.pk, refund.id)) if collected else None
    )
    if seen is not None:
        found: UUID | None = seen.operation_id
        return found
    known = ProviderRefund.objects.filter(account=account, provider_object_id=refund.id)
    return known.values_list("operation_id", flat=True).first()


def _believe(
    operation: Operation, refund: RefundFacts, learned: Learned, now: datetime
) -> LineTaken:
    flags = set(operation.attention)
    taken = take_refund(operation, refund, learned=learned, now=now)
    result = _RESULT_OF[taken]
    if set(operation.attention) - flags:
        result = RowResult.CONTRADICTS
    is_due = taken is Taken.UNDECIDED or operation.next_check_at is None
    if is_due and operation.status in UNRESOLVED:
        # The provider is asked, and what it has is believed.
        operation.plan(now=now, next_check_at=now)
    return LineTaken(result=result, operation_id=operation.pk)


_RESULT_OF = {
    Taken.CHANGED: RowResult.APPLIED,
    Taken.NOTHING_NEW: RowResult.NO_CHANGE,
    # Nobody knows when the provider wrote a line: an older state says nothing.
    Taken.DOUBTFUL: RowResult.NO_CHANGE,
    Taken.UNDECIDED: RowResult.NEEDS_LOOKUP,
    Taken.SECOND_REFUND: RowResult.CONTRADICTS,
    Taken.MISMATCH: RowResult.CONTRADICTS,
}
