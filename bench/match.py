"""How many events a second are matched and settled out of the inbox, with all that is kept of it.

Ours and the baseline are tasks of one Celery worker with two processes on one embedded broker, and
take turns in rounds on one PostgreSQL server.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from celery import Celery
from django.conf import settings
from django.db import connection

from bench import stock, stored_rows
from bench.written import written_by
from operations.models import InboxItem
from operations.models.statements import run
from operations.providers.stripe_events import event_facts
from operations.services.draining import drain
from operations.services.engine import default_engine
from operations.services.ingesting import STORE, Delivery, columns_of
from reconcile.local.valkey import broker_url, valkey_in

_GOAL = 30.0
_GOAL_STORED = 0.85
_PROCESSES = 2
#: How many events a turn has; the baseline's take as long with fewer.
_OURS = 3_000
_BASELINE = 150
_PATIENCE_S = 60.0

_ROOT = Path(__file__).resolve().parent.parent


def measure(*, rounds: int, stored: int) -> None:
    """Print one JSON line; two when the rate is also taken with so many events stored."""
    with worker(_PROCESSES) as app:
        few = _measured(app, rounds)
        _say(few)
        if stored:
            stored_rows.fill(stored)
            many = _measured(app, rounds)
            ratio = many["ours"] / few["ours"]
            _say(
                many
                | {
                    "name": f"match, {stored} events and operations stored, events/s",
                    "baseline": few["ours"],
                    "baseline_is": "ours with an empty store",
                    "peer": many["baseline"],
                    "peer_is": few["baseline_is"],
                    "ratio": round(ratio, 2),
                    "goal": _GOAL_STORED,
                }
            )


def _measured(app: Any, rounds: int) -> dict[str, Any]:
    ours, baseline = [], []
    _by_ours(app, _OURS // 4)
    _by_tasks(app, _BASELINE // 4)
    for _ in range(rounds):
        ours.append(_by_ours(app, _OURS))
        baseline.append(_by_tasks(app, _BASELINE))
    ratios = [mine / its for mine, its in zip(ours, baseline, strict=True)]
    return {
        "name": f"match, {_PROCESSES} processes, events/s",
        "ours": round(statistics.median(ours), 1),
        "baseline": round(statistics.median(baseline), 1),
        "peer": None,
        "ratio": round(statistics.median(ratios), 2),
        "goal": _GOAL,
        "ratios": [round(ratio, 2) for ratio in ratios],
        "baseline_is": "one Celery task an event, through the ORM",
        "writes": _written(),
    }


def _by_ours(app: Any, count: int) -> float:
    _receive(count)

    def start(pks: list[int]) -> None:
        for _ in range(_PROCESSES):
            app.send_task("operations.jobs.handle_events")

    return _rate(start)


def _by_tasks(app: Any, count: int) -> float:
    _receive(count)

    def start(pks: list[int]) -> None:
        for pk in pks:
            app.send_task("bench.handle_one", [pk])

    return _rate(start)


def _receive(count: int) -> None:
    """Put the events of so many new operations into the inbox, as ingestion does."""
    now = datetime.now(UTC)
    for first in range(0, count, 1_000):
        rows = stock.operations(min(1_000, count - first))
        run(STORE, columns_of([_delivery(stock.webhook(row), now) for row in rows]))
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")


def _delivery(raw: bytes, now: datetime) -> Delivery:
    body = json.loads(raw)
    return Delivery(
        endpoint_account="",
        account="",
        facts=event_facts(body),
        raw=raw,
        payload=json.dumps(body),
        received_at=now,
    )


def _rate(start: Callable[[list[int]], None]) -> float:
    """Events a second from the first message to the last event that left the inbox."""
    pks = list(InboxItem.objects.order_by("pk").values_list("pk", flat=True))
    began = time.monotonic()
    start(pks)
    while InboxItem.objects.exists():
        if time.monotonic() > began + _PATIENCE_S:
            raise RuntimeError("The worker handles no events.")
        time.sleep(0.005)
    return len(pks) / (time.monotonic() - began)


def _written() -> dict[str, Any]:
    """What a batch of 100 events writes: rows by table, statements, commits."""
    _receive(300)
    return written_by(lambda: drain(engine=default_engine(), most=100))


@contextmanager
def worker(processes: int) -> Iterator[Any]:
    """A worker for the product's tasks and the baseline's, and an app that sends to it."""
    data_dir = settings.RECONCILE.data_dir
    valkey_in(data_dir).ensure()
    # The variable goes before whatever an app is told.
    os.environ["CELERY_BROKER_URL"] = broker_url(data_dir)
    running = subprocess.Popen(  # noqa: S603
        [
            *(
                sys.executable,
                "-m",
                "celery",
                "-A",
                "reconcile",
                "worker",
                "-I",
                "bench.match_worker",
            ),
            *("-c", str(processes), "-l", "WARNING", "--without-gossip", "--without-mingle"),
        ],
        cwd=_ROOT,
        env=os.environ | {"PYTHONWARNINGS": "ignore:You're running the worker with superuser"},
        stdout=subprocess.DEVNULL,
        stderr=sys.stderr,
    )
    try:
        yield Celery("bench")
    finally:
        running.terminate()
        running.wait(30)
        valkey_in(data_dir).release()


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
