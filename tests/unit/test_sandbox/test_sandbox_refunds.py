"""Money: what a refund takes from a charge, what gives it back, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import stripe
from stripe.params import RefundCreateParams

from operations.sandbox import ControlRefusedError, Sandbox, SandboxControl

Payment = dict[str, str]


def test_refund_without_an_amount_takes_all_that_is_left(
    client: stripe.StripeClient, payment: Payment
) -> None:
    client.v1.refunds.create({"charge": payment["charge"], "amount": 2_500})
    refund = client.v1.refunds.create({"payment_intent": payment["payment_intent"]})
    charge = client.v1.charges.retrieve(payment["charge"])
    assert (refund.amount, refund.status, refund.currency) == (7_500, "succeeded", "usd")
    assert (charge.amount_captured, charge.amount_refunded, charge.refunded) == (
        10_000,
        10_000,
        True,
    )


def test_refund_keeps_metadata_and_reason(client: stripe.StripeClient, payment: Payment) -> None:
    made = client.v1.refunds.create(
        {
            "charge": payment["charge"],
            "amount": 1,
            "reason": "requested_by_customer",
            "metadata": {"reconcile_operation_id": "op-1", "ünicode": "[x] & =1"},
        }
    )
    read = client.v1.refunds.retrieve(made.id)
    assert read.to_dict()["metadata"] == {"reconcile_operation_id": "op-1", "ünicode": "[x] & =1"}
    assert read.reason == "requested_by_customer"


def test_more_than_what_is_left_is_refused_without_a_code(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    client.v1.refunds.create({"charge": payment["charge"], "amount": 9_000})
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        client.v1.refunds.create({"charge": payment["charge"], "amount": 2_500})
    assert refusal.value.http_status == 400
    assert (refusal.value.code, refusal.value.param) == (None, "amount")
    assert "Refund amount ($25.00) is greater than unrefunded amount on charge ($10.00)" in str(
        refusal.value
    )
    assert control.counts()["refunds"] == 1


def test_charge_refunded_in_full_is_already_refunded(
    client: stripe.StripeClient, payment: Payment
) -> None:
    client.v1.refunds.create({"charge": payment["charge"]})
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        client.v1.refunds.create({"charge": payment["charge"], "amount": 1})
    assert refusal.value.code == "charge_already_refunded"


def test_disputed_charge_is_not_refunded_but_an_inquiry_is(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.dispute(payment["charge"], refundable=True)
    client.v1.refunds.create({"charge": payment["charge"], "amount": 1})
    control.dispute(payment["charge"])
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        client.v1.refunds.create({"charge": payment["charge"], "amount": 1})
    assert refusal.value.code == "charge_disputed"
    assert client.v1.charges.retrieve(payment["charge"]).disputed
    assert control.counts()["refunds"] == 1


def test_uncaptured_payment_can_not_be_refunded(
    client: stripe.StripeClient, control: SandboxControl
) -> None:
    payment = control.payment(amount=500, captured=False)
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        client.v1.refunds.create({"payment_intent": payment["payment_intent"]})
    assert refusal.value.code == "charge_not_refundable"
    intent = client.v1.payment_intents.retrieve(payment["payment_intent"])
    assert (intent.status, intent.amount_received) == ("requires_capture", 0)


@pytest.mark.parametrize(
    ("params", "code", "param"),
    [
        ({"charge": "ch_1", "amount": "ten"}, "parameter_invalid_integer", "amount"),
        ({"charge": "ch_1", "amount": 0}, "parameter_invalid_integer", "amount"),
        ({"amount": 5}, "parameter_missing", "charge"),
        ({"charge": "ch_1", "payment_intent": "pi_1"}, None, "charge"),
        ({"charge": "ch_1", "reason": "mood"}, None, "reason"),
        ({"charge": "ch_1", "idempotency_key": "k"}, "parameter_unknown", "idempotency_key"),
        ({"charge": "ch_1", "metadata": {"k" * 41: "v"}}, None, f"metadata[{'k' * 41}]"),
        ({"charge": "ch_1", "expand": ["customer"]}, None, "expand"),
    ],
)
def test_bad_parameters_are_refused_as_stripe_does(
    client: stripe.StripeClient, params: dict[str, object], code: str | None, param: str
) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        client.v1.refunds.create(params)  # type: ignore[arg-type]
    assert refusal.value.http_status == 400
    assert (refusal.value.code, refusal.value.param) == (code, param)


def test_unknown_ids_are_missing_resources(client: stripe.StripeClient) -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: client.v1.refunds.create({"charge": "ch_none"}), "charge"),
        (lambda: client.v1.refunds.create({"payment_intent": "pi_none"}), "payment_intent"),
        (lambda: client.v1.refunds.retrieve("re_none"), "id"),
        (lambda: client.v1.charges.retrieve("ch_none"), "id"),
        (lambda: client.v1.payment_intents.retrieve("pi_none"), "intent"),
        (lambda: client.v1.refunds.list({"charge": "ch_none"}), "charge"),
        (lambda: client.v1.events.retrieve("evt_none"), "id"),
    ]
    for call, param in calls:
        with pytest.raises(stripe.InvalidRequestError) as refusal:
            call()
        assert refusal.value.http_status == 404
        assert (refusal.value.code, refusal.value.param) == ("resource_missing", param)


def test_calls_without_a_test_key_are_unauthorized_and_still_counted(
    sandbox: Sandbox,
    control: SandboxControl,
    connect: Callable[..., stripe.StripeClient],
    payment: Payment,
) -> None:
    stranger = connect(sandbox, api_key="sk_live_not_ours")
    with pytest.raises(stripe.AuthenticationError):
        stranger.v1.refunds.create({"charge": payment["charge"]})
    assert control.counts()["sends"] == 1
    assert control.counts()["refunds_all"] == 0
    assert control.sends()[0]["outcome"] == "unauthorized"


def test_connected_account_has_payments_of_its_own(
    sandbox: Sandbox,
    client: stripe.StripeClient,
    control: SandboxControl,
    connect: Callable[..., stripe.StripeClient],
) -> None:
    payment = control.payment(amount=700, account="acct_1")
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        client.v1.refunds.create({"charge": payment["charge"]})
    assert refusal.value.code == "resource_missing"
    theirs = connect(sandbox, stripe_account="acct_1")
    assert theirs.v1.refunds.create({"charge": payment["charge"]}).amount == 700
    assert client.v1.refunds.list().data == []
    assert len(theirs.v1.refunds.list().data) == 1
    assert [event.account for event in theirs.v1.events.list().data] == ["acct_1", "acct_1"]
    assert client.v1.events.list().data == []


def test_failed_refund_gives_its_amount_back(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    refund = client.v1.refunds.create({"charge": payment["charge"]})
    control.set_refund_status(refund.id, "failed", failure_reason="expired_or_canceled_card")
    charge = client.v1.charges.retrieve(payment["charge"])
    assert (charge.amount_refunded, charge.refunded) == (0, False)
    read = client.v1.refunds.retrieve(refund.id)
    assert (read.status, read.failure_reason) == ("failed", "expired_or_canceled_card")
    figures = control.counts()["by_payment"][payment["payment_intent"]]
    assert (figures["refunds"], figures["refunds_all"], figures["amount"]) == (0, 1, 0)


def test_sepa_refund_is_pending_with_ids_of_another_kind(
    client: stripe.StripeClient, control: SandboxControl
) -> None:
    payment = control.payment(amount=4_200, currency="eur", type="sepa_debit")
    refund = client.v1.refunds.create({"charge": payment["charge"]})
    assert payment["charge"].startswith("py_")
    assert refund.id.startswith("pyr_")
    assert (refund.status, refund.pending_reason) == ("pending", "processing")
    assert client.v1.charges.retrieve(payment["charge"]).amount_refunded == 4_200
    control.set_refund_status(refund.id, "succeeded")
    assert client.v1.refunds.retrieve(refund.id).status == "succeeded"


def test_only_a_refund_that_requires_action_can_be_canceled(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("requires_action")
    waiting = client.v1.refunds.create({"charge": payment["charge"], "amount": 400})
    done = client.v1.refunds.create({"charge": payment["charge"], "amount": 100})
    assert waiting.status == "requires_action"
    assert client.v1.refunds.cancel(waiting.id).status == "canceled"
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.refunds.cancel(done.id)
    assert client.v1.charges.retrieve(payment["charge"]).amount_refunded == 100


def test_metadata_of_a_refund_can_be_changed(client: stripe.StripeClient, payment: Payment) -> None:
    refund = client.v1.refunds.create({"charge": payment["charge"], "metadata": {"a": "1"}})
    client.v1.refunds.update(refund.id, {"metadata": {"b": "2", "a": ""}})
    assert client.v1.refunds.retrieve(refund.id).to_dict()["metadata"] == {"b": "2"}


def test_objects_are_expanded_on_request(client: stripe.StripeClient, payment: Payment) -> None:
    refund = client.v1.refunds.create(
        {"charge": payment["charge"], "expand": ["charge.payment_intent"]}
    )
    assert refund.to_dict()["charge"]["payment_intent"]["id"] == payment["payment_intent"]
    intent = client.v1.payment_intents.retrieve(
        payment["payment_intent"], {"expand": ["latest_charge.refunds"]}
    ).to_dict()
    assert intent["latest_charge"]["amount_refunded"] == 10_000
    assert intent["latest_charge"]["refunds"]["data"][0]["id"] == refund.id
    assert "refunds" not in client.v1.charges.retrieve(payment["charge"]).to_dict()


def test_counts_come_by_payment_and_by_operation(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    params: RefundCreateParams = {
        "charge": payment["charge"],
        "amount": 100,
        "metadata": {"reconcile_operation_id": "op-1"},
    }
    for key in ("a", "a", "b"):
        client.v1.refunds.create(params, {"idempotency_key": key})
    control.refund_outside(payment["payment_intent"], amount=1_000)
    counts = control.counts()
    assert counts["by_operation"]["op-1"] == {
        "refunds": 2,
        "refunds_all": 2,
        "amount": 200,
        "sends": 3,
        "keys": ["a", "b"],
    }
    assert counts["by_payment"][payment["charge"]]["amount"] == 1_200
    assert (counts["refunds"], counts["sends"], counts["events"]) == (3, 3, 6)
    assert [send["outcome"] for send in control.sends()] == ["executed", "replayed", "executed"]
    assert control.sends()[0]["headers"]["user-agent"].startswith("Stripe/v1 PythonBindings")


def test_reset_forgets_everything(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    client.v1.refunds.create({"charge": payment["charge"]})
    control.reset()
    assert control.counts()["refunds_all"] == control.counts()["sends"] == 0
    assert control.counts()["by_payment"] == {}


def test_wrong_control_calls_say_what_is_wrong(control: SandboxControl) -> None:
    with pytest.raises(ControlRefusedError, match="kind 'flood' is none of"):
        control.fault("flood")
    with pytest.raises(ControlRefusedError, match="endpoint"):
        control.fault("drop", endpoint="payouts.create")
    with pytest.raises(ControlRefusedError, match="positive integer"):
        control.payment(amount=0)
    with pytest.raises(ControlRefusedError, match="there is no refund"):
        control.set_refund_status("re_none", "failed")
    with pytest.raises(ControlRefusedError, match="times 0"):
        control.fault("drop", times=0)
    with pytest.raises(ControlRefusedError, match="duration"):
        control.fault("hang", seconds=-1)
    with pytest.raises(ControlRefusedError, match="mode 'lose' is none of"):
        control.webhook_mode("lose")
    assert control.faults() == control.webhooks()["rules"] == []
