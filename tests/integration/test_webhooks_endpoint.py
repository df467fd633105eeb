"""The endpoint: what is authentic is stored once, everything else leaves no row."""

import http.client
import json
import time
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from operations.models import WebhookEvent
from operations.services.draining import handle_next_event

from .deliveries import WEBHOOKS, deliver, event, signature
from .inboxes import handled, waiting
from .stage import OLD_SECRET, SECRET, AtOnce, Stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("served")]

RAW = json.dumps(event()).encode()


def tampered() -> str:
    return signature(RAW.replace(b"100", b"999"))


HEADERS: dict[str, Any] = {
    "none": lambda: "",
    "nonsense": lambda: "nonsense",
    "of other bytes": tampered,
    "by another secret": lambda: signature(RAW, secret="whsec_of_somebody_else"),
    "by an empty secret": lambda: signature(RAW, secret=""),
    "stale": lambda: signature(RAW, at=time.time() - 400),
    "from the future": lambda: signature(RAW, at=time.time() + 400),
    "not ASCII": lambda: signature(RAW) + ",v1=caf\xe9",
    "of digits that are not ASCII": lambda: signature(RAW).replace("t=1", "t=\u0661", 1),
    "without a time": lambda: signature(RAW).partition(",")[2],
    "without a signature": lambda: signature(RAW).partition(",")[0],
    "with an empty signature": lambda: signature(RAW).partition("v1=")[0] + "v1=",
    "of an old scheme": lambda: signature(RAW).replace("v1=", "v0="),
    "with two times": lambda: "t=1," + signature(RAW),
    "with a time that is no number": lambda: signature(RAW).replace("t=", "t=x"),
    "with a negative time": lambda: signature(RAW).replace("t=", "t=-"),
    "with a time of many digits": lambda: signature(RAW).replace("t=", "t=" + "9" * 400),
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_delivery_that_is_not_proven_is_refused_and_leaves_no_row(header: Any) -> None:
    response = deliver(RAW, header=header())

    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"
    assert WebhookEvent.objects.count() == 0


def test_delivery_without_the_header_is_refused() -> None:
    response = Client().post(WEBHOOKS, RAW, content_type="application/json")

    assert response.status_code == 400
    assert WebhookEvent.objects.count() == 0


@pytest.mark.parametrize("away_s", [-290, 0, 290])
def test_clocks_may_differ_by_five_minutes(away_s: int) -> None:
    assert deliver(RAW, header=signature(RAW, at=time.time() + away_s)).status_code == 200
    assert WebhookEvent.objects.count() == 1


@pytest.mark.parametrize(
    "header",
    [
        lambda: signature(RAW, secret=OLD_SECRET),
        lambda: signature(RAW, secret=SECRET),
        lambda: signature(RAW, secret="whsec_gone") + "," + signature(RAW).partition(",")[2],
    ],
    ids=["the old one", "the new one", "the second of two"],
)
def test_every_configured_secret_is_tried(header: Any) -> None:
    assert deliver(RAW, header=header()).status_code == 200
    assert WebhookEvent.objects.count() == 1


def test_what_is_stored_is_what_was_sent() -> None:
    assert deliver(RAW).json() == {"received": True, "new": True}

    row = WebhookEvent.objects.get()
    assert bytes(row.raw) == RAW
    assert row.payload == json.loads(RAW)
    assert (row.event_id, row.event_type, row.livemode) == ("evt_1", "refund.created", False)
    assert (row.deliveries, waiting().attempts) == (1, 0)


def test_second_delivery_is_counted_and_is_no_second_row() -> None:
    deliver(RAW)

    assert deliver(RAW).json() == {"received": True, "new": False}
    assert deliver(RAW).json() == {"received": True, "new": False}

    row = WebhookEvent.objects.get()
    assert row.deliveries == 3
    assert row.last_received_at > row.received_at


def test_one_event_id_on_two_accounts_is_two_events() -> None:
    deliver(event(account="acct_1"))
    deliver(event(account="acct_2"))

    assert WebhookEvent.objects.count() == 2


def nested(depth: int) -> bytes:
    return b'{"id": "evt_1", "deep": ' + b"[" * depth + b"]" * depth + b"}"


REFUSED: dict[str, bytes] = {
    "a list": b"[]",
    "a text": b'"evt_1"',
    "null": b"null",
    "nothing": b"",
    "not JSON": b"id=evt_1",
    "cut off": RAW[:-1],
    "not UTF-8": b'{"id": "evt_\xff"}',
    "no id": b"{}",
    "an id that is no text": b'{"id": 1}',
    "an empty id": b'{"id": ""}',
    "a long id": json.dumps({"id": "e" * 256}).encode(),
    "nested past reading": nested(200_000),
    "too many digits": b'{"id": "evt_1", "n": ' + b"9" * 5_000 + b"}",
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED.keys())
def test_signed_body_that_is_no_event_is_refused_and_leaves_no_row(raw: bytes) -> None:
    response = deliver(raw)

    assert response.status_code == 400
    assert WebhookEvent.objects.count() == 0


HOSTILE: dict[str, bytes] = {
    "NUL in a text": rb'{"id": "evt_1", "type": "refund.created", "note": "a\u0000b"}',
    "NUL in a name": rb'{"id": "evt_1", "a\u0000b": 1}',
    "NUL in the id": rb'{"id": "evt_\u0000", "type": "refund.created"}',
    "NUL in the type": rb'{"id": "evt_1", "type": "refund.\u0000"}',
    "NUL in the account": rb'{"id": "evt_1", "account": "acct_\u0000"}',
    "half a character": rb'{"id": "evt_1", "note": "\ud800"}',
    "half a character in a name": rb'{"id": "evt_1", "\udfff": 1}',
    "half a character in the id": rb'{"id": "evt_\ud800"}',
    "half a character in the type": rb'{"id": "evt_1", "type": "\ud800"}',
    "two halves in the wrong order": rb'{"id": "evt_1", "note": "\udc00\ud800"}',
    "a whole character of two halves": rb'{"id": "evt_1", "note": "\ud83d\ude00"}',
    "not a number": b'{"id": "evt_1", "n": NaN}',
    "infinite": b'{"id": "evt_1", "n": -Infinity, "m": 1e999}',
    "large numbers": b'{"id": "evt_1", "n": ' + b"9" * 4_000 + b', "m": 1e308}',
    "a long type": json.dumps({"id": "evt_1", "type": "t" * 1_000}).encode(),
    "a long account": json.dumps({"id": "evt_1", "account": "a" * 1_000}).encode(),
    "odd fields": b'{"id": "evt_1", "type": 1, "account": [], "created": "x", "livemode": 3}',
    "a time far away": b'{"id": "evt_1", "created": 99999999999999}',
    "odd data": b'{"id": "evt_1", "type": "refund.created", "data": [[]], "request": 7}',
    "one name twice": b'{"id": "evt_0", "id": "evt_1"}',
    "nested a little": nested(50),
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())
def test_signed_event_of_any_content_is_stored_and_handled(raw: bytes, served: Stage) -> None:
    response = deliver(raw)

    assert response.status_code == 200, response.content
    assert bytes(WebhookEvent.objects.get().raw) == raw
    assert handle_next_event(engine=served.engine) is True
    event_id = WebhookEvent.objects.get().event_id
    assert (handled(event_id).attempts, handled(event_id).error) == (1, "")


@pytest.mark.parametrize("depth", [150, 300, 450, 600, 900, 1_500, 5_000])
def test_deep_nesting_is_stored_or_refused(depth: int) -> None:
    response = deliver(nested(depth))

    assert response.status_code in (200, 400)
    assert WebhookEvent.objects.count() == (response.status_code == 200)


ODD_REFUNDS: dict[str, dict[str, Any]] = {
    "amount of many digits": {"amount": 10**30},
    "negative amount": {"amount": -100},
    "amount as a fraction": {"amount": 1.5},
    "long id": {"id": "re_" + "1" * 400},
    "id of half a character": {"id": "re_\ud800"},
    "long charge": {"charge": "ch_" + "1" * 400},
    "long currency": {"currency": "dollars"},
    "no currency": {"currency": None},
    "long status": {"status": "s" * 400},
    "status that is no text": {"status": 7},
    "made in a far year": {"created": 10**15},
    "made before time": {"created": -5},
    "metadata as a list": {"metadata": []},
    "metadata of odd values": {"metadata": {"a": None, "b": {"c": 1}, "d": ["\x00"]}},
    "our mark as nonsense": {"metadata": {"reconcile_operation_id": "nonsense"}},
    "our mark as a list": {"metadata": {"reconcile_operation_id": ["x"]}},
    "expanded charge": {"charge": {"id": "ch_1", "object": "charge"}},
}


@pytest.mark.parametrize("changes", ODD_REFUNDS.values(), ids=ODD_REFUNDS.keys())
def test_odd_refund_of_somebody_else_is_handled_without_an_error(
    changes: dict[str, Any], served: Stage
) -> None:
    served.ask_for_the_account()
    odd = event()
    odd["data"]["object"] |= changes

    assert deliver(odd).status_code == 200
    handle_next_event(engine=served.engine)

    assert (handled().attempts, handled().error) == (1, "")


def test_body_above_a_mebibyte_is_refused() -> None:
    raw = json.dumps(event(note="n" * 2**20)).encode()

    response = deliver(raw)

    assert response.status_code == 413
    assert WebhookEvent.objects.count() == 0


def test_large_body_is_stored() -> None:
    raw = json.dumps(event(note="n" * (2**20 - 1_000))).encode()

    assert deliver(raw).status_code == 200
    assert len(WebhookEvent.objects.get().raw) == len(raw)


@pytest.mark.parametrize("method", ["get", "head", "put", "delete", "patch"])
def test_only_posts_are_taken(method: str) -> None:
    assert getattr(Client(), method)(WEBHOOKS).status_code == 405


def test_address_of_an_account_that_is_not_there_is_not_found() -> None:
    assert deliver(RAW, path=f"{WEBHOOKS}acct_nowhere/").status_code == 404
    assert WebhookEvent.objects.count() == 0


@pytest.mark.parametrize("name", ["%00", "a%0Ab", "%F0%9F%92%A9", "a" * 300])
def test_odd_account_in_the_address_is_not_found(name: str) -> None:
    assert deliver(RAW, path=f"{WEBHOOKS}{name}/").status_code in (400, 404)
    assert WebhookEvent.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_deliveries_at_the_same_moment_are_one_row(live_server: Any) -> None:
    where = urlsplit(str(live_server))
    headers = {"Stripe-Signature": signature(RAW), "Content-Type": "application/json"}

    def post() -> tuple[int, Any]:
        connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
        try:
            connection.request("POST", WEBHOOKS, RAW, headers)
            answer = connection.getresponse()
            return answer.status, json.load(answer)["new"]
        finally:
            connection.close()

    results = AtOnce([partial(post)] * 6).results()

    assert sorted(results) == [(200, False)] * 5 + [(200, True)]
    assert WebhookEvent.objects.get().deliveries == 6
