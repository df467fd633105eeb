"""What an agent is told: by the operation as it stands, and never more than is known."""

from typing import Any

import pytest

from operations.domain.closure import ClosingOutcome, EvidenceKind
from operations.models import Operation
from operations.services.closing import approve, close
from operations.services.looking_up import look_up
from operations.services.weighing import Decision

from .agent import REFUNDS, Agent
from .stage import ALICE, BOB, JOB, PART, Stage

pytestmark = pytest.mark.django_db(transaction=True)

FIELDS = {
    "operation_id", "status", "attempts", "provider_object_id", "note", "customer_message",
    "retry_after_s", "next_check_at", "code", "message",
}  # fmt: skip
CLAIMS = ("succeeded", "has been made", "was made", "failed", "was not made", "could not")


def assert_claims_nothing(answer: dict[str, Any]) -> None:
    """Not a word on whether the money moved."""
    for text in (answer["note"], answer["customer_message"]):
        assert not [claim for claim in CLAIMS if claim in text], text
    assert answer["provider_object_id"] is None
    assert answer["code"] is answer["message"] is None


def test_success_is_refunded_with_its_refund(served: Stage, agent: Agent) -> None:
    payment = served.payment()

    response = agent.ask(payment)

    answer = response.json()
    (send,) = served.control.sends(payment=payment)
    assert response.status_code == 200
    assert set(answer) == FIELDS
    assert (answer["status"], answer["attempts"]) == ("refunded", 1)
    assert answer["provider_object_id"] == send["refund"]
    assert "$38.00" in answer["customer_message"]
    assert answer["retry_after_s"] is answer["next_check_at"] is None
    assert (served.refunds(payment), served.refunded(payment)) == (1, PART)


def test_lost_answers_are_unconfirmed_and_asking_again_is_refunded(
    served: Stage, agent: Agent
) -> None:
    payment = served.payment()
    served.control.fault("drop", when="after", times=3)

    first, second = agent.ask(payment), agent.ask(payment)

    assert first.status_code == 202
    assert first.json()["status"] == "unconfirmed"
    assert first.json()["retry_after_s"] >= 1
    assert first.json()["next_check_at"] is not None
    assert_claims_nothing(first.json())
    assert (second.status_code, second.json()["status"]) == (200, "refunded")
    assert second.json()["operation_id"] == first.json()["operation_id"]
    assert (served.refunds(payment), served.sends(payment)) == (1, 4)


@pytest.mark.parametrize("when", ["before", "after"])
def test_500_is_checking_however_often_it_is_asked(served: Stage, agent: Agent, when: str) -> None:
    payment = served.payment()
    served.control.fault("500", when=when)

    answers = [agent.ask(payment, tool_call_id=f"toolu_{number}") for number in range(5)]

    for response in answers:
        assert (response.status_code, response.json()["status"]) == (202, "checking")
        assert_claims_nothing(response.json())
    assert len({response.json()["operation_id"] for response in answers}) == 1
    assert served.sends(payment) == 1


