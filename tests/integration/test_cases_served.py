"""Every recorded webhook as signed raw bytes to a web server in a process of its own.

One server takes them all, one after the other in the order of their names; then they are handled
together. What each one alone and other orders come to is in `test_cases.py`.
"""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from django.db import transaction
from django.test import Client

from operations.domain.privacy import kept as without_private
from operations.domain.statuses import Attention, Status
from operations.models import Operation, ProviderRefund, WebhookEvent
from operations.services.draining import drain
from operations.services.engine import default_engine
from operations.services.looking_up import look_up

from .cases import CASES, ENVIRONMENT, Recording, provider_answer, webhook
from .console.scenes import person
from .deliveries import WEBHOOKS, signature
from .recorded import recorded_provider
from .stage import JOB, MovingClock, engine_for

pytestmark = pytest.mark.django_db(transaction=True)

FILES = sorted(path.name.split("_")[0] for path in (CASES / "webhooks").iterdir())
NAMES = [
    row["op"][-2:] for row in json.loads((CASES / "operations.json").read_text())["operations"]
]

#: How each operation stands after all of them: status, provider's refund, flags.
ENDS: dict[str, tuple[Status, str, list[Attention]]] = {
    "a1": (Status.SUCCEEDED, "re_3FAKER001", []),
    "a2": (Status.FAILED, "re_3FAKER006", [Attention.FAILED_AFTER_SUCCESS]),
    "a3": (Status.SUCCEEDED, "re_3FAKER009", [Attention.DISPUTED]),
    "a4": (Status.UNKNOWN, "", [Attention.DISPUTED]),
    "a5": (Status.UNKNOWN, "", []),
    "a6": (Status.UNKNOWN, "", []),
    "b1": (Status.SUCCEEDED, "pyr_3FAKER014", []),
    "b2": (Status.PROCESSING, "re_3FAKER016", []),
    "b3": (Status.FAILED, "re_3FAKER017", []),
    "b4": (Status.SUCCEEDED, "re_3FAKER018", []),
    "c1": (Status.SUCCEEDED, "re_3FAKER019", []),
    "d1": (Status.SUCCEEDED, "re_3FAKER022", []),
    "d2": (Status.UNKNOWN, "", []),
    "d3": (Status.UNKNOWN, "", []),
    "d5": (Status.UNKNOWN, "", []),
    "d6": (Status.UNKNOWN, "", [Attention.MISMATCH]),
    "d8": (Status.SUCCEEDED, "re_3FAKER029", []),
    "e1": (Status.SUCCEEDED, "re_3FAKER032", []),
    "e2": (Status.SUCCEEDED, "re_3FAKER033", []),
    "e3": (Status.SUCCEEDED, "re_3FAKER034", []),
    "f1": (Status.SUCCEEDED, "re_3FAKER035", []),
    "f2": (Status.UNKNOWN, "", [Attention.MISMATCH]),
    "f3": (Status.UNKNOWN, "", []),
    "g1": (Status.FAILED, "re_3FAKER041", [Attention.CONFLICT]),
    "h2": (Status.UNKNOWN, "", []),
}


