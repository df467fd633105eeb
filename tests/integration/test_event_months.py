"""Old months of events are archived and removed whole, and never one in which something waits."""

import base64
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from operations.models import AuditEntry, EventHandling, InboxItem, WebhookEvent, statements
from operations.services.draining import drain
from operations.services.engine import Engine, default_engine
from operations.services.event_months import make_months, remove_old_months
from operations.services.ingesting import STORE, columns_of, read_delivery

from .deliveries import event, signature
from .stage import SECRET

pytestmark = pytest.mark.django_db

YEAR = 2021


@pytest.fixture
def at() -> Callable[[datetime], Engine]:
    """The engine at a time of the test's choice."""
    from dataclasses import replace

    return lambda now: replace(default_engine(), clock=lambda: now)


def months() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT right(inhrelid::regclass::text, 7) FROM pg_inherits"
            " WHERE inhparent = 'operations_webhookevent'::regclass"
        )
        return {name.replace("_", "-") for (name,) in cursor.fetchall()}


def store(event_id: str, now: datetime, **changes: Any) -> bytes:
    created = int(now.timestamp())
    raw = json.dumps(
        event(event_id, created=created, type="payout.paid", data={}, **changes)
    ).encode()
    delivery = read_delivery(
        secrets=[SECRET],
        now=now,
        raw=raw,
        signature=signature(raw, at=now.timestamp()),
        endpoint_account="",
    )
    statements.run(STORE, columns_of([delivery]))
    return raw


def handle(engine: Engine) -> None:
    while drain(engine=engine) is not None:
        pass


def test_months_are_made_ahead_and_once(at: Callable[[datetime], Engine]) -> None:
    engine = at(datetime(YEAR, 11, 30, tzinfo=UTC))
    assert make_months(engine=engine) == ["2021-11", "2021-12", "2022-01", "2022-02"]
    assert make_months(engine=engine) == []
    assert {"2021-11", "2022-02"} <= months()


def test_month_whose_events_came_before_its_partition_stays_with_the_rest(
    at: Callable[[datetime], Engine],
) -> None:
    store("evt_early", datetime(YEAR, 12, 5, tzinfo=UTC))
    made = make_months(engine=at(datetime(YEAR, 11, 30, tzinfo=UTC)))
    assert made == ["2021-11", "2022-01", "2022-02"]
    assert WebhookEvent.objects.get().event_id == "evt_early"


def test_old_month_is_written_out_read_back_and_removed(
    at: Callable[[datetime], Engine], tmp_path: Path
) -> None:
    then = datetime(YEAR, 1, 10, tzinfo=UTC)
    make_months(engine=at(then))
    raws = {f"evt_{number}": store(f"evt_{number}", then) for number in range(3)}
    handle(at(then))
    store("evt_young", then + timedelta(days=60))
    handle(at(then + timedelta(days=60)))
    later = at(datetime(YEAR, 4, 1, tzinfo=UTC))

    removed = remove_old_months(engine=later, days=40, archive=tmp_path)

    assert "2021-01" in removed
    assert list(WebhookEvent.objects.values_list("event_id", flat=True)) == ["evt_young"]
    assert EventHandling.objects.count() == 4
    (path,) = tmp_path.glob("events-2021-01-*.ndjson.gz")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert {line["id"]: base64.b64decode(line["raw"]) for line in lines} == raws
    assert [line["handlings"][0]["handling"] for line in lines] == ["ignored"] * 3
    entry = AuditEntry.objects.get(action="events_removed", before__month="2021-01")
    assert (entry.before["events"], entry.after["file"]) == (3, path.name)
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("stuck", [False, True])
def test_month_in_which_something_waits_is_kept(
    at: Callable[[datetime], Engine], stuck: bool
) -> None:
    then = datetime(YEAR, 1, 10, tzinfo=UTC)
    make_months(engine=at(then))
    store("evt_1", then)
    if stuck:
        InboxItem.objects.update(stuck_at=then, error="out of order")

    removed = remove_old_months(engine=at(then + timedelta(days=800)), days=40, archive=None)

    assert "2021-01" not in removed
    assert WebhookEvent.objects.count() == InboxItem.objects.count() == 1


def test_month_is_kept_when_it_cannot_be_written_out(
    at: Callable[[datetime], Engine], tmp_path: Path
) -> None:
    then = datetime(YEAR, 1, 10, tzinfo=UTC)
    make_months(engine=at(then))
    store("evt_1", then)
    handle(at(then))
    blocked = tmp_path / "file"
    blocked.write_text("")

    removed = remove_old_months(
        engine=at(then + timedelta(days=800)), days=40, archive=blocked / "folder"
    )

    assert "2021-01" not in removed
    assert WebhookEvent.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_nothing_is_counted_while_nothing_can_be_received(
    at: Callable[[datetime], Engine],
) -> None:
    then = datetime(YEAR + 1, 1, 10, tzinfo=UTC)
    make_months(engine=at(then))
    store("evt_1", then)
    handle(at(then))

    sent: list[str] = []

    def noted(execute: Callable[..., Any], query: Any, *rest: Any) -> Any:
        sent.append(query if isinstance(query, str) else query.as_string())
        return execute(query, *rest)

    with connection.execute_wrapper(noted):
        removed = remove_old_months(engine=at(then + timedelta(days=800)), days=40, archive=None)

    assert f"{YEAR + 1}-01" in removed
    indexed = next(at for at, text in enumerate(sent) if "reconcile_index_month" in text)
    dropped = next(at for at, text in enumerate(sent) if "reconcile_remove_month" in text)
    assert indexed < dropped
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'reconcile_remove_month'")
        assert "count(" not in cursor.fetchone()[0]
    assert not WebhookEvent.objects.exists()


def test_month_whose_event_is_delivered_again_while_it_is_written_out_is_kept(
    at: Callable[[datetime], Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from operations.services import event_months

    then = datetime(YEAR, 1, 10, tzinfo=UTC)
    now = then + timedelta(days=800)
    make_months(engine=at(then))
    store("evt_1", then)
    handle(at(then))
    written = event_months._archive

    def with_a_delivery(*args: Any) -> dict[str, Any]:
        done = written(*args)
        WebhookEvent.objects.update(deliveries=2, last_received_at=now)
        return done

    monkeypatch.setattr(event_months, "_archive", with_a_delivery)

    assert "2021-01" not in remove_old_months(engine=at(now), days=40, archive=tmp_path)
    assert WebhookEvent.objects.get().deliveries == 2


def test_a_young_month_is_removed_for_nobody(at: Callable[[datetime], Engine]) -> None:
    """Whatever the caller says the time is: the database has a clock of its own."""
    months_before = months()
    remove_old_months(engine=at(datetime.now(UTC) + timedelta(days=4_000)), days=40, archive=None)
    assert datetime.now(UTC).strftime("%Y-%m") in months() <= months_before


@pytest.mark.parametrize("part", ["operations_auditentry", "operations_webhookevent", "x_rest"])
def test_nothing_but_a_month_is_removed(part: str) -> None:
    for call in ("reconcile_remove_month(%s, now())", "reconcile_index_month(%s)"):
        with (
            pytest.raises(DatabaseError, match="is no month of events"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(f"SELECT {call}", [part])
