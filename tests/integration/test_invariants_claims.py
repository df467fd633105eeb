"""What the database refuses of claims, presences and saved views, in whatever words."""

from datetime import timedelta
from typing import Any

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


def test_database_keeps_claims_short_and_whole() -> None:
    rows = Rows()
    operation = rows.operation()
    given: dict[str, Any] = {
        "operation_id": operation,
        "holder": "1",
        "holder_name": "Dana",
        "claimed_at": NOW,
        "renewed_at": NOW,
        "expires_at": NOW + timedelta(minutes=15),
        "taken_reason": "",
    }
    with refused(rows, by="claim_has_a_holder", sqlstate=CHECK):
        rows.insert("claim", key="operation_id", **given | {"holder": ""})
    for expires in (NOW, NOW + timedelta(minutes=15, seconds=1)):
        with refused(rows, by="claim_runs_out", sqlstate=CHECK):
            rows.insert("claim", key="operation_id", **given | {"expires_at": expires})
    rows.insert("claim", key="operation_id", **given)
    with refused(rows, by="operations_claim_pkey", sqlstate=UNIQUE):
        rows.insert("claim", key="operation_id", **given | {"holder": "2"})
    with refused(rows, by="claim_taken_with_a_reason"):
        rows.text("UPDATE operations_claim SET holder = '2'")
    with refused(rows, by="claim_frozen"):
        rows.text("UPDATE operations_claim SET operation_id = gen_random_uuid()")
    rows.text("UPDATE operations_claim SET holder = '2', taken_reason = 'Dana has left.'")


def test_a_claim_that_ran_out_goes_to_anybody() -> None:
    rows = Rows()
    rows.insert(
        "claim",
        key="operation_id",
        operation_id=rows.operation(),
        holder="1",
        holder_name="Dana",
        claimed_at=NOW - timedelta(hours=1),
        renewed_at=NOW - timedelta(hours=1),
        expires_at=NOW - timedelta(minutes=45),
        taken_reason="",
    )

    rows.text(
        "UPDATE operations_claim SET holder = '2', claimed_at = %s, renewed_at = %s,"
        " expires_at = %s",
        NOW,
        NOW,
        NOW + timedelta(minutes=15),
    )


def test_database_keeps_one_presence_a_person() -> None:
    rows = Rows()
    given: dict[str, Any] = {
        "operation_id": rows.operation(),
        "person": "1",
        "person_name": "Dana",
        "seen_at": NOW,
    }
    rows.insert("presence", **given)
    with refused(rows, by="presence_once", sqlstate=UNIQUE):
        rows.insert("presence", **given)
    with refused(rows, by="presence_is_somebodys", sqlstate=CHECK):
        rows.insert("presence", **given | {"person": ""})


def test_database_keeps_saved_views_apart() -> None:
    rows = Rows()
    given: dict[str, Any] = {
        "name": "Large",
        "owner": "1",
        "owner_name": "Dana",
        "shared": True,
        "query": "view=all",
        "created_at": NOW,
    }
    rows.insert("savedview", **given)
    with refused(rows, by="saved_view_name_once", sqlstate=UNIQUE):
        rows.insert("savedview", **given | {"shared": False})
    with refused(rows, by="saved_view_shared_name_once", sqlstate=UNIQUE):
        rows.insert("savedview", **given | {"owner": "2"})
    with refused(rows, by="saved_view_has_a_name_and_an_owner", sqlstate=CHECK):
        rows.insert("savedview", **given | {"name": "", "shared": False})
    with refused(rows, by="saved_view_frozen"):
        rows.text("UPDATE operations_savedview SET query = ''")
