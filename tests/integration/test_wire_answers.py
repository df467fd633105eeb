"""Answers that come whole, over a real socket and the real SDK: what each is read as.

Every line of the table of classification whose answer arrives is a row here, as the answer to a
first send and as the answer to a resend.
"""

from typing import Any

import pytest

from operations.domain.classify import Outcome
from operations.domain.refund_state import fact_of

from .wire import reply, wire_server
from .wire_provider import (
    ACCEPTED,
    CONFIGURATION,
    FROZEN,
    IN_DOUBT,
    LOST,
    MISMATCH,
    REFUSED,
    REFUSED_FOR_GOOD,
    TURNED_AWAY,
    UNREADABLE,
    UNSAFE,
    Reading,
    check,
    check_both,
    error_body,
    provider_at,
    read,
    refund_body,
    send,
)

HTML = b"<html><head><title>Bad Gateway</title></head><body>Bad Gateway</body></html>"
REPLAY = {"Idempotent-Replayed": "true"}
NESTED = b"[" * 100_000

Row = tuple[bytes, Reading]


def page(status: int) -> bytes:
    return reply(status, HTML, headers={"Content-Type": "text/html"})


ROWS: dict[str, Row] = {
    # 2xx with the refund
    "succeeded": (reply(200, refund_body()), ACCEPTED),
    "pending": (reply(200, refund_body(status="pending")), ACCEPTED),
    "failed": (reply(200, refund_body(status="failed")), ACCEPTED),
    "201": (reply(201, refund_body()), ACCEPTED),
    "replayed": (reply(200, refund_body(), headers=REPLAY), ACCEPTED),
    "no metadata": (reply(200, refund_body(metadata=None)), ACCEPTED),
    "metadata that is a list": (reply(200, refund_body(metadata=[])), ACCEPTED),
    "another prefix": (reply(200, refund_body(id="pyr_1")), ACCEPTED),
    "only the charge": (reply(200, refund_body(payment_intent=None)), ACCEPTED),
    "expanded charge": (reply(200, refund_body(charge={"id": "ch_1"})), ACCEPTED),
    "status nobody knows": (reply(200, refund_body(status="on_hold")), ACCEPTED),
    "no status": (reply(200, refund_body(status=None)), ACCEPTED),
    # 2xx that is not the refund that was asked for
    "another amount": (reply(200, refund_body(amount=3_801)), MISMATCH),
    "another currency": (reply(200, refund_body(currency="eur")), MISMATCH),
    "another charge": (reply(200, refund_body(charge="ch_2")), MISMATCH),
    "another payment intent": (reply(200, refund_body(payment_intent="pi_2")), MISMATCH),
    "another operation's mark": (
        reply(200, refund_body(metadata={"reconcile_operation_id": "0" * 32})),
        MISMATCH,
    ),
    # 2xx that is no refund
    "no payment at all": (
        reply(200, refund_body(charge=None, payment_intent=None)),
        Reading(kind=ACCEPTED.kind, outcome=Outcome.INDETERMINATE, doubt=UNREADABLE.doubt),
    ),
    "no currency": (
        reply(200, refund_body(currency=None)),
        Reading(kind=ACCEPTED.kind, outcome=Outcome.INDETERMINATE, doubt=UNREADABLE.doubt),
    ),
    "no id": (reply(200, refund_body(id=None)), UNREADABLE),
    "no amount": (reply(200, refund_body(amount=None)), UNREADABLE),
    "amount as text": (reply(200, refund_body(amount="3800")), UNREADABLE),
    "amount as a fraction": (reply(200, refund_body(amount=3800.0)), UNREADABLE),
    "amount that is no number": (
        reply(200, b'{"id": "re_1", "object": "refund", "amount": NaN}'),
        UNREADABLE,
    ),
    "another object": (reply(200, {"id": "ch_1", "object": "charge"}), UNREADABLE),
    "list of refunds": (
        reply(200, {"object": "list", "data": [refund_body()], "has_more": False}),
        UNREADABLE,
    ),
    "refund in an array": (reply(200, [refund_body()]), UNREADABLE),
    "{}": (reply(200, {}), UNREADABLE),
    "[]": (reply(200, []), UNREADABLE),
    "null": (reply(200, b"null"), UNREADABLE),
    "a number": (reply(200, b"17"), UNREADABLE),
    "a text": (reply(200, b'"succeeded"'), UNREADABLE),
    "empty body": (reply(200, b""), UNREADABLE),
    "204": (reply(204), UNREADABLE),
    "half of the JSON": (reply(200, b'{"id": "re_1", "object": "ref'), UNREADABLE),
    "page with 200": (page(200), UNREADABLE),
    "bytes that are no text": (reply(200, b"\xff\xfe\x00{"), UNREADABLE),
    "nested too deep": (reply(200, NESTED), UNREADABLE),
    "an error with 200": (reply(200, error_body("api_error")), UNREADABLE),
    "compressed although nobody asked": (
        reply(200, b"\x1f\x8b\x08\x00", headers={"Content-Encoding": "gzip"}),
        LOST,
    ),
    # Refusals
    "400": (reply(400, error_body()), REFUSED),
    "400 replayed": (reply(400, error_body(), headers=REPLAY), REFUSED_FOR_GOOD),
    "400 charge_disputed": (reply(400, error_body(code="charge_disputed")), REFUSED),
    "400 refund_disputed_payment": (
        reply(400, error_body(code="refund_disputed_payment")),
        REFUSED,
    ),
    "400 charge_not_refundable": (reply(400, error_body(code="charge_not_refundable")), REFUSED),
    "400 amount too large, without a code": (reply(400, error_body(param="amount")), REFUSED),
    "400 too little balance": (
        reply(400, error_body(message_code="insufficient_balance_for_refund")),
        REFUSED,
    ),
    "402": (reply(402, error_body("card_error")), REFUSED),
    "402 of another type": (reply(402, error_body("invalid_request_error")), REFUSED),
    "404": (reply(404, error_body()), REFUSED),
    "charge_already_refunded": (reply(400, error_body(code="charge_already_refunded")), UNSAFE),
    "400 idempotency_error": (reply(400, error_body("idempotency_error")), UNSAFE),
    # Nothing was executed by this send
    "401": (reply(401, error_body()), CONFIGURATION),
    "403": (reply(403, error_body()), CONFIGURATION),
    "404 resource_missing": (reply(404, error_body(code="resource_missing")), CONFIGURATION),
    "409": (
        reply(409, error_body("idempotency_error", code="idempotency_key_in_use")),
        TURNED_AWAY,
    ),
    "429": (reply(429, error_body(code="rate_limit")), TURNED_AWAY),
    "429 lock_timeout": (reply(429, error_body(code="lock_timeout")), TURNED_AWAY),
    # It may have been executed
    "424": (reply(424, error_body("api_error")), IN_DOUBT),
    "500": (reply(500, error_body("api_error")), FROZEN),
    "500 replayed": (reply(500, error_body("api_error"), headers=REPLAY), FROZEN),
    "500 as a page": (page(500), FROZEN),
    "500 without a body": (reply(500), FROZEN),
    **{f"{status} as a page": (page(status), IN_DOUBT) for status in (400, 401, 402, 403, 404)},
    **{f"{status} as a page": (page(status), IN_DOUBT) for status in (409, 429, 502, 503, 504)},
    **{
        f"{status} with an error": (reply(status, error_body("api_error")), IN_DOUBT)
        for status in (418, 502, 503, 504, 520)
    },
    "503 without a body": (reply(503), IN_DOUBT),
    "an error that is a text": (reply(400, {"error": "invalid_request"}), IN_DOUBT),
    "status that is no status": (reply(999, error_body()), IN_DOUBT),
    "103": (reply(103, refund_body()), IN_DOUBT),
    "304": (reply(304), UNREADABLE),
    "302 to nowhere": (reply(302), UNREADABLE),
}


