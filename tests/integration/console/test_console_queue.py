"""The queue: its order, its pages, its filters, its search, and what it costs."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from operations.domain.identity import idempotency_key, uuid7
from operations.domain.statuses import Fact, UnknownReason
from operations.models import Account, Operation, Payment
from operations.queries import queue as queue_module
from operations.queries import queue_counts

from .scenes import Scenes, fresh

pytestmark = pytest.mark.django_db
with_provider = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def orders(page: str) -> list[str]:
    """The orders of a list, from the top."""
    cells = re.findall(r'<td class="row__order".*?<bdi dir="auto">(.*?)</bdi>', page, re.S)
    return [cell.strip() for cell in cells]


def row(
    order: str,
    *,
    amount: int = 1_000,
    closes: timedelta | None = timedelta(hours=1),
    fact: Fact | None = Fact.LEFT_UNDECIDED,
    attention: list[str] | None = None,
) -> Operation:
    """An operation by its figures, taken through the model's own door."""
    account, _ = Account.objects.get_or_create(name="default", livemode=False)
    payment, _ = Payment.objects.get_or_create(
        account=account,
        charge="ch_1",
        defaults={"currency": "usd", "captured": 10**9, "refunded": 0, "read_at": NOW},
    )
    pk = uuid7(NOW)
    operation = Operation.objects.create(
        id=pk,
        account=account,
        payment=payment,
        order_id=order,
        amount=amount,
        currency="usd",
        input_hash="0" * 64,
        environment="tests",
        endpoint="/v1/refunds",
        idempotency_key=idempotency_key(pk),
        parameters={},
        created_at=NOW,
    )
    if closes is not None or attention:
        operation.change(
            now=NOW,
            key_window_closes_at=NOW + closes if closes is not None else None,
            attention=attention or [],
        )
    if fact is not None:
        more: dict[str, Any] = (
            {"provider_object_id": f"re_{order}"} if fact is Fact.PROVIDER_SUCCEEDED else {}
        )
        reason = UnknownReason.SERVER_ERROR if fact is Fact.LEFT_UNDECIDED else None
        operation.take(fact, now=NOW, unknown_reason=reason, **more)
    return operation


def mixed() -> list[str]:
    """Rows of every kind that needs a person; their orders as they should stand."""
    flagged = Fact.PROVIDER_SUCCEEDED
    row("flag-late", closes=timedelta(hours=2), fact=flagged, attention=["disputed"])
    row("none-small", amount=5, closes=None)
    row("soon-small", amount=10, closes=timedelta(minutes=5))
    row("flag-none", closes=None, fact=flagged, attention=["disputed"])
    row("late", closes=timedelta(hours=3), amount=9_999)
    row("soon-big", amount=20, closes=timedelta(minutes=5))
    row("none-big", amount=50, closes=None)
    row("flag-soon", closes=timedelta(minutes=1), fact=flagged, attention=["conflict"])
    row("settled", fact=flagged)
    row("open", fact=None)
    return [
        "soon-big",
        "soon-small",
        "late",
        "none-big",
        "none-small",
        "flag-soon",
        "flag-late",
        "flag-none",
    ]


def test_unknown_comes_first_then_the_deadline_then_the_amount(signed_in: SignIn) -> None:
    expected = mixed()

    page = signed_in("viewer").get("/").content.decode()

    assert orders(page) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("view", ["decide", "all"])
def test_pages_show_every_row_once_and_in_order(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch, size: int, view: str
) -> None:
    mixed()
    client = signed_in("viewer")
    whole = orders(client.get("/", {"view": view}).content.decode())
    monkeypatch.setattr(queue_module, "PAGE_SIZE", size)

    seen: list[str] = []
    address = f"/?view={view}"
    for _ in range(20):
        page = client.get(address).content.decode()
        seen += orders(page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        if following is None:
            break
        address = following.group(1).replace("&amp;", "&")

    assert seen == whole
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(
    "after", ["x", "a~1~2~3", "a~20261130T120000.000000~99~no", "z~~", "a~\x00~1~2"]
)
def test_a_damaged_place_is_the_beginning(signed_in: SignIn, after: str) -> None:
    expected = mixed()

    page = signed_in("viewer").get("/", {"after": after}).content.decode()

    assert orders(page) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"status": "succeeded"}, ["flag-soon", "flag-late", "flag-none"]),
        ({"attention": "conflict"}, ["flag-soon"]),
        ({"reason": "budget_spent"}, []),
        ({"status": "unknown", "reason": "server_error"}, None),
    ],
)
def test_filters_narrow_the_view(
    signed_in: SignIn, query: dict[str, str], expected: list[str] | None
) -> None:
    everything = mixed()

    page = signed_in("viewer").get("/", query).content.decode()

    assert orders(page) == (everything[:5] if expected is None else expected)
    if expected == []:
        assert "Your filters hide everything in this view" in page


