"""Closing: a person settles what evidence could not, alone or with a second person."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from operations.domain.absence import Grade
from operations.domain.answers import RefundFacts
from operations.domain.audit import Actor
from operations.domain.closure import (
    Absence,
    ClosingOutcome,
    EvidenceKind,
    SecondPersonReason,
    absence_is_fresh,
    is_closable,
    second_person_reasons,
)
from operations.domain.contradiction import against_the_outcome
from operations.domain.matching import differences, our_mark
from operations.domain.refund_state import (
    RefundStatus,
    counts_as_refunded,
    known_status,
)
from operations.domain.statuses import Attention, Fact, Status
from operations.models import (
    AuditEntry,
    Evidence,
    EvidenceSource,
    Operation,
    Policy,
    PolicyName,
    Proposal,
)
from operations.models.proposal import ProposalState
from operations.providers import ReadFailed, RefundNotFound
from operations.queries.absence import grade_of, lookups_of
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.seeing import see_refund
from operations.services.settling import (
    lock,
    raise_attention,
    take_fact,
    write_evidence,
)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a person found. `revision` is the one their page showed."""

    outcome: ClosingOutcome
    evidence_kind: EvidenceKind
    evidence_reference: str
    note: str
    revision: int


class StaleView(Exception):
    """The operation moved on since the page was made; nothing was changed."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__("The operation has changed since this page was made.")


class ClosingRefused(Exception):
    """This closing can't be done; nothing was changed. `field` names what to mend, "" for none."""

    def __init__(self, message: str, field: str = "") -> None:
        self.field = field
        super().__init__(message)


def close(
    *, engine: Engine, operation_id: UUID, decision: Decision, actor: Actor
) -> Proposal | None:
    """Settle an operation by a person's decision, or propose it when a second person is needed.

    None when it is closed; the proposal when it waits. Raises StaleView, ClosingRefused.
    """
    refund = _checked_refund(engine, operation_id, decision)
    with transaction.atomic():
        operation = _lock_as_seen(operation_id, decision.revision)
        now = engine.clock()
        alone = decision.evidence_kind is EvidenceKind.ABSENT_IN_LOOKUP
        reasons = why_second_person(engine, operation, decision.outcome, now, absence_alone=alone)
        _refuse_if_waiting(operation)
        _refuse_mere_absence(engine, operation, decision)
        if reasons:
            return _propose(operation, decision, reasons, actor, now)
        _settle(operation, decision, refund, actor, now)
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
    refund = _checked_refund(engine, proposal.operation_id, decision)
    with transaction.atomic():
        operation = _lock_as_seen(proposal.operation_id, revision)
        now = engine.clock()
        proposal = _locked_proposal(proposal_id, actor)
        _refuse_mere_absence(engine, operation, decision)
        _decide_proposal(proposal, ProposalState.APPROVED, note, actor, now)
        _settle(operation, decision, refund, actor, now, proposal=proposal)
        return operation


@transaction.atomic
def reject(*, engine: Engine, proposal_id: int, note: str, actor: Actor) -> Operation:
    """A second person turns a proposal down; the operation stays as it is.

    Raises ClosingRefused.
    """
    operation = lock(Proposal.objects.get(pk=proposal_id).operation_id)
    now = engine.clock()
    proposal = _locked_proposal(proposal_id, actor)
    _decide_proposal(proposal, ProposalState.REJECTED, note, actor, now)
    _audit(operation, actor, "proposal_rejected", note, now, proposal)
    return operation


def why_second_person(
    engine: Engine,
    operation: Operation,
    outcome: ClosingOutcome,
    now: datetime,
    *,
    absence_alone: bool = False,
) -> tuple[SecondPersonReason, ...]:
    """Why closing it this way wants a second person; empty when one is enough."""
    contract = engine.provider(operation.account).contract
    has_live_refund = any(counts_as_refunded(row.status) for row in operation.refunds.all())
    return second_person_reasons(
        outcome=outcome,
        money=operation.money,
        limits=engine.second_person_above,
        has_contradiction=bool(operation.attention)
        or (outcome is ClosingOutcome.FAILED and has_live_refund),
        fresh_absence=absence_is_fresh(
            newest_absence(operation),
            now=now,
            conclusive_after_s=contract.lookup_conclusive_after_s,
        ),
        absence_alone=absence_alone,
    )


def newest_absence(operation: Operation) -> Absence | None:
    """The newest look-up, if it did not find the refund."""
    newest = (
        operation.evidence.filter(source=EvidenceSource.LOOKUP).order_by("-recorded_at").first()
    )
    if newest is None or newest.facts.get("result") not in ("absent", "incomplete"):
        return None
    last_sent_at = operation.last_sent_at
    return Absence(
        looked_at=newest.observed_at,
        complete=newest.facts.get("complete") is True,
        explained=newest.facts.get("total_explained") is not False,
        # From the last send there is, which may be later than the look-up.
        seconds_after_send=(newest.observed_at - last_sent_at).total_seconds()
        if last_sent_at
        else None,
    )


def _lock_as_seen(operation_id: UUID, revision: int) -> Operation:
    operation = lock(operation_id)
    if operation.revision != revision:
        raise StaleView(operation)
    return operation


def _refuse_if_waiting(operation: Operation) -> None:
    if operation.proposals.filter(state=ProposalState.WAITING).exists():
        raise ClosingRefused("A proposal is waiting for a second person already.")