@pytest.mark.parametrize("row", ROWS)
def test_answer_is_read_as_the_table_says(row: str) -> None:
    raw, expected = ROWS[row]
    with wire_server(lambda server: server.says(raw)) as server:
        answer = send(provider_at(server.url))
    check_both(answer, expected)
    assert len(server.requests) == server.connections == 1


@pytest.mark.parametrize("status", ["on_hold", ""])
def test_status_nobody_knows_is_kept_and_settles_nothing(status: str) -> None:
    raw = reply(200, refund_body(status=status))
    with wire_server(lambda server: server.says(raw)) as server:
        reading = read(send(provider_at(server.url)), resend=False)
    assert reading.refund is not None
    assert (reading.refund.status, fact_of(reading.refund.status)) == (status, None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_never_followed_with_the_key(status: int) -> None:
    with (
        wire_server(lambda other: other.says(reply(200, refund_body()))) as other,
        wire_server(
            lambda server: server.says(
                reply(status, headers={"Location": f"{other.url}/v1/refunds"})
            )
        ) as server,
    ):
        answer = send(provider_at(server.url))
    check_both(answer, UNREADABLE)
    assert (len(server.requests), other.connections) == (1, 0)


def test_redirect_to_the_same_server_is_not_followed_either() -> None:
    raw = reply(307, headers={"Location": "/v1/refunds"})
    with wire_server(lambda server: server.answers(raw)) as server:
        check(send(provider_at(server.url)), UNREADABLE, resend=False)
    assert len(server.requests) == 1


def test_notice_of_the_provider_does_not_hide_the_answer_where_warnings_are_errors() -> None:
    raw = reply(200, refund_body(), headers={"Stripe-Notice": "This version ends soon."})
    with wire_server(lambda server: server.says(raw)) as server:
        check(send(provider_at(server.url)), ACCEPTED, resend=False)


def test_answer_after_a_100_continue_is_the_answer() -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + reply(200, refund_body())
    with wire_server(lambda server: server.says(raw)) as server:
        check(send(provider_at(server.url)), ACCEPTED, resend=False)


def test_answer_in_chunks_is_put_together() -> None:
    body = reply(200, refund_body()).partition(b"\r\n\r\n")[2]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:]))
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    with wire_server(lambda server: server.says(raw)) as server:
        check(send(provider_at(server.url)), ACCEPTED, resend=False)


