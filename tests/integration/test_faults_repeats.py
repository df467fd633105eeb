"""Asked again: the same wish under any of its names is one refund, another wish is another."""

from typing import Any

import pytest

from operations.domain.statuses import Status
from operations.models import ApiKey, Operation, Request
from operations.services.requesting import ConflictingOperation, ReusedWithOtherInput
from operations.services.sweeping import check

from .stage import PART, Stage

pytestmark = pytest.mark.django_db(transaction=True)

DAY_S = 86_400
OTHER_INPUT: dict[str, dict[str, Any]] = {
    "amount": {"amount": PART + 1},
    "order": {"order_id": "4418"},
    "reference": {"reference": "line-2"},
    "currency": {"currency": "eur"},
    "payment": {"payment": "ch_another"},
}
other_input = pytest.mark.parametrize("other", OTHER_INPUT.values(), ids=OTHER_INPUT.keys())


def api_key(number: int) -> ApiKey:
    return ApiKey.objects.create(
        name=f"Agent {number}",
        prefix="rck_",
        secret_hash=f"{number:064d}",
        created_at="2026-01-01T00:00:00Z",
    )


# --- Tokens -------------------------------------------------------------------------------------


@other_input
def test_token_used_with_another_input_is_refused_and_nothing_changes(
    stage: Stage, other: dict[str, Any]
) -> None:
    payment = stage.payment()
    stage.ask(payment, token="wish-1")
    before = list(Operation.objects.values())

    with pytest.raises(ReusedWithOtherInput) as raised:
        stage.ask(**{"payment": payment, "token": "wish-1"} | other)

    assert raised.value.what == "token"
    assert list(Operation.objects.values()) == before
    assert Request.objects.count() == 1
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_token_gets_its_settled_answer_at_any_later_time(stage: Stage) -> None:
    payment = stage.payment()
    first = stage.ask(payment, token="wish-1")
    stage.clock.advance(30 * DAY_S)

    again = stage.ask(payment, token="wish-1")

    assert (again.pk, again.status) == (first.pk, Status.SUCCEEDED)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_remark_of_the_model_does_not_make_it_another_wish(stage: Stage) -> None:
    payment = stage.payment()
    first = stage.ask(payment, token="wish-1", reason="The kettle leaks.")

    again = stage.ask(payment, token="wish-1", reason="Customer is unhappy.")

    assert again.pk == first.pk
    assert again.reason == "The kettle leaks."
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_another_token_makes_a_second_refund_once_the_first_is_settled(stage: Stage) -> None:
    payment = stage.payment()
    first = stage.ask(payment, token="wish-1")

    second = stage.ask(payment, token="wish-2")

    assert second.pk != first.pk
    assert (stage.refunds(payment), len(stage.keys(payment))) == (2, 2)


def test_another_token_joins_while_the_first_is_unresolved(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="after")
    first = stage.ask(payment, token="wish-1")

    second = stage.ask(payment, token="wish-2")

    assert (second.pk, second.status) == (first.pk, Status.UNKNOWN)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


# --- Tool calls ---------------------------------------------------------------------------------


def test_resumed_agent_gets_the_answer_of_its_tool_call_settled_or_not(stage: Stage) -> None:
    payment = stage.payment()
    call: dict[str, Any] = {"tool_call_id": "toolu_01", "agent_run_id": "run-1"}
    stage.control.fault("drop", when="after", times=3)

    first = stage.ask(payment, **call)
    assert first.status == Status.OPEN
    second = stage.ask(payment, **call)
    assert second.status == Status.SUCCEEDED
    stage.clock.advance(30 * DAY_S)
    third = stage.ask(payment, **call)

    assert first.pk == second.pk == third.pk
    assert Request.objects.count() == 1
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 4)


@other_input
def test_tool_call_used_with_another_input_is_refused(stage: Stage, other: dict[str, Any]) -> None:
    payment = stage.payment()
    stage.ask(payment, tool_call_id="toolu_01")

    with pytest.raises(ReusedWithOtherInput) as raised:
        stage.ask(**{"payment": payment, "tool_call_id": "toolu_01"} | other)

    assert raised.value.what == "tool call"
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_agent_that_plans_its_refund_anew_reaches_the_same_operation(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="after")
    first = stage.ask(payment, tool_call_id="toolu_01", agent_run_id="run-1")

    second = stage.ask(payment, tool_call_id="toolu_02", agent_run_id="run-2")

    assert (second.pk, second.status) == (first.pk, Status.UNKNOWN)
    assert Request.objects.count() == 2
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_tool_call_belongs_to_the_key_and_run_that_made_it(stage: Stage) -> None:
    payment = stage.payment()
    first, second = api_key(1), api_key(2)

    stage.ask(payment, tool_call_id="toolu_01", api_key=first)
    stage.ask(payment, tool_call_id="toolu_01", api_key=second, order_id="4418")
    stage.ask(
        payment, tool_call_id="toolu_01", api_key=second, agent_run_id="r2", amount=100,
        order_id="4419",
    )  # fmt: skip

    assert Operation.objects.count() == stage.refunds(payment) == 3


