"""From a delivery to a settled operation: one transaction, once, and nothing blocks the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection

from operations import jobs
from operations.domain.statuses import Attention, Status
from operations.models import (
    AuditEntry,
    EventHandling,
    Evidence,
    EvidenceSource,
    Handling,
    InboxItem,
    Operation,
    WebhookEvent,
)
from operations.services.draining import handle_next_event
from operations.services.sweeping import check, claim_due_checks, events_wait

from .deliveries import WEBHOOKS, deliver, event
from .inboxes import handled, waiting
from .stage import PART, AtOnce, Stage, ask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hooked(served: Stage, live_server: Any) -> Iterator[Stage]:
    """The stage, with the sandbox delivering its webhooks to the running site."""
    served.control.webhook_url(f"{live_server}{WEBHOOKS}")
    yield served
    served.control.webhook_url(None)


def drain(stage: Stage) -> list[Any]:
    """Handle what waits; what each event came to."""
    stage.control.wait_delivered()
    return list(iter(partial(handle_next_event, engine=stage.engine), None))


def unknown(stage: Stage, payment: str) -> Operation:
    """An operation whose refund was made behind a 500."""
    stage.control.fault("500", when="after", payment=payment)
    operation = stage.ask(payment)
    assert operation.status == Status.UNKNOWN
    return operation


def refund_event(event_id: str, operation: Operation, **changes: Any) -> dict[str, Any]:
    """An event about the operation's refund, with our mark."""
    told = event(event_id, type="refund.updated")
    told["data"]["object"] |= {
        "id": "re_ours",
        "amount": operation.amount,
        "charge": operation.payment.charge,
        "metadata": {
            "reconcile_operation_id": str(operation.pk),
            "reconcile_environment": operation.environment,
        },
    } | changes
    return told


def test_webhook_settles_what_nobody_knew(hooked: Stage) -> None:
    payment = hooked.payment()
    operation = unknown(hooked, payment)

    drain(hooked)

    operation.refresh_from_db()
    (send,) = hooked.control.sends(payment=payment)
    assert operation.status == Status.SUCCEEDED
    entry = AuditEntry.objects.filter(operation_id=operation.pk).order_by("number").last()
    assert entry is not None
    evidence = Evidence.objects.get(pk=entry.evidence_id)
    assert evidence.source == EvidenceSource.WEBHOOK
    assert evidence.provider_object_id == operation.provider_object_id
    assert (hooked.refunds(payment), hooked.sends(payment)) == (1, 1)
    assert send["key"] == operation.idempotency_key


def test_webhook_that_overtakes_the_answer_makes_one_result(hooked: Stage) -> None:
    payment = hooked.payment()
    hooked.control.fault("slow", when="after", seconds=60)
    asking = AtOnce([partial(ask, hooked.in_real_time(), payment)])
    hooked.control.wait_in_flight(timeout_s=20)

    drain(hooked)
    assert Operation.objects.get().status == Status.SUCCEEDED
    hooked.control.let_go()
    (answered,) = asking.results()

    assert answered.status == Status.SUCCEEDED
    actions = AuditEntry.objects.filter(action="provider_succeeded")
    assert (actions.count(), actions.get().actor_kind) == (1, "webhook")
    assert answered.evidence.filter(source=EvidenceSource.ANSWER).count() == 1
    assert (answered.lease_owner, answered.lease_expires_at) == ("", None)
    assert (hooked.refunds(payment), hooked.sends(payment)) == (1, 1)


