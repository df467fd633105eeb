"""Sending on an account can be stopped by people; nothing is sent until they let it go on."""

import pytest

from operations.domain.statuses import Status
from operations.models import Account, AuditEntry
from operations.services.accounts import account_for
from operations.services.pausing import PauseRefused, pause_sending, resume_sending
from operations.services.sweeping import check, claim_due_checks

from .stage import ALICE, Stage

pytestmark = pytest.mark.django_db(transaction=True)


def pause(stage: Stage) -> Account:
    account = account_for(engine=stage.engine, name="")
    return pause_sending(
        engine=stage.engine, account=account, reason="The provider is down.", actor=ALICE
    )


def resume(stage: Stage) -> Account:
    account = account_for(engine=stage.engine, name="")
    return resume_sending(engine=stage.engine, account=account, reason="It is back.", actor=ALICE)


def test_a_new_operation_is_opened_and_waits_while_sending_is_paused(stage: Stage) -> None:
    payment = stage.payment()
    pause(stage)

    operation = stage.ask(payment)

    assert operation.status == Status.OPEN
    assert operation.attempts_made == stage.sends(payment) == 0


def test_what_waited_is_sent_once_after_sending_is_resumed(stage: Stage) -> None:
    payment = stage.payment()
    pause(stage)
    operation = stage.ask(payment)
    resume(stage)

    for due in claim_due_checks(engine=stage.engine):
        check(engine=stage.engine, operation_id=due)

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_nothing_is_sent_again_while_paused_though_the_answer_was_lost(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)
    operation = stage.ask(payment)
    pause(stage)

    again = stage.ask(payment)

    assert again.pk == operation.pk
    assert again.status == Status.OPEN
    assert stage.sends(payment) == 3


def test_look_ups_go_on_while_paused_and_find_the_refund(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)
    operation = stage.ask(payment)
    pause(stage)
    stage.clock.advance(60)

    for due in claim_due_checks(engine=stage.engine):
        check(engine=stage.engine, operation_id=due)

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)


def test_an_operation_that_waited_past_its_window_is_never_sent(stage: Stage) -> None:
    payment = stage.payment()
    pause(stage)
    operation = stage.ask(payment)
    stage.clock.advance(86_400)
    resume(stage)

    for due in claim_due_checks(engine=stage.engine):
        check(engine=stage.engine, operation_id=due)

    operation.refresh_from_db()
    assert (operation.status, operation.unknown_reason) == (Status.UNKNOWN, "deadline_passed")
    assert stage.sends(payment) == 0


def test_pausing_and_resuming_are_audited_and_need_a_reason(stage: Stage) -> None:
    pause(stage)
    with pytest.raises(PauseRefused):
        pause(stage)
    account = account_for(engine=stage.engine, name="")
    with pytest.raises(PauseRefused):
        resume_sending(engine=stage.engine, account=account, reason=" ", actor=ALICE)
    resume(stage)

    actions = AuditEntry.objects.filter(operation_id=None).order_by("number")
    assert [(row.action, row.actor_name, row.reason) for row in actions] == [
        ("sending_paused", "Alice", "The provider is down."),
        ("sending_resumed", "Alice", "It is back."),
    ]
