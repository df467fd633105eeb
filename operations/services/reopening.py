"""Reopening: two people take back a closing as failed that was wrong. It sends nothing.

The operation is unknown again, is looked up at once, and is closed anew on better evidence.
"""

from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, transaction

from operations.domain.audit import Actor
from operations.domain.closure import (
    REOPENED,
    ReopenGround,
    SecondPersonReason,
    may_be_reopened,
)
from operations.domain.sentences import say
from operations.domain.statuses import UNRESOLVED, Fact, Status, UnknownReason
from operations.models import EvidenceSource, Operation, Proposal
from operations.models.proposal import ProposalState
from operations.services.claiming import let_go, refuse_others
from operations.services.closing import (
    decide_proposal,
    lock_as_seen,
    locked_proposal,
    propose_as,
    refuse_if_waiting,
)
from operations.services.engine import Engine
from operations.services.learning import Learned
from operations.services.settling import take_fact, write_evidence
from operations.services.weighing import ClosingRefused, StaleView


@dataclass(frozen=True, kw_only=True)
class Taking:
    """Why a closing is taken back. `revision` is the one that the page showed."""

    ground: ReopenGround
    note: str
    revision: int
    form_token: str = ""


def propose_reopening(
    *, engine: Engine, operation_id: UUID, taking: Taking, actor: Actor
) -> Proposal:
    """Propose to take a closing back; a second person decides. Raises StaleView, ClosingRefused."""
    if not taking.note.strip():
        raise ClosingRefused(say("Say why the decision does not hold."), "note")
    with transaction.atomic():
        operation = lock_as_seen(operation_id, taking.revision)
        refuse_others(operation, actor=actor, now=engine.clock())
        _refuse_what_stays(operation)
        refuse_if_waiting(operation)
        proposal = Proposal(
            operation=operation,
            outcome=REOPENED,
            evidence_kind=taking.ground,
            note=taking.note.strip(),
            reasons=[str(SecondPersonReason.REOPENING)],
            form_token=taking.form_token,
        )
        return propose_as(
            operation, proposal, actor=actor, now=engine.clock(), action="reopening_proposed"
        )


def approve_reopening(
    *, engine: Engine, proposal_id: int, revision: int, note: str, actor: Actor
) -> Operation:
    """A second person agrees: the operation is unknown again. Raises StaleView, ClosingRefused."""
    found = Proposal.objects.get(pk=proposal_id)
    try:
        with transaction.atomic():
            operation = lock_as_seen(found.operation_id, revision)
            now = engine.clock()
            refuse_others(operation, actor=actor, now=now)
            proposal = locked_proposal(proposal_id, actor)
            if proposal.revision != operation.revision:
                raise StaleView(operation)
            _refuse_what_stays(operation)
            let_go(operation.pk)
            decide_proposal(proposal, ProposalState.APPROVED, note, actor, now)
            learned = Learned(
                source=EvidenceSource.STATEMENT,
                summary=f"{actor.name}: {proposal.note}",
                actor=actor,
                observed_at=now,
                facts={
                    "outcome": REOPENED,
                    "kind": proposal.evidence_kind,
                    "reference": "",
                    "note": proposal.note,
                    "proposed_by": proposal.proposed_by_name,
                    "approval_note": proposal.decision_note,
                    "form": proposal.form_token,
                },
            )
            evidence = write_evidence(operation, learned, now=now)
            take_fact(
                operation,
                Fact.REOPENED,
                learned=learned,
                now=now,
                evidence=evidence,
                reason=proposal.note,
                unknown_reason=UnknownReason.REOPENED,
                failure_code="",
                failure_message="",
                next_check_at=now,
            )
            return operation
    except IntegrityError:
        # The database lets one operation of an order and reference be unresolved at a time.
        raise ClosingRefused(_HELD) from None


_HELD = say("Another refund of this order is not settled yet; it has to end before.")


def _refuse_what_stays(operation: Operation) -> None:
    if not may_be_reopened(Status(operation.status), operation.failure_code):
        raise ClosingRefused(say("Only what people closed as failed can be reopened."))
    held = Operation.objects.filter(
        account=operation.account,
        order_id=operation.order_id,
        reference=operation.reference,
        status__in=UNRESOLVED,
    )
    if held.exists():
        raise ClosingRefused(_HELD)
