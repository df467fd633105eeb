"""What must not leave does not leave, and what leaves does so once: counted by the other side."""

from typing import Any

import pytest

from operations.providers.contracts import NO_KEYS

from .wire import reply, wire_server
from .wire_provider import KEY, MARK, error_body, provider_at, refund_body, send

WHOLE = reply(200, refund_body())


@pytest.mark.parametrize("amount", [None, 0, -1, 38.0, "3800", True, False, float("nan")])
def test_amount_that_is_none_raises_before_anything_is_sent(amount: Any) -> None:
    with wire_server(lambda server: server.says(WHOLE)) as server:
        provider = provider_at(server.url)
        with pytest.raises(ValueError, match="amount"):
            provider.refund_parameters(payment="ch_1", amount=amount, reason="", metadata={})
        with pytest.raises(ValueError, match="amount"):
            send(provider, parameters={"charge": "ch_1", "amount": amount})
    assert server.connections == 0


def test_missing_amount_raises_before_anything_is_sent() -> None:
    with (
        wire_server(lambda server: server.says(WHOLE)) as server,
        pytest.raises(ValueError, match="amount"),
    ):
        send(provider_at(server.url), parameters={"charge": "ch_1"})
    assert server.connections == 0


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_key_that_is_empty_or_too_long_raises_before_anything_is_sent(key: str) -> None:
    with (
        wire_server(lambda server: server.says(WHOLE)) as server,
        pytest.raises(ValueError, match="1 to 255"),
    ):
        send(provider_at(server.url), idempotency_key=key)
    assert server.connections == 0


def test_key_among_the_parameters_raises_before_anything_is_sent() -> None:
    parameters = {"charge": "ch_1", "amount": 3_800, "idempotency_key": KEY}
    with (
        wire_server(lambda server: server.says(WHOLE)) as server,
        pytest.raises(ValueError, match="header"),
    ):
        send(provider_at(server.url), parameters=parameters)
    assert server.connections == 0


def test_the_longest_key_is_sent_as_it_is() -> None:
    with wire_server(lambda server: server.says(WHOLE)) as server:
        send(provider_at(server.url), idempotency_key="k" * 255)
    assert server.requests[0].headers["idempotency-key"] == "k" * 255


def test_key_is_not_sent_to_a_provider_that_takes_none() -> None:
    with wire_server(lambda server: server.says(WHOLE)) as server:
        send(provider_at(server.url, contract=NO_KEYS))
    assert server.requests[0].headers.get("idempotency-key") != KEY


def test_resend_is_the_same_to_the_byte_however_the_parameters_are_ordered() -> None:
    parameters = {"charge": "ch_1", "amount": 3_800, "metadata": MARK}
    turned = {name: parameters[name] for name in reversed(parameters)}
    turned["metadata"] = dict(reversed(MARK.items()))
    with wire_server(lambda server: server.answers(WHOLE)) as server:
        provider = provider_at(server.url)
        send(provider, parameters=parameters)
        send(provider, parameters=turned)
    first, second = server.requests
    assert (first.line, first.body) == (second.line, second.body)
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == KEY


def test_connected_account_is_named_in_the_header() -> None:
    with wire_server(lambda server: server.says(WHOLE)) as server:
        send(provider_at(server.url), account="acct_1")
    assert server.requests[0].headers["stripe-account"] == "acct_1"


RETRIED_BY_THE_SDK_OTHERWISE = {
    "409": reply(409, error_body("idempotency_error", code="idempotency_key_in_use")),
    "429": reply(429, error_body(code="lock_timeout")),
    "500": reply(500, error_body("api_error")),
    "503": reply(503, error_body("api_error")),
    "told to": reply(400, error_body(), headers={"Stripe-Should-Retry": "true"}),
    "told when": reply(503, error_body("api_error"), headers={"Retry-After": "0"}),
}


@pytest.mark.parametrize("row", RETRIED_BY_THE_SDK_OTHERWISE)
def test_sdk_sends_once_whatever_the_answer(row: str) -> None:
    with wire_server(lambda server: server.answers(RETRIED_BY_THE_SDK_OTHERWISE[row])) as server:
        send(provider_at(server.url))
    assert len(server.requests) == 1


@pytest.mark.parametrize("reset", [True, False])
def test_sdk_connects_once_when_the_connection_breaks(reset: bool) -> None:
    with wire_server(lambda server: server.closes(after_reading=True, reset=reset)) as server:
        send(provider_at(server.url))
    assert (len(server.requests), server.connections) == (1, 1)
