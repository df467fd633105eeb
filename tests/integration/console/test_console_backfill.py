"""Fetching events from the console: who may, what is shown after a reload, what is audited."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from operations.jobs import handle_waiting_events
from operations.models import AuditEntry, BackfillRun
from operations.services.backfilling import fetch_events
from operations.services.engine import default_engine

from .scenes import Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


def work() -> BackfillRun:
    """What the worker does."""
    run = BackfillRun.objects.latest("pk")
    fetch_events(engine=default_engine(), run_id=run.pk, is_over=lambda: False)
    handle_waiting_events()
    run.refresh_from_db()
    return run


def page(client: Client) -> str:
    return client.get(reverse("backfill")).content.decode()


def test_an_operator_starts_it_and_sees_what_it_came_to(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown()
    client = signed_in("operator", "Dana Ruiz")

    assert client.post(reverse("backfill-start"), {"since": "6h"}).status_code == 302
    shown = page(client)
    assert "Running" in shown
    assert 'hx-trigger="every 2s"' in shown.partition('id="runs"')[2]

    work()

    shown = page(client)
    assert fresh(operation).status == "succeeded"
    assert "Done" in shown
    assert "Matched" in shown
    assert 'hx-trigger="every 2s"' not in shown.partition('id="runs"')[2]
    entry = AuditEntry.objects.get(action="backfill_started")
    assert (entry.actor_name, entry.actor_address) == ("Dana Ruiz", "127.0.0.1")


def test_a_run_that_was_stopped_goes_on_from_the_page(scenes: Scenes, signed_in: SignIn) -> None:
    scenes.unknown()
    scenes.control.fault("403", endpoint="events.list")
    client = signed_in("admin")
    client.post(reverse("backfill-start"), {"since": "6h"})
    run = work()
    assert "Go on where it stopped" in page(client)

    address = reverse("backfill-go-on", args=[run.pk])
    assert client.post(address).status_code == 302
    assert work().state == "done"

    assert client.post(address).status_code == 409
    assert AuditEntry.objects.filter(action="backfill_resumed").count() == 1


@pytest.mark.usefixtures("scenes")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"since": "soon"}, "neither a time"),
        ({"since": "31d"}, "last 30 days only"),
        ({"since": "6h", "account": "nobody"}, "There is no account of this name."),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(
    signed_in: SignIn, given: dict[str, str], words: str
) -> None:
    response = signed_in("operator").post(reverse("backfill-start"), given)

    assert response.status_code == 400
    assert words in response.content.decode()
    assert f'value="{given["since"]}"' in response.content.decode()
    assert not BackfillRun.objects.exists()


@pytest.mark.usefixtures("scenes")
def test_a_viewer_sees_the_runs_and_starts_none(signed_in: SignIn) -> None:
    signed_in("operator").post(reverse("backfill-start"), {"since": "6h"})
    client = signed_in("viewer")

    assert "Fetch events</button>" not in page(client)
    assert client.post(reverse("backfill-start"), {"since": "6h"}).status_code == 403
    run = BackfillRun.objects.get()
    assert client.post(reverse("backfill-go-on", args=[run.pk])).status_code == 403
    assert AuditEntry.objects.filter(action__startswith="backfill").count() == 1
