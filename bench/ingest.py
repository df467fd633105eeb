"""How many signed events a second are verified, stored and acknowledged over HTTP.

Ours and dj-stripe are served by two processes each, pgbench inserts the same row into the same
server; all take turns, with real commits, so that what else the machine does hits all of them.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection

from bench.load import body_of
from reconcile.local.postgres import postgres_in
from reconcile.local.postgres import programs as postgres_programs

_PEER = ["dj-stripe==2.11.*", "gunicorn", "psycopg[binary]>=3.2"]
_SECRET = "whsec_bench"  # noqa: S105
_ROOT = Path(__file__).resolve().parent.parent
#: Against the peer's deferred callback, its default, and pgbench; and for the share of its p99.
_GOALS = {"deferred": 15.0, "default": 30.0, "pgbench": 0.40, "p99": 8.0, "large": 0.85}

Turn = Callable[[int, float], dict[str, Any]]


def measure(*, kept: Path, rounds: int, seconds: float, large: bool) -> None:
    """Print the JSON lines."""
    from django.conf import settings

    url = postgres_in(settings.RECONCILE.data_dir).url
    python = _peer_python(kept)
    path = _peer_databases(kept, python, url)
    with ExitStack() as running:
        _tell("Starting the three servers …")
        ours = _serve_ours(running, url)
        turns: dict[str, Turn] = {"ours": ours}
        for name in ("default", "deferred"):
            turns[name] = _serve_peer(
                running, python, _peer_url(url, name), path, deferred=name == "deferred"
            )
        turns["pgbench"] = _pgbench(kept, url)
        for turn in turns.values():
            turn(8, 1.0)
        for connections in (32, 8):
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in turns}
            for number in range(rounds):
                _tell(f"{connections} connections, round {number + 1} of {rounds} …")
                for name, turn in turns.items():
                    found[name].append(turn(connections, seconds))
            _report(connections, found)
        if large:
            _report_large(url, ours, seconds=seconds, rounds=rounds)


def _report(connections: int, found: Mapping[str, list[dict[str, Any]]]) -> None:
    def rate(name: str) -> float:
        return float(statistics.median(turn["rate"] for turn in found[name]))

    def ratio(name: str) -> float:
        pairs = zip(found["ours"], found[name], strict=True)
        return float(statistics.median(mine["rate"] / its["rate"] for mine, its in pairs))

    for name in ("deferred", "default", "pgbench"):
        _say(
            {
                "name": f"ingest, {connections} connections, events/s, against {name}",
                "ours": round(rate("ours")),
                "baseline": round(rate("pgbench")),
                "peer": round(rate(name)),
                "ratio": round(ratio(name), 2),
                "goal": _GOALS[name] if connections == 32 else None,
                "peer_is": "pgbench" if name == "pgbench" else f"dj-stripe 2.11, {name} callback",
                "refused": [turn["others"] for turn in found["ours"] if turn["others"]],
            }
        )

    def p99(name: str) -> float:
        return float(statistics.median(turn["p99_ms"] for turn in found[name]))

    pairs = zip(found["ours"], found["deferred"], strict=True)
    _say(
        {
            "name": f"ingest, {connections} connections, p99 in ms",
            "ours": round(p99("ours"), 2),
            "baseline": None,
            "peer": round(p99("deferred"), 2),
            "ratio": round(statistics.median(its["p99_ms"] / my["p99_ms"] for my, its in pairs), 2),
            "goal": _GOALS["p99"] if connections == 8 else None,
            "peer_is": "dj-stripe 2.11, deferred callback",
        }
    )


def _report_large(url: str, ours: Turn, *, seconds: float, rounds: int) -> None:
    """The same before and after a million stored events and a million operations."""
    before = statistics.median(ours(32, seconds)["rate"] for _ in range(rounds))
    _tell("Storing a million events and a million operations, some minutes …")
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        raw.execute(_MILLION_EVENTS)
        raw.execute(_MILLION_OPERATIONS)
        raw.execute("VACUUM ANALYZE operations_webhookevent, operations_operation")
        raw.execute("CHECKPOINT")
    after = statistics.median(ours(32, seconds)["rate"] for _ in range(rounds))
    _say(
        {
            "name": "ingest, 32 connections, events/s with 1,000,000 events and operations",
            "ours": round(after),
            "baseline": round(before),
            "peer": None,
            "ratio": round(after / before, 2),
            "goal": _GOALS["large"],
            "baseline_is": "the same on few rows",
        }
    )


_MILLION_EVENTS = """
INSERT INTO operations_webhookevent
    (event_account, endpoint_account, event_id, event_type, livemode, provider_created_at,
     filed_at, raw, payload, received_at, last_received_at, deliveries)
