"""Looking up: found is proof, absence is evidence and settles nothing, and no money moves."""

from functools import partial

import pytest

from operations.domain.statuses import Status
from operations.models import AuditEntry, Evidence, EvidenceSource, Operation, ProviderRefund
from operations.services.draining import handle_next_event
from operations.services.looking_up import LookupResult, look_up
from operations.services.sweeping import check, claim_due_checks

from .deliveries import deliver, event
from .stage import JOB, PART, AtOnce, Stage

pytestmark = pytest.mark.django_db(transaction=True)


def unknown(stage: Stage, payment: str, *, made: bool = True) -> Operation:
    """An operation that a 500 left unknown."""
    stage.control.fault("500", when="after" if made else "before", payment=payment)
    operation = stage.ask(payment)
    assert operation.status == Status.UNKNOWN
    return operation


def look(stage: Stage, operation: Operation) -> LookupResult:
    return look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)


def newest(operation: Operation) -> Evidence:
    return operation.evidence.filter(source=EvidenceSource.LOOKUP).latest("recorded_at")


def test_found_refund_settles_with_its_evidence_and_audit_entry(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment)

    assert look(stage, operation) == LookupResult.FOUND

    operation.refresh_from_db()
    entry = AuditEntry.objects.filter(operation_id=operation.pk).latest("number")
    assert operation.status == Status.SUCCEEDED
    assert entry.evidence_id == str(newest(operation).pk)
    assert newest(operation).provider_object_id == operation.provider_object_id
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_second_look_up_of_a_settled_operation_changes_nothing(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment)
    look(stage, operation)
    entries = AuditEntry.objects.count()

    assert look(stage, operation) == LookupResult.FOUND

    assert AuditEntry.objects.count() == entries
    assert Operation.objects.get().status == Status.SUCCEEDED


def test_absence_says_how_much_it_is_worth(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment, made=False)
    stage.control.refund_outside(payment, amount=PART)
    stage.clock.advance(120)

    assert look(stage, operation) == LookupResult.ABSENT

    facts = newest(operation).facts
    assert facts["complete"] is True
    assert facts["refunds_seen_count"] == 1
    assert (facts["listed_total"], facts["provider_total"]) == (PART, PART)
    assert facts["total_explained"] is True
    assert facts["seconds_after_send"] >= 120
    operation.refresh_from_db()
    assert (operation.status, operation.provider_object_id) == (Status.UNKNOWN, "")
    assert ProviderRefund.objects.get().operation is None


def test_total_that_the_list_does_not_explain_is_written_down(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment)
    stage.control.lag(3_600)

    assert look(stage, operation) == LookupResult.ABSENT

    facts = newest(operation).facts
    assert (facts["listed_total"], facts["provider_total"]) == (0, PART)
    assert facts["total_explained"] is False
    assert Operation.objects.get().status == Status.UNKNOWN


def test_list_is_read_to_its_last_page(stage: Stage) -> None:
    payment = stage.payment(amount=100_000)
    operation = unknown(stage, payment)
    for _ in range(101):
        stage.control.refund_outside(payment, amount=1)

    assert look(stage, operation) == LookupResult.FOUND

    assert newest(operation).facts["pages"] == 2
    assert newest(operation).facts["refunds_seen_count"] == 102
    assert Operation.objects.get().status == Status.SUCCEEDED


@pytest.mark.parametrize("kind", ["503", "drop", "502_html", "401", "truncate", "empty_object"])
def test_provider_that_can_not_be_read_is_no_absence(stage: Stage, kind: str) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment)
    stage.control.fault(kind, endpoint="refunds.list", times=10)

    assert look(stage, operation) == LookupResult.UNREADABLE

    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    assert operation.next_check_at is not None
    assert newest(operation).facts["complete"] is False


def test_look_ups_follow_their_schedule_and_end(stage: Stage) -> None:
    stage.clock.freeze()
    payment = stage.payment()
    operation = unknown(stage, payment, made=False)
    pauses = []
    while operation.next_check_at is not None:
        pauses.append(round((operation.next_check_at - stage.clock()).total_seconds()))
        stage.clock.advance(pauses[-1])
        assert claim_due_checks(engine=stage.engine) == [operation.pk]
        check(engine=stage.engine, operation_id=operation.pk)
        operation.refresh_from_db()

    assert pauses[:7] == [10, 60, 300, 900, 3_600, 21_600, 86_400]
    assert pauses[7:] == [86_400] * 30
    assert operation.status == Status.UNKNOWN
    assert stage.sends(payment) == 1


def test_slow_look_up_does_not_undo_what_a_webhook_brought_meanwhile(served: Stage) -> None:
    payment = served.payment()
    operation = unknown(served, payment)
    provider = served.engine.provider(operation.account)
    (refund,) = provider.list_refunds(payment=payment, account="").refunds
    served.control.lag(3_600)
    served.control.fault("slow", endpoint="refunds.list", seconds=60)
    looking = AtOnce([partial(look, served, operation)])
    served.control.wait_in_flight(timeout_s=20)

    told = event()
    told["data"]["object"] |= {
        "id": refund.id,
        "amount": PART,
        "charge": payment,
        "metadata": dict(refund.metadata),
    }
    deliver(told)
    handle_next_event(engine=served.engine)
    served.control.let_go()

    assert looking.results() == [LookupResult.ABSENT]
    after = Operation.objects.get()
    assert (after.status, after.provider_object_id) == (Status.SUCCEEDED, refund.id)
    assert AuditEntry.objects.filter(action="provider_succeeded").count() == 1
    assert (served.refunds(payment), served.sends(payment)) == (1, 1)


def test_look_ups_that_meet_settle_once(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment)

    results = AtOnce([partial(look, stage, operation)] * 4).results()

    assert results == [LookupResult.FOUND] * 4
    assert AuditEntry.objects.filter(action="provider_succeeded").count() == 1
    assert Operation.objects.get().lookups_made == 4


def test_look_ups_of_one_payments_operations_do_not_wait_for_each_other_for_ever(
    stage: Stage,
) -> None:
    payment = stage.payment()
    operations = []
    for number in range(4):
        stage.control.fault("500", when="after")
        operations.append(stage.ask(payment, order_id=f"order-{number}", amount=1_000))

    results = AtOnce([partial(look, stage, operation) for operation in operations] * 2).results()

    assert results == [LookupResult.FOUND] * 8
    assert set(Operation.objects.values_list("status", flat=True)) == {Status.SUCCEEDED}
    assert stage.refunds(payment) == 4
