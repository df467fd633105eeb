"""Administrators see who is told, what was told, and send it again."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from operations.models import AuditEntry, Delivery, DeliveryTry, Subscription
from operations.services.engine import default_engine
from operations.services.notifying import deliver_due
from tests.integration.wire import WireServer, reply, wire_server

from .scenes import Scenes

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


@pytest.fixture(autouse=True)
def allowed(scenes: Scenes, settings: Settings) -> None:
    notices = replace(settings.RECONCILE.notices, allow_networks=(ip_network("127.0.0.0/8"),))
    settings.RECONCILE = replace(settings.RECONCILE, notices=notices)
    default_engine.cache_clear()


@pytest.fixture
def server() -> Iterator[WireServer]:
    broken = reply(500, b"<b>broken</b>")
    with wire_server(lambda server: server.answers(broken, reply(204))) as server:
        yield server


@pytest.fixture
def admin(signed_in: SignIn) -> Client:
    return signed_in("admin", "Ada Admin")


def text(response: Any) -> str:
    return str(response.content.decode())


def subscribe(client: Client, address: str, **more: Any) -> Subscription:
    response = client.post(reverse("subscriptions"), {"address": address, **more})
    assert response.status_code == 200
    return Subscription.objects.latest("created_at")


def test_only_administrators_get_in(signed_in: SignIn) -> None:
    for role in ("viewer", "operator", "approver"):
        client = signed_in(role)
        assert client.get(reverse("subscriptions")).status_code == 403
        refused = client.post(reverse("subscriptions"), {"address": "http://127.0.0.1:9/"})
        assert refused.status_code == 403
        assert reverse("subscriptions") not in text(client.get("/"))
    assert not Subscription.objects.exists()
    assert not AuditEntry.objects.filter(action__startswith="subscription").exists()


def test_the_secret_is_shown_once_and_kept_off_every_page(admin: Client) -> None:
    response = admin.post(reverse("subscriptions"), {"address": "http://127.0.0.1:9/hook"})
    made = Subscription.objects.get()
    assert made.secret in text(response)
    assert response["Cache-Control"] == "no-store"
    for address in (reverse("subscriptions"), reverse("subscription", args=[made.pk])):
        assert "whsec_" not in text(admin.get(address))
    entry = AuditEntry.objects.get(action="subscription_created")
    assert (entry.actor_name, entry.actor_address) == ("Ada Admin", "127.0.0.1")


def test_an_address_that_can_not_be_used_is_named_and_kept(admin: Client) -> None:
    response = admin.post(reverse("subscriptions"), {"address": "https://10.0.0.1/x<y"})
    assert response.status_code == 422
    response = admin.post(
        reverse("subscriptions"), {"address": "https://10.0.0.1/x", "types": ["refund.unknown"]}
    )
    page = text(response)
    assert response.status_code == 422
    assert "not a public address" in page
    assert 'value="https://10.0.0.1/x"' in page
    assert re.search(r'value="refund.unknown" checked', page)
    assert not Subscription.objects.exists()


def test_a_new_secret_wants_a_choice(admin: Client) -> None:
    made = subscribe(admin, "http://127.0.0.1:9/hook")
    at = reverse("roll-secret", args=[made.pk])
    refused = admin.post(at)
    assert refused.status_code == 422
    assert "Choose what becomes of the old secret" in text(refused)
    kept = admin.post(at, {"old": "keep"})
    rolled = Subscription.objects.get()
    assert rolled.secret in text(kept)
    assert rolled.previous_secret == made.secret
    admin.post(at, {"old": "end"})
    assert Subscription.objects.get().previous_secret == ""


def test_disabling_wants_a_reason_and_can_be_undone(admin: Client) -> None:
    made = subscribe(admin, "http://127.0.0.1:9/hook")
    at = reverse("disable-subscription", args=[made.pk])
    assert admin.post(at).status_code == 422
    assert Subscription.objects.get().disabled_at is None
    page = text(admin.post(at, {"reason": "It <moves>."}, follow=True))
    assert "Disabled: nothing more is told here" in page
    assert "Ada Admin: It &lt;moves&gt;." in page
    page = text(admin.post(reverse("enable-subscription", args=[made.pk]), follow=True))
    assert "Disabled: nothing more" not in page
    actions = AuditEntry.objects.filter(action__startswith="subscription_").order_by("number")
    assert [entry.action for entry in actions] == [
        "subscription_created",
        "subscription_disabled",
        "subscription_enabled",
    ]


def test_a_delivery_shows_every_try_and_is_sent_again(
    scenes: Scenes, admin: Client, server: WireServer
) -> None:
    made = subscribe(admin, server.url + "/hook", types=["refund.unknown"], name="Support")
    operation = scenes.unknown(order="<4417>")
    engine = default_engine()
    assert deliver_due(engine=engine) == 1
    row = Delivery.objects.get()
    listed = text(admin.get(reverse("subscription", args=[made.pk])))
    assert "HTTP 500" in listed
    assert reverse("operation", args=[operation.pk]) in listed

    page = text(admin.get(reverse("delivery", args=[row.pk])))
    assert "&lt;b&gt;broken&lt;/b&gt;" in page
    assert row.message_id in page
    assert "&quot;refund.unknown&quot;" in page
    again = admin.post(reverse("send-again", args=[row.pk]), follow=True)
    assert "goes out again" in text(again)
    assert deliver_due(engine=engine) == 1
    assert [request.headers["webhook-id"] for request in server.requests] == [row.message_id] * 2
    assert json.loads(server.requests[1].body)["data"]["status"] == "checking"
    page = text(admin.get(reverse("delivery", args=[row.pk])))
    assert "Delivered" in page
    assert "HTTP 204" in page
    entry = AuditEntry.objects.get(action="notice_sent_again")
    assert entry.actor_name == "Ada Admin"


def test_nothing_is_sent_again_to_a_disabled_one(
    scenes: Scenes, admin: Client, server: WireServer
) -> None:
    made = subscribe(admin, server.url)
    scenes.unknown()
    admin.post(reverse("disable-subscription", args=[made.pk]), {"reason": "Gone."})
    row = Delivery.objects.get()
    response = admin.post(reverse("send-again", args=[row.pk]))
    assert response.status_code == 409
    assert "It was not sent again" in text(response)
    assert not AuditEntry.objects.filter(action="notice_sent_again").exists()


def test_a_long_list_goes_on_with_a_steady_number_of_queries(
    scenes: Scenes, admin: Client, server: WireServer
) -> None:
    made = subscribe(admin, server.url)
    scenes.unknown()
    first = Delivery.objects.get()
    Delivery.objects.bulk_create(
        Delivery(
            message_id=f"msg_{number}",
            subscription=made,
            operation=first.operation,
            type="refund.flagged",
            revision=100 + number,
            occurred_at=first.occurred_at,
            body="{}",
            next_try_at=first.next_try_at,
            tries=1,
        )
        for number in range(60)
    )
    DeliveryTry.objects.bulk_create(
        DeliveryTry(delivery=row, number=1, started_at=row.occurred_at)
        for row in Delivery.objects.filter(tries=1)
    )
    at = reverse("subscription", args=[made.pk])
    with CaptureQueriesContext(connection) as queries:
        page = text(admin.get(at))
    assert page.count('id="delivery-') == 50
    onward = re.search(r'rel="next" href="([^"]+)"', page)
    assert onward is not None
    rest = text(admin.get(onward[1].replace("&amp;", "&")))
    assert rest.count('id="delivery-') == 11
    assert len(queries) <= 14
    assert text(admin.get(at + "?state=failed")).count('id="delivery-') == 0


def test_what_is_not_there_is_not_found(admin: Client) -> None:
    for name, args in (
        ("delivery", [1]),
        ("subscription", ["01a22d4f-0000-7000-8000-000000000000"]),
    ):
        assert admin.get(reverse(name, args=args)).status_code == 404
    assert admin.post(reverse("send-again", args=[1])).status_code == 404
