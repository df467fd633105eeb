"""What the database refuses of seals: each follows the one before, and stays as it is."""

from typing import Any

import pytest

from .invariants import CHECK, UNIQUE, refused
from .rows import NOW, Rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> Rows:
    """With one seal."""
    rows = Rows()
    seal(rows)
    return rows


def seal(rows: Rows, **changes: Any) -> None:
    columns: dict[str, Any] = {
        "number": 1,
        "sealed_at": NOW,
        "environment": "test",
        "chains": 1,
        "entries": 2,
        "heads_digest": "a" * 64,
        "previous_digest": "0" * 64,
        "digest": "b" * 64,
        "signature": "c" * 128,
        "public_key": "d" * 64,
        **changes,
    }
    rows.insert("auditseal", **columns)


def test_a_seal_stays_as_it_is(rows: Rows) -> None:
    with refused(rows, by="audit_seal_no_update"):
        rows.text("UPDATE operations_auditseal SET entries = 1")
    with refused(rows, by="audit_seal_no_delete"):
        rows.text("DELETE FROM operations_auditseal")
    with refused(rows, by="audit_seal_no_truncate"):
        rows.text("TRUNCATE operations_auditseal")


def test_a_seal_follows_the_last_one(rows: Rows) -> None:
    with refused(rows, by="audit_seal_follows_the_last"):
        seal(rows, number=3, previous_digest="b" * 64)
    with refused(rows, by="audit_seal_follows_the_last"):
        seal(rows, number=2)
    with refused(rows, by="operations_auditseal_number_key", sqlstate=UNIQUE):
        seal(rows)


def test_a_seal_is_signed(rows: Rows) -> None:
    with refused(rows, by="audit_seal_is_signed", sqlstate=CHECK):
        seal(rows, number=2, previous_digest="b" * 64, signature="")
