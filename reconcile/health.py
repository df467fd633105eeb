"""Probes for whoever runs this: is the process alive, and may it be sent requests."""

from functools import cache

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 as long as this process answers at all; it asks nobody else."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when the database answers and has every migration, else 503 with the reason.

    The broker is not asked: without it requests are served all the same.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        _see_that_the_schema_is_complete()
    except DatabaseError:
        return _not_ready("the database does not answer")
    except _MigrationsMissingError as error:
        return _not_ready(str(error))
    return HttpResponse("ready\n", content_type="text/plain")


class _MigrationsMissingError(Exception):
    pass


@cache  # Only a success is remembered: a schema does not become incomplete.
def _see_that_the_schema_is_complete() -> None:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        raise _MigrationsMissingError(f"{len(missing)} migrations are not applied")


def _not_ready(reason: str) -> HttpResponse:
    return HttpResponse(f"not ready: {reason}\n", content_type="text/plain", status=503)
