"""What gunicorn serves: the webhooks' receiver, and Django for everything else."""

import asyncio
import os
from typing import Any

import psycopg
from django.core.wsgi import get_wsgi_application

from reconcile.bodies import Uploads
from reconcile.bridge import Receive, Scope, Send, WsgiBridge

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reconcile.settings")
# Sets Django up: what is imported below needs its settings.
_django = get_wsgi_application()

from django.conf import settings  # noqa: E402
from django.db import close_old_connections, connections  # noqa: E402
from django.urls import reverse  # noqa: E402

from operations.console.uploads import may_upload  # noqa: E402
from operations.services.engine import default_engine  # noqa: E402
from operations.webhooks.receiver import Receiver  # noqa: E402
from operations.webhooks.writer import LONGEST_STORE_S, Connection, Writer  # noqa: E402

#: How many requests a process serves at once beside the webhooks; most of them wait.
THREADS = 16


class Site:
    """One process's part of the site."""

    def __init__(self) -> None:
        trusted = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1,::1")
        self._pages = WsgiBridge(
            _django,
            threads=THREADS,
            trusted=frozenset(trusted.replace(" ", "").split(",")),
            uploads=Uploads(
                path=reverse("report-upload"),
                cookie=settings.SESSION_COOKIE_NAME,
                allows=_may_upload,
                most_mb=settings.RECONCILE.report_max_mb,
            ),
        )
        self._receiver: Receiver | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the process's life."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and Receiver.serves(scope["path"]):
            await self.receiver(scope, receive, send)
        elif scope["type"] == "http":
            await self._pages(scope, receive, send)

    @property
    def receiver(self) -> Receiver:
        """What takes the webhooks; the first one that comes makes it."""
        if self._receiver is None:
            self._receiver = Receiver(engine=default_engine, writer=Writer(_connect))
        return self._receiver

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                if self._receiver is not None:
                    await self._receiver.close()
                await asyncio.to_thread(self._pages.close)
                await send({"type": "lifespan.shutdown.complete"})
                return


def _may_upload(session_key: str) -> bool:
    """In a thread that serves requests, whose connection this uses as they do."""
    close_old_connections()
    try:
        return may_upload(session_key)
    finally:
        close_old_connections()


async def _connect() -> Connection:
    """The writer's own connection, to where Django's goes."""
    given = await asyncio.to_thread(_connection_parameters)
    connection: Connection = await psycopg.AsyncConnection.connect(**given, autocommit=True)
    await connection.execute(f"SET statement_timeout = {int(LONGEST_STORE_S * 1_000)}")
    return connection


def _connection_parameters() -> dict[str, Any]:
    database = connections["default"]
    try:
        # Starts the embedded server when nobody did yet.
        database.ensure_connection()
        given = database.get_connection_params()
    finally:
        database.close()
    for djangos in ("context", "cursor_factory", "client_encoding", "server_side_binding"):
        given.pop(djangos, None)
    return given


application = Site()