def test_pending_is_processing(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    served.control.fault("pending")

    response = agent.ask(payment)

    assert (response.status_code, response.json()["status"]) == (202, "processing")
    assert response.json()["provider_object_id"]
    assert (served.refunds(payment), served.sends(payment)) == (1, 1)


def test_refusal_is_refused_with_its_code_and_message(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    served.control.fault("refuse", code="charge_disputed", message="The charge is disputed.")

    response = agent.ask(payment)

    answer = response.json()
    assert (response.status_code, answer["status"]) == (200, "refused")
    assert (answer["code"], answer["message"]) == ("charge_disputed", "The charge is disputed.")
    assert (served.refunds(payment), served.sends(payment)) == (0, 1)


def test_failed_operation_whose_refund_turns_up_claims_nothing(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    served.control.fault("500", when="after")
    path = f"{REFUNDS}/{agent.ask(payment).json()['operation_id']}"
    close_by_two(served, Operation.objects.get())
    assert agent.get(path).json()["note"].startswith("The refund was not made.")

    look_up(engine=served.engine, operation_id=Operation.objects.get().pk, actor=JOB)

    answer = agent.get(path).json()
    assert (answer["status"], Operation.objects.get().attention) == ("refused", ["conflict"])
    for text in (answer["note"], answer["customer_message"]):
        assert "No money" not in text
        assert "could not" not in text
    assert (served.refunds(payment), served.sends(payment)) == (1, 1)


def close_by_two(stage: Stage, operation: Operation) -> None:
    """Two people err: they close as failed what the provider has made."""
    decision = Decision(
        outcome=ClosingOutcome.FAILED,
        evidence_kind=EvidenceKind.DASHBOARD,
        evidence_reference="case 7",
        note="Not in the dashboard.",
        revision=operation.revision,
    )
    proposal = close(engine=stage.engine, operation_id=operation.pk, decision=decision, actor=ALICE)
    assert proposal is not None
    approve(
        engine=stage.engine,
        proposal_id=proposal.pk,
        revision=operation.revision,
        note="I don't see it either.",
        actor=BOB,
    )


def test_reading_shows_the_same_answer_and_never_sends(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    served.control.fault("500", when="after")
    asked = agent.ask(payment).json()
    path = f"{REFUNDS}/{asked['operation_id']}"

    read = agent.get(path)
    assert (read.status_code, read.json()["status"]) == (202, "checking")

    look_up(engine=served.engine, operation_id=Operation.objects.get().pk, actor=JOB)
    read = agent.get(path)
    assert (read.status_code, read.json()["status"]) == (200, "refunded")
    assert (served.refunds(payment), served.sends(payment)) == (1, 1)


def test_tool_call_that_is_run_again_gets_the_same_answer(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    call = {"tool_call_id": "toolu_01", "agent_run_id": "run-1"}

    first, second = agent.ask(payment, **call), agent.ask(payment, **call)

    assert first.json() == second.json()
    assert (served.refunds(payment), served.sends(payment)) == (1, 1)


@pytest.mark.parametrize(
    ("names", "field"),
    [
        ({"client_request_token": "wish-1"}, "client_request_token"),
        ({"tool_call_id": "toolu_01"}, "tool_call_id"),
    ],
)
def test_name_that_stands_for_another_wish_is_refused_by_field(
    served: Stage, agent: Agent, names: dict[str, str], field: str
) -> None:
    payment = served.payment()
    first = agent.ask(payment, **names)

    response = agent.ask(payment, **names, amount=100)

    assert response.status_code == 422
    assert response.json()["field"] == field
    assert response.json()["operation_id"] == first.json()["operation_id"]
    assert (served.refunds(payment), served.sends(payment)) == (1, 1)


def test_idempotency_key_in_the_header_is_the_token(served: Stage, agent: Agent) -> None:
    payment = served.payment()
    data = f'{{"order_id": "4417", "amount": {PART}, "currency": "usd", "payment": "{payment}"}}'

    first = agent.post(data, **{"Idempotency-Key": "wish-1"})
    again = agent.post(data, **{"Idempotency-Key": "wish-1"})
    other = agent.post(data, **{"Idempotency-Key": "wish-2"})

    assert first.json()["operation_id"] == again.json()["operation_id"]
    assert first.json()["operation_id"] != other.json()["operation_id"]
    assert served.refunds(payment) == 2


def test_other_amount_while_unresolved_is_a_conflict_that_names_the_operation(
    served: Stage, agent: Agent
) -> None:
    payment = served.payment()
    served.control.fault("500", when="after")
    first = agent.ask(payment)

    response = agent.ask(payment, amount=100)

    assert response.status_code == 409
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "conflicting_operation"
    assert response.json()["operation_id"] == first.json()["operation_id"]
    assert (served.refunds(payment), served.sends(payment)) == (1, 1)


def test_currencies_without_cents_are_sent_and_shown_as_they_are(
    served: Stage, agent: Agent
) -> None:
    payment = served.payment(amount=5_000, currency="jpy")

    response = agent.ask(payment, amount=500, currency="JPY")

    assert response.json()["status"] == "refunded"
    assert "¥500 " in response.json()["customer_message"]
    assert served.refunded(payment) == 500
