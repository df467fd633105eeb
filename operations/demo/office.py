"""What people do about what the story leaves unknown: work for the console to show."""

import time
from collections.abc import Callable, Sequence
from uuid import UUID

from django.contrib.auth import get_user_model

from operations.domain.audit import Actor, ActorKind
from operations.domain.bulk import BulkAction
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.models import AuditEntry, BulkRun, BulkState, Operation
from operations.models.audit import chain_of
from operations.queries.verifying import verify_chains
from operations.services.bulk import Begin, begin
from operations.services.bulk_previewing import preview
from operations.services.closing import close
from operations.services.engine import default_engine
from operations.services.weighing import Decision, why_second_person

#: How long a bulk run may take to its end, in seconds.
_PATIENCE_S = 20.0


def work(unknown: Sequence[UUID], is_asked_to_stop: Callable[[float], bool]) -> list[str]:
    """The operator looks all of them up again at once, and proposes to close one as failed.

    `is_asked_to_stop` waits for so many seconds. What was done, a sentence each.
    """
    if not unknown:
        return []
    said = [_look_all_up(unknown, is_asked_to_stop)]
    for operation_id in unknown:
        sentence = _propose(operation_id)
        if sentence:
            return [*said, sentence]
    return said


def _look_all_up(unknown: Sequence[UUID], is_asked_to_stop: Callable[[float], bool]) -> str:
    engine, actor = default_engine(), _operator()
    run = preview(engine=engine, action=BulkAction.LOOK_UP, ids=unknown, actor=actor)
    saying = Begin(count=run.acts, note="End of the day: is anything of these at the provider now?")
    begin(engine=engine, run_id=run.pk, saying=saying, actor=actor)
    ends_at = time.monotonic() + _PATIENCE_S
    while time.monotonic() < ends_at and not is_asked_to_stop(0.2):
        if BulkRun.objects.get(pk=run.pk).state == BulkState.ENDED:
            return f"The operator looked {run.rows} operations up at once: bulk run {run.pk}."
    return f"The operator looks {run.rows} operations up at once: bulk run {run.pk}, still running."


def _propose(operation_id: UUID) -> str:
    """Propose it where one person alone may not decide; else leave it as it is."""
    engine = default_engine()
    operation = Operation.objects.get(pk=operation_id)
    outcome = ClosingOutcome.FAILED
    if not why_second_person(engine, operation, outcome, engine.clock()):
        return ""
    decision = Decision(
        outcome=outcome,
        evidence_kind=EvidenceKind.DASHBOARD,
        evidence_reference="the payment's page, seen today",
        note="The provider's dashboard shows no refund of this payment.",
        revision=operation.revision,
    )
    close(engine=engine, operation_id=operation_id, decision=decision, actor=_operator())
    return f"The operator proposed to close {operation.order_id} as failed: the approver decides."


def audit_of(operation_ids: Sequence[UUID], order: str) -> tuple[bool, str]:
    """Whether every chain of the audit trail is whole, and a sentence about those of one order."""
    walked = verify_chains()
    chains = [chain_of(operation_id) for operation_id in operation_ids]
    entries = AuditEntry.objects.filter(chain__in=chains).count()
    if walked.broken is not None:
        return False, f"The audit trail is broken: {walked.broken.why}."
    return True, (
        f"The audit trail verifies: {entries} entries of order {order}, {walked.entries} in all."
    )


def _operator() -> Actor:
    user = get_user_model().objects.get(username="operator")
    return Actor(
        kind=ActorKind.PERSON, id=str(user.pk), name=user.get_username(), address="127.0.0.1"
    )
