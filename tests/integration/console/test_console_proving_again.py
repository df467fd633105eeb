"""A decision above the limit wants a sign-in that is not long ago, and loses nothing on the way."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from operations.domain.bulk import BulkLimits
from operations.models import AuditEntry, BulkRun, Operation, Proposal
from operations.services.engine import default_engine

from .scenes import PASSWORD, Scenes, fresh
from .test_console_bulk import choose
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


def _just_now(client: Client) -> None:
    session = client.session
    session["session_began"] += 301
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


def _previewed(client: Client, *operations: Operation) -> BulkRun:
    choose(client, "close_failed", *(each.pk for each in operations))
    return BulkRun.objects.latest("pk")


def _begin(client: Client, run: BulkRun) -> Any:
    fields = {"count": run.acts, "typed": run.acts, "note": NOTE, "kind": "dashboard"}
    fields |= {"reference": "case 7731"}
    return _post(client, reverse("bulk-begin", args=[run.pk]), fields)


def test_a_run_that_is_too_large_for_one_person_asks_who_begins_and_who_approves_it(
    scenes: Scenes, signed_in: SignIn, settings: Settings
) -> None:
    settings.RECONCILE = replace(settings.RECONCILE, bulk_alone=BulkLimits(rows=1))
    default_engine.cache_clear()
    rows = [scenes.unknown(made=False, looked=1, ago=600, amount=900) for _ in range(2)]
    first, second = signed_in("operator", "Dana Ruiz"), signed_in("approver", "Priya Nair")
    run = _previewed(first, *rows)
    page = reverse("bulk-run", args=[run.pk])

    said = {"note": "I checked ten of them."}
    agree = reverse("bulk-approve", args=[run.pk])
    turns: list[tuple[Client, str, str, Callable[[], Any]]] = [
        (first, "previewed", NOTE, lambda: _begin(first, run)),
        (second, "waiting", said["note"], lambda: _post(second, agree, said)),
    ]
    for client, state, typed, decide in turns:
        _long_ago(client)
        assert decide()["Location"] == f"/login/again/?{urlencode({'next': page})}"
        run.refresh_from_db()
        assert run.state == state
        assert typed in client.get(page).content.decode()
        _just_now(client)
        assert decide()["Location"] == page
    run.refresh_from_db()
    assert run.state == "running"


@pytest.mark.parametrize(("amount", "asks"), [(11_200, True), (900, False)])
def test_a_run_with_one_amount_above_the_limit_asks_who_begins_it(
    scenes: Scenes, signed_in: SignIn, amount: int, asks: bool
) -> None:
    client = signed_in("operator")
    run = _previewed(client, scenes.unknown(made=False, looked=1, ago=600, amount=amount))
    _long_ago(client)

    assert _begin(client, run)["Location"].startswith("/login/again/") is asks
    run.refresh_from_db()
    assert run.state == ("previewed" if asks else "running")
