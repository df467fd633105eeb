"""What the database refuses of subscriptions and deliveries."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db

SECRET = "whsec_" + "A" * 43 + "="


class NoticeRows(Rows):
    def subscription(self, **columns: Any) -> UUID:
        given: dict[str, Any] = {
            "id": uuid4(),
            "name": "",
            "address": "https://receiver.example/hook",
            "types": [],
            "created_at": NOW,
            "created_by": "Ada",
            "secret": SECRET,
            "previous_secret": "",
            "disabled_reason": "",
            "failures": 0,
        }
        row: UUID = self.insert("subscription", **given | columns)
        return row

    def delivery(self, **columns: Any) -> int:
        given: dict[str, Any] = {
            "message_id": f"msg_{uuid4().hex}",
            "type": "refund.succeeded",
            "revision": 2,
            "occurred_at": NOW,
            "body": "{}",
            "state": "waiting",
            "next_try_at": NOW,
            "tries": 0,
            "round_began": 0,
        }
        given["subscription_id"] = columns.pop("subscription_id", None) or self.subscription()
        given["operation_id"] = columns.pop("operation_id", None) or self.operation()
        return int(self.insert("delivery", **given | columns))

    def attempt_of(self, delivery: int, **columns: Any) -> int:
        given: dict[str, Any] = {
            "delivery_id": delivery,
            "number": 1,
            "started_at": NOW,
            "body": "",
            "error": "",
        }
        return int(self.insert("deliverytry", **given | columns))


@pytest.fixture
def rows() -> NoticeRows:
    return NoticeRows()


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("subscription_has_an_address", {"address": "ftp://receiver.example/"}),
        ("subscription_has_an_address", {"address": ""}),
        ("subscription_types_known", {"types": ["refund.guessed"]}),
        ("subscription_has_a_secret", {"secret": ""}),
        ("subscription_has_a_secret", {"secret": "whsec_short"}),
        ("subscription_previous_secret_ends", {"previous_secret": SECRET}),
        ("subscription_previous_secret_ends", {"previous_secret_until": NOW}),
        ("subscription_disabled_says_why", {"disabled_at": NOW}),
        ("subscription_disabled_says_why", {"disabled_reason": "Gone."}),
        ("subscription_disabled_by_somebody", {"disabled_by": "person"}),
        ("subscription_failing_has_a_time", {"failures": 1}),
        ("subscription_failing_has_a_time", {"failing_since": NOW}),
    ],
)
def test_a_subscription_is_whole(rows: NoticeRows, rule: str, columns: dict[str, Any]) -> None:
    with refused(rows, by=rule, sqlstate=CHECK):
        rows.subscription(**columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"address": "https://elsewhere.example/"},
        {"account_id": 1},
        {"api_key_id": 1},
        {"created_by": "Somebody else"},
    ],
)
def test_where_a_subscription_leads_never_changes(
    rows: NoticeRows, columns: dict[str, Any]
) -> None:
    row = rows.subscription()
    with refused(rows, by="subscription_frozen"):
        rows.update("subscription", row, **columns)


def test_a_subscription_is_never_removed(rows: NoticeRows) -> None:
    rows.subscription()
    with refused(rows, by="subscription_no_delete"):
        rows.text("DELETE FROM operations_subscription")
    rows.text("SET CONSTRAINTS ALL IMMEDIATE")
    with refused(rows, by="subscription_no_truncate"):
        rows.text("TRUNCATE operations_subscription CASCADE")


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("delivery_type_known", {"type": "refund.guessed"}),
        ("delivery_state_known", {"state": "lost", "ended_at": NOW}),
        ("delivery_ended_has_a_time", {"state": "delivered"}),
        ("delivery_ended_has_a_time", {"ended_at": NOW}),
        (
            "delivery_ended_has_a_time",
            {"state": "failed", "ended_at": NOW, "claimed_until": NOW},
        ),
        ("delivery_rounds_follow_tries", {"round_began": 1}),
    ],
)
def test_a_delivery_is_whole(rows: NoticeRows, rule: str, columns: dict[str, Any]) -> None:
    with refused(rows, by=rule, sqlstate=CHECK):
        rows.delivery(**columns)


def test_one_change_is_told_once(rows: NoticeRows) -> None:
    subscription, operation = rows.subscription(), rows.operation()
    where = {"subscription_id": subscription, "operation_id": operation}
    rows.delivery(**where, message_id="msg_1")
    with refused(rows, by="delivery_once_per_change", sqlstate=UNIQUE):
        rows.delivery(**where)
    rows.delivery(**where, type="refund.flagged")
    with refused(rows, by="delivery_message_once", sqlstate=UNIQUE):
        rows.delivery(**where, revision=3, message_id="msg_1")
    rows.delivery(operation_id=operation, message_id="msg_1")


@pytest.mark.parametrize(
    ("column", "value"),
    [("message_id", "msg_other"), ("body", "[]"), ("type", "refund.failed"), ("revision", 9)],
)
def test_what_is_told_never_changes(rows: NoticeRows, column: str, value: Any) -> None:
    row = rows.delivery()
    with refused(rows, by="delivery_frozen"):
        rows.update("delivery", row, **{column: value})


def test_tries_are_only_counted_up(rows: NoticeRows) -> None:
    row = rows.delivery(tries=2)
    with refused(rows, by="delivery_tries_counted"):
        rows.update("delivery", row, tries=1)


def test_what_waits_is_not_removed(rows: NoticeRows) -> None:
    row = rows.delivery()
    with refused(rows, by="delivery_waits_for_its_end"):
        rows.text("DELETE FROM operations_delivery WHERE id = %s", row)
    rows.update("delivery", row, state="delivered", ended_at=NOW)
    rows.text("DELETE FROM operations_delivery WHERE id = %s", row)


def test_a_try_is_begun_once_and_finished_once(rows: NoticeRows) -> None:
    delivery = rows.delivery()
    row = rows.attempt_of(delivery)
    with refused(rows, by="delivery_try_once", sqlstate=UNIQUE):
        rows.attempt_of(delivery)
    with refused(rows, by="delivery_try_frozen"):
        rows.update("deliverytry", row, started_at=NOW - timedelta(seconds=1))
    rows.update("deliverytry", row, finished_at=NOW, duration_ms=3, http_status=204)
    with refused(rows, by="delivery_try_finished_once"):
        rows.update("deliverytry", row, http_status=500)


@pytest.mark.parametrize(
    "columns",
    [
        {"http_status": 200},
        {"finished_at": NOW},
        {"finished_at": NOW, "duration_ms": 3},
        {"duration_ms": 3},
    ],
)
def test_a_try_is_whole(rows: NoticeRows, columns: dict[str, Any]) -> None:
    delivery = rows.delivery()
    with refused(rows, by="delivery_try_is_whole", sqlstate=CHECK):
        rows.attempt_of(delivery, **columns)
