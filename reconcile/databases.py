"""Where the database is: PostgreSQL by address, or the embedded one."""

from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

from reconcile.local import places

_PERSISTENT_S = 600
# Statements that ask for it are prepared at once, others never: Django's cursors send whole texts.
# A pooler that can't hold prepared statements (PgBouncer before 1.21) needs them switched off.
_PREPARE_AFTER = 5


def default(*, url: str, data_dir: Path) -> dict[str, Any]:
    """Make Django's settings of the one database, as the web and the worker reach it."""
    settings = _by_address(url) if url else _embedded(data_dir)
    return settings | {
        # A connection a thread, kept; its health is checked once a request or task, so that a
        # restarted server costs no failed request.
        "CONN_MAX_AGE": _PERSISTENT_S,
        "CONN_HEALTH_CHECKS": True,
        # Every transaction is opened by the service that needs it, and none is open during a send.
        "ATOMIC_REQUESTS": False,
    }


def owner(url: str) -> dict[str, Any] | None:
    """Make the settings of the role that owns the tables and migrates them.

    None: it is the one that works with them, too.
    """
    return _by_address(url, name="DATABASE_OWNER_URL") if url else None


def _by_address(url: str, *, name: str = "DATABASE_URL") -> dict[str, Any]:
    wrong = ImproperlyConfigured(
        f"{name} must name a PostgreSQL database (postgresql://user:password@host/name)."
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
    options["prepare_threshold"] = _PREPARE_AFTER if _prepares(options) else None
    return settings


def _prepares(options: dict[str, Any]) -> bool:
    """Whether statements may be prepared; `?prepared_statements=off` says no."""
    match options.pop("prepared_statements", "on"):
        case "on":
            return True
        case "off":
            return False
        case wrong:
            raise ImproperlyConfigured(
                f'prepared_statements in DATABASE_URL must be on or off, not "{wrong}".'
            )


def _embedded(data_dir: Path) -> dict[str, Any]:
    return {
        # Starts the server on the first connection, and shares one that already runs.
        "ENGINE": "reconcile.local.postgresql",
        "NAME": places.DATABASE_NAME,
        "USER": places.DATABASE_USER,
        "HOST": str(places.socket_dir(data_dir / "postgres")),
        "OPTIONS": {"connect_timeout": 5, "prepare_threshold": _PREPARE_AFTER},
    }
