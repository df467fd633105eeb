"""Back-pressure: while too much is unknown, new operations are refused."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from operations.domain.exposure import ExposureLimit, ExposureScope
from operations.domain.statuses import Status
from operations.models import ApiKey, Operation
from operations.services.looking_up import look_up
from operations.services.requesting import ExposureReached

from .stage import JOB, PART, Stage, ask

pytestmark = pytest.mark.django_db(transaction=True)


def limited(stage: Stage, scope: ExposureScope, currency: str, most: int) -> Stage:
    engine = replace(stage.engine, exposure_limits=(ExposureLimit(scope, currency, most),))
    return Stage(sandbox=stage.sandbox, clock=stage.clock, engine=engine)


def leave_unknown(stage: Stage, order: str, **given: Any) -> Operation:
    payment = stage.payment()
    stage.control.fault("500", when="after", payment=payment)
    operation = stage.ask(payment, order_id=order, **given)
    assert operation.status == Status.UNKNOWN
    return operation


def test_new_operations_are_refused_at_the_limit_and_nothing_is_recorded(stage: Stage) -> None:
    stage = limited(stage, ExposureScope.ACCOUNT, "", 2)
    leave_unknown(stage, "1")
    leave_unknown(stage, "2")
    payment = stage.payment()

    with pytest.raises(ExposureReached) as refused:
        stage.ask(payment, order_id="3")

    assert refused.value.limit.scope == ExposureScope.ACCOUNT
    assert Operation.objects.count() == 2
    assert stage.sends(payment) == 0


def test_a_limit_in_money_counts_its_own_currency(stage: Stage) -> None:
    stage = limited(stage, ExposureScope.ACCOUNT, "usd", PART + 1)
    leave_unknown(stage, "1")
    euros = stage.payment(currency="eur")
    assert stage.ask(euros, order_id="2", currency="eur").status == Status.SUCCEEDED
    leave_unknown(stage, "3")

    with pytest.raises(ExposureReached):
        stage.ask(stage.payment(), order_id="4")


def test_an_operation_that_is_there_already_is_still_answered(stage: Stage) -> None:
    stage = limited(stage, ExposureScope.ACCOUNT, "", 1)
    operation = leave_unknown(stage, "1")

    again = stage.ask(operation.payment.charge, order_id="1")

    assert again.pk == operation.pk


def test_another_agent_and_another_customer_are_not_held_up(stage: Stage) -> None:
    now = datetime.now(UTC)
    busy, other = (
        ApiKey.objects.create(name=name, prefix=name, secret_hash=name, created_at=now)
        for name in ("busy", "other")
    )
    by_agent = limited(stage, ExposureScope.AGENT, "", 1)
    leave_unknown(by_agent, "1", api_key=busy)
    with pytest.raises(ExposureReached):
        ask(by_agent.engine, stage.payment(), order_id="2", api_key=busy)
    assert ask(by_agent.engine, stage.payment(), order_id="3", api_key=other).status == (
        Status.SUCCEEDED
    )

    by_customer = limited(stage, ExposureScope.CUSTOMER, "", 1)
    leave_unknown(by_customer, "4", customer_account="cus_1")
    with pytest.raises(ExposureReached):
        by_customer.ask(stage.payment(), order_id="5", customer_account="cus_1")
    assert by_customer.ask(stage.payment(), order_id="6", customer_account="cus_2").status == (
        Status.SUCCEEDED
    )


def test_new_operations_go_on_once_the_unknown_one_is_settled(stage: Stage) -> None:
    stage = limited(stage, ExposureScope.ACCOUNT, "", 1)
    operation = leave_unknown(stage, "1")
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)

    assert stage.ask(stage.payment(), order_id="2").status == Status.SUCCEEDED
