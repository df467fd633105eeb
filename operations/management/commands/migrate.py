"""`manage.py migrate`: Django's own, as the role that owns the tables when there is one."""

from typing import Any

from django.conf import settings
from django.core.management.commands import migrate
from django.db import connections


class Command(migrate.Command):
    """Connects by DATABASE_OWNER_URL; the web and the worker go on by DATABASE_URL."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate; the rights of the application's role follow by themselves."""
        owner = settings.DATABASE_OWNER
        if owner is None:
            super().handle(*args, **options)
            return
        connection = connections[options["database"]]
        before = dict(connection.settings_dict)
        connection.close()
        connection.settings_dict.update(
            {name: owner[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "OPTIONS")}
        )
        try:
            super().handle(*args, **options)
        finally:
            connection.close()
            connection.settings_dict.update(before)
