"""Trying elsewhere, or anew, what may have happened already is refused."""

import pytest
from django.db import ProgrammingError, transaction

from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Status
from operations.models import Account, Operation, RequestToken
from operations.services.closing import close
from operations.services.identifying import forget_old_tokens
from operations.services.looking_up import look_up
from operations.services.requesting import ConflictingOperation, ReusedWithOtherInput
from operations.services.weighing import Decision

from .stage import ALICE, JOB, PART, Stage

pytestmark = pytest.mark.django_db(transaction=True)

OTHER = "acct_other"


def second_account() -> Account:
    return Account.objects.create(name="other", provider_account=OTHER, livemode=False)


def close_as_failed(stage: Stage, operation: Operation) -> None:
    """What a person finds when the refund is not there long after the last send."""
    stage.clock.advance(120)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    operation.refresh_from_db()
    waiting = close(
        engine=stage.engine,
        operation_id=operation.pk,
        decision=Decision(
            outcome=ClosingOutcome.FAILED,
            evidence_kind=EvidenceKind.DASHBOARD,
            evidence_reference="case 7731",
            note="Not on the payment two minutes after the send.",
            revision=operation.revision,
        ),
        actor=ALICE,
    )
    assert waiting is None


def test_another_account_is_refused_while_the_first_is_unresolved(stage: Stage) -> None:
    second_account()
    payment = stage.payment()
    stage.control.fault("500", when="after")
    first = stage.ask(payment)
    elsewhere = stage.payment(account=OTHER)

    with pytest.raises(ConflictingOperation) as refused:
        stage.ask(elsewhere, account="other")

    assert refused.value.operation.pk == first.pk
    assert Operation.objects.count() == 1
    assert stage.sends(elsewhere) == 0


def test_another_account_is_refused_after_the_first_succeeded(stage: Stage) -> None:
    second_account()
    stage.ask(stage.payment())
    elsewhere = stage.payment(account=OTHER)

    with pytest.raises(ConflictingOperation):
        stage.ask(elsewhere, account="other", token="a token does not open this door")

    assert stage.sends(elsewhere) == 0


def test_another_account_may_be_used_after_the_first_failed(stage: Stage) -> None:
    second_account()
    payment = stage.payment()
    stage.control.fault("500", when="before")
    first = stage.ask(payment)
    close_as_failed(stage, first)
    elsewhere = stage.payment(account=OTHER)

    second = stage.ask(elsewhere, account="other")

    assert second.status == Status.SUCCEEDED
    assert second.reissue_of_id == first.pk
    assert (stage.refunds(payment), stage.refunds(elsewhere)) == (0, 1)


def test_a_reissue_is_a_new_operation_linked_to_the_failed_one(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="before")
    first = stage.ask(payment)
    assert stage.ask(payment).pk == first.pk
    close_as_failed(stage, first)

    second = stage.ask(payment)

    assert second.pk != first.pk
    assert second.reissue_of_id == first.pk
    assert second.idempotency_key != first.idempotency_key
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, PART)


def test_a_token_is_remembered_for_as_long_as_it_is_configured(stage: Stage) -> None:
    payment = stage.payment()
    first = stage.ask(payment, token="return-1")
    stage.clock.advance(89 * 86_400)
    assert forget_old_tokens(engine=stage.engine) == 0
    assert stage.ask(payment, token="return-1").pk == first.pk
    with pytest.raises(ReusedWithOtherInput):
        stage.ask(payment, token="return-1", amount=PART + 1)

    assert stage.sends(payment) == 1


def test_an_old_token_of_a_settled_operation_is_forgotten(stage: Stage) -> None:
    stage.clock.advance(-91 * 86_400)
    stage.ask(stage.payment(), token="return-1", order_id="1")
    stage.control.fault("500", when="after")
    stage.ask(stage.payment(), token="return-2", order_id="2")
    stage.clock.advance(91 * 86_400)

    assert forget_old_tokens(engine=stage.engine) == 1

    assert [row.token for row in RequestToken.objects.all()] == ["return-2"]


def test_a_young_token_can_not_be_removed_by_anybody(stage: Stage) -> None:
    stage.ask(stage.payment(), token="return-1")

    with pytest.raises(ProgrammingError, match="Cannot delete"), transaction.atomic():
        RequestToken.objects.all().delete()

    assert RequestToken.objects.count() == 1
