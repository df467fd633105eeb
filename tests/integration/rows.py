"""Rows written with plain SQL, past every line of our own code."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, LiteralString, cast
from uuid import UUID, uuid4

import psycopg
from django.apps import apps
from django.db import connection
from psycopg import sql
from psycopg.types.json import Jsonb

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CHAIN_START = "0" * 64

_numbers = count(1)


class Rows:
    """A psycopg cursor's way to make rows that are allowed, and to try those that are not."""

    def run(self, statement: sql.SQL | sql.Composed, values: Any = ()) -> list[tuple[Any, ...]]:
        """Run one statement on the bare connection."""
        connection.ensure_connection()
        bare = cast("psycopg.Connection[Any]", connection.connection)
        with bare.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def text(self, statement: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement written out."""
        return self.run(sql.SQL(statement), values)

    def insert(self, table: str, *, key: str = "id", **columns: Any) -> Any:
        """Insert one row; its id."""
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING {}").format(
            sql.Identifier(f"operations_{table}"),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join([sql.Placeholder()] * len(columns)),
            sql.Identifier(key),
        )
        return self.run(statement, [_adapted(value) for value in columns.values()])[0][0]

    def update(self, table: str, row: Any, *, key: str = "id", **columns: Any) -> None:
        """Update one row."""
        changes = [sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns]
        statement = sql.SQL("UPDATE {} SET {} WHERE {} = %s").format(
            sql.Identifier(f"operations_{table}"),
            sql.SQL(", ").join(changes),
            sql.Identifier(key),
        )
        self.run(statement, [*(_adapted(value) for value in columns.values()), row])

    def value(self, table: str, row: Any, column: str) -> Any:
        """One column of one row."""
        statement = sql.SQL("SELECT {} FROM {} WHERE id = %s").format(
            sql.Identifier(column), sql.Identifier(f"operations_{table}")
        )
        return self.run(statement, [row])[0][0]

    def everything(self) -> list[tuple[Any, ...]]:
        """All rows of all our tables, as text."""
        tables = [model._meta.db_table for model in apps.get_app_config("operations").get_models()]
        parts = [
            sql.SQL("SELECT {}, row::text FROM {} AS row").format(
                sql.Literal(table), sql.Identifier(table)
            )
            for table in tables
        ]
        return self.run(sql.SQL(" UNION ALL ").join(parts) + sql.SQL(" ORDER BY 1, 2"))

    # Rows that are allowed, with all their columns.

    def account(self, **columns: Any) -> int:
        number = next(_numbers)
        given: dict[str, Any] = {
            "name": f"account-{number}",
            "provider": "stripe",
            "provider_account": f"acct_{number}",
            "livemode": False,
            "created_at": NOW,
            "paused_by": "",
            "pause_reason": "",
        }
        return int(self.insert("account", **given | columns))

    def payment(self, account: int, **columns: Any) -> int:
        given: dict[str, Any] = {
            "account_id": account,
            "charge": f"ch_{next(_numbers)}",
            "payment_intent": "",
            "currency": "usd",
            "captured": 10_000,
            "refunded": 0,
            "refunded_by_others": 0,
            "disputed": False,
            "read_at": NOW,
        }
        return int(self.insert("payment", **given | columns))

    def operation(self, **columns: Any) -> UUID:
        account = columns.pop("account_id", None) or self.account()
        payment = columns.pop("payment_id", None) or self.payment(account)
        row = uuid4()
        given: dict[str, Any] = {
            "id": row,
            "account_id": account,
            "payment_id": payment,
            "kind": "refund",
            "order_id": f"order-{next(_numbers)}",
            "reference": "",
            "customer_account": "",
            "amount": 3_800,
            "currency": "usd",
            "reason": "",
            "input_hash": "a" * 64,
            "environment": "tests",
            "endpoint": "/v1/refunds",
            "idempotency_key": f"recon-{row}",
            "parameters": {"amount": 3_800},
            "created_at": NOW,
            "status": "open",
            "unknown_reason": "",
            "attention": [],
            "failure_code": "",
            "failure_message": "",
            "provider_object_id": "",
            "provider_status": "",
            "attempts_made": 0,
            "lookups_made": 0,
            "lease_owner": "",
            "revision": 1,
        }
        self.insert("operation", **given | columns)
        return row

    def change(self, operation: UUID, **columns: Any) -> None:
        """An update of an operation that counts its revision, as every update has to."""
        revision = self.value("operation", operation, "revision")
        self.update("operation", operation, **({"revision": revision + 1} | columns))

    def lease(self, operation: UUID, fence: str = "holder") -> int:
        """What is written before an attempt; the attempt's number."""
        number = int(self.value("operation", operation, "attempts_made")) + 1
        self.change(
            operation,
            attempts_made=number,
            lease_owner=fence,
            lease_expires_at=NOW + timedelta(seconds=33),
        )
        return number

    def attempt(self, operation: UUID, **columns: Any) -> UUID:
        """An attempt in flight, under a lease that is taken if there is none."""
        held = self.value("operation", operation, "lease_owner")
        number = columns.pop("number", None) or self.lease(operation, held or "holder")
        row = uuid4()
        given: dict[str, Any] = {
            "id": row,
            "operation_id": operation,
            "number": number,
            "idempotency_key": self.value("operation", operation, "idempotency_key"),
            "parameters": self.value("operation", operation, "parameters"),
            "fence": "holder",
            "started_at": NOW,
            "outcome": "",
            "doubt": "",
            "attention": "",
            "answer_kind": "",
            "provider_request_id": "",
            "replayed": False,
            "error_type": "",
            "error_code": "",
            "message": "",
        }
        self.insert("attempt", **given | columns)
        return row

    def finish(self, attempt: UUID, **columns: Any) -> None:
        """Save an attempt's answer."""
        given: dict[str, Any] = {
            "outcome": "indeterminate",
            "answer_kind": "connection_lost",
            "finished_at": NOW + timedelta(seconds=1),
            "duration_ms": 1_000,
        }
        self.update("attempt", attempt, **(given | columns))

    def evidence(self, operation: UUID, **columns: Any) -> int:
        given: dict[str, Any] = {
            "operation_id": operation,
            "source": "lookup",
            "provider_object_id": "",
            "provider_status": "",
            "currency": "",
            "summary": "No refund was found.",
            "facts": {},
            "observed_at": NOW,
            "recorded_at": NOW,
            "actor_kind": "job",
            "actor_name": "Scheduled check",
        }
        return int(self.insert("evidence", **given | columns))

    def audit(self, operation: UUID | None, **columns: Any) -> int:
        given: dict[str, Any] = {
            "chain": str(operation) if operation else "system",
            "number": 1,
            "operation_id": operation,
            "at": NOW,
            "actor_kind": "job",
            "actor_id": "check",
            "actor_name": "Scheduled check",
            "actor_address": "",
            "action": "opened",
            "before": {},
            "after": {},
            "reason": "",
            "evidence_id": "",
            "previous_hash": CHAIN_START,
            "entry_hash": "b" * 64,
        }
        return int(self.insert("auditentry", **given | columns))

    def request(self, operation: UUID, **columns: Any) -> int:
        given: dict[str, Any] = {
            "operation_id": operation,
            "api_key_id": None,
            "tool_call_id": "toolu_01",
            "agent_run_id": "run",
            "input_hash": "a" * 64,
            "payment_asked": "ch_1",
            "received_at": NOW,
        }
        return int(self.insert("request", **given | columns))

    def token(self, operation: UUID, **columns: Any) -> int:
        given: dict[str, Any] = {
            "account_id": self.value("operation", operation, "account_id"),
            "customer_account": "",
            "kind": "refund",
            "token": "token",
            "operation_id": operation,
            "created_at": datetime.now(UTC),
        }
        return int(self.insert("requesttoken", **given | columns))

    def refund(self, account: int, **columns: Any) -> int:
        given: dict[str, Any] = {
            "account_id": account,
            "operation_id": None,
            "provider_object_id": f"re_{next(_numbers)}",
            "status": "succeeded",
            "amount": 3_800,
            "currency": "usd",
            "charge": "ch_1",
            "payment_intent": "",
            "metadata": {},
            "details": {},
            "status_since": NOW,
            "first_seen_at": NOW,
            "last_seen_at": NOW,
        }
        return int(self.insert("providerrefund", **given | columns))

    def report(self, refund: int, **columns: Any) -> int:
        given: dict[str, Any] = {
            "refund_id": refund,
            "source": "webhook",
            "told_by": "evt_1",
            "status": "succeeded",
            "amount": 3_800,
            "currency": "usd",
            "details": {},
            "told_at": NOW,
            "recorded_at": NOW,
            "fingerprint": f"{next(_numbers):032}",
        }
        return int(self.insert("refundreport", **given | columns))

    def event(self, **columns: Any) -> int:
        given: dict[str, Any] = {
            "endpoint_account": "",
            "event_account": "",
            "event_id": f"evt_{next(_numbers)}",
            "event_type": "refund.updated",
            "livemode": False,
            "filed_at": NOW,
            "raw": b"{}",
            "payload": {},
            "received_at": NOW,
            "last_received_at": NOW,
            "deliveries": 1,
        }
        return int(self.insert("webhookevent", **given | columns))

    def item(self, event: int | None = None, **columns: Any) -> int:
        """An event that waits; its id."""
        event = event or self.event()
        given: dict[str, Any] = {
            "event_id": event,
            "filed_at": NOW,
            "provider_event_id": self.value("webhookevent", event, "event_id"),
            "event_account": "",
            "relevant": True,
            "refund_id": "",
            "facts": {},
            "received_at": NOW,
            "handle_after": NOW,
            "attempts": 0,
            "failures": 0,
            "handling": "",
            "error": "",
        }
        self.insert("inboxitem", key="event_id", **given | columns)
        return event

    def handling(self, event: int, **columns: Any) -> int:
        given: dict[str, Any] = {
            "event_id": event,
            "filed_at": NOW,
            "provider_event_id": self.value("webhookevent", event, "event_id"),
            "event_type": "refund.updated",
            "handling": "not_ours",
            "handled_at": NOW,
            "attempts": 1,
            "error": "",
        }
        return int(self.insert("eventhandling", **given | columns))

    def proposal(self, operation: UUID, **columns: Any) -> int:
        given: dict[str, Any] = {
            "operation_id": operation,
            "outcome": "failed",
            "evidence_kind": "dashboard",
            "evidence_reference": "case 1",
            "note": "Nothing there.",
            "reasons": ["amount"],
            "revision": 1,
            "form_token": "",
            "state": "waiting",
            "proposed_by": "alice",
            "proposed_by_name": "Alice",
            "proposed_at": NOW,
            "decided_by": "",
            "decided_by_name": "",
            "decision_note": "",
        }
        return int(self.insert("proposal", **given | columns))

    def note(self, operation: UUID, **columns: Any) -> int:
        given: dict[str, Any] = {
            "operation_id": operation,
            "text": "The customer called.",
            "form_token": f"form-{next(_numbers)}",
            "written_by": "alice",
            "written_by_name": "Alice",
            "written_at": NOW,
        }
        return int(self.insert("note", **given | columns))


def _adapted(value: Any) -> Any:
    return Jsonb(value) if isinstance(value, Mapping) else value
