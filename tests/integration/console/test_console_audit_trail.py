"""The audit trail of everything: found by who, what, when and operation, and taken out as CSV."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from operations.domain.audit import Actor, ActorKind
from operations.models import AuditEntry
from tests.integration.rows import Rows

pytestmark = pytest.mark.django_db
SignIn = Callable[..., Client]


@pytest.fixture
def operation() -> UUID:
    """One that Ada wrote about, after sixty entries of a job, two days earlier."""
    made = Rows().operation()
    sweep = Actor(kind=ActorKind.JOB, id="sweep", name="Sweep")
    ada = Actor(kind=ActorKind.PERSON, id="1", name="Ada <b>", address="192.0.2.7")
    for _ in range(60):
        AuditEntry.append(
            operation_id=None, actor=sweep, action="exported", now=datetime(2026, 3, 1, tzinfo=UTC)
        )
    AuditEntry.append(
        operation_id=made,
        actor=ada,
        action="noted",
        now=datetime(2026, 3, 3, 12, tzinfo=UTC),
        reason="=Because",
    )
    return UUID(str(made))


def test_it_is_found_by_each_filter(operation: UUID, signed_in: SignIn) -> None:
    client, address = signed_in("viewer"), reverse("audit-trail")
    for query in ("who=ada", "action=noted", f"operation={operation}", "first=2026-03-03"):
        page = client.get(f"{address}?{query}").content.decode()
        assert page.count("<tr") == 2, query
        assert "Ada &lt;b&gt;" in page
        assert "192.0.2.7" in page
    assert "No entry fits" in client.get(f"{address}?last=2026-02-01").content.decode()
    for odd in ("last=9999-12-31", f"after={'9' * 5_000}"):
        assert "Ada &lt;b&gt;" in client.get(f"{address}?{odd}").content.decode()
    wrong = client.get(f"{address}?operation=x&first=yesterday&after=x&action=A%00")
    assert wrong.status_code == 200
    assert wrong.content.decode().count('aria-invalid="true"') == 3


def test_pages_follow_each_other_in_few_queries(
    operation: UUID, signed_in: SignIn, django_assert_max_num_queries: Callable[..., object]
) -> None:
    client, address = signed_in("viewer"), reverse("audit-trail")
    with django_assert_max_num_queries(12):  # type: ignore[attr-defined]
        page = client.get(address)
    assert page.content.decode().count("<tr") == 51
    after = page.context["next_after"]
    second = client.get(f"{address}?after={after}").content.decode()
    assert second.count("<tr") == 12
    assert "rel=" not in second.partition("<main")[2]


def test_what_is_taken_out_is_written_down_and_harmless(operation: UUID, signed_in: SignIn) -> None:
    answer = signed_in("viewer").get(f"{reverse('audit-export')}?who=ada")
    text = b"".join(answer).decode()
    assert text.count("\r\n") == 2
    assert "'=Because" in text
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action, entry.after) == (
        "exported",
        {"what": "audit_trail", "found_by": "who=ada"},
    )
