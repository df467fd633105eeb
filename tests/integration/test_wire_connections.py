"""Connections that break, stall, drip or flood: none is taken for an answer, and each one ends."""

import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from operations.providers import ReadFailed, bounded_http

from .wire import Behaviour, WireServer, reply, wire_server
from .wire_provider import (
    ACCEPTED,
    IN_DOUBT,
    LOST,
    NOT_SENT,
    UNREADABLE,
    Reading,
    check,
    check_both,
    provider_at,
    refund_body,
    send,
)

Choose = Callable[[WireServer], Behaviour]

WHOLE = reply(200, refund_body())
HEAD, _, BODY = WHOLE.partition(b"\r\n\r\n")
HALF = HEAD + b"\r\n\r\n" + BODY[: len(BODY) // 2]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#: A body without a length: only the end of the connection ends it.
OPEN_ENDED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"

ENDED: dict[str, Choose] = {
    "reset after reading": lambda server: server.closes(after_reading=True, reset=True),
    "reset before reading": lambda server: server.closes(after_reading=False, reset=True),
    "closed after reading": lambda server: server.closes(after_reading=True),
    "closed before reading": lambda server: server.closes(after_reading=False),
    "closed within the status line": lambda server: server.says(HEAD[:7]),
    "closed after half of the body": lambda server: server.says(HALF),
    "reset after half of the body": lambda server: server.closes(
        after_reading=True, reset=True, first=HALF
    ),
    "closed within a chunk": lambda server: server.says(CHUNKED + b"ff\r\n" + BODY[:9]),
    "chunk whose length is none": lambda server: server.says(CHUNKED + b"many\r\n" + BODY),
    "no HTTP at all": lambda server: server.says(b"220 mail.example ESMTP ready\r\n"),
    "head that never ends in size": lambda server: server.says(
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n"
    ),
    "more headers than anybody sends": lambda server: server.says(
        b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 200 + b"\r\n"
    ),
}


@pytest.mark.parametrize("row", ENDED)
def test_broken_connection_is_no_answer(row: str) -> None:
    with wire_server(ENDED[row]) as server:
        answer = send(provider_at(server.url))
    check_both(answer, LOST)
    assert server.connections == 1


CUT_HEADS: dict[str, tuple[int, Reading]] = {
    "200": (200, UNREADABLE),
    **{str(status): (status, IN_DOUBT) for status in (400, 401, 402, 403, 404, 409, 429, 503)},
}


@pytest.mark.parametrize("row", CUT_HEADS)
def test_status_whose_answer_was_cut_off_behind_it_says_nothing(row: str) -> None:
    status, expected = CUT_HEADS[row]
    head = reply(status, b"{}")[:40]
    with wire_server(lambda server: server.says(head)) as server:
        check_both(send(provider_at(server.url)), expected)


CONNECT_S, READ_S = 0.2, 0.3
#: What a slow machine may take on top, in seconds.
SLACK_S = 1.0

ENDLESS: dict[str, Choose] = {
    "stalls before the head": lambda server: server.stalls(),
    "stalls within the head": lambda server: server.stalls(HEAD[:20]),
    "stalls after the head": lambda server: server.stalls(HEAD + b"\r\n\r\n"),
    "stalls within the body": lambda server: server.stalls(HALF),
    "stalls within a chunk": lambda server: server.stalls(CHUNKED + b"ff\r\n"),
    "stalls after a body that only the end ends": lambda server: server.stalls(OPEN_ENDED + BODY),
    "drips within the status line": lambda server: server.drips(b"HTTP/1.1 200 ", drop=b"O"),
    "drips header after header": lambda server: server.drips(
        b"HTTP/1.1 200 OK\r\n", drop=b"X: x\r\n"
    ),
    "drips one 100 Continue after another": lambda server: server.drips(
        b"", drop=b"HTTP/1.1 100 Continue\r\n\r\n"
    ),
    "drips within the body": lambda server: server.drips(HALF),
    "drips chunk after chunk": lambda server: server.drips(CHUNKED, drop=b"1\r\n \r\n"),
    "drips into a body that only the end ends": lambda server: server.drips(OPEN_ENDED),
}


@pytest.mark.parametrize("row", ENDLESS)
def test_endless_answer_is_given_up_within_the_time_for_one_send(row: str) -> None:
    started = time.monotonic()
    with wire_server(ENDLESS[row]) as server:
        answer = send(provider_at(server.url, connect_s=CONNECT_S, read_s=READ_S))
        took_s = time.monotonic() - started
    check_both(answer, LOST)
    assert len(server.requests) == 1
    assert READ_S <= took_s < CONNECT_S + READ_S + SLACK_S


def test_slow_answer_that_ends_in_time_is_taken() -> None:
    def in_parts(server: WireServer) -> Behaviour:
        def behave(sock: socket.socket) -> None:
            server.read(sock)
            for start in range(0, len(WHOLE), 100):
                sock.sendall(WHOLE[start : start + 100])
                server.pause(0.05)

        return behave

    with wire_server(in_parts) as server:
        check(send(provider_at(server.url)), ACCEPTED, resend=False)


@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
        OPEN_ENDED,
        CHUNKED + b"ffffffffff\r\n",
    ],
    ids=["claimed length", "no length", "one chunk"],
)
def test_flood_is_cut_off_at_the_largest_answer(
    first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "LARGEST_ANSWER", 2**20)
    with wire_server(lambda server: server.floods(first)) as server:
        started = time.monotonic()
        answer = send(provider_at(server.url, connect_s=5, read_s=25))
        assert time.monotonic() - started < 5
    check(answer, LOST, resend=False)
    assert "larger" in answer.message


