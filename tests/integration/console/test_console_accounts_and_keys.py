"""Accounts and keys, for administrators: who may, what changes, and what stays on record."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from operations.models import Account, ApiKey, AuditEntry, Operation

from .scenes import Scenes

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


def test_an_account_shows_what_it_is_doing(scenes: Scenes, signed_in: SignIn) -> None:
    scenes.unknown(amount=3_800)
    account = Operation.objects.get().account
    client = signed_in("admin")

    overview = client.get("/accounts/").content.decode()
    page = client.get(reverse("account", args=[account.pk])).content.decode()

    assert reverse("account", args=[account.pk]) in overview
    assert "$0.00 to $38.00" in page
    assert "yes, up to 255 characters" in page
    assert "Sending was never paused on this account." in page


def test_sending_is_paused_and_goes_on_with_a_reason_each(
    scenes: Scenes, signed_in: SignIn
) -> None:
    scenes.succeeded()
    account = Account.objects.get()
    client = signed_in("admin", "Ada Admin")
    pause, resume = (reverse(f"account-{act}", args=[account.pk]) for act in ("pause", "resume"))

    assert client.post(pause, {"reason": " "}).status_code == 422
    assert client.post(resume, {"reason": "Too early"}).status_code == 409
    assert not AuditEntry.objects.filter(action__startswith="sending_").exists()

    assert client.post(pause, {"reason": "The provider <b>is ill"}).status_code == 302
    account.refresh_from_db()
    assert account.paused_by == "Ada Admin"
    page = client.get(reverse("account", args=[account.pk])).content.decode()
    assert "The provider &lt;b&gt;is ill" in page
    assert client.post(pause, {"reason": "Again"}).status_code == 409

    assert client.post(resume, {"reason": "It is well"}).status_code == 302
    account.refresh_from_db()
    assert account.paused_at is None
    entry = AuditEntry.objects.get(action="sending_resumed")
    assert (entry.actor_name, entry.reason) == ("Ada Admin", "It is well")
    assert (entry.before["paused"], entry.after["paused"]) == (True, False)


def test_a_key_is_shown_once_and_opens_the_api_until_it_is_revoked(signed_in: SignIn) -> None:
    client = signed_in("admin")
    shown = client.post("/keys/", {"name": "returns-agent"}).content.decode()
    found = re.search(r'id="secret">(\w[\w-]+)<', shown)
    assert found
    secret = found[1]
    key = ApiKey.objects.get()
    headers = {"Authorization": f"Bearer {secret}"}
    unknown = "/api/v1/refunds/00000000-0000-7000-8000-000000000000"

    assert Client().get(unknown, headers=headers).status_code == 404
    page = client.get("/keys/").content.decode()
    assert secret not in page
    assert "returns-agent" in page

    revoke = reverse("key-revoke", args=[key.pk])
    assert client.post(revoke, {"reason": ""}).status_code == 422
    assert client.post(revoke, {"reason": "It leaked"}).status_code == 302
    assert Client().get(unknown, headers=headers).status_code == 401
    assert client.post(revoke, {"reason": "Again"}).status_code == 409
    assert AuditEntry.objects.get(action="api_key_revoked").reason == "It leaked"
    assert "Revoked" in client.get("/keys/").content.decode()


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "x" * 101, "a\nb"])
def test_a_key_without_a_good_name_is_not_made(signed_in: SignIn, name: str) -> None:
    assert signed_in("admin").post("/keys/", {"name": name}).status_code == 422
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_nobody_else_sees_or_changes_them(signed_in: SignIn, role: str) -> None:
    account = Account.objects.create(name="default", livemode=False)
    client = signed_in(role)

    for address in ("/accounts/", "/keys/", reverse("account", args=[account.pk])):
        assert client.get(address).status_code == 403
    assert client.post("/keys/", {"name": "mine"}).status_code == 403
    pause = reverse("account-pause", args=[account.pk])
    assert client.post(pause, {"reason": "No"}).status_code == 403
    assert not ApiKey.objects.exists()
    assert not AuditEntry.objects.exists()
