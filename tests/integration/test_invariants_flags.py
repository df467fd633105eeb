"""What the database refuses of a flag and a dispute, whoever writes and in whatever words."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


def flag_row(rows: Rows, operation: Any, **columns: Any) -> Any:
    evidence = rows.evidence(operation)
    given: dict[str, Any] = {
        "operation_id": operation,
        "attention": "conflict",
        "fact": "re_1:provider_succeeded",
        "sides": Jsonb([["refund", "", "re_1"]]),
        "evidence_id": evidence,
        "raised_at": NOW,
        "cleared_by": "",
        "cleared_by_name": "",
        "clear_reason": "",
    }
    return rows.insert("flag", **given | columns)


def test_database_keeps_flags_whole() -> None:
    rows = Rows()
    operation = rows.operation()
    rows.change(operation, attention=["conflict"])
    flag = flag_row(rows, operation)
    with refused(rows, by="flag_once_per_fact", sqlstate=UNIQUE):
        flag_row(rows, operation)
    with refused(rows, by="flag_attention_known", sqlstate=CHECK):
        flag_row(rows, operation, attention="angry")
    with refused(rows, by="flag_names_its_fact", sqlstate=CHECK):
        flag_row(rows, operation, fact="")
    with refused(rows, by="flag_clearing_is_whole", sqlstate=CHECK):
        rows.update("flag", flag, cleared_at=NOW)
    with refused(rows, by="flag_frozen"):
        rows.update("flag", flag, fact="another")
    with refused(rows, by="operation_flags_go_by_people"):
        rows.change(operation, attention=[])
    rows.update("flag", flag, cleared_at=NOW, cleared_by="1", clear_reason="So.")
    with refused(rows, by="flag_cleared_once"):
        rows.update("flag", flag, clear_reason="Other.")
    rows.change(operation, attention=[])


def test_database_keeps_disputes_whole() -> None:
    rows = Rows()
    given: dict[str, Any] = {
        "account_id": rows.account(),
        "provider_object_id": "du_1",
        "charge": "ch_1",
        "payment_intent": "",
        "status": "needs_response",
        "reason": "",
        "amount": 100,
        "currency": "usd",
        "blocks_refunds": True,
        "as_of": NOW,
        "first_seen_at": NOW,
    }
    dispute = rows.insert("dispute", **given)
    with refused(rows, by="dispute_once", sqlstate=UNIQUE):
        rows.insert("dispute", **given)
    with refused(rows, by="dispute_has_an_id", sqlstate=CHECK):
        rows.insert("dispute", **given | {"provider_object_id": ""})
    with refused(rows, by="dispute_frozen"):
        rows.update("dispute", dispute, provider_object_id="du_2")
    with refused(rows, by="dispute_no_delete"):
        rows.text("DELETE FROM operations_dispute WHERE id = %s", dispute)


@pytest.mark.parametrize("table", ["flag", "dispute"])
def test_flags_and_disputes_are_never_removed(table: str) -> None:
    rows = Rows()
    if table == "flag":
        with refused(rows, by="flag_no_truncate"):
            rows.text("TRUNCATE operations_flag")
        flag_row(rows, rows.operation())
        with refused(rows, by="flag_no_delete"):
            rows.text("DELETE FROM operations_flag")
    else:
        with refused(rows, by="dispute_no_truncate"):
            rows.text("TRUNCATE operations_dispute")
