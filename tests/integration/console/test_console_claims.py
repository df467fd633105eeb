"""Claims: who works on an operation, for how long, and what others may do meanwhile."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from operations.models import AuditEntry, Claim, Operation
from operations.models.audit import first_break

from .test_console_queue import SignIn, row

pytestmark = pytest.mark.django_db


@pytest.fixture
def operation() -> Operation:
    return row("4417")


def post(client: Client, name: str, operation: Operation, **data: Any) -> Any:
    return client.post(reverse(name, args=[operation.pk]), data)


def page_of(client: Client, operation: Operation) -> str:
    return client.get(reverse("operation", args=[operation.pk])).content.decode()


def run_out(operation: Operation) -> None:
    then = timezone.now() - timedelta(hours=1)
    Claim.objects.filter(pk=operation.pk).update(
        claimed_at=then, renewed_at=then, expires_at=then + timedelta(minutes=15)
    )


def trail(operation_id: UUID) -> list[tuple[str, str]]:
    entries = list(AuditEntry.objects.filter(operation_id=operation_id).order_by("number"))
    assert first_break(entries) is None
    return [(entry.action, entry.reason) for entry in entries]


def test_a_claim_holds_for_fifteen_minutes_and_is_audited(
    signed_in: SignIn, operation: Operation
) -> None:
    client = signed_in("operator", "Dana Ruiz")

    post(client, "claim", operation)

    claim = Claim.objects.get()
    assert claim.holder_name == "Dana Ruiz"
    assert claim.expires_at - claim.claimed_at == timedelta(minutes=15)
    assert trail(operation.pk) == [("claimed", "")]
    assert AuditEntry.objects.get().actor_address == "127.0.0.1"
    assert "Claimed by you until" in page_of(client, operation)


def test_a_claim_leaves_the_revision_alone(signed_in: SignIn, operation: Operation) -> None:
    post(signed_in("operator"), "claim", operation)

    assert Operation.objects.get(pk=operation.pk).revision == operation.revision


def test_others_read_on_but_can_not_claim_it(signed_in: SignIn, operation: Operation) -> None:
    post(signed_in("operator", "Dana Ruiz"), "claim", operation)
    other = signed_in("operator", "Tom Oyelaran")

    refused = post(other, "claim", operation)

    assert refused.status_code == 409
    assert "Dana Ruiz is working on this operation" in refused.content.decode()
    assert Claim.objects.get().holder_name == "Dana Ruiz"
    page = page_of(other, operation)
    assert "is working on it" in page
    assert "Take it over" in page


def test_deciding_on_anothers_operation_asks_for_a_takeover_first(
    signed_in: SignIn, operation: Operation
) -> None:
    post(signed_in("operator", "Dana Ruiz"), "claim", operation)
    other = signed_in("operator", "Tom Oyelaran")
    decision = {
        "outcome": "failed",
        "kind": "dashboard",
        "reference": "case 1",
        "note": "Only the capture is there.",
        "revision": operation.revision,
        "seen": "0.0",
        "step": "record",
    }

    checked = post(other, "close", operation, **decision | {"step": "check"})
    refused = post(other, "close", operation, **decision)

    for answer in (checked, refused):
        assert answer.status_code == 409
        assert "Take it over first" in answer.content.decode()
    assert Operation.objects.get(pk=operation.pk).status == "unknown"
    assert not operation.proposals.exists()

    post(other, "take-over", operation, reason="Dana has left.", held_by=holder())
    post(other, "close", operation, **decision)

    assert operation.proposals.get().proposed_by_name == "Tom Oyelaran"
    assert not Claim.objects.exists()


def test_taking_over_wants_a_reason_and_keeps_both_names(
    signed_in: SignIn, operation: Operation
) -> None:
    post(signed_in("operator", "Dana Ruiz"), "claim", operation)
    other = signed_in("operator", "Tom Oyelaran")

    assert post(other, "take-over", operation, reason=" ", held_by=holder()).status_code == 409
    assert Claim.objects.get().holder_name == "Dana Ruiz"
    post(other, "take-over", operation, reason="Dana has left.", held_by=holder())

    assert Claim.objects.get().holder_name == "Tom Oyelaran"
    assert trail(operation.pk) == [("claimed", ""), ("claim_taken_over", "Dana has left.")]
    entry = AuditEntry.objects.get(action="claim_taken_over")
    assert entry.before["claimed_by"] == "Dana Ruiz"
    assert entry.after["claimed_by"] == "Tom Oyelaran"


def test_taking_over_from_somebody_the_page_did_not_show_is_refused(
    signed_in: SignIn, operation: Operation
) -> None:
    post(signed_in("operator", "Dana Ruiz"), "claim", operation)
    shown = page_of(signed_in("operator", "Priya Nair"), operation)
    assert f'name="held_by" value="{holder()}"' in shown
    seen = holder()
    post(signed_in("operator", "Tom Oyelaran"), "take-over", operation, reason="Mine", held_by=seen)

    late = signed_in("operator", "Maya Kline")
    for held_by in (seen, "", "nobody"):
        refused = post(late, "take-over", operation, reason="Late", held_by=held_by)
        assert refused.status_code == 409
        assert "Tom Oyelaran is working on this operation" in refused.content.decode()

    assert Claim.objects.get().holder_name == "Tom Oyelaran"


def holder() -> str:
    return Claim.objects.get().holder


def test_a_claim_that_ran_out_is_free(signed_in: SignIn, operation: Operation) -> None:
    post(signed_in("operator", "Dana Ruiz"), "claim", operation)
    run_out(operation)

    post(signed_in("operator", "Tom Oyelaran"), "claim", operation)

    assert Claim.objects.get().holder_name == "Tom Oyelaran"


def test_an_open_page_keeps_the_claim_and_shows_who_is_there(
    signed_in: SignIn, operation: Operation
) -> None:
    dana = signed_in("operator", "Dana Ruiz")
    post(dana, "claim", operation)
    earlier = timezone.now() - timedelta(minutes=10)
    Claim.objects.update(
        claimed_at=earlier, renewed_at=earlier, expires_at=earlier + timedelta(minutes=15)
    )

    post(dana, "heartbeat", operation)

    assert Claim.objects.get().expires_at > timezone.now() + timedelta(minutes=14)
    other = signed_in("viewer", "Vera Viewer")
    post(other, "heartbeat", operation)
    part = dana.post(
        reverse("heartbeat", args=[operation.pk]), headers={"HX-Request": "true"}
    ).content.decode()
    assert "<bdi>Vera Viewer</bdi> is viewing" in part
    assert "Claimed by you until" in part
    assert 'hx-trigger="every 20s"' in part
    assert len(trail(operation.pk)) == 1


def test_an_open_page_does_not_wake_a_claim_that_ran_out(
    signed_in: SignIn, operation: Operation
) -> None:
    dana = signed_in("operator", "Dana Ruiz")
    post(dana, "claim", operation)
    run_out(operation)

    post(dana, "heartbeat", operation)

    assert Claim.objects.get().expires_at < timezone.now()


def test_what_is_given_back_is_free(signed_in: SignIn, operation: Operation) -> None:
    dana = signed_in("operator", "Dana Ruiz")
    post(dana, "claim", operation)

    post(signed_in("operator", "Tom Oyelaran"), "release", operation)
    assert Claim.objects.count() == 1
    post(dana, "release", operation)

    assert not Claim.objects.exists()
    assert [action for action, _ in trail(operation.pk)] == ["claimed", "claim_released"]


@pytest.mark.parametrize("name", ["claim", "release", "take-over"])
def test_viewers_claim_nothing(signed_in: SignIn, operation: Operation, name: str) -> None:
    refused = post(signed_in("viewer"), name, operation, reason="x")

    assert refused.status_code == 403
    assert not Claim.objects.exists()
    assert not AuditEntry.objects.exists()


def test_an_operation_that_is_not_there_is_claimed_by_nobody(signed_in: SignIn) -> None:
    address = reverse("claim", args=[UUID(int=1)])

    assert signed_in("operator").post(address).status_code == 404
