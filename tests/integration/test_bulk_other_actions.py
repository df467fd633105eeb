"""Looking up and claiming many at once."""

import pytest

from operations.domain.bulk import BulkAction
from operations.domain.statuses import Status
from operations.models import (
    AuditEntry,
    Claim,
    Evidence,
)
from operations.services.bulk_previewing import (
    retry,
)
from operations.services.claiming import claim

from .bulk_runs import begun, results, see, work
from .many import many_unknown
from .stage import ALICE, BOB, Stage
from .test_closing import unknown

pytestmark = pytest.mark.django_db(transaction=True)


def test_looking_up_reads_each_and_sends_nothing(stage: Stage) -> None:
    made, lost = stage.payment(), stage.payment()
    found = unknown(stage, made, made=True)
    absent = unknown(stage, lost, made=False, order_id="4418")
    run = begun(stage, see(stage, [found.pk, absent.pk], BulkAction.LOOK_UP))

    work(stage.engine, run)

    assert dict(run.lines.values_list("operation_id", "detail")) == {
        found.pk: "found",
        absent.pk: "absent",
    }
    found.refresh_from_db()
    assert found.status == Status.SUCCEEDED
    assert (stage.sends(made), stage.sends(lost)) == (1, 1)
    evidence = Evidence.objects.filter(operation_id=found.pk).latest("pk")
    assert evidence.actor_name == "Alice"


def test_a_look_up_that_can_not_be_made_is_tried_again_by_another_run(stage: Stage) -> None:
    payment = stage.payment()
    operation = unknown(stage, payment, made=True)
    stage.control.fault("503", endpoint="refunds.list", times=10)
    run = begun(stage, see(stage, [operation.pk], BulkAction.LOOK_UP))
    work(stage.engine, run)
    assert results(run) == {"failed": 1}
    stage.control.clear_faults()

    again = begun(stage, retry(engine=stage.engine, run_id=run.pk, actor=ALICE))
    work(stage.engine, again)

    assert results(again) == {"looked_up": 1}


def test_claiming_many_leaves_alone_what_others_hold(stage: Stage) -> None:
    ids = many_unknown(stage, 3)
    claim(engine=stage.engine, operation_id=ids[0], actor=BOB)
    run = begun(stage, see(stage, ids, BulkAction.CLAIM))
    claim(engine=stage.engine, operation_id=ids[1], actor=BOB)

    work(stage.engine, run)

    assert results(run) == {"left": 1, "refused": 1, "claimed": 1}
    assert dict(Claim.objects.values_list("operation_id", "holder")) == {
        ids[0]: "bob",
        ids[1]: "bob",
        ids[2]: "alice",
    }
    entry = AuditEntry.objects.get(operation_id=ids[2], action="claimed")
    assert (entry.actor_name, entry.after["bulk_run"]) == ("Alice", run.pk)
