"""What the API can't take: a problem document that names the field, and no row anywhere."""

import json
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.test import Client

from operations.models import ApiKey
from operations.services.engine import default_engine
from operations.services.keys import create_api_key

from .agent import REFUNDS, Agent, body
from .stage import JOB, Stage

pytestmark = pytest.mark.django_db
#: For requests that come as far as the provider, which is never called inside a transaction.
reaches_the_provider = pytest.mark.django_db(transaction=True)

#: Known before anybody asks: the key's row, its audit entry, and the account that the key's own is.
GIVEN = {"ApiKey", "AuditEntry", "Account", "RateBucket"}


def rows() -> dict[str, int]:
    """How many rows each of our tables has, aside from what is there before the first request."""
    models = apps.get_app_config("operations").get_models()
    return {
        model.__name__: count
        for model in models
        if model.__name__ not in GIVEN and (count := model._default_manager.count())
    }


def assert_problem(response: Any, status: int, field: str | None = None) -> dict[str, Any]:
    """A problem document with this status; `field` is what it names."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["type"].startswith("urn:reconcile:problem:")
    assert document["detail"]
    if field is not None:
        assert document["field"] == field
        assert document["errors"][0]["field"] == field
        assert document["errors"][0]["message"]
    return document


def assert_nothing_happened(stage: Stage, payment: str) -> None:
    assert rows() == {}
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 0)


HALF = "\ud800"
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "no amount": ({"amount": ...}, "amount"),
    "negative amount": ({"amount": -1}, "amount"),
    "zero": ({"amount": 0}, "amount"),
    "fractional amount": ({"amount": 38.5}, "amount"),
    "whole amount as a fraction": ({"amount": 3800.0}, "amount"),
    "true": ({"amount": True}, "amount"),
    "null": ({"amount": None}, "amount"),
    "amount as text": ({"amount": "3800"}, "amount"),
    "amount as a list": ({"amount": [3800]}, "amount"),
    "huge amount": ({"amount": 10**12}, "amount"),
    "amount of many digits": ({"amount": 10**40}, "amount"),
    "not a number": ({"amount": float("nan")}, "amount"),
    "infinite": ({"amount": float("inf")}, "amount"),
    "amount the currency has not": ({"currency": "isk", "amount": 150}, "amount"),
    "three decimals": ({"currency": "kwd", "amount": 155}, "amount"),
    "no currency": ({"currency": ...}, "currency"),
    "unknown currency": ({"currency": "xxx"}, "currency"),
    "long currency": ({"currency": "usdt"}, "currency"),
    "empty currency": ({"currency": ""}, "currency"),
    "currency as a number": ({"currency": 840}, "currency"),
    "no payment": ({"payment": ...}, "payment"),
    "empty payment": ({"payment": ""}, "payment"),
    "payment with a path": ({"payment": "ch_1/../../v1/balance"}, "payment"),
    "payment with a line end": ({"payment": "ch_1\n"}, "payment"),
    "payment as a number": ({"payment": 1}, "payment"),
    "long payment": ({"payment": "ch_" + "1" * 300}, "payment"),
    "no order": ({"order_id": ...}, "order_id"),
    "empty order": ({"order_id": ""}, "order_id"),
    "long order": ({"order_id": "4" * 256}, "order_id"),
    "order as a number": ({"order_id": 4417}, "order_id"),
    "NUL": ({"order_id": "44\x0017"}, "order_id"),
    "control character": ({"reference": "a\x1b[31mb"}, "reference"),
    "line end": ({"customer_account": "a\r\nb"}, "customer_account"),
    "half a character": ({"order_id": f"44{HALF}17"}, "order_id"),
    "half a character in the token": ({"client_request_token": HALF}, "client_request_token"),
    "half a character in the reason": ({"reason": HALF}, "reason"),
    "control character in the tool call": ({"tool_call_id": "a\x07"}, "tool_call_id"),
    "control character in the run": ({"agent_run_id": "a\x85"}, "agent_run_id"),
    "long token": ({"client_request_token": "t" * 256}, "client_request_token"),
    "long reason": ({"reason": "r" * 501}, "reason"),
    "long reference": ({"reference": "r" * 256}, "reference"),
    "unknown account": ({"account": "nobody"}, "account"),
    "account of no name": ({"account": "no\x00body"}, "account"),
    "unknown field": ({"ammount": 3800}, "ammount"),
    "key in the body": ({"idempotency_key": "mine"}, "idempotency_key"),
    "unknown field of half a character": ({HALF: 1}, "body"),
}

MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "more than was captured": ({"amount": 10_001}, "amount"),
    "another currency": ({"currency": "eur"}, "currency"),
    "payment that is not there": ({"payment": "ch_nowhere"}, "payment"),
    "intent that is not there": ({"payment": "pi_nowhere"}, "payment"),
}


@pytest.mark.parametrize(("changes", "field"), CHANGES.values(), ids=CHANGES.keys())
def test_field_that_can_not_be_taken_is_named_and_nothing_is_recorded(
    served: Stage, agent: Agent, changes: dict[str, Any], field: str
) -> None:
    payment = served.payment()

    response = agent.ask(payment, **changes)

    assert_problem(response, 422, field)
    assert_nothing_happened(served, payment)


@reaches_the_provider
@pytest.mark.parametrize(("changes", "field"), MISFITS.values(), ids=MISFITS.keys())
def test_wish_that_does_not_fit_its_payment_names_its_field_and_nothing_is_recorded(
    served: Stage, agent: Agent, changes: dict[str, Any], field: str
) -> None:
    payment = served.payment()

    assert_problem(agent.ask(payment, **changes), 422, field)

    assert_nothing_happened(served, payment)


BROKEN: dict[str, tuple[bytes, int]] = {
    "cut off": (b'{"order_id": "4417"', 400),
    "not JSON": (b"order_id=4417&amount=3800", 400),
    "not UTF-8": (b'{"order_id": "\xff\xfe"}', 400),
    "too many digits": (b'{"amount": ' + b"9" * 5_000 + b"}", 400),
    "nested too deep": (b"[" * 20_000 + b"]" * 20_000, 400),
    "a list": (b"[]", 422),
    "a text": (b'"refund"', 422),
    "a number": (b"3800", 422),
    "null": (b"null", 422),
}


@pytest.mark.parametrize(("data", "status"), BROKEN.values(), ids=BROKEN.keys())
def test_body_that_is_no_request_is_refused(
    served: Stage, agent: Agent, data: bytes, status: int
) -> None:
    payment = served.payment()

    response = agent.post(data)

    assert_problem(response, status, "body")
    assert_nothing_happened(served, payment)


def test_a_field_that_is_named_twice_is_refused(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    once = json.dumps(body(payment))

    response = agent.post(once[:-1] + ', "amount": 1}')

    assert_problem(response, 422, "amount")
    assert_nothing_happened(served, payment)


def test_every_wrong_field_is_named(served: Stage, agent: Agent) -> None:
    document = assert_problem(agent.post(json.dumps({"amount": "x", "extra": 1})), 422)

    named = {error["field"] for error in document["errors"]}
    assert named == {"order_id", "amount", "currency", "payment", "extra"}
    assert rows() == {}


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/jsonp",
        "",
    ],
)
def test_body_that_is_not_declared_as_json_is_refused(
    served: Stage, agent: Agent, content_type: str
) -> None:
    payment = served.payment()

    response = agent.post(json.dumps(body(payment)), content_type=content_type)

    assert_problem(response, 415, "Content-Type")
    assert_nothing_happened(served, payment)


@reaches_the_provider
def test_json_may_name_its_charset(served: Stage, agent: Agent) -> None:
    payment = served.payment()

    response = agent.post(json.dumps(body(payment)), content_type="Application/JSON; charset=utf-8")

    assert response.status_code == 200, response.content
    assert served.refunds(payment) == 1


@pytest.mark.parametrize("size", [64 * 1024 + 1, 3 * 2**20])
def test_body_that_is_too_large_is_refused(served: Stage, agent: Agent, size: int) -> None:
    payment = served.payment()

    response = agent.post(json.dumps(body(payment, reason="r" * size)))

    assert_problem(response, 413, "body")
    assert_nothing_happened(served, payment)


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Bearer rck_wrong", "Basic cmNrOg==", "rck_wrong", "Bearer \xff"],
)
def test_caller_without_a_valid_key_is_refused(
    served: Stage, agent: Agent, authorization: str
) -> None:
    payment = served.payment()

    response = agent.post(json.dumps(body(payment)), authorization=authorization)

    assert_problem(response, 401)
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert_nothing_happened(served, payment)


def test_revoked_key_is_refused(served: Stage) -> None:
    payment = served.payment()
    key, secret = create_api_key(engine=default_engine(), name="Old agent", actor=JOB)
    key.revoked_at = served.clock()
    key.save()

    response = Agent(secret=secret).ask(payment)

    assert_problem(response, 401)
    assert_nothing_happened(served, payment)


def test_token_in_body_and_header_must_be_one(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    data = json.dumps(body(payment, client_request_token="one"))

    response = agent.post(data, **{"Idempotency-Key": "two"})

    assert_problem(response, 422, "client_request_token")
    assert_nothing_happened(served, payment)


@pytest.mark.parametrize("token", ["t" * 256, "caf\xe9"])
def test_token_in_the_header_has_limits_too(served: Stage, agent: Agent, token: str) -> None:
    payment = served.payment()

    response = agent.post(json.dumps(body(payment)), **{"Idempotency-Key": token})

    assert_problem(response, 422, "Idempotency-Key")
    assert_nothing_happened(served, payment)


@pytest.mark.parametrize(
    "name",
    ["0190f5fe-7c00-7a00-8000-000000000000", "nothing", "1", "%00", "%F0%9F%92%A9", "..%2f"],
)
def test_operation_that_is_not_there_is_not_found(served: Stage, agent: Agent, name: str) -> None:
    assert_problem(agent.get(f"{REFUNDS}/{name}"), 404)


@reaches_the_provider
def test_operation_is_not_shown_without_a_key(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    operation_id = agent.ask(payment).json()["operation_id"]

    assert_problem(Client().get(f"{REFUNDS}/{operation_id}"), 401)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("get", REFUNDS, "POST"),
        ("put", REFUNDS, "POST"),
        ("patch", REFUNDS, "POST"),
        ("delete", REFUNDS, "POST"),
        ("options", REFUNDS, "POST"),
        ("post", f"{REFUNDS}/0190f5fe-7c00-7a00-8000-000000000000", "GET"),
        ("delete", f"{REFUNDS}/0190f5fe-7c00-7a00-8000-000000000000", "GET"),
        ("get", "/api/v1/refund-groups", "POST"),
        ("delete", "/api/v1/refund-groups/0190f5fe-7c00-7a00-8000-000000000000", "GET"),
    ],
)
def test_method_that_an_address_does_not_take_is_refused(
    served: Stage, agent: Agent, method: str, path: str, allowed: str
) -> None:
    client = Client(headers={"Authorization": agent.authorization})

    response = getattr(client, method)(path)

    assert_problem(response, 405)
    assert response["Allow"] == allowed
    assert rows() == {}


@pytest.mark.parametrize("method", ["get", "post", "delete"])
@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/v1/refunds/", "/api/v1/refunds/a/b", "/api/v1/refund"]
)
def test_address_that_is_not_there_is_a_problem_document(
    served: Stage, agent: Agent, method: str, path: str
) -> None:
    client = Client(headers={"Authorization": agent.authorization})

    assert_problem(getattr(client, method)(path), 404)
    assert rows() == {}


@reaches_the_provider
@pytest.mark.parametrize("kind", ["503", "drop", "502_html", "429", "401"])
def test_payment_that_can_not_be_read_is_a_503_and_nothing_is_recorded(
    served: Stage, agent: Agent, kind: str
) -> None:
    payment = served.payment()
    served.control.fault(kind, endpoint="charges.retrieve", times=20)

    response = agent.ask(payment)

    document = assert_problem(response, 503)
    assert document["code"] == "payment_unreadable"
    assert int(response["Retry-After"]) > 0
    assert_nothing_happened(served, payment)

    served.control.clear_faults()
    assert agent.ask(payment).json()["status"] == "refunded"
    assert served.refunds(payment) == 1


@reaches_the_provider
def test_refunds_that_can_not_be_listed_are_a_503_and_nothing_is_recorded(
    served: Stage, agent: Agent
) -> None:
    payment = served.payment()
    served.control.fault("503", endpoint="refunds.list", times=20)

    assert_problem(agent.ask(payment), 503)

    assert_nothing_happened(served, payment)


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "two\nlines", "nul\x00", "\udcff"])
def test_a_key_with_a_name_that_nobody_can_read_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="NAME must have"):
        call_command("create_api_key", name)

    assert not ApiKey.objects.exists()
