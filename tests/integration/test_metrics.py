"""What a monitoring system sees."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from operations.models import WebhookEvent
from operations.queries.figures import health
from operations.queries.inbox import inbox_figures
from operations.queries.metrics import read_metrics

from .rows import NOW, Rows
from .stage import Stage

pytestmark = pytest.mark.django_db(transaction=True)


def scraped() -> dict[str, float]:
    answer = Client().get("/metrics")
    assert answer.status_code == 200
    lines = [line for line in answer.content.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_metrics_count_what_is_unknown_and_name_no_order(stage: Stage) -> None:
    assert scraped()['reconcile_operations_unresolved{status="unknown"}'] == 0
    stage.control.fault("500", when="after")
    stage.ask(stage.payment(), order_id="a secret order")

    assert scraped()['reconcile_operations_unresolved{status="unknown"}'] == 1
    assert "secret" not in Client().get("/metrics").content.decode()


def test_inbox_is_counted_as_its_page_counts_it(stage: Stage) -> None:
    rows = Rows()
    waits = rows.item(received_at=stage.clock() - timedelta(minutes=1))
    stuck = rows.item(received_at=stage.clock() - timedelta(days=9), stuck_at=NOW, error="No.")
    rows.update("webhookevent", waits, deliveries=0, last_received_at=stage.clock())

    found, figures = read_metrics(now=stage.clock()), inbox_figures()

    assert (found.events_waiting, found.events_stuck) == (1, 1) == (figures.waiting, figures.stuck)
    assert 60 <= found.oldest_event_s < 3_600
    last = WebhookEvent.objects.get(pk=stuck).last_received_at
    assert figures.last_webhook_at == last == health().webhook_at
    assert found.last_webhook_s is not None
    assert found.last_webhook_s > 86_400


def test_metrics_take_eight_queries_whatever_there_is(stage: Stage) -> None:
    with CaptureQueriesContext(connection) as queries:
        scraped()

    assert len(queries) <= 8
