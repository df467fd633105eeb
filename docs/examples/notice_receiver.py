"""Receives Reconcile's notices: verifies, keeps, and drops repeats. Needs nothing but Python.

    NOTICE_SECRETS=whsec_… python notice_receiver.py [PORT]

Several secrets, separated by blanks, are all tried: list the old and the new one while they roll.
"""

import base64
import hashlib
import hmac
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: How far the sender's clock and ours may be apart, in seconds. An older request is a replay.
TOLERANCE_S = 300
LARGEST_BODY = 64 * 1024


class NotVerified(Exception):
    """This was not sent by whom it says, or not just now."""


def verify(headers: Mapping[str, str], body: bytes, secrets: list[str]) -> str:
    """The message's id, if one of its signatures is made with one of our secrets.

    `headers` have their names in lower case. Raises NotVerified.
    """
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_S:
        raise NotVerified("The timestamp is missing, or too far from now.")
    signed = b".".join([message_id.encode(), timestamp.encode(), body])
    given = [
        value
        for version, _, value in (
            part.partition(",") for part in headers.get("webhook-signature", "").split(" ")
        )
        if version == "v1"
    ]
    for secret in secrets:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        if any(hmac.compare_digest(expected, value) for value in given):
            return message_id
    raise NotVerified("No signature is made with a secret of ours.")


class Store:
    """What has happened. The message's id is the primary key: a repeat changes nothing."""

    def __init__(self, path: str) -> None:
        self._path = path
        with self._database() as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS notice (id TEXT PRIMARY KEY, type TEXT, body TEXT)"
            )
            database.execute(
                "CREATE TABLE IF NOT EXISTS refund (operation TEXT PRIMARY KEY, status TEXT)"
            )

    def take(self, message_id: str, notice: dict[str, Any]) -> bool:
        """Keep a notice and do what follows from it, in one transaction. False for a repeat."""
        try:
            with self._database() as database:
                database.execute(
                    "INSERT INTO notice VALUES (?, ?, ?)",
                    (message_id, notice["type"], json.dumps(notice)),
                )
                # Here is what is yours to do: note it for the customer, wake the agent.
                data = notice["data"]
                database.execute(
                    "INSERT INTO refund VALUES (?, ?) ON CONFLICT (operation) DO UPDATE"
                    " SET status = excluded.status",
                    (data["operation_id"], data["status"]),
                )
        except sqlite3.IntegrityError:
            return False
        return True

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path)) as database, database:
            yield database


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to what is verified, repeats included, and 401 to everything else."""

    secrets: list[str] = []
    store: Store

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        if length > LARGEST_BODY:
            return self._answer(413)
        body = self.rfile.read(length)
        try:
            headers = {name.lower(): value for name, value in self.headers.items()}
            message_id = verify(headers, body, self.secrets)
        except NotVerified as error:
            self.log_message("refused: %s", error)
            return self._answer(401)
        notice = json.loads(body)  # Only now: what is not signed is not even read.
        fresh = self.store.take(message_id, notice)
        print(f"{'took' if fresh else 'dropped'} {notice['type']} {message_id}", flush=True)
        # A repeat is answered like the first: the sender only wants to know that we have it.
        self._answer(204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        print(format % args, file=sys.stderr, flush=True)


def main() -> None:
    Receiver.secrets = os.environ["NOTICE_SECRETS"].split()
    Receiver.store = Store(os.environ.get("NOTICE_STORE", "notices.sqlite3"))
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    with ThreadingHTTPServer(("127.0.0.1", port), Receiver) as server:
        print(f"listening {server.server_address[1]}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
