"""Closing: a person settles what evidence could not, alone or with a second person."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from operations.domain.answers import RefundFacts
from operations.domain.audit import Actor
from operations.domain.closure import (
    ClosingOutcome,
    EvidenceKind,
    SecondPersonReason,
    is_closable,
)
from operations.domain.contradiction import against_the_outcome
from operations.domain.refund_state import (
    counts_as_refunded,
)
from operations.domain.sentences import gettext_noop, say
from operations.domain.statuses import CLOSED_BY_PERSON, Attention, Fact, Status
from operations.models import (
    AuditEntry,
    Evidence,
    EvidenceSource,
    Operation,
    Proposal,
)
from operations.models.proposal import ProposalState
from operations.services.claiming import let_go, refuse_others
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.seeing import see_refund
from operations.services.settling import (
    lock,
    raise_attention,
    take_fact,
    write_evidence,
)
from operations.services.weighing import (
    BulkPart,
    ClosingRefused,
    Decision,
    Overtaken,
    StaleView,
    anothers,
    checked_refund,
    refuse_mere_absence,
    why_second_person,
)


def close(
    *, engine: Engine, operation_id: UUID, decision: Decision, actor: Actor
) -> Proposal | None:
    """Settle an operation by a person's decision, or propose it when a second person is needed.

    None when it is closed; the proposal when it waits. Raises StaleView, ClosingRefused.
    """
    refund = checked_refund(engine, operation_id, decision)
    with transaction.atomic():
        operation = lock_as_seen(operation_id, decision.revision)
        now = engine.clock()
        refuse_others(operation, actor=actor, now=now)
        alone = decision.evidence_kind is EvidenceKind.ABSENT_IN_LOOKUP
        reasons = why_second_person(engine, operation, decision.outcome, now, absence_alone=alone)
        refuse_if_waiting(operation)
        refuse_mere_absence(engine, operation, decision)
        let_go(operation_id)
        if reasons:
            return propose(operation, decision, reasons, actor, now)
        settle(operation, decision, refund, actor, now)
        return None


def approve(
    *, engine: Engine, proposal_id: int, revision: int, note: str, actor: Actor
) -> Operation:
    """A second person lets a proposal come true. Raises StaleView, ClosingRefused."""
    proposal = Proposal.objects.get(pk=proposal_id)
    decision = Decision(
        outcome=ClosingOutcome(proposal.outcome),
        evidence_kind=EvidenceKind(proposal.evidence_kind),
        evidence_reference=proposal.evidence_reference,
        note=proposal.note,
        revision=revision,
    )
    refund = checked_refund(engine, proposal.operation_id, decision)
    with transaction.atomic():
        operation = lock_as_seen(proposal.operation_id, revision)
        now = engine.clock()
        refuse_others(operation, actor=actor, now=now)
        proposal = locked_proposal(proposal_id, actor)
        refuse_mere_absence(engine, operation, decision)
        let_go(operation.pk)
        decide_proposal(proposal, ProposalState.APPROVED, note, actor, now)
        settle(operation, decision, refund, actor, now, proposal=proposal)
        return operation


@transaction.atomic
def reject(*, engine: Engine, proposal_id: int, note: str, actor: Actor) -> Operation:
    """A second person turns a proposal down; the operation stays as it is.

    Raises ClosingRefused.
    """
    operation = lock(Proposal.objects.get(pk=proposal_id).operation_id)
    now = engine.clock()
    refuse_others(operation, actor=actor, now=now)
    proposal = locked_proposal(proposal_id, actor)
    let_go(operation.pk)
    decide_proposal(proposal, ProposalState.REJECTED, note, actor, now)
    _audit(operation, actor, "proposal_rejected", note, now, proposal)
    return operation


def lock_as_seen(operation_id: UUID, revision: int) -> Operation:
    """The locked operation, if it is as the page showed it. Raises StaleView."""
    operation = lock(operation_id)
    if operation.revision != revision:
        raise StaleView(operation)
    return operation


def refuse_if_waiting(operation: Operation) -> None:
    """One proposal at a time. Raises Overtaken."""
    if operation.proposals.filter(state=ProposalState.WAITING).exists():
        raise Overtaken(say("A proposal is waiting for a second person already."))


_NOT_CLOSED_BY_HAND = {
    Status.OPEN: gettext_noop("This refund is still being sent, so it can't be closed by hand."),
    Status.SUCCEEDED: gettext_noop("This refund succeeded already; there is nothing to close."),
    Status.FAILED: gettext_noop("This refund failed already; there is nothing to close."),
}


def _refuse_what_has_an_end(operation: Operation) -> None:
    status = Status(operation.status)
    if not is_closable(status):
        raise ClosingRefused(say(_NOT_CLOSED_BY_HAND[status]))


def settle(
    operation: Operation,
    decision: Decision,
    refund: RefundFacts | None,
    actor: Actor,
    now: datetime,
    *,
    proposal: Proposal | None = None,
    has_live_refund: bool | None = None,
    learned: Learned | None = None,
) -> None:
    """Record a decision about a locked operation that was weighed. Raises ClosingRefused.

    `has_live_refund`: whether a refund of it is known that counts; None to look. `learned`: what
    `stated` made of the decision, where it is the same for many.
    """
    _refuse_what_has_an_end(operation)
    learned = learned or stated(decision, actor, now, proposal)
    evidence = write_evidence(operation, learned, now=now, refund=refund)
    if refund is not None:
        _close_succeeded(operation, refund, learned, evidence, now, decision.note)
        return
    take_fact(
        operation,
        Fact.CLOSED_FAILED,
        learned=learned,
        now=now,
        evidence=evidence,
        reason=decision.note.strip(),
        failure_code=CLOSED_BY_PERSON,
        failure_message=decision.note.strip()[:500],
        next_check_at=None,
    )
    for row in () if has_live_refund is False else operation.refunds.all():
        if counts_as_refunded(row.status):
            # Two people decided against what the provider shows: both stay in front of people.
            found = against_the_outcome(
                Attention.CONFLICT,
                status=Status(operation.status),
                own_refund=operation.provider_object_id,
                terms=operation.terms(),
                refund=row.as_facts(),
                reported=row.status,
            )
            raise_attention(operation, found, learned=learned, now=now, evidence=evidence)


def stated(
    decision: Decision, actor: Actor, now: datetime, proposal: Proposal | None = None
) -> Learned:
    """A person's decision as evidence."""
    return Learned(
        source=EvidenceSource.STATEMENT,
        summary=f"{actor.name}: {decision.note.strip()}",
        actor=actor,
        observed_at=now,
        facts={
            "outcome": decision.outcome,
            "kind": decision.evidence_kind,
            "reference": decision.evidence_reference.strip(),
            "note": decision.note.strip(),
            "proposed_by": proposal.proposed_by_name if proposal else "",
            "approval_note": proposal.decision_note if proposal else "",
            "form": proposal.form_token if proposal else decision.form_token,
            **_of_run(decision.part),
        },
        bulk_run=decision.part.run if decision.part else None,
    )