# --- Order, reference and amount ----------------------------------------------------------------


@pytest.mark.parametrize(
    "other", [{"amount": 100}, {"customer_account": "customer-2"}], ids=["amount", "customer"]
)
def test_other_terms_for_an_unresolved_refund_are_a_conflict(
    stage: Stage, other: dict[str, Any]
) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="after")
    first = stage.ask(payment)

    with pytest.raises(ConflictingOperation) as raised:
        stage.ask(payment, **other)

    assert raised.value.operation.pk == first.pk
    assert Operation.objects.count() == Request.objects.count() == 1
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_another_payment_for_an_unresolved_refund_is_a_conflict(stage: Stage) -> None:
    first, second = stage.payment(), stage.payment()
    stage.control.fault("500", when="after")
    stage.ask(first)

    with pytest.raises(ConflictingOperation):
        stage.ask(second)

    assert (stage.refunds(first), stage.sends(second)) == (1, 0)


def test_equal_parts_stand_side_by_side_under_their_references(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("drop", when="after", times=3)

    first = stage.ask(payment, reference="return-1")
    second = stage.ask(payment, reference="return-2")

    assert first.pk != second.pk
    assert (first.status, second.status) == (Status.OPEN, Status.SUCCEEDED)
    assert (stage.refunds(payment), stage.refunded(payment)) == (2, 2 * PART)
    assert len(stage.keys(payment)) == 2


def test_job_that_is_delivered_five_times_sends_once(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("429", times=3)
    stage.ask(payment, reference="return-1")
    stage.ask(payment, reference="return-2")
    waiting = Operation.objects.get(reference="return-1")
    stage.clock.advance(60)

    for _ in range(5):
        check(engine=stage.engine, operation_id=waiting.pk)

    assert (stage.refunds(payment), len(stage.keys(payment))) == (2, 2)
    assert stage.sends(payment) == 5


def test_charge_and_payment_intent_are_two_names_of_one_payment(stage: Stage) -> None:
    names = stage.control.payment(amount=10_000)
    stage.control.fault("500", when="after")
    first = stage.ask(names["charge"])

    second = stage.ask(names["payment_intent"])

    assert second.pk == first.pk
    assert (stage.refunds(names["charge"]), stage.sends(names["charge"])) == (1, 1)


# --- Without a token ----------------------------------------------------------------------------


def test_same_request_after_success_gets_the_same_answer(stage: Stage) -> None:
    payment = stage.payment()
    first = stage.ask(payment)
    stage.clock.advance(DAY_S - 60)

    again = stage.ask(payment, tool_call_id="toolu_99")

    assert (again.pk, again.status) == (first.pk, Status.SUCCEEDED)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


@pytest.mark.parametrize(
    "difference",
    [{"reference": "return-2"}, {"token": "wish-2"}, {"amount": 100}],
    ids=["reference", "token", "amount"],
)
def test_difference_that_was_meant_makes_a_second_refund(
    stage: Stage, difference: dict[str, Any]
) -> None:
    payment = stage.payment()
    first = stage.ask(payment)

    second = stage.ask(payment, **difference)

    assert second.pk != first.pk
    assert second.status == Status.SUCCEEDED
    assert (stage.refunds(payment), len(stage.keys(payment))) == (2, 2)


def test_same_request_long_after_success_is_a_new_wish(stage: Stage) -> None:
    payment = stage.payment()
    first = stage.ask(payment)
    stage.clock.advance(DAY_S + 60)

    second = stage.ask(payment)

    assert second.pk != first.pk
    assert (stage.refunds(payment), len(stage.keys(payment))) == (2, 2)


def test_request_after_a_refusal_is_a_new_operation_with_its_own_key(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("refuse", code="insufficient_balance_for_refund")
    first = stage.ask(payment)
    assert first.status == Status.FAILED

    second = stage.ask(payment)

    assert second.pk != first.pk
    assert (first.status, second.status) == (Status.FAILED, Status.SUCCEEDED)
    assert second.reissue_of_id == first.pk
    assert (stage.refunds(payment), len(stage.keys(payment))) == (1, 2)
