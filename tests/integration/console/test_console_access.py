"""Who gets in, who may do what, and that a denied action changes nothing."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, reverse

from operations.console.urls import urlpatterns
from operations.models import AuditEntry, Evidence, Operation, Proposal

from .scenes import Scenes, fresh, person

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/operations/here/?a=1"}


def addresses() -> list[str]:
    """Every address of the console, with ids that nothing has."""
    made_up: dict[str, Any] = {
        "operation_id": uuid.uuid4(),
        "proposal_id": 1,
        "subscription_id": uuid.uuid4(),
        "delivery_id": 1,
        "refund_id": 1,
        "discrepancy_id": 1,
        "report_id": 1,
        "run_id": 1,
        "bulk_id": 1,
        "event_pk": 1,
        "account_id": 1,
        "person_id": 1,
        "key_id": 1,
        "view_id": 1,
        "orphan_id": 1,
        "anchor": "attempt-1",
        "number": 1,
    }
    return [
        reverse(
            str(pattern.name),
            kwargs={name: made_up[name] for name in pattern.pattern.converters if name in made_up},
        )
        for pattern in urlpatterns
        if isinstance(pattern, URLPattern)
    ]


@pytest.mark.parametrize("method", ["get", "post"])
def test_nobody_sees_anything_without_signing_in(method: str) -> None:
    for address in addresses():
        response = getattr(Client(), method)(address)
        if response.status_code == 405:
            continue
        assert response.status_code == 302, address
        assert response["Location"].startswith("/login/"), address


def test_a_fragment_whose_session_has_ended_leads_to_sign_in_and_back() -> None:
    response = Client().get(reverse("health-strip"), headers=HTMX)

    assert response["HX-Redirect"] == "/login/?next=/operations/here/%3Fa%3D1"


def test_somebody_without_a_role_gets_403_everywhere(signed_in: SignIn) -> None:
    client = signed_in("")

    for address in addresses():
        for response in (client.get(address), client.post(address)):
            assert response.status_code in (403, 405), address
    assert "This needs another role" in client.get("/").content.decode()


def test_a_refusal_for_lack_of_a_role_is_logged_without_a_traceback(
    signed_in: SignIn, caplog: pytest.LogCaptureFixture
) -> None:
    signed_in("viewer").get(reverse("people"))

    assert [record.exc_info for record in caplog.records if record.name == "django.request"] == [
        None
    ]


def test_a_site_administrator_needs_no_group() -> None:
    user = person("", "Root Admin")
    user.is_superuser = True
    user.save()
    client = Client()
    client.force_login(user)

    assert client.get("/").status_code == 200


def test_a_deactivated_person_is_out(signed_in: SignIn) -> None:
    user = person("operator")
    client = Client()
    client.force_login(user)
    user.is_active = False
    user.save()

    assert client.get("/").status_code == 302


@pytest.mark.parametrize(
    "path",
    [
        *("look-up", "close", "clear-attention", "approve", "reject"),
        *("reopen", "reissue", "add-note"),
    ],
)
@pytest.mark.parametrize("htmx", [False, True])
def test_a_viewer_changes_nothing(scenes: Scenes, signed_in: SignIn, path: str, htmx: bool) -> None:
    operation = scenes.mismatch()
    proposal = scenes.proposed(operation)
    client = signed_in("viewer")
    kwargs: dict[str, Any] = {"operation_id": operation.pk}
    if path in ("approve", "reject"):
        kwargs["proposal_id"] = proposal.pk
    before = everything(operation)
    provider = scenes.control.counts()

    response = client.post(
        reverse(path, kwargs=kwargs),
        {
            "revision": fresh(operation).revision,
            "seen": "1.1",
            "outcome": "failed",
            "kind": "dashboard",
            "reference": "case",
            "note": "A note",
            "attention": "mismatch",
            "reason": "A reason",
        },
        headers=HTMX if htmx else {},
    )

    assert response.status_code == 403
    assert everything(operation) == before
    assert scenes.control.counts() == provider


@pytest.mark.parametrize("path", ["approve", "reject"])
def test_an_operator_does_not_approve(scenes: Scenes, signed_in: SignIn, path: str) -> None:
    operation = scenes.unknown()
    proposal = scenes.proposed(operation)
    before = everything(operation)

    response = signed_in("operator").post(
        reverse(path, args=[operation.pk, proposal.pk]),
        {"revision": fresh(operation).revision, "seen": "1.1", "note": "I agree"},
    )

    assert response.status_code == 403
    assert everything(operation) == before


def test_a_viewer_sees_no_buttons_that_act(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.mismatch()
    scenes.proposed(operation)
    page = signed_in("viewer").get(reverse("operation", args=[operation.pk])).content.decode()

    assert "Waiting for a second person" in page
    for action in ("look-up", "close", "clear-attention"):
        assert reverse(action, args=[operation.pk]) not in page
    assert "/approve/" not in page
    assert page.count('method="post"') == 2  # signing out, and being present


def test_look_up_wants_post(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown()

    response = signed_in("operator").get(reverse("look-up", args=[operation.pk]))

    assert response.status_code == 405
    assert fresh(operation).lookups_made == 0


def everything(operation: Operation) -> list[Any]:
    """All that an action on the operation could change."""
    return [
        Operation.objects.filter(pk=operation.pk).values().get(),
        list(Evidence.objects.order_by("pk").values()),
        list(AuditEntry.objects.order_by("pk").values()),
        list(Proposal.objects.order_by("pk").values()),
    ]
