"""Flags: raised by a fact, shown with both sides, cleared by a person, back for a new fact only."""

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from operations.domain.audit import Actor, ActorKind
from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.domain.statuses import Attention, Status
from operations.models import (
    AuditEntry,
    Evidence,
    Flag,
    Operation,
    Payment,
    PolicyName,
    ProviderRefund,
)
from operations.models.proposal import ProposalState
from operations.queries.metrics import read_metrics
from operations.services.clearing import clear_attention
from operations.services.closing import close
from operations.services.draining import handle_next_event
from operations.services.engine import default_engine
from operations.services.looking_up import look_up
from operations.services.policies import set_policy
from operations.services.sweeping import check
from operations.services.weighing import ClosingRefused, Decision, StaleView

from .cases import ENVIRONMENT, Recording, webhook
from .console.scenes import person
from .deliveries import deliver
from .stage import ALICE, JOB, Stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _environment_of_the_cases(served: Stage, settings: Any) -> None:
    settings.RECONCILE = replace(settings.RECONCILE, environment=ENVIRONMENT)
    default_engine.cache_clear()


def drain() -> None:
    """Handle every event that waits."""
    while handle_next_event(engine=default_engine()) is not None:
        pass


def told(name: str, **changed: Any) -> None:
    """A recorded webhook under a new event id, with a little of its object changed."""
    body = json.loads(webhook(name))
    body["id"] = f"evt_{uuid.uuid4().hex}"
    body["data"]["object"] |= changed
    assert deliver(body).status_code == 200
    drain()


def clear(operation: Operation, attention: Attention, **changes: Any) -> Operation:
    operation.refresh_from_db()
    given: dict[str, Any] = {"revision": operation.revision, "actor": ALICE} | changes
    return clear_attention(
        engine=default_engine(),
        operation_id=operation.pk,
        attention=attention,
        reason="We know, and have dealt with it.",
        **given,
    )


CONFLICT, DISPUTED = Attention.CONFLICT, Attention.DISPUTED
DUPLICATE, MISMATCH = Attention.DUPLICATE_REFUND, Attention.MISMATCH
CLEARED: dict[str, tuple[str, str, Attention, dict[str, Any], Attention]] = {
    "conflict": ("g1", "41", CONFLICT, {"id": "re_another"}, DUPLICATE),
    "mismatch": ("d6", "27", MISMATCH, {"amount": 260_000}, MISMATCH),
    "another account": ("f2", "36", MISMATCH, {"id": "re_another"}, MISMATCH),
    "dispute": ("a4", "38", DISPUTED, {"status": "lost"}, DISPUTED),
}


@pytest.mark.parametrize(
    ("name", "event", "attention", "other", "then"), CLEARED.values(), ids=CLEARED.keys()
)
def test_cleared_flag_comes_back_for_another_fact_only(
    name: str, event: str, attention: Attention, other: dict[str, Any], then: Attention
) -> None:
    operation = Recording.named(name).insert()
    told(event)
    operation.refresh_from_db()
    assert operation.attention == [attention]
    told(event)
    assert Flag.objects.count() == 1

    clear(operation, attention)
    told(event)
    operation.refresh_from_db()
    assert operation.attention == []
    assert operation.status == (Status.FAILED if name == "g1" else Status.UNKNOWN)

    told(event, **other)
    operation.refresh_from_db()
    assert operation.attention == [then]
    entries = AuditEntry.objects.filter(operation_id=operation.pk).order_by("number")
    assert [entry.action for entry in entries][1] == "attention_cleared"
    assert len(entries) == 3


def test_flag_keeps_both_facts_and_the_page_shows_them_side_by_side(client: Client) -> None:
    operation = Recording.named("d6").insert()
    told("27")
    client.force_login(person("operator"))

    page = client.get(f"/operations/{operation.pk}/").content.decode()

    flag = Flag.objects.get()
    assert flag.sides[1] == ["amount", "2500", "250000"]
    assert "$25.00" in page
    assert "$2,500.00" in page
    assert "Our reference, but other terms or another place." in page


