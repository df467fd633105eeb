"""What the database refuses of runs that act on many operations."""

from typing import Any
from uuid import UUID

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db

STARTED = {"note": "An incident.", "started_at": NOW}
RUNNING = {"state": "running", **STARTED}
APPROVED = {"decided_by": "bob", "decided_by_name": "Bob", "decided_at": NOW, "decision_note": "Ok"}


@pytest.fixture
def rows() -> Rows:
    return Rows()


def bulk_run(store: Rows, /, **columns: Any) -> int:
    given: dict[str, Any] = {
        "action": "close_failed",
        "selection": {},
        "rows": 2,
        "acts": 2,
        "counts": {},
        "sums": {},
        "reasons": [],
        "made_by": "alice",
        "made_by_name": "Alice",
        "made_at": NOW,
        "state": "previewed",
        "evidence_kind": "",
        "evidence_reference": "",
        "note": "",
        "started_from": "",
        "decided_by": "",
        "decided_by_name": "",
        "decision_note": "",
        "stopped_by_name": "",
    }
    return int(store.insert("bulkrun", **(given | columns)))


def bulk_row(rows: Rows, run: int, operation: UUID | None = None, **columns: Any) -> int:
    given: dict[str, Any] = {
        "run_id": run,
        "place": 1,
        "operation_id": operation or rows.operation(),
        "revision": 1,
        "amount": 3_800,
        "currency": "usd",
        "outlook": "will",
        "why": [],
        "refund": "",
        "result": "",
        "detail": "",
        "left_as": "",
    }
    return int(rows.insert("bulkrow", **(given | columns)))


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("bulk_action_known", {"action": "pay"}),
        ("bulk_state_known", {"state": "lost", **STARTED}),
        ("bulk_counts_fit", {"acts": 3}),
        ("bulk_counts_fit", {"rows": 0, "acts": 0}),
        ("bulk_has_a_person", {"made_by": ""}),
        ("bulk_started_says_why", {"state": "running", "started_at": NOW}),
        ("bulk_started_says_why", {"state": "running", "note": "An incident."}),
        ("bulk_started_says_why", {"started_at": NOW}),
        ("bulk_end_has_a_time", {"state": "ended", **STARTED}),
        ("bulk_end_has_a_time", {**RUNNING, "ended_at": NOW}),
        ("bulk_second_person_decided", {**RUNNING, "reasons": ["rows"]}),
        ("bulk_assigned_to_somebody", {**RUNNING, "action": "assign"}),
        ("bulk_assigned_to_somebody", {"action": "assign", "assignee": "7"}),
        ("bulk_assigned_to_somebody", {**RUNNING, "assignee": "7", "assignee_name": "Omar"}),
        ("bulk_two_people", {**RUNNING, **APPROVED, "decided_by": "alice"}),
    ],
)
def test_a_run_is_whole(rows: Rows, rule: str, columns: dict[str, Any]) -> None:
    with refused(rows, by=rule, sqlstate=CHECK):
        bulk_run(rows, **columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("action", "claim"),
        ("selection", {"all": True}),
        ("rows", 3),
        ("acts", 1),
        ("counts", {"will": 1}),
        ("sums", {"usd": {}}),
        ("reasons", ["rows"]),
        ("made_by", "bob"),
        ("made_by_name", "Bob"),
        ("made_at", NOW.replace(year=2027)),
    ],
)
def test_what_was_seen_by_whom_is_frozen(rows: Rows, column: str, value: Any) -> None:
    run = bulk_run(rows)
    with refused(rows, by="bulk_frozen"):
        rows.update("bulkrun", run, **{column: value})


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        ({}, {"state": "ended", **STARTED, "ended_at": NOW}),
        (RUNNING, {"state": "waiting"}),
        (RUNNING, {"state": "rejected", "ended_at": NOW}),
        ({"state": "waiting", **STARTED}, {"state": "ended", "ended_at": NOW}),
    ],
)
def test_a_run_only_goes_forward(
    rows: Rows, columns: dict[str, Any], changes: dict[str, Any]
) -> None:
    run = bulk_run(rows, **columns)
    with refused(rows, by="bulk_goes_forward"):
        rows.update("bulkrun", run, **changes)


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        (RUNNING, {"note": "Another incident."}),
        (RUNNING, {"evidence_reference": "case 2"}),
        (
            {**RUNNING, "action": "assign", "assignee": "7", "assignee_name": "Omar"},
            {"assignee": "8"},
        ),
        ({**RUNNING, **APPROVED}, {"decision_note": "Not so ok"}),
        ({**RUNNING, "state": "ended", "ended_at": NOW}, {"stopped_by_name": "Bob"}),
    ],
)
def test_what_people_said_is_said_once(
    rows: Rows, columns: dict[str, Any], changes: dict[str, Any]
) -> None:
    run = bulk_run(rows, **columns)
    with refused(rows, by="bulk_said_once"):
        rows.update("bulkrun", run, **changes)


