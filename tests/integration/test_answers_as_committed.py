"""An answer is written on what was committed before the send, unless that has changed meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from operations.domain.audit import CHAIN_START
from operations.domain.statuses import Status
from operations.models import AuditEntry, Delivery, Evidence, Operation, ProviderRefund
from operations.models.audit import first_break
from operations.services.engine import Engine
from operations.services.subscribing import Wanted, subscribe

from .stage import JOB, Instead, Stage
from .subscribed import telling

pytestmark = pytest.mark.django_db(transaction=True)


def before_the_answer(stage: Stage, act: Callable[[Any], object]) -> Engine:
    """The engine with a provider that makes the refund, and lets this happen before it says so."""

    def open_provider(account: Any) -> Any:
        provider = stage.engine.open_provider(account)

        def create_refund(**call: Any) -> Any:
            answer = provider.create_refund(**call)
            act(answer)
            return answer

        return Instead(provider, create_refund=create_refund)

    return replace(stage.engine, open_provider=open_provider)


@contextmanager
def locks_of_operations() -> Iterator[list[str]]:
    """Each time that an operation was locked to be read again."""
    locks: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *about: Any) -> Any:
        if sql.startswith("SELECT 1 FROM operations_operation "):
            locks.append(sql)
        return execute(sql, *about)

    with connection.execute_wrapper(note):
        yield locks


def assert_settled_once(stage: Stage, payment: str) -> None:
    operation = Operation.objects.get()
    assert operation.status == Status.SUCCEEDED
    assert operation.attempts.get().outcome == "accepted"
    assert (operation.lease_owner, operation.lease_expires_at) == ("", None)
    entries = AuditEntry.objects.filter(operation_id=operation.pk).order_by("number")
    assert entries[0].previous_hash == CHAIN_START
    assert first_break(entries) is None
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_plain_answer_is_written_without_another_look_at_the_operation(stage: Stage) -> None:
    payment = stage.payment()

    with locks_of_operations() as locks:
        stage.ask(payment)

    assert locks == []
    assert_settled_once(stage, payment)
    assert Evidence.objects.count() == 1


def test_operation_that_changed_during_the_send_is_locked_and_read_again(stage: Stage) -> None:
    payment = stage.payment()

    def change(answer: Any) -> None:
        operation = Operation.objects.get()
        operation.change(now=stage.clock(), lookups_made=operation.lookups_made + 1)

    with locks_of_operations() as locks:
        stage.ask(payment, engine=before_the_answer(stage, change))

    assert len(locks) == 1
    assert_settled_once(stage, payment)
    assert Operation.objects.get().lookups_made == 1
    assert Evidence.objects.count() == 1


def test_refund_that_was_seen_before_its_answer_is_kept_as_one(stage: Stage) -> None:
    payment = stage.payment()

    def see(answer: Any) -> None:
        operation = Operation.objects.get()
        ProviderRefund.objects.create(
            account=operation.account,
            operation=operation,
            provider_object_id=answer.refund.id,
            status="pending",
            amount=operation.amount,
            currency=operation.currency,
            first_seen_at=stage.clock(),
            last_seen_at=stage.clock(),
        )

    with locks_of_operations() as locks:
        stage.ask(payment, engine=before_the_answer(stage, see))

    assert len(locks) == 1
    assert_settled_once(stage, payment)
    assert ProviderRefund.objects.get().status == "succeeded"


def test_audit_entry_that_was_written_during_the_send_stays_in_the_chain(stage: Stage) -> None:
    payment = stage.payment()

    def note(answer: Any) -> None:
        operation = Operation.objects.get()
        AuditEntry.append(operation_id=operation.pk, actor=JOB, action="noted", now=stage.clock())

    stage.ask(payment, engine=before_the_answer(stage, note))

    assert_settled_once(stage, payment)
    assert list(AuditEntry.objects.order_by("number").values_list("action", flat=True)) == [
        "opened",
        "noted",
        "provider_succeeded",
    ]


def test_who_subscribes_during_the_send_is_told_of_its_end(stage: Stage) -> None:
    payment = stage.payment()

    def join(answer: Any) -> None:
        wanted = Wanted(address="http://127.0.0.1:9/notices")
        subscribe(engine=telling(stage), wanted=wanted, actor=JOB)

    stage.ask(payment, engine=before_the_answer(stage, join))

    assert_settled_once(stage, payment)
    assert Delivery.objects.count() == 1


def test_answer_that_leaves_something_to_decide_is_decided_under_the_lock(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="after")

    with locks_of_operations() as locks:
        operation = stage.ask(payment)

    assert len(locks) == 1
    assert operation.status == Status.UNKNOWN
    assert Evidence.objects.count() == 1
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
