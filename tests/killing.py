"""`python -m tests.killing [--rounds 20]`: web, worker and database are killed under load.

A local stack gets signed events from several connections. In each round its web server, its
worker and its database are killed with SIGKILL, one after another in a drawn order, while the load
goes on. At the end every event that was acknowledged is there once, and handled.
"""

import argparse
import hashlib
import hmac
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import suppress

import psycopg

from reconcile.local.stack import LocalStack

_SENDERS = 4
#: Longer than a claim of the inbox holds, in seconds.
_DRAINED_WITHIN_S = 240


class Load:
    """Events posted by threads until told to stop; those that were acknowledged are remembered."""

    def __init__(self, stack: LocalStack) -> None:
        self._port = stack.port
        self._secret = stack.env["STRIPE_WEBHOOK_SECRETS"].split(",")[0].encode()
        self.acknowledged: set[str] = set()
        self.refused = 0
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(name,)) for name in range(_SENDERS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """No more events; returns when the last answer is there."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _send(self, name: int) -> None:
        number = 0
        while not self._over.is_set():
            link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
            with suppress(OSError, http.client.HTTPException):
                while not self._over.is_set():
                    number += 1
                    self._post(link, f"evt_{name}_{number}")
            link.close()
            time.sleep(0.05)

    def _post(self, link: http.client.HTTPConnection, event_id: str) -> None:
        refund = {"id": f"re_{event_id}", "object": "refund", "amount": 100, "status": "succeeded"}
        refund |= {"currency": "usd", "charge": "ch_1", "created": 1_795_000_000, "metadata": {}}
        told = {"id": event_id, "object": "event", "type": "refund.created", "livemode": False}
        raw = json.dumps(told | {"created": int(time.time()), "data": {"object": refund}}).encode()
        moment = str(int(time.time()))
        digest = hmac.new(self._secret, moment.encode() + b"." + raw, hashlib.sha256)
        header = {"Stripe-Signature": f"t={moment},v1={digest.hexdigest()}"}
        link.request("POST", "/webhooks/stripe/", raw, header)
        answer = link.getresponse()
        answer.read()
        if answer.status == 200:
            self.acknowledged.add(event_id)
        else:
            self.refused += 1


def kill_all_in_turn(stack: LocalStack, rng: random.Random) -> None:
    """Web, worker and database, each by SIGKILL, with a moment between them."""
    victims = ["web", "worker", "database"]
    rng.shuffle(victims)
    for victim in victims:
        time.sleep(rng.uniform(0.2, 1.0))
        with suppress(OSError, KeyError, IndexError):
            if victim == "database":
                pid_file = stack.data_dir / "postgres" / "data" / "postmaster.pid"
                pid = int(pid_file.read_text().split()[0])
            else:
                pid = stack.pids()[victim]
            os.kill(pid, signal.SIGKILL)


def play(*, rounds: int, seed: int) -> list[str]:
    """Kill for so many rounds; what is wrong afterwards."""
    rng = random.Random(seed)
    outside = ("DATABASE_URL", "CELERY_BROKER_URL", "STRIPE_API_KEY", "STRIPE_API_BASE")
    with tempfile.TemporaryDirectory(prefix="reconcile-killing-") as data_dir:
        env = dict.fromkeys((*outside, "STRIPE_WEBHOOK_SECRETS"), "")
        with LocalStack(
            env=env | {"RECONCILE_DATA_DIR": data_dir}, say=lambda name, line: None
        ) as stack:
            load = Load(stack)
            for number in range(rounds):
                kill_all_in_turn(stack, rng)
                _wait_until_it_serves(stack.url)
                time.sleep(rng.uniform(0.5, 2.0))
                print(f"round {number + 1}: {len(load.acknowledged)} acknowledged", flush=True)
            load.stop()
            print(f"refused or lost: {load.refused}", flush=True)
            return list(_wrong(stack.env["DATABASE_URL"], load.acknowledged))


def _wait_until_it_serves(url: str) -> None:
    ends_at = time.monotonic() + 120
    while True:
        with suppress(OSError):
            urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
            return
        if time.monotonic() > ends_at:
            raise TimeoutError("The site did not come back.")
        time.sleep(0.1)


def _wrong(url: str, acknowledged: set[str]) -> list[str]:
    ends_at = time.monotonic() + _DRAINED_WITHIN_S
    with psycopg.connect(url, autocommit=True) as rows:
        while rows.execute("SELECT count(*) FROM operations_inboxitem").fetchone() != (0,):
            if time.monotonic() > ends_at:
                return ["the inbox is not empty"]
            time.sleep(1)
        stored = [
            event_id for (event_id,) in rows.execute("SELECT event_id FROM operations_webhookevent")
        ]
        handled = {
            event_id
            for (event_id,) in rows.execute(
                "SELECT provider_event_id FROM operations_eventhandling"
            )
        }
    found = [f"{event_id} is lost" for event_id in acknowledged - set(stored)]
    found += [f"{event_id} is not handled" for event_id in acknowledged - handled]
    if len(stored) != len(set(stored)):
        found.append("an event is there twice")
    return found


def main() -> None:
    """Say how it went; the exit code is 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="killing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    wrong = play(rounds=asked.rounds, seed=asked.seed)
    print("\n".join(wrong) or "Every acknowledged event is there once, and handled.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
