"""What Alice does with many operations at once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from operations.domain.access import ALL, Rights
from operations.domain.bulk import BulkAction
from operations.models import (
    AuditEntry,
    BulkRun,
)
from operations.queries.bulk import results_of
from operations.services.bulk import (
    Begin,
    begin,
)
from operations.services.bulk_previewing import (
    preview,
)
from operations.services.bulk_running import run_bulk
from operations.services.engine import Engine

from .stage import ALICE, Stage

NOTE = "The provider's incident of the morning."


def saying(run: BulkRun, **changes: Any) -> Begin:
    """What Alice says when she begins a run."""
    said = Begin(count=run.acts, note=NOTE, kind="dashboard", reference="incident 29")
    return replace(said, **changes)


def anything(person: str) -> Rights:
    """Alice and Bob of the tests are in no list of people: they may do everything."""
    return ALL


def see(stage: Stage, ids: Sequence[UUID], action: BulkAction = BulkAction.CLOSE_FAILED) -> BulkRun:
    return preview(engine=stage.engine, action=action, ids=ids, actor=ALICE)


def begun(stage: Stage, run: BulkRun, **said: Any) -> BulkRun:
    return begin(engine=stage.engine, run_id=run.pk, saying=saying(run, **said), actor=ALICE)


def work(engine: Engine, run: BulkRun) -> None:
    while run_bulk(engine=engine, run_id=run.pk, is_over=lambda: False, rights_of=anything):
        pass
    run.refresh_from_db()


def results(run: BulkRun) -> dict[str, int]:
    return results_of(run).counts


def audit_of(operation_id: UUID) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(operation_id=operation_id).order_by("number"))
