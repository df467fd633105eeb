"""Webhooks: the signature on the raw bytes, and what an event says in any version."""

import hashlib
import hmac
import json
from typing import Any

import pytest
import stripe
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from operations.providers.stripe_events import (
    SignatureRefused,
    UnreadableEvent,
    event_facts,
    parse_json,
    verify_signature,
)

from .test_stripe_objects import JSON, REFUND

NOW = 1_772_366_400
SECRET, OTHER = "whsec_one", "whsec_two"
BODY = b'{"id": "evt_1", "note": "\xc3\xa4"}'


def _v1(raw: bytes = BODY, *, at: int = NOW, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), b"%d." % at + raw, hashlib.sha256).hexdigest()


def _verify(header: str, *, raw: bytes = BODY, secrets: tuple[str, ...] = (SECRET,)) -> None:
    verify_signature(raw=raw, header=header, secrets=secrets, now=float(NOW))


VALID = {
    "one": f"t={NOW},v1={_v1()}",
    "another beside it": f"t={NOW},v1={_v1(secret=OTHER)},v1={_v1()}",
    "an old scheme beside it": f"t={NOW},v0=abc,v1={_v1()}",
    "the oldest that is taken": f"t={NOW - 300},v1={_v1(at=NOW - 300)}",
}


@pytest.mark.parametrize("name", VALID)
def test_what_stripes_own_code_takes_we_take(name: str) -> None:
    _verify(VALID[name])
    with time_machine.travel(NOW, tick=False):
        assert stripe.WebhookSignature.verify_header(BODY.decode(), VALID[name], SECRET, 300)


@given(raw=st.binary(max_size=200), secret=st.text(min_size=1, max_size=20))
def test_any_bytes_can_be_signed(raw: bytes, secret: str) -> None:
    secret = secret.encode("utf-8", "replace").decode()
    header = f"t={NOW},v1={_v1(raw, secret=secret)}"
    _verify(header, raw=raw, secrets=(OTHER, secret))
    with pytest.raises(SignatureRefused):
        _verify(header, raw=raw + b" ", secrets=(secret,))


@pytest.mark.parametrize("secrets", [(SECRET,), (OTHER, SECRET), (SECRET, OTHER)])
def test_each_secret_is_tried(secrets: tuple[str, ...]) -> None:
    _verify(VALID["one"], secrets=secrets)


def test_blanks_around_the_parts_are_no_reason_to_refuse() -> None:
    _verify(f" t={NOW} , v1={_v1()} ")


@pytest.mark.parametrize(
    "header",
    [
        "",
        ",",
        "=",
        "t",
        f"t={NOW}",
        f"v1={_v1()}",
        f"t={NOW},v1=",
        f"t={NOW},v1={_v1(secret=OTHER)}",
        f"t={NOW},v0={_v1()}",
        f"t={NOW},v1={_v1()[:-1]}",
        f"t={NOW},v1={_v1().upper()}",
        f"t={NOW},t={NOW},v1={_v1()}",
        f"t={NOW + 1},v1={_v1()}",
        f"t=-{NOW},v1={_v1()}",
        f"t={NOW}.0,v1={_v1()}",
        f"t={'9' * 400},v1={_v1()}",
        f"t = {NOW},v1={_v1()}",
        f"t=\u0661\u0662,v1={_v1()}",
        f"t={NOW},v1={_v1()}\u00e4",
        f"t={NOW},v1=\ud800",
    ],
)
def test_a_header_that_proves_nothing_is_refused(header: str) -> None:
    with pytest.raises(SignatureRefused):
        _verify(header)


@pytest.mark.parametrize("away", [301, -301, 86_400, -86_400])
def test_a_time_too_far_from_now_is_refused_on_both_sides(away: int) -> None:
    with pytest.raises(SignatureRefused, match="300 seconds"):
        _verify(f"t={NOW + away},v1={_v1(at=NOW + away)}")


@pytest.mark.parametrize("away", [300, -300, 1])
def test_a_time_that_is_near_enough_is_taken(away: int) -> None:
    _verify(f"t={NOW + away},v1={_v1(at=NOW + away)}")


