"""How long a page of the queue takes, whole, against Django's admin list of the same table.

Both go through Django's handler with all middleware, signed in, and take turns on one PostgreSQL
server. Times are medians in milliseconds; a ratio is how many of our pages one of theirs takes.
"""

import gzip
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from bench import stock
from bench.stored_rows import copies
from operations.models import Operation

_CHUNK = 100_000
#: A page of the queue may take this much of its time at the first size, when there are ten times
#: as many operations.
_SAME_TIME = round(1 / 1.3, 2)


class _Case(NamedTuple):
    """A page of ours and the one of the admin that stands against it."""

    name: str
    ours: str
    theirs: str
    #: At a million and at ten million operations; None for what has no goal.
    goals: tuple[float | None, float | None]


def measure(*, rounds: int, rows: int) -> None:
    """Print a JSON line for each page; above a million rows also against its time there."""
    client = _signed_in()
    first = min(rows, 1_000_000)
    _fill(0, first)
    with override_settings(ROOT_URLCONF="bench.queue_urls"):
        times = _measured(client, rounds, first)
        if rows > first:
            _fill(first, rows)
            for name, took in _measured(client, rounds, rows).items():
                _say(
                    {
                        "name": f"queue, {name}, {rows:,} against {first:,} operations, ms",
                        "ours": took,
                        "baseline": times[name],
                        "baseline_is": f"ours with {first:,} operations",
                        "peer": None,
                        "ratio": round(times[name] / took, 2),
                        "goal": _SAME_TIME,
                    }
                )


def _measured(client: Client, rounds: int, rows: int) -> dict[str, float]:
    times: dict[str, float] = {}
    for case in _cases():
        _answer(client, case.ours)
        ours, theirs = [], []
        for _ in range(rounds):
            ours += [_timed(lambda c=case: _answer(client, c.ours)) for _ in range(10)]  # type: ignore[misc]
            theirs.append(_timed(lambda c=case: _answer(client, c.theirs)))  # type: ignore[misc]
        with CaptureQueriesContext(connection) as queries:
            page = _answer(client, case.ours)
        times[case.name] = round(statistics.median(ours), 2)
        baseline = round(statistics.median(theirs), 2)
        _say(
            {
                "name": f"queue, {case.name}, {rows:,} operations, ms",
                "ours": times[case.name],
                "baseline": baseline,
                "peer": None,
                "ratio": round(baseline / times[case.name], 1),
                "goal": case.goals[rows >= 10_000_000],
                "ours_p95": round(sorted(ours)[int(len(ours) * 0.95)], 2),
                "baseline_is": "Django's admin changelist, 50 rows, as it comes",
                "queries": len(queries),
                "html_kb": round(len(page) / 1_000, 1),
                "html_kb_gzip": round(len(gzip.compress(page, 6)) / 1_000, 1),
                "load": round(os.getloadavg()[0], 2),
            }
        )
    return times


def _cases() -> list[_Case]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'operations_operation'")
        count = int(cursor.fetchone()[0])
        cursor.execute(
            "SELECT created_at, id FROM operations_operation"
            " ORDER BY created_at, id OFFSET 50 LIMIT 1"
        )
        at, pk = cursor.fetchone()
        cursor.execute(
            "SELECT id FROM operations_operation ORDER BY created_at OFFSET 5000 LIMIT 1"
        )
        (some,) = cursor.fetchone()
    # The last page that is full.
    first, last = "/stock/operations/operation/", count // 50
    deepest = f"n~{at:%Y%m%dT%H%M%S.%f}~{pk}"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key_window_closes_at, amount, id FROM operations_operation"
            " WHERE status = 'unknown' AND key_window_closes_at IS NOT NULL"
            " ORDER BY key_window_closes_at DESC, amount * -1 DESC, id DESC OFFSET 40 LIMIT 1"
        )
        at, amount, pk = cursor.fetchone()
    waiting = f"a~{at:%Y%m%dT%H%M%S.%f}~{amount}~{pk}"
    return [
        _Case("first page", "/?view=all", first, (6.0, 40.0)),
        _Case("deepest page", f"/?view=all&after={deepest}", f"{first}?p={last}", (10.0, 80.0)),
        _Case("search by id", f"/search/?q={some}", f"{first}?q={some}", (150.0, 1_000.0)),
        _Case("what needs a decision", "/", f"{first}?status__exact=unknown", (None, None)),
        _Case(
            "what needs a decision, far down",
            f"/?after={waiting}",
            f"{first}?status__exact=unknown&p=100",
            (None, None),
        ),
        _Case(
            "a search that finds nothing",
            "/search/?q=none-such",
            f"{first}?q=none-such",
            (None, None),
        ),
        _Case(
            "a search with several hits",
            "/search/?q=order-many",
            f"{first}?q=order-many",
            (None, None),
        ),
        _Case(
            "filters that hit nothing", "/?view=all&currency=eur&min=900000", first, (None, None)
        ),
    ]


