"""Reopening, reissuing, notes, and the queue of the second person."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from operations.models import AuditEntry, Note, Operation, Proposal
from operations.services.looking_up import look_up

from .scenes import JOB, PASSWORD, Scenes, fresh, person

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


def form_of(client: Client, name: str, operation: Operation) -> dict[str, Any]:
    page = client.get(reverse(name, args=[operation.pk])).content.decode()
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    return {k: hidden[k] for k in ("revision", "seen", "form_token") if k in hidden}


def test_two_people_reopen_what_evidence_contradicts(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.conflict()
    maya, tom = signed_in("operator", "Maya Kline"), signed_in("approver", "Tom Other")
    shown = form_of(maya, "reopen", operation)
    words = {"ground": "contradicted", "note": "The refund is on the payment."}

    assert maya.post(reverse("reopen", args=[operation.pk]), shown | words).status_code == 302
    proposal = Proposal.objects.get(operation=operation, state="waiting")
    assert fresh(operation).status == "failed"
    assert "1 proposal waits" in tom.get(reverse("proposals")).content.decode()
    answer = {"revision": operation.revision, "seen": "1.1", "note": "I see it, too."}
    mine = maya.post(reverse("approve", args=[operation.pk, proposal.pk]), answer)
    assert mine.status_code == 403
    agreed = tom.post(reverse("approve", args=[operation.pk, proposal.pk]), answer)

    after = fresh(operation)
    assert (after.status, after.unknown_reason, after.failure_code) == ("unknown", "reopened", "")
    receipt = tom.get(agreed["Location"], follow=True).content.decode()
    assert "Reopened." in receipt
    assert "I see it, too." in receipt
    entry = AuditEntry.objects.get(operation_id=operation.pk, action="reopened")
    assert (entry.actor_name, entry.reason) == ("Tom Other", "The refund is on the payment.")
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    assert fresh(operation).status == "succeeded"
    counted = scenes.control.counts(payment=operation.payment.charge)
    assert (counted["refunds"], counted["sends"]) == (1, 1)


def test_what_the_provider_said_is_not_reopened(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.refused()
    client = signed_in("operator")

    page = client.get(reverse("reopen", args=[operation.pk])).content.decode()
    words = {"ground": "mistake", "note": "Try.", "revision": operation.revision, "seen": "1.1"}
    response = client.post(reverse("reopen", args=[operation.pk]), words)

    assert "There is nothing to take back here" in page
    assert response.status_code == 422
    assert not Proposal.objects.exists()


def test_a_failed_refund_is_made_anew_once(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.refused()
    client = signed_in("operator", "Maya Kline")
    shown = form_of(client, "reissue", operation)
    words = {"reason": "The dispute was withdrawn.", "typed": "38.00"}
    address = reverse("reissue", args=[operation.pk])

    assert client.post(address, shown | words | {"typed": "3.80"}).status_code == 422
    assert client.post(address, shown | words | {"reason": " "}).status_code == 422
    first, second = client.post(address, shown | words), client.post(address, shown | words)

    assert (first.status_code, second.status_code) == (302, 302)
    assert first["Location"] == second["Location"]
    opened = Operation.objects.get(reissue_of=operation)
    assert (opened.status, opened.amount) == ("succeeded", operation.amount)
    assert opened.idempotency_key != operation.idempotency_key
    counted = scenes.control.counts(payment=operation.payment.charge)
    assert (counted["refunds"], counted["amount"]) == (1, 3_800)
    actions = list(
        AuditEntry.objects.filter(operation_id=operation.pk)
        .order_by("number")
        .values_list("action", flat=True)
    )
    assert actions[-2:] == ["reissue_asked", "reissued"]


def test_nobody_reopens_or_reissues_what_somebody_else_works_on(
    scenes: Scenes, signed_in: SignIn
) -> None:
    reopened, failed = scenes.conflict(), scenes.refused()
    dana, tom = signed_in("operator", "Dana Ruiz"), signed_in("operator", "Tom Other")
    for operation in (reopened, failed):
        dana.post(reverse("claim", args=[operation.pk]))
    reopen = {"ground": "contradicted", "note": "It is there."}
    reissue = {"reason": "The dispute was withdrawn.", "typed": "38.00"}

    answers = [
        tom.post(reverse("reopen", args=[reopened.pk]), form_of(tom, "reopen", reopened) | reopen),
        tom.post(reverse("reissue", args=[failed.pk]), form_of(tom, "reissue", failed) | reissue),
    ]

    for answer in answers:
        assert answer.status_code == 409
        assert "Take it over first" in answer.content.decode()
    assert not Proposal.objects.filter(state="waiting").exists()
    assert not Operation.objects.filter(reissue_of=failed).exists()


def test_a_second_person_does_not_answer_what_somebody_else_works_on(
    scenes: Scenes, signed_in: SignIn
) -> None:
    closing, reopening = scenes.unknown(), scenes.conflict()
    proposal = scenes.proposed(closing)
    maya, tom = signed_in("operator", "Maya Kline"), signed_in("approver", "Tom Other")
    words = {"ground": "contradicted", "note": "The refund is on the payment."}
    maya.post(reverse("reopen", args=[reopening.pk]), form_of(maya, "reopen", reopening) | words)
    other = Proposal.objects.get(operation=reopening, state="waiting")
    dana = signed_in("approver", "Dana Ruiz")
    for operation in (closing, reopening):
        dana.post(reverse("claim", args=[operation.pk]))

    for operation, row in ((closing, proposal), (reopening, other)):
        answer = {"revision": operation.revision, "seen": "1.1", "note": "I see it, too."}
        for act in ("approve", "reject"):
            refused = tom.post(reverse(act, args=[operation.pk, row.pk]), answer)
            assert refused.status_code == 409
            assert "Take it over first" in refused.content.decode()

    assert Proposal.objects.filter(state="waiting").count() == 2
    assert [fresh(row).revision for row in (closing, reopening)] == [
        closing.revision,
        reopening.revision,
    ]


def test_one_person_makes_it_anew_and_the_others_are_told(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.refused()
    maya, tom = signed_in("operator", "Maya Kline"), signed_in("operator", "Tom Other")
    words = {"reason": "The dispute was withdrawn.", "typed": "38.00"}
    address = reverse("reissue", args=[operation.pk])
    hers, his = (form_of(client, "reissue", operation) | words for client in (maya, tom))

    first, second = maya.post(address, hers), tom.post(address, his)

    assert (first.status_code, second.status_code) == (302, 409)
    assert "There is a later refund of this order" in second.content.decode()
    assert maya.post(address, hers)["Location"] == first["Location"]
    assert scenes.control.counts(payment=operation.payment.charge)["refunds"] == 1


@pytest.mark.parametrize("scene", ["unknown", "succeeded", "conflict"])
def test_only_a_failed_refund_is_made_anew(scenes: Scenes, signed_in: SignIn, scene: str) -> None:
    operation = getattr(scenes, scene)()
    client = signed_in("operator")
    words = {"reason": "Try.", "typed": "38.00", "revision": operation.revision, "seen": "1.1"}

    response = client.post(reverse("reissue", args=[operation.pk]), words)

    assert response.status_code == 422
    assert Operation.objects.count() == 1


def test_a_note_is_kept_once_and_decides_nothing(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown()
    client = signed_in("operator", "Maya Kline")
    address = reverse("add-note", args=[operation.pk])
    page = client.get(reverse("operation", args=[operation.pk])).content.decode()
    token = re.findall(r'name="form_token" value="([^"]+)"', page)[-1]

    assert client.post(address, {"text": " ", "form_token": token}).status_code == 422
    for _ in range(2):
        given = {"text": "She called <b>again</b>.", "form_token": token}
        assert client.post(address, given).status_code == 302

    assert Note.objects.get().written_by_name == "Maya Kline"
    shown = client.get(reverse("operation", args=[operation.pk])).content.decode()
    assert "She called &lt;b&gt;again&lt;/b&gt;." in shown
    assert fresh(operation).revision == operation.revision
    assert AuditEntry.objects.filter(operation_id=operation.pk, action="noted").count() == 1
    reader = signed_in("viewer")
    assert reader.post(address, {"text": "No", "form_token": token}).status_code == 403


def test_somebody_with_the_longest_names_decides_as_everybody_does(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown()
    client = signed_in("operator", f"{'M' * 150} {'K' * 150}")
    for act, fields in (("claim", {}), ("add-note", {"text": "Called."}), ("release", {})):
        response = client.post(reverse(act, args=[operation.pk]), fields)
        assert response.status_code == 302, act
    assert client.get(reverse("operation", args=[operation.pk])).status_code == 200
    assert Note.objects.get().written_by_name == f"{'M' * 150} {'K' * 104}"


def send(client: Client, address: str, fields: dict[str, Any]) -> Any:
    """As a browser sends a form without files."""
    return client.post(address, urlencode(fields), content_type="application/x-www-form-urlencoded")


def test_a_form_sent_without_a_session_comes_back_after_the_sign_in(scenes: Scenes) -> None:
    operation = scenes.unknown(made=False)
    person("operator", "Maya Kline", password=PASSWORD)
    client = Client()
    address = reverse("close", args=[operation.pk])
    typed = {"outcome": "failed", "kind": "dashboard", "reference": "case 7731", "note": "Kept."}
    shown = {"revision": operation.revision, "seen": "1.1", "step": "record"}

    asked = send(client, address, typed | shown)
    page = asked.content.decode()
    assert asked.status_code == 401
    assert "Your session has ended" in page
    copy = re.search(r'name="kept" value="([^"]+)"', page)
    assert copy
    wrong = send(client, reverse("login"), {"username": "maya", "password": "x", "kept": copy[1]})
    assert copy[1] in wrong.content.decode()
    right = {"username": "maya", "password": PASSWORD, "kept": copy[1]}
    back = send(client, reverse("login"), right)

    assert back["Location"] == address
    form = client.get(address).content.decode()
    assert "Kept." in form
    assert 'value="case 7731"' in form
    assert re.search(r'value="failed" checked', form)
    assert "Kept." not in client.get(address).content.decode()  # once
    assert not Proposal.objects.exists()


def test_a_copy_that_somebody_changed_is_not_taken(scenes: Scenes) -> None:
    operation = scenes.unknown(made=False)
    person("operator", "Maya Kline", password=PASSWORD)
    client = Client()
    forged = {"username": "maya", "password": PASSWORD, "kept": "eyJwYWdlIjoiLyJ9:1:x"}

    assert send(client, reverse("login"), forged)["Location"] == "/"
    assert "Kept." not in client.get(reverse("close", args=[operation.pk])).content.decode()


def test_what_succeeded_is_not_taken_back_and_the_page_says_why(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.succeeded()
    page = signed_in("operator").get(reverse("reopen", args=[operation.pk])).content.decode()

    assert "There is nothing to take back here" in page
    assert "What succeeded stays so: its refund was read at the provider." in page
    assert "<textarea" not in page
