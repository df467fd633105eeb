"""How one process of gunicorn serves: uvicorn, with a limit on how long a request's head takes."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn_worker import UvicornWorker

#: How long a client may take to send the head of a request, in seconds.
LONGEST_HEAD_S = 10.0


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose clients have to say within a time what they want."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A connection: its first request is to come soon."""
        super().connection_made(transport)
        self._expect_a_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._head_came()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._head_came()
        self._expect_a_head()

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        self._head_came()
        super().on_headers_complete()

    def _expect_a_head(self) -> None:
        self._head_timer = self.loop.call_later(LONGEST_HEAD_S, self.transport.close)

    def _head_came(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class Worker(UvicornWorker):  # type: ignore[misc]
    """What `worker_class` names."""

    CONFIG_KWARGS: dict[str, Any] = {
        "loop": "uvloop",
        "http": PatientProtocol,
        "lifespan": "on",
        "ws": "none",
        # Who is believed about the scheme is the bridge's to say; nobody is about the address.
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
    }
