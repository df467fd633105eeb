"""Signing in and out: by password, by a second factor, not too often, and not for ever."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from allauth.core.internal.ratelimit import parse_rates
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.mfa.utils import decrypt
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from operations.models import AuditEntry
from tests.integration.console.scenes import PASSWORD, person

pytestmark = pytest.mark.django_db(transaction=True)

START = datetime(2030, 1, 1, 9, 0, tzinfo=UTC)


def _at(address: str) -> Client:
    return Client(REMOTE_ADDR=address)


def _sign_in(client: Client, name: str, password: str = PASSWORD, **more: str) -> Any:
    return _post(client, "/login/", {"username": name, "password": password} | more)


def _post(client: Client, address: str, fields: dict[str, str]) -> Any:
    """As a browser does: what is no file is no multipart either."""
    kind = "application/x-www-form-urlencoded"
    return client.post(address, urlencode(fields), content_type=kind)


def _code(user: User, moment: datetime) -> str:
    secret = decrypt(Authenticator.objects.get(user=user, type="totp").data["secret"])
    return str(format_hotp_value(hotp_value(secret, int(moment.timestamp()) // 30)))


def _policy(settings: Settings, **changes: Any) -> None:
    config = settings.RECONCILE
    settings.RECONCILE = replace(config, sign_in=replace(config.sign_in, **changes))


def _actions() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_name_and_password_let_in_and_it_is_written_down() -> None:
    person("operator", password=PASSWORD)
    client = Client(REMOTE_ADDR="10.1.2.3")

    page = client.get("/login/").content.decode()
    assert 'name="username"' in page
    assert 'name="password"' in page
    assert _sign_in(client, "operator", "wrong").status_code == 200
    response = _sign_in(client, "operator", next="/money/")

    assert response["Location"] == "/money/"
    assert client.get("/").status_code == 200
    client.post("/logout/")
    assert client.get("/").status_code == 302
    assert _actions() == ["sign_in_failed", "signed_in", "signed_out"]
    entry = AuditEntry.objects.get(action="signed_in")
    assert (entry.actor_name, entry.actor_address) == ("Operator Tester", "10.1.2.3")
    assert entry.after == {"methods": ["password"]}


def test_what_a_stranger_typed_as_a_name_is_not_kept() -> None:
    _sign_in(Client(), "hunter2-my-password", "x")

    entry = AuditEntry.objects.get(action="sign_in_failed")
    assert entry.actor_id == "nobody"
    assert "hunter2" not in str(entry.__dict__)


def test_after_ten_wrong_passwords_the_right_one_does_not_help_either() -> None:
    person("operator", password=PASSWORD)
    for _ in range(10):
        _sign_in(_at("10.9.9.9"), "operator", "wrong")

    client = _at("10.9.9.9")
    assert "Too many tries" in _sign_in(client, "Operator").content.decode()
    assert "Too many tries" in _sign_in(client, "operator").content.decode()
    assert client.get("/").status_code == 302
    person("viewer", password=PASSWORD)
    assert _sign_in(_at("10.9.9.9"), "viewer").status_code == 302


def test_a_stranger_locks_out_themselves_and_not_the_person() -> None:
    person("operator", password=PASSWORD)
    for _ in range(12):
        _sign_in(_at("10.9.9.9"), "operator", "wrong")

    assert _sign_in(_at("10.1.1.1"), "operator").status_code == 302


def test_many_addresses_reach_a_ceiling_which_does_not_hold_where_the_person_was_before(
    settings: Settings,
) -> None:
    few = {"login_failed": "30/m/ip,3/5m/key", "login_failed_name": "6/h/key"}
    settings.ACCOUNT_RATE_LIMITS = few
    person("operator", password=PASSWORD)
    assert _sign_in(_at("10.1.1.1"), "operator").status_code == 302
    for number in range(9):
        _sign_in(_at(f"10.9.9.{number // 3}"), "operator", "wrong")

    assert "Too many tries" in _sign_in(_at("10.2.2.2"), "operator").content.decode()
    assert _sign_in(_at("10.1.1.1"), "operator").status_code == 302
    # That a name is known there lets nobody guess on.
    for _ in range(4):
        _sign_in(_at("10.1.1.1"), "operator", "wrong")
    assert "Too many tries" in _sign_in(_at("10.1.1.1"), "operator").content.decode()


def test_one_address_alone_never_reaches_the_ceiling_of_a_name(settings: Settings) -> None:
    rates = settings.ACCOUNT_RATE_LIMITS
    pair = min(
        rate.amount * 3_600 / rate.duration
        for rate in parse_rates(rates["login_failed"])
        if rate.per == "key"
    )
    (name,) = parse_rates(rates["login_failed_name"])
    assert name.amount * 3_600 / name.duration >= 10 * pair


def test_a_stranger_cannot_sign_up() -> None:
    for name in ("account_signup", "socialaccount_signup", "account_reset_password"):
        assert Client().get(reverse(name)).status_code == 404
        assert _post(Client(), reverse(name), {"username": "me"}).status_code == 404
    assert not User.objects.exists()


def test_an_approver_sees_nothing_before_a_second_factor_is_there(settings: Settings) -> None:
    _policy(settings, require_mfa=True)
    approver = person("approver", password=PASSWORD)
    client = Client()
    with time_machine.travel(START, tick=False) as clock:
        _sign_in(client, "approver")
        for address in ("/", "/proposals/", "/settings/"):
            assert client.get(address)["Location"] == "/you/second-factor/?needed=1"
        assert (
            "Your role needs a second factor"
            in client.get("/you/second-factor/?needed=1").content.decode()
        )

        page = client.get(reverse("mfa_activate_totp")).content.decode()
        assert "data:image/svg+xml" in page
        assert "style=" not in page
        found = re.search(r'id="authenticator_secret"[^>]*value="(\w+)"', page)
        assert found
        code = format_hotp_value(hotp_value(found[1], int(START.timestamp()) // 30))
        _post(client, reverse("mfa_activate_totp"), {"code": code})
        assert found[1] not in str(Authenticator.objects.get(type="totp").data)
        assert client.get("/").status_code == 200

        # The next time both are asked for.
        clock.shift(timedelta(minutes=2))
        again = Client()
        assert _sign_in(again, "approver")["Location"] == reverse("mfa_authenticate")
        assert again.get("/")["Location"].startswith("/login/")
        _post(again, reverse("mfa_authenticate"), {"code": "000000"})
        assert again.get("/")["Location"].startswith("/login/")
        moment = START + timedelta(minutes=2)
        _post(again, reverse("mfa_authenticate"), {"code": _code(approver, moment)})
        assert again.get("/").status_code == 200
    assert "second_factor_added" in _actions()
    assert AuditEntry.objects.filter(action="signed_in").latest("pk").after == {
        "methods": ["password", "mfa"]
    }


def test_a_viewer_and_an_operator_need_no_second_factor(settings: Settings) -> None:
    _policy(settings, require_mfa=True)
    for role in ("viewer", "operator"):
        person(role, password=PASSWORD)
        client = Client()
        _sign_in(client, role)
        assert client.get("/").status_code == 200


def test_a_session_ends_when_it_is_left_alone_and_after_a_day_of_work(settings: Settings) -> None:
    _policy(settings, session_idle_s=600, session_age_s=3_600)
    person("operator", password=PASSWORD)
    with time_machine.travel(START, tick=False) as clock:
        client = Client()
        _sign_in(client, "operator")
        for _ in range(6):
            clock.shift(timedelta(seconds=590))
            assert client.get("/").status_code == 200
        clock.shift(timedelta(seconds=61))
        assert client.get("/").status_code == 302

        _sign_in(client, "operator")
        clock.shift(timedelta(seconds=601))
        assert client.get("/").status_code == 302


def test_a_new_password_ends_the_other_sessions() -> None:
    person("operator", password=PASSWORD)
    here, there = Client(), Client()
    for client in (here, there):
        _sign_in(client, "operator")

    fresh = "another long password"
    _post(
        here,
        reverse("account_change_password"),
        {"oldpassword": PASSWORD, "password1": fresh, "password2": fresh},
    )

    assert there.get("/").status_code == 302
    assert _sign_in(Client(), "operator", fresh).status_code == 302
    assert "password_changed" in _actions()


@pytest.mark.parametrize(
    "name",
    ["mfa_index", "account_change_password", "usersessions_list", "mfa_add_webauthn"],
)
def test_what_one_signs_in_with_has_pages_that_keep_the_policy_of_the_browser(name: str) -> None:
    person("operator", password=PASSWORD)
    client = Client()
    _sign_in(client, "operator")

    response = client.get(reverse(name))
    page = response.content.decode()
    assert response.status_code == 200
    assert "console.css" in page
    assert " style=" not in page
    assert "onclick" not in page
    inline = re.findall(r"<script(?![^>]*\bsrc=)([^>]*)>", page)
    assert all('type="application/json"' in kind for kind in inline)
