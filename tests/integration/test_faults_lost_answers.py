"""The provider acts and its answer is lost: the same key brings the answer back, one refund."""

import dataclasses
from typing import Any

import pytest

from operations.domain.statuses import Status, UnknownReason
from operations.models import Attempt, Operation

from .stage import CAPTURED, PART, Stage, split_opener

pytestmark = pytest.mark.django_db(transaction=True)

LOST_AFTER_THE_EFFECT = {
    "dropped": {"kind": "drop"},
    "reset": {"kind": "drop", "reset": True},
    "truncated": {"kind": "truncate"},
    "an empty object": {"kind": "empty_object"},
    "an empty list": {"kind": "empty_list"},
    "an empty body": {"kind": "empty_body"},
    "a proxy's 502": {"kind": "502_html"},
    "a 503": {"kind": "503"},
    "a proxy's 504": {"kind": "504"},
    "a redirect": {"kind": "redirect"},
}
lost = pytest.mark.parametrize(
    "fault", LOST_AFTER_THE_EFFECT.values(), ids=LOST_AFTER_THE_EFFECT.keys()
)


@lost
def test_answer_lost_after_success_is_recovered_with_the_same_key(
    stage: Stage, fault: dict[str, Any]
) -> None:
    payment = stage.payment()
    stage.control.fault(when="after", **fault)

    operation = stage.ask(payment)

    assert (stage.refunds(payment), stage.refunded(payment)) == (1, PART)
    first, second = stage.control.sends(payment=payment)
    assert (first["key"], first["params"]) == (second["key"], second["params"])
    assert [first["outcome"], second["outcome"]] == ["executed", "replayed"]
    assert operation.status == Status.SUCCEEDED
    assert operation.provider_object_id == first["refund"]
    assert first["key"] == operation.idempotency_key


def test_hang_past_the_timeout_is_recovered_with_the_same_key(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("hang", when="after", seconds=5)

    operation = stage.ask(payment, engine=stage.with_timeouts(read_s=0.3))

    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)
    assert len(stage.keys(payment)) == 1
    assert operation.status == Status.SUCCEEDED
    assert operation.attempts_made == 2


@lost
def test_three_lost_answers_leave_it_unconfirmed_and_asking_again_confirms_it(
    stage: Stage, fault: dict[str, Any]
) -> None:
    payment = stage.payment()
    stage.control.fault(when="after", times=3, **fault)

    first = stage.ask(payment)

    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)
    assert first.status == Status.OPEN
    assert first.needs_person_since is None

    second = stage.ask(payment)

    assert (stage.refunds(payment), stage.sends(payment)) == (1, 4)
    assert len(stage.keys(payment)) == 1
    assert second.pk == first.pk
    assert second.status == Status.SUCCEEDED


def test_six_lost_answers_use_up_the_operation_and_nothing_is_sent_again(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=20)

    stage.ask(payment)
    operation = stage.ask(payment)

    assert operation.status == Status.UNKNOWN
    assert operation.unknown_reason == UnknownReason.BUDGET_SPENT
    assert operation.needs_person_since is not None
    assert operation.next_check_at is not None
    for _ in range(5):
        assert stage.ask(payment).status == Status.UNKNOWN
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 6)
    assert Operation.objects.count() == 1


def test_six_unreadable_answers_are_named_as_such(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("empty_object", when="after", times=20)

    stage.ask(payment)
    operation = stage.ask(payment)

    assert (stage.refunds(payment), stage.sends(payment)) == (1, 6)
    assert operation.unknown_reason == UnknownReason.UNREADABLE_ANSWER


def test_one_call_sends_three_times_at_most_and_pauses_longer_each_time(stage: Stage) -> None:
    stage.clock.freeze()
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=20)

    operation = stage.ask(payment)

    assert stage.sends(payment) == operation.attempts_made == 3
    assert stage.clock.slept == pytest.approx([0.25, 0.5])


def test_call_ends_before_its_deadline_although_attempts_are_left(stage: Stage) -> None:
    stage.clock.freeze()
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=20)
    budget = dataclasses.replace(stage.engine.budget, call_deadline_s=7.6)

    operation = stage.ask(payment, engine=dataclasses.replace(stage.engine, budget=budget))

    assert stage.sends(payment) == 2
    assert operation.status == Status.OPEN
    assert operation.next_send_at is not None


def test_every_attempt_is_written_down_with_what_came_back(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after")
    stage.control.fault("503", when="after")

    operation = stage.ask(payment)

    attempts = Attempt.objects.filter(operation=operation).order_by("number")
    assert [row.outcome for row in attempts] == ["indeterminate", "indeterminate", "accepted"]
    assert [row.http_status for row in attempts] == [None, 503, 200]
    assert [row.replayed for row in attempts] == [False, False, True]
    assert {row.idempotency_key for row in attempts} == stage.keys(payment)
    assert operation.evidence.count() == 3
    assert stage.refunds(payment) == 1


def test_request_that_never_reached_the_provider_is_sent_when_it_can_be(stage: Stage) -> None:
    payment = stage.payment()
    nowhere = split_opener(reads=stage.sandbox.url, sends="http://127.0.0.1:9")

    operation = stage.ask(payment, engine=dataclasses.replace(stage.engine, open_provider=nowhere))

    assert stage.sends(payment) == 0
    assert operation.status == Status.OPEN
    assert {row.outcome for row in operation.attempts.all()} == {"not_executed"}

    assert stage.ask(payment).status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_refund_of_everything_is_recovered_too(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after")

    operation = stage.ask(payment, amount=CAPTURED)

    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, CAPTURED)