def test_pending_refund_that_a_webhook_tells_of_during_the_send_is_still_looked_up(
    served: Stage,
) -> None:
    payment = served.payment()
    served.control.fault("drop", when="after", payment=payment)

    def pause_for_a_webhook(seconds: float) -> None:
        (send,) = served.control.sends(payment=payment)
        told = refund_event("evt_1", Operation.objects.get(), id=send["refund"], status="pending")
        deliver(told)
        handle_next_event(engine=served.engine)

    operation = served.ask(payment, engine=replace(served.engine, sleep=pause_for_a_webhook))

    assert (operation.status, operation.lease_owner) == (Status.PROCESSING, "")
    assert operation.next_check_at is not None
    served.clock.advance(60)
    assert claim_due_checks(engine=served.engine) == [operation.pk]
    check(engine=served.engine, operation_id=operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert (served.refunds(payment), served.sends(payment)) == (1, 1)


def test_doubled_and_late_webhooks_change_nothing(hooked: Stage) -> None:
    payment = hooked.payment()
    hooked.control.webhook_mode("double")
    operation = hooked.ask(payment)
    drain(hooked)
    before = list(Operation.objects.values())
    entries = AuditEntry.objects.count()

    for row in WebhookEvent.objects.all():
        hooked.control.resend_event(row.event_id)
    drain(hooked)

    assert list(Operation.objects.values()) == before
    assert AuditEntry.objects.count() == entries
    assert set(EventHandling.objects.values_list("handling", flat=True)) <= {
        Handling.NO_CHANGE, Handling.NOT_OURS,
    }  # fmt: skip
    assert all(row.deliveries >= 2 for row in WebhookEvent.objects.all())
    assert Operation.objects.get().pk == operation.pk
    assert hooked.refunds(payment) == 1


def test_refund_that_fails_days_later_is_told_once(hooked: Stage) -> None:
    payment = hooked.payment()
    operation = hooked.ask(payment)
    hooked.control.set_refund_status(operation.provider_object_id, "failed")

    drain(hooked)

    operation.refresh_from_db()
    assert operation.status == Status.FAILED
    assert operation.attention == [Attention.FAILED_AFTER_SUCCESS]
    assert operation.needs_person_since is not None
    assert AuditEntry.objects.filter(action="provider_failed").count() == 1
    assert hooked.refunds(payment) == 0


def test_pending_refund_ends_by_webhook(hooked: Stage) -> None:
    payment = hooked.payment()
    hooked.control.fault("pending")
    operation = hooked.ask(payment)
    hooked.control.set_refund_status(operation.provider_object_id, "succeeded")

    drain(hooked)

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert (hooked.refunds(payment), hooked.sends(payment)) == (1, 1)


def test_refund_made_outside_with_the_same_amount_is_not_taken_for_ours(hooked: Stage) -> None:
    payment = hooked.payment()
    hooked.control.fault("500", when="before")
    operation = hooked.ask(payment)
    hooked.control.refund_outside(payment, amount=PART)

    drain(hooked)

    operation.refresh_from_db()
    assert (operation.status, operation.provider_object_id) == (Status.UNKNOWN, "")
    assert operation.attention == []
    assert hooked.sends(payment) == 1


def test_second_refund_that_carries_our_mark_is_shown_and_changes_no_outcome(
    hooked: Stage,
) -> None:
    payment = hooked.payment()
    operation = hooked.ask(payment)
    hooked.control.refund_outside(
        payment,
        amount=PART,
        metadata={
            "reconcile_operation_id": str(operation.pk),
            "reconcile_environment": operation.environment,
        },
    )

    drain(hooked)

    after = Operation.objects.get()
    assert (after.status, after.provider_object_id) == (
        Status.SUCCEEDED,
        operation.provider_object_id,
    )
    assert after.attention == [Attention.DUPLICATE_REFUND]
    assert hooked.refunds(payment) == 2


def test_error_while_handling_is_kept_and_blocks_no_other_event(served: Stage) -> None:
    first = unknown(served, served.payment())
    second = served.ask(served.payment(), order_id="4418")
    deliver(refund_event("evt_1", first))
    deliver(refund_event("evt_2", second, id=second.provider_object_id))
    entries = AuditEntry.objects.count()

    with refused_evidence():
        assert handle_next_event(engine=served.engine) is True
        assert handle_next_event(engine=served.engine) is True
        assert handle_next_event(engine=served.engine) is None

    broken = waiting("evt_1")
    assert (broken.attempts, broken.failures, broken.claimed_until) == (1, 1, None)
    assert "out of order today" in broken.error
    assert broken.handle_after > served.clock()
    assert handled("evt_2").handling == Handling.NO_CHANGE
    first.refresh_from_db()
    assert first.status == Status.UNKNOWN
    assert AuditEntry.objects.count() == entries

    served.clock.advance(3_600)
    assert handle_next_event(engine=served.engine) is True
    first.refresh_from_db()
    assert (handled("evt_1").handling, handled("evt_1").attempts) == (Handling.APPLIED, 2)
    assert (first.status, first.provider_object_id) == (Status.SUCCEEDED, "re_ours")


def test_pauses_between_tries_grow_and_end_at_an_hour(served: Stage) -> None:
    operation = unknown(served, served.payment())
    deliver(refund_event("evt_1", operation))
    pauses = []

    with refused_evidence():
        for _ in range(14):
            assert handle_next_event(engine=served.engine) is True
            pauses.append(round((waiting().handle_after - served.clock()).total_seconds()))
            served.clock.advance(pauses[-1] + 1)

    assert pauses[:4] == [5, 10, 20, 40]
    assert pauses[-1] == 3_600
    assert pauses == sorted(pauses)
    assert handle_next_event(engine=served.engine) is True
    assert handled().handling == Handling.APPLIED


def test_workers_that_meet_handle_every_event_once(served: Stage) -> None:
    payment = served.payment()
    operation = unknown(served, payment)
    for number in range(12):
        deliver(refund_event(f"evt_{number}", operation))

    turns = AtOnce(
        [lambda: list(iter(partial(handle_next_event, engine=served.engine), None))] * 4
    ).results()

    assert sum(len(part) for part in turns) == 12
    assert AuditEntry.objects.filter(action="provider_succeeded").count() == 1
    assert list(EventHandling.objects.values_list("attempts", flat=True)) == [1] * 12
    assert not InboxItem.objects.exists()


def test_sweep_finds_the_events_that_a_lost_message_left(served: Stage) -> None:
    operation = unknown(served, served.payment())
    assert not events_wait(engine=served.engine)
    deliver(refund_event("evt_1", operation))
    assert events_wait(engine=served.engine)

    jobs.handle_events()

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert not events_wait(engine=served.engine)


def test_event_that_waits_for_its_next_try_does_not_wake_the_sweep(served: Stage) -> None:
    deliver(refund_event("evt_1", unknown(served, served.payment())))
    with refused_evidence():
        handle_next_event(engine=served.engine)

    assert not events_wait(engine=served.engine)
    later = replace(served.engine, clock=lambda: served.clock() + timedelta(minutes=1))
    assert events_wait(engine=later)


@contextmanager
def refused_evidence() -> Iterator[None]:
    """The store takes no evidence of webhooks meanwhile, as when a disk is full."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_today() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'out of order today'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse_today BEFORE INSERT ON operations_evidence"
            " FOR EACH ROW WHEN (NEW.source = 'webhook') EXECUTE FUNCTION refuse_today()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER refuse_today ON operations_evidence")
            cursor.execute("DROP FUNCTION refuse_today()")
