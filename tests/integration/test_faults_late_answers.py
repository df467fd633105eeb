"""An answer that comes after its attempt was given up, and what a send never has: a transaction."""

from functools import partial

import pytest
from django.db import connection, transaction

from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Attention, Status, UnknownReason
from operations.models import Account, Attempt, AuditEntry, EvidenceSource, Operation, Request
from operations.services.closing import approve, close
from operations.services.guarding import ProviderCallInTransaction
from operations.services.looking_up import LookupResult, look_up
from operations.services.sweeping import give_up_lost_sends
from operations.services.weighing import Decision

from .stage import ALICE, BOB, JOB, AtOnce, Stage, ask

pytestmark = pytest.mark.django_db(transaction=True)


def send_and_hold(stage: Stage, payment: str) -> AtOnce:
    """A send whose answer is held back; what asked for it waits in a thread."""
    stage.control.fault("hang", when="after", seconds=60, then="answer")
    asking = AtOnce([partial(ask, stage.with_timeouts(read_s=60), payment)])
    stage.control.wait_in_flight(timeout_s=20)
    return asking


def give_up(stage: Stage, *, after_s: float = 40) -> None:
    """The sweep finds the lease run out."""
    stage.clock.advance(after_s)
    assert give_up_lost_sends(engine=stage.engine) == 1
    assert Attempt.objects.get().outcome == "indeterminate"


def let_go(stage: Stage, asking: AtOnce) -> None:
    """The late answer arrives."""
    stage.control.let_go()
    (result,) = asking.results()
    assert isinstance(result, Operation), result


def test_late_success_is_believed_and_the_attempt_stays_as_it_was_written(stage: Stage) -> None:
    payment = stage.payment()
    asking = send_and_hold(stage, payment)
    give_up(stage)

    let_go(stage, asking)

    operation = Operation.objects.get()
    attempt = Attempt.objects.get()
    assert operation.status == Status.SUCCEEDED
    assert (attempt.outcome, attempt.doubt) == ("indeterminate", "interrupted")
    assert operation.evidence.count() == 2
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_late_refusal_changes_nothing(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.fault("refuse", code="charge_disputed")
    asking = send_and_hold(stage, payment)
    give_up(stage, after_s=86_400)
    before = Operation.objects.values().get()

    let_go(stage, asking)

    assert before["unknown_reason"] == UnknownReason.KEY_WINDOW_CLOSED
    assert Operation.objects.values().get() == before
    assert Operation.objects.get().evidence.count() == 2
    assert (stage.refunds(payment), stage.sends(payment)) == (0, 1)


def test_late_success_beside_a_resend_is_one_refund_and_one_change(stage: Stage) -> None:
    payment = stage.payment()
    asking = send_and_hold(stage, payment)
    give_up(stage)
    assert stage.ask(payment).status == Status.SUCCEEDED
    entries = AuditEntry.objects.count()

    let_go(stage, asking)

    assert AuditEntry.objects.count() == entries
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 2)
    assert len(stage.keys(payment)) == 1


def test_late_success_after_a_person_found_that_it_failed_is_a_conflict(stage: Stage) -> None:
    payment = stage.payment()
    stage.control.lag(3_600)
    asking = send_and_hold(stage, payment)
    give_up(stage, after_s=86_400)
    operation = Operation.objects.get()
    found = look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    assert found == LookupResult.ABSENT
    operation.refresh_from_db()
    waits = close(
        engine=stage.engine,
        operation_id=operation.pk,
        decision=Decision(
            outcome=ClosingOutcome.FAILED,
            evidence_kind=EvidenceKind.DASHBOARD,
            evidence_reference="case 7731",
            note="Not on the payment a day later.",
            revision=operation.revision,
        ),
        actor=ALICE,
    )
    # The provider's total shows a refund that its list does not: that takes two people.
    assert waits is not None
    approve(
        engine=stage.engine,
        proposal_id=waits.pk,
        revision=operation.revision,
        note="I looked, too.",
        actor=BOB,
    )

    let_go(stage, asking)

    operation = Operation.objects.get()
    assert operation.status == Status.FAILED
    assert operation.attention == [Attention.CONFLICT]
    assert operation.failure_code == "closed_by_person"
    assert operation.needs_person_since is not None
    sources = [row.source for row in operation.evidence.order_by("recorded_at")]
    assert sources[-2:] == [EvidenceSource.STATEMENT, EvidenceSource.ANSWER]
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_sweeps_that_meet_give_an_attempt_up_once(stage: Stage) -> None:
    payment = stage.payment()
    asking = send_and_hold(stage, payment)
    stage.clock.advance(40)

    given_up = AtOnce([partial(give_up_lost_sends, engine=stage.engine)] * 4).results()

    assert sum(given_up) == 1
    assert Operation.objects.get().evidence.count() == 1
    let_go(stage, asking)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_no_transaction_is_open_anywhere_while_the_provider_is_asked(stage: Stage) -> None:
    payment = stage.payment()
    asking = send_and_hold(stage, payment)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        (open_transactions,) = cursor.fetchone()
    with transaction.atomic():
        row = Operation.objects.select_for_update(nowait=True).get()
        assert row.lease_owner != ""

    assert open_transactions == 0
    let_go(stage, asking)
    assert (stage.refunds(payment), stage.sends(payment)) == (1, 1)


def test_request_inside_a_transaction_is_refused_before_anything_leaves(stage: Stage) -> None:
    payment = stage.payment()

    with transaction.atomic(), pytest.raises(ProviderCallInTransaction):
        stage.ask(payment)

    assert stage.sends(payment) == 0
    assert Operation.objects.count() == Request.objects.count() == 0


@pytest.mark.parametrize("call", ["create_refund", "read_payment", "read_refund", "list_refunds"])
def test_no_call_to_the_provider_is_let_through_inside_a_transaction(
    stage: Stage, call: str
) -> None:
    payment = stage.payment()
    provider = stage.engine.provider(Account.objects.create(name="default", livemode=False))
    arguments: dict[str, dict[str, object]] = {
        "create_refund": {
            "parameters": {"charge": payment, "amount": 100},
            "idempotency_key": "recon-tests",
            "account": "",
        },
        "read_payment": {"payment": payment, "account": ""},
        "read_refund": {"refund_id": "re_1", "account": ""},
        "list_refunds": {"payment": payment, "account": ""},
    }

    with transaction.atomic(), pytest.raises(ProviderCallInTransaction):
        getattr(provider, call)(**arguments[call])

    assert (stage.refunds(payment), stage.sends(payment)) == (0, 0)
