"""In doubt the provider is asked, and what it says now is shown even where nothing may change."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from operations import jobs
from operations.domain.orphans import Link
from operations.domain.statuses import Attention, Status
from operations.models import (
    AuditEntry,
    Discrepancy,
    EventHandling,
    Flag,
    Handling,
    Operation,
    ProviderRefund,
)
from operations.queries.conservation import account_sheets, payment_sheet
from operations.services.draining import handle_next_event
from operations.services.looking_up import LookupResult, look_up
from operations.services.orphans import OrphanRefused, link_refund
from operations.services.sweeping import check, claim_due_checks
from reconcile.celery import app

from .deliveries import deliver, event
from .stage import ALICE, JOB, PART, AtOnce, Stage

pytestmark = pytest.mark.django_db(transaction=True)


def unknown(stage: Stage) -> tuple[Operation, str]:
    """An operation whose refund was made behind a 500, and the refund's id."""
    payment = stage.payment()
    stage.control.fault("500", when="after", payment=payment)
    operation = stage.ask(payment)
    assert operation.status == Status.UNKNOWN
    (send,) = stage.control.sends(payment=payment)
    return operation, str(send["refund"])


def tell(stage: Stage, name: str, operation: Operation, refund: str, **changes: Any) -> None:
    """An event about this refund with the operation's mark, delivered and handled."""
    told = event(name, type="refund.updated")
    told["data"]["object"] |= {
        "id": refund,
        "amount": operation.amount,
        "charge": operation.payment.charge,
        "metadata": {
            "reconcile_operation_id": str(operation.pk),
            "reconcile_environment": operation.environment,
        },
    } | changes
    deliver(told)
    handle_next_event(engine=stage.engine)


def look(stage: Stage, operation: Operation) -> LookupResult:
    return look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)


def falsely_failed(stage: Stage) -> tuple[Operation, str]:
    """An event says that the refund failed, another one of the same second that it did not."""
    operation, refund = unknown(stage)
    tell(stage, "evt_1", operation, refund, status="failed")
    operation.refresh_from_db()
    assert (operation.status, operation.attention) == (Status.FAILED, [])
    tell(stage, "evt_2", operation, refund, status="succeeded")
    told = EventHandling.objects.get(provider_event_id="evt_2")
    assert told.handling == Handling.NEEDS_LOOKUP
    return operation, refund


def test_failure_that_the_provider_denies_when_asked_is_a_conflict_with_both_facts(
    served: Stage,
) -> None:
    operation, refund = falsely_failed(served)

    assert look(served, operation) == LookupResult.FOUND

    operation.refresh_from_db()
    assert (operation.status, operation.attention) == (Status.FAILED, [Attention.CONFLICT])
    flag = Flag.objects.get()
    assert flag.sides[:2] == [["outcome", "failed", "succeeded"], ["refund", refund, refund]]
    assert served.refunds(operation.payment.charge) == 1
    look(served, operation)
    assert Flag.objects.count() == 1


def test_refund_under_a_conflict_may_be_out(served: Stage) -> None:
    operation, _ = falsely_failed(served)
    before = payment_sheet(operation.payment).balance
    assert (before.least_out, before.most_out) == (0, 0)

    look(served, operation)

    operation.payment.refresh_from_db()
    operation.payment.refunded = 0
    operation.payment.save()
    after = payment_sheet(operation.payment).balance
    assert (after.least_out, after.most_out) == (0, PART)
    assert account_sheets(livemode=False)[0].sheet.balance == after


def test_live_read_against_a_failure_that_nobody_proved_leaves_it_to_a_person(
    served: Stage,
) -> None:
    operation, refund = unknown(served)
    tell(served, "evt_1", operation, refund, status="failed", charge="", payment_intent="")

    look(served, operation)

    operation.refresh_from_db()
    assert (operation.status, operation.attention) == (Status.UNKNOWN, [Attention.CONFLICT])


@pytest.fixture
def no_broker() -> Iterator[None]:
    """Nobody listens where the broker should be."""
    celery: Any = app
    kept = celery.conf.broker_url
    celery.conf.broker_url = "redis://127.0.0.1:1/0"
    # Forget the connections that there are.
    celery._after_fork()
    yield
    celery.conf.broker_url = kept
    celery._after_fork()


