"""Everybody tries every address by every method. An address that nobody listed fails."""

import logging
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import path
from pytest_django import Settings

from operations.models import Account, AuditEntry, Operation
from tests.browser.world import World, make_world
from tests.integration.console.scenes import Scenes, scenes_on

from .addresses import METHODS, Address, every_address
from .expectations import ADMIN, API, CONSOLE, OWN, PUBLIC, Expected, Reach
from .people import WALKERS, make_walkers

pytestmark = pytest.mark.django_db(transaction=True)

#: What stands for the arguments of an address, where it isn't what the argument usually is.
_OTHERS = {
    "receipt": {"operation_id": "settled_id"},
    "receipt-of": {"operation_id": "settled_id"},
    "approve": {"operation_id": "waiting_id"},
    "reject": {"operation_id": "waiting_id"},
}


@pytest.fixture
def scenes(settings: Settings) -> Iterator[Scenes]:
    with scenes_on(settings) as scenes:
        yield scenes


@pytest.fixture
def world(scenes: Scenes, settings: Settings) -> World:
    found = make_world(scenes, settings)
    found |= {
        "anchor": found["attempt"],
        "number": found["decision"],
        "orphan_id": found["orphan_event_id"],
        "view_id": 1,
        "bulk_id": found["bulk_ended_id"],
        "key_id": 1,
        "pk": 1,
        "person_id": User.objects.latest("pk").pk,
    }
    return found


@pytest.fixture
def quiet() -> Iterator[None]:
    """A thousand refusals would be told with their tracebacks."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def unlisted(addresses: list[Address]) -> list[str]:
    """The addresses that no table knows."""
    known = {*CONSOLE, *OWN, *PUBLIC}
    return sorted(
        address.key
        for address in addresses
        if address.key not in known
        and address.route not in API
        and not address.route.startswith(ADMIN)
    )


def test_every_address_is_listed_and_every_listed_one_is_there() -> None:
    addresses = list(every_address())

    assert unlisted(addresses) == []
    there = {address.key for address in addresses} | {address.route for address in addresses}
    assert sorted({*CONSOLE, *OWN, *PUBLIC, *API} - there) == []


def test_an_address_that_nobody_listed_is_found() -> None:
    planted = path("operations/<uuid:operation_id>/erase/", lambda request: HttpResponse())

    assert unlisted(list(every_address([planted]))) == ["operations/<uuid:operation_id>/erase/"]


def test_everybody_tries_everything(world: World, quiet: None) -> None:
    here = Account.objects.get(pk=world["account_id"])
    elsewhere = Account.objects.create(name="elsewhere", livemode=False, provider_account="acct_2")
    walkers = make_walkers(here, elsewhere)
    shown = _canaries(world)
    before = _state()
    # First those who may change nothing, of whom nothing may be left.
    # Operations of the API share an address.
    addresses = {address.route: address for address in every_address()}.values()
    order = sorted(walkers, key=lambda name: len(WALKERS[name][1]))
    for name in order:
        for address in addresses:
            for method in METHODS:
                _try(walkers[name], name, address, method, world, shown)
        if name in ("anonymous", "disabled", "nobody", "elsewhere"):
            assert _state() == before, name


def _try(
    client: Client, name: str, address: Address, method: str, world: World, shown: list[str]
) -> None:
    if address.key in PUBLIC:
        return
    where = f"{method} {address.route} as {name}"
    expected = CONSOLE.get(address.key)
    if not _is_worth_it(address, name, method):
        return
    given = world | {argument: world[key] for argument, key in _OTHERS.get(address.key, {}).items()}
    if address.route in API:
        given |= dict.fromkeys(("operation_id", "group", "unknown", "subscription_id"), "x")
    elif address.route.startswith(ADMIN):
        given |= {"object_id": "1", "app_label": "operations", "url": "x", "content_type_id": "1"}
    kind = "application/json" if address.route in API else "application/octet-stream"
    response = client.generic(method, address.path(given), "{}", kind)
    if address.key in OWN:
        assert response.status_code < 500, where
        if name in ("anonymous", "disabled"):
            assert response.status_code in (302, 403, 404, 405), where
    elif address.route in API:
        # A session opens nothing there.
        assert response.status_code == (401 if method in API[address.route] else _refused(address))
    elif address.route.startswith(ADMIN):
        _check_admin(response, name, address, where)
    else:
        assert expected is not None, where
        _check_console(response, name, expected, method, where)
    if name in ("anonymous", "disabled", "nobody", "elsewhere"):
        _check_silence(response, shown, where)


def _is_worth_it(address: Address, name: str, method: str) -> bool:
    """Whether this person and method are told apart there at all, by how the address is made."""
    if address.key in CONSOLE:
        # A method that it does not take is refused before it is asked who is there.
        return method in CONSOLE[address.key].methods or name == "anonymous"
    if address.key in OWN:
        return method in ("GET", "POST") and name in ("anonymous", "disabled", "elsewhere")
    if address.route in API:
        # No session is looked at.
        return name in ("anonymous", "admin")
    # One guard stands before all of Django's admin, whatever the method.
    return (method, name) in {("GET", "anonymous"), ("GET", "elsewhere"), ("POST", "anonymous")}


def _refused(address: Address) -> int:
    return 404 if address.route == "api/v1/<path:unknown>" else 405


def _check_admin(response: HttpResponseBase, name: str, address: Address, where: str) -> None:
    if address.route == "admin/login/" and name not in ("anonymous", "disabled"):
        assert response.status_code == 403, where
        return
    assert response.status_code == 302, where
    assert response.headers["Location"].startswith(("/admin/login/", "/login/")), where


def _check_console(
    response: HttpResponseBase, name: str, expected: Expected, method: str, where: str
) -> None:
    status = response.status_code
    if method not in expected.methods:
        assert status == 405, where
        return
    everywhere, at_this = WALKERS[name]
    act = expected.to_post if method == "POST" and expected.to_post else expected.act
    if name in ("anonymous", "disabled"):
        assert status in (302, 401), where
        if status == 302:
            assert response.headers["Location"].startswith("/login/"), where
    elif name == "elsewhere":
        narrowed_ok = expected.reach is Reach.NARROWED and act in WALKERS["here"][1]
        if expected.reach is Reach.OBJECT:
            assert status == 404, where
        else:
            assert (status != 403) == narrowed_ok, (where, status)
    else:
        acts = everywhere if expected.reach is Reach.SITE else at_this
        assert (status not in (401, 403, 404, 405)) == (act in acts), (where, status)
        if act not in acts:
            assert status == 403, where
    assert status < 500, where


def _check_silence(response: HttpResponseBase, shown: list[str], where: str) -> None:
    text = b"".join(response) if response.streaming else response.content  # type: ignore[attr-defined]
    told = [canary for canary in shown if canary.encode() in text]
    assert told == [], where


def _canaries(world: World) -> list[str]:
    """What is only to be seen by people of the account."""
    rows = Operation.objects.select_related("payment")
    every = {
        text
        for row in rows
        for text in (str(row.pk), row.order_id, row.provider_object_id, row.payment.charge)
        # Shorter ones turn up by chance, in a token or a picture.
        if re.fullmatch(r"[\w-]{12,}", text)
    } | {"support-agent"}
    # Ids that stand in the address itself are given back in it.
    asked = {str(value) for value in world.values()}
    return sorted(every - asked)


def _state() -> Any:
    return (
        Counter(Operation.objects.values_list("status", "revision", "lookups_made")),
        # Their own settings are everybody's to change.
        AuditEntry.objects.exclude(action="settings_changed").count(),
    )
