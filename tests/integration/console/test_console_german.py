"""The console in German: the whole page, money and numbers too."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from operations import jobs
from operations.models import UserSettings

from .scenes import Scenes

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_german_reader_gets_german_pages(
    scenes: Scenes, signed_in: Callable[..., Client]
) -> None:
    operation = scenes.unknown(amount=123_450)
    jobs.sum_up()
    client = signed_in("viewer")
    UserSettings.objects.create(user=User.objects.get(), language="de")

    page = client.get(f"/operations/{operation.pk}/").content.decode()
    insights = client.get("/insights/").content.decode()

    assert "Noch weiß niemand, ob sich" in page
    assert "1.234,50\N{NO-BREAK SPACE}$" in page
    assert "<h1>Einblicke</h1>" in insights
    assert '<p class="kpi__value">1,00</p>' in insights


def test_a_browser_that_asks_for_german_signs_in_in_german() -> None:
    page = Client().get("/login/", headers={"Accept-Language": "de"}).content.decode()

    assert '<html lang="de"' in page
    assert "Passwort" in page
