"""The page of an operation: what it says, and looking up again."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from operations.models import AuditEntry, Operation

from .scenes import Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


def page_of(client: Client, operation: Operation, name: str = "operation") -> str:
    response = client.get(reverse(name, args=[operation.pk]))
    assert response.status_code == 200
    return response.content.decode()


def test_an_unknown_refund_says_what_is_known_and_no_more(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(order="4417", again=1)

    page = page_of(signed_in("operator"), operation)

    assert 'Nobody knows yet whether <span class="money">$38.00</span> moved.' in page
    assert "will repeat that answer" in page
    assert "Nobody has looked at Stripe yet." in page
    assert "Tool call" in page
    assert "HTTP 500" in page
    assert "Between" in page
    assert "Your <span" not in page  # the message promises nothing


@pytest.mark.parametrize("scene", ["unknown", "window_closed", "mismatch"])
def test_nothing_on_an_unknown_page_says_how_it_ended(
    scenes: Scenes, signed_in: SignIn, scene: str
) -> None:
    operation = getattr(scenes, scene)()
    assert operation.status == "unknown"

    page = page_of(signed_in("viewer"), operation)

    visible = re.sub(r"<pre.*?</pre>|<[^>]+>", " ", page.partition("<main")[2], flags=re.S)
    assert "succeeded" not in visible
    assert "failed" not in visible.replace("Close as failed", "")


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ("succeeded", "succeeded."),
        ("refused", "did not happen."),
        ("processing", "How it ends is not known yet."),
        ("conflict", "Recorded as failed, but a refund of"),
        ("duplicate", "Two refunds at Stripe carry this operation."),
        ("mismatch", "names this operation but differs from what was sent."),
        ("window_closed", "The key window closed at"),
    ],
)
def test_every_kind_of_operation_has_its_page(
    scenes: Scenes, signed_in: SignIn, scene: str, words: str
) -> None:
    operation = getattr(scenes, scene)()

    for role in ("viewer", "admin"):
        client = signed_in(role)
        assert words in page_of(client, operation)
        assert "Audit trail" in page_of(client, operation, "operation-timeline")


def test_looking_up_finds_the_refund_and_settles_it(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=True)
    client = signed_in("operator", "Maya Kline")

    response = client.post(reverse("look-up", args=[operation.pk]), follow=True)

    after = fresh(operation)
    assert (after.status, after.lookups_made) == ("succeeded", 1)
    assert "The refund of" in response.content.decode()
    entry = AuditEntry.objects.filter(operation_id=operation.pk).order_by("-number")[0]
    assert (entry.actor_name, entry.actor_address) == ("Maya Kline", "127.0.0.1")
    assert scenes.control.counts(payment=operation.payment.charge)["refunds"] == 1
    assert scenes.control.counts(payment=operation.payment.charge)["sends"] == 1


def test_htmx_swaps_the_operation_alone(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False)

    response = signed_in("operator").post(
        reverse("look-up", args=[operation.pk]), headers={"HX-Request": "true"}
    )

    part = response.content.decode()
    assert part.lstrip().startswith('<div id="op">')
    assert "No refund with our reference was found." in part
    assert "It can still appear." in part
    assert fresh(operation).status == "unknown"


def test_a_provider_that_can_not_be_read_is_said(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown()
    scenes.control.fault("503", endpoint="refunds.list", times=10)

    page = (
        signed_in("operator")
        .post(reverse("look-up", args=[operation.pk]), follow=True)
        .content.decode()
    )

    assert "could not be read" in page
    assert fresh(operation).status == "unknown"


def test_the_audit_trail_is_verified_and_a_page_of_its_own(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.conflict()
    client = signed_in("viewer")

    page = page_of(client, operation, "operation-audit")

    assert "Chain verified at" in page
    assert "closed it as failed" in page
    assert "Priya Nair" in page
    part = client.get(
        reverse("operation-audit", args=[operation.pk]), headers={"HX-Request": "true"}
    )
    assert part.content.decode().lstrip().startswith('<section class="card" id="history"')


def test_the_nearest_refund_is_shown_as_possible_only(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False)
    scenes.control.refund_outside(operation.payment.charge, amount=operation.amount)
    client = signed_in("operator")

    page = client.post(reverse("look-up", args=[operation.pk]), follow=True).content.decode()

    assert "Possible, not proven" in page
    assert "It does not carry our reference, so it proves nothing." in page
    assert fresh(operation).status == "unknown"


def test_there_is_a_page_for_what_is_not_there(signed_in: SignIn) -> None:
    response = signed_in("viewer").get("/operations/018f0000-0000-7000-8000-000000000000/")

    assert response.status_code == 404
    assert "There is nothing here" in response.content.decode()
