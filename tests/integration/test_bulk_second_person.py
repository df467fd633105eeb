"""A run of many that wants a second person."""

from dataclasses import replace

import pytest

from operations.domain.bulk import BulkAction, BulkLimits, RunReason
from operations.domain.statuses import Status
from operations.models import (
    BulkState,
    Evidence,
    Operation,
)
from operations.services.bulk import (
    approve,
    reject,
)
from operations.services.bulk_previewing import (
    BulkRefused,
    preview,
)

from .bulk_runs import begun, results, work
from .many import many_unknown
from .stage import ALICE, BOB, Stage

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_above_the_limits_waits_for_another_person(stage: Stage) -> None:
    ids = many_unknown(stage, 4)
    engine = replace(stage.engine, bulk_alone=BulkLimits(rows=3, times=0))
    run = preview(engine=engine, action=BulkAction.CLOSE_FAILED, ids=ids, actor=ALICE)
    assert run.reasons == [RunReason.ROWS, RunReason.SUM]
    begun(stage, run)
    work(stage.engine, run)
    assert (run.state, results(run)) == (BulkState.WAITING, {"": 4})
    with pytest.raises(BulkRefused, match="another person"):
        approve(engine=engine, run_id=run.pk, note="Fine.", actor=ALICE)
    with pytest.raises(BulkRefused):
        approve(engine=engine, run_id=run.pk, note=" ", actor=BOB)

    approve(engine=engine, run_id=run.pk, note="I checked ten of them.", actor=BOB)
    work(stage.engine, run)

    assert (run.state, results(run)) == (BulkState.ENDED, {"closed": 4})
    evidence = Evidence.objects.filter(source="statement").latest("pk")
    assert evidence.facts["bulk_approved_by"] == "Bob"
    assert evidence.facts["bulk_approval_note"] == "I checked ten of them."


def test_a_run_that_is_rejected_or_withdrawn_changes_nothing(stage: Stage) -> None:
    ids = many_unknown(stage, 2)
    engine = replace(stage.engine, bulk_alone=BulkLimits(rows=1))
    for actor in (BOB, ALICE):
        run = preview(engine=engine, action=BulkAction.CLOSE_FAILED, ids=ids, actor=ALICE)
        begun(stage, run)
        reject(engine=engine, run_id=run.pk, note="Not all of these.", actor=actor)
        work(stage.engine, run)
        assert (run.state, results(run)) == (BulkState.REJECTED, {"": 2})
        with pytest.raises(BulkRefused):
            approve(engine=engine, run_id=run.pk, note="After all.", actor=BOB)
    assert set(Operation.objects.values_list("status", flat=True)) == {Status.UNKNOWN}
