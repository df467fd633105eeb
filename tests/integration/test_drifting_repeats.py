"""A wish that comes back a little changed is not paid twice."""

from typing import Any

import pytest

from operations.domain.budgets import Budget
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Attention, Status
from operations.models import Account, Operation
from operations.services.accounts import account_for
from operations.services.closing import approve, close
from operations.services.looking_up import look_up
from operations.services.pausing import pause_sending
from operations.services.requesting import ConflictingOperation
from operations.services.sweeping import check, claim_due_checks
from operations.services.weighing import Decision

from .stage import ALICE, BOB, JOB, PART, Stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("drift", [{"customer_account": "cus_1"}, {"payment": "another"}])
def test_a_field_that_drifts_after_success_is_a_conflict_and_no_second_refund(
    stage: Stage, drift: dict[str, Any]
) -> None:
    payment = stage.payment()
    first = stage.ask(payment)
    other = stage.payment() if drift.pop("payment", "") else payment

    with pytest.raises(ConflictingOperation) as refused:
        stage.ask(other, **drift)

    assert refused.value.operation.pk == first.pk
    assert stage.refunds(payment) == 1
    assert stage.refunds(other) == (1 if other == payment else 0)
    assert Operation.objects.count() == 1


def test_a_reference_or_a_token_says_that_it_is_meant(stage: Stage) -> None:
    payment = stage.payment()
    stage.ask(payment, amount=1_000)

    stage.ask(payment, amount=1_000, customer_account="cus_1", reference="second")
    stage.ask(payment, amount=1_000, customer_account="cus_1", token="third")

    assert stage.refunds(payment) == 3


def given_up_and_found(stage: Stage, payment: str) -> Operation:
    """Two people close it as failed; then the provider shows its refund after all."""
    stage.control.fault("500", when="after", payment=payment)
    operation = stage.ask(payment)
    proposal = close(
        engine=stage.engine,
        operation_id=operation.pk,
        decision=Decision(
            outcome=ClosingOutcome.FAILED,
            evidence_kind=EvidenceKind.PROVIDER_SUPPORT,
            evidence_reference="case 7731",
            note="They say that it was not made.",
            revision=operation.revision,
        ),
        actor=ALICE,
    )
    assert proposal is not None
    operation = approve(
        engine=stage.engine,
        proposal_id=proposal.pk,
        revision=proposal.revision,
        note="I asked them, too.",
        actor=BOB,
    )
    assert operation.status == Status.FAILED
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    operation.refresh_from_db()
    assert operation.attention == [Attention.CONFLICT]
    return operation


def test_a_refund_that_turned_up_after_it_was_given_up_is_not_made_again(stage: Stage) -> None:
    payment = stage.payment()
    operation = given_up_and_found(stage, payment)

    for token in ("", "anew"):
        with pytest.raises(ConflictingOperation) as refused:
            stage.ask(payment, token=token)
        assert refused.value.operation.pk == operation.pk

    assert (stage.refunds(payment), stage.refunded(payment)) == (1, PART)


def test_nor_is_it_made_on_another_account(stage: Stage) -> None:
    Account.objects.create(name="other", provider_account="acct_other", livemode=False)
    given_up_and_found(stage, stage.payment())
    elsewhere = stage.payment(account="acct_other")

    with pytest.raises(ConflictingOperation):
        stage.ask(elsewhere, account="other")

    assert stage.sends(elsewhere) == 0


def test_a_long_pause_does_not_use_up_the_look_ups(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="before", times=3, payment=payment)
    operation = stage.ask(payment)
    account = account_for(engine=stage.engine, name="")
    pause_sending(engine=stage.engine, account=account, reason="Night.", actor=ALICE)

    for _ in range(45):
        stage.clock.advance(61)
        for due in claim_due_checks(engine=stage.engine):
            check(engine=stage.engine, operation_id=due)

    operation.refresh_from_db()
    assert operation.status == Status.OPEN
    assert operation.lookups_made <= 5
    assert stage.sends(payment) == 3


def test_a_deadline_shorter_than_a_send_still_lets_each_call_send_once(stage: Stage) -> None:
    budget = Budget(
        attempts_per_call=3,
        attempts_per_operation=6,
        call_deadline_s=2.0,
        backoff_base_s=0.1,
        send_s=13.0,
    )
    hurried = Stage(
        sandbox=stage.sandbox,
        clock=stage.clock,
        engine=stage.engine.__class__(**(vars(stage.engine) | {"budget": budget})),
    )
    payment = stage.payment()
    stage.control.fault("drop", when="after", payment=payment)
    stage.clock.freeze()

    assert hurried.ask(payment).status == Status.OPEN
    stage.clock.advance(5)
    assert hurried.ask(payment).status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)
