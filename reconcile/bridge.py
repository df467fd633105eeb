"""Django behind an ASGI server: its WSGI application on threads of its own.

Threads make a call that waits for the provider cheap, and keep their database connections. A
request takes one only when its body is there and only until its answer is: who sends or reads
slowly holds none.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any
from urllib.parse import unquote_to_bytes

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: How long a client may pause while it sends a request or takes its answer, in seconds.
LONGEST_PAUSE_S = 10.0
#: A larger body goes to disk; and no body that is no upload of files may be larger. Bytes.
IN_MEMORY = 2**20
#: No upload may be larger. Bytes.
LARGEST_UPLOAD = 2**29
_PIECE = 2**16


class CutOff(Exception):
    """The client went away or paused for too long."""


class WsgiBridge:
    """Serves a WSGI application. `trusted` are proxies whose word counts on the scheme."""

    def __init__(
        self,
        application: Callable[..., Iterable[bytes]],
        *,
        threads: int,
        trusted: frozenset[str] = frozenset(),
    ) -> None:
        self._application = application
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="django")
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as body:
            try:
                length = await _read_body(scope, receive, body)
            except CutOff:
                await _answer(send, 400, b"The body ended early.\n")
                return
            environ = _environ(scope, body, length, self._trusted)
            loop = asyncio.get_running_loop()
            exchange = _Exchange(loop, send)
            await loop.run_in_executor(self._pool, exchange.run, self._application, environ)
            await exchange.finish()

    def close(self) -> None:
        """Wait for the requests that are served."""
        self._pool.shutdown(wait=True)


class _Exchange:
    """One answer on its way from a thread to the client, in pieces of at least 64 KiB."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Send) -> None:
        self._loop = loop
        self._send = send
        self._head: Message | None = None
        self._begun = False
        self._piece = bytearray()

    def run(self, application: Callable[..., Iterable[bytes]], environ: dict[str, Any]) -> None:
        """In a thread: let the application answer."""
        parts = application(environ, self._start)
        try:
            for part in parts:
                self._piece += part
                if len(self._piece) >= _PIECE:
                    future = asyncio.run_coroutine_threadsafe(self._pass_on(more=True), self._loop)
                    future.result()
        finally:
            close = getattr(parts, "close", None)
            if close is not None:
                close()

    async def finish(self) -> None:
        """Send what is left. An answer that fits in one piece is sent without its thread."""
        await self._pass_on(more=False)

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        self._head = {
            "type": "http.response.start",
            "status": int(status.split(" ", 1)[0]),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
            ],
        }
        return self._piece.extend

    async def _pass_on(self, *, more: bool) -> None:
        if not self._begun and self._head is not None:
            self._begun = True
            await self._send(self._head)
        piece, self._piece = bytes(self._piece), bytearray()
        async with asyncio.timeout(LONGEST_PAUSE_S):
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})


async def _read_body(scope: Scope, receive: Receive, body: IO[bytes]) -> int:
    """Read the body to its end; its length. What Django refuses by its length is not read."""
    headers = dict(scope["headers"])
    uploads = headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")
    most = LARGEST_UPLOAD if uploads else IN_MEMORY
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > most:
        return int(declared)
    length = 0
    while True:
        try:
            async with asyncio.timeout(LONGEST_PAUSE_S):
                message = await receive()
        except TimeoutError:
            raise CutOff from None
        if message["type"] == "http.disconnect":
            raise CutOff
        part = message.get("body", b"")
        length += len(part)
        if length > most:
            return length
        body.write(part)
        if not message.get("more_body", False):
            body.seek(0)
            return length


def _environ(scope: Scope, body: IO[bytes], length: int, trusted: frozenset[str]) -> dict[str, Any]:
    """The request as PEP 3333 has it. Headers with an underscore could pass for others."""
    server = scope.get("server") or ("localhost", 80)
    client = scope.get("client") or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": str(server[0]),
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": str(client[0]),
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if "_" in name:
            continue
        key = name.upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        if key in environ:
            joint = "; " if key == "HTTP_COOKIE" else ","
            value = f"{environ[key]}{joint}{value}"
        environ[key] = value
    environ["CONTENT_LENGTH"] = str(length) if length else ""
    if environ["REMOTE_ADDR"] in trusted and environ.get("HTTP_X_FORWARDED_PROTO") == "https":
        environ["wsgi.url_scheme"] = "https"
    return environ


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
