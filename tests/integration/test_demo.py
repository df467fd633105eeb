"""The demo as a real process on a fresh folder: its story ends as it has to, and nothing stays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil

from operations.demo.report import Row, totals
from operations.demo.story import STORY

ROOT = Path(__file__).resolve().parents[2]


def environment(data_dir: Path) -> dict[str, str]:
    ours = ("RECONCILE_", "STRIPE_", "CELERY_", "DATABASE_", "DJANGO_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"RECONCILE_DATA_DIR": str(data_dir), "RECONCILE_EMBEDDED_DURABLE": "0"}


def left_behind(data_dir: Path) -> list[str]:
    """The commands of all processes that have the folder in their command or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.environ().get("RECONCILE_DATA_DIR", "")]
        except psutil.Error:
            continue
        if any(str(data_dir) in word for word in words):
            found.append(" ".join(process.cmdline()))
    return found


def test_every_order_of_the_story_reaches_its_end_and_nothing_stays(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "demo", "--once", "--json"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.stdout.strip(), done.stderr[-4_000:]
    totals = json.loads(done.stdout.splitlines()[-1])

    assert totals["wrong_orders"] == [], done.stderr[-6_000:]
    assert totals["duplicates"] == 0
    assert totals["orders"] == len(STORY) >= 14
    assert totals["refunds"] == sum(order.end.refunds for order in STORY)
    assert totals["operations"] == sum(order.end.operations for order in STORY)
    assert totals["settled"] + totals["unknown"] == totals["operations"]
    assert totals["unknown"] == 2
    assert totals["ok"] is True
    assert done.returncode == 0
    assert "4417" in done.stderr
    assert totals["audit_whole"] is True
    assert "looked 2 operations up at once: bulk run 1." in done.stderr
    assert "the approver decides" in done.stderr
    assert left_behind(tmp_path) == []


def test_a_second_refund_of_any_run_is_a_duplicate_and_a_wrong_end() -> None:
    earlier = {"by_operation": {"an-operation-of-an-earlier-run": {"refunds_all": 2}}}
    row = Row(order="4417", amount="$38.00", told=(), states=(), refunds=2, duplicates=1)

    assert totals([], {"by_operation": {}}, run=1, seconds=0)["ok"] is True
    assert totals([], earlier, run=2, seconds=0)["duplicates"] == 1
    assert totals([row], earlier, run=2, seconds=0)["duplicates"] == 2
    assert totals([row], earlier, run=2, seconds=0)["ok"] is False
