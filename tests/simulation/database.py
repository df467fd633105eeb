"""Emptying the product's tables between two worlds, with the triggers out of the way."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.apps import apps
from django.db import connection


def prepare() -> None:
    """Make the connection quick: nothing here has to survive a power cut."""
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off; SET jit = off")


def empty() -> None:
    """Delete all rows of the product. Needs a role that may set `session_replication_role`."""
    with connection.cursor() as cursor:
        cursor.execute(_delete_all())


def tidy() -> None:
    """Take away what the deleted rows leave behind, so that the thousandth world is as quick."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM " + ", ".join(_tables()))


@contextmanager
def guards_off() -> Iterator[None]:
    """Without the database's own triggers: what the product's code does wrong shows as itself."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = origin")


def _tables() -> list[str]:
    models = apps.get_app_config("operations").get_models()
    return [connection.ops.quote_name(model._meta.db_table) for model in models]


def _delete_all() -> str:
    deletes = "; ".join(f"DELETE FROM {table}" for table in _tables())
    return f"SET LOCAL session_replication_role = replica; {deletes}"
