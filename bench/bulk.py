"""How many operations a second a run closes, with all that is kept of each.

The baseline is a loop of single saves that keeps the same operation and audit entry of each, and
less besides: no evidence, no row of a run, no check whether it may be closed.
"""

import json
import statistics
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection, transaction

from bench import stock
from bench.match import worker
from operations.domain.audit import CHAIN_START, Actor, ActorKind
from operations.domain.bulk import BulkAction, BulkLimits
from operations.models import (
    AuditEntry,
    BulkRun,
    BulkState,
    Evidence,
    EvidenceSource,
    Operation,
)
from operations.models.audit import chain_of
from operations.queries.bulk import results_of
from operations.services.bulk import Begin, begin
from operations.services.bulk_previewing import preview
from operations.services.engine import Engine, default_engine

_GOAL = 25.0
_ROWS = 5_000
#: The baseline's rate does not depend on how many there are.
_BASELINE = 300
_PROCESSES = 2
_PATIENCE_S = 60.0
_PERSON = Actor(kind=ActorKind.PERSON, id="1", name="Maya Kline", address="127.0.0.1")
_NOTE = "The provider's incident of the morning."


def measure(*, rounds: int) -> None:
    """Print one JSON line."""
    with worker(_PROCESSES) as app:
        _measure(app, rounds)


def _measure(app: Any, rounds: int) -> None:
    ours, baseline, previews = [], [], []
    user = get_user_model().objects.create(pk=_PERSON.id, username="maya")
    user.groups.add(Group.objects.get(name="operator"))
    _by_run(app, _ROWS // 5)
    _by_saves(_BASELINE // 5)
    for _ in range(rounds):
        previewed, rate = _by_run(app, _ROWS)
        previews.append(previewed)
        ours.append(rate)
        baseline.append(_by_saves(_BASELINE))
    ratios = [mine / its for mine, its in zip(ours, baseline, strict=True)]
    line = {
        "name": f"bulk, {_ROWS} closed as failed, {_PROCESSES} processes, operations/s",
        "ours": round(statistics.median(ours), 1),
        "baseline": round(statistics.median(baseline), 1),
        "peer": None,
        "ratio": round(statistics.median(ratios), 2),
        "goal": _GOAL,
        "ratios": [round(ratio, 2) for ratio in ratios],
        "baseline_is": "select for update, save, audit entry and commit, one by one, with the ORM",
        "preview_s": round(statistics.median(previews), 2),
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _by_run(app: Any, count: int) -> tuple[float, float]:
    """Seconds that the preview took, and operations a second from its beginning to its end."""
    ids = _looked_up(count)
    engine = _engine()
    began = time.monotonic()
    run = preview(engine=engine, action=BulkAction.CLOSE_FAILED, ids=ids, actor=_PERSON)
    previewed = time.monotonic() - began
    saying = Begin(count=run.acts, note=_NOTE, kind="dashboard", reference="incident 29")
    began = time.monotonic()
    begin(engine=engine, run_id=run.pk, saying=saying, actor=_PERSON)
    for _ in range(_PROCESSES):
        app.send_task("operations.jobs.work_on_bulk", [run.pk])
    while BulkRun.objects.filter(pk=run.pk, state=BulkState.RUNNING).exists():
        if time.monotonic() > began + _PATIENCE_S:
            raise RuntimeError("The worker closes nothing.")
        time.sleep(0.005)
    rate = count / (time.monotonic() - began)
    if results_of(run).counts != {"closed": count}:
        raise RuntimeError(f"The run came to {results_of(run).counts}.")
    return previewed, rate


def _by_saves(count: int) -> float:
    ids = _looked_up(count)
    began = time.monotonic()
    for pk in ids:
        _save_one(pk, datetime.now(UTC))
    return count / (time.monotonic() - began)


@transaction.atomic
def _save_one(pk: UUID, now: datetime) -> None:
    operation = Operation.objects.select_for_update().get(pk=pk)
    before = operation.snapshot()
    operation.status = "failed"
    operation.unknown_reason = ""
    operation.failure_code = "closed_by_person"
    operation.failure_message = _NOTE
    operation.needs_person_since = None
    operation.settled_at = now
    operation.revision += 1
    operation.save()
    chain = chain_of(pk)
    last = AuditEntry.objects.filter(chain=chain).order_by("-number").first()
    entry = AuditEntry(
        chain=chain,
        number=last.number + 1 if last else 1,
        operation_id=pk,
        at=now,
        actor_kind=_PERSON.kind,
        actor_id=_PERSON.id,
        actor_name=_PERSON.name,
        actor_address=_PERSON.address,
        action="closed_failed",
        before=before,
        after=operation.snapshot(),
        reason=_NOTE,
        previous_hash=last.entry_hash if last else CHAIN_START,
    )
    entry.entry_hash = entry.chained().digest()
    entry.save()


def _looked_up(count: int) -> list[UUID]:
    """So many unknown operations that a fresh look-up, late enough, found absent."""
    rows, now = stock.operations(count), datetime.now(UTC)
    Evidence.objects.bulk_create(
        [
            Evidence(
                operation=row,
                source=EvidenceSource.LOOKUP,
                summary="No refund with our reference was found on the payment.",
                facts={"result": "absent", "complete": True, "total_explained": True},
                observed_at=now,
                recorded_at=now,
                actor_kind=ActorKind.JOB,
                actor_name="Scheduled check",
            )
            for row in rows
        ],
        batch_size=1_000,
    )
    ids = [row.pk for row in rows]
    with connection.cursor() as cursor:
        # The provider's list shows what was sent a minute before.
        cursor.execute(
            "UPDATE operations_operation SET revision = revision + 1,"
            " last_sent_at = last_sent_at - interval '5 minutes' WHERE id = ANY(%s)",
            [ids],
        )
        cursor.execute("CHECKPOINT")
    return ids


def _engine() -> Engine:
    """One person may close all of them."""
    return replace(default_engine(), bulk_alone=BulkLimits(rows=10_000, times=1_000_000))