def headers_read(*headers: tuple[str, str], status: int = 503) -> Any:
    """The answer to a send with these headers."""
    body = refund_body() if status == 200 else error_body("api_error")
    raw = reply(status, body, headers=list(headers))
    with wire_server(lambda server: server.says(raw)) as server:
        return send(provider_at(server.url))


DATE = ("Date", "Mon, 02 Mar 2026 12:00:00 GMT")


@pytest.mark.parametrize(
    ("headers", "pause_s"),
    [
        ([("Retry-After", "7")], 7.0),
        ([("Retry-After", "0.5")], 0.5),
        ([("Retry-After", "7200")], 7_200.0),
        ([("Retry-After", "1e99")], 30 * 86_400.0),
        ([("Retry-After", "-3")], None),
        ([("Retry-After", "nan")], None),
        ([("Retry-After", "soon")], None),
        ([("Retry-After", "2"), ("Retry-After", "9")], None),
        ([DATE, ("Retry-After", "Mon, 02 Mar 2026 12:01:30 GMT")], 90.0),
        ([DATE, ("Retry-After", "Mon, 02 Mar 2026 11:00:00 GMT")], 0.0),
        ([("Retry-After", "Mon, 02 Mar 2026 12:01:30 GMT")], None),
        ([], None),
    ],
)
def test_pause_that_the_provider_asks_for_is_read(
    headers: list[tuple[str, str]], pause_s: float | None
) -> None:
    assert headers_read(*headers).retry_after_s == pause_s


@pytest.mark.parametrize(
    ("headers", "word"),
    [
        ([("Stripe-Should-Retry", "true")], True),
        ([("stripe-should-retry", "false")], False),
        ([("Stripe-Should-Retry", "perhaps")], None),
        ([("Stripe-Should-Retry", "true"), ("Stripe-Should-Retry", "false")], None),
        ([], None),
    ],
)
def test_word_of_the_provider_on_repeating_is_read(
    headers: list[tuple[str, str]], word: bool | None
) -> None:
    assert headers_read(*headers).should_retry is word


def test_header_that_comes_twice_marks_no_replay() -> None:
    replayed = ("Idempotent-Replayed", "true")
    assert headers_read(replayed).replayed
    assert not headers_read(replayed, ("Idempotent-Replayed", "false")).replayed