def _close_succeeded(
    operation: Operation,
    refund: RefundFacts,
    learned: Learned,
    evidence: Evidence,
    now: datetime,
    note: str,
) -> None:
    seen = see_refund(operation.account, refund, operation=operation, learned=learned, now=now)
    if seen.operation_id != operation.pk or operation.provider_object_id not in (
        "",
        refund.id,
    ):
        raise anothers(refund)
    take_fact(
        operation,
        Fact.CLOSED_SUCCEEDED,
        learned=learned,
        now=now,
        evidence=evidence,
        reason=note.strip(),
        provider_object_id=refund.id,
        provider_status=seen.status,
        next_check_at=None,
    )


def _of_run(part: BulkPart | None) -> dict[str, Any]:
    if part is None:
        return {}
    return {
        "bulk_run": part.run,
        "bulk_approved_by": part.approved_by,
        "bulk_approval_note": part.approval_note,
    }


def propose(
    operation: Operation,
    decision: Decision,
    reasons: tuple[SecondPersonReason, ...],
    actor: Actor,
    now: datetime,
) -> Proposal:
    """Let a decision about a locked operation wait for a second person. Raises ClosingRefused."""
    _refuse_what_has_an_end(operation)
    proposal = Proposal(
        operation=operation,
        outcome=decision.outcome,
        evidence_kind=decision.evidence_kind,
        evidence_reference=decision.evidence_reference.strip(),
        note=decision.note.strip(),
        reasons=[str(reason) for reason in reasons],
        form_token=decision.form_token,
    )
    run = decision.part.run if decision.part else None
    return propose_as(operation, proposal, actor=actor, now=now, action="proposed", bulk_run=run)


def propose_as(
    operation: Operation,
    proposal: Proposal,
    *,
    actor: Actor,
    now: datetime,
    action: str,
    bulk_run: int | None = None,
) -> Proposal:
    """Let a proposal wait for a second person, in the name of who makes it."""
    proposal.revision = operation.revision
    proposal.proposed_by, proposal.proposed_by_name = actor.id, actor.name
    proposal.proposed_at = now
    proposal.save()
    _audit(operation, actor, action, proposal.note, now, proposal, bulk_run)
    return proposal


_DECIDED = {
    ProposalState.APPROVED: gettext_noop("This proposal was agreed to already."),
    ProposalState.REJECTED: gettext_noop("This proposal was turned down already."),
    ProposalState.VOID: gettext_noop("This proposal ended when the operation changed."),
}


def locked_proposal(proposal_id: int, actor: Actor) -> Proposal:
    """A waiting proposal that this person may decide. Raises ClosingRefused."""
    proposal = Proposal.objects.select_for_update(no_key=True).get(pk=proposal_id)
    if proposal.state != ProposalState.WAITING:
        raise Overtaken(say(_DECIDED[ProposalState(proposal.state)]))
    if proposal.proposed_by == actor.id:
        raise ClosingRefused(say("You proposed this; another person has to decide."))
    return proposal


def decide_proposal(
    proposal: Proposal, state: ProposalState, note: str, actor: Actor, now: datetime
) -> None:
    """Write a second person's answer into a proposal. Raises ClosingRefused."""
    if not note.strip():
        raise ClosingRefused(say("Write a note: what did you check?"), "note")
    proposal.state = state
    proposal.decided_by = actor.id
    proposal.decided_by_name = actor.name
    proposal.decided_at = now
    proposal.decision_note = note.strip()
    proposal.save()


def _audit(
    operation: Operation,
    actor: Actor,
    action: str,
    reason: str,
    now: datetime,
    proposal: Proposal,
    bulk_run: int | None = None,
) -> None:
    part_of = {} if bulk_run is None else {"bulk_run": bulk_run}
    AuditEntry.append(
        operation_id=operation.pk,
        actor=actor,
        action=action,
        now=now,
        before=operation.snapshot(),
        after=operation.snapshot()
        | {"proposal": proposal.pk, "outcome": proposal.outcome}
        | part_of,
        reason=reason,
    )
