"""What the database refuses of imported reports and of runs that fetch events."""

from datetime import timedelta
from typing import Any

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db

ALICE = {"kind": "person", "id": "1", "name": "Alice", "address": ""}


@pytest.fixture
def rows() -> Rows:
    return Rows()


def report_file(rows: Rows, **columns: Any) -> int:
    given: dict[str, Any] = {
        "name": "refunds.csv",
        "content_hash": "a" * 64,
        "size_bytes": 100,
        "mapping": {},
        "uploaded_by": "Alice",
        "uploaded_at": NOW,
        "state": "read",
        "problem": "",
        "columns": {},
        "read_to_line": 3,
        "read_bytes": 100,
        "rows": 2,
        "previewed": {},
        "applied_rows": 0,
        "results": {},
    }
    account = columns.pop("account_id", None) or rows.account()
    return int(rows.insert("reportfile", account_id=account, **(given | columns)))


def report_row(rows: Rows, report: int, **columns: Any) -> int:
    given: dict[str, Any] = {
        "report_id": report,
        "line": 2,
        "refund_id": "re_1",
        "charge": "ch_1",
        "payment_intent": "",
        "amount": 500,
        "currency": "usd",
        "status": "succeeded",
        "created": 0,
        "failure_reason": "",
        "metadata": {},
        "preview": "unknown",
        "problem": "",
        "result": "",
    }
    return int(rows.insert("reportrow", **(given | columns)))


def backfill(rows: Rows, **columns: Any) -> int:
    given: dict[str, Any] = {
        "since": NOW - timedelta(days=1),
        "by_itself": False,
        "started_by": "Alice",
        "started_at": NOW,
        "state": "running",
        "cursor": "",
        "pages": 1,
        "read": 10,
        "stored": 4,
        "failures": 0,
        "problem": "",
    }
    return int(rows.insert("backfillrun", account_id=rows.account(), **(given | columns)))


def test_a_file_is_imported_once(rows: Rows) -> None:
    account = rows.account()
    report_file(rows, account_id=account, state="refused", problem="Too long.")
    report_file(rows, account_id=account)
    with refused(rows, by="report_file_once", sqlstate=UNIQUE):
        report_file(rows, account_id=account)


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        (
            "report_file_state_known",
            {"state": "lost", "apply_asked_at": NOW, "applied_by": ALICE},
        ),
        ("report_file_refused_says_why", {"state": "refused"}),
        ("report_file_applied_at_most_once", {"applied_rows": 3}),
        ("report_file_applied_was_asked", {"state": "applying"}),
    ],
)
def test_a_file_is_whole(rows: Rows, rule: str, columns: dict[str, Any]) -> None:
    with refused(rows, by=rule, sqlstate=CHECK):
        report_file(rows, **columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "other.csv"),
        ("content_hash", "b" * 64),
        ("size_bytes", 1),
        ("mapping", {"refund": "x"}),
        ("uploaded_by", "Bob"),
        ("uploaded_at", NOW - timedelta(days=1)),
    ],
)
def test_what_was_uploaded_by_whom_is_frozen(rows: Rows, column: str, value: Any) -> None:
    report = report_file(rows)
    with refused(rows, by="report_file_frozen"):
        rows.update("reportfile", report, **{column: value})


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        ({}, {"read_to_line": 1}),
        ({}, {"rows": 1}),
        ({}, {"state": "reading"}),
        ({}, {"state": "refused", "problem": "No."}),
        ({"state": "refused", "problem": "No."}, {"state": "read"}),
    ],
)
def test_an_import_only_goes_forward(
    rows: Rows, columns: dict[str, Any], changes: dict[str, Any]
) -> None:
    report = report_file(rows, **columns)
    with refused(rows, by="report_file_goes_forward"):
        rows.update("reportfile", report, **changes)


def test_a_piece_of_a_file_is_kept_once_and_as_it_is(rows: Rows) -> None:
    report = report_file(rows, state="reading")
    piece = rows.insert("reportpiece", report_id=report, number=0, data=b"id,Amount")
    with refused(rows, by="report_piece_once", sqlstate=UNIQUE):
        rows.insert("reportpiece", report_id=report, number=0, data=b"id")
    with refused(rows, by="report_piece_no_update"):
        rows.update("reportpiece", piece, data=b"id")