def test_a_filter_that_means_nothing_is_named_and_filters_nothing(signed_in: SignIn) -> None:
    expected = mixed()

    page = signed_in("viewer").get("/", {"status": "nonsense"}).content.decode()

    assert orders(page) == expected
    assert "It filters nothing." in page


def test_htmx_gets_the_list_alone(signed_in: SignIn) -> None:
    mixed()
    client = signed_in("viewer")

    part = client.get("/", headers={"HX-Request": "true"})

    assert part.content.decode().lstrip().startswith('<div id="list">')
    assert "HX-Request" in part["Vary"]
    assert "HX-Request" in client.get("/")["Vary"]


@with_provider
def test_a_queue_page_costs_the_same_whatever_its_size(scenes: Scenes, signed_in: SignIn) -> None:
    client = signed_in("viewer")
    for order in range(3):
        scenes.unknown(order=f"few-{order}", looked=1)
    with CaptureQueriesContext(connection) as few:
        client.get("/")
    for order in range(60):
        row(f"many-{order}", amount=order + 1, closes=None if order % 2 else timedelta(hours=1))
    for order in range(5):
        row(f"flag-{order}", fact=Fact.PROVIDER_SUCCEEDED, attention=["disputed"], closes=None)
    with CaptureQueriesContext(connection) as many:
        page = client.get("/").content.decode()

    assert len(orders(page)) == 50
    assert len(few) <= 12
    assert len(many) <= 12


def test_the_empty_queue_says_so(signed_in: SignIn) -> None:
    assert "No refund is unknown" in signed_in("viewer").get("/").content.decode()


def test_counts_stop_at_the_cap(signed_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed()
    monkeypatch.setattr(queue_counts, "COUNT_CAP", 3)

    page = signed_in("viewer").get("/").content.decode()

    assert '<span class="count">3+</span>' in page


@with_provider
def test_every_id_finds_its_operation(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.succeeded(order="4417")
    scenes.succeeded(order="4418")
    client = signed_in("viewer")
    attempt = operation.attempts.get()
    request = operation.requests.get()

    ids = [
        str(operation.pk),
        operation.pk.hex,
        "4417",
        operation.provider_object_id,
        operation.payment.charge,
        operation.payment.payment_intent,
        operation.idempotency_key,
        request.tool_call_id,
        attempt.provider_request_id,
        str(attempt.pk),
        f"https://dashboard.stripe.com/test/refunds/{operation.provider_object_id}?x=1",
        f"  {operation.idempotency_key} ",
    ]
    for text in ids:
        response = client.get(reverse("search"), {"q": text})
        assert response.status_code == 302, text
        assert response["Location"] == reverse("operation", args=[operation.pk]), text


@with_provider
def test_an_id_of_several_operations_lists_them(scenes: Scenes, signed_in: SignIn) -> None:
    scenes.succeeded(order="4417", reference="a")
    scenes.unknown(order="4417", reference="b")

    page = signed_in("viewer").get(reverse("search"), {"q": "4417"}).content.decode()

    assert orders(page) == ["4417", "4417"]


@pytest.mark.parametrize(
    "text", ["", "nothing", "re_'; --", "a\x00b", "%", "x" * 5_000, "http://[", "https://a]b/"]
)
def test_what_is_not_found_is_said(signed_in: SignIn, text: str) -> None:
    response = signed_in("viewer").get(reverse("search"), {"q": text})

    assert response.status_code == 200
    assert "Type an id" in response.content.decode() or "Nothing has" in response.content.decode()


@with_provider
def test_text_from_outside_can_not_run_or_turn_the_page(scenes: Scenes, signed_in: SignIn) -> None:
    evil = '<script>alert(1)</script>\u202e"'
    operation = scenes.unknown(order=evil)
    client = signed_in("viewer")

    for page in (client.get("/"), client.get(reverse("operation", args=[operation.pk]))):
        text = page.content.decode()
        assert "<script>alert" not in text
        assert '<bdi dir="auto">&lt;script&gt;alert(1)&lt;/script&gt;' in text


@with_provider
def test_the_content_policy_allows_nothing_inline(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown()
    client = signed_in("operator")

    for address in ("/", reverse("operation", args=[operation.pk]), "/search/?q=x"):
        response = client.get(address)
        policy = response["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script>", response.content.decode())
    assert fresh(operation).lookups_made == 0
