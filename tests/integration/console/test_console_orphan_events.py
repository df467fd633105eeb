"""Events that match nothing: listed with what they may be about, and answered by a person."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from operations.domain.statuses import Status
from operations.models import AuditEntry, Evidence, Operation, OrphanEvent, ProviderRefund
from operations.services.draining import drain
from tests.integration.deliveries import deliver, event, signature

from .scenes import Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[..., Client]


def told(scenes: Scenes, event_id: str, charge: str, **changes: Any) -> OrphanEvent:
    """An event about a refunded charge that carries no refund, delivered and handled."""
    charge_object = {"id": charge, "object": "charge", "amount_refunded": 500, "currency": "usd"}
    given = event(event_id, type="charge.refunded", data={"object": charge_object}, **changes)
    raw = json.dumps(given).encode()
    assert deliver(raw, header=signature(raw, secret="whsec_tests")).status_code == 200
    drain(engine=scenes.engine())
    return OrphanEvent.objects.get(provider_event_id=event_id)


def link(client: Client, orphan: OrphanEvent, to: Operation, **changes: Any) -> Any:
    data = {"operation": str(to.pk), "revision": fresh(to).revision, "note": "Case 81, by mail."}
    return client.post(f"/orphans/events/{orphan.pk}/link/", data | changes)


def test_event_without_a_refund_is_listed_with_the_operations_of_its_payment(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    orphan = told(scenes, "evt_ours", operation.payment.charge)
    told(scenes, "evt_strange", "ch_of_another_shop")
    client = signed_in("viewer")

    page = client.get("/orphans/?view=events").content.decode()

    assert f"/orphans/events/{orphan.pk}/" in page
    assert "Refund not seen" in page
    assert "Payment not ours" in page
    assert str(operation.pk)[:8] in page
    found = client.get("/orphans/?view=events&find=evt_strange").content.decode()
    assert found.count("/orphans/events/") == 1
    assert fresh(operation).status == Status.UNKNOWN


def test_event_of_an_account_that_is_not_ours_is_listed_and_can_only_be_outside(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    orphan = told(scenes, "evt_1", operation.payment.charge, account="acct_of_others")
    client = signed_in("operator", "Dana Ruiz")

    assert "Account not ours" in client.get(f"/orphans/events/{orphan.pk}/").content.decode()
    assert link(client, orphan, operation).status_code == 422
    answer = client.post(f"/orphans/events/{orphan.pk}/outside/", {"reason": "Another shop."})

    assert answer.status_code == 302
    assert AuditEntry.objects.filter(action="event_made_outside").count() == 1
    page = client.get("/orphans/?view=events").content.decode()
    assert "Every event about money that went back has its refund" in page


def test_event_that_a_known_refund_explains_is_not_listed(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.succeeded()
    made_at = ProviderRefund.objects.get(operation=operation).provider_created_at
    assert made_at is not None
    told(scenes, "evt_1", operation.payment.charge, created=int(made_at.timestamp()) + 1)

    page = signed_in("viewer").get("/orphans/?view=events").content.decode()

    assert "/orphans/events/" not in page


def test_linking_keeps_evidence_asks_for_a_look_up_and_settles_nothing(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    orphan = told(scenes, "evt_1", operation.payment.charge)
    client = signed_in("operator", "Dana Ruiz")
    assert link(client, orphan, operation, note=" ").status_code == 422
    assert (
        link(client, orphan, operation, revision=fresh(operation).revision + 1).status_code == 409
    )
    assert not Evidence.objects.filter(source="statement").exists()

    assert link(client, orphan, operation).status_code == 302

    after = fresh(operation)
    assert after.status == Status.UNKNOWN
    assert after.next_check_at is not None
    evidence = Evidence.objects.get(source="statement")
    assert evidence.facts["reference"] == "evt_1"
    entry = AuditEntry.objects.filter(operation_id=operation.pk).latest("number")
    assert (entry.action, entry.actor_name) == ("event_linked", "Dana Ruiz")
    assert link(client, orphan, operation).status_code == 422, "it was answered already"
    assert Evidence.objects.filter(source="statement").count() == 1


def test_an_event_is_not_tied_to_what_somebody_else_works_on(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    orphan = told(scenes, "evt_1", operation.payment.charge)
    signed_in("operator", "Dana Ruiz").post(f"/operations/{operation.pk}/claim/")
    before = Evidence.objects.count()

    refused = link(signed_in("operator", "Tom Other"), orphan, operation)

    assert refused.status_code == 422
    assert "Dana Ruiz is working on this operation" in refused.content.decode()
    assert Evidence.objects.count() == before


def test_viewer_answers_for_nothing(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False)
    orphan = told(scenes, "evt_1", operation.payment.charge)
    client = signed_in("viewer")

    assert link(client, orphan, operation).status_code == 403
    outside = client.post(f"/orphans/events/{orphan.pk}/outside/", {"reason": "So."})
    assert outside.status_code == 403
    orphan.refresh_from_db()
    assert orphan.found_at is None


def test_another_operation_can_be_named_and_is_held_against_the_facts_first(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation, other = scenes.unknown(made=False), scenes.unknown(made=False)
    orphan = told(scenes, "evt_1", operation.payment.charge)
    client = signed_in("operator")

    named = client.get(f"/orphans/events/{orphan.pk}/?operation={other.pk}").content.decode()
    none = client.get(f"/orphans/events/{orphan.pk}/?operation=nonsense").content.decode()

    assert f'value="{other.pk}"' in named
    assert "No operation of this account has that id" in none