@pytest.mark.parametrize("secrets", [(), ("",)])
def test_without_a_secret_nothing_is_authentic(secrets: tuple[str, ...]) -> None:
    with pytest.raises(SignatureRefused):
        _verify(f"t={NOW},v1={_v1(secret='')}", secrets=secrets)


@given(header=st.text(max_size=200))
def test_no_header_makes_the_check_raise_anything_else(header: str) -> None:
    with pytest.raises(SignatureRefused):
        _verify(header)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'"evt_1"',
        b"null",
        b"{}",
        b'{"id": 7}',
        b'{"id": ""}',
        b'{"id": "evt_1"',
        b'{"id": "\xff"}',
        b'{"id": "' + b"e" * 256 + b'"}',
        b"[" * 100_000,
        b'{"id": "evt_1", "n": ' + b"9" * 5_000 + b"}",
    ],
)
def test_a_body_that_is_no_event_is_unreadable(raw: bytes) -> None:
    with pytest.raises(UnreadableEvent):
        parse_json(raw)


@given(raw=st.binary(max_size=100) | JSON.map(lambda body: json.dumps(body).encode()))
def test_no_body_makes_the_parsing_raise_anything_else(raw: bytes) -> None:
    try:
        body = parse_json(raw)
    except UnreadableEvent:
        return
    assert body["id"]


def _event(thing: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": "evt_1",
        "object": "event",
        "type": "refund.updated",
        "created": NOW,
        "livemode": False,
        "request": {"id": "req_1", "idempotency_key": "recon-1"},
        "data": {"object": thing},
    } | fields


def test_an_event_about_a_refund_carries_it() -> None:
    facts = event_facts(_event(REFUND, account="acct_1"))
    assert [refund.id for refund in facts.refunds] == ["re_1"]
    assert (facts.charge, facts.payment_intent) == ("ch_1", "pi_1")
    assert (facts.account, facts.livemode, facts.created) == ("acct_1", False, NOW)
    assert facts.request_key == "recon-1"
    assert facts.about_refunds


def test_the_old_event_about_a_refund_is_read_by_its_object() -> None:
    facts = event_facts(_event(REFUND, type="charge.refund.updated"))
    assert [refund.id for refund in facts.refunds] == ["re_1"]


@pytest.mark.parametrize("refunds", [{}, {"refunds": None}, {"refunds": {"data": [REFUND]}}])
def test_an_event_about_a_charge_names_the_charge(refunds: dict[str, Any]) -> None:
    charge = {"id": "ch_1", "object": "charge", "payment_intent": {"id": "pi_1"}}
    facts = event_facts(_event(charge | refunds, type="charge.refunded"))
    assert (facts.charge, facts.payment_intent) == ("ch_1", "pi_1")
    assert len(facts.refunds) == (1 if refunds.get("refunds") else 0)
    assert facts.about_refunds


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        (None, ""),
        ("req_1", ""),
        ({}, ""),
        ({"idempotency_key": None}, ""),
        ({"idempotency_key": 7}, ""),
        ({"id": None, "idempotency_key": "recon-1"}, "recon-1"),
    ],
)
def test_the_request_may_be_a_text_or_nothing(request_: Any, key: str) -> None:
    assert event_facts(_event(REFUND, request=request_)).request_key == key


@pytest.mark.parametrize("livemode", [None, 1, "true"])
def test_a_mode_that_is_not_said_is_not_guessed(livemode: Any) -> None:
    assert event_facts(_event(REFUND, livemode=livemode)).livemode is None


def test_a_thin_event_is_about_nothing_we_know() -> None:
    facts = event_facts({"id": "evt_1", "object": "v2.core.event", "type": "v2.core.x"})
    assert not facts.about_refunds
    assert facts.refunds == ()


NAMES = ("id", "type", "created", "livemode", "request", "account", "data")


@given(
    body=st.dictionaries(st.text(max_size=5), JSON)
    | st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, JSON))
    | JSON.map(_event)
    | JSON.map(lambda odd: _event({"object": "charge", "refunds": odd, "id": odd}))
    | JSON.map(lambda odd: _event(REFUND | {"metadata": odd, "charge": odd, "amount": odd}))
)
def test_no_json_makes_the_reading_of_an_event_raise(body: dict[str, Any]) -> None:
    facts = event_facts(body)
    assert isinstance(facts.refunds, tuple)