def test_a_line_is_there_once(rows: Rows) -> None:
    report = report_file(rows)
    report_row(rows, report)
    with refused(rows, by="report_row_once", sqlstate=UNIQUE):
        report_row(rows, report, refund_id="re_2")


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("report_row_preview_known", {"preview": "maybe"}),
        ("report_row_result_known", {"result": "lost"}),
        ("report_row_bad_or_whole", {"preview": "bad", "result": "bad"}),
        ("report_row_bad_or_whole", {"preview": "bad", "problem": "Why", "result": "applied"}),
        ("report_row_bad_or_whole", {"refund_id": ""}),
        ("report_row_bad_or_whole", {"amount": 0}),
    ],
)
def test_a_line_is_whole(rows: Rows, rule: str, columns: dict[str, Any]) -> None:
    report = report_file(rows)
    with refused(rows, by=rule, sqlstate=CHECK):
        report_row(rows, report, **columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("line", 9),
        ("refund_id", "re_9"),
        ("charge", "ch_9"),
        ("payment_intent", "pi_9"),
        ("amount", 9),
        ("currency", "eur"),
        ("status", "failed"),
        ("created", 9),
        ("failure_reason", "unknown"),
        ("metadata", {"a": "b"}),
        ("preview", "matches"),
    ],
)
def test_what_a_line_says_is_frozen(rows: Rows, column: str, value: Any) -> None:
    row = report_row(rows, report_file(rows))
    with refused(rows, by="report_row_frozen"):
        rows.update("reportrow", row, **{column: value})


def test_a_line_is_applied_once(rows: Rows) -> None:
    report = report_file(rows)
    row, failed = report_row(rows, report), report_row(rows, report, line=3, result="failed")
    rows.update("reportrow", row, result="applied")
    rows.update("reportrow", failed, result="")
    for result in ("", "no_change"):
        with refused(rows, by="report_row_applied_once"):
            rows.update("reportrow", row, result=result)


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("backfill_state_known", {"state": "lost", "finished_at": NOW}),
        ("backfill_counts_fit", {"stored": 11}),
        ("backfill_finished_is_whole", {"finished_at": NOW}),
        ("backfill_finished_is_whole", {"state": "done"}),
        ("backfill_stopped_says_why", {"state": "failed", "finished_at": NOW}),
    ],
)
def test_a_run_is_whole(rows: Rows, rule: str, columns: dict[str, Any]) -> None:
    with refused(rows, by=rule, sqlstate=CHECK):
        backfill(rows, **columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("since", NOW),
        ("by_itself", True),
        ("started_by", "Bob"),
        ("started_at", NOW + timedelta(days=1)),
    ],
)
def test_what_a_run_was_asked_for_is_frozen(rows: Rows, column: str, value: Any) -> None:
    run = backfill(rows)
    with refused(rows, by="backfill_frozen"):
        rows.update("backfillrun", run, **{column: value})


@pytest.mark.parametrize("changes", [{"read": 9}, {"stored": 3}, {"pages": 0}])
def test_a_run_only_goes_forward(rows: Rows, changes: dict[str, Any]) -> None:
    run = backfill(rows)
    with refused(rows, by="backfill_goes_forward"):
        rows.update("backfillrun", run, **changes)


@pytest.mark.parametrize(
    ("table", "prefix"),
    [("reportfile", "report_file"), ("reportrow", "report_row"), ("backfillrun", "backfill")],
)
def test_nothing_of_it_is_removed(rows: Rows, table: str, prefix: str) -> None:
    names = {
        "report_file": ("report_file_no_delete", "report_file_no_truncate"),
        "report_row": ("report_row_no_delete", "report_row_no_truncate"),
        "backfill": ("backfill_no_delete", "backfill_no_truncate"),
    }
    no_delete, no_truncate = names[prefix]
    with refused(rows, by=no_truncate):
        rows.text(f"TRUNCATE operations_{table} CASCADE")
    report_row(rows, report_file(rows))
    backfill(rows)
    with refused(rows, by=no_delete):
        rows.text(f"DELETE FROM operations_{table}")
