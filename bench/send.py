"""How many refunds a second pass through the services, with a provider that answers at once.

Ours, DBOS and hand-written SQL take turns on one PostgreSQL server, so that what else the machine
does hits all of them.
"""

import itertools
import json
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection

from bench.written import written_by
from operations.domain.answers import (
    Answer,
    AnswerKind,
    EventPage,
    PaymentFacts,
    RefundFacts,
    RefundList,
)
from operations.domain.audit import Actor, ActorKind
from operations.domain.contract import Contract, FindBy, KeyLocation, SavedAnswers
from operations.domain.identity import RefundInput
from operations.domain.statuses import Status
from operations.services.engine import Engine, default_engine
from operations.services.requesting import Asker, request_refund
from reconcile.local.postgres import postgres_in

_DBOS = "dbos==3.4.0"
_GOAL = 3.0
_THREADS = (1, 8)

_Turn = Callable[[int, float], float]


class InstantProvider:
    """Promises what Stripe promises, and has made every refund before it is asked. No limits."""

    contract = Contract(
        provider="bench",
        key_location=KeyLocation.HEADER,
        key_max_length=255,
        key_window_s=86_400,
        saved_answers=SavedAnswers.ALL_EXECUTED,
        frozen_statuses=frozenset([500]),
        find_by=frozenset([FindBy.ID, FindBy.PAYMENT, FindBy.REFERENCE]),
        lookup_conclusive_after_s=None,
    )
    endpoint = "/v1/refunds"

    def refund_parameters(
        self, *, payment: str, amount: int, reason: str, metadata: Mapping[str, str]
    ) -> dict[str, Any]:
        """The body of the send."""
        return {"payment_intent": payment, "amount": amount, "metadata": dict(metadata)}

    def create_refund(
        self, *, parameters: Mapping[str, Any], idempotency_key: str, account: str
    ) -> Answer:
        """A refund that succeeded."""
        body = {
            "id": f"re_{uuid.uuid4().hex[:24]}",
            "object": "refund",
            "status": "succeeded",
            "currency": "usd",
            "charge": _charge(parameters["payment_intent"]),
            **parameters,
        }
        refund = RefundFacts(
            id=body["id"],
            status="succeeded",
            amount=body["amount"],
            currency="usd",
            charge=body["charge"],
            payment_intent=body["payment_intent"],
            created=int(time.time()),
            metadata=body["metadata"],
        )
        return Answer(
            kind=AnswerKind.RESPONSE,
            http_status=200,
            body=body,
            refund=refund,
            request_id="req_bench",
            duration_ms=1,
        )

    def read_payment(self, *, payment: str, account: str) -> PaymentFacts:
        """A payment of a hundred dollars."""
        return PaymentFacts(
            charge=_charge(payment),
            payment_intent=payment,
            currency="usd",
            captured=10_000,
            refunded=0,
            livemode=False,
        )

    def read_refund(self, *, refund_id: str, account: str) -> RefundFacts:
        """Never asked for here."""
        raise NotImplementedError

    def list_refunds(self, *, payment: str, account: str) -> RefundList:
        """No refunds so far."""
        return RefundList(refunds=(), complete=True)

    def list_events(self, *, since: int, after: str, account: str) -> EventPage:
        """Never asked for here."""
        raise NotImplementedError


def _charge(payment: str) -> str:
    return f"ch_{payment.removeprefix('pi_')}"


def measure(*, kept: Path, rounds: int, seconds: float) -> None:
    """Print one JSON line for each number of threads, and what one refund of ours writes."""
    engine = bench_engine()
    url = _url()
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(_TABLES)
        raw.execute("CREATE DATABASE dbos_bench")
    dbos = _start_dbos(kept, url.replace("/reconcile?", "/dbos_bench?"))
    try:
        for threads in _THREADS:
            _say(_measured(engine, url, dbos, threads=threads, rounds=rounds, seconds=seconds))
    finally:
        dbos.terminate()
        dbos.wait(10)


def bench_engine() -> Engine:
    """The product's engine as the settings describe it, with the provider replaced."""
    provider = InstantProvider()
    return replace(default_engine(), open_provider=lambda account: provider)


def refund_once(engine: Engine) -> None:
    """One request of an agent: an order, a payment, a token and a tool call of its own."""
    new = uuid.uuid4().hex
    wish = RefundInput(
        account="",
        order_id=f"order-{new}",
        reference="",
        amount=1_234,
        currency="usd",
        payment=f"pi_{new[:24]}",
    )
    asker = Asker(
        actor=Actor(kind=ActorKind.API_KEY, id="bench", name="Bench"),
        api_key=None,
        token=f"token-{new}",
        tool_call_id=f"call-{new}",
        agent_run_id="run",
    )
    operation = request_refund(engine=engine, wish=wish, asker=asker)
    if operation.status != Status.SUCCEEDED:
        raise RuntimeError(f"A refund of the bench is {operation.status}.")


