"""Deliveries taken without the application: in whatever pieces they come, each is answered once."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from operations.models import Account, WebhookEvent
from reconcile.asgi import _connection_parameters

from .deliveries import WEBHOOKS, event, signature
from .serving_site import serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("served")]


@pytest.fixture
def site() -> Iterator[str]:
    with serving(DIRECT) as address:
        yield address


@pytest.fixture
def client(site: str) -> Iterator[socket.socket]:
    with connected(site) as one:
        yield one


def connected(site: str) -> socket.socket:
    where = urlsplit(site)
    return socket.create_connection((str(where.hostname), int(where.port or 0)), 30)


def request(event_id: str, *, path: str = WEBHOOKS, more: str = "", version: str = "1.1") -> bytes:
    raw = json.dumps(event(event_id)).encode()
    head = (
        f"POST {path} HTTP/{version}\r\nHost: x\r\nStripe-Signature: {signature(raw)}\r\n"
        f"{more}Content-Length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw


def answers(client: socket.socket, count: int) -> list[tuple[int, dict[str, object]]]:
    """Read so many answers: status and body of each."""
    found = []
    with client.makefile("rb", buffering=0) as stream:
        for _ in range(count):
            status, length = int(stream.readline().split()[1]), 0
            while line := stream.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            body = b""
            while len(body) < length:
                body += stream.read(length - len(body)) or b""
            found.append((status, json.loads(body)))
    return found


DIRECT = "reconcile.direct:DirectProtocol"
NEW = (200, {"received": True, "new": True})
STORED_BEFORE = (200, {"received": True, "new": False})


@pytest.mark.parametrize("cut", [10, 60, 200, -1])
def test_one_that_comes_in_pieces_is_stored(client: socket.socket, cut: int) -> None:
    whole = request("evt_1")
    client.sendall(whole[:cut])
    time.sleep(0.05)  # So that the pieces are read apart.
    client.sendall(whole[cut:])
    assert answers(client, 1) == [NEW]
    client.sendall(request("evt_1"))
    assert answers(client, 1) == [STORED_BEFORE]


def test_each_byte_alone_makes_the_same_event(client: socket.socket) -> None:
    whole = request("evt_1")
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for place in range(len(whole)):
        client.sendall(whole[place : place + 1])
    assert answers(client, 1) == [NEW]
    assert WebhookEvent.objects.get().event_id == "evt_1"


def test_several_in_one_piece_are_answered_in_their_order(client: socket.socket) -> None:
    client.sendall(
        request("evt_1")
        + request("evt_2")
        + b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % WEBHOOKS.encode()
    )
    client.sendall(request("evt_1"))
    told = answers(client, 4)
    assert told[:2] == [NEW, NEW]
    assert told[2][0] == 405
    assert told[3] == STORED_BEFORE


def test_a_refusal_leaves_the_connection_to_the_next_one(client: socket.socket) -> None:
    forged = request("evt_1").replace(b"v1=", b"v1=0")
    client.sendall(forged)
    assert answers(client, 1)[0][0] == 400
    client.sendall(request("evt_2"))
    assert answers(client, 1) == [NEW]
    assert [row.event_id for row in WebhookEvent.objects.all()] == ["evt_2"]


@pytest.mark.parametrize(
    "odd",
    [
        {"version": "1.0"},
        {"more": "Connection: close\r\n"},
        {"path": f"{WEBHOOKS}?a=1"},
        {"path": WEBHOOKS.replace("stripe", "strip%65")},
    ],
    ids=str,
)
def test_what_is_not_plain_is_stored_by_the_application(
    client: socket.socket, odd: dict[str, str]
) -> None:
    client.sendall(request("evt_1", **odd))
    assert answers(client, 1) == [NEW]


def test_who_asks_whether_to_go_on_is_told(client: socket.socket) -> None:
    head, _, body = request("evt_1", more="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    client.sendall(head + b"\r\n\r\n")
    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(body)
    assert answers(client, 1) == [NEW]


def test_two_lengths_are_refused(client: socket.socket) -> None:
    client.sendall(request("evt_1", more="Content-Length: 5\r\n"))
    assert client.recv(100).startswith(b"HTTP/1.1 400")
    assert not WebhookEvent.objects.exists()


def test_an_account_in_the_address_is_looked_for_once(client: socket.socket) -> None:
    Account.objects.create(name="shop", provider_account="acct_shop", livemode=False)
    path = f"{WEBHOOKS}shop/"
    for event_id in ("evt_1", "evt_2"):
        client.sendall(request(event_id, path=path))
        assert answers(client, 1) == [NEW]
    client.sendall(request("evt_3", path=f"{WEBHOOKS}nobody/"))
    assert answers(client, 1)[0][0] == 404
    assert [row.event_account for row in WebhookEvent.objects.all()] == ["acct_shop"] * 2


def test_a_sender_that_is_gone_has_its_event_stored(site: str) -> None:
    with connected(site) as client:
        client.sendall(request("evt_1"))
    deadline = time.monotonic() + 10
    while not WebhookEvent.objects.exists():
        assert time.monotonic() < deadline


def test_a_shutdown_waits_for_what_is_being_stored() -> None:
    with psycopg.connect(**_connection_parameters()) as other:
        with serving(DIRECT) as site:
            client = connected(site)
            client.sendall(request("evt_0"))
            assert answers(client, 1) == [NEW]
            other.execute("LOCK TABLE operations_inboxitem IN SHARE MODE")
            client.sendall(request("evt_1"))
            client.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.recv(1)
            client.settimeout(30)
            threading.Timer(0.5, other.rollback).start()
        assert answers(client, 1) == [NEW]
        assert client.recv(1) == b""
        client.close()