def test_read_is_bounded_like_a_send() -> None:
    with wire_server(lambda server: server.drips(HALF)) as server:
        provider = provider_at(server.url, connect_s=CONNECT_S, read_s=READ_S)
        started = time.monotonic()
        with pytest.raises(ReadFailed):
            provider.read_refund(refund_id="re_1", account="")
        assert time.monotonic() - started < CONNECT_S + READ_S + SLACK_S


def test_refused_connection_sent_nothing() -> None:
    with wire_server(lambda server: server.says(WHOLE)) as server:
        gone = server.url
    check_both(send(provider_at(gone)), NOT_SENT)
    assert server.connections == 0


def test_host_that_has_no_address_was_sent_nothing() -> None:
    check_both(send(provider_at("http://nowhere.invalid")), NOT_SENT)


def test_connection_that_is_never_taken_was_sent_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        # A full queue of connections that nobody takes answers no further one.
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        time.sleep(0.05)
        answer = send(
            provider_at(f"http://127.0.0.1:{full.getsockname()[1]}", connect_s=0.2, read_s=2)
        )
        for filler in fillers:
            filler.close()
    check(answer, NOT_SENT, resend=False)


def test_connection_that_is_made_too_late_is_closed_unused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve = socket.getaddrinfo

    def slowly(*args: object, **options: object) -> object:
        time.sleep(0.4)
        return resolve(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    with wire_server(lambda server: server.says(WHOLE)) as server:
        answer = send(provider_at(server.url, connect_s=0.1, read_s=0.1))
    check(answer, NOT_SENT, resend=False)
    assert server.requests == []


def through_proxy(monkeypatch: pytest.MonkeyPatch, proxy: str, *, secure: bool = False) -> None:
    """Let the process reach everything through a proxy, as its environment says."""
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY" if secure else "HTTP_PROXY", proxy)
    monkeypatch.setenv("https_proxy" if secure else "http_proxy", proxy)


PROXIES: dict[str, tuple[str, Choose, Reading]] = {
    "passes on": ("http", lambda server: server.says(WHOLE), ACCEPTED),
    "closes": ("http", lambda server: server.closes(after_reading=True), LOST),
    "page of its own": ("http", lambda server: server.says(reply(502, b"<html>")), IN_DOUBT),
    "forbids with a page": ("http", lambda server: server.says(reply(403, b"<html>")), IN_DOUBT),
    "refuses the tunnel": ("https", lambda server: server.says(reply(502, b"")), LOST),
    "closes the tunnel": ("https", lambda server: server.closes(after_reading=True), LOST),
}


@pytest.mark.parametrize("row", PROXIES)
def test_proxy_in_between_never_proves_that_nothing_was_sent(
    row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheme, choose, expected = PROXIES[row]
    with wire_server(choose) as proxy:
        through_proxy(monkeypatch, proxy.url, secure=scheme == "https")
        answer = send(provider_at(f"{scheme}://provider.invalid"))
    check_both(answer, expected)
    assert proxy.connections == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxy_that_refuses_the_connection_proves_nothing_either(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wire_server(lambda server: server.says(WHOLE)) as proxy:
        gone = proxy.url
    through_proxy(monkeypatch, gone, secure=scheme == "https")
    check(send(provider_at(f"{scheme}://provider.invalid")), LOST, resend=False)


def test_proxy_that_drips_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with wire_server(
        lambda server: server.drips(b"HTTP/1.1 200 OK\r\n", drop=b"X: x\r\n")
    ) as proxy:
        through_proxy(monkeypatch, proxy.url, secure=True)
        started = time.monotonic()
        provider = provider_at("https://provider.invalid", connect_s=CONNECT_S, read_s=READ_S)
        check(send(provider), LOST, resend=False)
        assert time.monotonic() - started < CONNECT_S + READ_S + SLACK_S


def test_kept_connection_that_went_away_meanwhile_is_no_answer_and_no_second_send() -> None:
    def one_each(server: WireServer) -> Behaviour:
        def behave(sock: socket.socket) -> None:
            server.read(sock)
            sock.sendall(WHOLE)
            server.read(sock)  # The second request is read, and the connection closed.

        return behave

    with wire_server(one_each) as server:
        provider = provider_at(server.url)
        check(send(provider), ACCEPTED, resend=False)
        check(send(provider), LOST, resend=True)
    assert (len(server.requests), server.connections) == (2, 1)


def test_soft_time_limit_of_a_job_inside_the_send_is_indeterminate() -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise SoftTimeLimitExceeded

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with wire_server(lambda server: server.stalls()) as server:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            answer = send(provider_at(server.url))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    check(answer, LOST, resend=False)
    assert len(server.requests) == 1
