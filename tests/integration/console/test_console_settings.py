"""A person's own settings: what they change, for whom, and at what cost."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from operations.models import AuditEntry, UserSettings

from .scenes import Scenes

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]
WANTED = {
    "time_zone": "Asia/Kolkata",
    "language": "de",
    "theme": "dark",
    "dense": "on",
}


def keep(client: Client, wanted: dict[str, str]) -> Any:
    """Send the form as a browser does."""
    form = "application/x-www-form-urlencoded"
    return client.post("/settings/", urlencode(wanted), content_type=form)


def test_settings_hold_from_the_next_page_on(signed_in: SignIn) -> None:
    client = signed_in("viewer")
    before = client.get("/").content.decode()
    assert "Times are UTC." in before
    assert '<html lang="en"' in before

    assert keep(client, WANTED)["Location"] == "/settings/"

    page = client.get("/").content.decode()
    assert '<html lang="de" data-theme="dark" data-density="dense" data-keys="off"' in page
    assert "Asia/Kolkata" in page
    assert timezone.get_current_timezone_name() == "UTC"
    entry = AuditEntry.objects.get(action="settings_changed")
    assert entry.after["time_zone"] == "Asia/Kolkata"
    assert entry.before["language"] == ""


def test_times_are_the_readers_and_utc_on_demand(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown()
    client = signed_in("viewer")
    UserSettings.objects.create(user=User.objects.get(), time_zone="Asia/Kolkata")
    address = f"/operations/{operation.pk}/"
    moment = operation.created_at.astimezone(UTC)

    own = client.get(address).content.decode()
    utc = client.get(f"{address}?times=utc").content.decode()

    assert f"{timezone.localtime(moment, timezone.get_fixed_timezone(330)):%H:%M:%S}" in own
    assert f'title="{moment:%Y-%m-%d %H:%M:%S} UTC"' in own
    assert 'href="?times=utc">Show UTC</a>' in own
    assert f">{moment:%H:%M:%S}</time>" in utc
    assert 'href="?">Show Asia/Kolkata</a>' in utc


def test_nobody_elses_pages_change(signed_in: SignIn) -> None:
    keep(signed_in("viewer"), WANTED)

    assert "data-theme" not in signed_in("operator").get("/").content.decode()


def test_they_cost_no_query(signed_in: SignIn) -> None:
    client = signed_in("viewer")
    with CaptureQueriesContext(connection) as without:
        client.get("/inbox/")
    UserSettings.objects.create(user=User.objects.get(), theme="dark")
    with CaptureQueriesContext(connection) as having:
        client.get("/inbox/")

    assert len(without) == len(having)


@pytest.mark.parametrize(
    ("name", "value"),
    [("time_zone", "Mars/Base"), ("language", "tlh"), ("theme", "pink"), ("time_zone", "a\x00b")],
)
def test_what_is_no_choice_is_refused(signed_in: SignIn, name: str, value: str) -> None:
    response = keep(signed_in("viewer"), {**WANTED, name: value})

    assert response.status_code == 422
    assert not UserSettings.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("wrong", ["theme = 'pink'", "language = 'tlh'"])
def test_the_database_refuses_it_too(signed_in: SignIn, wrong: str) -> None:
    signed_in("viewer")
    UserSettings.objects.create(user=User.objects.get())

    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE operations_usersettings SET {wrong}")


def test_a_zone_that_is_gone_is_utc(signed_in: SignIn) -> None:
    client = signed_in("viewer")
    UserSettings.objects.create(user=User.objects.get(), time_zone="Mars/Base")

    assert "Times are UTC." in client.get("/").content.decode()
    assert datetime.now(UTC).tzinfo is UTC
