"""The one door through which anything learned changes an operation.

Everything here runs in the caller's transaction, with the operation's row locked and re-read by
`lock`, and writes evidence, audit and notices together with the change.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import transaction

from operations.domain.answers import RefundFacts
from operations.domain.matching import differences
from operations.domain.refund_state import (
    counts_as_refunded,
    fact_of,
    is_doubtful,
    known_status,
)
from operations.domain.statuses import (
    Attention,
    Fact,
    Status,
    UnknownReason,
    transition,
)
from operations.models import AuditEntry, Evidence, Operation, collecting
from operations.models.proposal import ProposalState
from operations.models.statements import made
from operations.queries.locked import lock_and_read
from operations.services.announcing import announce
from operations.services.learning import Learned
from operations.services.seeing import see_refund


class Taken(StrEnum):
    """What believing a refund came to."""

    CHANGED = "changed"
    NOTHING_NEW = "nothing_new"
    DOUBTFUL = "doubtful"
    UNDECIDED = "undecided"
    MISMATCH = "mismatch"
    SECOND_REFUND = "second_refund"


class OperationNotFound(Exception):
    """There is no operation with this id."""


def lock(operation_id: UUID) -> Operation:
    """The operation as it stands now, with its attempts, locked until the transaction ends.

    Without its key, here and wherever a row is locked: the database checks the foreign keys of
    whatever refers to a row at the commit, and two requests would wait for each other for ever.
    Raises OperationNotFound.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("An operation is locked inside a transaction.")
    operation = lock_and_read(operation_id)
    if operation is None:
        raise OperationNotFound(str(operation_id))
    return operation


def write_evidence(
    operation: Operation,
    learned: Learned,
    *,
    now: datetime,
    refund: RefundFacts | None = None,
) -> Evidence:
    """Keep what was learned, for good."""
    evidence = made(
        Evidence,
        id=Evidence.new_id(),
        operation_id=operation.pk,
        source=learned.source,
        attempt_id=learned.attempt.pk if learned.attempt else None,
        event_id=learned.event.pk if learned.event else None,
        provider_object_id=refund.id if refund else "",
        provider_status=refund.status[:64] if refund else "",
        amount=refund.amount if refund else None,
        currency=refund.currency[:3] if refund else "",
        summary=learned.summary[:500],
        facts=dict(learned.facts),
        observed_at=learned.observed_at,
        recorded_at=now,
        actor_kind=learned.actor.kind,
        actor_name=learned.actor.name,
    )
    collecting.insert(evidence)
    return evidence


def take_fact(
    operation: Operation,
    fact: Fact,
    *,
    learned: Learned,
    now: datetime,
    evidence: Evidence,
    unknown_reason: UnknownReason | None = None,
    reason: str = "",
    **fields: Any,
) -> bool:
    """Let a fact change the operation, with its audit entry. Tells whether anything changed.

    Raises TransitionRefused for a cell that is not in the table.
    """
    before, status = operation.snapshot(), Status(operation.status)
    step = transition(status, fact)
    raises = step.attention is not None and step.attention not in operation.attention
    adds = any(getattr(operation, name) != value for name, value in fields.items())
    if step.to == operation.status and not raises and not adds:
        return False
    operation.take(fact, now=now, unknown_reason=unknown_reason, **fields)
    AuditEntry.append(
        operation_id=operation.pk,
        actor=learned.actor,
        action=str(fact),
        now=now,
        before=before,
        after=operation.snapshot(),
        reason=reason or learned.summary,
        evidence_id=evidence.pk,
    )
    _void_proposals(operation, now)
    announce(operation, before=status, flagged=raises, now=now)
    return True


