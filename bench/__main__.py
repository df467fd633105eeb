"""`python -m bench [name …] [--rounds N] [--seconds S]`: one JSON line a measure."""

import argparse
import os
import shutil
import tempfile
from pathlib import Path

_MEASURES = ("send", "ingest", "match", "queue", "bulk")
_KEPT = Path(__file__).resolve().parent.parent / "var" / "bench"


def main() -> None:
    """Run the measures that are named, or all, each on a database that is removed afterwards."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="name", help=", ".join(_MEASURES))
    parser.add_argument("--rounds", type=int, default=5, help="how often each takes its turn")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a turn lasts")
    parser.add_argument(
        "--stored", type=int, default=0, help="match: also with so many events stored (1000000)"
    )
    parser.add_argument("--large", action="store_true", help="ingest: also on a million rows")
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="queue: how many operations there are"
    )
    asked = parser.parse_args()
    unknown = set(asked.only) - set(_MEASURES)
    if unknown:
        parser.error(f"there is no measure named {', '.join(sorted(unknown))}")
    _KEPT.mkdir(parents=True, exist_ok=True)
    data_dir = Path(tempfile.mkdtemp(prefix="run-", dir=_KEPT))
    _use(data_dir)
    try:
        if not asked.only or "send" in asked.only:
            from bench import send

            send.measure(kept=_KEPT, rounds=max(1, asked.rounds), seconds=max(0.2, asked.seconds))
        if not asked.only or "match" in asked.only:
            from bench import match

            match.measure(rounds=max(1, asked.rounds), stored=max(0, asked.stored))
        if not asked.only or "ingest" in asked.only:
            from bench import ingest

            ingest.measure(
                kept=_KEPT,
                rounds=max(1, asked.rounds),
                seconds=max(1.0, asked.seconds),
                large=asked.large,
            )
        if not asked.only or "queue" in asked.only:
            from bench import queue_page

            queue_page.measure(rounds=max(1, asked.rounds), rows=max(10_000, asked.rows))
        if not asked.only or "bulk" in asked.only:
            from bench import bulk

            bulk.measure(rounds=max(1, asked.rounds))
    finally:
        _stop(data_dir)


def _use(data_dir: Path) -> None:
    """Point the settings to a database of our own, with fsync, before they are read."""
    for name in [name for name in os.environ if name.startswith(("RECONCILE_", "STRIPE_"))]:
        del os.environ[name]
    os.environ.pop("DATABASE_URL", None)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "reconcile.settings",
        "RECONCILE_DATA_DIR": str(data_dir),
        "RECONCILE_INSECURE_LOCAL": "1",
        "CELERY_BROKER_URL": "memory://",
        "STRIPE_API_KEY": "sk_test_bench",
        "STRIPE_API_BASE": "http://127.0.0.1:9",
    }
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def _stop(data_dir: Path) -> None:
    from django.db import connections

    from reconcile.local.postgres import postgres_in

    connections.close_all()
    postgres_in(data_dir).release()
    shutil.rmtree(data_dir, ignore_errors=True)


if __name__ == "__main__":
    main()
