"""A server that does what no HTTP library lets it do: it speaks in raw bytes, and counts.

What it does with a request is a function of the connection. The counts are the test's proof of
what left the product: `requests` are those that arrived whole, `connections` all that were made.
"""

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CERTIFICATE = Path(__file__).parent / "certificates" / "localhost.pem"
_RESET = struct.pack("ii", 1, 0)
#: Nothing here waits longer than this, in seconds.
_LONGEST_S = 10.0


@dataclass(frozen=True)
class Arrived:
    """A request that arrived whole; header names in lower case."""

    line: str
    headers: Mapping[str, str]
    body: str


Behaviour = Callable[[socket.socket], None]


@dataclass
class WireServer:
    """Where it listens and what it saw."""

    url: str = ""
    requests: list[Arrived] = field(default_factory=list)
    connections: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def read(self, sock: socket.socket) -> Arrived | None:
        """Read one request to its end; None when the connection ends before."""
        raw = b""
        while b"\r\n\r\n" not in raw:
            more = sock.recv(65_536)
            if not more:
                return None
            raw += more
        head, _, body = raw.partition(b"\r\n\r\n")
        line, *rows = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (r.partition(":") for r in rows)
        }
        while len(body) < int(headers.get("content-length", 0)):
            more = sock.recv(65_536)
            if not more:
                return None
            body += more
        arrived = Arrived(line, headers, body.decode())
        self.requests.append(arrived)
        return arrived

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the test."""
        self.over.wait(min(seconds, _LONGEST_S))

    # --- Behaviours: what is done with one connection --------------------------------------------

    def says(self, raw: bytes) -> Behaviour:
        """Reads the request, writes these bytes, and closes."""

        def behave(sock: socket.socket) -> None:
            if self.read(sock) is not None:
                sock.sendall(raw)

        return behave

    def answers(self, *replies: bytes) -> Behaviour:
        """Answers one request after another on a kept connection, the last reply for ever."""

        def behave(sock: socket.socket) -> None:
            while self.read(sock) is not None:
                sock.sendall(replies[min(len(self.requests), len(replies)) - 1])

        return behave

    def closes(self, *, after_reading: bool, reset: bool = False, first: bytes = b"") -> Behaviour:
        """Closes (FIN), or resets (RST), with nothing said but `first`."""

        def behave(sock: socket.socket) -> None:
            if after_reading:
                self.read(sock)
            if first:
                sock.sendall(first)
                time.sleep(0.05)  # A reset overtakes bytes that were not read yet.
            if reset and not after_reading:
                time.sleep(0.05)  # Else it can reach a client that is still connecting.
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

        return behave

    def stalls(self, first: bytes = b"") -> Behaviour:
        """Reads the request, says `first`, and then nothing more."""

        def behave(sock: socket.socket) -> None:
            self.read(sock)
            sock.sendall(first)
            self.pause(_LONGEST_S)

        return behave

    def drips(self, first: bytes, *, drop: bytes = b" ", every_s: float = 0.05) -> Behaviour:
        """Says `first`, and then a drop now and then, for as long as anybody listens."""

        def behave(sock: socket.socket) -> None:
            self.read(sock)
            sock.sendall(first)
            while not self.over.is_set():
                self.pause(every_s)
                sock.sendall(drop)

        return behave

    def floods(self, first: bytes, block: bytes = b" " * 65_536) -> Behaviour:
        """Says `first`, and then more than anybody wants to hear."""

        def behave(sock: socket.socket) -> None:
            self.read(sock)
            sock.sendall(first)
            while not self.over.is_set():
                sock.sendall(block)

        return behave

    def never_speaks_tls(self) -> Behaviour:
        """Takes the connection and does not answer the handshake."""

        def behave(sock: socket.socket) -> None:
            self.pause(_LONGEST_S)

        return behave


def reply(
    status: int,
    body: Any = b"",
    *,
    headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
    length: int | None = None,
) -> bytes:
    """A whole HTTP answer. `body` as JSON unless it is bytes; `length` is what is claimed."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    rows = list(headers.items() if isinstance(headers, Mapping) else headers or [])
    head = [
        f"HTTP/1.1 {status} Something",
        "Content-Type: application/json",
        f"Content-Length: {len(raw) if length is None else length}",
        *(f"{name}: {value}" for name, value in rows),
    ]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + raw


@contextmanager
def wire_server(
    choose: Callable[[WireServer], Behaviour], *, tls: bool = False
) -> Iterator[WireServer]:
    """Serve on a loopback port; with `tls` behind a certificate that nobody trusts."""
    server = WireServer()
    behave = choose(server)
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)

    def serve(sock: socket.socket) -> None:
        sock.settimeout(_LONGEST_S)
        with contextlib.suppress(OSError):
            if context is not None:
                sock = context.wrap_socket(sock, server_side=True)
            with sock:
                behave(sock)
        sock.close()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                server.connections += 1
                threading.Thread(target=serve, args=(sock,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        port = listener.getsockname()[1]
        server.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server
        finally:
            server.over.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
