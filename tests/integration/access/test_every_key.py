"""Every kind of key tries every address of the API by every method."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.http.response import HttpResponseBase

from operations.models import Account, ApiKey
from operations.services.engine import default_engine
from operations.services.keys import KeyScope, create_api_key
from tests.browser.world import World
from tests.integration.console.scenes import JOB

from .addresses import METHODS, Address, every_address
from .expectations import API
from .test_every_address import _canaries as canaries
from .test_every_address import _check_silence as check_silence
from .test_every_address import _state as state
from .test_every_address import quiet, scenes, world
from .walking import Walker

__all__ = ["quiet", "scenes", "world"]

pytestmark = pytest.mark.django_db(transaction=True)

_UNKNOWN = "api/v1/<path:unknown>"

#: What a key may be, and what it then gets for reading and for everything else: a status, or None
#: where it depends on what is asked.
_KEYS: dict[str, tuple[int | None, int | None]] = {
    "of everything": (None, None),
    "of here": (None, None),
    "of elsewhere": (None, None),
    "only reads": (None, 403),
    "revoked": (401, 401),
    "expired": (401, 401),
}


def test_every_key_tries_everything(world: World, quiet: None) -> None:
    given = world | dict.fromkeys(("group", "unknown", "subscription_id"), "x")
    here = Account.objects.get(pk=world["account_id"])
    elsewhere = Account.objects.create(name="elsewhere", livemode=False, provider_account="acct_2")
    keys = _make_keys(here, elsewhere)
    shown = canaries(world)
    before = state()
    for name, secret in keys.items():
        walker = Walker(secret=secret)
        for route in API:
            address = next(found for found in every_address() if found.route == route)
            for method in METHODS:
                where = f"{method} {route} by a key: {name}"
                response = walker.ask(method, address.path(given), kind="application/json")
                _check_key(response, name, address, method, where)
                if name not in ("of everything", "of here", "only reads"):
                    check_silence(response, shown, where)
    # An empty wish is none.
    assert state() == before


def _make_keys(here: Account, elsewhere: Account) -> dict[str, str]:
    later = datetime.now(UTC) + timedelta(days=1)
    scopes = {
        "of everything": KeyScope(),
        "of here": KeyScope(accounts=(here,)),
        "of elsewhere": KeyScope(accounts=(elsewhere,)),
        "only reads": KeyScope(may_write=False),
        "revoked": KeyScope(),
        "expired": KeyScope(expires_at=later),
    }
    engine, secrets = default_engine(), {}
    for name, scope in scopes.items():
        made_by = replace(engine, clock=lambda: later - timedelta(days=9))
        key, secrets[name] = create_api_key(
            engine=made_by if name == "expired" else engine,
            name=name,
            actor=JOB,
            scope=replace(scope, expires_at=later - timedelta(days=2))
            if name == "expired"
            else scope,
        )
        if name == "revoked":
            ApiKey.objects.filter(pk=key.pk).update(revoked_at=datetime.now(UTC))
    return secrets


def _check_key(
    response: HttpResponseBase, name: str, address: Address, method: str, where: str
) -> None:
    status = response.status_code
    if method not in API[address.route]:
        assert status == (404 if address.route == _UNKNOWN else 405), (where, status)
        return
    wanted = _KEYS[name][method != "GET"]
    if wanted is not None:
        assert status == wanted, (where, status)
        return
    assert status < 500, where
    assert status != 401, where
    if address.arguments == ("operation_id",):
        seen = (404,) if name == "of elsewhere" else (200, 202)
        assert status in seen, (where, status)
