"""TLS that is bad or late: whatever breaks in it, nobody can say that nothing was sent."""

import time

import pytest
import stripe

from .wire import CERTIFICATE, reply, wire_server
from .wire_provider import ACCEPTED, LOST, check_both, provider_at, refund_body, send

WHOLE = reply(200, refund_body())


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the server's certificate, as that of a provider is."""
    monkeypatch.setattr(stripe, "ca_bundle_path", str(CERTIFICATE))


def test_certificate_that_nobody_signed_is_not_trusted() -> None:
    with wire_server(lambda server: server.says(WHOLE), tls=True) as server:
        answer = send(provider_at(server.url))
    check_both(answer, LOST)
    assert server.requests == []


def test_plain_text_where_tls_was_expected() -> None:
    with wire_server(lambda server: server.closes(after_reading=False, first=WHOLE)) as server:
        answer = send(provider_at(server.url.replace("http:", "https:")))
    check_both(answer, LOST)
    assert server.requests == []


def test_handshake_that_stalls_is_given_up_in_time() -> None:
    with wire_server(lambda server: server.never_speaks_tls()) as server:
        started = time.monotonic()
        url = server.url.replace("http:", "https:")
        answer = send(provider_at(url, connect_s=0.2, read_s=0.3))
        assert time.monotonic() - started < 1.5
    check_both(answer, LOST)


@pytest.mark.usefixtures("trusted")
def test_refund_behind_a_trusted_certificate_is_accepted() -> None:
    with wire_server(lambda server: server.answers(WHOLE), tls=True) as server:
        provider = provider_at(server.url)
        check_both(send(provider), ACCEPTED)
        check_both(send(provider), ACCEPTED)
    assert (len(server.requests), server.connections) == (2, 1)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\n", WHOLE[:-9]])
def test_answer_that_drips_through_tls_is_given_up_in_time(first: bytes) -> None:
    drop = b" " if first.startswith(WHOLE[:20]) else b"X: x\r\n" if first else b"H"
    with wire_server(
        lambda server: server.drips(first, drop=drop, every_s=0.1), tls=True
    ) as server:
        started = time.monotonic()
        answer = send(provider_at(server.url, connect_s=0.3, read_s=0.3))
        assert time.monotonic() - started < 1.6
    check_both(answer, LOST)
    assert len(server.requests) == 1


@pytest.mark.usefixtures("trusted")
def test_connection_cut_without_a_closing_word_of_tls() -> None:
    behaviour = WHOLE[:-9]
    with wire_server(
        lambda server: server.closes(after_reading=True, reset=True, first=behaviour), tls=True
    ) as server:
        check_both(send(provider_at(server.url)), LOST)
