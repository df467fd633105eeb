"""The audit trail is sealed into a file, and checked against it."""

from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from operations.models import AuditEntry, AuditSeal
from operations.services.actors import SEALER
from operations.services.engine import default_engine
from operations.services.sealing import seal_is_due, seal_to_file

from .rows import Rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def operations() -> list[UUID]:
    """Three operations with four entries each."""
    rows = Rows()
    made = [rows.operation() for _ in range(3)]
    for operation in made:
        for number in range(1, 5):
            AuditEntry.append(
                operation_id=operation,
                actor=SEALER,
                action="noted",
                now=default_engine().clock(),
                reason=f"Reason {number}",
            )
    return sorted(made, key=str)


@pytest.fixture
def seal(operations: list[UUID], tmp_path: Path) -> Path:
    path = tmp_path / "seal.txt"
    seal_to_file(engine=default_engine(), path=path, actor=SEALER)
    return path


def verify(*arguments: str) -> str:
    said = StringIO()
    call_command("verify_audit", *arguments, stdout=said)
    return said.getvalue()


def broken(*arguments: str) -> str:
    with pytest.raises(CommandError) as error:
        verify(*arguments)
    assert error.value.returncode == 1
    return str(error.value)


def tamper(statement: str, *values: str) -> None:
    """As who owns the database could."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE operations_auditentry DISABLE TRIGGER USER")
        cursor.execute(statement, values)
        cursor.execute("ALTER TABLE operations_auditentry ENABLE TRIGGER USER")


def test_what_was_sealed_is_found_whole_with_what_was_added_since(
    seal: Path, operations: list[UUID]
) -> None:
    AuditEntry.append(
        operation_id=operations[1], actor=SEALER, action="noted", now=default_engine().clock()
    )
    said = verify("--seal", str(seal))
    assert "14 entries in 4 chains: whole. 1 seals in line." in said
    assert "All 12 entries of seal 1" in said


def test_a_cut_tail_is_found_by_the_seal_alone(seal: Path, operations: list[UUID]) -> None:
    tamper("DELETE FROM operations_auditentry WHERE chain = %s AND number > 2", str(operations[1]))
    assert "whole" in verify()
    assert f"Chain {operations[1]} is broken at entry 3" in broken("--seal", str(seal))


def test_a_removed_chain_is_found_by_the_seal_alone(seal: Path, operations: list[UUID]) -> None:
    tamper("DELETE FROM operations_auditentry WHERE chain = %s", str(operations[0]))
    assert "whole" in verify()
    assert f"Chain {operations[0]} is broken at entry 1" in broken("--seal", str(seal))


def test_a_changed_entry_is_named_without_a_seal(operations: list[UUID]) -> None:
    tamper(
        "UPDATE operations_auditentry SET reason = 'x' WHERE chain = %s AND number = 2",
        str(operations[2]),
    )
    said = broken()
    assert f"Chain {operations[2]} is broken at entry 2 (noted, " in said
    assert said.endswith("it is not what was written.")


def test_a_seal_of_another_key_is_believed_only_when_that_key_is_named(
    seal: Path, settings: Any
) -> None:
    old = AuditSeal.objects.get().public_key
    settings.RECONCILE = replace(settings.RECONCILE, signing_key="ab" * 32)
    assert "signed with another key" in broken("--seal", str(seal))
    assert "All 12 entries" in verify("--seal", str(seal), "--public-key", old)


def test_a_seal_whose_words_were_changed_is_found(seal: Path) -> None:
    seal.write_bytes(seal.read_bytes().replace(b'"environment":"local"', b'"environment":"live"'))
    assert "The signature of this seal is wrong" in broken("--seal", str(seal))


def test_a_seal_that_the_database_lost_is_found(seal: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE operations_auditseal DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM operations_auditseal")
        cursor.execute("ALTER TABLE operations_auditseal ENABLE TRIGGER USER")
    assert "The database has no seal 1 like this one" in broken("--seal", str(seal))


def test_seals_follow_each_other(seal: Path, tmp_path: Path) -> None:
    call_command("seal_audit", "--out", str(tmp_path / "second"), stdout=StringIO())
    first, second = AuditSeal.objects.order_by("number")
    assert second.previous_digest == first.digest
    assert list(
        AuditEntry.objects.filter(action="audit_sealed")
        .order_by("number")
        .values_list("actor_kind", "actor_id")
    ) == [("job", "seal"), ("command", "seal_audit")]
    assert "2 seals in line" in verify("--seal", str(seal))


def test_wrong_use_changes_nothing_and_exits_2(seal: Path, tmp_path: Path) -> None:
    for command, arguments in (
        ("verify_audit", ["--seal", str(tmp_path / "none")]),
        ("verify_audit", ["--public-key", "ab"]),
        ("seal_audit", ["--out", str(seal)]),
        ("seal_audit", ["--out", str(tmp_path / "none" / "seal")]),
    ):
        with pytest.raises(CommandError) as error:
            call_command(command, *arguments)
        assert error.value.returncode == 2
    assert AuditSeal.objects.count() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["seal.txt"]


def test_a_seal_is_due_when_the_last_one_is_old_enough(seal: Path) -> None:
    engine = default_engine()
    later = replace(engine, clock=lambda: engine.clock() + timedelta(days=1))
    assert not seal_is_due(engine=engine, every_s=86_400)
    assert seal_is_due(engine=later, every_s=86_400)
    assert not seal_is_due(engine=later, every_s=0)
