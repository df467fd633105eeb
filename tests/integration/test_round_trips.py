"""How often a refund speaks to the database: what a plain and a repeated request may cost."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from operations.domain.statuses import Status

from .stage import Stage

pytestmark = pytest.mark.django_db(transaction=True)


def statements_and_commits(sent: CaptureQueriesContext) -> tuple[int, int]:
    texts = [query["sql"] for query in sent.captured_queries]
    return sum(text not in ("BEGIN", "COMMIT") for text in texts), texts.count("COMMIT")


def test_plain_refund_takes_six_statements_in_two_transactions(stage: Stage) -> None:
    unlimited = stage.with_contract(reads_per_s=None, writes_per_s=None)
    stage.ask(stage.payment(), engine=unlimited, order_id="first")
    payment = stage.payment()

    with CaptureQueriesContext(connection) as sent:
        operation = stage.ask(payment, engine=unlimited, token="wish-1", tool_call_id="call-1")

    assert operation.status == Status.SUCCEEDED
    assert stage.refunds(payment) == 1
    assert statements_and_commits(sent) == (6, 2)


def test_joined_request_takes_five_statements_in_one_transaction(stage: Stage) -> None:
    unlimited = stage.with_contract(reads_per_s=None, writes_per_s=None)
    payment = stage.payment()
    stage.ask(payment, engine=unlimited, token="wish-1")

    with CaptureQueriesContext(connection) as sent:
        operation = stage.ask(payment, engine=unlimited, token="wish-1")

    assert operation.status == Status.SUCCEEDED
    assert stage.refunds(payment) == 1
    assert statements_and_commits(sent) == (5, 1)
