"""Unknown, and the key can't be relied on any more: nothing is sent, a person has to look."""

from dataclasses import replace

import pytest

from operations.domain.contract import KeyLocation, SavedAnswers
from operations.domain.key_window import KeyWindowPolicy
from operations.domain.statuses import Status, UnknownReason
from operations.models import Operation
from operations.services.looking_up import look_up
from operations.services.sweeping import check, claim_due_checks, give_up_lost_sends

from .stage import JOB, PART, Stage

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW_S = 86_400 - 900


def lost(stage: Stage, payment: str) -> Operation:
    """An operation whose refund was made and whose three answers were lost."""
    stage.control.fault("drop", when="after", times=3)
    operation = stage.ask(payment)
    assert operation.status == Status.OPEN
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)
    # From now on a send with the same key would be a second refund.
    stage.control.expire_keys()
    return operation


def sweep(stage: Stage) -> None:
    """One run of the periodic job."""
    give_up_lost_sends(engine=stage.engine)
    for due in claim_due_checks(engine=stage.engine):
        check(engine=stage.engine, operation_id=due)


def assert_in_the_queue(reason: UnknownReason) -> Operation:
    operation = Operation.objects.get()
    assert operation.status == Status.UNKNOWN
    assert operation.unknown_reason == reason
    assert operation.needs_person_since is not None
    return operation


def test_closed_window_ends_the_sending_when_somebody_asks(stage: Stage) -> None:
    payment = stage.payment()
    lost(stage, payment)
    stage.clock.advance(WINDOW_S + 1)

    for _ in range(3):
        assert stage.ask(payment).status == Status.UNKNOWN

    assert_in_the_queue(UnknownReason.KEY_WINDOW_CLOSED)
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, PART)
    assert stage.sends(payment) == 3


def test_closed_window_ends_the_sending_when_nobody_asks(stage: Stage) -> None:
    payment = stage.payment()
    lost(stage, payment)
    stage.control.lag(3_600)
    stage.clock.advance(WINDOW_S + 1)

    sweep(stage)
    stage.clock.advance(3_600)
    sweep(stage)

    operation = assert_in_the_queue(UnknownReason.KEY_WINDOW_CLOSED)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)

    stage.control.lag(0)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    assert Operation.objects.get().status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)


def test_key_is_used_until_shortly_before_its_window_closes(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)
    stage.ask(payment)
    stage.clock.advance(WINDOW_S - 60)

    assert stage.ask(payment).status == Status.SUCCEEDED

    assert (stage.refunds(payment), stage.sends(payment)) == (1, 4)


def test_send_that_would_be_due_after_the_window_is_not_waited_for(stage: Stage) -> None:
    stage.clock.freeze()
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)
    stage.ask(payment)
    stage.control.fault("429", retry_after_s=600)
    stage.clock.advance(WINDOW_S - 300)

    stage.ask(payment)

    assert_in_the_queue(UnknownReason.KEY_WINDOW_CLOSED)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 4)


def test_window_may_be_shortened(stage: Stage) -> None:
    payment = stage.payment()
    short = replace(stage.engine, key_window=KeyWindowPolicy(window_s=3_600, margin_s=600))
    stage.control.fault("drop", when="after", times=3)
    stage.ask(payment, engine=short)
    stage.control.expire_keys()
    stage.clock.advance(3_001)

    stage.ask(payment, engine=short)

    assert_in_the_queue(UnknownReason.KEY_WINDOW_CLOSED)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)


def test_longer_window_that_is_configured_later_does_not_stretch_the_promise(stage: Stage) -> None:
    payment = stage.payment()
    short = replace(stage.engine, key_window=KeyWindowPolicy(window_s=3_600, margin_s=600))
    stage.control.fault("drop", when="after", times=3)
    stage.ask(payment, engine=short)
    stage.control.expire_keys()
    stage.clock.advance(3_001)

    stage.ask(payment)

    assert_in_the_queue(UnknownReason.KEY_WINDOW_CLOSED)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 3)


@pytest.mark.parametrize(
    "promises",
    [
        {"key_window_s": None},
        {"key_location": KeyLocation.NONE},
        {"saved_answers": SavedAnswers.NOTHING},
    ],
    ids=["no window is stated", "no keys", "answers are not saved"],
)
def test_doubt_under_a_key_that_may_be_forgotten_ends_the_sending_at_once(
    stage: Stage, promises: dict[str, object]
) -> None:
    payment = stage.payment()
    engine = stage.with_contract(**promises)
    stage.control.fault("drop", when="after")

    operation = stage.ask(payment, engine=engine)

    assert operation.status == Status.UNKNOWN
    for _ in range(5):
        stage.ask(payment, engine=engine)
    assert_in_the_queue(UnknownReason.KEY_RETENTION_UNCLEAR)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_call_that_was_turned_away_goes_on_although_no_window_is_stated(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("429")

    operation = stage.ask(payment, engine=stage.with_contract(key_window_s=None))

    assert operation.status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)


def test_what_ended_by_the_clock_has_its_evidence_and_its_audit_entry(stage: Stage) -> None:
    payment = stage.payment()
    lost(stage, payment)
    stage.clock.advance(WINDOW_S + 1)
    before = Operation.objects.get().evidence.count()

    stage.ask(payment)

    operation = Operation.objects.get()
    evidence = operation.evidence.order_by("recorded_at").last()
    assert operation.evidence.count() == before + 1
    assert evidence is not None
    assert UnknownReason.KEY_WINDOW_CLOSED in evidence.summary
    assert stage.sends(payment) == 3