def _measured(
    engine: Engine,
    url: str,
    dbos: subprocess.Popen[str],
    *,
    threads: int,
    rounds: int,
    seconds: float,
) -> dict[str, Any]:
    takers: dict[str, _Turn] = {
        "ours": lambda threads, seconds: _ours(engine, threads, seconds),
        "sql": lambda threads, seconds: _by_sql(url, threads, seconds),
        "dbos": lambda threads, seconds: _by_dbos(dbos, threads, seconds),
    }
    for turn in takers.values():
        turn(threads, 0.5)
    results: dict[str, list[float]] = {name: [] for name in takers}
    for _ in range(rounds):
        for name, turn in takers.items():
            results[name].append(turn(threads, seconds))
    ours, sql, peer = (statistics.median(results[name]) for name in ("ours", "sql", "dbos"))
    ratios = [mine / its for mine, its in zip(results["ours"], results["dbos"], strict=True)]
    return {
        "name": f"send, {threads} thread{'s' if threads > 1 else ''}, operations/s",
        "ours": round(ours, 1),
        "baseline": round(sql, 1),
        "peer": round(peer, 1),
        "ratio": round(statistics.median(ratios), 2),
        "goal": _GOAL,
        "of_baseline": round(ours / sql, 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        "peer_is": _DBOS,
        "baseline_is": "SQL by hand, three commits",
        "writes": written_by(lambda: refund_once(engine)),
    }


def _ours(engine: Engine, threads: int, seconds: float) -> float:
    def act() -> None:
        refund_once(engine)

    return _rate(threads, seconds, lambda: act, lambda: connection.close())


def _by_sql(url: str, threads: int, seconds: float) -> float:
    def open_one() -> Callable[[], None]:
        raw = psycopg.connect(url, prepare_threshold=0)
        return lambda: _three_commits(raw)

    return _rate(threads, seconds, open_one, lambda: None)


def _by_dbos(dbos: subprocess.Popen[str], threads: int, seconds: float) -> float:
    assert dbos.stdin  # noqa: S101 - a pipe
    assert dbos.stdout  # noqa: S101 - a pipe
    started = time.monotonic()
    dbos.stdin.write(f"{threads} {seconds}\n")
    dbos.stdin.flush()
    done = int(dbos.stdout.readline())
    return done / (time.monotonic() - started)


def _rate(
    threads: int,
    seconds: float,
    open_one: Callable[[], Callable[[], None]],
    close: Callable[[], None],
) -> float:
    """Acts a second from so many threads, each with what `open_one` gives it."""
    counts = itertools.count()
    ready = threading.Barrier(threads + 1, timeout=60)

    def work() -> float:
        try:
            act = open_one()
            act()
            ready.wait()
            ends_at = time.monotonic() + seconds
            while time.monotonic() < ends_at:
                act()
                next(counts)
            return time.monotonic()
        finally:
            close()

    with ThreadPoolExecutor(threads) as pool:
        workers = [pool.submit(work) for _ in range(threads)]
        ready.wait()
        started = time.monotonic()
        ended = max(worker.result() for worker in workers)
    return next(counts) / (ended - started)


_TABLES = """
CREATE TABLE by_hand (id uuid PRIMARY KEY, order_id text NOT NULL, amount bigint NOT NULL,
    status text NOT NULL, refund text, made_at timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX ON by_hand (order_id) WHERE status = 'open';
CREATE TABLE by_hand_attempt (id uuid PRIMARY KEY, operation uuid NOT NULL REFERENCES by_hand,
    answer jsonb, made_at timestamptz NOT NULL DEFAULT now());
"""


def _three_commits(raw: psycopg.Connection[Any]) -> None:
    """The least that a careful engineer writes: the wish, the attempt, and the answer."""
    operation, attempt = uuid.uuid4(), uuid.uuid4()
    raw.execute(
        "INSERT INTO by_hand (id, order_id, amount, status) VALUES (%s, %s, %s, 'open')",
        [operation, f"order-{operation}", 1_234],
        prepare=True,
    )
    raw.commit()
    raw.execute(
        "INSERT INTO by_hand_attempt (id, operation) VALUES (%s, %s)",
        [attempt, operation],
        prepare=True,
    )
    raw.commit()
    answer = json.dumps({"id": f"re_{attempt}", "status": "succeeded", "amount": 1_234})
    raw.execute(
        "UPDATE by_hand_attempt SET answer = %s::jsonb WHERE id = %s",
        [answer, attempt],
        prepare=True,
    )
    raw.execute(
        "UPDATE by_hand SET status = 'succeeded', refund = %s WHERE id = %s",
        [f"re_{attempt}", operation],
        prepare=True,
    )
    raw.commit()


def _url() -> str:
    from django.conf import settings

    return postgres_in(settings.RECONCILE.data_dir).url


def _start_dbos(kept: Path, url: str) -> subprocess.Popen[str]:
    """DBOS in a venv of its own, which is kept between runs."""
    venv = kept / _DBOS.replace("==", "-")
    python = venv / "bin" / "python"
    if not (venv / "installed").exists():
        sys.stderr.write(f"Installing {_DBOS} into {venv} …\n")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)  # noqa: S603
        install = [str(python), "-m", "pip", "install", "--quiet", _DBOS]
        subprocess.run(install, check=True)  # noqa: S603
        (venv / "installed").touch()
    program = Path(__file__).with_name("peer_dbos.py")
    dbos = subprocess.Popen(  # noqa: S603
        [str(python), str(program), url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert dbos.stdout  # noqa: S101 - a pipe
    if dbos.stdout.readline().strip() != "ready":
        raise RuntimeError("DBOS did not start.")
    return dbos


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