def _refuse_mere_absence(engine: Engine, operation: Operation, decision: Decision) -> None:
    """Absence alone closes nothing unless an administrator allowed it and it is worth that."""
    if decision.evidence_kind is not EvidenceKind.ABSENT_IN_LOOKUP:
        return
    if not Policy.is_on(PolicyName.CLOSE_BY_ABSENCE):
        raise ClosingRefused("An absence alone closes nothing here. Name other evidence.", "kind")
    worth = absence_grade(engine, operation)
    if not worth.suggests_failed:
        raise ClosingRefused(
            "The look-ups do not show enough of an absence yet. Look up again later.", "kind"
        )


def absence_grade(engine: Engine, operation: Operation) -> Grade:
    """What it is worth that look-ups did not find the refund."""
    contract = engine.provider(operation.account).contract
    return grade_of(
        operation,
        lookups_of(operation),
        conclusive_after_s=contract.lookup_conclusive_after_s,
    )


def _checked_refund(engine: Engine, operation_id: UUID, decision: Decision) -> RefundFacts | None:
    """For `succeeded`: the refund a person names, read live from the provider and compared.

    Runs before the transaction, because it calls the provider.
    """
    if not decision.note.strip():
        raise ClosingRefused("Write a note: what did you find, and where?", "note")
    if decision.outcome is ClosingOutcome.FAILED:
        if decision.evidence_kind is not EvidenceKind.ABSENT_IN_LOOKUP and (
            not decision.evidence_reference.strip()
        ):
            raise ClosingRefused("Name the evidence: a case number or an address.", "reference")
        return None
    operation = Operation.objects.select_related("payment", "account").get(pk=operation_id)
    reference = decision.evidence_reference.strip()
    if not reference:
        raise ClosingRefused("Give the provider's refund id.", "reference")
    try:
        refund = engine.provider(operation.account).read_refund(
            refund_id=reference, account=operation.account.provider_account
        )
    except RefundNotFound:
        raise ClosingRefused(
            f"The provider has no refund {reference} in this account.", "reference"
        ) from None
    except ReadFailed as error:
        raise ClosingRefused(
            f"The provider can't be read right now, so nothing was closed: {error}",
            "reference",
        ) from None
    _require_fitting(operation, refund)
    return refund


def _require_fitting(operation: Operation, refund: RefundFacts) -> None:
    wrong = differences(operation.terms(), refund)
    if wrong:
        rows = "; ".join(f"{row.field}: sent {row.sent}, there {row.provider}" for row in wrong)
        raise ClosingRefused(f"Refund {refund.id} is another refund. {rows}.", "reference")
    if known_status(refund.status) is not RefundStatus.SUCCEEDED:
        raise ClosingRefused(
            f"Refund {refund.id} is {refund.status} at the provider, not succeeded.",
            "reference",
        )
    owner = (
        Operation.objects.filter(account=operation.account, provider_object_id=refund.id)
        .exclude(pk=operation.pk)
        .first()
    )
    mark = our_mark(refund.metadata)
    if owner or (mark and mark.operation_id != operation.pk):
        raise ClosingRefused(f"Refund {refund.id} belongs to another operation.", "reference")


def _settle(
    operation: Operation,
    decision: Decision,
    refund: RefundFacts | None,
    actor: Actor,
    now: datetime,
    proposal: Proposal | None = None,
) -> None:
    if not is_closable(Status(operation.status)):
        raise ClosingRefused(f"An operation that is {operation.status} can't be closed by hand.")
    learned = Learned(
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
        },
    )
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
        failure_code="closed_by_person",
        failure_message=decision.note.strip()[:500],
        next_check_at=None,
    )
    for row in operation.refunds.all():
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
        raise ClosingRefused(f"Refund {refund.id} belongs to another operation.", "reference")
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


def _propose(
    operation: Operation,
    decision: Decision,
    reasons: tuple[SecondPersonReason, ...],
    actor: Actor,
    now: datetime,
) -> Proposal:
    if not is_closable(Status(operation.status)):
        raise ClosingRefused(f"An operation that is {operation.status} can't be closed by hand.")
    proposal = Proposal.objects.create(
        operation=operation,
        outcome=decision.outcome,
        evidence_kind=decision.evidence_kind,
        evidence_reference=decision.evidence_reference.strip(),
        note=decision.note.strip(),
        reasons=[str(reason) for reason in reasons],
        revision=operation.revision,
        proposed_by=actor.id,
        proposed_by_name=actor.name,
        proposed_at=now,
    )
    _audit(operation, actor, "proposed", decision.note.strip(), now, proposal)
    return proposal


def _locked_proposal(proposal_id: int, actor: Actor) -> Proposal:
    proposal = Proposal.objects.select_for_update(no_key=True).get(pk=proposal_id)
    if proposal.state != ProposalState.WAITING:
        raise ClosingRefused(f"This proposal is {proposal.get_state_display().lower()} already.")
    if proposal.proposed_by == actor.id:
        raise ClosingRefused("You proposed this; another person has to decide.")
    return proposal


def _decide_proposal(
    proposal: Proposal, state: ProposalState, note: str, actor: Actor, now: datetime
) -> None:
    if not note.strip():
        raise ClosingRefused("Write a note: what did you check?", "note")
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
) -> None:
    AuditEntry.append(
        operation_id=operation.pk,
        actor=actor,
        action=action,
        now=now,
        before=operation.snapshot(),
        after=operation.snapshot() | {"proposal": proposal.pk, "outcome": proposal.outcome},
        reason=reason,
    )
