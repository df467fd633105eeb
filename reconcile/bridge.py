"""Django behind an ASGI server: its WSGI application on threads of its own.

Threads make a call that waits for the provider cheap, and keep their database connections. A
request takes one only when its body is there and only until its answer is made: who sends slowly
holds none, and who reads slowly reads from a temporary file.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from threading import Lock
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from reconcile.bodies import IN_MEMORY, LONGEST_PAUSE_S, Bodies, BodyRefused, CutOff, Uploads

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_PIECE = 2**16


class WsgiBridge:
    """Serves a WSGI application. `trusted` are proxies whose word counts: on the scheme, and on
    the address of who came to them.
    """

    def __init__(
        self,
        application: Callable[..., Iterable[bytes]],
        *,
        threads: int,
        trusted: frozenset[str] = frozenset(),
        uploads: Uploads | None = None,
    ) -> None:
        self._application = application
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="django")
        self._trusted = trusted
        self._bodies = Bodies(uploads, self._ask)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        headers = dict(scope["headers"])
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as body:
            try:
                async with self._bodies.read(scope, headers, receive, body) as length:
                    environ = _environ(scope, body, length, self._trusted)
                    await self._exchange(environ, send)
            except CutOff:
                await _answer(send, 400, b"The body ended early.\n", _CUT_OFF)
            except BodyRefused as refusal:
                await _answer(send, refusal.status, *refusal.answer(headers))

    async def _exchange(self, environ: dict[str, Any], send: Send) -> None:
        with _Exchange(send) as exchange:
            made = asyncio.get_running_loop().run_in_executor(
                self._pool, exchange.run, self._application, environ
            )
            await exchange.pass_on(made)

    def close(self) -> None:
        """Wait for the requests that are served."""
        self._pool.shutdown(wait=True)

    async def _ask(self, question: Callable[[], bool]) -> bool:
        return await asyncio.get_running_loop().run_in_executor(self._pool, question)


class _Exchange:
    """One answer on its way from a thread to the client, in pieces of up to 64 KiB.

    The thread writes what is larger than one piece to a file, as fast as it makes it, and the
    client is sent what is there. Once the client is gone the thread stops at its next piece.
    """

    def __init__(self, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        self._send = send
        self._head: Message | None = None
        self._piece = bytearray()
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._lock = Lock()
        self._written = self._sent = 0
        self._more = asyncio.Event()
        self._gone = False

    def __enter__(self) -> "_Exchange":
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._gone = True
            self._file.close()

    def run(self, application: Callable[..., Iterable[bytes]], environ: dict[str, Any]) -> None:
        """In a thread: let the application answer."""
        parts = application(environ, self._start)
        try:
            for part in parts:
                self._piece += part
                if len(self._piece) >= _PIECE and not self._store():
                    return
        finally:
            close = getattr(parts, "close", None)
            if close is not None:
                close()

    def _store(self) -> bool:
        """Write what was made; whether anybody still wants it."""
        with self._lock:
            if self._gone:
                return False
            self._file.seek(self._written)
            self._file.write(self._piece)
            self._written += len(self._piece)
        self._piece = bytearray()
        self._loop.call_soon_threadsafe(self._more.set)
        return True

    async def pass_on(self, made: "asyncio.Future[None]") -> None:
        """Send what the thread makes until it has `made` all. Raises what the thread raised."""
        made.add_done_callback(lambda _: self._more.set())
        begun = False
        while True:
            await self._more.wait()
            self._more.clear()
            is_whole = made.done()
            if is_whole:
                made.result()
            if not begun and self._head is not None:
                begun = True
                await self._send(self._head)
            while self._sent < self._written:
                await self._send_piece(self._next(), more=True)
            if is_whole:
                await self._send_piece(bytes(self._piece), more=False)
                return

    def _next(self) -> bytes:
        with self._lock:
            self._file.seek(self._sent)
            piece = self._file.read(min(_PIECE, self._written - self._sent))
        self._sent += len(piece)
        return piece

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        self._head = {
            "type": "http.response.start",
            "status": int(status.split(" ", 1)[0]),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
            ],
        }
        return self._piece.extend

    async def _send_piece(self, piece: bytes, *, more: bool) -> None:
        async with asyncio.timeout(LONGEST_PAUSE_S):
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})


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
    if environ["REMOTE_ADDR"] in trusted:
        if environ.get("HTTP_X_FORWARDED_PROTO") == "https":
            environ["wsgi.url_scheme"] = "https"
        environ["REMOTE_ADDR"] = _behind(
            environ["REMOTE_ADDR"], environ.get("HTTP_X_FORWARDED_FOR", ""), trusted
        )
    return environ


def _behind(proxy: str, forwarded: str, trusted: frozenset[str]) -> str:
    """Who came to a proxy: the last one of its list that is no proxy itself.

    What stands before may be the client's own invention. A list that ends with no address at all
    says nothing.
    """
    for part in reversed(forwarded.split(",")):
        try:
            address = str(ip_address(part.strip()))
        except ValueError:
            return proxy
        if address not in trusted:
            return address
    return proxy


_CUT_OFF = [
    (b"content-type", b"text/plain"),
    (b"content-length", b"22"),
    (b"connection", b"close"),
]


async def _answer(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]]
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})
