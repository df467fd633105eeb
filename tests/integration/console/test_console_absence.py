"""Absence: graded on the page, and never the only ground unless an administrator allows it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from operations.domain.closure import ClosingOutcome, EvidenceKind, SecondPersonReason
from operations.domain.statuses import Status
from operations.models import AuditEntry, Policy, PolicyName, Proposal
from operations.services.closing import approve, close
from operations.services.policies import set_policy
from operations.services.weighing import ClosingRefused, Decision

from .scenes import DANA, PRIYA, Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[..., Client]


def by_absence(scenes: Scenes, operation: Any) -> Proposal | None:
    return close(
        engine=scenes.engine(),
        operation_id=operation.pk,
        decision=Decision(
            outcome=ClosingOutcome.FAILED,
            evidence_kind=EvidenceKind.ABSENT_IN_LOOKUP,
            evidence_reference="",
            note="Not on the list.",
            revision=fresh(operation).revision,
        ),
        actor=DANA,
    )


def allow(scenes: Scenes, *, on: bool = True) -> None:
    set_policy(
        engine=scenes.engine(),
        name=PolicyName.CLOSE_BY_ABSENCE,
        enabled=on,
        reason="Agreed with finance.",
        actor=PRIYA,
    )


def test_page_says_what_the_absence_lacks(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False, looked=1)

    page = signed_in("viewer").get(f"/operations/{operation.pk}/").content.decode()

    assert "What the absence is worth" in page
    assert "No two look-ups five minutes apart showed the same." in page
    assert "It is still no proof." not in page


def test_failed_is_suggested_only_when_nothing_is_lacking(
    scenes: Scenes, signed_in: SignIn
) -> None:
    once = scenes.window_closed(looked=1)
    agreed = scenes.window_closed(looked=2)
    client = signed_in("viewer")

    assert "Close as failed</span>" not in client.get(f"/operations/{once.pk}/").content.decode()
    page = client.get(f"/operations/{agreed.pk}/").content.decode()
    assert "It is still no proof." in page
    assert "Close as failed</span>" in page


def test_absence_alone_closes_nothing_while_the_policy_is_off(scenes: Scenes) -> None:
    operation = scenes.window_closed(looked=2)

    with pytest.raises(ClosingRefused, match="closes nothing here"):
        by_absence(scenes, operation)

    assert fresh(operation).status == Status.UNKNOWN
    assert not Proposal.objects.exists()


def test_absence_alone_waits_for_a_second_person_when_the_policy_is_on(scenes: Scenes) -> None:
    operation = scenes.window_closed(looked=2)
    allow(scenes)

    proposal = by_absence(scenes, operation)

    assert proposal is not None
    assert proposal.reasons == [SecondPersonReason.ABSENCE_ALONE]
    assert fresh(operation).status == Status.UNKNOWN
    approve(
        engine=scenes.engine(),
        proposal_id=proposal.pk,
        revision=fresh(operation).revision,
        note="I looked too.",
        actor=PRIYA,
    )
    assert fresh(operation).status == Status.FAILED


def test_policy_that_was_turned_off_meanwhile_stops_the_second_person(scenes: Scenes) -> None:
    operation = scenes.window_closed(looked=2)
    allow(scenes)
    proposal = by_absence(scenes, operation)
    assert proposal is not None
    allow(scenes, on=False)

    with pytest.raises(ClosingRefused, match="closes nothing here"):
        approve(
            engine=scenes.engine(),
            proposal_id=proposal.pk,
            revision=fresh(operation).revision,
            note="I looked too.",
            actor=PRIYA,
        )

    assert fresh(operation).status == Status.UNKNOWN


def test_weak_absence_closes_nothing_whatever_the_policy(scenes: Scenes) -> None:
    operation = scenes.window_closed(looked=1)
    allow(scenes)

    with pytest.raises(ClosingRefused, match="not show enough"):
        by_absence(scenes, operation)

    assert fresh(operation).status == Status.UNKNOWN


def test_administrator_turns_the_policy_on_with_a_reason_and_it_is_on_record(
    signed_in: SignIn,
) -> None:
    client = signed_in("admin", "Ada Admin")

    assert client.post("/policies/", {"enabled": "on", "reason": " "}).status_code == 422
    assert not Policy.is_on(PolicyName.CLOSE_BY_ABSENCE)
    answer = client.post("/policies/", {"enabled": "on", "reason": "Agreed."}, follow=True)

    assert Policy.is_on(PolicyName.CLOSE_BY_ABSENCE)
    assert "Agreed." in answer.content.decode()
    entry = AuditEntry.objects.get(action="policy_set")
    assert (entry.actor_name, entry.reason) == ("Ada Admin", "Agreed.")
    assert (entry.before["enabled"], entry.after["enabled"]) == (False, True)
    assert client.post("/policies/", {"enabled": "on", "reason": "Again."}).status_code == 422


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_nobody_else_sees_or_sets_a_policy(signed_in: SignIn, role: str) -> None:
    client = signed_in(role)

    assert client.get("/policies/").status_code == 403
    assert client.post("/policies/", {"enabled": "on", "reason": "So."}).status_code == 403
    assert not Policy.objects.exists()
