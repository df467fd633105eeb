"""Faults in what is made of evidence."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from unittest.mock import patch
from uuid import UUID

from django.db import transaction

from operations.domain import refund_state
from operations.domain.answers import RefundFacts
from operations.domain.refund_state import RefundStatus
from operations.domain.statuses import Fact
from operations.models import AuditEntry, EvidenceSource, Operation
from operations.services import (
    believing,
    finishing,
    learning,
    looking_up,
    seeing,
    settling,
    sweeping,
)
from operations.services.actors import LOOKUP_JOB
from operations.services.engine import Engine
from operations.services.looking_up import LookupResult
from tests.simulation.faults.planting import planted


@planted
def absence_settles() -> Iterator[None]:
    """A refund that a look-up does not find is taken for one that was never made."""
    look_up = looking_up.look_up

    def settle_absent(*, engine: Engine, operation_id: UUID, **about: Any) -> LookupResult:
        result = look_up(engine=engine, operation_id=operation_id, **about)
        if result is not LookupResult.ABSENT:
            return result
        with transaction.atomic():
            operation = settling.lock(operation_id)
            if operation.status != "unknown":
                return result
            now = engine.clock()
            learned = learning.Learned(
                source=EvidenceSource.LOOKUP,
                summary="Not there.",
                actor=LOOKUP_JOB,
                observed_at=now,
            )
            settling.take_fact(
                operation,
                Fact.CLOSED_FAILED,
                learned=learned,
                now=now,
                evidence=settling.write_evidence(operation, learned, now=now),
            )
        return result

    with patch.object(sweeping, "look_up", settle_absent):
        yield


@planted
def read_before_the_lock() -> Iterator[None]:
    """A look-up goes on with the row as it was before the provider was read."""
    before: dict[UUID, Operation] = {}
    read = looking_up._read

    def remember(provider: Any, operation: Operation) -> Any:
        before[operation.pk] = operation
        return read(provider, operation)

    def stale(operation_id: UUID) -> Operation:
        now = settling.lock(operation_id)
        row = before[operation_id]
        row.revision = now.revision
        return row

    with (
        patch.object(looking_up, "_read", remember),
        patch.object(looking_up, "lock", stale),
    ):
        yield


@planted
def late_answer_overwrites() -> Iterator[None]:
    """An answer that comes after the sweep gave its attempt up is the last word."""

    def overwrite(operation: Operation, reading: Any, learned: Any, now: datetime) -> None:
        settling.write_evidence(operation, learned, now=now, refund=reading.refund)
        if reading.refund is None:
            operation._write(now, status="unknown", unknown_reason="interrupted", settled_at=None)

    with patch.object(finishing, "_keep_late_answer", overwrite):
        yield


@planted
def matched_by_amount() -> Iterator[None]:
    """A refund of the same amount on the same payment is taken for ours."""
    is_ours = looking_up._is_ours

    def looks_like_ours(operation: Operation, refund: RefundFacts) -> bool:
        fits = not refund.metadata and refund.amount == operation.amount
        return is_ours(operation, refund) or (fits and not operation.provider_object_id)

    with patch.object(looking_up, "_is_ours", looks_like_ours):
        yield


@planted
def pending_taken_for_success() -> Iterator[None]:
    """A refund that the provider has not finished counts as made."""

    def fact_of(status: str) -> Fact | None:
        fact = refund_state.fact_of(status)
        return Fact.PROVIDER_SUCCEEDED if fact is Fact.PROVIDER_PENDING else fact

    with patch.object(believing, "fact_of", fact_of):
        yield


@planted
def success_taken_for_final() -> Iterator[None]:
    """A refund that fails days after it had succeeded is not heard any more."""
    is_news, contradicts = believing._is_news, believing._new_contradiction

    def unless_done(operation: Operation, *about: Any) -> bool:
        return operation.status != "succeeded" and is_news(operation, *about)

    def or_contradicted(report: Any, *about: Any) -> Any:
        return None if report.operation.status == "succeeded" else contradicts(report, *about)

    with (
        patch.object(believing, "_is_news", unless_done),
        patch.object(believing, "_new_contradiction", or_contradicted),
    ):
        yield


@planted
def last_report_wins() -> Iterator[None]:
    """The order in which reports arrive is taken for the order in which things happened."""

    def last(stored: str, reported: str) -> str:
        return RefundStatus(reported)

    with patch.object(seeing, "furthest", last):
        yield


@planted
def failure_overwritten() -> Iterator[None]:
    """Evidence against a settled failure changes it, without a word to anybody."""
    from operations.domain import statuses

    succeeded = statuses.Transition(statuses.Status.SUCCEEDED)
    key = (statuses.Status.FAILED, Fact.PROVIDER_SUCCEEDED)
    with patch.dict(statuses.TRANSITIONS, {key: succeeded}):
        yield


@planted
def audit_entry_forgotten() -> Iterator[None]:
    """One kind of change leaves no entry."""
    append = AuditEntry.append

    def forget(*, action: str, **about: Any) -> AuditEntry | None:
        if action in (Fact.LEFT_UNDECIDED, "attention_raised"):
            return None
        return append(action=action, **about)

    with patch.object(AuditEntry, "append", forget):
        yield
