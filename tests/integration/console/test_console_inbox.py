"""The page of the inbox: figures, what is stuck, and replay."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.test import Client

from operations.models import AuditEntry, InboxItem
from tests.integration.deliveries import deliver, event
from tests.integration.stage import Stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("served")]

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def viewer(signed_in: Callable[[str], Client]) -> Client:
    return signed_in("viewer")


@pytest.fixture
def operator(signed_in: Callable[[str], Client]) -> Client:
    return signed_in("operator")


@pytest.fixture
def two_stuck(served: Stage) -> None:
    for event_id in ("evt_a", "evt_b"):
        deliver(event(event_id))
    InboxItem.objects.update(stuck_at=NOW, failures=16, error="<b>out of order</b>")


@pytest.mark.usefixtures("two_stuck")
def test_page_shows_what_is_stuck_and_why(viewer: Client) -> None:
    page = viewer.get("/inbox/").content.decode()

    assert "evt_a" in page
    assert "&lt;b&gt;out of order&lt;/b&gt;" in page
    assert "Replay all" not in page


def test_page_without_anything_says_so(viewer: Client) -> None:
    assert "Nothing is stuck" in viewer.get("/inbox/").content.decode()


@pytest.mark.usefixtures("two_stuck")
def test_one_is_replayed_with_a_reason_and_an_audit_entry(operator: Client) -> None:
    one, other = InboxItem.objects.order_by("event")

    answer = operator.post(f"/inbox/{one.pk}/replay/", {"reason": "The disk has room again."})

    assert answer.status_code == 302
    one.refresh_from_db()
    other.refresh_from_db()
    assert (one.stuck_at, one.failures, other.stuck_at) == (None, 0, NOW)
    entry = AuditEntry.objects.get(action="events_replayed")
    assert (entry.after["events"], entry.reason) == (["evt_a"], "The disk has room again.")


@pytest.mark.usefixtures("two_stuck")
def test_all_are_replayed(operator: Client) -> None:
    assert operator.post("/inbox/replay/", {"reason": "Fixed."}).status_code == 302
    assert not InboxItem.objects.filter(stuck_at__isnull=False).exists()
    assert operator.post("/inbox/replay/", {"reason": "Fixed."}).status_code == 409


@pytest.mark.usefixtures("two_stuck")
def test_replay_needs_a_reason_and_the_right(operator: Client, viewer: Client) -> None:
    assert operator.post("/inbox/replay/", {"reason": " "}).status_code == 422
    assert viewer.post("/inbox/replay/", {"reason": "Fixed."}).status_code == 403
    assert Client().post("/inbox/replay/", {"reason": "Fixed."}).status_code == 302
    assert InboxItem.objects.filter(stuck_at=NOW).count() == 2
    assert not AuditEntry.objects.filter(action="events_replayed").exists()