SELECT '', '', 'evt_' || md5(n::text), 'refund.created', false, moment, moment,
    decode(repeat(md5(n::text), 45), 'escape'),
    jsonb_build_object('id', n, 'pad', repeat('x', 900)),
    now(), now(), 1
FROM (SELECT n, date_trunc('month', now()) + n * interval '1 second' AS moment
      FROM generate_series(1, 1000000) AS n) AS given
"""
_MILLION_OPERATIONS = """
WITH account AS (
    INSERT INTO operations_account (name, provider, provider_account, livemode, created_at,
        paused_by, pause_reason)
    VALUES ('bench-large', 'stripe', 'acct_bench', false, now(), '', '') RETURNING id
), payment AS (
    INSERT INTO operations_payment (account_id, charge, payment_intent, currency, captured,
        refunded, refunded_by_others, disputed, read_at)
    SELECT id, 'ch_bench_large', '', 'usd', 1000000000, 0, 0, false, now() FROM account
    RETURNING id, account_id
)
INSERT INTO operations_operation (id, account_id, payment_id, kind, order_id, reference,
    customer_account, amount, currency, reason, input_hash, environment, endpoint,
    idempotency_key, parameters, created_at, status, unknown_reason, attention, failure_code,
    failure_message, provider_object_id, provider_status, attempts_made, lookups_made,
    lease_owner, revision)
SELECT gen_random_uuid(), payment.account_id, payment.id, 'refund', 'order-' || n, '', '', 100,
    'usd', '', md5(n::text) || md5(n::text), 'bench', '/v1/refunds', 'recon-' || n, '{}', now(),
    'succeeded', '', '{}', '', '', 're_large_' || n, 'succeeded', 1, 0, '', 2
