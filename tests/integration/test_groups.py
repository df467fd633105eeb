"""Several refunds that belong together: each an operation with its own key, all or none."""

from functools import partial
from typing import Any

import pytest

from operations.domain.statuses import Status
from operations.models import Attempt, Operation, Request
from operations.services.requesting import (
    AboveTheTill,
    Asker,
    ConflictingOperation,
    InputRefused,
    ReusedWithOtherInput,
    request_group,
)

from .stage import AGENT, CAPTURED, PART, AtOnce, Stage, wish

pytestmark = pytest.mark.django_db(transaction=True)


def ask_group(stage: Stage, *payments: str, engine: Any = None, **given: Any) -> list[Operation]:
    """Ask for a part of each payment, all of order 4417."""
    amounts = given.pop("amounts", [PART] * len(payments))
    return request_group(
        engine=engine or stage.engine,
        wishes=[
            wish(payment, amount=amount) for payment, amount in zip(payments, amounts, strict=True)
        ],
        asker=Asker(actor=AGENT, api_key=None, **given),
    )


def test_each_payment_gets_an_operation_and_a_key_of_its_own_under_one_group(stage: Stage) -> None:
    one, two = stage.payment(), stage.payment()

    parts = ask_group(stage, one, two)

    assert [part.status for part in parts] == [Status.SUCCEEDED, Status.SUCCEEDED]
    assert len({part.group for part in parts}) == 1
    assert parts[0].group is not None
    assert len({part.idempotency_key for part in parts}) == 2
    assert (stage.refunds(one), stage.refunds(two)) == (1, 1)


def test_the_same_group_again_reaches_the_same_operations(stage: Stage) -> None:
    one, two = stage.payment(), stage.payment()
    first = ask_group(stage, one, two, tool_call_id="toolu_01", agent_run_id="run")

    again = ask_group(stage, one, two, tool_call_id="toolu_02", agent_run_id="run")
    replayed = ask_group(stage, one, two, tool_call_id="toolu_01", agent_run_id="run")

    assert [part.pk for part in again] == [part.pk for part in first]
    assert [part.pk for part in replayed] == [part.pk for part in first]
    assert (stage.sends(one), stage.sends(two)) == (1, 1)


def test_one_part_may_be_unknown_while_the_other_succeeded(stage: Stage) -> None:
    one, two = stage.payment(), stage.payment()
    stage.control.fault("500", when="after", payment=two)

    parts = ask_group(stage, one, two)

    assert [part.status for part in parts] == [Status.SUCCEEDED, Status.UNKNOWN]
    assert [part.status for part in ask_group(stage, one, two)] == [
        Status.SUCCEEDED,
        Status.UNKNOWN,
    ]
    assert (stage.sends(one), stage.sends(two)) == (1, 1)
    assert (stage.refunds(one), stage.refunds(two)) == (1, 1)


def test_nothing_is_opened_when_one_part_passes_its_till(stage: Stage) -> None:
    one, two = stage.payment(), stage.payment()

    with pytest.raises(AboveTheTill):
        ask_group(stage, one, two, amounts=[PART, CAPTURED + 1])

    assert Operation.objects.count() == Request.objects.count() == 0
    assert (stage.sends(one), stage.sends(two)) == (0, 0)


def test_nothing_is_opened_when_one_payment_is_not_there(stage: Stage) -> None:
    one = stage.payment()

    with pytest.raises(InputRefused) as refused:
        ask_group(stage, one, "ch_not_there")

    assert refused.value.field == "payment"
    assert Operation.objects.count() == 0
    assert stage.sends(one) == 0


def test_a_payment_twice_needs_two_references(stage: Stage) -> None:
    one = stage.payment()

    with pytest.raises(InputRefused) as refused:
        ask_group(stage, one, one)

    assert refused.value.field == "refunds"
    assert Operation.objects.count() == 0


def test_a_group_with_other_parts_under_the_same_tool_call_is_refused(stage: Stage) -> None:
    one, two, three = stage.payment(), stage.payment(), stage.payment()
    ask_group(stage, one, two, tool_call_id="toolu_01")

    with pytest.raises(ReusedWithOtherInput):
        ask_group(stage, one, three, tool_call_id="toolu_01")

    assert Operation.objects.count() == 2
    assert stage.sends(three) == 0


def test_other_amounts_conflict_while_a_part_is_unresolved(stage: Stage) -> None:
    one, two = stage.payment(), stage.payment()
    stage.control.fault("500", when="after", payment=one)
    ask_group(stage, one, two)

    with pytest.raises(ConflictingOperation):
        ask_group(stage, one, two, amounts=[PART + 1, PART])

    assert Operation.objects.count() == 2
    assert stage.sends(one) == 1


def test_the_same_group_at_once_makes_one_refund_for_each_payment(stage: Stage) -> None:
    one, two = stage.payment(), stage.payment()

    results = AtOnce(
        [partial(ask_group, stage, one, two, engine=stage.in_real_time())] * 8
    ).results()

    assert all(isinstance(result, list) for result in results), results
    assert Operation.objects.count() == 2
    assert (stage.refunds(one), stage.refunds(two)) == (1, 1)
    assert Attempt.objects.count() == stage.sends(one) + stage.sends(two) == 2