@pytest.mark.usefixtures("no_broker")
def test_look_up_that_no_message_asks_for_is_found_by_the_sweep(
    served: Stage,
) -> None:
    operation, refund = unknown(served)
    tell(served, "evt_1", operation, refund, status="failed")
    told = event("evt_2", type="refund.updated")
    told["data"]["object"] |= {
        "id": refund,
        "amount": operation.amount,
        "charge": operation.payment.charge,
    }
    deliver(told)

    jobs.handle_events()

    assert EventHandling.objects.get(provider_event_id="evt_2").handling == Handling.NEEDS_LOOKUP
    served.clock.advance(60)
    assert claim_due_checks(engine=served.engine) == [operation.pk]
    check(engine=served.engine, operation_id=operation.pk)
    operation.refresh_from_db()
    assert operation.attention == [Attention.CONFLICT]
    assert operation.next_check_at is None
    served.clock.advance(600)
    assert claim_due_checks(engine=served.engine) == []


def test_unknown_operation_beyond_its_schedule_is_looked_up_when_its_payment_is_refunded(
    served: Stage,
) -> None:
    operation, _ = unknown(served)
    operation.plan(now=served.clock(), next_check_at=None)
    told = event("evt_1", type="charge.refunded")
    told["data"]["object"] = {
        "id": operation.payment.charge,
        "object": "charge",
        "amount_refunded": PART,
        "currency": "usd",
    }
    deliver(told)

    assert handle_next_event(engine=served.engine) == operation.pk

    served.clock.advance(60)
    assert claim_due_checks(engine=served.engine) == [operation.pk]
    check(engine=served.engine, operation_id=operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED


def test_look_up_that_began_before_it_was_asked_for_does_not_answer(served: Stage) -> None:
    operation, refund = unknown(served)
    tell(served, "evt_1", operation, refund, status="failed")
    served.control.fault("slow", endpoint="refunds.list", seconds=60)
    engine = served.with_timeouts(read_s=60)
    looking = AtOnce([partial(look, replace(served, engine=engine), operation)])
    served.control.wait_in_flight(timeout_s=20)
    tell(served, "evt_2", operation, refund, status="succeeded")

    served.control.let_go()
    looking.results()

    operation.refresh_from_db()
    assert operation.next_check_at is not None


def test_report_unlike_what_was_kept_shows_the_kept_terms(served: Stage) -> None:
    operation, _ = unknown(served)
    tell(served, "evt_1", operation, "re_x", amount=100, metadata={})

    tell(served, "evt_2", operation, "re_x")

    operation.refresh_from_db()
    assert operation.attention == [Attention.MISMATCH]
    flag = Flag.objects.get()
    assert flag.sides == [["refund", "", "re_x"], ["amount", "100", str(PART)]]
    assert "None" not in flag.fact


def test_slow_look_up_asks_nobody_about_a_total_that_was_read_since(served: Stage) -> None:
    operation, _ = unknown(served)
    payment = operation.payment.charge
    served.control.fault("slow", endpoint="charges.retrieve", seconds=60)
    engine = served.with_timeouts(read_s=60)
    looking = AtOnce([partial(look, replace(served, engine=engine), operation)])
    served.control.wait_in_flight(timeout_s=20)
    served.control.refund_outside(payment, amount=PART)
    look(served, operation)

    served.control.let_go()
    looking.results()

    assert Discrepancy.objects.count() == 0


def test_refund_that_was_kept_with_other_terms_is_not_linked_and_leaves_no_trace(
    served: Stage,
) -> None:
    operation = served.ask(served.payment())
    made = served.control.refund_outside(operation.payment.charge, amount=PART)
    tell(served, "evt_1", operation, made, amount=100, metadata={})
    operation.refresh_from_db()
    before = AuditEntry.objects.count()

    with pytest.raises(OrphanRefused, match="kept with other terms"):
        link_refund(
            engine=served.engine,
            refund_id=ProviderRefund.objects.get(provider_object_id=made).pk,
            link=Link(operation_id=operation.pk, revision=operation.revision, note="It is ours."),
            actor=ALICE,
        )

    assert AuditEntry.objects.count() == before
    operation.refresh_from_db()
    assert operation.attention == []
