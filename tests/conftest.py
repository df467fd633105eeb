"""What all tests share: their own data folder and database, and how it is emptied between tests.

This file sets the environment before Django's settings are read, so nothing that reads them is
imported above `_use_a_world_of_our_own`.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import django
import hypothesis
import pytest
from django.conf import settings

_OURS = "RECONCILE_TESTS_DATA_DIR"


def _use_a_world_of_our_own() -> None:
    """Point the settings to a data folder that this run makes, and to no outside service.

    The first process makes it; the workers that pytest-xdist starts inherit it, and so share one
    embedded PostgreSQL. The server starts with the first query, and ends after the last process.
    """
    if _OURS in os.environ:
        return
    data_dir = tempfile.mkdtemp(prefix="reconcile-tests-")
    for name in [name for name in os.environ if name.startswith(("RECONCILE_", "STRIPE_"))]:
        del os.environ[name]
    os.environ |= {
        _OURS: data_dir,
        "RECONCILE_DATA_DIR": data_dir,
        "RECONCILE_EMBEDDED_DURABLE": "0",
        "RECONCILE_INSECURE_LOCAL": "1",
        "CELERY_BROKER_URL": "memory://",
        # The refused connection is what a forgotten sandbox fixture gets.
        "STRIPE_API_KEY": "sk_test_tests",
        "STRIPE_API_BASE": "http://127.0.0.1:9",
        "STRIPE_WEBHOOK_SECRETS": "whsec_tests",
        "DJANGO_SETTINGS_MODULE": "reconcile.settings",
        # Playwright's synchronous interface runs an event loop in the thread of the test.
        "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
    }


_use_a_world_of_our_own()
# Before pytest-django would: the conftest files below this one import models.
django.setup()
# A hash that is slow on purpose would be half of what every sign-in here costs.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Two processes share two cores with a database and a browser: slow is not wrong.
hypothesis.settings.register_profile(
    "shared", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared")


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what lives as long as the run, and come less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the data folder after the workers have ended."""
    if hasattr(config, "workerinput"):
        return
    from django.db import connections

    from reconcile.local.postgres import postgres_in

    connections.close_all()
    postgres_in(settings.RECONCILE.data_dir).release()
    shutil.rmtree(os.environ.pop(_OURS), ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _empty_append_only_tables() -> Iterator[None]:
    """Clean up after tests that commit, although triggers refuse to remove rows.

    What the migrations made (content types, permissions, roles) stays. A superuser deletes with the
    triggers out of the way, in a few milliseconds; any other role, being the tables' owner, has
    Django flush them between switching the triggers off and on again. A test that tries to remove
    rows itself is refused as anybody is.
    """
    from django.db import connection
    from django.db.backends.postgresql.operations import DatabaseOperations
    from django.test import TransactionTestCase

    case: Any = TransactionTestCase
    flush, sql_flush = case._fixture_teardown, DatabaseOperations.sql_flush

    def teardown(self: TransactionTestCase) -> None:
        if _is_superuser():
            with connection.cursor() as cursor:
                cursor.execute(_delete_all())
        else:
            flush(self)

    def sql_flush_without_triggers(
        self: DatabaseOperations, style: Any, tables: Any, **options: Any
    ) -> list[str]:
        statements = sql_flush(self, style, tables, **options)
        if not statements:
            return []
        names = [self.quote_name(table) for table in _with_triggers(self.connection, tables)]
        return [
            *(f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in names),
            *statements,
            *(f"ALTER TABLE {name} ENABLE TRIGGER USER" for name in names),
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(case, "_fixture_teardown", teardown)
        patch.setattr(DatabaseOperations, "sql_flush", sql_flush_without_triggers)
        yield


_MADE_BY_MIGRATIONS = {
    "auth_group",
    "auth_group_permissions",
    "auth_permission",
    "django_content_type",
    "django_migrations",
}


@cache
def _is_superuser() -> bool:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        return bool(cursor.fetchone()[0])


@cache
def _delete_all() -> str:
    from django.db import connection

    tables = set(connection.introspection.table_names()) - _MADE_BY_MIGRATIONS
    deletes = "".join(f"DELETE FROM {connection.ops.quote_name(name)};" for name in sorted(tables))
    return f"BEGIN; SET LOCAL session_replication_role = replica; {deletes} COMMIT"


def _with_triggers(connection: Any, tables: Any) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal"
        )
        known = {name.strip('"') for (name,) in cursor.fetchall()}
    return [table for table in tables if table in known]


@pytest.fixture(scope="session")
def chromium_path() -> Path:
    """A Chromium to run. `make test` installs one; without one the tests fail, never skip."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    if not Path(found).exists():
        pytest.fail("The browser tests need Chromium: `make test` installs it, or says how.")
    return Path(found)


@pytest.fixture(scope="module")
def local_stack_factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Start whole local stacks, each with a database, broker and sandbox of its own.

    Called with settings (`RECONCILE_CALL_DEADLINE_S="2"`), it answers a `LocalStack` that is ready;
    all are stopped at the end of the module. Its output is in `output.log` of its data folder.
    """
    from reconcile.local.stack import LocalStack

    started: list[tuple[LocalStack, TextIO]] = []

    def start(**env: str) -> LocalStack:
        data_dir = tmp_path_factory.mktemp("stack")
        log = (data_dir / "output.log").open("a", buffering=1)
        outside = ("DATABASE_URL", "CELERY_BROKER_URL", "STRIPE_API_KEY", "STRIPE_API_BASE")
        stack = LocalStack(
            env={
                **dict.fromkeys((*outside, "STRIPE_WEBHOOK_SECRETS"), ""),
                "RECONCILE_DATA_DIR": str(data_dir),
                **env,
            },
            say=lambda name, line: None if log.closed else print(f"{name} | {line}", file=log),
        )
        started.append((stack, log))
        try:
            stack.start()
            stack.wait_ready(timeout_s=180)
        except Exception as error:
            error.add_note((data_dir / "output.log").read_text()[-5_000:])
            raise
        return stack

    yield start
    for stack, log in started:
        stack.stop(grace_s=5)
        log.close()
