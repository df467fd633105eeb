"""What the database refuses of an attempt: begun as its operation allows, and written once."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> Rows:
    return Rows()


def test_an_attempt_has_its_number_alone(rows: Rows) -> None:
    operation = rows.operation()
    rows.finish(rows.attempt(operation))
    with refused(rows, by="attempt_number_once", sqlstate=UNIQUE):
        rows.attempt(operation, number=1)


def test_one_send_is_in_flight(rows: Rows) -> None:
    operation = rows.operation()
    rows.attempt(operation)
    with refused(rows, by="attempt_one_in_flight", sqlstate=UNIQUE):
        rows.attempt(operation)


def test_another_send_begins_when_the_first_is_over(rows: Rows) -> None:
    operation = rows.operation()
    rows.finish(rows.attempt(operation))
    rows.finish(rows.attempt(operation))
    assert rows.value("operation", operation, "attempts_made") == 2


def test_an_attempt_starts_in_flight(rows: Rows) -> None:
    operation = rows.operation()
    number = rows.lease(operation)
    over = {"outcome": "refused", "answer_kind": "response", "finished_at": NOW}
    with refused(rows, by="attempt_starts_in_flight"):
        rows.attempt(operation, number=number, **over)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("attempt_outcome_known", {"outcome": "perhaps"}),
        ("attempt_doubt_known", {"doubt": "some"}),
        ("attempt_answer_known", {"answer_kind": "letter"}),
        ("attempt_accepted_keeps_the_refund", {"outcome": "accepted"}),
    ],
)
def test_an_answer_is_one_that_is_known(rows: Rows, name: str, columns: dict[str, Any]) -> None:
    attempt = rows.attempt(rows.operation())
    with refused(rows, by=name, sqlstate=CHECK):
        rows.finish(attempt, **columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"finished_at": NOW},
        {"doubt": "frozen"},
        {"attention": "configuration"},
        {"answer_kind": "response"},
        {"duration_ms": 1},
        {"http_status": 200},
        {"provider_request_id": "req_1"},
        {"replayed": True},
        {"should_retry": False},
        {"retry_after_s": 1.0},
        {"error_type": "api_error"},
        {"error_code": "lock_timeout"},
        {"message": "something"},
        {"body": {"id": "re_1"}},
        {"refund": {"id": "re_1"}},
    ],
)
def test_nothing_is_known_of_a_send_in_flight(rows: Rows, columns: dict[str, Any]) -> None:
    attempt = rows.attempt(rows.operation())
    with refused(rows, by="attempt_finished_is_whole", sqlstate=CHECK):
        rows.update("attempt", attempt, **columns)


@pytest.mark.parametrize("columns", [{"finished_at": None}, {"answer_kind": ""}])
def test_a_send_that_is_over_says_when_and_how(rows: Rows, columns: dict[str, Any]) -> None:
    attempt = rows.attempt(rows.operation())
    with refused(rows, by="attempt_finished_is_whole", sqlstate=CHECK):
        rows.finish(attempt, **columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"outcome": "", "answer_kind": "", "finished_at": None, "duration_ms": None},
        {"outcome": "refused"},
        {"message": "another"},
        {"http_status": 200},
        {"body": {}},
        {"finished_at": NOW},
    ],
)
def test_an_answer_is_written_once(rows: Rows, columns: dict[str, Any]) -> None:
    attempt = rows.attempt(rows.operation())
    rows.finish(attempt)
    with refused(rows, by="attempt_written_once"):
        rows.update("attempt", attempt, **columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", uuid4()),
        ("number", 7),
        ("idempotency_key", "recon-other"),
        ("parameters", {"amount": 1}),
        ("fence", "somebody else"),
        ("started_at", NOW + timedelta(seconds=1)),
    ],
)
def test_what_was_sent_is_frozen(rows: Rows, column: str, value: Any) -> None:
    attempt = rows.attempt(rows.operation())
    with refused(rows, by="attempt_frozen"):
        rows.update("attempt", attempt, **{column: value})


def test_an_attempt_stays_with_its_operation(rows: Rows) -> None:
    attempt = rows.attempt(rows.operation())
    other = rows.operation()
    with refused(rows, by="attempt_frozen"):
        rows.update("attempt", attempt, operation_id=other)


@pytest.mark.parametrize(
    "columns",
    [
        {"idempotency_key": "recon-other"},
        {"parameters": {"amount": 10_000}},
        {"fence": "somebody else"},
        {"number": 2},
    ],
)
def test_a_send_carries_the_key_and_body_of_its_operation_under_its_lease(
    rows: Rows, columns: dict[str, Any]
) -> None:
    operation = rows.operation()
    number = rows.lease(operation)
    with refused(rows, by="attempt_fits_its_operation"):
        rows.attempt(operation, **{"number": number} | columns)


def test_nothing_is_sent_without_a_lease(rows: Rows) -> None:
    operation = rows.operation(attempts_made=1)
    with refused(rows, by="attempt_fits_its_operation"):
        rows.attempt(operation, number=1, fence="")


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "unknown", "unknown_reason": "server_error"},
        {"status": "processing", "provider_object_id": "re_1"},
        {"status": "succeeded", "provider_object_id": "re_1", "settled_at": NOW},
        {"status": "failed", "settled_at": NOW},
    ],
)
def test_nothing_is_sent_for_an_operation_that_is_not_open(
    rows: Rows, columns: dict[str, Any]
) -> None:
    operation = rows.operation()
    rows.change(operation, **columns)
    number = rows.lease(operation)
    with refused(rows, by="attempt_fits_its_operation"):
        rows.attempt(operation, number=number)


@pytest.mark.parametrize("late", [timedelta(), timedelta(days=1)])
def test_nothing_is_sent_again_after_the_window_of_its_key(rows: Rows, late: timedelta) -> None:
    operation = rows.operation()
    rows.finish(rows.attempt(operation))
    rows.change(operation, key_window_closes_at=NOW)
    number = rows.lease(operation)
    with refused(rows, by="attempt_fits_its_operation"):
        rows.attempt(operation, number=number, started_at=NOW + late)
    rows.attempt(operation, number=number, started_at=NOW - timedelta(seconds=1))
