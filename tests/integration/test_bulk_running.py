"""A run of many that is stopped, loses its worker, or has a row that can not be done."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection

from operations.domain.bulk import Hindrance
from operations.domain.statuses import Status
from operations.models import (
    AuditEntry,
    BulkRow,
    BulkRun,
    BulkState,
    Operation,
    Proposal,
)
from operations.services import bulk_running
from operations.services.bulk import (
    stop,
)
from operations.services.bulk_previewing import (
    forget_previews,
    retry,
)
from operations.services.bulk_running import LEASE_S, run_bulk, runs_left_lying

from .bulk_runs import anything, begun, results, see, work
from .many import many_unknown
from .stage import ALICE, BOB, AtOnce, Stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_running, "CHUNK", 2)


@pytest.mark.usefixtures("_small_chunks")
def test_stopping_leaves_the_rest_alone(stage: Stage) -> None:
    run = begun(stage, see(stage, many_unknown(stage, 5)))
    assert run_bulk(engine=stage.engine, run_id=run.pk, is_over=lambda: True, rights_of=anything)

    for _ in range(2):
        stopped = stop(engine=stage.engine, run_id=run.pk, actor=BOB)
        if stopped.state == BulkState.ENDED:
            break
    work(stage.engine, run)

    assert (run.state, run.stopped_by_name) == (BulkState.ENDED, "Bob")
    assert results(run) == {"closed": 2, "stopped": 3}
    assert Operation.objects.filter(status=Status.UNKNOWN).count() == 3
    again = retry(engine=stage.engine, run_id=run.pk, actor=ALICE)
    begun(stage, again)
    work(stage.engine, again)
    assert results(again) == {"closed": 3}


@pytest.mark.usefixtures("_small_chunks")
def test_a_worker_that_dies_leaves_its_run_to_another(stage: Stage) -> None:
    run = begun(stage, see(stage, many_unknown(stage, 5)))

    class Killed(BaseException):
        """Nobody catches it."""

    calls = iter([False, True])

    def die() -> bool:
        if next(calls):
            raise Killed
        return False

    with pytest.raises(Killed):
        run_bulk(engine=stage.engine, run_id=run.pk, is_over=die, rights_of=anything)
    assert results(run) == {"closed": 4, "": 1}
    assert runs_left_lying(engine=stage.engine) == []
    stage.clock.advance(LEASE_S + 1)
    assert runs_left_lying(engine=stage.engine) == [run.pk]

    work(stage.engine, run)

    assert results(run) == {"closed": 5}
    assert AuditEntry.objects.filter(action="closed_failed").count() == 5


@pytest.mark.usefixtures("_small_chunks")
def test_two_workers_at_once_do_no_row_twice(stage: Stage) -> None:
    run = begun(stage, see(stage, many_unknown(stage, 20)))
    late = replace(stage.engine, clock=lambda: stage.clock() + timedelta(seconds=300))

    AtOnce(
        [
            partial(
                run_bulk, engine=engine, run_id=run.pk, is_over=lambda: False, rights_of=anything
            )
            for engine in (stage.engine, late)
        ]
    ).results()
    BulkRun.objects.filter(pk=run.pk, state=BulkState.RUNNING).update(claimed_until=None)
    work(stage.engine, run)

    assert (run.state, results(run)) == (BulkState.ENDED, {"closed": 20})
    assert AuditEntry.objects.filter(action="closed_failed").count() == 20


def test_a_row_that_can_not_be_done_holds_up_no_other(stage: Stage) -> None:
    ids = many_unknown(stage, 4)
    stage.clock.advance(1_000)
    run = begun(stage, see(stage, ids))
    # Somebody proposes between the look at it and the write: the database refuses a second one.
    broken = Proposal(
        operation_id=ids[2],
        outcome="failed",
        evidence_kind="dashboard",
        evidence_reference="case 1",
        note="Mine.",
        reasons=["amount"],
        revision=2,
        proposed_by="bob",
        proposed_by_name="Bob",
        proposed_at=stage.clock(),
    )
    broken.save()

    work(stage.engine, run)

    assert results(run) == {"proposed": 3, "refused": 1}
    assert run.lines.get(result="refused").detail == Hindrance.PROPOSED


def test_previews_that_came_to_nothing_are_forgotten_and_runs_are_not(stage: Stage) -> None:
    ids = many_unknown(stage, 2)
    run = begun(stage, see(stage, ids))
    see(stage, ids)
    work(stage.engine, run)

    assert forget_previews(engine=stage.engine) == 0
    stage.clock.advance(86_401)
    assert forget_previews(engine=stage.engine) == 1
    assert list(BulkRun.objects.all()) == [run]
    assert BulkRow.objects.count() == 2


_BREAK = """
CREATE FUNCTION break_one() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no room for sk_live_%', repeat('0a', 12); END $$;
CREATE TRIGGER break_one BEFORE INSERT ON operations_evidence FOR EACH ROW
    WHEN (NEW.operation_id = '{}') EXECUTE FUNCTION break_one();
"""


def test_one_that_breaks_is_named_without_secrets_and_takes_no_other_with_it(stage: Stage) -> None:
    ids = many_unknown(stage, 5)
    run = begun(stage, see(stage, ids))
    with connection.cursor() as cursor:
        cursor.execute(_BREAK.format(ids[2]))
    try:
        work(stage.engine, run)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION break_one CASCADE")

    assert results(run) == {"closed": 4, "failed": 1}
    broken = run.lines.get(result="failed")
    assert broken.operation_id == ids[2]
    assert "no room for" in broken.detail
    assert "sk_live_0a" not in broken.detail
    assert Operation.objects.get(pk=ids[2]).status == Status.UNKNOWN
    assert AuditEntry.objects.filter(action="closed_failed").count() == 4
