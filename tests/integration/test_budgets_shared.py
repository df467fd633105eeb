"""Limits that processes and threads share: the account's rate, and one send per payment."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest

from operations.domain.answers import AnswerKind
from operations.domain.statuses import Status
from operations.models import Account, Operation
from operations.providers.stripe import STRIPE_CONTRACT

from .conftest import ROOT
from .contract_stage import ContractStage
from .stage import AtOnce, Stage
from .wire_provider import provider_at

pytestmark = pytest.mark.django_db(transaction=True)

RATE = 10.0
BURST = RATE


def start(process_env: dict[str, str], payments: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.rate_sender", str(RATE), *payments],
        cwd=ROOT,
        env=process_env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_share_the_rate_of_one_account(
    stage: Stage, process_env: dict[str, str]
) -> None:
    Account.objects.create(name="default", livemode=False)
    payments = [stage.payment() for _ in range(40)]
    processes = [start(process_env, payments[:20]), start(process_env, payments[20:])]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        said = []
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate(timeout=30)[0].strip() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()

    assert said == ["20", "20"]
    times = sorted(send["time"] for send in stage.control.sends())
    assert len(times) == 40
    # Each alone would need (20 - burst) / rate; together they need three times as long.
    assert times[-1] - times[0] >= (40 - BURST) / RATE - 0.3
    for earlier, time in enumerate(times):
        for later in range(earlier, len(times)):
            allowed = BURST + RATE * (times[later] - time)
            # Who sleeps for a token may wake a little late, close to the one after.
            assert later - earlier + 1 <= allowed + 4


def test_send_that_finds_no_room_does_not_leave_and_says_when(stage: Stage) -> None:
    account = Account.objects.create(name="default", livemode=False)
    contract = replace(STRIPE_CONTRACT, writes_per_s=0.5)
    provider = replace(
        stage.engine,
        open_provider=lambda _: provider_at(stage.sandbox.url, contract=contract),
    ).provider(account)
    provider = replace(provider, longest_wait_s=1.0)  # type: ignore[type-var]
    answers = [
        provider.create_refund(
            parameters={"charge": stage.payment(), "amount": 100},
            idempotency_key=f"key-{number}",
            account="",
        )
        for number in range(3)
    ]

    kinds = [answer.kind for answer in answers]
    assert kinds[-1] is AnswerKind.NOT_SENT
    assert answers[-1].retry_after_s == 1.0
    assert len(stage.control.sends()) == kinds.count(AnswerKind.RESPONSE)


def test_sends_of_one_payment_go_one_after_the_other(stage: Stage) -> None:
    askers = 20
    payment = stage.payment(amount=100_000)
    stage.control.fault("slow", when="after", seconds=0.03, times=askers)
    real = ContractStage(sandbox=stage.sandbox, clock=stage.clock, engine=stage.engine)
    engine = real.in_real_time()
    engine = replace(engine, budget=replace(engine.budget, call_deadline_s=60.0))

    results = AtOnce(
        [
            partial(
                stage.ask, payment, engine=engine, order_id=f"order-{number}", amount=100 + number
            )
            for number in range(askers)
        ]
    ).results()

    assert [str(getattr(result, "status", result)) for result in results] == (
        [Status.SUCCEEDED] * askers
    )
    sends = sorted(stage.control.sends(payment=payment), key=lambda send: send["time"])
    assert len(sends) == stage.refunds(payment) == askers
    assert all(before["ended"] <= after["time"] for before, after in pairwise(sends))
    assert all(send["ended"] - send["time"] >= 0.03 for send in sends)
    assert Operation.objects.filter(attempts_made=1).count() == askers
