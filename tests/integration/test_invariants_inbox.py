"""What the database refuses of the inbox and of what became of the events in it."""

from datetime import timedelta
from typing import Any

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_an_event_waits_once(rows: Rows) -> None:
    event = rows.item()
    with refused(rows, by="operations_inboxitem_pkey", sqlstate=UNIQUE):
        rows.item(event)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("inbox_item_handling_known", {"handling": "lost"}),
        ("inbox_item_claim_holds", {"claimed_until": NOW + timedelta(seconds=1)}),
        ("inbox_item_stuck_says_why", {"stuck_at": NOW}),
    ],
)
def test_an_item_says_where_it_stands(rows: Rows, name: str, columns: dict[str, Any]) -> None:
    event = rows.item()
    with refused(rows, by=name, sqlstate=CHECK):
        rows.update("inboxitem", event, key="event_id", **columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("event_id", 0),
        ("filed_at", NOW + timedelta(seconds=1)),
        ("provider_event_id", "evt_x"),
        ("event_account", "acct_x"),
        ("received_at", NOW + timedelta(seconds=1)),
    ],
)
def test_an_item_stays_with_its_event(rows: Rows, column: str, value: Any) -> None:
    event = rows.item()
    with refused(rows, by="inbox_item_frozen"):
        rows.update("inboxitem", event, key="event_id", **{column: value})


def test_no_item_leaves_before_its_event_is_handled(rows: Rows) -> None:
    first, second = rows.item(), rows.item()
    rows.handling(first)
    with refused(rows, by="inbox_item_handled_before_it_leaves"):
        rows.text("DELETE FROM operations_inboxitem")
    with refused(rows, by="inbox_item_handled_before_it_leaves"):
        rows.text("DELETE FROM operations_inboxitem WHERE event_id = %s", second)
    rows.text("DELETE FROM operations_inboxitem WHERE event_id = %s", first)


@pytest.mark.parametrize("handling", ["", "lost"])
def test_what_became_of_an_event_is_one_of_the_known_ends(rows: Rows, handling: str) -> None:
    with refused(rows, by="event_handling_known", sqlstate=CHECK):
        rows.handling(rows.event(), handling=handling)


def test_a_handling_is_one_of_an_event(rows: Rows) -> None:
    with refused(rows, by="event_handling_has_an_event", sqlstate=CHECK):
        rows.handling(rows.event(), event_id=None)
