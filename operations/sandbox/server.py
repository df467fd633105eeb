"""HTTP/1.1 for the sandbox: one thread a connection, kept alive, stopped at once when asked."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import struct
import sys
import threading
import traceback
from http import HTTPStatus
from urllib.parse import urlsplit

from .answers import Answer, JsonObject, as_json
from .api import Api
from .assembly import Assembly
from .calls import Call, Reply, Wire
from .control import Control
from .params import decode

LARGEST_BODY = 1_000_000
CONTROL = "/_sandbox/"
LINGER_RESET = struct.pack("ii", 1, 0)


class SandboxServer(http.server.ThreadingHTTPServer):
    """Listens, and knows its open connections so that it can close them."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], parts: Assembly) -> None:
        self.api = Api(parts)
        self.control = Control(parts)
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        self._resetting: set[socket.socket] = set()
        super().__init__(address, Handler)

    def opened(self, connection: socket.socket) -> None:
        """A connection's thread has started."""
        with self._open_lock:
            self._open.add(connection)

    def reset_on_close(self, connection: socket.socket) -> None:
        """Close this connection with RST instead of FIN."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
        self._resetting.add(connection)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close a connection; the library's way would send a FIN before the RST."""
        if isinstance(request, tuple):
            return
        with self._open_lock:
            self._open.discard(request)
        if request in self._resetting:
            self._resetting.discard(request)
            request.close()
        else:
            super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client went away; anything else is a fault of the sandbox."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()

    def close_connections(self) -> None:
        """Cut every open connection, so that no thread goes on waiting for a client."""
        with self._open_lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class Handler(http.server.BaseHTTPRequestHandler):
    """Reads one request after another from a connection and answers it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "sandbox"
    server: SandboxServer

    def setup(self) -> None:
        """Register the connection before reading from it."""
        super().setup()
        self.server.opened(self.connection)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet: the control path has the logs."""

    def do_GET(self) -> None:
        """Answer one request, whatever its method."""
        try:
            self._put(self._reply())
        except OSError:
            raise
        except Exception as error:
            traceback.print_exc()
            message = f"The sandbox itself failed: {type(error).__name__}: {error}"
            failure = {"error": {"type": "api_error", "code": "sandbox_bug", "message": message}}
            self._put(Reply(as_json(500, failure)))

    do_POST = do_DELETE = do_GET

    def _reply(self) -> Reply:
        target = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST_BODY or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            return Reply(as_json(413, {"error": "send at most 1 MB with a Content-Length"}))
        body = self.rfile.read(length)
        if target.path == "/healthz":
            return Reply(as_json(200, {"ok": True}))
        if target.path.startswith(CONTROL):
            return Reply(self._control(target.path.removeprefix(CONTROL), target.query, body))
        form = target.query if self.command == "GET" else body.decode("utf-8", "replace")
        headers = {name.lower(): value for name, value in self.headers.items()}
        return self.server.api.reply(Call(self.command, target.path, decode(form), headers))

    def _control(self, path: str, query: str, body: bytes) -> Answer:
        if self.client_address[0] not in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
            return as_json(403, {"error": "the control path is for this machine only"})
        try:
            given: JsonObject | object = json.loads(body or b"{}")
        except ValueError:
            given = None
        if not isinstance(given, dict):
            return as_json(400, {"error": "the body is not a JSON object"})
        return self.server.control.reply(self.command, path, query, given)

    def _put(self, reply: Reply) -> None:
        """Write head and body in one go, or damage the reply as it wants."""
        if reply.wire is Wire.RESET:
            self.server.reset_on_close(self.connection)
        if reply.answer is None:
            self.close_connection = True
            return
        answer, body = reply.answer, reply.answer.body
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
        lines.append(f"Content-Type: {answer.content_type}")
        lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        if reply.wire is Wire.TRUNCATED:
            self.close_connection = True
            body = body[: len(body) // 2]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
        self.wfile.write(head + body)
