"""What a monitoring system sees."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

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


def test_metrics_take_nine_queries_whatever_there_is(stage: Stage) -> None:
    with CaptureQueriesContext(connection) as queries:
        scraped()

    assert len(queries) <= 9
