"""The transition table holds in the database, cell by cell."""

from itertools import product
from typing import Any
from uuid import UUID

import pytest

from operations.domain.statuses import SETTLED, Status, status_changes

from .invariants import CHECK, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db

PAIRS = [(start, end) for start, end in product(Status, Status) if start != end]
ALLOWED = set(status_changes())


@pytest.fixture
def rows() -> Rows:
    return Rows()


def _standing(rows: Rows, status: Status) -> UUID:
    operation = rows.operation()
    if status is not Status.OPEN:
        rows.change(operation, **_columns(status))
    return operation


def _columns(status: Status) -> dict[str, Any]:
    """All that the other rules want of an operation in this status."""
    return {
        "status": str(status),
        "unknown_reason": "server_error" if status is Status.UNKNOWN else "",
        "settled_at": NOW if status in SETTLED else None,
        "provider_object_id": "re_1",
        "failure_code": "closed_by_person" if status is Status.FAILED else "",
    }


def _agree_to_reopen(rows: Rows, operation: UUID, **columns: Any) -> None:
    """A proposal that a second person agreed to, on the row as it stands."""
    revision = rows.value("operation", operation, "revision")
    proposal = rows.proposal(
        operation, outcome="unknown", evidence_kind="mistake", revision=revision, **columns
    )
    rows.update(
        "proposal",
        proposal,
        state="approved",
        decided_by="bob",
        decided_by_name="Bob",
        decided_at=NOW,
    )


def test_nobody_takes_an_end_back_alone(rows: Rows) -> None:
    operation = _standing(rows, Status.FAILED)
    with refused(rows, by="operation_reopened_by_two_people"):
        rows.change(operation, **_columns(Status.UNKNOWN))


def test_what_two_people_said_of_another_state_takes_nothing_back(rows: Rows) -> None:
    operation = _standing(rows, Status.FAILED)
    _agree_to_reopen(rows, operation)
    rows.change(operation, failure_message="Changed since.")
    with refused(rows, by="operation_reopened_by_two_people"):
        rows.change(operation, **_columns(Status.UNKNOWN))


def test_what_the_provider_said_is_not_taken_back(rows: Rows) -> None:
    operation = rows.operation()
    rows.change(operation, **_columns(Status.FAILED) | {"failure_code": "charge_disputed"})
    _agree_to_reopen(rows, operation)
    with refused(rows, by="operation_reopened_by_two_people"):
        rows.change(operation, **_columns(Status.UNKNOWN))


def test_the_table_allows_some_changes_and_refuses_others() -> None:
    assert 0 < len(ALLOWED) < len(PAIRS)


@pytest.mark.parametrize(("start", "end"), sorted(ALLOWED))
def test_a_change_in_the_table_is_taken(rows: Rows, start: Status, end: Status) -> None:
    operation = _standing(rows, start)
    if start is Status.FAILED:
        _agree_to_reopen(rows, operation)
    rows.change(operation, **_columns(end))
    assert rows.value("operation", operation, "status") == end


@pytest.mark.parametrize(("start", "end"), sorted(set(PAIRS) - ALLOWED))
def test_a_change_that_is_not_in_the_table_is_refused(
    rows: Rows, start: Status, end: Status
) -> None:
    operation = _standing(rows, start)
    with refused(rows, by="operation_status_moves"):
        rows.change(operation, **_columns(end))


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OPEN])
def test_an_operation_starts_open(rows: Rows, status: Status) -> None:
    with refused(rows, by="operation_starts_open"):
        rows.operation(**_columns(status))


@pytest.mark.parametrize("start", list(Status))
def test_a_status_that_nobody_knows_is_refused(rows: Rows, start: Status) -> None:
    operation = _standing(rows, start)
    with refused(rows, by="operation_status_moves"):
        rows.change(operation, status="lost")


def test_even_without_the_triggers_a_status_is_one_that_is_known(rows: Rows) -> None:
    operation = rows.operation()
    rows.text("SET CONSTRAINTS ALL IMMEDIATE")
    rows.text("ALTER TABLE operations_operation DISABLE TRIGGER USER")
    with refused(rows, by="operation_status_known", sqlstate=CHECK):
        rows.change(operation, status="lost")
