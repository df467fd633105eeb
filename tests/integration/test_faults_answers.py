"""Answers that came: what each of them says about the refund, and what it leaves open."""

import dataclasses

import pytest

from operations.domain.statuses import Attention, Status, UnknownReason
from operations.models import Operation
from operations.services.clearing import clear_attention
from operations.services.looking_up import LookupResult, look_up
from operations.services.sweeping import check, claim_due_checks

from .recorded import recorded_provider
from .stage import ALICE, CAPTURED, JOB, PART, Stage, split_opener

pytestmark = pytest.mark.django_db(transaction=True)


# --- 500: the provider repeats it for as long as the key lives -----------------------------------


@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_500_makes_it_unknown_at_once_however_often_it_is_asked(
    stage: Stage, when: str, made: int
) -> None:
    payment = stage.payment()
    stage.control.fault("500", when=when)

    operation = stage.ask(payment)

    assert operation.status == Status.UNKNOWN
    assert operation.unknown_reason == UnknownReason.SERVER_ERROR
    assert operation.needs_person_since is not None
    for _ in range(5):
        assert stage.ask(payment).status == Status.UNKNOWN
    stage.clock.advance(3_600)
    assert stage.ask(payment).status == Status.UNKNOWN
    assert (stage.refunds(payment), stage.sends(payment)) == (made, 1)


def test_500_after_the_effect_is_settled_by_a_look_up_without_a_send(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="after")
    operation = stage.ask(payment)

    result = look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)

    operation.refresh_from_db()
    assert result == LookupResult.FOUND
    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_500_before_the_effect_stays_unknown_whatever_a_look_up_does_not_find(
    stage: Stage,
) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="before")
    operation = stage.ask(payment)

    for _ in range(3):
        stage.clock.advance(86_400)
        result = look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
        assert result == LookupResult.ABSENT

    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


def test_500_on_a_resend_ends_the_sending_too(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="after")
    stage.control.fault("drop", when="after")

    operation = stage.ask(payment)

    assert operation.unknown_reason == UnknownReason.SERVER_ERROR
    assert [row.replayed for row in operation.attempts.order_by("number")] == [False, True]
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)


# --- Not executed: the same key goes on ---------------------------------------------------------


@pytest.mark.parametrize("kind", ["409", "429"])
def test_call_that_was_turned_away_is_sent_again_with_the_same_key(stage: Stage, kind: str) -> None:
    payment = stage.payment()
    stage.control.fault(kind, times=2)

    operation = stage.ask(payment)

    assert operation.status == Status.SUCCEEDED
    assert operation.attempts_made == 3
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)
    assert stage.keys(payment) == {operation.idempotency_key}


def test_pause_is_as_long_as_the_provider_asked_for(stage: Stage) -> None:
    stage.clock.freeze()
    payment = stage.payment()
    stage.control.fault("429", retry_after_s=9)

    assert stage.ask(payment).status == Status.SUCCEEDED

    assert stage.clock.slept == pytest.approx([9])
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)


@pytest.mark.parametrize("kind", ["409", "429"])
def test_being_turned_away_after_a_lost_answer_says_nothing_about_it(
    stage: Stage, kind: str
) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after")
    stage.control.fault(kind)
    # Both faults match the first send: the front one is met first, then the lost answer.
    operation = stage.ask(payment)

    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)


@pytest.mark.parametrize("kind", ["401", "403"])
def test_refused_key_waits_for_a_person_and_then_goes_on_with_the_same_operation(
    stage: Stage, kind: str
) -> None:
    payment = stage.payment()
    stage.control.fault(kind)

    operation = stage.ask(payment)

    assert operation.status == Status.OPEN
    assert operation.attention == [Attention.CONFIGURATION]
    assert operation.needs_person_since is not None
    stage.ask(payment)
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)

    operation.refresh_from_db()
    clear_attention(
        engine=stage.engine,
        operation_id=operation.pk,
        attention=Attention.CONFIGURATION,
        reason="The key was renewed.",
        revision=operation.revision,
        actor=ALICE,
    )
    for due in claim_due_checks(engine=stage.engine):
        check(engine=stage.engine, operation_id=due)

    settled = Operation.objects.get()
    assert settled.status == Status.SUCCEEDED
    assert settled.needs_person_since is None
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)
    assert stage.keys(payment) == {operation.idempotency_key}


def test_refused_key_that_nobody_mends_in_time_ends_unknown_when_in_doubt(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="before")
    operation = stage.ask(
        payment,
        engine=dataclasses.replace(
            stage.engine,
            budget=dataclasses.replace(stage.engine.budget, attempts_per_call=1),
        ),
    )
    stage.control.fault("401")
    stage.ask(payment)
    stage.clock.advance(86_400)

    stage.ask(payment)

    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    assert operation.unknown_reason == UnknownReason.KEY_WINDOW_CLOSED
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 2)