def raise_attention(
    operation: Operation,
    attention: Attention,
    *,
    learned: Learned,
    now: datetime,
    evidence: Evidence,
) -> bool:
    """Ask for a person without touching the status. Tells whether it was new."""
    if attention in operation.attention:
        return False
    before = operation.snapshot()
    operation.change(now=now, attention=[*operation.attention, str(attention)])
    AuditEntry.append(
        operation_id=operation.pk,
        actor=learned.actor,
        action="attention_raised",
        now=now,
        before=before,
        after=operation.snapshot(),
        reason=learned.summary,
        evidence_id=evidence.pk,
    )
    _void_proposals(operation, now)
    announce(operation, before=Status(operation.status), flagged=True, now=now)
    return True


def take_refund(
    operation: Operation,
    refund: RefundFacts,
    *,
    learned: Learned,
    now: datetime,
    evidence: Evidence | None = None,
) -> Taken:
    """Believe a refund that claims this operation, after comparing its fields.

    A difference is a mismatch and never a change; a second refund of one operation is shown and
    never taken for the first. Evidence is written only when the refund tells something new,
    unless the caller has written it already.
    """

    def ask_for_a_person(attention: Attention) -> None:
        if attention not in operation.attention:
            proof = evidence or write_evidence(operation, learned, now=now, refund=refund)
            raise_attention(operation, attention, learned=learned, now=now, evidence=proof)

    contradicts = bool(differences(operation.terms(), refund))
    seen = see_refund(
        operation.account,
        refund,
        operation=None if contradicts else operation,
        learned=learned,
        now=now,
    )
    if contradicts:
        ask_for_a_person(Attention.MISMATCH)
        return Taken.MISMATCH
    if seen.operation_id != operation.pk:
        ask_for_a_person(Attention.MISMATCH)
        return Taken.MISMATCH
    if operation.provider_object_id not in ("", refund.id):
        if counts_as_refunded(seen.status):
            ask_for_a_person(Attention.DUPLICATE_REFUND)
        return Taken.SECOND_REFUND
    fact = fact_of(seen.status) if known_status(refund.status) else None
    if fact is None:
        # A status that the provider added since decides nothing, and is shown to people.
        if evidence is None:
            write_evidence(operation, learned, now=now, refund=refund)
        return Taken.UNDECIDED
    fields = _fields_of(operation, refund, seen.status, fact)
    if not _is_news(operation, fact, fields):
        doubtful = is_doubtful(seen.status, seen.status_since, refund.status, learned.observed_at)
        return Taken.DOUBTFUL if doubtful else Taken.NOTHING_NEW
    proof = evidence or write_evidence(operation, learned, now=now, refund=refund)
    take_fact(operation, fact, learned=learned, now=now, evidence=proof, **fields)
    return Taken.CHANGED


def _fields_of(
    operation: Operation, refund: RefundFacts, status: str, fact: Fact
) -> dict[str, Any]:
    """What a refund in this status fills in beside the status."""
    fields: dict[str, Any] = {
        "provider_object_id": refund.id,
        "provider_status": status,
    }
    if fact is Fact.PROVIDER_PENDING:
        return fields
    fields["next_check_at"] = None
    if fact is Fact.PROVIDER_FAILED:
        fields["failure_code"] = status
        fields["failure_message"] = refund.failure_reason or operation.failure_message
    return fields


def _is_news(operation: Operation, fact: Fact, fields: Mapping[str, Any]) -> bool:
    step = transition(Status(operation.status), fact)
    raises = step.attention is not None and step.attention not in operation.attention
    if step.to != operation.status or raises:
        return True
    if operation.status == Status.FAILED:
        return False
    return any(getattr(operation, name) != value for name, value in fields.items())


def _void_proposals(operation: Operation, now: datetime) -> None:
    """Whatever changes the operation takes the ground from a proposal that waits."""
    collected = collecting.current()
    if collected is not None and operation.pk in collected.without_proposals:
        return
    collecting.execute(
        "UPDATE operations_proposal SET state = %s, decided_at = %s"
        " WHERE operation_id = %s AND state = %s",
        [ProposalState.VOID, now, operation.pk, ProposalState.WAITING],
    )
