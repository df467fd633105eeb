"""HTTP in which every exchange has an end and every answer a largest size.

`requests` limits the wait for each single read: a server that lets a byte drip now and then could
hold a send for ever, and a body is read however long it is. Here one deadline covers connecting,
sending and reading. Once it has passed nothing more leaves: a connection that is made too late is
closed unused. What it can't cut short is the system's name resolution.
"""

import http.client
import io
import logging
import math
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

log = logging.getLogger(__name__)

#: More than a page of 100 refunds with full metadata, escaped, can take. In bytes.
LARGEST_ANSWER = 16 * 2**20

_ends_at: ContextVar[float] = ContextVar("ends_at", default=math.inf)


class _Reader(io.RawIOBase):
    """Reads from a socket until the deadline that holds when it is made."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._pause_s = sock.gettimeout()
        self._ends_at = _ends_at.get()
        self._bytes_left = LARGEST_ANSWER

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("The answer did not end within the time for one call.")
        if self._bytes_left <= 0:
            raise OSError("The answer is larger than any that is expected.")
        if left_s < math.inf:
            self._sock.settimeout(min(left_s, self._pause_s or left_s))
        count = self._raw.readinto(buffer)
        self._bytes_left -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Reader(sock))


class _Connection(HTTPConnection):
    response_class = _Response

    def connect(self) -> None:
        super().connect()
        _refuse_if_late(self)


class _SecureConnection(HTTPSConnection):
    response_class = _Response

    def connect(self) -> None:
        super().connect()
        _refuse_if_late(self)


def _refuse_if_late(connection: HTTPConnection) -> None:
    if time.monotonic() >= _ends_at.get():
        connection.close()
        raise urllib3.exceptions.ConnectTimeoutError(
            connection, "The connection was made too late; nothing was sent."
        )


class BoundedPool(HTTPConnectionPool):
    """Connections over plain http, bound by `within`."""

    ConnectionCls = _Connection


class BoundedSecurePool(HTTPSConnectionPool):
    """Connections over https, bound by `within`."""

    ConnectionCls = _SecureConnection


_POOLS = {"http": BoundedPool, "https": BoundedSecurePool}


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is exchanged in this block, in this thread, ends after `seconds`."""
    token = _ends_at.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _ends_at.reset(token)


class _Adapter(HTTPAdapter):
    """Sends once, within `seconds` from the start to the last byte of the answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> Any:
        with within(self._seconds):
            response = super().send(request, *args, **options)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            # Nobody asked for it, and what it unpacks to has no bound.
            response.close()
            raise requests.exceptions.ContentDecodingError("The answer is compressed.")
        notice = response.headers.pop("Stripe-Notice", None)
        if notice:
            # The SDK would warn, and where warnings are errors the answer would be lost.
            log.warning("provider_notice: %s", notice[:500])
        return response


def bounded_session(seconds: float) -> requests.Session:
    """A session whose every exchange ends after `seconds`, and that follows no redirect."""
    session = requests.Session()
    session.max_redirects = 0
    session.headers["Accept-Encoding"] = "identity"
    session.mount("http://", _Adapter(seconds))
    session.mount("https://", _Adapter(seconds))
    return session
