"""Matching again, for many: what is stored about their payments goes through the same matching."""

import pytest

from operations.domain.bulk import BulkAction
from operations.domain.statuses import Status
from operations.models import EventHandling, InboxItem, Operation, ProviderRefund
from operations.services.draining import drain

from .bulk_runs import audit_of, begun, results, see, work
from .deliveries import deliver, event
from .stage import ENVIRONMENT, Stage
from .test_closing import unknown

pytestmark = pytest.mark.django_db(transaction=True)


def refund_event(operation: Operation, name: str, **told: object) -> dict[str, object]:
    refund = {
        "id": f"re_{name}",
        "object": "refund",
        "amount": operation.amount,
        "currency": operation.currency,
        "status": "succeeded",
        "charge": operation.payment.charge,
        "payment_intent": operation.payment.payment_intent,
        "created": 1_795_000_000,
        "metadata": {
            "reconcile_operation_id": str(operation.pk),
            "reconcile_environment": ENVIRONMENT,
        },
    }
    return event(f"evt_{name}", type="refund.created", data={"object": refund | told})


def test_what_was_stuck_or_matched_nothing_is_matched_and_the_rest_says_nothing_new(
    served: Stage,
) -> None:
    stuck, quiet = (
        unknown(served, served.payment(), made=False),
        unknown(served, served.payment(), made=False, order_id="4418"),
    )
    assert deliver(refund_event(stuck, "stuck")).status_code == 200
    InboxItem.objects.update(stuck_at=served.clock(), failures=16, error="It could not be read.")
    assert deliver(refund_event(quiet, "other", metadata={})).status_code == 200
    drain(engine=served.engine)
    run = begun(served, see(served, [stuck.pk, quiet.pk], BulkAction.MATCH_AGAIN))

    work(served.engine, run)

    assert results(run) == {"matched": 1, "nothing_new": 1}
    stuck.refresh_from_db()
    assert (stuck.status, stuck.provider_object_id) == (Status.SUCCEEDED, "re_stuck")
    assert not InboxItem.objects.exists()
    assert EventHandling.objects.filter(provider_event_id="evt_other").count() == 1
    assert ProviderRefund.objects.get(provider_object_id="re_other").operation_id is None
    entry = audit_of(stuck.pk)[-1]
    assert (entry.action, entry.actor_name) == ("matched_again", "Alice")
    assert entry.after["bulk_run"] == run.pk


def test_a_refund_that_was_kept_as_nobodys_is_taken_by_the_operation_that_it_names(
    served: Stage,
) -> None:
    operation = unknown(served, served.payment(), made=False)
    assert deliver(refund_event(operation, "late")).status_code == 200
    # An older version took it for another environment's.
    item = InboxItem.objects.get()
    item.facts["refunds"][0]["metadata"]["reconcile_environment"] = "elsewhere"
    InboxItem.objects.update(facts=item.facts)
    drain(engine=served.engine)
    assert EventHandling.objects.get().operation_id is None

    run = begun(served, see(served, [operation.pk], BulkAction.MATCH_AGAIN))
    work(served.engine, run)

    operation.refresh_from_db()
    assert (results(run), operation.status) == ({"matched": 1}, Status.SUCCEEDED)
    again = begun(served, see(served, [operation.pk], BulkAction.MATCH_AGAIN))
    work(served.engine, again)
    assert results(again) == {"nothing_new": 1}
