"""A provider that says what was recorded, over real HTTP, one answer after another."""

import http.server
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

#: Status, headers, and the body as JSON or as text.
Recorded = tuple[int, dict[str, str], Any]


@dataclass
class RecordedProvider:
    """Answers sends and lists in the recorded order, the last one for ever; counts the sends.

    It knows no payments: reading one is a 404.
    """

    url: str = ""
    sends: Sequence[Recorded] = ()
    lists: Sequence[Recorded] = ()
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    _given: dict[str, int] = field(default_factory=dict)

    def seen(self, method: str) -> list[str]:
        """The paths that were asked for with this method."""
        return [path for asked, path, _ in self.requests if asked == method]

    def answer(self, method: str, path: str, headers: dict[str, str]) -> Recorded:
        """The next recorded answer to such a request."""
        self.requests.append((method, path, headers))
        is_list = path.startswith("/v1/refunds") and method == "GET"
        rows = self.sends if method == "POST" else self.lists if is_list else ()
        if not rows:
            error = {"type": "invalid_request_error", "code": "resource_missing"}
            return 404, {}, {"error": error}
        number = self._given.get(method, 0)
        self._given[method] = number + 1
        return rows[min(number, len(rows) - 1)]


@contextmanager
def recorded_provider(
    *, sends: Sequence[Recorded] = (), lists: Sequence[Recorded] = ()
) -> Iterator[RecordedProvider]:
    """Serve recorded answers on a loopback port."""
    provider = RecordedProvider(sends=sends, lists=lists)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, body = provider.answer(
                self.command, self.path, dict(self.headers.items())
            )
            raw = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(raw)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        provider.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield provider
        server.shutdown()
