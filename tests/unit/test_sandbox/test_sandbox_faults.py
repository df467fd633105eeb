"""Faults: what the caller sees, whether the refund exists, and what a resend gets."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import stripe

from operations.sandbox import Sandbox, SandboxControl

from .conftest import is_replay, wait_until

Payment = dict[str, str]
LOST = ["drop", "truncate", "empty_object", "empty_list", "empty_body", "redirect"]
GATEWAY = ["502_html", "503", "504"]


def refund(client: stripe.StripeClient, payment: Payment, key: str = "k") -> stripe.Refund:
    return client.v1.refunds.create(
        {
            "charge": payment["charge"],
            "amount": 100,
            "metadata": {"reconcile_operation_id": f"op-{key}"},
        },
        {"idempotency_key": key},
    )


def outcome(client: stripe.StripeClient, payment: Payment, key: str = "k") -> object:
    """The refund's id, or what came instead: a status, a class of error, or a strange body."""
    try:
        made = refund(client, payment, key)
    except stripe.APIConnectionError:
        return "connection"
    except stripe.StripeError as error:
        return error.http_status
    return made.id if isinstance(made, stripe.Refund) else made


@pytest.mark.parametrize("kind", LOST + GATEWAY)
def test_answer_lost_after_the_effect_is_replayed_to_a_resend(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, kind: str
) -> None:
    control.fault(kind, when="after")
    assert not str(outcome(client, payment)).startswith("re_")
    assert control.counts()["refunds"] == 1
    again = refund(client, payment)
    assert is_replay(again)
    assert control.counts()["by_operation"]["op-k"] == {
        "refunds": 1,
        "refunds_all": 1,
        "amount": 100,
        "sends": 2,
        "keys": ["k"],
    }


@pytest.mark.parametrize("kind", [*LOST, *GATEWAY, "401", "403", "409", "429"])
def test_send_lost_before_the_effect_does_and_saves_nothing(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, kind: str
) -> None:
    control.fault(kind)
    assert not str(outcome(client, payment)).startswith("re_")
    assert control.counts()["refunds_all"] == control.counts()["events"] == 0
    assert control.sends()[0]["outcome"] == "not_executed"
    again = refund(client, payment)
    assert not is_replay(again)
    assert control.counts()["refunds"] == 1


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("drop", "connection"),
        ("truncate", "connection"),
        ("empty_list", []),
        ("empty_body", 200),
        ("502_html", 502),
        ("503", 503),
        ("504", 504),
        ("401", 401),
        ("403", 403),
        ("409", 409),
        ("429", 429),
        ("402", 402),
        ("500", 500),
        ("refuse", 400),
    ],
)
def test_fault_is_seen_by_the_sdk_as_what_it_is(
    client: stripe.StripeClient,
    control: SandboxControl,
    payment: Payment,
    kind: str,
    seen: object,
) -> None:
    control.fault(kind)
    assert outcome(client, payment) == seen


