"""Signing in at an identity provider, over HTTP, and what of its word is not believed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django import Settings

from operations.models import AuditEntry
from reconcile.config_sign_in import Oidc
from tests.integration.console.scenes import person

from .identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, identity_provider, key

pytestmark = pytest.mark.django_db(transaction=True)

BEGIN = "/sso/oidc/sso/login/"


@pytest.fixture
def provider(settings: Settings) -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        oidc = Oidc(
            issuer=provider.address, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, name="Acme"
        )
        sign_in = replace(settings.RECONCILE.sign_in, oidc=oidc)
        settings.RECONCILE = replace(settings.RECONCILE, sign_in=sign_in)
        settings.SOCIALACCOUNT_PROVIDERS = {
            "openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [oidc.app]}
        }
        yield provider


def _sign_in(client: Client, provider: IdentityProvider, state: str = "") -> Any:
    begun = client.post(BEGIN, {"next": "/money/"})
    assert begun.status_code == 302
    back = provider.authorize(begun["Location"])
    return client.get(back.split("&state=")[0] + f"&state={state}" if state else back)


def _is_out(client: Client) -> bool:
    return client.get("/")["Location"].startswith("/login/")


def test_who_the_provider_knows_comes_in_and_sees_nothing_without_a_role(
    provider: IdentityProvider,
) -> None:
    client = Client()
    assert "Sign in with Acme" in client.get("/login/").content.decode()

    assert _sign_in(client, provider)["Location"] == "/money/"

    page = client.get("/money/")
    assert page.status_code == 403
    assert "An administrator can give you the role." in page.content.decode()
    user = User.objects.get()
    assert (user.username, user.has_usable_password()) == ("maya", False)
    entry = AuditEntry.objects.get(action="signed_in")
    assert (entry.actor_id, entry.after) == (str(user.pk), {"methods": ["socialaccount"]})

    user.groups.add(Group.objects.get(name="viewer"))
    again = Client()
    _sign_in(again, provider)
    assert User.objects.count() == 1
    assert again.get("/money/").status_code == 200

    User.objects.update(is_active=False)
    assert client.get("/").status_code == 302
    third = Client()
    _sign_in(third, provider)
    assert _is_out(third)


def test_a_person_of_the_same_name_and_mail_is_not_taken_for_another(
    provider: IdentityProvider,
) -> None:
    maya = person("admin", "Maya Kline")
    User.objects.update(email="maya@example.com")
    provider.person |= {"email": "maya@example.com", "email_verified": "true"}
    client = Client()

    _sign_in(client, provider)

    assert User.objects.count() == 2
    assert client.session["_auth_user_id"] != str(maya.pk)
    assert client.get("/people/").status_code == 403


def _another_key(provider: IdentityProvider) -> None:
    provider.signing_key = key(1)


def _another_person_told(provider: IdentityProvider) -> None:
    provider.tells_of = provider.person | {"sub": "person-2"}


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "0" * 64},
        {"iss": "https://id.example"},
        {"aud": "another-client"},
        {"azp": "another-client"},
        {"exp": 1_700_000_000},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_a_token_that_says_something_else_lets_nobody_in(
    provider: IdentityProvider, claims: dict[str, Any]
) -> None:
    provider.claims = claims
    _is_refused(provider)


@pytest.mark.parametrize("missing", ["id_token", "nonce", "iss", "aud", "exp"])
def test_a_token_that_lacks_something_lets_nobody_in(
    provider: IdentityProvider, missing: str
) -> None:
    provider.left_out = {missing}
    _is_refused(provider)


@pytest.mark.parametrize("fault", [_another_key, _another_person_told])
def test_what_the_issuer_did_not_sign_lets_nobody_in(
    provider: IdentityProvider, fault: Any
) -> None:
    fault(provider)
    _is_refused(provider)


def _is_refused(provider: IdentityProvider) -> None:
    client = Client()
    response = _sign_in(client, provider)
    assert provider.tokens_given == 1
    assert response.status_code == 401
    assert "Not signed in" in response.content.decode()
    assert _is_out(client)
    assert not User.objects.exists()


def test_an_answer_to_another_state_or_in_another_session_asks_for_no_token(
    provider: IdentityProvider,
) -> None:
    client = Client()
    assert _sign_in(client, provider, state="0" * 16).status_code == 401
    mine = provider.authorize(client.post(BEGIN)["Location"])
    theirs = Client()
    assert theirs.get(mine).status_code == 401
    assert _is_out(client)
    assert _is_out(theirs)
    assert provider.tokens_given == 0
    # A state is good once.
    client.get(mine)
    assert client.get("/").status_code == 403
    assert client.get(mine).status_code == 401


def test_a_provider_that_is_another_or_silent_is_no_error_of_ours(
    provider: IdentityProvider, settings: Settings
) -> None:
    provider.issuer = "https://id.example"
    response = Client().post(BEGIN)
    assert response.status_code == 401
    assert "Not signed in" in response.content.decode()

    apps = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"]
    apps[0]["settings"]["server_url"] = "http://127.0.0.1:9"
    assert Client().post(BEGIN).status_code == 401


def test_it_begins_with_a_form_only(provider: IdentityProvider) -> None:
    assert Client().get(BEGIN).status_code == 200
    assert Client(enforce_csrf_checks=True).post(BEGIN).status_code == 403