def test_second_fact_under_a_standing_flag_is_shown_too_and_makes_old_pages_stale() -> None:
    operation = Recording.named("d6").insert()
    told("27")
    operation.refresh_from_db()
    seen = operation.revision

    told("27", amount=260_000)

    assert Flag.objects.count() == 2
    with pytest.raises(StaleView):
        clear(operation, MISMATCH, revision=seen)
    assert Flag.objects.filter(cleared_at__isnull=True).count() == 2


def test_only_a_person_clears_a_flag() -> None:
    operation = Recording.named("d6").insert()
    told("27")

    with pytest.raises(ClosingRefused, match="Only a person"):
        clear(operation, MISMATCH, actor=Actor(kind=ActorKind.JOB, id="job", name="Job"))

    operation.refresh_from_db()
    assert operation.attention == [MISMATCH]


def test_cleared_flag_stays_on_the_page_with_who_and_why(client: Client) -> None:
    operation = Recording.named("d6").insert()
    told("27")
    operation.refresh_from_db()
    client.force_login(person("operator", "Dana Ruiz"))

    answer = client.post(
        f"/operations/{operation.pk}/clear-attention/",
        {
            "attention": "mismatch",
            "reason": "The shop refunded the order by hand.",
            "revision": operation.revision,
            "seen": "1.1",
        },
        follow=True,
    )

    page = answer.content.decode()
    assert "Cleared flags" in page
    assert "The shop refunded the order by hand." in page
    flag = Flag.objects.get()
    assert (flag.cleared_by_name, flag.clear_reason) == (
        "Dana Ruiz",
        "The shop refunded the order by hand.",
    )


def test_flags_are_counted_by_kind() -> None:
    Recording.named("d6").insert()
    Recording.named("a4").insert()
    told("27")
    told("38")

    metrics = read_metrics(now=default_engine().clock())

    assert (metrics.flags["mismatch"], metrics.flags["disputed"]) == (1, 1)
    assert metrics.flags["conflict"] == 0


def test_conflict_whose_refund_fails_later_is_evidence_and_clears_nothing_by_itself() -> None:
    operation = Recording.named("g1").insert()
    told("41")

    told("41", status="failed")

    operation.refresh_from_db()
    assert (operation.status, operation.attention) == (Status.FAILED, [CONFLICT])
    assert (operation.provider_status, operation.failure_code) == ("failed", "closed_by_person")
    assert [row.provider_status for row in Evidence.objects.order_by("pk")] == [
        "succeeded",
        "failed",
    ]


def test_clearing_a_flag_takes_the_ground_from_a_proposal_that_waits() -> None:
    operation = Recording.named("d6").insert()
    told("27")
    operation.refresh_from_db()
    proposal = close(
        engine=default_engine(),
        operation_id=operation.pk,
        decision=Decision(
            outcome=ClosingOutcome.FAILED,
            evidence_kind=EvidenceKind.DASHBOARD,
            evidence_reference="case 7",
            note="Not there.",
            revision=operation.revision,
        ),
        actor=ALICE,
    )
    assert proposal is not None

    clear(operation, MISMATCH)

    proposal.refresh_from_db()
    assert proposal.state == ProposalState.VOID


# --- Disputes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("event", "name", "blocked"), [("38", "a4", True), ("39", "a3", False)])
def test_dispute_marks_the_operations_of_its_payment_and_closes_none(
    event: str, name: str, blocked: bool
) -> None:
    operation = Recording.named(name).insert()

    told(event)

    operation.refresh_from_db()
    assert (operation.status, operation.attention) == (Status.UNKNOWN, [DISPUTED])
    assert Payment.objects.get().refunds_blocked is blocked


