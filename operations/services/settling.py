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
from operations.domain.contradiction import (
    Contradiction,
    against_the_outcome,
    other_owner,
    other_terms,
    second_refund,
)
from operations.domain.matching import differences, names_the_payment
from operations.domain.refund_state import (
    counts_as_refunded,
    fact_of,
    is_doubtful,
    known_status,
)
from operations.domain.statuses import (
    Fact,
    Status,
    UnknownReason,
    transition,
)
from operations.models import AuditEntry, Evidence, EvidenceSource, Flag, Operation, collecting
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
        event_id=learned.event_pk,
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
        after=operation.snapshot(),
        reason=reason or learned.summary,
        evidence_id=evidence.pk,
    )
    _void_proposals(operation, now)
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

    def ask_for_a_person(contradiction: Contradiction) -> None:
        raise_attention(
            operation, contradiction, learned=learned, now=now, evidence=evidence, refund=refund
        )

    terms = operation.terms()
    wrong = differences(terms, refund)
    # A mark and an amount can be copied; the payment is asked for before it is believed.
    is_hearsay = _is_hearsay(operation, refund, learned.source)
    seen = see_refund(
        operation.account,
        refund,
        operation=None if wrong or is_hearsay else operation,
        learned=learned,
        now=now,
    )
    if wrong:
        ask_for_a_person(other_terms(refund, wrong))
        return Taken.MISMATCH
    if is_hearsay:
        write_evidence(operation, learned, now=now, refund=refund)
        return Taken.UNDECIDED
    if seen.operation_id != operation.pk:
        owner = str(seen.operation_id)
        ask_for_a_person(other_owner(refund, operation=str(operation.pk), owner=owner))
        return Taken.MISMATCH
    if operation.provider_object_id not in ("", refund.id):
        if counts_as_refunded(seen.status):
            own = operation.provider_object_id
            ask_for_a_person(second_refund(own_refund=own, terms=terms, refund=refund))
        return Taken.SECOND_REFUND
    fact = fact_of(seen.status) if known_status(refund.status) else None
    if fact is None:
        # A status that the provider added since decides nothing, and is shown to people.
        if evidence is None:
            write_evidence(operation, learned, now=now, refund=refund)
        return Taken.UNDECIDED
    fields = _fields_of(operation, refund, seen.status, fact)
    contradiction = _new_contradiction(operation, fact, refund, seen.status)
    if contradiction is None and not _is_news(operation, fact, fields):
        doubtful = is_doubtful(seen.status, seen.status_since, refund.status, learned.observed_at)
        return Taken.DOUBTFUL if doubtful else Taken.NOTHING_NEW
    proof = evidence or write_evidence(operation, learned, now=now, refund=refund)
    take_fact(
        operation,
        fact,
        learned=learned,
        now=now,
        evidence=proof,
        contradiction=contradiction,
        **fields,
    )
    return Taken.CHANGED


def is_proven(operation: Operation, refund: RefundFacts, *, source: EvidenceSource) -> bool:
    """Whether a refund that names this operation is believed to be its own."""
    return not differences(operation.terms(), refund) and not _is_hearsay(operation, refund, source)


#: What was written down elsewhere, and not shown when this very payment was asked for.
_HEARSAY = frozenset([EvidenceSource.WEBHOOK, EvidenceSource.REPORT_ROW])


def _is_hearsay(operation: Operation, refund: RefundFacts, source: EvidenceSource) -> bool:
    """Whether an event's refund neither shows the payment nor is known to be the operation's."""
    return (
        source in _HEARSAY
        and refund.id != operation.provider_object_id
        and not names_the_payment(operation.terms(), refund)
    )


def _fields_of(
    operation: Operation, refund: RefundFacts, status: str, fact: Fact
) -> dict[str, Any]:
    """What a refund in this status fills in beside the status."""
    fields: dict[str, Any] = {
        "provider_object_id": refund.id,
        "provider_status": status,
    }
    if fact is Fact.PROVIDER_PENDING or operation.status == Status.FAILED:
        # What an operation failed of stays as it was written; what the provider says is beside it.
        return fields
    fields["next_check_at"] = None
    if fact is Fact.PROVIDER_FAILED:
        fields["failure_code"] = status
        fields["failure_message"] = refund.failure_reason or operation.failure_message
    return fields


def _new_contradiction(
    operation: Operation, fact: Fact, refund: RefundFacts, reported: str
) -> Contradiction | None:
    """The contradiction that this fact brings to a settled operation, if it is a new one."""
    attention = transition(Status(operation.status), fact).attention
    if attention is None:
        return None
    found = against_the_outcome(
        attention,
        status=Status(operation.status),
        own_refund=operation.provider_object_id,
        terms=operation.terms(),
        refund=refund,
        reported=reported,
    )
    return None if Flag.is_known(operation, found) else found


def _is_news(operation: Operation, fact: Fact, fields: Mapping[str, Any]) -> bool:
    if transition(Status(operation.status), fact).to != operation.status:
        return True
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
