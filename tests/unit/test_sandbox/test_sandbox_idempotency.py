"""Keys: what is saved, what is replayed, and when the same key executes again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import stripe

from operations.sandbox import Sandbox, SandboxControl

from .conftest import headers_of, is_replay, wait_until

Payment = dict[str, str]


def refund(
    client: stripe.StripeClient, payment: Payment, key: str, amount: int = 100
) -> stripe.Refund:
    return client.v1.refunds.create(
        {"charge": payment["charge"], "amount": amount}, {"idempotency_key": key}
    )


def test_same_key_gives_the_first_answer_again(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    first, second = refund(client, payment, "k"), refund(client, payment, "k")
    assert first.id == second.id
    assert (is_replay(first), is_replay(second)) == (False, True)
    assert first.to_dict() == second.to_dict()
    assert headers_of(first)["Request-Id"] != headers_of(second)["Request-Id"]
    assert headers_of(second)["Original-Request"] == headers_of(first)["Request-Id"]
    assert control.counts()["refunds"] == 1


def test_replay_shows_the_status_of_then_although_the_refund_failed_since(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.set_refund_status(refund(client, payment, "k").id, "failed")
    assert refund(client, payment, "k").status == "succeeded"


def test_same_key_with_other_parameters_is_an_idempotency_error_without_a_code(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    made = refund(client, payment, "k")
    with pytest.raises(stripe.IdempotencyError) as mismatch:
        refund(client, payment, "k", amount=101)
    assert mismatch.value.http_status == 400
    assert '"code"' not in str(mismatch.value.http_body)
    with pytest.raises(stripe.IdempotencyError):
        client.v1.refunds.update(made.id, {"metadata": {"a": "b"}}, {"idempotency_key": "k"})
    assert control.counts()["refunds"] == 1


def test_same_parameters_in_another_order_are_the_same_request(
    client: stripe.StripeClient, payment: Payment
) -> None:
    first = client.v1.refunds.create(
        {"charge": payment["charge"], "amount": 5}, {"idempotency_key": "k"}
    )
    second = client.v1.refunds.create(
        {"amount": 5, "charge": payment["charge"]}, {"idempotency_key": "k"}
    )
    assert first.id == second.id


def test_key_in_use_is_a_conflict_that_is_not_saved(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("slow", seconds=5)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(refund, client, payment, "k")
        held = control.wait_in_flight()
        with pytest.raises(stripe.APIError) as conflict:
            refund(client, payment, "k")
        control.let_go("k")
        first = running.result()
    assert (held[0]["key"], held[0]["executed"]) == ("k", False)
    assert conflict.value.http_status == 409
    assert '"code": "idempotency_key_in_use"' in str(conflict.value.http_body)
    assert refund(client, payment, "k").id == first.id
    assert control.counts()["refunds"] == 1


def test_key_stays_in_use_while_the_answer_of_a_done_refund_is_slow(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("slow", when="after", seconds=5)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(refund, client, payment, "k")
        held = control.wait_in_flight()
        assert held[0]["executed"] is True
        assert control.counts()["refunds"] == 1
        with pytest.raises(stripe.APIError, match="in-progress"):
            refund(client, payment, "k")
        control.let_go()
        assert running.result().status == "succeeded"


def test_validation_failure_is_not_saved(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.refunds.create({"amount": 100}, {"idempotency_key": "k"})
    assert refund(client, payment, "k").status == "succeeded"
    assert control.sends()[0]["outcome"] == "refused"


def test_refusal_that_needed_the_charge_is_saved(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    all_of_it = refund(client, payment, "first", amount=10_000)
    with pytest.raises(stripe.InvalidRequestError):
        refund(client, payment, "k")
    control.set_refund_status(all_of_it.id, "failed")
    with pytest.raises(stripe.InvalidRequestError) as replayed:
        refund(client, payment, "k")
    assert is_replay(replayed.value)
    assert control.counts()["refunds"] == 0


def test_rate_limit_comes_before_the_key_and_is_not_saved(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    control.fault("429", retry_after_s=7)
    with pytest.raises(stripe.RateLimitError) as limited:
        refund(client, payment, "k")
    assert headers_of(limited.value)["Retry-After"] == "7"
    assert control.counts()["refunds_all"] == 0
    assert refund(client, payment, "k").status == "succeeded"


@pytest.mark.parametrize(("when", "refunds"), [("before", 0), ("after", 1)])
def test_server_error_is_saved_whether_or_not_the_refund_was_made(
    client: stripe.StripeClient,
    control: SandboxControl,
    payment: Payment,
    when: str,
    refunds: int,
) -> None:
    control.fault("500", when=when)
    for replayed in (False, True, True):
        with pytest.raises(stripe.APIError) as error:
            refund(client, payment, "k")
        assert error.value.http_status == 500
        assert is_replay(error.value) is replayed
    assert control.counts()["refunds"] == refunds
    assert control.counts()["events"] == 2 * refunds


def test_key_executes_again_after_its_window(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    first = refund(client, payment, "k")
    control.advance_clock(86_399)
    assert refund(client, payment, "k").id == first.id
    control.advance_clock(1)
    assert refund(client, payment, "k").id != first.id
    assert control.counts()["refunds"] == 2


def test_forgotten_key_executes_again_even_with_other_parameters(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    refund(client, payment, "k")
    refund(client, payment, "other")
    assert control.expire_keys("k") == 1
    refund(client, payment, "k", amount=200)
    refund(client, payment, "other")
    assert control.counts()["amount"] == 400


def test_window_can_be_set(
    connect: Callable[..., stripe.StripeClient],
) -> None:
    with Sandbox(key_window_s=60) as sandbox:
        client, payment = connect(sandbox), sandbox.control.payment(amount=1_000)
        refund(client, payment, "k")
        sandbox.control.advance_clock(61)
        refund(client, payment, "k")
        assert sandbox.control.counts()["refunds"] == 2


def test_key_of_another_api_key_or_account_is_another_key(
    sandbox: Sandbox,
    client: stripe.StripeClient,
    control: SandboxControl,
    connect: Callable[..., stripe.StripeClient],
    payment: Payment,
) -> None:
    refund(client, payment, "k")
    refund(connect(sandbox, api_key="sk_test_other"), payment, "k")
    theirs = control.payment(amount=300, account="acct_1")
    refund(connect(sandbox, stripe_account="acct_1"), theirs, "k")
    assert control.counts()["refunds"] == 3


def test_key_longer_than_255_characters_is_refused(
    client: stripe.StripeClient, control: SandboxControl, payment: Payment
) -> None:
    refund(client, payment, "k" * 255)
    with pytest.raises(stripe.InvalidRequestError, match="255"):
        refund(client, payment, "k" * 256)
    assert control.counts()["refunds"] == 1


def test_fifty_sends_at_once_with_one_key_make_one_refund(
    sandbox: Sandbox,
    control: SandboxControl,
    connect: Callable[..., stripe.StripeClient],
    payment: Payment,
) -> None:
    control.fault("slow", seconds=5)
    start = threading.Barrier(50)
    outcomes: list[str] = []

    def send() -> None:
        client = connect(sandbox)
        start.wait()
        try:
            outcomes.append(refund(client, payment, "k").status or "")
        except stripe.APIError as error:
            outcomes.append(str(error.http_status))

    threads = [threading.Thread(target=send) for _ in range(50)]
    for thread in threads:
        thread.start()
    control.wait_in_flight()
    wait_until(lambda: len(outcomes) == 49)
    control.let_go()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["409"] * 49 + ["succeeded"]
    counts = control.counts()
    assert (counts["refunds"], counts["sends"]) == (1, 50)


def test_fifty_sends_at_once_with_keys_of_their_own_never_exceed_the_charge(
    sandbox: Sandbox,
    control: SandboxControl,
    connect: Callable[..., stripe.StripeClient],
    payment: Payment,
) -> None:
    def send(number: int) -> bool:
        try:
            return refund(connect(sandbox), payment, f"k{number}", 400).status == "succeeded"
        except stripe.InvalidRequestError:
            return False

    with ThreadPoolExecutor(50) as pool:
        assert sum(pool.map(send, range(50))) == 25
    assert control.counts()["amount"] == 10_000
