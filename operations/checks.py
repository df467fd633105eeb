"""What `check --deploy` says of the database's roles."""

from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError, connection


def register_all() -> None:
    register(one_role_does_both, Tags.security, deploy=True)


def one_role_does_both(**options: Any) -> list[CheckMessage]:
    """The role that works with the tables can also change what must never be changed."""
    if connection.settings_dict["ENGINE"] != "django.db.backends.postgresql":
        return []  # The embedded one; its stack has two roles by itself.
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_user, pg_has_role(current_user, relowner, 'MEMBER')"
                " FROM pg_class WHERE oid = to_regclass('operations_auditentry')"
            )
            row = cursor.fetchone()
    except DatabaseError:
        return []  # Not to be reached from here, or not migrated yet.
    if row is None or not row[1]:
        return []
    return [
        Warning(
            f"The database role {row[0]} of DATABASE_URL owns the tables, so the audit trail is"
            " append-only by triggers alone.",
            hint="Migrate with another role in DATABASE_OWNER_URL (docs/audit.md).",
            id="operations.W001",
        )
    ]
