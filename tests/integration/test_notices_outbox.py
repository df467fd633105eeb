"""A change and its notice are one: written together, once, for those who asked for it."""

import json
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from operations.domain.audit import Actor, ActorKind
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.contradiction import Contradiction
from operations.domain.notices import NoticeType
from operations.domain.statuses import Attention, Status
from operations.models import Delivery, EvidenceSource, Operation
from operations.queries.answers import answer
from operations.services import subscribing
from operations.services.closing import approve, close
from operations.services.learning import Learned
from operations.services.looking_up import look_up
from operations.services.settling import lock, raise_attention, write_evidence
from operations.services.weighing import Decision

from .stage import ALICE, BOB, JOB, Stage
from .subscribed import Receiver, receiver, telling

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def listener(stage: Stage) -> Any:
    stage.engine = telling(stage)
    with receiver(stage.engine) as listener:
        yield listener


def types(listener: Receiver) -> list[str]:
    return [row.type for row in listener.deliveries()]


def flag(stage: Stage, operation: Operation, attention: Attention) -> None:
    now = stage.clock()
    learned = Learned(
        source=EvidenceSource.WEBHOOK, summary="A dispute.", actor=JOB, observed_at=now
    )
    row = lock(operation.pk)
    evidence = write_evidence(row, learned, now=now)
    found = Contradiction(attention=attention, fact="du_1:blocks", sides=())
    raise_attention(row, found, learned=learned, now=now, evidence=evidence)


def test_success_is_told_with_what_a_get_would_answer(stage: Stage, listener: Receiver) -> None:
    operation = stage.ask(stage.payment())
    (row,) = listener.deliveries()
    assert (row.type, row.operation_id) == ("refund.succeeded", operation.pk)
    body = json.loads(row.body)
    assert set(body) == {"type", "timestamp", "data"}
    assert body["type"] == row.type
    _, asked = answer(Operation.objects.get(pk=operation.pk), now=row.occurred_at)
    assert body["data"] == json.loads(json.dumps(asked, default=str))


def test_the_answer_over_http_is_the_same(served: Stage, agent: Any) -> None:
    with receiver(telling(served)) as listener:
        asked = agent.ask(served.payment()).json()
        body = json.loads(listener.deliveries()[0].body)
        assert body["data"] == agent.get(f"/api/v1/refunds/{asked['operation_id']}").json()


def test_a_refusal_is_told(stage: Stage, listener: Receiver) -> None:
    payment = stage.payment()
    stage.control.fault("402")
    operation = stage.ask(payment)
    assert operation.status == Status.FAILED
    assert types(listener) == ["refund.failed"]


def test_what_is_handed_to_people_is_told_and_then_its_end(
    stage: Stage, listener: Receiver
) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="after")
    operation = stage.ask(payment)
    assert operation.status == Status.UNKNOWN
    assert types(listener) == ["refund.unknown"]
    told = json.loads(listener.deliveries()[0].body)["data"]
    assert told["status"] == "checking"
    assert told["next_check_at"] is not None

    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    assert types(listener) == ["refund.unknown", "refund.succeeded"]


def test_a_later_failure_is_told_as_a_failure_and_a_flag(stage: Stage, listener: Receiver) -> None:
    operation = stage.ask(stage.payment())
    stage.control.set_refund_status(operation.provider_object_id, "failed")
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    assert types(listener) == ["refund.succeeded", "refund.failed", "refund.flagged"]


def test_what_a_second_look_finds_again_is_not_told_again(stage: Stage, listener: Receiver) -> None:
    operation = stage.ask(stage.payment())
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    assert types(listener) == ["refund.succeeded"]


def test_a_flag_is_told_once_while_it_stands(stage: Stage, listener: Receiver) -> None:
    operation = stage.ask(stage.payment())
    for _ in range(2):
        with transaction.atomic():
            flag(stage, operation, Attention.DISPUTED)
    assert types(listener) == ["refund.succeeded", "refund.flagged"]


def test_a_change_that_is_rolled_back_is_not_told(stage: Stage, listener: Receiver) -> None:
    operation = stage.ask(stage.payment())
    with transaction.atomic():
        flag(stage, operation, Attention.DISPUTED)
        assert types(listener) == ["refund.succeeded", "refund.flagged"]
        transaction.set_rollback(True)
    assert types(listener) == ["refund.succeeded"]