@pytest.fixture
def server(process_env: dict[str, str], settings: Any, tmp_path: Path) -> Iterator[str]:
    """gunicorn with one worker on the test's database; its address."""
    settings.RECONCILE = replace(settings.RECONCILE, environment=ENVIRONMENT)
    default_engine.cache_clear()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "--config", "python:reconcile.gunicorn_conf"),
                *("--bind", f"127.0.0.1:{port}", "--workers", "1", "reconcile.asgi"),
            ],
            env=process_env | {"RECONCILE_ENVIRONMENT": ENVIRONMENT},
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while True:
        try:
            requests.get(f"{url}/healthz", timeout=5)
            break
        except requests.RequestException:
            assert process.poll() is None, (tmp_path / "server.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
    yield url
    process.terminate()
    process.wait(timeout=60)
    default_engine.cache_clear()


@pytest.fixture
def told(server: str) -> dict[str, Operation]:
    """All operations, after every webhook was posted and handled; by the end of their ids."""
    with transaction.atomic():
        made = {name: Recording.named(name).insert() for name in NAMES}
    for name in FILES:
        raw = webhook(name)
        answer = requests.post(
            f"{server}{WEBHOOKS}",
            data=raw,
            headers={"Stripe-Signature": signature(raw), "Content-Type": "application/json"},
            timeout=30,
        )
        assert answer.status_code == 200, (name, answer.text)
    while drain(engine=default_engine()) is not None:
        pass
    return {name: Operation.objects.get(pk=row.pk) for name, row in made.items()}


def test_all_recorded_webhooks_are_kept_and_bring_every_operation_where_it_should(
    told: dict[str, Operation], signed_pages: Client
) -> None:
    ids: dict[str, list[bytes]] = {}
    for name in FILES:
        raw = webhook(name)
        ids.setdefault(json.loads(raw)["id"], []).append(raw)
    kept = WebhookEvent.objects.all()
    assert {row.event_id for row in kept} == set(ids)
    for row in kept:
        raw, is_as_it_came = bytes(row.raw), bytes(row.raw) == ids[row.event_id][0]
        # What says something about people or cards is written anew without it.
        assert is_as_it_came or json.loads(raw) == without_private(json.loads(ids[row.event_id][0]))
        assert row.payload == without_private(json.loads(ids[row.event_id][0]))
        assert row.deliveries == len(ids[row.event_id])
    ends = {
        name: (row.status, row.provider_object_id, row.attention)
        for name, row in told.items()
        if name != "h1"
    }
    assert ends == ENDS
    assert told["h1"].status == Status.SUCCEEDED
    assert told["a4"].payment.refunds_blocked
    assert not told["a3"].payment.refunds_blocked
    _check_pages(told, signed_pages)


@pytest.fixture
def signed_pages(db: None) -> Client:
    """Somebody who may read."""
    client = Client()
    client.force_login(person("operator"))
    return client


def _check_pages(told: dict[str, Operation], client: Client) -> None:
    def page(name: str) -> str:
        return client.get(f"/operations/{told[name].pk}/").content.decode()

    hostile = page("d8")
    recorded = re.findall(r'href="(/operations/[^"]+/events/[^"]+)"', hostile)
    hostile += "".join(client.get(address).content.decode() for address in recorded)
    assert "<script>alert" not in hostile
    assert "&lt;script&gt;" in hostile
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", hostile)
    refund = ProviderRefund.objects.get(provider_object_id="re_3FAKER029")
    assert any("=HYPERLINK" in text for text in refund.metadata.values())
    assert "¥5,000" in page("c1")
    assert "Two sources disagree" in page("g1")
    assert "$2,500.00" in page("d6")
    assert "canceled" in page("b3")
    assert "Disputed" in page("a4")
    # Nobody is asked about other integrations' and other environments' refunds.
    queue = client.get("/").content.decode()
    orphans = client.get("/orphans/").content.decode()
    for foreign in ("re_3FAKER025", "re_3FAKER026"):
        assert foreign not in queue
        assert foreign not in orphans
    assert "Possible, not proven" in orphans


def test_refund_of_the_same_amount_from_the_dashboard_is_looked_up_and_shown_as_possible(
    server: str, signed_pages: Client
) -> None:
    operation = Recording.named("a5").insert()
    raw = webhook("11")
    requests.post(
        f"{server}{WEBHOOKS}", data=raw, headers={"Stripe-Signature": signature(raw)}, timeout=30
    )

    drained = drain(engine=default_engine())

    assert drained is not None
    assert list(drained.look_ups) == [operation.pk]
    with recorded_provider(lists=[provider_answer("L02")]) as provider:
        engine = replace(engine_for(provider.url, MovingClock()), environment=ENVIRONMENT)
        look_up(engine=engine, operation_id=operation.pk, actor=JOB)
    operation.refresh_from_db()
    assert (operation.status, operation.provider_object_id) == (Status.UNKNOWN, "")
    page = signed_pages.get(f"/operations/{operation.pk}/").content.decode()
    assert "Possible, not proven" in page
    assert "It does not carry our reference, so it proves nothing." in page
