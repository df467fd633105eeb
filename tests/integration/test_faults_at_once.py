"""Many ask for one operation at the same moment: one operation, one send in flight, one refund."""

import subprocess
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from operations.domain.statuses import Status
from operations.models import Operation, Request, RequestToken
from operations.services.requesting import ConflictingOperation, ReusedWithOtherInput
from operations.services.sending import InProgress

from .stage import CAPTURED, PART, AtOnce, Stage, ask

pytestmark = pytest.mark.django_db(transaction=True)


def told(results: list[Any]) -> Counter[str]:
    """How many were told what."""
    return Counter(
        str(result.status) if isinstance(result, Operation) else type(result).__name__
        for result in results
    )


@pytest.mark.parametrize("askers", [2, 50])
def test_many_threads_make_one_operation_one_send_and_one_refund(stage: Stage, askers: int) -> None:
    payment = stage.payment()
    stage.control.fault("slow", when="after", seconds=60)
    asking = AtOnce([partial(ask, stage.in_real_time(), payment)] * askers)
    stage.control.wait_in_flight(timeout_s=20)

    # Everybody but the one whose send is held has been answered before it is let go.
    asking.wait_for(askers - 1)
    assert told(asking.so_far()) == {"InProgress": askers - 1}
    assert len(stage.control.in_flight()) == stage.sends(payment) == 1
    stage.control.let_go()

    assert told(asking.results()) == {"InProgress": askers - 1, "succeeded": 1}
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, PART)
    assert stage.sends(payment) == 1
    assert Operation.objects.count() == 1
    assert Request.objects.count() == askers


def test_the_others_get_the_settled_answer_when_they_come_later(stage: Stage) -> None:
    payment = stage.payment()

    results = AtOnce([partial(ask, stage.in_real_time(), payment)] * 8).results()

    assert {*told(results)} <= {"InProgress", "succeeded"}
    again = AtOnce([partial(ask, stage.in_real_time(), payment)] * 8).results()
    assert told(again) == {"succeeded": 8}
    assert len({row.pk for row in again}) == Operation.objects.count() == 1
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_many_threads_after_a_lost_answer_still_make_one_refund(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)
    first = stage.ask(payment)
    assert first.status == Status.OPEN

    results = AtOnce([partial(ask, stage.in_real_time(), payment)] * 10).results()

    assert {*told(results)} <= {"InProgress", "succeeded"}
    assert "succeeded" in told(results)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 4)
    assert len(stage.keys(payment)) == 1


def test_two_processes_make_one_operation_and_one_refund(
    stage: Stage, start_sender: Callable[..., "subprocess.Popen[str]"]
) -> None:
    payment = stage.payment()
    stage.control.fault("slow", when="after", seconds=0.5)
    processes = [start_sender(payment), start_sender(payment)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    said = sorted(process.communicate(timeout=60)[0].strip() for process in processes)

    assert said in (["in_progress", "succeeded"], ["succeeded", "succeeded"])
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, PART)
    assert stage.sends(payment) == Operation.objects.count() == 1


def test_one_token_for_two_orders_at_once_refunds_one_of_them(stage: Stage) -> None:
    payment = stage.payment()

    results = AtOnce(
        [
            partial(
                ask,
                stage.in_real_time(),
                payment,
                token="one-wish",
                order_id=f"order-{number}",
                amount=100,
            )
            for number in range(6)
        ]
    ).results()

    assert told(results) == {"ReusedWithOtherInput": 5, "succeeded": 1}
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
    assert Operation.objects.count() == RequestToken.objects.count() == 1


def test_one_tool_call_for_two_orders_at_once_refunds_one_of_them(stage: Stage) -> None:
    payment = stage.payment()

    results = AtOnce(
        [
            partial(
                ask,
                stage.in_real_time(),
                payment,
                tool_call_id="toolu_01",
                agent_run_id="run-1",
                order_id=f"order-{number}",
                amount=100,
            )
            for number in range(6)
        ]
    ).results()

    assert told(results) == {"ReusedWithOtherInput": 5, "succeeded": 1}
    assert all(
        error.what == "tool call" for error in results if isinstance(error, ReusedWithOtherInput)
    )
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
    assert Operation.objects.count() == Request.objects.count() == 1


def test_one_tool_call_run_twice_at_once_is_one_refund(stage: Stage) -> None:
    payment = stage.payment()

    results = AtOnce(
        [partial(ask, stage.in_real_time(), payment, tool_call_id="toolu_01")] * 6
    ).results()

    assert {*told(results)} <= {"InProgress", "succeeded"}
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
    assert Request.objects.count() == 1


def test_two_amounts_for_one_order_at_once_are_one_refund_and_a_conflict(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("slow", when="after", seconds=60)
    asking = AtOnce(
        [
            partial(ask, stage.in_real_time(), payment, amount=1_000),
            partial(ask, stage.in_real_time(), payment, amount=2_000),
        ],
    )
    stage.control.wait_in_flight(timeout_s=20)
    asking.wait_for(1)
    (loser,) = asking.so_far()
    stage.control.let_go()

    assert isinstance(loser, ConflictingOperation)
    assert told(asking.results()) == {"ConflictingOperation": 1, "succeeded": 1}
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_one_order_at_once_for_two_payments_is_one_refund_and_a_conflict(stage: Stage) -> None:
    payments = [stage.payment(), stage.payment()]
    stage.control.fault("slow", when="after", seconds=60)
    asking = AtOnce([partial(ask, stage.in_real_time(), payment) for payment in payments])
    stage.control.wait_in_flight(timeout_s=20)
    asking.wait_for(1)
    (loser,) = asking.so_far()
    stage.control.let_go()

    assert isinstance(loser, ConflictingOperation)
    assert told(asking.results()) == {"ConflictingOperation": 1, "succeeded": 1}
    assert sum(stage.refunds(payment) for payment in payments) == 1


def test_two_amounts_at_once_on_one_payment_never_pass_the_till_together(stage: Stage) -> None:
    payment = stage.payment()

    results = AtOnce(
        [
            partial(ask, stage.in_real_time(), payment, order_id=f"order-{number}", amount=6_000)
            for number in range(4)
        ]
    ).results()

    assert told(results) == {"AboveTheTill": 3, "succeeded": 1}
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
    assert stage.refunded(payment) == 6_000 < CAPTURED
    assert Operation.objects.count() == 1


def test_equal_parts_with_their_own_references_all_go_through_at_once(stage: Stage) -> None:
    payment = stage.payment()

    results = AtOnce(
        [
            partial(ask, stage.in_real_time(), payment, reference=f"line-{number}", amount=2_500)
            for number in range(4)
        ]
    ).results()

    assert told(results) == {"succeeded": 4}
    assert (stage.refunds(payment), stage.refunded(payment)) == (4, CAPTURED)
    assert len(stage.keys(payment)) == stage.sends(payment) == 4


def test_nobody_sends_while_a_lease_is_held(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("slow", when="after", seconds=60)
    asking = AtOnce([partial(ask, stage.in_real_time(), payment)])
    stage.control.wait_in_flight(timeout_s=20)

    for _ in range(3):
        with pytest.raises(InProgress) as raised:
            stage.ask(payment)
        assert 1 <= raised.value.retry_after_s <= 5
    assert stage.sends(payment) == 1

    stage.control.let_go()
    assert told(asking.results()) == {"succeeded": 1}
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)
