"""The one door through which anything learned changes an operation.

Everything here runs in the caller's transaction, with the operation's row locked and re-read by
`lock`, and writes evidence, audit and notices together with the change.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from operations.domain.answers import RefundFacts
from operations.domain.contradiction import Contradiction
from operations.domain.statuses import Fact, Status, UnknownReason, transition
from operations.models import AuditEntry, Evidence, Flag, Operation, collecting
from operations.models.proposal import ProposalState
from operations.models.statements import made
from operations.queries.locked import lock_and_read
from operations.services.announcing import announce
from operations.services.learning import Learned


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
        event_id=learned.event_pk,
        provider_object_id=refund.id if refund else "",
        provider_status=refund.status[:64] if refund else "",
        amount=refund.amount if refund else None,
        currency=refund.currency[:3] if refund else "",
        summary=learned.summary[:500],
        facts=learned.facts,
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
    contradiction: Contradiction | None = None,
    **fields: Any,
) -> bool:
    """Let a fact change the operation, with its audit entry. Tells whether anything changed.

    `contradiction`: the new one that the fact raises a flag for, where the table asks for one.
    Raises TransitionRefused for a cell that is not in the table.
    """
    before, status = operation.snapshot(), Status(operation.status)
    step = transition(status, fact)
    raises = contradiction is not None
    adds = any(getattr(operation, name) != value for name, value in fields.items())
    if step.to == operation.status and not raises and not adds:
        return False
    operation.take(fact, now=now, unknown_reason=unknown_reason, raises=raises, **fields)
    if contradiction is not None:
        Flag.keep(operation, contradiction, evidence=evidence, now=now)
    AuditEntry.append(
        operation_id=operation.pk,
        actor=learned.actor,
        action=str(fact),
        now=now,
        before=before,
        after=operation.snapshot() | learned.part_of,
        reason=reason or learned.summary,
        evidence_id=evidence.pk,
    )
    void_proposals(operation, now)
    announce(operation, before=status, flagged=raises, now=now)
    return True


def raise_attention(
    operation: Operation,
    contradiction: Contradiction,
    *,
    learned: Learned,
    now: datetime,
    evidence: Evidence | None = None,
    refund: RefundFacts | None = None,
) -> bool:
    """Ask for a person without touching the status. Tells whether the fact was new.

    One that raised its flag before does nothing, also after a person has cleared it. Evidence is
    written unless the caller has written it already.
    """
    if Flag.is_known(operation, contradiction):
        return False
    before = operation.snapshot()
    proof = evidence or write_evidence(operation, learned, now=now, refund=refund)
    flags = dict.fromkeys([*operation.attention, str(contradiction.attention)])
    operation.change(now=now, attention=list(flags))
    Flag.keep(operation, contradiction, evidence=proof, now=now)
    AuditEntry.append(
        operation_id=operation.pk,
        actor=learned.actor,
        action="attention_raised",
        now=now,
        before=before,
        after=operation.snapshot(),
        reason=learned.summary,
        evidence_id=proof.pk,
    )
    void_proposals(operation, now)
    announce(operation, before=Status(operation.status), flagged=True, now=now)
    return True


def void_proposals(operation: Operation, now: datetime) -> None:
    """Whatever changes the operation takes the ground from a proposal that waits for it."""
    collected = collecting.current()
    if collected is not None and operation.pk in collected.without_proposals:
        return
    collecting.execute(
        "UPDATE operations_proposal SET state = %s, decided_at = %s"
        " WHERE operation_id = %s AND state = %s",
        [ProposalState.VOID, now, operation.pk, ProposalState.WAITING],
    )
