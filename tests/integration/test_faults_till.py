"""The till: what of a payment is still there, by our operations and by the provider's figures."""

from typing import Any

import pytest

from operations.domain.statuses import Status
from operations.models import Operation, Payment, Request
from operations.services.requesting import AboveTheTill, InputRefused

from .stage import CAPTURED, Stage

pytestmark = pytest.mark.django_db(transaction=True)


def assert_refused(stage: Stage, payment: str, amount: int, *, free: int, rows: int) -> None:
    """More than is left is refused, and nothing is recorded or sent."""
    sends = stage.sends(payment)
    with pytest.raises(AboveTheTill) as raised:
        stage.ask(payment, amount=amount, order_id="too-much")
    assert raised.value.field == "amount"
    assert raised.value.till.free == free
    assert Operation.objects.count() == Request.objects.count() == rows
    assert stage.sends(payment) == sends


def test_more_than_was_captured_is_refused_before_anything_is_sent(stage: Stage) -> None:
    payment = stage.payment()

    assert_refused(stage, payment, CAPTURED + 1, free=CAPTURED, rows=0)

    assert Payment.objects.count() == 0
    assert stage.refunds(payment) == 0


def test_only_what_was_captured_can_be_refunded(stage: Stage) -> None:
    payment = stage.payment(captured=4_000)

    assert_refused(stage, payment, 4_001, free=4_000, rows=0)

    assert stage.ask(payment, amount=4_000).status == Status.SUCCEEDED
    assert stage.refunded(payment) == 4_000


def test_refunds_made_outside_count(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.refund_outside(payment, amount=7_000)

    assert_refused(stage, payment, 3_001, free=3_000, rows=0)

    assert stage.ask(payment, amount=3_000).status == Status.SUCCEEDED
    assert stage.refunded(payment) == CAPTURED


def test_refunds_made_outside_count_although_lists_lag(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.refund_outside(payment, amount=7_000)
    stage.control.lag(3_600)

    assert_refused(stage, payment, 3_001, free=3_000, rows=0)


def test_refund_made_outside_that_failed_does_not_count(stage: Stage) -> None:
    payment = stage.payment()
    outside = stage.control.refund_outside(payment, amount=7_000)
    stage.control.set_refund_status(outside, "failed")

    assert stage.ask(payment, amount=CAPTURED).status == Status.SUCCEEDED
    assert stage.refunded(payment) == CAPTURED


def test_refund_that_nobody_can_confirm_counts_until_it_is_settled(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="before")
    stage.ask(payment, amount=6_000)

    assert_refused(stage, payment, 4_001, free=4_000, rows=1)

    assert stage.ask(payment, amount=4_000, order_id="fits").status == Status.SUCCEEDED
    assert stage.refunded(payment) == 4_000


def test_ours_are_not_counted_twice_when_the_provider_shows_them(stage: Stage) -> None:
    payment = stage.payment()
    stage.ask(payment, amount=6_000)

    assert_refused(stage, payment, 4_001, free=4_000, rows=1)

    assert stage.ask(payment, amount=4_000, order_id="fits").status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.refunded(payment)) == (2, CAPTURED)


def test_lost_answer_is_not_counted_twice_when_the_provider_shows_the_refund(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="after")
    stage.ask(payment, amount=6_000)

    assert_refused(stage, payment, 4_001, free=4_000, rows=1)

    assert stage.ask(payment, amount=4_000, order_id="fits").status == Status.SUCCEEDED
    assert stage.refunded(payment) == CAPTURED


def test_refused_refund_gives_its_amount_back(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("refuse", code="charge_disputed")
    assert stage.ask(payment, amount=6_000).status == Status.FAILED

    assert stage.ask(payment, amount=CAPTURED, order_id="all").status == Status.SUCCEEDED
    assert (stage.refunds(payment), stage.refunded(payment)) == (1, CAPTURED)


def test_charge_and_payment_intent_share_one_till(stage: Stage) -> None:
    names = stage.control.payment(amount=CAPTURED)
    stage.ask(names["charge"], amount=6_000)

    with pytest.raises(AboveTheTill):
        stage.ask(names["payment_intent"], amount=6_000, order_id="4418")

    assert stage.refunded(names["charge"]) == 6_000
    assert Payment.objects.count() == Operation.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"payment": "ch_nowhere"}, "payment"),
        ({"payment": "pi_nowhere"}, "payment"),
        ({"currency": "eur"}, "currency"),
        ({"account": "nobody"}, "account"),
    ],
    ids=["no such charge", "no such intent", "another currency", "no such account"],
)
def test_wish_that_does_not_fit_the_payment_is_refused_by_name(
    stage: Stage, changes: dict[str, Any], field: str
) -> None:
    payment = stage.payment()

    with pytest.raises(InputRefused) as raised:
        stage.ask(**{"payment": payment} | changes)

    assert raised.value.field == field
    assert Operation.objects.count() == Payment.objects.count() == Request.objects.count() == 0
    assert stage.sends(payment) == 0
