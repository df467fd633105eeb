"""A decision above the limit wants a sign-in that is not long ago, and loses nothing on the way."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from operations.models import AuditEntry, Operation, Proposal

from .scenes import PASSWORD, Scenes, fresh
from .test_console_closing import NOTE, form_of

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


def _post(client: Client, address: str, fields: dict[str, Any]) -> Any:
    return client.post(address, urlencode(fields), content_type="application/x-www-form-urlencoded")


def _close(client: Client, operation: Operation) -> Any:
    fields = {"outcome": "failed", "kind": "dashboard", "reference": "case 7731", "note": NOTE}
    fields |= {"step": "record", "typed": f"{operation.money.major()}"}
    fields |= form_of(client, operation)
    return _post(client, reverse("close", args=[operation.pk]), fields)


def _long_ago(client: Client) -> None:
    session = client.session
    session["session_began"] -= 301
    session.save()


def test_above_the_limit_the_password_is_asked_for_again_and_the_form_is_kept(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False, amount=11_200)
    client = signed_in("operator")
    user = User.objects.get()
    user.set_password(PASSWORD)
    user.save()
    client.force_login(user)
    _long_ago(client)
    address = reverse("close", args=[operation.pk])

    asked = _close(client, operation)
    assert asked["Location"] == f"/login/again/?{urlencode({'next': address})}"
    assert not Proposal.objects.exists()
    assert fresh(operation).revision == operation.revision

    assert client.get(asked["Location"]).status_code == 200
    _post(client, "/login/again/", {"password": "wrong", "next": address})
    assert _close(client, operation)["Location"].startswith("/login/again/")
    back = _post(client, "/login/again/", {"password": PASSWORD, "next": address})

    assert back["Location"] == address
    page = client.get(address).content.decode()
    assert NOTE in page
    assert "case 7731" in page
    assert _close(client, operation).status_code == 302
    assert Proposal.objects.count() == 1


def test_up_to_the_limit_nobody_is_asked_again(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False, amount=3_800)
    client = signed_in("operator")
    _long_ago(client)

    assert "again" not in _close(client, operation)["Location"]
    assert Proposal.objects.count() == 1


@pytest.mark.parametrize("answer", ["approve", "reject"])
def test_the_second_person_is_asked_again_before_agreeing_to_a_large_one(
    scenes: Scenes, signed_in: SignIn, answer: str
) -> None:
    operation = scenes.unknown(made=False, amount=11_200)
    proposal = scenes.proposed(operation)
    client = signed_in("approver")
    _long_ago(client)
    entries = AuditEntry.objects.count()
    fields = {"revision": fresh(operation).revision, "seen": "1.1", "note": "I agree."}

    response = _post(client, reverse(answer, args=[operation.pk, proposal.pk]), fields)

    if answer == "approve":
        assert response["Location"].startswith("/login/again/")
        assert AuditEntry.objects.count() == entries
        assert fresh(operation).status == "unknown"
    else:
        # It moves nothing.
        assert fresh(operation).status == "unknown"
        assert AuditEntry.objects.count() > entries