def test_a_run_ends_when_each_row_has_a_result(rows: Rows) -> None:
    run = bulk_run(rows, **RUNNING)
    row = bulk_row(rows, run)
    with refused(rows, by="bulk_ends_with_its_rows"):
        rows.update("bulkrun", run, state="ended", ended_at=NOW)
    rows.update("bulkrow", row, result="closed", decided_at=NOW)
    rows.update("bulkrun", run, state="ended", ended_at=NOW)


def test_an_operation_and_a_place_are_in_a_run_once(rows: Rows) -> None:
    run, operation = bulk_run(rows), rows.operation()
    bulk_row(rows, run, operation)
    with refused(rows, by="bulk_row_place_once", sqlstate=UNIQUE):
        bulk_row(rows, run)
    with refused(rows, by="bulk_row_operation_once", sqlstate=UNIQUE):
        bulk_row(rows, run, operation, place=2)


def test_a_row_is_of_one_thing_and_that_is_in_a_run_once(rows: Rows) -> None:
    run = bulk_run(rows, **RUNNING)
    orphan = rows.refund(rows.account())
    of_it: dict[str, Any] = {
        "operation_id": None,
        "orphan_id": orphan,
        "seen": "succeeded",
        "revision": 0,
    }
    row = bulk_row(rows, run, **of_it)
    wrongs: list[dict[str, Any]] = [
        {"operation_id": rows.operation()},
        {"orphan_id": None},
        {"seen": ""},
        {"revision": 1},
    ]
    for wrong in wrongs:
        with refused(rows, by="bulk_row_of_one_thing", sqlstate=CHECK):
            bulk_row(rows, run, **{**of_it, "place": 2, **wrong})
    with refused(rows, by="bulk_row_orphan_once", sqlstate=UNIQUE):
        bulk_row(rows, run, **{**of_it, "place": 2})
    for changed in ({"orphan_id": rows.refund(rows.account())}, {"seen": "failed"}):
        with refused(rows, by="bulk_row_frozen"):
            rows.update("bulkrow", row, **changed)


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("bulk_row_outlook_known", {"outlook": "maybe"}),
        ("bulk_row_result_known", {"result": "lost", "decided_at": NOW}),
        ("bulk_row_result_has_a_time", {"result": "closed"}),
        ("bulk_row_result_has_a_time", {"decided_at": NOW}),
        (
            "bulk_row_left_as_foreseen",
            {"outlook": "cannot", "result": "closed", "decided_at": NOW},
        ),
    ],
)
def test_a_row_is_whole(rows: Rows, rule: str, columns: dict[str, Any]) -> None:
    run = bulk_run(rows, **RUNNING)
    with refused(rows, by=rule, sqlstate=CHECK):
        bulk_row(rows, run, **columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("place", 9),
        ("revision", 9),
        ("amount", 9),
        ("currency", "eur"),
        ("outlook", "second"),
        ("why", ["amount"]),
        ("refund", "re_9"),
    ],
)
def test_what_a_preview_showed_is_frozen(rows: Rows, column: str, value: Any) -> None:
    row = bulk_row(rows, bulk_run(rows, **RUNNING))
    with refused(rows, by="bulk_row_frozen"):
        rows.update("bulkrow", row, **{column: value})


def test_a_row_is_decided_once(rows: Rows) -> None:
    row = bulk_row(rows, bulk_run(rows, **RUNNING))
    rows.update("bulkrow", row, result="closed", decided_at=NOW)
    for changes in ({"result": "", "decided_at": None}, {"detail": "Otherwise."}):
        with refused(rows, by="bulk_row_decided_once"):
            rows.update("bulkrow", row, **changes)


@pytest.mark.parametrize("state", ["previewed", "waiting"])
def test_nothing_is_done_by_a_run_that_does_not_run(rows: Rows, state: str) -> None:
    columns = {} if state == "previewed" else {"state": state, **STARTED}
    row = bulk_row(rows, bulk_run(rows, **columns))
    with refused(rows, by="bulk_row_needs_a_running_run"):
        rows.update("bulkrow", row, result="closed", decided_at=NOW)


def test_runs_and_their_rows_are_never_emptied_out(rows: Rows) -> None:
    with refused(rows, by="bulk_row_no_truncate"):
        rows.text("TRUNCATE operations_bulkrow")
    with refused(rows, by="bulk_no_truncate"):
        rows.text("TRUNCATE operations_bulkrun CASCADE")


def test_a_run_and_its_rows_stay_and_a_preview_may_go(rows: Rows) -> None:
    run = bulk_run(rows, **RUNNING)
    bulk_row(rows, run)
    with refused(rows, by="bulk_row_no_delete"):
        rows.text("DELETE FROM operations_bulkrow")
    empty = bulk_run(rows, **RUNNING)
    with refused(rows, by="bulk_no_delete"):
        rows.text("DELETE FROM operations_bulkrun WHERE id = %s", empty)
    preview = bulk_run(rows)
    bulk_row(rows, preview)
    rows.text("DELETE FROM operations_bulkrow WHERE run_id = %s", preview)
    rows.text("DELETE FROM operations_bulkrun WHERE id = %s", preview)
