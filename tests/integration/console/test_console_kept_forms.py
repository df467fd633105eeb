"""A session that ended costs nobody what they typed, whichever form it was typed into."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from operations.domain.audit import Actor, ActorKind
from operations.models import AuditEntry, Discrepancy, ProviderRefund
from operations.services.adding_up import compare_total
from operations.services.claiming import claim
from operations.services.looking_up import look_up

from .scenes import JOB, PASSWORD, Scenes, person
from .test_console_orphan_events import told

pytestmark = pytest.mark.django_db(transaction=True)

#: What was typed: it is nowhere else on a page.
TYPED = "Typed at 03:12, and not to be lost."
#: The address that a form is sent to, the page that it is on, and its other fields.
Form = tuple[str, str, dict[str, Any]]


def close(scenes: Scenes) -> Form:
    at = reverse("close", args=[scenes.unknown(made=False).pk])
    return at, at, {"outcome": "failed", "kind": "dashboard", "note": TYPED}


def reopen(scenes: Scenes) -> Form:
    at = reverse("reopen", args=[scenes.conflict().pk])
    return at, at, {"ground": "mistake", "note": TYPED}


def reissue(scenes: Scenes) -> Form:
    at = reverse("reissue", args=[scenes.refused().pk])
    return at, at, {"typed": "38.00", "reason": TYPED}


def note(scenes: Scenes) -> Form:
    operation = scenes.unknown(made=False)
    page = reverse("operation", args=[operation.pk])
    return reverse("add-note", args=[operation.pk]), page, {"text": TYPED}


def clearing_a_flag(scenes: Scenes) -> Form:
    operation = scenes.mismatch()
    page = reverse("operation", args=[operation.pk])
    at = reverse("clear-attention", args=[operation.pk])
    return at, page, {"attention": "mismatch", "reason": TYPED}


def a_proposals_answer(scenes: Scenes) -> Form:
    operation = scenes.unknown(made=False)
    proposal = scenes.proposed(operation)
    page = reverse("operation", args=[operation.pk])
    return reverse("approve", args=[operation.pk, proposal.pk]), page, {"note": TYPED}


def takeover(scenes: Scenes) -> Form:
    operation = scenes.unknown(made=False)
    other = person("operator", "Dana Ortiz")
    actor = Actor(kind=ActorKind.PERSON, id=str(other.pk), name="Dana Ortiz")
    claim(engine=scenes.engine(), operation_id=operation.pk, actor=actor)
    page = reverse("operation", args=[operation.pk])
    return reverse("take-over", args=[operation.pk]), page, {"reason": TYPED}


def _orphan(scenes: Scenes) -> tuple[ProviderRefund, Any]:
    operation = scenes.unknown(made=False)
    made = scenes.control.refund_outside(operation.payment.charge, amount=operation.amount)
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    return ProviderRefund.objects.get(provider_object_id=made), operation


def linking_a_refund(scenes: Scenes) -> Form:
    refund, operation = _orphan(scenes)
    page = reverse("orphan", args=[refund.pk])
    fields = {"operation": operation.pk, "revision": operation.revision, "note": TYPED}
    return reverse("orphan-link", args=[refund.pk]), page, fields


def a_refund_made_outside(scenes: Scenes) -> Form:
    refund, _ = _orphan(scenes)
    page = reverse("orphan", args=[refund.pk])
    return reverse("orphan-outside", args=[refund.pk]), page, {"reason": TYPED}


def a_total(scenes: Scenes) -> Form:
    payment = scenes.unknown(made=False).payment
    now = scenes.engine().clock()
    compare_total(payment=payment, provider_total=900, listed_total=0, complete=True, now=now)
    at = reverse("orphan-total", args=[Discrepancy.objects.get().pk])
    return at, at, {"reason": TYPED}


def an_event_made_outside(scenes: Scenes) -> Form:
    row = told(scenes, "evt_orphan", scenes.unknown(made=False).payment.charge)
    page = reverse("orphan-event", args=[row.pk])
    return reverse("orphan-event-outside", args=[row.pk]), page, {"reason": TYPED}


@pytest.mark.parametrize(
    "form",
    [
        *(close, reopen, reissue, note, clearing_a_flag, a_proposals_answer, takeover),
        *(linking_a_refund, a_refund_made_outside, a_total, an_event_made_outside),
    ],
)
def test_what_was_typed_comes_back_after_the_sign_in(
    scenes: Scenes, form: Callable[[Scenes], Form]
) -> None:
    at, page, fields = form(scenes)
    person("approver", "Maya Kline", password=PASSWORD)
    client = Client()
    shown = {"revision": 1, "seen": "1.1", "step": "record"}
    entries = AuditEntry.objects.count()

    asked = _send(client, at, shown | fields)
    copy = re.search(r'name="kept" value="([^"]+)"', asked.content.decode())
    assert copy
    signed_in = {"username": "maya", "password": PASSWORD, "kept": copy[1]}
    back = _send(client, reverse("login"), signed_in)

    assert back["Location"] == page
    assert client.get(page).content.decode().count(TYPED) == 1
    assert TYPED not in client.get(page).content.decode()
    # Nothing else was done in their name.
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions)[entries:] == ["signed_in"]


def _send(client: Client, address: str, fields: dict[str, Any]) -> Any:
    """As a browser sends a form without files."""
    return client.post(address, urlencode(fields), content_type="application/x-www-form-urlencoded")
