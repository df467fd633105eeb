"""The lines of a report, matched and taken as every other report of a refund is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from operations.domain.answers import RefundFacts
from operations.domain.audit import Actor
from operations.domain.contradiction import other_terms
from operations.domain.matching import Comparison, our_mark, place_differences
from operations.domain.statuses import UNRESOLVED
from operations.models import Account, EvidenceSource, Operation, ProviderRefund, collecting
from operations.models.report_file import RowResult
from operations.queries.locked import lock_and_read_all
from operations.queries.reports import Stored, stored_refunds
from operations.services.believing import Taken, is_proven, take_refund
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

    def learned(self, is_borne_out: bool) -> Learned:
        """The evidence that the line is. `is_borne_out`: the provider told of the refund, too."""
        return Learned(
            source=EvidenceSource.REPORT_ROW,
            summary=self.summary,
            actor=self.actor,
            observed_at=self.at,
            facts=self.facts,
            is_borne_out=is_borne_out,
        )


@dataclass(frozen=True, kw_only=True)
class LineTaken:
    """What became of a line."""

    result: RowResult
    operation_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line: the refund that it tells of, and where it stands."""

    refund: RefundFacts
    told: Told


def take_lines(*, engine: Engine, account: Account, lines: Sequence[Line]) -> list[LineTaken]:
    """Find each line's operation by the refund's id or by our mark, and believe the line.

    In a transaction that collects its writes. Never by amount. As with events, an operation changes
    by one line in each statement that is sent; lines that speak of the same keep their order.
    """
    ground = _survey(engine, account, lines)
    taken: dict[int, LineTaken] = {}
    waiting = list(enumerate(ground.lines))
    while waiting:
        later: list[tuple[int, _Line]] = []
        held: set[object] = set()
        for place, line in waiting:
            touched = ground.touched_by(line)
            if not held.isdisjoint(touched) or ground.is_being_written(touched):
                held |= touched
                later.append((place, line))
            else:
                taken[place] = _take(ground, line)
        if later:
            collecting.flush()
        waiting = later
    return [taken[place] for place in range(len(lines))]


@dataclass(frozen=True, slots=True)
class _Line:
    refund: RefundFacts
    learned: Learned


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What is known while lines are matched. The operations and refunds in it are locked."""

    engine: Engine
    account: Account
    now: datetime
    lines: list[_Line]
    collected: collecting.Collected
    surveyed: set[UUID]

    def owner_of(self, line: _Line) -> UUID | None:
        """The operation that a refund of this id is known to belong to."""
        seen: ProviderRefund | None = self.collected.refunds.get((self.account.pk, line.refund.id))
        found: UUID | None = seen.operation_id if seen is not None else None
        return found

    def marked_by(self, line: _Line) -> UUID | None:
        """The operation that the line's metadata names, if it is of this environment."""
        mark = our_mark(line.refund.metadata)
        is_here = mark is not None and mark.environment == self.engine.environment
        return mark.operation_id if mark is not None and is_here else None

    def touched_by(self, line: _Line) -> set[object]:
        """The refund, and the operations it may speak of."""
        touched: set[object] = {line.refund.id, self.owner_of(line), self.marked_by(line)}
        return touched - {None}

    def is_being_written(self, touched: set[object]) -> bool:
        """Whether a change of one of these operations waits to be sent."""
        locked = self.collected.locked
        return any(
            collecting.is_planned(locked[one])
            for one in touched
            if isinstance(one, UUID) and one in locked
        )

    def operation(self, operation_id: UUID) -> Operation | None:
        """The operation, if there is one with this id."""
        found: Operation | None = self.collected.locked.get(operation_id)
        if found is not None or operation_id in self.surveyed:
            return found
        # Whose refund it is was written down between the survey and the lock.
        try:
            return lock(operation_id)
        except OperationNotFound:
            return None

    def first_reports(self) -> Iterator[ProviderRefund]:
        """Each refund of the lines, as the first line about it shows it."""
        seen: set[str] = set()
        for line in self.lines:
            if line.refund.id in seen:
                continue
            seen.add(line.refund.id)
            named = self.marked_by(line)
            operation = self.collected.locked.get(named) if named else None
            fits = (
                operation is not None
                and not self.misplacement(operation)
                and is_proven(operation, line.refund, learned=line.learned)
            )
            yield as_shown(
                self.account.pk,
                line.refund,
                operation=operation if fits else None,
                learned=line.learned,
                now=self.now,
            )

    def misplacement(self, operation: Operation) -> tuple[Comparison, ...]:
        """What differs when the operation is another account's or mode's."""
        account = self.account
        return place_differences(
            operation.terms(), account=account.provider_account, livemode=account.livemode
        )


def _survey(engine: Engine, account: Account, lines: Sequence[Line]) -> _Ground:
    """Read and lock what these lines are about, in a handful of statements."""
    collected = collecting.current()
    if collected is None:
        raise RuntimeError("Lines are matched in a transaction that collects its writes.")
    stored = stored_refunds(account, [line.refund for line in lines])
    ground = _Ground(
        engine=engine,
        account=account,
        now=engine.clock(),
        lines=[
            _Line(line.refund, line.told.learned(_is_borne_out(stored, line.refund)))
            for line in lines
        ],
        collected=collected,
        surveyed={kept.operation_id for kept in stored.values() if kept.operation_id},
    )
    marked = [named for line in ground.lines if (named := ground.marked_by(line))]
    ground.surveyed.update(marked)
    lock_and_read_all(ground.surveyed, collected=collected, spare_ids=len(marked))
    see_all(list(ground.first_reports()))
    return ground


def _is_borne_out(stored: Mapping[str, Stored], refund: RefundFacts) -> bool:
    kept = stored.get(refund.id)
    return kept is not None and kept.is_borne_out


def _take(ground: _Ground, line: _Line) -> LineTaken:
    refund, learned, now = line.refund, line.learned, ground.now

    def kept(result: RowResult) -> LineTaken:
        see_refund(ground.account, refund, operation=None, learned=learned, now=now)
        return LineTaken(result=result)

    operation_id = ground.owner_of(line) or ground.marked_by(line)
    if operation_id is None:
        is_marked = our_mark(refund.metadata) is not None
        return kept(RowResult.OTHER_ENVIRONMENT if is_marked else RowResult.KEPT)
    operation = ground.operation(operation_id)
    if operation is None:
        return kept(RowResult.UNMATCHED)
    misplaced = ground.misplacement(operation)
    if misplaced:
        found = other_terms(refund, misplaced)
        raise_attention(operation, found, learned=learned, now=now, refund=refund)
        kept(RowResult.CONTRADICTS)
        return LineTaken(result=RowResult.CONTRADICTS, operation_id=operation.pk)
    return _believe(operation, refund, learned, now)


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