# --- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("refuse", "charge_disputed"),
        ("refuse", "charge_not_refundable"),
        ("refuse", "insufficient_balance_for_refund"),
        ("402", "card_declined"),
    ],
)
def test_refusal_of_the_first_send_is_the_end(stage: Stage, kind: str, code: str) -> None:
    payment = stage.payment()
    stage.control.fault(kind, code=code, message="Not this one.")

    operation = stage.ask(payment)

    assert operation.status == Status.FAILED
    assert (operation.failure_code, operation.failure_message) == (code, "Not this one.")
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


def test_refusal_that_is_marked_as_a_replay_speaks_of_the_first_send(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("refuse", code="charge_disputed")
    stage.control.fault("drop", when="after")

    operation = stage.ask(payment)

    assert operation.status == Status.FAILED
    assert operation.failure_code == "charge_disputed"
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 2)


@pytest.mark.parametrize("kind", ["refuse", "402"])
def test_refusal_of_a_resend_without_that_mark_says_nothing_about_the_first_send(
    stage: Stage, kind: str
) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="before")
    stage.control.fault(kind, code="charge_disputed")

    operation = stage.ask(payment)

    assert operation.status == Status.UNKNOWN
    assert operation.unknown_reason == UnknownReason.UNSAFE_REFUSAL
    for _ in range(3):
        stage.ask(payment)
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 2)


def test_already_refunded_is_neither_success_nor_failure_and_makes_no_loop(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("refuse", code="charge_already_refunded")

    operation = stage.ask(payment)

    assert operation.status == Status.UNKNOWN
    assert operation.unknown_reason == UnknownReason.UNSAFE_REFUSAL
    for _ in range(10):
        stage.ask(payment)
        look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


def test_already_refunded_by_ourselves_is_found_by_a_look_up(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)
    operation = stage.ask(payment, amount=CAPTURED)
    stage.control.expire_keys()

    assert stage.ask(payment, amount=CAPTURED).status == Status.UNKNOWN
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 4)


def test_payment_that_the_account_does_not_have_is_a_configuration_matter(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("refuse", code="resource_missing", message="No such charge.")

    operation = stage.ask(payment)

    assert operation.status == Status.OPEN
    assert operation.attention == [Attention.CONFIGURATION]
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


# --- Accepted -----------------------------------------------------------------------------------


def test_plain_success_is_one_send_and_one_refund(stage: Stage) -> None:
    payment = stage.payment()

    operation = stage.ask(payment)

    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.refunded(payment), stage.sends(payment)) == (1, PART, 1)
    (send,) = stage.control.sends(payment=payment)
    assert send["refund"] == operation.provider_object_id
    assert send["params"]["amount"] == str(PART)
    assert send["params"]["metadata[reconcile_operation_id]"] == str(operation.pk)
    assert send["params"]["metadata[reconcile_environment]"] == stage.engine.environment


@pytest.mark.parametrize("kind", ["pending", "requires_action"])
def test_refund_that_the_provider_has_not_finished_is_not_sent_again(
    stage: Stage, kind: str
) -> None:
    payment = stage.payment()
    stage.control.fault(kind)

    operation = stage.ask(payment)

    assert operation.status == Status.PROCESSING
    assert operation.provider_status == kind
    for _ in range(3):
        assert stage.ask(payment).status == Status.PROCESSING
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


@pytest.mark.parametrize("ending", ["succeeded", "failed", "canceled"])
def test_unfinished_refund_ends_by_a_look_up(stage: Stage, ending: str) -> None:
    payment = stage.payment()
    stage.control.fault("pending")
    operation = stage.ask(payment)
    stage.control.set_refund_status(operation.provider_object_id, ending)

    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)

    operation.refresh_from_db()
    succeeded = ending == "succeeded"
    assert operation.status == (Status.SUCCEEDED if succeeded else Status.FAILED)
    assert operation.failure_code == ("" if succeeded else ending)
    assert operation.next_check_at is None
    assert (stage.refunds(payment), stage.sends(payment)) == (int(succeeded), 1)


def test_attempts_of_two_operations_never_share_a_key(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=2)

    for number in range(2):
        stage.ask(payment, order_id=f"order-{number}", amount=2_500)

    assert stage.refunds(payment) == len(stage.keys(payment)) == Operation.objects.count() == 2
    assert stage.refunded(payment) == 5_000


def test_answer_about_another_amount_is_not_believed(stage: Stage) -> None:
    payment = stage.payment()
    refund = {
        "object": "refund",
        "id": "re_other",
        "status": "succeeded",
        "amount": PART * 10,
        "currency": "usd",
        "charge": payment,
    }
    with recorded_provider(sends=[(200, {}, refund)]) as provider:
        opened = split_opener(reads=stage.sandbox.url, sends=provider.url)
        operation = stage.ask(
            payment, engine=dataclasses.replace(stage.engine, open_provider=opened)
        )

    assert operation.status == Status.OPEN
    assert operation.attention == [Attention.MISMATCH]
    assert operation.provider_object_id == ""
    assert stage.sends(payment) == 0
