"""Closing by hand: on evidence, checked live, by two people where one is not enough."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from operations.domain.closure import ClosingOutcome, EvidenceKind, SecondPersonReason
from operations.domain.statuses import Attention, Status
from operations.models import AuditEntry, Evidence, EvidenceSource, Operation, Proposal
from operations.models.proposal import ProposalState
from operations.services.clearing import clear_attention
from operations.services.closing import approve, close, reject
from operations.services.looking_up import look_up
from operations.services.weighing import ClosingRefused, Decision, StaleView

from .stage import ALICE, BOB, JOB, PART, AtOnce, Stage

pytestmark = pytest.mark.django_db(transaction=True)


def unknown(stage: Stage, payment: str, *, made: bool, **wish: Any) -> Operation:
    """An operation that a 500 left unknown."""
    stage.control.fault("500", when="after" if made else "before")
    operation = stage.ask(payment, **wish)
    assert operation.status == Status.UNKNOWN
    return operation


def looked_up(stage: Stage, operation: Operation) -> Operation:
    """The operation after a look-up that is late enough to prove an absence."""
    stage.clock.advance(120)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    operation.refresh_from_db()
    return operation


def failed(operation: Operation, **changes: Any) -> Decision:
    decision = Decision(
        outcome=ClosingOutcome.FAILED,
        evidence_kind=EvidenceKind.DASHBOARD,
        evidence_reference="case 7731",
        note="Not on the payment.",
        revision=operation.revision,
    )
    return replace(decision, **changes)


def succeeded(operation: Operation, refund: str, **changes: Any) -> Decision:
    decision = Decision(
        outcome=ClosingOutcome.SUCCEEDED,
        evidence_kind=EvidenceKind.PROVIDER_REFUND,
        evidence_reference=refund,
        note="Seen in the dashboard.",
        revision=operation.revision,
    )
    return replace(decision, **changes)


def assert_refused(
    stage: Stage, operation: Operation, decision: Decision, field: str | None = None
) -> None:
    """The closing is refused and nothing changes."""
    before = list(Operation.objects.order_by("pk").values())
    counted = AuditEntry.objects.count(), Evidence.objects.count(), Proposal.objects.count()
    with pytest.raises(ClosingRefused) as raised:
        close(engine=stage.engine, operation_id=operation.pk, decision=decision, actor=ALICE)
    if field is not None:
        assert raised.value.field == field
    assert list(Operation.objects.order_by("pk").values()) == before
    now = AuditEntry.objects.count(), Evidence.objects.count(), Proposal.objects.count()
    assert now == counted


def refund_of(stage: Stage, payment: str) -> str:
    """The id of the one refund the provider has of this payment."""
    provider = stage.engine.provider(stage.ask_for_the_account())
    (refund,) = provider.list_refunds(payment=payment, account="").refunds
    return refund.id


# --- One person ---------------------------------------------------------------------------------


def test_one_person_closes_as_failed_on_a_fresh_absence(stage: Stage) -> None:
    payment = stage.payment()
    operation = looked_up(stage, unknown(stage, payment, made=False))

    waiting = close(
        engine=stage.engine, operation_id=operation.pk, decision=failed(operation), actor=ALICE
    )

    operation.refresh_from_db()
    assert waiting is None
    assert (operation.status, operation.failure_code) == (Status.FAILED, "closed_by_person")
    entry = AuditEntry.objects.filter(operation_id=operation.pk).latest("number")
    assert (entry.action, entry.actor_name, entry.reason) == (
        "closed_failed", "Alice", "Not on the payment.",
    )  # fmt: skip
    evidence = Evidence.objects.get(pk=entry.evidence_id)
    assert evidence.source == EvidenceSource.STATEMENT
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


def test_one_person_closes_as_succeeded_with_the_refund_that_is_read_live(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment, made=True)
    refund = refund_of(stage, payment)

    waiting = close(
        engine=stage.engine,
        operation_id=operation.pk,
        decision=succeeded(operation, f" {refund} "),
        actor=ALICE,
    )

    operation.refresh_from_db()
    assert waiting is None
    assert (operation.status, operation.provider_object_id) == (Status.SUCCEEDED, refund)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_note_and_evidence_are_wanted(stage: Stage) -> None:
    payment = stage.payment()
    operation = looked_up(stage, unknown(stage, payment, made=False))

    assert_refused(stage, operation, failed(operation, note=" \n"), "note")
    assert_refused(stage, operation, failed(operation, evidence_reference=" "), "reference")
    assert_refused(stage, operation, succeeded(operation, " "), "reference")


def test_refund_that_is_not_there_or_another_one_closes_nothing(stage: Stage) -> None:
    payment, other = stage.payment(), stage.payment()
    operation = unknown(stage, payment, made=False)
    elsewhere = stage.control.refund_outside(other, amount=PART)
    smaller = stage.control.refund_outside(payment, amount=PART - 1)
    pending = stage.control.refund_outside(payment, amount=PART, status="pending")

    for refund in ("re_nowhere", elsewhere, smaller, pending):
        assert_refused(stage, operation, succeeded(operation, refund), "reference")
    assert stage.sends(payment) == 1


def test_refund_of_another_operation_closes_nothing(stage: Stage) -> None:
    payment = stage.payment()
    first = stage.ask(payment)
    second = unknown(stage, payment, made=False, order_id="4418")

    assert_refused(stage, second, succeeded(second, first.provider_object_id), "reference")


def test_provider_that_can_not_be_read_closes_nothing(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment, made=True)
    refund = refund_of(stage, payment)
    stage.control.fault("503", endpoint="refunds.retrieve", times=10)

    assert_refused(stage, operation, succeeded(operation, refund), "reference")


def test_what_is_settled_or_may_still_be_sent_can_not_be_closed(stage: Stage) -> None:
    payment = stage.payment()
    settled = stage.ask(payment)
    stage.control.fault("drop", when="after", times=3)
    still_open = stage.ask(payment, order_id="4418")
    assert (settled.status, still_open.status) == (Status.SUCCEEDED, Status.OPEN)

    for operation in (settled, still_open):
        assert_refused(stage, operation, failed(operation))


def test_stale_page_changes_nothing(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment, made=True)
    decision = failed(operation)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    entries = AuditEntry.objects.count()

    with pytest.raises(StaleView) as raised:
        close(engine=stage.engine, operation_id=operation.pk, decision=decision, actor=ALICE)

    assert raised.value.operation.status == Status.SUCCEEDED
    assert Operation.objects.get().status == Status.SUCCEEDED
    assert AuditEntry.objects.count() == entries


def test_two_people_at_once_close_once(stage: Stage) -> None:
    operation = looked_up(stage, unknown(stage, stage.payment(), made=False))
    decision = failed(operation)

    results = AtOnce(
        [
            partial(
                close,
                engine=stage.engine,
                operation_id=operation.pk,
                decision=decision,
                actor=actor,
            )
            for actor in (ALICE, BOB)
        ]
    ).results()

    assert sorted(type(result).__name__ for result in results) == ["NoneType", "StaleView"]
    assert AuditEntry.objects.filter(action="closed_failed").count() == 1


# --- Two people ---------------------------------------------------------------------------------


def propose(stage: Stage, operation: Operation, decision: Decision) -> Proposal:
    proposal = close(engine=stage.engine, operation_id=operation.pk, decision=decision, actor=ALICE)
    assert proposal is not None
    assert Operation.objects.get(pk=operation.pk).status == operation.status
    return proposal


def test_failed_without_a_fresh_absence_waits_for_a_second_person(stage: Stage) -> None:
    operation = unknown(stage, stage.payment(), made=False)

    proposal = propose(stage, operation, failed(operation))

    assert proposal.reasons == [SecondPersonReason.NO_FRESH_ABSENCE]
    with pytest.raises(ClosingRefused, match="another person"):
        approve(
            engine=stage.engine,
            proposal_id=proposal.pk,
            revision=operation.revision,
            note="Checked.",
            actor=ALICE,
        )
    approve(
        engine=stage.engine,
        proposal_id=proposal.pk,
        revision=operation.revision,
        note="Checked.",
        actor=BOB,
    )

    operation.refresh_from_db()
    proposal.refresh_from_db()
    assert operation.status == Status.FAILED
    assert (proposal.state, proposal.decided_by_name) == (ProposalState.APPROVED, "Bob")


def test_large_amount_waits_for_a_second_person(stage: Stage) -> None:
    operation = looked_up(
        stage, unknown(stage, stage.payment(amount=50_000), made=False, amount=10_001)
    )

    assert propose(stage, operation, failed(operation)).reasons == [SecondPersonReason.AMOUNT]


def test_currency_without_a_limit_waits_for_a_second_person(stage: Stage) -> None:
    payment = stage.payment(currency="eur")
    operation = looked_up(stage, unknown(stage, payment, made=False, currency="eur"))

    assert propose(stage, operation, failed(operation)).reasons == [SecondPersonReason.AMOUNT]


def test_absence_that_is_too_old_or_too_early_does_not_count(stage: Stage) -> None:
    early = unknown(stage, stage.payment(), made=False)
    look_up(engine=stage.engine, operation_id=early.pk, actor=JOB)
    early.refresh_from_db()
    old = looked_up(stage, unknown(stage, stage.payment(), made=False, order_id="4418"))
    stage.clock.advance(901)

    for operation in (early, old):
        reasons = propose(stage, operation, failed(operation)).reasons
        assert reasons == [SecondPersonReason.NO_FRESH_ABSENCE]


def test_absence_from_before_the_last_send_does_not_count(stage: Stage) -> None:
    stage.clock.freeze()
    payment = stage.payment()
    stage.control.fault("drop", when="before", times=5, payment=payment)
    stage.control.fault("drop", when="after", payment=payment)
    still_open = stage.ask(payment)
    looked_up(stage, still_open)
    operation = stage.ask(payment)
    assert (operation.status, stage.sends(payment)) == (Status.UNKNOWN, 6)

    reasons = propose(stage, operation, failed(operation)).reasons

    assert reasons == [SecondPersonReason.NO_FRESH_ABSENCE]
    assert stage.refunds(payment) == 1


def test_absence_beside_a_total_that_the_list_does_not_explain_does_not_count(
    stage: Stage,
) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment, made=True)
    stage.control.lag(3_600)
    operation = looked_up(stage, operation)
    assert operation.status == Status.UNKNOWN

    reasons = propose(stage, operation, failed(operation)).reasons

    assert reasons == [SecondPersonReason.NO_FRESH_ABSENCE]
    assert stage.refunds(payment) == 1


def test_second_proposal_is_refused_while_one_waits(stage: Stage) -> None:
    operation = unknown(stage, stage.payment(), made=False)
    propose(stage, operation, failed(operation))

    assert_refused(stage, operation, failed(operation))


def test_rejected_proposal_leaves_the_operation_as_it_was(stage: Stage) -> None:
    operation = unknown(stage, stage.payment(), made=False)
    proposal = propose(stage, operation, failed(operation))

    reject(engine=stage.engine, proposal_id=proposal.pk, note="Ask the bank first.", actor=BOB)

    proposal.refresh_from_db()
    operation.refresh_from_db()
    assert (proposal.state, operation.status) == (ProposalState.REJECTED, Status.UNKNOWN)
    actions = AuditEntry.objects.filter(operation_id=operation.pk).order_by("number")
    assert [entry.action for entry in actions][-2:] == ["proposed", "proposal_rejected"]


def test_look_up_that_shows_another_refund_voids_the_proposal(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment, made=False)
    proposal = propose(stage, operation, failed(operation))
    stage.control.refund_outside(payment, amount=100)

    looked_up(stage, operation)

    proposal.refresh_from_db()
    assert proposal.state == ProposalState.VOID


def test_evidence_that_comes_in_between_voids_the_proposal(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment, made=True)
    proposal = propose(stage, operation, failed(operation))
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)

    proposal.refresh_from_db()
    operation.refresh_from_db()
    assert (proposal.state, operation.status) == (ProposalState.VOID, Status.SUCCEEDED)
    with pytest.raises(ClosingRefused):
        approve(
            engine=stage.engine,
            proposal_id=proposal.pk,
            revision=operation.revision,
            note="Checked.",
            actor=BOB,
        )
    assert Operation.objects.get().status == Status.SUCCEEDED


# --- Flags --------------------------------------------------------------------------------------


def flagged(stage: Stage) -> Operation:
    """A settled operation with a flag: its refund failed after it had succeeded."""
    operation = stage.ask(stage.payment())
    stage.control.set_refund_status(operation.provider_object_id, "failed")
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    operation.refresh_from_db()
    assert operation.attention == [Attention.FAILED_AFTER_SUCCESS]
    return operation


def test_flag_is_taken_off_with_a_reason_and_leaves_the_queue(stage: Stage) -> None:
    operation = flagged(stage)
    assert operation.needs_person_since is not None

    clear_attention(
        engine=stage.engine,
        operation_id=operation.pk,
        attention=Attention.FAILED_AFTER_SUCCESS,
        reason="Paid by bank transfer.",
        revision=operation.revision,
        actor=ALICE,
    )

    cleared = Operation.objects.get()
    assert (cleared.status, cleared.attention) == (Status.FAILED, [])
    assert cleared.needs_person_since is None
    entry = AuditEntry.objects.filter(operation_id=operation.pk).latest("number")
    assert (entry.action, entry.reason) == ("attention_cleared", "Paid by bank transfer.")


@pytest.mark.parametrize(
    ("attention", "reason"),
    [(Attention.FAILED_AFTER_SUCCESS, "  "), (Attention.DISPUTED, "Not set at all.")],
)
def test_flag_is_not_taken_off_without_a_reason_or_when_it_is_not_set(
    stage: Stage, attention: Attention, reason: str
) -> None:
    operation = flagged(stage)

    with pytest.raises(ClosingRefused):
        clear_attention(
            engine=stage.engine,
            operation_id=operation.pk,
            attention=attention,
            reason=reason,
            revision=operation.revision,
            actor=ALICE,
        )

    assert Operation.objects.get().attention == [Attention.FAILED_AFTER_SUCCESS]