def test_a_closing_by_two_people_is_told_when_it_is_closed(
    stage: Stage, listener: Receiver
) -> None:
    payment = stage.payment()
    stage.control.fault("500", when="before")
    operation = stage.ask(payment)
    decision = Decision(
        outcome=ClosingOutcome.FAILED,
        evidence_kind=EvidenceKind.DASHBOARD,
        evidence_reference="case 1",
        note="Nothing there.",
        revision=operation.revision,
    )
    proposal = close(engine=stage.engine, operation_id=operation.pk, decision=decision, actor=ALICE)
    assert types(listener) == ["refund.unknown"]
    assert proposal is not None
    approve(
        engine=stage.engine,
        proposal_id=proposal.pk,
        revision=operation.revision,
        note="I looked too.",
        actor=BOB,
    )
    assert types(listener) == ["refund.unknown", "refund.failed"]


def test_subscribers_get_what_they_asked_for(stage: Stage) -> None:
    engine = stage.engine = telling(stage)
    other = stage.ask_for_the_account()
    other.pk, other.name, other.provider_account = None, "other", "acct_other"
    other._state.adding = True
    other.save()
    with (
        receiver(engine, types=(NoticeType.UNKNOWN,)) as unknown,
        receiver(engine, types=(NoticeType.SUCCEEDED, NoticeType.FLAGGED)) as ends,
        receiver(engine, account=other) as elsewhere,
        receiver(engine, account=stage.ask_for_the_account()) as here,
        receiver(engine) as disabled,
    ):
        subscribing.disable(
            engine=engine, subscription_id=disabled.subscription.pk, actor=ALICE, reason="Moved."
        )
        stage.ask(stage.payment())
        assert types(unknown) == types(elsewhere) == types(disabled) == []
        assert types(ends) == types(here) == ["refund.succeeded"]
        assert ends.deliveries()[0].message_id == here.deliveries()[0].message_id


def test_without_subscribers_nothing_is_written(stage: Stage) -> None:
    stage.ask(stage.payment())
    assert not Delivery.objects.exists()


def test_a_notice_costs_no_statement_of_its_own(stage: Stage) -> None:
    stage.engine = telling(stage)
    unlimited = stage.with_contract(reads_per_s=None, writes_per_s=None)
    stage.ask(stage.payment(), engine=unlimited, order_id="first")
    counts = []
    for order in ("without", "with"):
        payment = stage.payment()
        with CaptureQueriesContext(connection) as sent:
            stage.ask(payment, engine=unlimited, order_id=order)
        counts.append(len(sent.captured_queries))
        if order == "without":
            context = receiver(stage.engine)
            listener = context.__enter__()
    assert types(listener) == ["refund.succeeded"]
    context.__exit__(None, None, None)
    assert counts[0] == counts[1]


def test_two_flags_of_one_change_are_one_notice(stage: Stage, listener: Receiver) -> None:
    from operations.models import collecting

    operation = stage.ask(stage.payment())
    with collecting.collecting():
        flag(stage, operation, Attention.DISPUTED)
        flag(stage, operation, Attention.CONFLICT)
    assert types(listener) == ["refund.succeeded", "refund.flagged"]


def test_who_acts_is_audited(stage: Stage, listener: Receiver) -> None:
    from operations.models import AuditEntry

    admin = Actor(kind=ActorKind.PERSON, id="ada", name="Ada", address="10.0.0.9")
    subscription = listener.subscription
    subscribing.roll_secret(engine=stage.engine, subscription_id=subscription.pk, actor=admin)
    subscribing.disable(
        engine=stage.engine, subscription_id=subscription.pk, actor=admin, reason="Moved."
    )
    subscribing.enable(engine=stage.engine, subscription_id=subscription.pk, actor=admin)
    entries = list(
        AuditEntry.objects.filter(chain="system", action__startswith="subscription").order_by(
            "number"
        )
    )
    assert [entry.action.removeprefix("subscription_") for entry in entries] == [
        "created",
        "secret_rolled",
        "disabled",
        "enabled",
    ]
    assert entries[2].reason == "Moved."
    assert not any("whsec_" in json.dumps(entry.after) for entry in entries)