FROM payment, generate_series(1, 1000000) AS n
"""


def _serve_ours(running: ExitStack, url: str) -> Turn:
    port = _free_port()
    env = os.environ | {"DATABASE_URL": url, "STRIPE_WEBHOOK_SECRETS": _SECRET}
    command = [
        *(sys.executable, "-m", "gunicorn", "--config", "python:reconcile.gunicorn_conf"),
        *("--bind", f"127.0.0.1:{port}", "--workers", "2", "reconcile.asgi"),
    ]
    _start(running, command, env, port)
    return lambda many, seconds: _load(port, "/webhooks/stripe/", many, seconds)


def _peer_databases(kept: Path, python: Path, url: str) -> str:
    """Make its two databases; the path of its webhook. The first run keeps what it migrated."""
    dump = kept / "dj-stripe-2.11" / "migrated.sql"
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("CREATE DATABASE peer_default")
    one = _peer_url(url, "default")
    if dump.exists():
        _run([_pg("psql"), "--quiet", "--no-psqlrc", "--file", str(dump), one])
        with psycopg.connect(one) as raw:
            found = raw.execute("SELECT djstripe_uuid FROM djstripe_webhookendpoint").fetchone()
        if found is None:
            raise RuntimeError(f"{dump} holds no endpoint. Remove it and start again.")
        path = f"/stripe/webhook/{found[0]}/"
    else:
        _tell("Migrating dj-stripe, some minutes the first time …")
        path = _run([str(python), str(_PEER_PROGRAM), one, _SECRET], env=_peer_env(one)).strip()
        draft = dump.with_suffix(".part")
        _run([_pg("pg_dump"), "--no-owner", "--file", str(draft), one])
        draft.rename(dump)
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("CREATE DATABASE peer_deferred TEMPLATE peer_default")
    return path


_PEER_PROGRAM = Path(__file__).with_name("peer_djstripe.py")


def _peer_url(url: str, name: str) -> str:
    return url.replace("/reconcile?", f"/peer_{name}?")


def _peer_env(url: str) -> dict[str, str]:
    env = os.environ | {"PEER_URL": url, "PYTHONPATH": str(_PEER_PROGRAM.parent)}
    env.pop("DJANGO_SETTINGS_MODULE", None)
    return env


def _serve_peer(running: ExitStack, python: Path, url: str, path: str, *, deferred: bool) -> Turn:
    env = _peer_env(url)
    if deferred:
        env["PEER_DEFERRED"] = "1"
    port = _free_port()
    command = [
        *(str(python), "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "2"),
        *("--worker-class", "gthread", "--threads", "4", "peer_djstripe:application"),
    ]
    _start(running, command, env, port)
    # A type for which it has no handler: refunds would have it call Stripe for each event.
    return lambda many, seconds: _load(port, path, many, seconds, "balance.available")


def _start(running: ExitStack, command: list[str], env: Mapping[str, str], port: int) -> None:
    server = subprocess.Popen(  # noqa: S603
        command, cwd=_ROOT, env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def end() -> None:
        server.terminate()
        server.wait(60)

    running.callback(end)
    ends_at = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > ends_at:
                raise RuntimeError(f"{command[0]} does not serve.") from None
            time.sleep(0.1)


def _load(
    port: int, path: str, connections: int, seconds: float, kind: str = "refund.created"
) -> dict[str, Any]:
    """One turn of the load, from a process of its own."""
    command = [sys.executable, "-m", "bench.load", "127.0.0.1", str(port), path, _SECRET]
    text = _run([*command, str(connections), str(seconds), kind], limit_s=seconds + 60)
    done: dict[str, Any] = json.loads(text)
    return done | {"rate": done["stored"] / done["seconds"]}


def _pgbench(kept: Path, url: str) -> Turn:
    """The row alone, one INSERT and one commit a time, from a C program."""
    program = _pg("pgbench")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_row (LIKE operations_webhookevent INCLUDING DEFAULTS)")
        cursor.execute("ALTER TABLE bench_row ADD PRIMARY KEY (id, filed_at)")
        cursor.execute("CREATE UNIQUE INDEX ON bench_row (event_id, event_account, filed_at)")
    raw = body_of("@" * 24).decode().replace("'", "''")
    script = kept / "insert.sql"
    # A number of its own in every row; the text stands in the script as pgbench sends it.
    script.write_text(
        "\\set n random(1, 9000000000000000000)\n"
        "INSERT INTO bench_row (endpoint_account, event_account, event_id, event_type, livemode,"
        " provider_created_at, filed_at, raw, payload, received_at, last_received_at, deliveries)"
        f" VALUES ('', '', 'evt_' || :n, 'refund.created', false, now(), now(), '{raw}'::bytea,"
        f" '{raw}'::jsonb, now(), now(), 1);\n"
    )

    def turn(connections: int, seconds: float) -> dict[str, Any]:
        text = _run(
            [
                *(program, "--no-vacuum", "--protocol", "prepared", "--file", str(script)),
                *("--client", str(connections), "--jobs", "2"),
                *("--time", str(max(1, round(seconds))), url),
            ],
            limit_s=seconds + 60,
        )
        (line,) = [line for line in text.splitlines() if line.startswith("tps")]
        return {"rate": float(line.split()[2]), "others": {}, "p99_ms": None}

    return turn


def _peer_python(kept: Path) -> Path:
    """dj-stripe in a venv of its own, which is kept between runs."""
    venv = kept / "dj-stripe-2.11"
    if not (venv / "installed").exists():
        _tell(f"Installing {_PEER[0]} into {venv}, a minute or two …")
        _run([sys.executable, "-m", "venv", "--clear", str(venv)])
        _run([str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", *_PEER])
        (venv / "installed").touch()
    return venv / "bin" / "python"


def _pg(name: str) -> str:
    """One of PostgreSQL's programs, of the embedded server's version."""
    return str(postgres_programs() / name)


def _run(
    command: list[str], *, limit_s: float = 900.0, env: Mapping[str, str] | None = None
) -> str:
    """What a program prints. One that takes longer, or fails, ends the bench with a sentence."""
    what = " ".join(command[:4])
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=_ROOT, env=env, text=True, capture_output=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{what} took longer than {limit_s:.0f} seconds.") from None
    if done.returncode:
        raise SystemExit(f"{what} failed: {done.stderr[-1_000:]}")
    return done.stdout


def _tell(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
