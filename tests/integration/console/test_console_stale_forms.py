"""A form whose token is stale changes nothing, and what was typed in it is not lost."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from operations.models import Operation

from .scenes import Scenes, fresh, person

pytestmark = pytest.mark.django_db(transaction=True)

HERE = {"Origin": "http://testserver"}
TYPED = {
    "outcome": "failed",
    "kind": "dashboard",
    "reference": "case 88",
    "note": "Seen in the dashboard: no refund.",
    "seen": "1.1",
}


def strict(role: str) -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person(role, "Dana Ruiz"))
    return client


def send(client: Client, operation: Operation, headers: dict[str, str]) -> Any:
    """The decision, as a browser sends it."""
    return client.post(
        reverse("close", args=[operation.pk]),
        urlencode(TYPED | {"revision": operation.revision}),
        content_type="application/x-www-form-urlencoded",
        headers=headers,
    )


def test_what_was_typed_waits_in_the_form(scenes: Scenes) -> None:
    operation = scenes.unknown()
    client, page = strict("operator"), reverse("close", args=[operation.pk])

    response = send(client, operation, HERE)

    assert response.status_code == 403
    shown = response.content.decode()
    assert "What you typed is kept and waits in the form." in shown
    assert f'href="{page}"' in shown
    assert fresh(operation).revision == operation.revision
    assert "Seen in the dashboard: no refund." in client.get(page).content.decode()


def test_without_a_session_the_sign_in_comes_first_and_keeps_it(scenes: Scenes) -> None:
    operation = scenes.unknown()

    response = send(Client(enforce_csrf_checks=True), operation, HERE)

    assert response.status_code == 403
    shown = response.content.decode()
    assert 'name="kept"' in shown
    assert "Your session has ended" in shown


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Referer": "https://elsewhere.example/http://testserver/"},
    ],
)
def test_what_another_site_wrote_is_not_kept(scenes: Scenes, headers: dict[str, str]) -> None:
    operation = scenes.unknown()
    client, page = strict("operator"), reverse("close", args=[operation.pk])

    response = send(client, operation, headers)

    assert response.status_code == 403
    assert "What you typed is kept" not in response.content.decode()
    assert "Seen in the dashboard" not in client.get(page).content.decode()


def test_a_form_that_is_not_kept_leads_back_to_its_page(scenes: Scenes) -> None:
    client = strict("operator")
    response = client.post(
        reverse("settings"),
        {"theme": "dark"},
        headers=HERE | {"Referer": "http://testserver/settings/?a=1"},
    )
    assert response.status_code == 403
    assert 'href="/settings/?a=1"' in response.content.decode()
    for referer in ("https://elsewhere.example/settings/", "javascript:alert(1)", "/\\elsewhere"):
        response = client.post(reverse("settings"), headers=HERE | {"Referer": referer})
        assert "Open the page again" not in response.content.decode()


def test_a_fragment_is_answered_with_the_notice_alone(scenes: Scenes) -> None:
    operation = scenes.unknown()
    response = strict("operator").post(
        reverse("look-up", args=[operation.pk]), headers=HERE | {"HX-Request": "true"}
    )
    assert response.status_code == 403
    assert response.content.decode().strip().startswith("<section")
