"""What the application's role may do with each table, when another role owns them.

It follows from the triggers: who can't update or delete any row of a table has no right to. No row
is ever truncated, and no table changed, by that role.
"""

from typing import Any

import pgtrigger
from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections, models, transaction
from psycopg import sql

#: Functions of the owner that do what the application's role can't, and nothing else.
_FUNCTIONS = (
    "reconcile_make_month(timestamptz)",
    "reconcile_index_month(text)",
    "reconcile_remove_month(text, timestamptz)",
)


def after_migrate(*, sender: Any, using: str, **_: Any) -> None:
    """Once after all migrations: close pgtrigger's back door, and grant what there is to grant."""
    if sender.name != "operations":
        return
    close_back_door(using=using)
    owner = settings.DATABASE_OWNER
    role = settings.DATABASE_ROLE
    if owner is not None and owner["USER"] != role:
        grant(role, using=using)


def close_back_door(*, using: str) -> None:
    """pgtrigger lets a session name triggers that it wants ignored. Ours are not."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT to_regprocedure('public._pgtrigger_should_ignore(name)') IS NOT NULL"
        )
        if cursor.fetchone()[0]:
            cursor.execute(
                "CREATE OR REPLACE FUNCTION public._pgtrigger_should_ignore(trigger_name NAME)"
                " RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS 'SELECT FALSE'"
            )


def rights(model: type[models.Model]) -> list[str]:
    """What the application's role may do with the rows of this model."""
    refused = {
        str(trigger.operation).upper()
        for trigger in getattr(model._meta, "triggers", [])
        # Not those made from it, which refuse only some changes.
        if type(trigger) is pgtrigger.Protect and trigger.condition is None
    }
    return [right for right in ("SELECT", "INSERT", "UPDATE", "DELETE") if right not in refused]


@transaction.atomic
def grant(role: str, *, using: str) -> None:
    """Give this role its rights, and take from it all others. The caller owns the tables.

    Raises CommandError when there is no such role.
    """
    name = sql.Identifier(role)
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is None:
            raise CommandError(
                f"The database has no role {role}, which DATABASE_URL names:"
                f" CREATE ROLE {role} LOGIN PASSWORD '…'."
            )
        for statement in (
            "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}",
            "GRANT USAGE ON SCHEMA public TO {}",
            # The partitions, which are written to through the whole, and what Django noted.
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}",
            "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {}",
            # Django's cache, which is a table without a model.
            "GRANT SELECT, INSERT, UPDATE, DELETE ON reconcile_cache TO {}",
            *(f"GRANT EXECUTE ON FUNCTION {function} TO {{}}" for function in _FUNCTIONS),
        ):
            cursor.execute(sql.SQL(statement).format(name))
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(
                sql.SQL("GRANT {} ON {} TO {}").format(
                    sql.SQL(", ").join(map(sql.SQL, rights(model))),
                    sql.Identifier(model._meta.db_table),
                    name,
                )
            )