def test_fault_is_met_as_often_as_asked_and_then_no_more(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("drop", when="after", times=2)
    assert [outcome(client, payment) for _ in range(2)] == ["connection"] * 2
    assert str(outcome(client, payment)).startswith("re_")
    assert control.faults() == []
    assert [send["faults"] for send in control.sends()] == [["drop after"]] * 2 + [[]]


def test_fault_is_met_only_by_the_calls_that_it_matches(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    other = control.payment(amount=1_000)
    control.fault("503", payment=payment["payment_intent"])
    control.fault("502_html", operation="op-b")
    control.fault("504", key="c")
    assert str(outcome(client, other, "a")).startswith("re_")
    assert outcome(client, payment, "a") == 503
    assert outcome(client, payment, "b") == 502
    assert outcome(client, payment, "c") == 504


def test_cleared_faults_are_met_by_nobody(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("drop", times=9)
    control.lag(60)
    control.clear_faults()
    assert refund(client, payment).status == "succeeded"
    assert len(client.v1.refunds.list().data) == 1


@pytest.mark.parametrize(("reset", "error"), [(True, ConnectionResetError), (False, None)])
def test_dropped_connection_ends_with_a_reset_or_an_orderly_end(
    sandbox: Sandbox, control: SandboxControl, reset: bool, error: type[OSError] | None
) -> None:
    control.fault("drop", reset=reset)
    address = urlsplit(sandbox.url)
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        connection.sendall(
            b"POST /v1/refunds HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n"
            b"Authorization: Bearer sk_test_x\r\n\r\ncharge=ch_1"
        )
        if error is None:
            assert connection.recv(1) == b""
        else:
            with pytest.raises(error):
                connection.recv(1)


def test_truncated_answer_promises_more_than_it_sends(
    sandbox: Sandbox, control: SandboxControl, payment: Payment
) -> None:
    control.fault("truncate", when="after")
    connection = http.client.HTTPConnection(urlsplit(sandbox.url).netloc, timeout=5)
    connection.request(
        "POST",
        "/v1/refunds",
        f"charge={payment['charge']}",
        {"Authorization": "Bearer sk_test_x"},
    )
    with pytest.raises(http.client.IncompleteRead) as cut:
        connection.getresponse().read()
    assert b'"object": "refund"' in cut.value.partial
    connection.close()
    assert control.counts()["refunds"] == 1


@pytest.mark.parametrize(("when", "refunds"), [("before", 0), ("after", 1)])
def test_hang_ends_without_an_answer_and_frees_the_key(
    client: stripe.StripeClient,
    control: SandboxControl,
    payment: Payment,
    when: str,
    refunds: int,
) -> None:
    control.fault("hang", when=when, seconds=9)
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(outcome, client, payment)
        held = control.wait_in_flight()
        assert (held[0]["executed"], held[0]["fault"]) == (when == "after", f"hang {when}")
        assert control.counts()["refunds"] == refunds
        resend = refund(client, payment)
        control.let_go()
        assert hanging.result() == "connection"
    assert resend.status == "succeeded"
    assert control.counts()["refunds"] == 1
    assert control.in_flight() == []


def test_hang_that_answers_executes_late_after_the_caller_has_gone(
    sandbox: Sandbox, control: SandboxControl, payment: Payment
) -> None:
    control.fault("hang", then="answer", seconds=9)
    impatient = stripe.StripeClient(
        "sk_test_x",
        max_network_retries=0,
        base_addresses={"api": sandbox.url},
        http_client=stripe.RequestsClient(timeout=0.05),
    )
    assert outcome(impatient, payment) == "connection"
    assert control.counts()["refunds"] == 0
    control.let_go()
    wait_until(lambda: control.sends()[0]["outcome"] != "in_progress")
    assert control.counts()["refunds"] == 1


def test_hanging_send_that_wakes_after_its_resend_gets_the_resends_answer(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("hang", then="answer", seconds=9)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(refund, client, payment)
        control.wait_in_flight()
        first = refund(client, payment)
        control.let_go("k")
        assert late.result().id == first.id
    assert is_replay(late.result())
    assert control.counts()["refunds"] == 1


def test_hang_and_slowness_last_as_long_as_asked(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("slow", seconds=0.1)
    started = time.monotonic()
    assert refund(client, payment).status == "succeeded"
    assert 0.1 <= time.monotonic() - started < 2


def test_refusal_carries_the_code_that_was_asked_for_and_is_saved(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("refuse", code="charge_disputed", message="No.", param="charge")
    for _ in range(2):
        with pytest.raises(stripe.InvalidRequestError) as refusal:
            refund(client, payment)
        assert (refusal.value.code, refusal.value.param) == ("charge_disputed", "charge")
    assert is_replay(refusal.value)
    assert control.counts()["refunds_all"] == 0


def test_too_little_balance_is_told_by_a_message_code(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("refuse", code="insufficient_balance_for_refund")
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        refund(client, payment)
    assert refusal.value.code is None
    assert '"message_code": "insufficient_balance_for_refund"' in str(refusal.value.http_body)


@pytest.mark.parametrize("status", ["pending", "requires_action"])
def test_refund_can_be_made_with_another_status(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment, status: str
) -> None:
    control.fault(status)
    assert refund(client, payment).status == status
    assert control.counts()["refunds"] == 1


def test_faults_of_different_groups_meet_in_one_call(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("pending")
    control.fault("drop", when="after")
    assert outcome(client, payment) == "connection"
    assert refund(client, payment).status == "pending"


def test_reads_can_fail_too(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    made = refund(client, payment)
    reads: dict[str, Callable[[], object]] = {
        "refunds.list": lambda: client.v1.refunds.list({"charge": payment["charge"]}),
        "refunds.retrieve": lambda: client.v1.refunds.retrieve(made.id),
        "charges.retrieve": lambda: client.v1.charges.retrieve(payment["charge"]),
        "payment_intents.retrieve": lambda: client.v1.payment_intents.retrieve(
            payment["payment_intent"]
        ),
    }
    for endpoint, read in reads.items():
        for kind, expected in (("500", stripe.APIError), ("drop", stripe.APIConnectionError)):
            control.fault(kind, endpoint=endpoint, payment=payment["charge"])
            with pytest.raises(expected):
                read()
        read()
    control.fault("429", endpoint="events.list")
    with pytest.raises(stripe.RateLimitError):
        client.v1.events.list()


def test_list_lags_behind_the_refund_but_the_charge_does_not(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.lag(30, payment=payment["charge"])
    made = refund(client, payment)
    assert client.v1.refunds.list({"charge": payment["charge"]}).data == []
    assert client.v1.refunds.list({"payment_intent": payment["payment_intent"]}).data == []
    assert client.v1.charges.retrieve(payment["charge"]).amount_refunded == 100
    control.advance_clock(31)
    assert [r.id for r in client.v1.refunds.list({"charge": payment["charge"]}).data] == [made.id]
    refund(client, payment, "later")
    assert len(client.v1.refunds.list({"charge": payment["charge"]}).data) == 1
    control.lag(0, payment=payment["charge"])
    assert len(client.v1.refunds.list({"charge": payment["charge"]}).data) == 2
