"""The backend's entry point, found by Django under this name."""

from typing import Any

from django.db.backends.postgresql import base

from reconcile.local.postgres import postgres_in


class DatabaseWrapper(base.DatabaseWrapper):
    """Sees that the embedded server runs before every new connection.

    A command that makes no query therefore starts no server.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        from django.conf import settings

        postgres_in(settings.RECONCILE.data_dir).ensure()
        return super().get_new_connection(conn_params)
