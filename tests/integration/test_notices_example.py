"""The receiver in the docs takes what the relay sends, drops repeats, and believes nobody else."""

import os
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from operations.models import Delivery
from operations.services import subscribing
from operations.services.engine import Engine
from operations.services.looking_up import look_up
from operations.services.subscribing import Wanted, subscribe

from .stage import ALICE, JOB, Stage
from .subscribed import deliver, telling

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "notice_receiver.py"


class Example:
    """The program of the docs, listening."""

    def __init__(self, folder: Path) -> None:
        self._store = folder / "notices.sqlite3"
        self.secrets = ""
        self.port = 0

    def start(self, secrets: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLE), str(self.port)],
            env={**os.environ, "NOTICE_SECRETS": secrets, "NOTICE_STORE": str(self._store)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        self.port = int(process.stdout.readline().split()[1])
        return process

    def kept(self, table: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self._store) as database:
            rows = database.execute(f"SELECT * FROM {table}").fetchall()
        database.close()
        return rows


@pytest.fixture
def engine(stage: Stage) -> Engine:
    stage.engine = telling(stage)
    return stage.engine


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example(tmp_path)


def test_the_example_takes_each_notice_once(stage: Stage, engine: Engine, example: Example) -> None:
    process = example.start("whsec_" + "A" * 44)
    process.kill()
    process.communicate()
    address = f"http://127.0.0.1:{example.port}/"
    subscription = subscribe(engine=engine, wanted=Wanted(address=address), actor=JOB)
    process = example.start(subscription.secret)
    try:
        stage.control.fault("500", when="after")
        operation = stage.ask(stage.payment())
        look_up(engine=engine, operation_id=operation.pk, actor=JOB)
        deliver(engine)
        for row in Delivery.objects.order_by("pk"):
            subscribing.send_again(engine=engine, delivery_id=row.pk, actor=ALICE)
        deliver(engine)

        assert [row[1] for row in example.kept("notice")] == ["refund.unknown", "refund.succeeded"]
        assert example.kept("refund") == [(str(operation.pk), "refunded")]
        assert {row.state for row in Delivery.objects.all()} == {"delivered"}

        # It knows the old secret alone, and goes on while both sign.
        subscribing.roll_secret(engine=engine, subscription_id=subscription.pk, actor=ALICE)
        stage.ask(stage.payment(), order_id="while it rolls")
        deliver(engine)
        assert len(example.kept("notice")) == 3

        forged = urllib.request.Request(address, b"{}", {"webhook-id": "msg_forged"})
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(forged, timeout=5)
        assert refusal.value.code == 401
        refusal.value.close()
        stale = replace(engine, clock=lambda: stage.clock().replace(year=2020))
        stage.ask(stage.payment(), order_id="an old clock")
        row = Delivery.objects.latest("pk")
        Delivery.objects.filter(pk=row.pk).update(next_try_at=stale.clock())
        deliver(stale)
        assert len(example.kept("notice")) == 3
        assert row.attempts.get().http_status == 401
    finally:
        process.kill()
        process.communicate()
