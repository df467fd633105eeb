"""Posts signed events from background threads, and tries again until the answer is 2xx.

Source of the retries: Stripe, "Webhooks", up to three days. Delays and signatures use real time,
not the sandbox's clock, so that advancing it does not make signatures look too new.
"""

from __future__ import annotations

import heapq
import http.client
import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from .answers import JsonObject
from .events import Event, EventLog
from .state import Guard
from .webhooks import Address, Addresses, raw_body, signature

THREADS = 8
TIMEOUT_S = 10.0
DEFAULT_BASE_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
GIVE_UP_S = 3 * 86_400


@dataclass
class Job:
    """Events to be delivered one after another; `failures` counts tries that were not 2xx."""

    events: Sequence[Event]
    failures: int = 0
    first: float | None = None


def post(address: Address, event: Event) -> tuple[int | None, str | None]:
    """One delivery: the HTTP status, or what went wrong instead."""
    body = raw_body(event)
    parts = urlsplit(address.url)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        connection = make(parts.netloc, timeout=TIMEOUT_S)
        try:
            connection.request(
                "POST",
                parts.path + (f"?{parts.query}" if parts.query else ""),
                body,
                {
                    "Content-Type": "application/json; charset=utf-8",
                    "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
                    "Stripe-Signature": signature(address.secret, body, int(time.time())),
                    "Connection": "close",
                },
            )
            answer = connection.getresponse()
            answer.read()
            return answer.status, None
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        return None, f"{type(error).__name__}: {error}"


class Deliverer:
    """A queue ordered by due time and the threads that empty it. Every try is logged."""

    def __init__(
        self,
        guard: Guard,
        log: EventLog,
        addresses: Addresses,
        base_delay_s: float = DEFAULT_BASE_DELAY_S,
    ) -> None:
        self.guard = guard
        self.log = log
        self.addresses = addresses
        self.base_delay_s = base_delay_s
        self.tries: list[JsonObject] = []
        self._condition = threading.Condition()
        self._order = itertools.count()
        self._queue: list[tuple[float, int, Job]] = []
        self._busy = 0
        self._stopping = False

    def start(self) -> None:
        """Start the threads; what was queued before is delivered now."""
        for number in range(THREADS):
            name = f"sandbox-delivery-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def stop(self) -> None:
        """Take nothing more from the queue. A delivery on its way ends with its thread."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()

    def send(self, events: Sequence[Event]) -> None:
        """Queue events to go out now, one after another."""
        self._put(Job(tuple(events)), 0.0)

    def clear(self) -> None:
        """Drop what is queued and the log, for a reset."""
        with self._condition:
            self._queue.clear()
            self.tries.clear()

    def state(self) -> JsonObject:
        """How many jobs are due or on their way, and how many wait to be tried again."""
        with self._condition:
            again = sum(1 for _, _, job in self._queue if job.failures)
            return {"queued": len(self._queue) - again + self._busy, "retrying": again}

    def _put(self, job: Job, delay_s: float) -> None:
        with self._condition:
            due = time.monotonic() + delay_s
            heapq.heappush(self._queue, (due, next(self._order), job))
            self._condition.notify()

    def _next(self) -> Job | None:
        with self._condition:
            while not self._stopping:
                wait_s = self._queue[0][0] - time.monotonic() if self._queue else None
                if wait_s is not None and wait_s <= 0:
                    self._busy += 1
                    return heapq.heappop(self._queue)[2]
                self._condition.wait(wait_s)
            return None

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                for event in job.events:
                    if self._stopping:
                        return
                    self._deliver(event, job)
            finally:
                with self._condition:
                    self._busy -= 1

    def _deliver(self, event: Event, job: Job) -> None:
        address = self.addresses.of(event)
        if address is None:
            return
        started = time.time()
        first = job.first or started
        status, error = post(address, event)
        arrived = status is not None and 200 <= status < 300
        over = not arrived and time.time() - first > GIVE_UP_S
        outcome = "delivered" if arrived else "given_up" if over else "failed"
        with self.guard.changing():
            self.tries.append(
                {
                    "event": event.id,
                    "type": event.type,
                    "payments": list(event.payments),
                    "account": event.account or None,
                    "url": address.url,
                    "time": started,
                    "took_s": round(time.time() - started, 4),
                    "try": job.failures + 1,
                    "status": status,
                    "error": error,
                    "outcome": outcome,
                }
            )
            if outcome != "failed":
                self.log.set_delivery(event, "done" if arrived else "given_up")
        if outcome == "failed":
            delay_s = min(self.base_delay_s * 2**job.failures, LONGEST_DELAY_S)
            self._put(Job((event,), job.failures + 1, first), delay_s)
