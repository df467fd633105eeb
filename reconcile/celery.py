"""The Celery application. Messages are hints: what must happen stands in the database."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reconcile.settings")

# Celery's Django support closes the connection around every task unless it is told a number of
# tasks to reuse it for. Django's own rule (age and health) decides instead, below.
PRACTICALLY_NEVER = 2**31


class ReconcileCelery(Celery):
    """Celery that starts the embedded broker when none is configured and somebody connects."""

    def connection_for_write(self, url: Any = None, *args: Any, **kwargs: Any) -> Any:
        self._ensure_broker(url)
        return super().connection_for_write(url, *args, **kwargs)

    def connection_for_read(self, url: Any = None, *args: Any, **kwargs: Any) -> Any:
        self._ensure_broker(url)
        return super().connection_for_read(url, *args, **kwargs)

    @staticmethod
    def _ensure_broker(url: Any) -> None:
        from django.conf import settings

        if url is None and settings.EMBEDDED_BROKER:
            from reconcile.local.valkey import valkey_in

            valkey_in(settings.RECONCILE.data_dir).ensure()


def _stop_on_wrong_settings() -> None:
    """Tell a wrong setting in one sentence when this is the `celery` command."""
    command = Path(sys.argv[0])
    if "celery" not in (command.name, command.parent.name):
        return
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    try:
        settings.INSTALLED_APPS  # noqa: B018
    except ImproperlyConfigured as error:
        sys.exit(str(error))


_stop_on_wrong_settings()

app = ReconcileCelery("reconcile")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf["CELERY_DB_REUSE_MAX"] = PRACTICALLY_NEVER
app.autodiscover_tasks(related_name="jobs")


@signals.setup_logging.connect
def _use_djangos_logging(**kwargs: Any) -> None:
    """Keep Celery from setting up logging of its own: Django's setup did it."""


@signals.task_prerun.connect
def _drop_unusable_connections(**kwargs: Any) -> None:
    from django.db import connections

    if kwargs["task"].request.is_eager:
        return
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


@signals.worker_process_init.connect
def _leave_the_code_to_itself(**kwargs: Any) -> None:
    """What is loaded by now lives as long as the process: no collection of garbage looks at it."""
    gc.collect()
    gc.freeze()


@signals.worker_process_init.connect
def _end_with_the_worker(**kwargs: Any) -> None:
    """In the local stack a pool process ends with its worker, however that one ends."""
    from reconcile.local.tether import die_with_parent, is_tethered

    if is_tethered():
        die_with_parent()
