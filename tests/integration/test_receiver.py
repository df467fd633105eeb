"""The receiver in front of Django, over real connections: one commit for many, and none is lost."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import requests
import structlog

from operations.models import InboxItem, WebhookEvent
from operations.services.engine import default_engine
from operations.services.ingesting import Delivery, read_delivery
from operations.webhooks.writer import Connection, NotStored, Writer
from reconcile.asgi import _connect

from .deliveries import WEBHOOKS, event, signature
from .looping import run_apart
from .serving_site import serving
from .stage import SECRET, AtOnce

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("served")]


@pytest.fixture(params=["auto", "reconcile.direct:DirectProtocol"], ids=["asgi", "direct"])
def site(request: pytest.FixtureRequest) -> Iterator[str]:
    """The site in a thread, its application alone or as gunicorn serves it; its address."""
    with serving(request.param) as address:
        yield address


def post(site: str, raw: bytes, path: str = WEBHOOKS, **headers: str) -> requests.Response:
    signed = {"Stripe-Signature": signature(raw)} | headers
    return requests.post(f"{site}{path}", data=raw, headers=signed, timeout=30)


def test_deliveries_that_meet_are_each_stored_once(site: str) -> None:
    bodies = [json.dumps(event(f"evt_{number % 20}")).encode() for number in range(60)]

    answers = AtOnce([partial(post, site, raw) for raw in bodies]).results()

    assert [answer.status_code for answer in answers] == [200] * 60
    assert sum(answer.json()["new"] for answer in answers) == 20
    assert list(WebhookEvent.objects.values_list("deliveries", flat=True)) == [3] * 20
    assert InboxItem.objects.count() == 20


def test_one_that_no_column_holds_is_kept_raw_and_harms_no_other(site: str) -> None:
    poison = b'{"id": "evt_poison", "n": 0.' + b"1" * 20_000 + b"}"
    bodies = [json.dumps(event(f"evt_{number}")).encode() for number in range(8)]

    answers = AtOnce([partial(post, site, raw) for raw in [*bodies, poison]]).results()

    assert [answer.status_code for answer in answers] == [200] * 9
    kept = WebhookEvent.objects.get(event_id="evt_poison")
    assert (bytes(kept.raw), kept.payload) == (poison, {})
    assert InboxItem.objects.count() == 9


@pytest.mark.parametrize(
    ("raw", "headers", "status"),
    [
        (b"{}", {}, 400),
        (b'{"id": "evt_1"}', {"Stripe-Signature": "t=1,v1=00"}, 400),
        (b'{"id": "evt_1"}', {"Stripe-Signature": "caf\xe9"}, 400),
    ],
)
def test_what_is_not_proven_leaves_no_row(
    site: str, raw: bytes, headers: dict[str, str], status: int
) -> None:
    assert post(site, raw, **headers).status_code == status
    assert not WebhookEvent.objects.exists()


def test_addresses_of_accounts_and_other_methods_are_answered_as_by_django(site: str) -> None:
    raw = json.dumps(event()).encode()
    assert post(site, raw, f"{WEBHOOKS}acct_nowhere/").status_code == 404
    assert post(site, raw, f"{WEBHOOKS}%00/").status_code == 404
    # Decoded once, by the server: this one is called "de%66ault".
    assert post(site, raw, f"{WEBHOOKS}de%2566ault/").status_code == 404
    assert requests.get(f"{site}{WEBHOOKS}", timeout=30).status_code == 405
    assert requests.get(f"{site}/healthz", timeout=30).text == "ok\n"
    assert not WebhookEvent.objects.exists()


@pytest.mark.parametrize(
    "head", [b"Content-Length: 1048577\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"]
)
def test_too_large_a_body_is_refused_before_it_is_there(site: str, head: bytes) -> None:
    where = urlsplit(site)
    with socket.create_connection((str(where.hostname), int(where.port or 0)), 30) as client:
        client.sendall(b"POST /webhooks/stripe/ HTTP/1.1\r\nHost: x\r\n" + head)
        if b"chunked" in head:
            client.sendall(b"100000\r\n" + b"x" * 2**20 + b"\r\n2\r\nxx\r\n")
        assert client.recv(20).startswith(b"HTTP/1.1 413")


def delivery(event_id: str) -> Delivery:
    raw = json.dumps(event(event_id)).encode()
    return read_delivery(
        secrets=[SECRET],
        now=default_engine().clock(),
        raw=raw,
        signature=signature(raw),
        endpoint_account="",
    )


async def stored_by(writer: Writer, delivery: Delivery) -> bool:
    return await writer.put(delivery)


def test_while_the_store_is_down_nothing_is_acknowledged() -> None:
    async def nobody() -> Connection:
        raise psycopg.OperationalError("connection refused")

    async def store() -> list[Any]:
        writer = Writer(nobody)
        asked = [stored_by(writer, delivery(f"evt_{number}")) for number in range(5)]
        told = await asyncio.gather(*asked, return_exceptions=True)
        await writer.close()
        return told

    started = time.monotonic()
    assert [type(error) for error in run_apart(store())] == [NotStored] * 5
    assert time.monotonic() - started < 5


def test_writer_that_died_tells_who_waits_and_comes_back() -> None:
    tried = []

    async def ends_once() -> Connection:
        tried.append(1)
        if len(tried) == 1:
            raise asyncio.CancelledError
        return await _connect()

    async def store() -> tuple[list[Any], bool]:
        writer = Writer(ends_once)
        asked = [stored_by(writer, delivery(f"evt_{number % 2}")) for number in range(5)]
        told = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 10)
        await asyncio.sleep(0.6)  # It leaves a database that is down alone for half a second.
        again = await stored_by(writer, delivery("evt_0"))
        await writer.close()
        return told, again

    told, again = run_apart(store())
    assert [type(error) for error in told] == [NotStored] * 5
    assert again
    assert WebhookEvent.objects.count() == 1


def test_more_bytes_than_fit_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operations.webhooks.writer.MOST_BYTES_WAITING", 5_000)

    async def store() -> list[Any]:
        writer = Writer(_connect)
        asked = [
            stored_by(writer, replace(delivery(f"evt_{number}"), raw=b" " * 2_000))
            for number in range(5)
        ]
        told = await asyncio.gather(*asked, return_exceptions=True)
        again = await stored_by(writer, delivery("evt_9"))
        await writer.close()
        return [*told, again]

    told = run_apart(store())
    assert told[0] is told[-1] is True
    assert NotStored in [type(error) for error in told]


def test_what_could_not_be_stored_is_in_no_log() -> None:
    async def store() -> Any:
        writer = Writer(_connect)
        told = await stored_by(writer, replace(delivery("evt_0"), payload='{"secret order": }'))
        await writer.close()
        return told

    with structlog.testing.capture_logs() as logs:
        assert run_apart(store()) is True
    assert "22P02" in str(logs)
    assert "secret" not in str(logs)
