"""Subscriptions and deliveries over the API."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from operations.models import ApiKey, AuditEntry, Delivery, Subscription
from operations.services import subscribing
from operations.services.engine import default_engine
from operations.services.keys import create_api_key

from .agent import Agent
from .stage import ALICE, JOB, Stage
from .subscribed import LOOPBACK, OK, deliver
from .wire import WireServer, wire_server

pytestmark = pytest.mark.django_db(transaction=True)

API = "/api/v1"


@pytest.fixture(autouse=True)
def allowed(served: Stage, settings: Any) -> None:
    from dataclasses import replace

    notices = replace(settings.RECONCILE.notices, allow_networks=LOOPBACK)
    settings.RECONCILE = replace(settings.RECONCILE, notices=notices)
    default_engine.cache_clear()


@pytest.fixture
def server() -> Iterator[WireServer]:
    with wire_server(lambda server: server.answers(OK)) as server:
        yield server


@pytest.fixture
def other() -> Agent:
    return Agent(secret=create_api_key(engine=default_engine(), name="Other", actor=JOB)[1])


def post(agent: Agent, path: str, body: Any = None) -> Any:
    return Client().post(
        API + path,
        json.dumps(body or {}),
        content_type="application/json",
        headers={"Authorization": agent.authorization},
    )


def subscribed(agent: Agent, server: WireServer, **more: Any) -> dict[str, Any]:
    answer = post(agent, "/subscriptions", {"address": server.url + "/hook", **more})
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return made


def test_the_secret_is_shown_once(agent: Agent, server: WireServer) -> None:
    made = subscribed(agent, server, types=["refund.unknown"], name="Support")
    assert made["secret"].startswith("whsec_")
    assert (made["types"], made["name"], made["account"]) == (["refund.unknown"], "Support", None)
    for path in ("/subscriptions", f"/subscriptions/{made['id']}"):
        assert 'secret":' not in agent.get(API + path).content.decode()


def test_an_agent_that_was_told_checking_learns_the_end(
    served: Stage, agent: Agent, server: WireServer
) -> None:
    from operations.services.looking_up import look_up

    subscribed(agent, server)
    payment = served.payment()
    served.control.fault("500", when="after")
    asked = agent.ask(payment).json()
    assert asked["status"] == "checking"
    look_up(engine=default_engine(), operation_id=asked["operation_id"], actor=JOB)
    deliver(default_engine())
    bodies = [json.loads(request.body) for request in server.requests]
    assert [(body["type"], body["data"]["status"]) for body in bodies] == [
        ("refund.unknown", "checking"),
        ("refund.succeeded", "refunded"),
    ]
    assert bodies[-1]["data"] == agent.get(f"{API}/refunds/{asked['operation_id']}").json()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "address"),
        ({"address": "https://10.0.0.1/"}, "address"),
        ({"address": "not an address"}, "address"),
        ({"address": "https://127.0.0.1/", "types": ["refund.guessed"]}, "0"),
        ({"address": "https://127.0.0.1/", "account": "nobody"}, "account"),
        ({"address": "https://127.0.0.1/", "secret": "mine"}, "secret"),
        ({"address": "https://127.0.0.1/", "name": "a\x00b"}, "name"),
    ],
)
def test_what_is_wrong_is_named(agent: Agent, body: dict[str, Any], field: str) -> None:
    answer = post(agent, "/subscriptions", body)
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert answer.json()["field"] == field
    assert not Subscription.objects.exists()


def test_a_key_sees_and_changes_only_its_own(
    served: Stage, agent: Agent, other: Agent, server: WireServer
) -> None:
    made = subscribed(agent, server)
    agent.ask(served.payment())
    deliver(default_engine())
    (delivery,) = agent.get(f"{API}/deliveries").json()["deliveries"]
    assert other.get(f"{API}/subscriptions").json()["subscriptions"] == []
    assert other.get(f"{API}/deliveries").json()["deliveries"] == []
    before = list(Subscription.objects.values())
    for act in ("roll-secret", "disable", "enable"):
        assert post(other, f"/subscriptions/{made['id']}/{act}").status_code == 404
    assert post(other, f"/deliveries/{delivery['id']}/send-again").status_code == 404
    assert other.get(f"{API}/deliveries/{delivery['id']}").status_code == 404
    assert list(Subscription.objects.values()) == before
    assert Delivery.objects.get().state == "delivered"


def test_no_key_no_answer(server: WireServer) -> None:
    nobody = Agent(secret="rck_wrong")
    for path in ("/subscriptions", "/deliveries", "/deliveries/1"):
        assert nobody.get(API + path).status_code == 401
    assert post(nobody, "/subscriptions", {"address": server.url}).status_code == 401


def test_rolling_disabling_and_enabling(agent: Agent, server: WireServer) -> None:
    made = subscribed(agent, server)
    path = f"/subscriptions/{made['id']}"
    rolled = post(agent, path + "/roll-secret", {"keep_old_s": 60}).json()
    assert rolled["secret"] != made["secret"]
    assert rolled["previous_secret_until"] is not None
    assert post(agent, path + "/roll-secret", {"keep_old_s": -1}).status_code == 422
    stopped = post(agent, path + "/disable", {"reason": "We move."}).json()
    assert "We move." in stopped["disabled_reason"]
    again = post(agent, path + "/enable").json()
    assert (again["disabled_at"], again["disabled_reason"]) == (None, None)
    entries = AuditEntry.objects.filter(action__startswith="subscription_").order_by("number")
    assert {entry.actor_kind for entry in entries} == {"api_key"}
    assert entries.count() == 4


def test_a_key_can_not_undo_what_a_person_decided(agent: Agent, server: WireServer) -> None:
    made = subscribed(agent, server)
    path = f"/subscriptions/{made['id']}"
    post(agent, path + "/disable")
    subscribing.disable(
        engine=default_engine(), subscription_id=made["id"], actor=ALICE, reason="It leaks."
    )
    assert post(agent, path + "/disable").json()["disabled_reason"] == "Alice: It leaks."
    before = Subscription.objects.values().get()

    refused = post(agent, path + "/enable")

    assert (refused.status_code, refused.json()["code"]) == (409, "disabled_by_a_person")
    assert Subscription.objects.values().get() == before
    subscribing.enable(engine=default_engine(), subscription_id=made["id"], actor=ALICE)
    assert agent.get(API + path).json()["disabled_at"] is None


def test_a_key_lets_go_on_what_the_relay_disabled(
    served: Stage, agent: Agent, server: WireServer
) -> None:
    made = subscribed(agent, server)
    Subscription.objects.update(
        disabled_at=datetime.now(UTC), disabled_reason="410", disabled_by="job"
    )
    assert post(agent, f"/subscriptions/{made['id']}/enable").json()["disabled_at"] is None


def test_a_subscription_ends_with_the_key_that_made_it(
    served: Stage, agent: Agent, server: WireServer
) -> None:
    subscribed(agent, server)
    agent.ask(served.payment())
    ApiKey.objects.filter(subscriptions__isnull=False).update(revoked_at=datetime.now(UTC))

    served.ask(served.payment(), order_id="another")

    assert deliver(default_engine()) == 0
    assert server.connections == 0
    # Written before the key was revoked; nothing was written after.
    waiting = Delivery.objects.get()
    with pytest.raises(subscribing.SubscriptionRefused, match="revoked"):
        subscribing.send_again(engine=default_engine(), delivery_id=waiting.pk, actor=ALICE)


def test_deliveries_tell_every_try_and_are_sent_again(
    served: Stage, agent: Agent, server: WireServer
) -> None:
    made = subscribed(agent, server)
    asked = agent.ask(served.payment()).json()
    deliver(default_engine())
    (row,) = agent.get(f"{API}/deliveries?operation_id={asked['operation_id']}").json()[
        "deliveries"
    ]
    assert (row["state"], row["type"], row["subscription"]) == (
        "delivered",
        "refund.succeeded",
        made["id"],
    )
    assert [attempt["http_status"] for attempt in row["tries"]] == [204]
    again = post(agent, f"/deliveries/{row['id']}/send-again")
    assert (again.status_code, again.json()["state"]) == (202, "waiting")
    deliver(default_engine())
    told = agent.get(f"{API}/deliveries/{row['id']}").json()
    assert [attempt["number"] for attempt in told["tries"]] == [1, 2]
    assert {request.headers["webhook-id"] for request in server.requests} == {row["message_id"]}

    post(agent, f"/subscriptions/{made['id']}/disable")
    refused = post(agent, f"/deliveries/{row['id']}/send-again")
    assert (refused.status_code, refused.json()["code"]) == (409, "subscription_disabled")


def test_lists_go_on_page_by_page(served: Stage, agent: Agent, server: WireServer) -> None:
    for name in "abc":
        subscribed(agent, server, name=name)
    agent.ask(served.payment())
    for what, key in (("subscriptions", "id"), ("deliveries", "id")):
        seen, after = [], ""
        while True:
            page = agent.get(f"{API}/{what}?limit=2&after={after}").json()
            seen += [row[key] for row in page[what]]
            after = page["next_after"]
            if not after:
                break
        assert len(seen) == len(set(seen)) == 3
    assert agent.get(f"{API}/deliveries?state=waiting").json()["deliveries"]
    assert agent.get(f"{API}/deliveries?state=failed").json()["deliveries"] == []
    assert agent.get(f"{API}/deliveries?state=lost").status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/subscriptions", "GET, POST"),
        ("POST", "/deliveries", "GET"),
        ("GET", "/subscriptions/x/roll-secret", "POST"),
        ("PUT", "/subscriptions/x", "GET"),
        ("GET", "/deliveries/1/send-again", "POST"),
    ],
)
def test_other_methods_are_refused(agent: Agent, method: str, path: str, allowed: str) -> None:
    answer = Client().generic(method, API + path, headers={"Authorization": agent.authorization})
    assert (answer.status_code, answer["Allow"]) == (405, allowed)
    assert answer["Content-Type"] == "application/problem+json"


def test_a_place_that_can_not_be_read_is_the_beginning(agent: Agent) -> None:
    for what in ("subscriptions", "deliveries"):
        for after in ("x", "-1", "9" * 40, "00000000-0000-7000-8000-000000000000"):
            assert agent.get(f"{API}/{what}?after={after}").status_code == 200
        assert agent.get(f"{API}/{what}/nothing").status_code == 404
        assert agent.get(f"{API}/{what}/{'9' * 30}").status_code == 404


def test_addresses_that_are_not_there_still_answer_404(agent: Agent) -> None:
    assert agent.get(f"{API}/nothing").status_code == 404
    assert agent.get(f"{API}/subscriptions/a/b/c").json()["code"] == "not_found"


def test_the_documents_list_the_routes(agent: Agent) -> None:
    paths = Client().get(f"{API}/openapi.json").json()["paths"]
    for path in ("subscriptions", "deliveries", "deliveries/{delivery_id}/send-again"):
        assert f"{API}/{path}" in paths
