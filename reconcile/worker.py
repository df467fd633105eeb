"""How one process of gunicorn serves: uvicorn, with limits on a request's head.

The parser that it uses has none of its own: a head could go on, and be kept, for ever.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn_worker import UvicornWorker

#: How long a client may take to send the head of a request, in seconds.
LONGEST_HEAD_S = 10.0
#: How large a head may be in all, in bytes, and how many headers it may have.
LARGEST_HEAD = 2**15
MOST_HEADERS = 100

_TOO_LARGE = b"The head of the request is too large.\n"
_HEADERS = [
    (b"content-type", b"text/plain"),
    (b"content-length", str(len(_TOO_LARGE)).encode()),
    (b"connection", b"close"),
]


async def head_too_large(scope: Any, receive: Any, send: Any) -> None:
    """Answers in the place of the site."""
    await send({"type": "http.response.start", "status": 431, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _TOO_LARGE})


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose clients have to say within a time, and in few words, what they want."""

    _head_timer: asyncio.TimerHandle | None = None
    #: What came since the head began, as long as it is not whole, and what it holds. Bytes.
    _unread = 0
    _head_size = 0

    def connection_made(self, transport: Any) -> None:
        """A connection: its first request is to come soon."""
        super().connection_made(transport)
        self._expect_a_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes, of a head or of a body."""
        if self._head_timer is not None:
            self._unread += len(data)
        super().data_received(data)
        # One header without an end is told to nobody before it ends.
        if self._head_timer is not None and self._unread > 2 * LARGEST_HEAD:
            self.transport.close()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._unread = self._head_size = 0
        self._head_came()
        self._expect_a_head()

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        super().on_url(url)
        self._head_size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or one of the trailers that may follow a body in chunks."""
        self._head_size += len(name) + len(value)
        if self._is_too_large():
            # What is too much is not kept.
            if self._head_timer is None:
                self.transport.close()
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        self._head_came()
        site = self.app
        if self._is_too_large():
            self.app = head_too_large
        super().on_headers_complete()
        self.app = site

    def _is_too_large(self) -> bool:
        return self._head_size > LARGEST_HEAD or len(self.headers) > MOST_HEADERS

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
        "http": "reconcile.direct:DirectProtocol",
        "lifespan": "on",
        "ws": "none",
        # Who is believed about the scheme and the address is the bridge's to say.
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
    }