@pytest.mark.parametrize(("event", "name", "sends"), [("38", "a4", 0), ("39", "a3", 1)])
def test_nothing_is_sent_while_a_dispute_makes_the_provider_refuse_refunds(
    served: Stage, event: str, name: str, sends: int
) -> None:
    operation = Recording.named(name).insert(is_open=True)
    told(event)
    charge = operation.payment.charge

    check(engine=default_engine(), operation_id=operation.pk)

    assert Operation.objects.get().attempts_made == sends
    if not sends:
        assert Operation.objects.get().status == Status.OPEN
        told(event, status="won", is_charge_refundable=True)
        assert Payment.objects.get(charge=charge).refunds_blocked is False
        check(engine=default_engine(), operation_id=operation.pk)
        assert Operation.objects.get().attempts_made == 1


def test_person_who_clears_the_dispute_lets_an_open_operation_go_on() -> None:
    operation = Recording.named("a4").insert(is_open=True)
    told("38")
    check(engine=default_engine(), operation_id=operation.pk)
    assert Operation.objects.get().attempts_made == 0

    clear(operation, DISPUTED)
    check(engine=default_engine(), operation_id=operation.pk)

    assert Operation.objects.get().attempts_made == 1


def test_dispute_that_was_won_is_not_reopened_by_an_older_event() -> None:
    operation = Recording.named("a4").insert()
    told("38", status="won", is_charge_refundable=True)
    told("38")

    operation.refresh_from_db()
    assert operation.attention == []
    assert Payment.objects.get().refunds_blocked is False


# --- What is believed, and what a decision rests on ---------------------------------------------


def test_refund_that_names_no_payment_is_not_believed_but_looked_up() -> None:
    operation = Recording.named("a1").insert()

    told("01", charge=None, payment_intent=None)

    operation.refresh_from_db()
    assert (operation.status, operation.provider_object_id) == (Status.UNKNOWN, "")
    assert not ProviderRefund.objects.filter(operation=operation).exists()
    assert Evidence.objects.get().provider_object_id == "re_3FAKER001"


def unknown(stage: Stage, *, made: bool) -> Operation:
    stage.control.fault("500", when="after" if made else "before")
    return stage.ask(stage.payment())


def test_look_up_that_finds_nothing_new_leaves_an_open_form_valid(stage: Stage) -> None:
    operation = unknown(stage, made=False)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    operation.refresh_from_db()

    stage.clock.advance(120)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)

    closed = close(
        engine=stage.engine,
        operation_id=operation.pk,
        decision=Decision(
            outcome=ClosingOutcome.FAILED,
            evidence_kind=EvidenceKind.DASHBOARD,
            evidence_reference="case 7",
            note="Not there.",
            revision=operation.revision,
        ),
        actor=ALICE,
    )
    assert closed is None
    operation.refresh_from_db()
    assert (operation.status, operation.lookups_made) == (Status.FAILED, 2)


def test_look_up_that_shows_another_refund_makes_an_open_form_stale(stage: Stage) -> None:
    operation = unknown(stage, made=False)
    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)
    operation.refresh_from_db()
    stage.control.refund_outside(operation.payment.charge, amount=operation.amount)

    look_up(engine=stage.engine, operation_id=operation.pk, actor=JOB)

    assert Operation.objects.get().revision > operation.revision
    payment = Payment.objects.get()
    assert payment.refunded == operation.amount


def test_absence_is_no_evidence_without_a_look_up_that_found_it_absent(stage: Stage) -> None:
    operation = unknown(stage, made=False)

    set_policy(
        engine=stage.engine,
        name=PolicyName.CLOSE_BY_ABSENCE,
        enabled=True,
        reason="Agreed.",
        actor=ALICE,
    )

    with pytest.raises(ClosingRefused, match="look-ups do not show"):
        close(
            engine=stage.engine,
            operation_id=operation.pk,
            decision=Decision(
                outcome=ClosingOutcome.FAILED,
                evidence_kind=EvidenceKind.ABSENT_IN_LOOKUP,
                evidence_reference="",
                note="Not there.",
                revision=operation.revision,
            ),
            actor=ALICE,
        )

    assert Operation.objects.get().status == Status.UNKNOWN
