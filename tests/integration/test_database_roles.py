"""The role that the application works as can add to the audit trail and evidence, and no more."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError
from django.db import ProgrammingError, connection, transaction
from psycopg import sql
from psycopg.errors import InsufficientPrivilege
from pytest_django import DjangoDbBlocker

from operations.checks import one_role_does_both
from operations.models import (
    AuditEntry,
    AuditSeal,
    EventHandling,
    Evidence,
    Note,
    Operation,
    Proposal,
    RefundReport,
    Request,
    WebhookEvent,
)
from operations.models.grants import grant, rights

PASSWORD = "only-in-tests"

APPEND_ONLY = [AuditEntry, AuditSeal, Evidence, EventHandling, Note, RefundReport, Request]
NEVER_REMOVED = [*APPEND_ONLY, Operation, Proposal, WebhookEvent]


@pytest.fixture(scope="module")
def as_application(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the application's role, which owns nothing."""
    with django_db_blocker.unblock():
        # Roles are the server's, which several processes of the tests share.
        role = f"application_of_{connection.settings_dict['NAME']}"
        name = sql.Identifier(role)
        with connection.cursor() as cursor:
            try:
                cursor.execute(
                    sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, sql.Literal(PASSWORD))
                )
            except ProgrammingError as error:
                # On a server of somebody else's, whose role was not given this; never on ours.
                if not isinstance(error.__cause__, InsufficientPrivilege):
                    raise
                pytest.skip(f"The tests' role can't make another one: {error}")
        grant(role, using="default")
        known = connection.get_connection_params()
        application = psycopg.connect(
            host=known.get("host"),
            port=known.get("port"),
            dbname=known["dbname"],
            user=role,
            password=PASSWORD,
            autocommit=True,
        )
        yield application
        application.close()
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP OWNED BY {}; DROP ROLE {}").format(name, name))
        connection.close()


def refused(application: psycopg.Connection[Any], statement: str, *names: str) -> None:
    with pytest.raises(InsufficientPrivilege):
        application.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@pytest.mark.parametrize("model", APPEND_ONLY)
def test_what_is_append_only_is_not_changed(
    as_application: psycopg.Connection[Any], model: Any
) -> None:
    table = model._meta.db_table
    refused(as_application, "UPDATE {} SET id = id", table)
    refused(as_application, "SELECT 1 FROM {} FOR UPDATE", table)
    refused(
        as_application,
        "INSERT INTO {} (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1",
        table,
    )


@pytest.mark.parametrize("model", NEVER_REMOVED)
def test_nothing_is_removed_and_no_rule_switched_off(
    as_application: psycopg.Connection[Any], model: Any
) -> None:
    for statement in (
        "DELETE FROM {}",
        "TRUNCATE {} CASCADE",
        "DROP TABLE {} CASCADE",
        "ALTER TABLE {} DISABLE TRIGGER ALL",
        "ALTER TABLE {} DISABLE TRIGGER USER",
        "ALTER TABLE {} OWNER TO CURRENT_USER",
        "CREATE RULE quietly AS ON INSERT TO {} DO INSTEAD NOTHING",
    ):
        refused(as_application, statement, model._meta.db_table)


def test_no_session_sets_the_rules_aside(as_application: psycopg.Connection[Any]) -> None:
    refused(as_application, "SET session_replication_role = replica")
    refused(as_application, "CREATE TABLE public.mine ()")
    refused(
        as_application,
        "CREATE OR REPLACE FUNCTION public._pgtrigger_should_ignore(trigger_name name)"
        " RETURNS boolean LANGUAGE sql AS 'SELECT TRUE'",
    )


def test_a_month_is_no_way_around(as_application: psycopg.Connection[Any]) -> None:
    """Partitions are written to through the whole; functions of the owner make and remove them."""
    table = "operations_webhookevent_rest"
    for statement in (
        "DELETE FROM {}",
        "UPDATE {} SET deliveries = 1",
        "INSERT INTO {} (id) VALUES (1)",
        "DROP TABLE {}",
        "ALTER TABLE operations_webhookevent DETACH PARTITION {}",
    ):
        refused(as_application, statement, table)
    with as_application.transaction(force_rollback=True):
        as_application.execute("SELECT reconcile_make_month('2019-03-01Z')")
        as_application.execute("SELECT 1 FROM operations_webhookevent_2019_03")
        refused_ = as_application.execute(
            "SELECT reconcile_remove_month('operations_webhookevent_2019_03', now())"
        ).fetchone()
        assert refused_ == (True,)


def test_the_application_may_do_its_work(as_application: psycopg.Connection[Any]) -> None:
    assert rights(Operation) == ["SELECT", "INSERT", "UPDATE"]
    assert rights(WebhookEvent) == ["SELECT", "INSERT", "UPDATE"]
    assert rights(AuditEntry) == ["SELECT", "INSERT"]
    for statement in (
        "SELECT count(*) FROM operations_auditentry",
        "UPDATE operations_operation SET revision = revision WHERE FALSE",
        "DELETE FROM operations_inboxitem WHERE FALSE",
        "SELECT nextval(pg_get_serial_sequence('operations_evidence', 'id'))",
        "DELETE FROM django_session WHERE FALSE",
        "SELECT count(*) FROM django_migrations",
    ):
        as_application.execute(statement)


@pytest.mark.django_db
def test_the_application_counts_tries_to_sign_in(as_application: psycopg.Connection[Any]) -> None:
    as_application.execute("INSERT INTO reconcile_cache VALUES ('tries', '1', now())")
    as_application.execute("UPDATE reconcile_cache SET value = '2' WHERE cache_key = 'tries'")
    as_application.execute("DELETE FROM reconcile_cache WHERE cache_key = 'tries'")


@pytest.mark.django_db
def test_triggers_are_ignored_for_no_session() -> None:
    """pgtrigger's own switch is dead, for the owner too."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL pgtrigger.ignore = '{pgtrigger_note_no_update_544d5}'")
        cursor.execute("SELECT _pgtrigger_should_ignore('pgtrigger_note_no_update_544d5')")
        assert cursor.fetchone() == (False,)


@pytest.mark.django_db
def test_a_role_that_is_not_there_is_asked_for() -> None:
    with pytest.raises(CommandError, match="CREATE ROLE nobody_at_all LOGIN"):
        grant("nobody_at_all", using="default")


@pytest.mark.django_db
def test_one_role_for_both_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "ENGINE", "django.db.backends.postgresql")
    (warning,) = one_role_does_both()
    assert warning.id == "operations.W001"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE ROLE owns_nothing; SET LOCAL ROLE owns_nothing")
        assert one_role_does_both() == []
        transaction.set_rollback(True)
