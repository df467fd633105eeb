"""A process is killed while it sends: what it left behind is found by its rows and settled once."""

import signal
import subprocess
from collections.abc import Callable

import pytest

from operations.domain.statuses import Status, UnknownReason
from operations.models import Attempt, Operation
from operations.services.sending import InProgress
from operations.services.sweeping import check, claim_due_checks, give_up_lost_sends

from .stage import PART, Stage

pytestmark = pytest.mark.django_db(transaction=True)

StartSender = Callable[..., "subprocess.Popen[str]"]


def go(process: "subprocess.Popen[str]") -> None:
    """Let a sender ask."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def kill_while_sending(stage: Stage, start_sender: StartSender, payment: str) -> None:
    """A sender whose refund was made, killed before it hears of it."""
    stage.control.fault("hang", when="after", seconds=60)
    process = start_sender(payment)
    go(process)
    (held,) = stage.control.wait_in_flight(timeout_s=20)
    assert held["executed"]
    process.kill()
    assert process.wait(10) == -signal.SIGKILL
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
    assert Attempt.objects.get().outcome == ""


def sweep_until_quiet(stage: Stage) -> None:
    """What the periodic job does, as often as it takes."""
    for _ in range(3):
        stage.clock.advance(40)
        give_up_lost_sends(engine=stage.engine)
        for due in claim_due_checks(engine=stage.engine):
            check(engine=stage.engine, operation_id=due)


def test_killed_after_the_provider_acted_it_is_found_and_settled_without_a_send(
    stage: Stage, start_sender: StartSender
) -> None:
    payment = stage.payment()
    kill_while_sending(stage, start_sender, payment)

    sweep_until_quiet(stage)

    operation = Operation.objects.get()
    assert operation.status == Status.SUCCEEDED
    assert operation.provider_object_id != ""
    assert (operation.lease_owner, operation.lease_expires_at) == ("", None)
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, PART)
    assert stage.sends(payment) == 1


def test_killed_after_the_provider_acted_the_same_key_settles_it_when_lists_lag(
    stage: Stage, start_sender: StartSender
) -> None:
    payment = stage.payment()
    kill_while_sending(stage, start_sender, payment)
    stage.control.lag(3_600)

    sweep_until_quiet(stage)

    assert Operation.objects.get().status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)
    assert len(stage.keys(payment)) == 1


def test_asking_again_settles_what_a_killed_process_left_without_any_sweep(
    stage: Stage, start_sender: StartSender
) -> None:
    payment = stage.payment()
    kill_while_sending(stage, start_sender, payment)

    with pytest.raises(InProgress):
        stage.ask(payment)
    assert stage.sends(payment) == 1

    stage.clock.advance(40)
    operation = stage.ask(payment)

    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)
    assert len(stage.keys(payment)) == 1
    assert Operation.objects.count() == 1


def test_killed_with_the_answer_in_hand_it_is_one_refund(
    stage: Stage, start_sender: StartSender
) -> None:
    payment = stage.payment()
    process = start_sender(payment, "after_the_answer")
    go(process)
    assert process.wait(20) == -signal.SIGKILL
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
    assert Operation.objects.get().status == Status.OPEN

    sweep_until_quiet(stage)

    assert Operation.objects.get().status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_killed_between_the_commit_and_the_send_it_is_sent_once(
    stage: Stage, start_sender: StartSender
) -> None:
    payment = stage.payment()
    process = start_sender(payment, "before_sending")
    go(process)
    assert process.wait(20) == -signal.SIGKILL
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 0)
    assert Attempt.objects.count() == Operation.objects.count() == 1

    sweep_until_quiet(stage)

    assert Operation.objects.get().status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_send_is_not_given_up_while_its_lease_runs(stage: Stage, start_sender: StartSender) -> None:
    payment = stage.payment()
    kill_while_sending(stage, start_sender, payment)

    assert give_up_lost_sends(engine=stage.engine) == 0
    assert Attempt.objects.get().outcome == ""

    stage.clock.advance(40)
    assert give_up_lost_sends(engine=stage.engine) == 1
    assert give_up_lost_sends(engine=stage.engine) == 0
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.doubt) == ("indeterminate", "interrupted")
    assert stage.sends(payment) == 1


def test_crash_that_is_found_after_the_key_window_is_never_sent_again(
    stage: Stage, start_sender: StartSender
) -> None:
    payment = stage.payment()
    kill_while_sending(stage, start_sender, payment)
    stage.control.expire_keys()
    stage.control.lag(3_600)
    stage.clock.advance(86_400)

    give_up_lost_sends(engine=stage.engine)

    operation = Operation.objects.get()
    assert operation.status == Status.UNKNOWN
    assert operation.unknown_reason == UnknownReason.KEY_WINDOW_CLOSED
    for due in claim_due_checks(engine=stage.engine):
        check(engine=stage.engine, operation_id=due)
    stage.ask(payment)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)

    stage.control.lag(0)
    stage.clock.advance(60)
    sweep_until_quiet(stage)
    assert Operation.objects.get().status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
