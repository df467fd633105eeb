"""What a key is for: its accounts, reading or asking, and until when."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.http import HttpResponseBase
from django.test import Client

from operations.models import Account, ApiKey, Delivery, Operation, Subscription
from operations.queries.metrics import read_metrics
from operations.services.engine import default_engine
from operations.services.keys import KeyRefused, KeyScope, create_api_key
from operations.services.subscribing import SubscriptionRefused, Wanted, send_again, subscribe

from .stage import JOB, Stage
from .subscribed import OK, deliver, telling
from .wire import wire_server

pytestmark = pytest.mark.django_db(transaction=True)


def _secret(*accounts: Account, **more: Any) -> str:
    scope = KeyScope(accounts=accounts, **more)
    return create_api_key(engine=default_engine(), name="k", actor=JOB, scope=scope)[1]


def _ask(secret: str, payment: str, **more: Any) -> HttpResponseBase:
    wish = {"order_id": "4417", "amount": 500, "currency": "usd", "payment": payment} | more
    return Client().post(
        "/api/v1/refunds",
        wish,
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )


def _read(secret: str, operation_id: object) -> int:
    headers = {"Authorization": f"Bearer {secret}"}
    return Client().get(f"/api/v1/refunds/{operation_id}", headers=headers).status_code


def _accounts() -> tuple[Account, Account]:
    ours = Account.objects.create(name="default", livemode=False)
    return ours, Account.objects.create(name="two", provider_account="acct_2", livemode=False)


def test_a_key_of_one_account_neither_asks_nor_reads_at_another(served: Stage) -> None:
    ours, other = _accounts()
    payment = served.sandbox.control.payment(amount=2_000)["payment_intent"]
    right, wrong = _secret(ours), _secret(other)

    made = _ask(right, payment)
    assert made.status_code == 200
    operation = Operation.objects.get()
    before = served.sandbox.control.counts()
    answers = [_ask(wrong, payment), _ask(wrong, payment, account="two", order_id="1")]
    answers += [_ask(right, payment, account=name) for name in ("two", "acct_2", "nowhere")]

    assert [answer.status_code for answer in answers[:1] + answers[2:]] == [403] * 4
    # Its own account can be named; that the payment is not there is for the provider to say.
    assert answers[1].status_code not in (200, 202, 403)
    assert _read(right, operation.pk) == 200
    assert _read(wrong, operation.pk) == _read(wrong, uuid4()) == 404
    assert Operation.objects.count() == 1
    assert served.sandbox.control.counts()["refunds"] == before["refunds"]


def test_a_key_that_only_reads_is_refused_before_anything_is_read_at_the_provider(
    served: Stage,
) -> None:
    ours, _other = _accounts()
    answer = _ask(_secret(ours, may_write=False), "pi_1")

    assert answer.status_code == 403
    assert not Operation.objects.exists()
    assert _read(_secret(ours, may_write=False), uuid4()) == 404


def test_a_key_opens_nothing_from_its_last_moment_on(served: Stage) -> None:
    secret = _secret(expires_at=datetime.now(UTC) + timedelta(hours=1))
    assert _read(secret, uuid4()) == 404

    engine = default_engine()
    gone = create_api_key(
        engine=engine,
        name="gone",
        actor=JOB,
        scope=KeyScope(expires_at=engine.clock() + timedelta(microseconds=200_000)),
    )[1]
    while ApiKey.objects.get(name="gone").expires_at > engine.clock():  # type: ignore[operator]
        pass
    assert _read(gone, uuid4()) == 401
    with pytest.raises(KeyRefused):
        _secret(expires_at=engine.clock())


def test_an_expired_key_is_told_nothing_more(stage: Stage) -> None:
    engine = stage.engine = telling(stage)
    scope = KeyScope(expires_at=stage.clock() + timedelta(hours=1))
    key, _ = create_api_key(engine=engine, name="k", actor=JOB, scope=scope)
    with wire_server(lambda server: server.answers(OK)) as server:
        wanted = Wanted(address=server.url + "/hook")
        subscribe(engine=engine, wanted=wanted, actor=JOB, api_key=key)
        stage.ask(stage.payment())
        waiting = Delivery.objects.get()

        stage.clock.advance(3_600)
        stage.ask(stage.payment(), order_id="4418")

        assert deliver(engine) == 0
        assert server.connections == 0
    assert Delivery.objects.count() == 1
    assert read_metrics(now=stage.clock()).notices.waiting == 0
    with pytest.raises(SubscriptionRefused, match="expired"):
        send_again(engine=engine, delivery_id=waiting.pk, actor=JOB)


def test_a_key_learns_no_id_of_another_account(served: Stage) -> None:
    ours, other = _accounts()
    served.control.fault("500", when="after")
    assert _ask(_secret(ours), served.payment()).status_code == 202
    elsewhere = served.payment(account=other.provider_account)

    to_one, to_all = (
        _ask(secret, elsewhere, account="two") for secret in (_secret(other), _secret())
    )

    assert to_one.status_code == to_all.status_code == 409
    assert to_all.json()["operation_id"] == str(Operation.objects.get().pk)  # type: ignore[attr-defined]
    assert "operation_id" not in to_one.json()  # type: ignore[attr-defined]


def test_a_key_of_one_account_is_told_of_no_other(served: Stage) -> None:
    ours, _other = _accounts()
    headers = {"Authorization": f"Bearer {_secret(ours)}"}
    for account in (None, "two"):
        wish = {"address": "https://receiver.example/", "account": account or ""}
        answer = Client().post(
            "/api/v1/subscriptions", wish, content_type="application/json", headers=headers
        )
        assert answer.status_code == 422
    assert not Subscription.objects.exists()


def test_the_command_says_what_a_key_is_for() -> None:
    _accounts()
    out = StringIO()
    call_command(
        "create_api_key",
        "returns",
        account=["two"],
        read_only=True,
        expires="2099-12-31",
        stdout=out,
        stderr=StringIO(),
    )

    assert out.getvalue().splitlines()[-1].startswith("rck_")
    key = ApiKey.objects.get()
    assert key.accounts == frozenset([Account.objects.get(name="two").pk])
    assert not key.may_write
    assert key.expires_at is not None
    assert f"{key.expires_at:%Y-%m-%d %H:%M}" == "2099-12-31 23:59"


@pytest.mark.parametrize(
    "wrong", [{"account": ["no"]}, {"expires": "soon"}, {"expires": "1999-01-01"}]
)
def test_the_command_refuses_a_wrong_scope(wrong: dict[str, Any]) -> None:
    with pytest.raises(CommandError):
        call_command("create_api_key", "returns", stderr=StringIO(), **wrong)
    assert not ApiKey.objects.exists()
