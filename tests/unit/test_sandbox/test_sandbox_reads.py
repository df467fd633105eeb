"""Lists and events: order, paging, filters."""

from __future__ import annotations

import pytest
import stripe
from stripe.params import RefundCreateParams

from operations.sandbox import SandboxControl

from .conftest import headers_of

Payment = dict[str, str]


@pytest.fixture
def made(client: stripe.StripeClient, payment: Payment) -> list[str]:
    """The ids of 25 refunds of the payment, newest first."""
    params: RefundCreateParams = {"charge": payment["charge"], "amount": 10}
    ids = [client.v1.refunds.create(params).id for _ in range(25)]
    return ids[::-1]


def test_refunds_come_newest_first_ten_to_a_page(
    client: stripe.StripeClient, payment: Payment, made: list[str]
) -> None:
    page = client.v1.refunds.list({"charge": payment["charge"]})
    assert ([r.id for r in page.data], page.has_more) == (made[:10], True)


def test_pages_are_read_to_the_end_by_the_sdk(
    client: stripe.StripeClient, payment: Payment, made: list[str]
) -> None:
    pages = client.v1.refunds.list({"payment_intent": payment["payment_intent"], "limit": 7})
    assert [refund.id for refund in pages.auto_paging_iter()] == made


def test_pages_go_forwards_and_backwards_from_a_refund(
    client: stripe.StripeClient, payment: Payment, made: list[str]
) -> None:
    after = client.v1.refunds.list({"limit": 5, "starting_after": made[19]})
    assert ([r.id for r in after.data], after.has_more) == (made[20:], False)
    before = client.v1.refunds.list({"limit": 5, "ending_before": made[10]})
    assert ([r.id for r in before.data], before.has_more) == (made[5:10], True)


def test_refunds_can_be_filtered_by_time(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, made: list[str]
) -> None:
    now = int(control.advance_clock(1_000))
    late = client.v1.refunds.create({"charge": payment["charge"], "amount": 10})
    assert [r.id for r in client.v1.refunds.list({"created": {"gte": now}}).data] == [late.id]
    early = client.v1.refunds.list({"created": {"lt": now}, "limit": 100})
    assert [r.id for r in early.data] == made


@pytest.mark.parametrize("limit", [0, 101])
def test_limit_is_between_1_and_100(client: stripe.StripeClient, limit: int) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.refunds.list({"limit": limit})


def test_refunds_have_no_metadata_filter(client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError, match="unknown parameter: metadata"):
        client.v1.refunds.list({"metadata": {"a": "b"}})  # type: ignore[arg-type]


def test_each_refund_makes_one_event_about_it_and_one_about_its_charge(
    client: stripe.StripeClient, control: SandboxControl
) -> None:
    payment = control.payment(amount=900, metadata={"order": "A-7"})
    params: RefundCreateParams = {
        "charge": payment["charge"],
        "metadata": {"reconcile_operation_id": "op"},
    }
    refund = client.v1.refunds.create(params, {"idempotency_key": "k"})
    of_charge, of_refund = (event.to_dict() for event in client.v1.events.list().data)
    assert (of_refund["type"], of_charge["type"]) == ("refund.created", "charge.refunded")
    assert of_refund["data"]["object"]["id"] == refund.id
    assert of_refund["data"]["object"]["metadata"] == {"reconcile_operation_id": "op"}
    charge = of_charge["data"]["object"]
    assert (charge["object"], charge["amount_refunded"]) == ("charge", 900)
    assert charge["metadata"] == {"order": "A-7"}
    assert "refunds" not in charge
    for event in (of_refund, of_charge):
        assert event["request"] == {
            "id": headers_of(refund)["Request-Id"],
            "idempotency_key": "k",
        }
        assert event["api_version"] == "2026-04-22.dahlia"
        assert event["livemode"] is False
        assert "account" not in event


def test_automatic_changes_have_no_key_and_say_what_was_before(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    refund = client.v1.refunds.create({"charge": payment["charge"]})
    control.set_refund_status(refund.id, "failed", failure_reason="lost_or_stolen_card")
    types = ["refund.failed", "refund.updated", "charge.refund.updated"]
    events = client.v1.events.list({"types": types}).data
    assert [event.type for event in events] == types[::-1]
    for event in (event.to_dict() for event in events):
        assert event["request"] == {"id": None, "idempotency_key": None}
        assert event["data"]["object"]["status"] == "failed"
    previous = events[1].to_dict()["data"]["previous_attributes"]
    assert previous == {"status": "succeeded", "failure_reason": None}


def test_refund_made_outside_has_a_foreign_key_and_no_metadata(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.refund_outside(payment["charge"], amount=5)
    event = client.v1.events.list({"type": "refund.created"}).data[0].to_dict()
    assert event["request"]["idempotency_key"]
    assert event["data"]["object"]["metadata"] == {}
    assert control.counts()["sends"] == 0


def test_events_are_listed_for_thirty_days(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    client.v1.refunds.create({"charge": payment["charge"]})
    event = client.v1.events.list().data[0]
    control.advance_clock(30 * 86_400 - 10)
    assert client.v1.events.retrieve(event.id).id == event.id
    control.advance_clock(10)
    assert client.v1.events.list().data == []
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.events.retrieve(event.id)


def test_events_are_paged_and_filtered_by_type(
    client: stripe.StripeClient, made: list[str]
) -> None:
    listed = client.v1.events.list({"type": "refund.*", "limit": 10}).auto_paging_iter()
    assert [event.to_dict()["data"]["object"]["id"] for event in listed] == made
    with pytest.raises(stripe.InvalidRequestError, match="20 types"):
        client.v1.events.list({"types": [f"type.{number}" for number in range(21)]})


def test_dispute_is_announced(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.dispute(payment["charge"])
    event = client.v1.events.list({"type": "charge.dispute.created"}).data[0].to_dict()
    assert event["data"]["object"]["object"] == "dispute"
    assert event["data"]["object"]["charge"] == payment["charge"]
    assert event["data"]["object"]["is_charge_refundable"] is False
