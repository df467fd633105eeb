"""The hash chain finds what was changed, taken out or swapped."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from operations.domain.audit import CHAIN_START, Actor, ActorKind, ChainedEntry
from operations.models.audit import AuditEntry, first_break

OPERATION = UUID("0195511c-0000-7000-8000-000000000001")
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def _chain(length: int, operation: UUID | None = OPERATION) -> list[AuditEntry]:
    """A whole chain, never saved."""
    entries: list[AuditEntry] = []
    for number in range(1, length + 1):
        entry = AuditEntry(
            chain=str(operation) if operation else "system",
            number=number,
            operation_id=operation,
            at=NOW + timedelta(seconds=number),
            actor_kind=ActorKind.PERSON,
            actor_id="alice",
            actor_name="Alice \u00e4\u4e2d",
            actor_address="127.0.0.1",
            action="closed_failed",
            before={"status": "unknown", "attention": ["mismatch"]},
            after={"status": "failed", "attention": []},
            reason=f"Reason {number}",
            evidence_id=str(number),
            previous_hash=entries[-1].entry_hash if entries else CHAIN_START,
        )
        entry.entry_hash = entry.chained().digest()
        entries.append(entry)
    return entries


@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("operation", [OPERATION, None])
def test_a_whole_chain_has_no_break(length: int, operation: UUID | None) -> None:
    assert first_break(_chain(length, operation)) is None


@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("chain", "system"),
        ("number", 9),
        ("operation_id", UUID(int=7)),
        ("operation_id", None),
        ("at", NOW),
        ("actor_kind", "job"),
        ("actor_kind", "ghost"),
        ("actor_id", "bob"),
        ("actor_name", "Bob"),
        ("actor_address", "10.0.0.1"),
        ("action", "opened"),
        ("before", {"status": "open"}),
        ("after", {"status": "failed", "attention": ["mismatch"]}),
        ("reason", "Another"),
        ("evidence_id", ""),
        ("previous_hash", "f" * 64),
        ("entry_hash", "f" * 64),
    ],
)
def test_any_change_is_found_where_it_was_made(number: int, field: str, value: Any) -> None:
    entries = _chain(5)
    setattr(entries[number - 1], field, value)
    broken = first_break(entries)
    assert broken is entries[number - 1]


@pytest.mark.parametrize("number", [1, 2, 4])
def test_an_entry_that_was_taken_out_is_missed_by_the_next(number: int) -> None:
    entries = _chain(5)
    following = entries[number]
    del entries[number - 1]
    assert first_break(entries) is following


def test_two_entries_that_were_swapped_are_found() -> None:
    entries = _chain(5)
    entries[1], entries[2] = entries[2], entries[1]
    assert first_break(entries) is entries[1]


def test_a_change_hashed_anew_is_missed_by_the_next() -> None:
    entries = _chain(5)
    entries[2].reason = "Another"
    entries[2].entry_hash = entries[2].chained().digest()
    assert first_break(entries) is entries[3]


def test_an_entry_of_another_chain_is_found() -> None:
    entries = _chain(3)
    entries[1] = _chain(3, UUID(int=7))[1]
    assert first_break(entries) is entries[1]


def test_a_digest_stays_what_it_was() -> None:
    """Entries written by an older release are checked with this."""
    entry = ChainedEntry(
        chain="system",
        number=1,
        at=NOW,
        actor=Actor(kind=ActorKind.COMMAND, id="root", name="R\u00e4t", address=""),
        action="api_key_created",
        before={},
        after={"b": 1, "a": [None, True, 1.5]},
        reason="",
        evidence_id="",
        previous_hash=CHAIN_START,
    )
    assert entry.digest() == "0de0b61864ade9965f37ffcb2fd7b944ed060007e6018a79e72aaa45b50d86c3"
