"""Webhooks: signed, delivered, tried again, held, lost, doubled and out of order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import stripe

from operations.sandbox import Sandbox, SandboxControl

from .conftest import Receiver, wait_until

Payment = dict[str, str]


@pytest.fixture(autouse=True)
def _delivered_to_the_receiver(control: SandboxControl, receiver: Receiver) -> None:
    control.webhook_url(receiver.url)


def refund(client: stripe.StripeClient, payment: Payment, key: str = "k") -> stripe.Refund:
    return client.v1.refunds.create(
        {"charge": payment["charge"], "amount": 100}, {"idempotency_key": key}
    )


def test_events_arrive_signed_so_that_the_sdk_accepts_them(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    made = refund(client, payment)
    control.wait_delivered()
    assert sorted(receiver.types()) == ["charge.refunded", "refund.created"]
    created = next(event for event in receiver.events() if event.type == "refund.created")
    assert created.data.object["id"] == made.id
    assert {one["outcome"] for one in control.deliveries()} == {"delivered"}
    assert control.counts()["delivered"] == 2


def test_signature_uses_real_time_when_the_clock_was_advanced(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    control.advance_clock(40 * 86_400)
    refund(client, payment)
    control.wait_delivered()
    assert len(receiver.events()) == 2


def test_delivery_is_tried_again_with_the_same_bytes_until_the_answer_is_2xx(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    receiver.answers = [500, 302, 404]
    made = refund(client, payment)
    control.wait_delivered()
    assert len(receiver.received) == 5
    assert len({body for _, body in receiver.received}) == 2
    outcomes = [one["outcome"] for one in control.deliveries()]
    assert (outcomes.count("failed"), outcomes.count("delivered")) == (3, 2)
    assert made.status == "succeeded"


def test_address_that_nobody_listens_on_is_tried_again(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    control.webhook_url("http://127.0.0.1:1/webhooks/")
    refund(client, payment)
    wait_until(lambda: len(control.deliveries()) >= 4)
    assert control.deliveries()[0]["error"].startswith("ConnectionRefusedError")
    control.webhook_url(receiver.url)
    control.wait_delivered()
    assert len(receiver.received) == 2


def test_held_events_arrive_when_they_are_released_and_not_before(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    other = control.payment(amount=1_000)
    control.hold_webhooks(payment=payment["payment_intent"])
    refund(client, payment)
    refund(client, other, "other")
    control.wait_delivered()
    assert len(receiver.received) == 2
    assert len(control.webhooks()["held"]) == 2
    assert len(client.v1.events.list().data) == 4
    assert control.release_webhooks() == 2
    control.wait_delivered()
    assert receiver.types()[2:] == ["refund.created", "charge.refunded"]
    refund(client, payment, "after")
    control.wait_delivered()
    assert len(receiver.received) == 6


def test_dropped_events_are_in_the_event_list_only(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    control.webhook_mode("drop", times=1)
    refund(client, payment)
    control.wait_delivered()
    assert receiver.types() == ["charge.refunded"]
    lost = client.v1.events.list({"type": "refund.created"}).data[0]
    control.resend_event(lost.id)
    control.wait_delivered()
    assert receiver.events()[1].id == lost.id


def test_doubled_events_arrive_twice_with_the_same_id(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    control.webhook_mode("double", payment=payment["charge"])
    refund(client, payment)
    control.wait_delivered()
    assert len(receiver.received) == 4
    assert len({event.id for event in receiver.events()}) == 2


def test_reordered_events_arrive_in_reverse(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    control.webhook_mode("reorder", times=5)
    made = refund(client, payment)
    control.set_refund_status(made.id, "pending")
    control.wait_delivered()
    assert receiver.received == []
    control.set_refund_status(made.id, "succeeded")
    wait_until(lambda: len(receiver.received) == 6)
    expected = [
        "refund.updated",
        "charge.refund.updated",
        "refund.updated",
        "charge.refunded",
        "refund.created",
    ]
    assert [kind for kind in receiver.types() if kind != "charge.refund.updated"] == [
        kind for kind in expected if kind != "charge.refund.updated"
    ]


def test_deliver_ends_a_mode(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    control.webhook_mode("drop")
    control.webhook_mode("deliver")
    refund(client, payment)
    control.wait_delivered()
    assert len(receiver.received) == 2


def test_connected_account_can_have_an_address_and_a_secret_of_its_own(
    sandbox: Sandbox,
    control: SandboxControl,
    connect: Callable[..., stripe.StripeClient],
    receiver: Receiver,
) -> None:
    control.webhook_url(receiver.url + "acct_1/", account="acct_1", secret="whsec_1")
    payment = control.payment(amount=1_000, account="acct_1")
    refund(connect(sandbox, stripe_account="acct_1"), payment)
    control.wait_delivered()
    headers, body = receiver.received[0]
    event = stripe.Webhook.construct_event(body, headers["Stripe-Signature"], "whsec_1")
    assert event.account == "acct_1"
    assert all(one["url"].endswith("/acct_1/") for one in control.deliveries())


def test_without_an_address_nothing_is_sent(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, receiver: Receiver
) -> None:
    control.webhook_url(None)
    refund(client, payment)
    control.wait_delivered()
    assert (receiver.received, control.deliveries()) == ([], [])
