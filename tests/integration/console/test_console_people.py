"""Administrators keep people: each change has a reason, an entry, and holds at once."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from operations.models import Account, AuditEntry

from .scenes import PASSWORD, person

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


def _change(client: Client, user: User, **fields: Any) -> Any:
    return client.post(reverse("person-change", args=[user.pk]), {"reason": "Needed"} | fields)


def _sign_in(user: User, password: str = PASSWORD) -> Client:
    client = Client()
    client.post(
        "/login/",
        urlencode({"username": user.username, "password": password}),
        content_type="application/x-www-form-urlencoded",
    )
    return client


def test_somebody_is_added_with_a_password_that_is_shown_once(signed_in: SignIn) -> None:
    admin = signed_in("admin", "Ada Admin")
    fields = {"name": "dana", "first_name": "Dana", "last_name": "Ruiz", "reason": "Is new"}

    page = admin.post("/people/", fields).content.decode()
    found = re.search(r'id="secret">([\w-]+)<', page)
    assert found
    dana = User.objects.get(username="dana")
    assert found[1] not in admin.get("/people/").content.decode()
    assert _sign_in(dana, found[1]).get("/").status_code == 403
    assert AuditEntry.objects.get(action="person_added").reason == "Is new"
    assert admin.post("/people/", fields).status_code == 409


def test_a_role_at_one_account_is_given_and_taken(signed_in: SignIn) -> None:
    admin, dana = signed_in("admin", "Ada Admin"), person("", "Dana Ruiz")
    account = Account.objects.create(name="berlin", livemode=False)
    client = Client()
    client.force_login(dana)

    assert _change(admin, dana, what="give", role="operator", account=account.pk).status_code == 302
    assert client.get("/").status_code == 200
    assert "operator" in admin.get(reverse("person", args=[dana.pk])).content.decode()
    entry = AuditEntry.objects.get(action="role_given")
    assert entry.before["at_account"] == []
    assert entry.after["at_account"] == ["operator at berlin"]
    again = _change(admin, dana, what="give", role="operator", account=account.pk)
    assert again.status_code == 409

    assert _change(admin, dana, what="take", role="operator", account=account.pk).status_code == 302
    assert client.get("/").status_code == 403


def test_who_is_disabled_is_out_at_once_and_stays_out_of_old_sessions(signed_in: SignIn) -> None:
    admin, dana = (
        signed_in("admin", "Ada Admin"),
        person("operator", "Dana Ruiz", password=PASSWORD),
    )
    session = _sign_in(dana)
    assert session.get("/").status_code == 200

    assert _change(admin, dana, what="disable", reason="").status_code == 422
    assert session.get("/").status_code == 200
    _change(admin, dana, what="disable", reason="Has left")
    assert session.get("/").status_code == 302
    assert _sign_in(dana).get("/").status_code == 302

    _change(admin, dana, what="enable")
    assert session.get("/").status_code == 302
    assert _sign_in(dana).get("/").status_code == 200
    entry = AuditEntry.objects.get(action="person_disabled")
    assert (entry.actor_name, entry.reason) == ("Ada Admin", "Has left")


def test_nobody_changes_what_they_may_do_themselves(signed_in: SignIn) -> None:
    admin = signed_in("admin")
    own = User.objects.get()

    assert _change(admin, own, what="take", role="admin").status_code == 409
    assert own.groups.filter(name="admin").exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_nobody_else_sees_or_changes_people(signed_in: SignIn, role: str) -> None:
    client, dana = signed_in(role), person("", "Dana Ruiz")

    assert client.get("/people/").status_code == 403
    assert _change(client, dana, what="give", role="admin").status_code == 403
    assert not dana.groups.exists()
