"""What the database refuses of evidence, audit and requests: they are added to, and that is all."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg import sql

from .invariants import CHECK, UNIQUE, refused
from .rows import CHAIN_START, NOW, Rows

pytestmark = pytest.mark.django_db

#: Tables whose rows stay, and the triggers that see to it.
KEPT = [
    ("operation", "operation_no_delete", "operation_no_truncate"),
    ("request", "request_no_delete", "request_no_truncate"),
    ("requesttoken", "request_token_no_delete", "request_token_no_truncate"),
    ("attempt", "attempt_no_delete", "attempt_no_truncate"),
    ("evidence", "evidence_no_delete", "evidence_no_truncate"),
    ("auditentry", "audit_no_delete", "audit_no_truncate"),
    ("webhookevent", "webhook_event_no_delete", "webhook_event_no_truncate"),
    ("inboxitem", "inbox_item_handled_before_it_leaves", "inbox_item_no_truncate"),
    ("eventhandling", "event_handling_no_delete", "event_handling_no_truncate"),
    ("providerrefund", "provider_refund_no_delete", "provider_refund_no_truncate"),
    ("refundreport", "refund_report_no_delete", "refund_report_no_truncate"),
    ("proposal", "proposal_no_delete", "proposal_no_truncate"),
    ("note", "note_no_delete", "note_no_truncate"),
]

#: Tables whose rows never change, and a column of each.
UNCHANGED = [
    ("evidence", "evidence_no_update", "summary"),
    ("auditentry", "audit_no_update", "reason"),
    ("request", "request_no_update", "tool_call_id"),
    ("requesttoken", "request_token_no_update", "token"),
    ("refundreport", "refund_report_no_update", "told_by"),
    ("eventhandling", "event_handling_no_update", "handling"),
    ("note", "note_no_update", "text"),
]


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def full(rows: Rows) -> UUID:
    """An operation with a row in every table."""
    operation = rows.operation()
    account = rows.value("operation", operation, "account_id")
    rows.attempt(operation)
    rows.evidence(operation)
    rows.audit(operation)
    rows.request(operation)
    rows.token(operation)
    rows.report(rows.refund(account, operation_id=operation))
    rows.item()
    rows.handling(rows.event(), operation_id=operation)
    rows.proposal(operation)
    rows.note(operation)
    rows.text("SET CONSTRAINTS ALL IMMEDIATE")
    return operation


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(("table", "name", "_"), KEPT)
def test_no_row_is_deleted(rows: Rows, table: str, name: str, _: str) -> None:
    with refused(rows, by=name):
        rows.run(sql.SQL("DELETE FROM {}").format(sql.Identifier(f"operations_{table}")))


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(("table", "_", "name"), KEPT)
def test_no_table_is_emptied(rows: Rows, table: str, _: str, name: str) -> None:
    with refused(rows, by=name):
        rows.run(sql.SQL("TRUNCATE {} CASCADE").format(sql.Identifier(f"operations_{table}")))


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(("table", "name", "column"), UNCHANGED)
def test_no_row_is_changed(rows: Rows, table: str, name: str, column: str) -> None:
    with refused(rows, by=name):
        rows.run(
            sql.SQL("UPDATE {} SET {} = 'other'").format(
                sql.Identifier(f"operations_{table}"), sql.Identifier(column)
            )
        )


def test_a_token_can_be_removed_when_it_is_a_day_old(rows: Rows) -> None:
    operation = rows.operation()
    rows.token(operation, created_at=datetime.now(UTC) - timedelta(days=1, minutes=1))
    young = rows.token(operation, token="young", created_at=datetime.now(UTC) - timedelta(hours=23))
    with refused(rows, by="request_token_no_delete"):
        rows.text("DELETE FROM operations_requesttoken WHERE id = %s", young)
    rows.text("DELETE FROM operations_requesttoken WHERE id <> %s", young)


def test_a_request_and_a_token_are_not_pointed_at_another_operation(rows: Rows, full: UUID) -> None:
    other = rows.operation()
    for table, name in (
        ("request", "request_no_update"),
        ("requesttoken", "request_token_no_update"),
    ):
        with refused(rows, by=name):
            rows.run(
                sql.SQL("UPDATE {} SET operation_id = %s").format(
                    sql.Identifier(f"operations_{table}")
                ),
                [other],
            )


def test_evidence_comes_from_a_source_that_is_known(rows: Rows) -> None:
    operation = rows.operation()
    with refused(rows, by="evidence_source_known", sqlstate=CHECK):
        rows.evidence(operation, source="rumour")


def test_evidence_is_brought_by_somebody_of_a_known_kind(rows: Rows) -> None:
    operation = rows.operation()
    with refused(rows, by="evidence_actor_known", sqlstate=CHECK):
        rows.evidence(operation, actor_kind="")


def test_evidence_of_an_attempt_belongs_to_its_operation(rows: Rows) -> None:
    operation, other = rows.operation(), rows.operation()
    attempt = rows.attempt(operation)
    with refused(rows, by="evidence_fits_its_attempt"):
        rows.evidence(other, attempt_id=attempt)
    rows.evidence(operation, attempt_id=attempt)


def test_an_audit_entry_has_its_number_alone(rows: Rows) -> None:
    operation = rows.operation()
    rows.audit(operation)
    with refused(rows, by="audit_number_once", sqlstate=UNIQUE):
        rows.audit(operation, entry_hash="c" * 64)


def test_an_audit_entry_names_an_actor_of_a_known_kind(rows: Rows) -> None:
    operation = rows.operation()
    with refused(rows, by="audit_actor_known", sqlstate=CHECK):
        rows.audit(operation, actor_kind="ghost")


@pytest.mark.parametrize(
    "columns",
    [
        {"number": 3, "previous_hash": "b" * 64},
        {"number": 2, "previous_hash": "e" * 64},
        {"number": 2, "previous_hash": CHAIN_START},
        {"number": 2, "previous_hash": "b" * 64, "chain": "system"},
        {"number": 0},
        {"number": 1, "chain": "of its own"},
    ],
)
def test_an_audit_entry_follows_the_last_of_its_chain(rows: Rows, columns: dict[str, Any]) -> None:
    operation = rows.operation()
    rows.audit(operation, entry_hash="b" * 64)
    with refused(rows, by="audit_follows_the_last"):
        rows.audit(operation, **columns)
    rows.audit(operation, number=2, previous_hash="b" * 64)


def test_a_chain_starts_with_its_first_entry(rows: Rows) -> None:
    operation = rows.operation()
    with refused(rows, by="audit_follows_the_last"):
        rows.audit(operation, previous_hash="b" * 64)
    with refused(rows, by="audit_follows_the_last"):
        rows.audit(None, chain=str(operation))
    rows.audit(None)


@pytest.mark.parametrize("run", ["", "run"])
def test_a_tool_call_stands_for_one_request(rows: Rows, run: str) -> None:
    first, second = rows.operation(), rows.operation()
    rows.request(first, agent_run_id=run)
    with refused(rows, by="request_tool_call_once", sqlstate=UNIQUE):
        rows.request(second, agent_run_id=run)
    with refused(rows, by="request_tool_call_once", sqlstate=UNIQUE):
        rows.request(first, agent_run_id=run)


def test_requests_without_a_tool_call_and_other_runs_are_told_apart(rows: Rows) -> None:
    operation = rows.operation()
    key = rows.insert("apikey", name="n", prefix="p", secret_hash="h", created_at=NOW)
    rows.request(operation, tool_call_id="")
    rows.request(operation, tool_call_id="")
    rows.request(operation)
    rows.request(operation, agent_run_id="another")
    rows.request(operation, api_key_id=key)


def test_a_token_stands_for_one_operation(rows: Rows) -> None:
    account = rows.account()
    first, second = rows.operation(account_id=account), rows.operation(account_id=account)
    rows.token(first)
    with refused(rows, by="request_token_once", sqlstate=UNIQUE):
        rows.token(second)
    rows.token(second, customer_account="another")
