"""Closing by hand: alone, with a second person, on a stale page, and twice."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from operations.models import AuditEntry, Evidence, Operation, Proposal, RateBucket
from operations.services.looking_up import look_up

from .scenes import JOB, Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]
NOTE = "Looked in the dashboard at 09:53: only the capture is there."


def form_of(client: Client, operation: Operation, outcome: str = "") -> dict[str, Any]:
    """The hidden fields of the decision page as it stands now."""
    page = client.get(reverse("close", args=[operation.pk]), {"outcome": outcome})
    assert page.status_code == 200
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.content.decode()))
    return {name: hidden[name] for name in ("revision", "seen", "form_token")}


def decide(
    client: Client, operation: Operation, shown: dict[str, Any] | None = None, **changes: Any
) -> Any:
    data = {"outcome": "failed", "kind": "dashboard", "reference": "case 7731", "note": NOTE}
    data |= {"step": "record", "typed": f"{operation.money.major()}"}
    shown = shown or form_of(client, operation)
    return client.post(reverse("close", args=[operation.pk]), data | shown | changes)


def absent(scenes: Scenes, **asked: Any) -> Operation:
    """Unknown, sent a while ago, and absent in a fresh, complete look-up."""
    operation = scenes.unknown(made=False, ago=400, **asked)
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    return fresh(operation)


def test_an_outcome_stands_there_only_when_a_link_chose_it(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown()
    client = signed_in("operator")
    address = reverse("close", args=[operation.pk])

    assert " checked" not in client.get(address).content.decode()
    assert " checked" not in client.get(address, {"outcome": "nonsense"}).content.decode()
    chosen = client.get(address, {"outcome": "failed"}).content.decode()
    assert re.search(r'value="failed" checked', chosen)
    assert not re.search(r'value="succeeded" checked', chosen)


def test_one_person_closes_as_failed_on_a_fresh_absence(scenes: Scenes, signed_in: SignIn) -> None:
    operation = absent(scenes)
    client = signed_in("operator", "Maya Kline")

    response = decide(client, operation)

    after = fresh(operation)
    assert after.status == "failed"
    receipt = client.get(response["Location"], follow=True).content.decode()
    assert "Closed as failed." in receipt
    assert "Maya Kline" in receipt
    assert NOTE in receipt
    statement = Evidence.objects.get(operation=operation, source="statement")
    assert statement.facts["kind"] == "dashboard"
    entry = AuditEntry.objects.get(operation_id=operation.pk, action="closed_failed")
    assert (entry.reason, entry.actor_name) == (NOTE, "Maya Kline")


def test_one_person_closes_as_succeeded_with_a_refund_that_fits(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    refund = scenes.control.refund_outside(operation.payment.charge, amount=operation.amount)
    client = signed_in("operator")

    response = decide(
        client, operation, outcome="succeeded", kind="provider_refund", reference=f" {refund} "
    )

    assert response.status_code == 302
    after = fresh(operation)
    assert (after.status, after.provider_object_id) == ("succeeded", refund)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"outcome": ""}, "Choose succeeded or failed."),
        ({"outcome": "maybe"}, "maybe"),
        ({"kind": ""}, "Choose what you saw."),
        ({"note": "   "}, "Write a note"),
        ({"kind": "dashboard", "reference": ""}, "Name the evidence"),
        ({"outcome": "succeeded", "reference": ""}, "Give the provider&#x27;s refund id."),
        (
            {"outcome": "succeeded", "kind": "dashboard", "reference": "re_nope"},
            "The provider has no refund re_nope in this account.",
        ),
        (
            {"outcome": "succeeded", "kind": "absent_in_lookup", "reference": "re_1"},
            "An absence can&#x27;t show that the refund exists.",
        ),
        ({"note": "a\x00b"}, "Null characters are not allowed."),
        ({"note": "x" * 5_000}, "at most 4000 characters"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_is_kept(
    scenes: Scenes, signed_in: SignIn, changes: dict[str, Any], words: str
) -> None:
    operation = absent(scenes)
    client = signed_in("operator")
    before = Operation.objects.filter(pk=operation.pk).values().get()

    response = decide(client, operation, **changes)

    page = response.content.decode()
    assert response.status_code == 422
    assert words in page
    assert changes.get("reference", "") in page
    if "note" not in changes:
        assert NOTE in page
    assert Operation.objects.filter(pk=operation.pk).values().get() == before


def test_a_refund_of_another_amount_is_refused_field_by_field(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    refund = scenes.control.refund_outside(operation.payment.charge, amount=100)

    response = decide(
        signed_in("operator"),
        operation,
        outcome="succeeded",
        kind="provider_refund",
        reference=refund,
    )

    page = response.content.decode()
    assert response.status_code == 422
    assert f"Refund {refund} is another refund." in page
    assert 'id="reference-error"' in page
    assert fresh(operation).status == "unknown"


def test_a_page_that_is_overtaken_gets_409_with_what_changed(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=True)
    client = signed_in("operator")
    shown = form_of(client, operation, "failed")
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)

    response = decide(client, operation, shown)

    page = response.content.decode()
    assert response.status_code == 409
    assert "settled while you were deciding" in page
    assert "carries our reference: " in page
    assert NOTE in page
    assert fresh(operation).status == "succeeded"


def test_a_stale_page_keeps_the_note_and_clears_the_choice(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    client = signed_in("operator")
    shown = form_of(client, operation)
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)

    response = decide(client, operation, shown, kind="dashboard", reference="case 1")

    page = response.content.decode()
    assert response.status_code == 409
    assert "This operation changed while you were deciding" in page
    assert "Scheduled check" in page
    assert NOTE in page
    assert 'value="case 1"' in page
    assert " checked" not in page
    assert f'name="revision" value="{fresh(operation).revision}"' in page
    assert not Proposal.objects.exists()


def test_the_same_form_twice_is_one_decision_and_the_second_names_who(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = absent(scenes)
    client = signed_in("operator", "Maya Kline")
    shown = form_of(client, operation)

    first, second = decide(client, operation, shown), decide(client, operation, shown)

    assert (first.status_code, second.status_code) == (302, 409)
    page = second.content.decode()
    assert "Maya Kline" in page
    assert "closed this already" in page
    assert "It was recorded with this very form." in page
    assert Evidence.objects.filter(operation=operation, source="statement").count() == 1


def test_two_people_at_once_make_one_decision(scenes: Scenes, signed_in: SignIn) -> None:
    operation = absent(scenes)
    maya, tom = signed_in("operator", "Maya Kline"), signed_in("admin", "Tom Other")
    hers, his = form_of(maya, operation), form_of(tom, operation)

    assert decide(maya, operation, hers).status_code == 302
    late = decide(tom, operation, his)

    assert late.status_code == 409
    assert "Maya Kline" in late.content.decode()


def test_above_the_limit_a_second_person_is_needed_and_told_why(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = absent(scenes, amount=125_000)
    maya = signed_in("operator", "Maya Kline")
    shown = form_of(maya, operation)

    response = maya.get(decide(maya, operation, shown)["Location"])

    page = response.content.decode()
    assert fresh(operation).status == "unknown"
    assert "Waiting for a second person" in page
    assert "the amount is above the limit for one person" in page
    assert "You proposed this; another person has to decide." in page
    again = decide(maya, operation, shown)
    assert again.status_code == 409
    assert "proposed a closing already" in again.content.decode()
    assert Proposal.objects.count() == 1


def proposed(scenes: Scenes, maya: Client, **asked: Any) -> tuple[Operation, Proposal]:
    operation = absent(scenes, amount=125_000, **asked)
    decide(maya, operation)
    return fresh(operation), Proposal.objects.get(operation=operation)


def answer(client: Client, how: str, operation: Operation, proposal: Proposal, **data: Any) -> Any:
    given = {"revision": operation.revision, "seen": "1.1", "note": "I checked it too."}
    return client.post(reverse(how, args=[operation.pk, proposal.pk]), given | data)


def test_an_approver_closes_it(scenes: Scenes, signed_in: SignIn) -> None:
    operation, proposal = proposed(scenes, signed_in("operator", "Maya Kline"))
    tom = signed_in("approver", "Tom Other")

    response = answer(tom, "approve", operation, proposal)

    assert fresh(operation).status == "failed"
    receipt = tom.get(response["Location"], follow=True).content.decode()
    for words in ("Tom Other", "Maya Kline", "I checked it too."):
        assert words in receipt


def test_an_approver_turns_it_down(scenes: Scenes, signed_in: SignIn) -> None:
    operation, proposal = proposed(scenes, signed_in("operator", "Maya Kline"))

    response = answer(signed_in("approver", "Tom Other"), "reject", operation, proposal)

    assert response.status_code == 302
    proposal.refresh_from_db()
    assert (proposal.state, fresh(operation).status) == ("rejected", "unknown")


def test_nobody_agrees_to_an_own_proposal(scenes: Scenes, signed_in: SignIn) -> None:
    tom = signed_in("approver", "Tom Other")
    operation, proposal = proposed(scenes, tom)

    response = answer(tom, "approve", operation, proposal, note="Mine")

    assert response.status_code == 422
    assert fresh(operation).status == "unknown"
    assert "/approve/" not in tom.get(reverse("operation", args=[operation.pk])).content.decode()


@pytest.mark.parametrize("how", ["approve", "reject"])
def test_an_answer_wants_a_note_and_keeps_the_proposal(
    scenes: Scenes, signed_in: SignIn, how: str
) -> None:
    operation, proposal = proposed(scenes, signed_in("operator", "Maya Kline"))

    response = answer(signed_in("approver", "Tom Other"), how, operation, proposal, note=" ")

    assert response.status_code == 422
    assert "Write a note: what did you check?" in response.content.decode()
    proposal.refresh_from_db()
    assert proposal.state == "waiting"


def test_an_answer_to_a_stale_page_gets_409(scenes: Scenes, signed_in: SignIn) -> None:
    operation, proposal = proposed(scenes, signed_in("operator", "Maya Kline"))

    response = answer(
        signed_in("approver", "Tom Other"),
        "approve",
        operation,
        proposal,
        revision=operation.revision - 1,
    )

    assert response.status_code == 409
    assert "I checked it too." in response.content.decode()
    assert fresh(operation).status == "unknown"


def test_a_proposal_of_another_operation_is_not_there(scenes: Scenes, signed_in: SignIn) -> None:
    operation, proposal = proposed(scenes, signed_in("operator", "Maya Kline"))
    other = scenes.unknown()

    response = answer(signed_in("approver", "Tom Other"), "approve", other, proposal)

    assert response.status_code == 404
    assert fresh(operation).status == "unknown"


def test_a_flag_goes_with_a_reason(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.duplicate()
    client = signed_in("operator")
    address = reverse("clear-attention", args=[operation.pk])
    data = {
        "attention": "duplicate_refund",
        "revision": operation.revision,
        "seen": "1.1",
    }

    refused = client.post(address, data | {"reason": ""})
    assert refused.status_code == 422
    assert "Say why the flag can be cleared." in refused.content.decode()
    stale = client.post(address, data | {"reason": "Paid back", "revision": 1})
    assert stale.status_code == 409
    assert "Paid back" in stale.content.decode()
    assert fresh(operation).attention == ["duplicate_refund"]

    assert client.post(address, data | {"reason": "Paid back"}).status_code == 302
    after = fresh(operation)
    assert (after.attention, after.status) == ([], "succeeded")
    twice = client.post(address, data | {"reason": "Paid back", "revision": after.revision})
    assert twice.status_code == 422
    assert "This flag is not set any more." in twice.content.decode()


def test_what_is_settled_has_no_decision_page_and_no_receipt_without_a_decision(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.succeeded()
    client = signed_in("operator")

    page = client.get(reverse("close", args=[operation.pk])).content.decode()

    assert "There is nothing to close here" in page
    assert "<textarea" not in page
    assert client.get(reverse("receipt", args=[operation.pk])).status_code == 404


def test_a_decision_is_checked_before_it_is_recorded(scenes: Scenes, signed_in: SignIn) -> None:
    operation = absent(scenes)
    client = signed_in("operator")

    page = decide(client, operation, step="check").content.decode()

    assert "What happens then" in page
    assert NOTE in page
    assert fresh(operation).status == "unknown"
    back = decide(client, operation, step="edit").content.decode()
    assert re.search(r'value="failed" checked', back)
    assert NOTE in back


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("", "Type the amount, as 1234.50."),
        ("1250,00", "The comma could mean two things."),
        ("125.00", "Type 1250.00 to go on."),
        ("-1250.00", "Type the amount without a sign"),
    ],
)
def test_above_the_limit_the_amount_is_typed_out(
    scenes: Scenes, signed_in: SignIn, typed: str, told: str
) -> None:
    operation = absent(scenes, amount=125_000)

    response = decide(signed_in("operator"), operation, typed=typed)

    assert response.status_code == 422
    assert told in response.content.decode()
    assert not Proposal.objects.exists()


def test_a_reference_is_looked_up_while_it_is_typed(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False)
    fits = scenes.control.refund_outside(operation.payment.charge, amount=operation.amount)
    other = scenes.control.refund_outside(operation.payment.charge, amount=100)
    client = signed_in("operator")
    address = reverse("close-reference", args=[operation.pk])

    def told(reference: str, **more: str) -> str:
        found = client.get(address, {"reference": reference} | more, headers={"HX-Request": "true"})
        return found.content.decode()

    assert "Found at the provider" in told(fits)
    assert "speaks for succeeded" in told(fits, outcome="failed")
    assert "is another refund." in told(other)
    assert "The provider has no refund" in told("re_nothing_there")
    assert "before anything is recorded" in told("re_")
    assert "<html" in client.get(address, {"reference": fits}).content.decode()
    # Typed too often, it is told at the check.
    RateBucket.objects.update(full_at=timezone.now() + timedelta(minutes=1))
    assert told(fits) == told("re_")
    assert fresh(operation).status == "unknown"
    assert signed_in("viewer").get(address, {"reference": fits}).status_code == 403


def test_what_is_recorded_is_shown_on_demand_without_secrets(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown()
    client = signed_in("viewer")
    address = reverse("event-raw", args=[operation.pk, "attempt-1"])

    page = client.get(reverse("operation", args=[operation.pk])).content.decode()
    assert address in page
    assert "<pre" not in page
    assert operation.idempotency_key in client.get(address).content.decode()
    part = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith("<p")
    assert client.get(reverse("event-raw", args=[operation.pk, "no-such"])).status_code == 404
