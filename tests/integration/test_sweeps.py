"""Sweeping rows, not messages: nothing waits for a message, and one bad row holds up no other."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
import valkey
from django.db import transaction

from operations.domain.statuses import Status
from operations.models import Operation
from operations.sandbox import SandboxControl
from operations.services.settling import lock
from operations.services.sweeping import claim_due_checks, give_up_lost_sends
from reconcile.local.stack import LocalStack

from .stage import PART, AtOnce, Stage

ROOT = Path(__file__).resolve().parents[2]


def lose_the_answers(stage: Stage, order: str) -> Operation:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3, payment=payment)
    operation = stage.ask(payment, order_id=order)
    assert operation.status == Status.OPEN
    return operation


@pytest.mark.django_db(transaction=True)
def test_many_sweeps_at_once_claim_each_due_check_once(stage: Stage) -> None:
    due = {lose_the_answers(stage, str(number)).pk for number in range(6)}
    stage.clock.advance(60)

    results = AtOnce([partial(claim_due_checks, engine=stage.engine)] * 4).results()

    claimed = [operation_id for result in results for operation_id in result]
    assert sorted(claimed) == sorted(due)


@pytest.mark.django_db(transaction=True)
def test_a_row_that_somebody_holds_delays_no_other(stage: Stage) -> None:
    held, free = lose_the_answers(stage, "1"), lose_the_answers(stage, "2")
    stage.clock.advance(60)

    with transaction.atomic():
        lock(held.pk)
        assert AtOnce([partial(claim_due_checks, engine=stage.engine)]).results() == [[free.pk]]


@pytest.mark.django_db(transaction=True)
def test_a_lease_that_somebody_holds_locked_delays_no_other(stage: Stage) -> None:
    held, free = lose_the_answers(stage, "1"), lose_the_answers(stage, "2")
    for operation in (held, free):
        operation.refresh_from_db()
        operation.change(now=stage.clock(), lease_owner="gone:1:x", lease_expires_at=stage.clock())
    stage.clock.advance(1)

    with transaction.atomic():
        lock(held.pk)
        assert AtOnce([partial(give_up_lost_sends, engine=stage.engine)]).results() == [1]

    free.refresh_from_db()
    assert free.lease_owner == ""


# A whole stack, with a second beat and a second worker beside its own.


@contextmanager
def celery(stack: LocalStack, *arguments: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "celery", "--app", "reconcile", "--quiet", *arguments],
        cwd=ROOT,
        env=dict(stack.env) | {"C_FORCE_ROOT": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def ask_over_http(stack: LocalStack, key: str, order: str, payment: str) -> dict[str, Any]:
    answer = requests.post(
        f"{stack.url}/api/v1/refunds",
        json={"order_id": order, "amount": PART, "currency": "usd", "payment": payment},
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
    )
    return dict(answer.json())


@pytest.mark.xdist_group("swept_stack")
def test_two_beats_and_four_workers_without_the_brokers_memory_lose_and_double_nothing(
    local_stack_factory: Callable[..., LocalStack], tmp_path: Path
) -> None:
    stack = local_stack_factory(
        RECONCILE_LOOKUP_SCHEDULE_S="1,2,4,8",
        RECONCILE_BACKOFF_BASE_S="0.05",
        RECONCILE_REQUEST_TIMEOUT_S="1,2",
    )
    made = subprocess.run(
        [sys.executable, "manage.py", "create_api_key", "sweeps"],
        cwd=ROOT,
        env=os.environ | dict(stack.env),
        capture_output=True,
        text=True,
        check=True,
    )
    key = made.stdout.strip()
    assert stack.sandbox_url is not None
    control = SandboxControl(stack.sandbox_url)
    control.webhook_mode("drop")
    payments = [control.payment(amount=10_000)["charge"] for _ in range(6)]
    for payment in payments:
        control.fault("drop", when="after", times=3, payment=payment)
    broker = valkey.Valkey.from_url(stack.env["CELERY_BROKER_URL"].replace("redis+socket", "unix"))
    schedule = ("--schedule", str(tmp_path / "schedule"), "--pidfile", "")
    worker = ("worker", "--pool", "prefork", "--concurrency", "2", "-n", "second@%h")

    with celery(stack, "beat", *schedule), celery(stack, *worker):
        with ThreadPoolExecutor(6) as pool:
            numbered = list(enumerate(payments))
            told = list(
                pool.map(lambda item: ask_over_http(stack, key, f"o{item[0]}", item[1]), numbered)
            )
        assert {answer["status"] for answer in told} == {"unconfirmed"}
        waiting = {answer["operation_id"] for answer in told}
        started = time.monotonic()
        while waiting and time.monotonic() < started + 120:
            if time.monotonic() < started + 3:
                broker.flushall()
            waiting = {
                operation_id
                for operation_id in waiting
                if requests.get(
                    f"{stack.url}/api/v1/refunds/{operation_id}",
                    headers={"Authorization": f"Bearer {key}"},
                    timeout=30,
                ).json()["status"]
                != "refunded"
            }
            time.sleep(0.5)

    assert not waiting
    counted = control.counts()["by_operation"]
    assert [counted[answer["operation_id"]]["refunds"] for answer in told] == [1] * 6
    assert all(len(counted[answer["operation_id"]]["keys"]) == 1 for answer in told)
