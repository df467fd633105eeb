"""Posts signed events from one process, each connection one after another.

`python -m bench.load HOST PORT PATH SECRET CONNECTIONS SECONDS TYPE` prints one JSON line: how many
were acknowledged, the others' statuses, seconds, and the 50th and 99th percentile in milliseconds.
"""

import hashlib
import hmac
import json
import selectors
import socket
import sys
import time
from typing import Any

_HEADS_END = b"\r\n\r\n"
_CHUNKS_END = b"0\r\n\r\n"


def body_of(number: str, kind: str = "refund.created") -> bytes:
    """An event of 1.5 KB with a refund, with an id and a refund of its own."""
    refund = {
        "id": f"re_{number}",
        "object": "refund",
        "amount": 1_234,
        "balance_transaction": f"txn_{number}",
        "charge": f"ch_{number}",
        "created": int(time.time()),
        "currency": "usd",
        "destination_details": {"card": {"reference_status": "pending", "type": "refund"}},
        "failure_reason": None,
        "metadata": {"order": number, "note": "n" * 620},
        "payment_intent": f"pi_{number}",
        "reason": "requested_by_customer",
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": "succeeded",
        "transfer_reversal": None,
    }
    event = {
        "id": f"evt_{number}",
        "object": "event",
        "api_version": "2025-03-31.basil",
        "created": int(time.time()),
        "data": {"object": refund},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": f"req_{number}", "idempotency_key": f"key-{number}"},
        "type": kind,
    }
    return json.dumps(event, indent=1).encode()


class _Client:
    def __init__(
        self, where: tuple[str, int], path: str, secret: str, name: str, kind: str
    ) -> None:
        self.socket = socket.create_connection(where)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        )
        self._secret, self._name, self._sent = secret.encode(), name, 0
        self._got = b""
        self.began = 0.0
        # All but the id is the same: what the client does costs the server's time.
        self._template = body_of("@" * 24, kind)

    def send(self) -> None:
        self._sent += 1
        number = f"{self._name}{self._sent:x}".rjust(24, "0").encode()
        raw = self._template.replace(b"@" * 24, number)
        moment = str(int(time.time())).encode()
        digest = hmac.new(self._secret, moment + b"." + raw, hashlib.sha256).hexdigest()
        signed = f"Stripe-Signature: t={moment.decode()},v1={digest}\r\n"
        head = f"{self._head}{signed}Content-Length: {len(raw)}\r\n\r\n"
        self._got = b""
        self.began = time.perf_counter()
        self.socket.sendall(head.encode() + raw)

    def read(self) -> int:
        """The status once the answer is whole, 0 before."""
        part = self.socket.recv(65_536)
        if not part:
            raise ConnectionError("The server closed the connection.")
        self._got += part
        head, found, body = self._got.partition(_HEADS_END)
        if not found:
            return 0
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            return int(head[9:12]) if body.endswith(_CHUNKS_END) else 0
        place = lower.find(b"content-length:")
        length = int(lower[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
        return int(head[9:12]) if len(body) >= length else 0


def load(
    where: tuple[str, int],
    path: str,
    secret: str,
    *,
    connections: int,
    seconds: float,
    kind: str,
) -> dict[str, Any]:
    """Post for so long; what came of it."""
    run = f"{time.time_ns():x}"[-10:]
    clients = [
        _Client(where, path, secret, f"{run}{place:02x}", kind) for place in range(connections)
    ]
    times: list[float] = []
    others: dict[int, int] = {}
    with selectors.DefaultSelector() as ready:
        for client in clients:
            ready.register(client.socket, selectors.EVENT_READ, client)
            client.send()
        started = time.perf_counter()
        ends_at = started + seconds
        waiting = len(clients)
        while waiting:
            for key, _ in ready.select(30):
                client = key.data
                status = client.read()
                if not status:
                    continue
                now = time.perf_counter()
                if status == 200:
                    times.append(now - client.began)
                else:
                    others[status] = others.get(status, 0) + 1
                if now < ends_at:
                    client.send()
                else:
                    waiting -= 1
        took = time.perf_counter() - started
    for client in clients:
        client.socket.close()
    times.sort()
    return {
        "stored": len(times),
        "others": others,
        "seconds": took,
        "p50_ms": 1_000 * times[len(times) // 2] if times else None,
        "p99_ms": 1_000 * times[int(len(times) * 0.99)] if times else None,
    }


if __name__ == "__main__":
    host, port, to, key, many, long, kind = sys.argv[1:]
    done = load((host, int(port)), to, key, connections=int(many), seconds=float(long), kind=kind)
    sys.stdout.write(json.dumps(done) + "\n")
