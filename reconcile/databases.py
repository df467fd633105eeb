"""Where the database is: PostgreSQL by address, or the embedded one."""

from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

from reconcile.local import places

_PERSISTENT_S = 600


def default(*, url: str, data_dir: Path) -> dict[str, Any]:
    """Make Django's settings of the one database."""
    settings = _by_address(url) if url else _embedded(data_dir)
    return settings | {
        # A connection a thread, kept; its health is checked once a request or task, so that a
        # restarted server costs no failed request.
        "CONN_MAX_AGE": _PERSISTENT_S,
        "CONN_HEALTH_CHECKS": True,
        # Every transaction is opened by the service that needs it, and none is open during a send.
        "ATOMIC_REQUESTS": False,
    }


def _by_address(url: str) -> dict[str, Any]:
    wrong = ImproperlyConfigured(
        "DATABASE_URL must name a PostgreSQL database (postgresql://user:password@host/name)."
    )
    if not url.startswith(("postgres://", "postgresql://")):
        raise wrong
    try:
        settings: dict[str, Any] = environ.Env.db_url_config(url)
    except ValueError:
        raise wrong from None
    if not settings["NAME"]:
        raise wrong
    settings["ENGINE"] = "django.db.backends.postgresql"
    options: dict[str, Any] = settings.setdefault("OPTIONS", {})
    # `?host=/folder` is how an address names a Unix socket.
    settings["HOST"] = settings["HOST"] or options.pop("host", "")
    settings["PORT"] = settings["PORT"] or options.pop("port", "")
    options.setdefault("connect_timeout", 5)
    return settings


def _embedded(data_dir: Path) -> dict[str, Any]:
    return {
        # Starts the server on the first connection, and shares one that already runs.
        "ENGINE": "reconcile.local.postgresql",
        "NAME": places.DATABASE_NAME,
        "USER": places.DATABASE_USER,
        "HOST": str(places.socket_dir(data_dir / "postgres")),
        "OPTIONS": {"connect_timeout": 5},
    }