def _timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1_000


def _answer(client: Client, address: str) -> bytes:
    answer = client.get(address)
    if answer.status_code not in (200, 302):
        raise RuntimeError(f"{address} answers {answer.status_code}.")
    return answer.content


def _signed_in() -> Client:
    user = User.objects.create_superuser("bench", password=None)
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    return client


def _fill(first: int, last: int) -> None:
    """Operations as time leaves them: most went well, one in a hundred is unknown."""
    old = Operation.objects.order_by("pk").first() or stock.operations(1)[0]
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for start in range(first, last, _CHUNK):
            end = min(last, start + _CHUNK) - 1
            cursor.execute(copies("operation", _OPERATION), [start, end, old.pk])
            sys.stderr.write(f"{end + 1} of {last} operations\n")
        cursor.execute(_EVIDENCE)
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE operations_operation")
        cursor.execute("VACUUM ANALYZE operations_evidence")
        cursor.execute("CHECKPOINT")


_STATUS = """CASE WHEN n %% 100 = 0 THEN 'unknown' WHEN n %% 50 = 3 THEN 'failed'
    ELSE 'succeeded' END"""
_SINCE = "timestamptz '2026-11-01' - n * interval '1 second'"
_OPERATION: Mapping[str, str] = {
    "id": "gen_random_uuid()",
    "order_id": "CASE WHEN n < 5 THEN 'order-many' ELSE 'order-' || n END",
    "reference": "'line-' || n",
    "idempotency_key": "'key-' || n",
    "provider_object_id": "CASE WHEN n %% 100 = 0 OR n %% 50 = 3 THEN '' ELSE 're_' || n END",
    "amount": "100 + n::bigint * 7919 %% 100000",
    "currency": "CASE n %% 3 WHEN 0 THEN 'usd' WHEN 1 THEN 'eur' ELSE 'gbp' END",
    "created_at": _SINCE,
    "status": _STATUS,
    "unknown_reason": "CASE WHEN n %% 100 = 0 THEN"
    " CASE WHEN n %% 300 = 0 THEN 'server_error' ELSE 'budget_spent' END ELSE '' END",
    "attention": "CASE WHEN n %% 500 = 1 THEN '{disputed}'::varchar[] ELSE '{}'::varchar[] END",
    "key_window_closes_at": "CASE WHEN n %% 700 = 0 THEN NULL"
    f" ELSE {_SINCE} + interval '1 day' END",
    "needs_person_since": "CASE WHEN n %% 100 = 0 OR n %% 500 = 1 THEN"
    f" {_SINCE} + interval '1 minute' END",
    "settled_at": f"CASE WHEN n %% 100 <> 0 THEN {_SINCE} + interval '1 minute' END",
}
_EVIDENCE = """
INSERT INTO operations_evidence (operation_id, source, provider_object_id, provider_status,
    currency, summary, facts, observed_at, recorded_at, actor_kind, actor_name)
SELECT o.id, 'lookup', '', '', '', 'No refund with our reference.',
    '{"result": "absent", "complete": true, "refunds_seen_count": 0, "lacks": []}',
    o.created_at, o.created_at, 'job', 'Scheduled check'
FROM operations_operation AS o
WHERE o.needs_person_since IS NOT NULL
    AND NOT EXISTS (SELECT FROM operations_evidence AS e WHERE e.operation_id = o.id)
"""


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
