"""What narrows and sorts the queue, how far it looks, and lists that are kept under a name."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from operations.domain.statuses import Fact
from operations.models import Account, ApiKey, AuditEntry, Operation, Payment, SavedView
from operations.queries import parts
from operations.queries import queue as queue_module

from .test_console_queue import NOW, SignIn, mixed, orders, row

pytestmark = pytest.mark.django_db


def listed(client: Client, **query: Any) -> list[str]:
    return orders(client.get("/", query).content.decode())


def in_currency(order: str, currency: str, amount: int) -> None:
    """An unknown operation on a payment of this currency."""
    account, _ = Account.objects.get_or_create(
        name=f"in-{currency}", livemode=True, provider_account=f"acct_{currency}"
    )
    payment = Payment.objects.create(
        account=account,
        charge=f"ch_{order}",
        currency=currency,
        captured=10**9,
        refunded=0,
        read_at=NOW,
    )
    made = row(order, amount=amount)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE operations_operation SET currency = %s, account_id = %s, payment_id = %s"
            " WHERE id = %s",
            [currency, account.pk, payment.pk, made.pk],
        )
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def test_an_amount_is_a_range_in_one_currency(signed_in: SignIn) -> None:
    client = signed_in("viewer")
    for order, currency, amount in [
        ("small", "usd", 999),
        ("right", "usd", 1_250),
        ("large", "usd", 2_001),
        ("yen", "jpy", 1_250),
    ]:
        in_currency(order, currency, amount)

    assert listed(client, currency="usd", min="10", max="20.00") == ["right"]
    assert listed(client, currency="JPY", min="1250") == ["yen"]
    assert listed(client, sort="amount") == ["yen", "large", "right", "small"]
    page = client.get("/", {"min": "10"}).content.decode()
    assert "Name the currency of the amount. It filters nothing." in page
    for wrong in ({"min": "12.345"}, {"max": "-5"}, {"min": "1.234,50"}):
        page = client.get("/", {"currency": "usd"} | wrong).content.decode()
        assert "It filters nothing." in page
        assert len(orders(page)) == 3
    assert "There is no such currency." in client.get("/", {"currency": "xyz"}).content.decode()


def test_filters_by_account_agent_order_and_age(signed_in: SignIn) -> None:
    client = signed_in("viewer")
    in_currency("elsewhere", "eur", 500)
    here = row("here")
    agent = ApiKey.objects.create(
        name="refund-agent", prefix="rk", secret_hash="1" * 64, created_at=NOW
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE operations_operation SET opened_by_id = %s, needs_person_since = %s"
            " WHERE id = %s",
            [agent.pk, timezone.now() - timedelta(minutes=30), here.pk],
        )
        cursor.execute(
            "UPDATE operations_operation SET needs_person_since = %s WHERE id <> %s",
            [timezone.now(), here.pk],
        )
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")

    for query in (
        {"account": here.account_id},
        {"agent": agent.pk},
        {"order": "here"},
        {"age": "15m"},
    ):
        assert listed(client, **query) == ["here"], query
        assert listed(client, view="all", **query) in (["here"], ["here", "elsewhere"]), query
    assert listed(client, age="1h") == []
    assert "refund-agent" in client.get("/").content.decode()


def test_filters_by_who_claimed_it(signed_in: SignIn) -> None:
    for order in ("mine", "theirs", "nobodys"):
        row(order)
    dana, tom = signed_in("operator", "Dana Ruiz"), signed_in("operator", "Tom Oyelaran")
    for client, order in ((dana, "mine"), (tom, "theirs")):
        operation = Operation.objects.get(order_id=order)
        client.post(reverse("claim", args=[operation.pk]))
    toms = str(Operation.objects.get(order_id="theirs").claim.holder)

    assert listed(dana, view="mine") == ["mine"]
    assert listed(dana, claimed="me") == ["mine"]
    assert listed(dana, claimed=toms) == ["theirs"]
    assert sorted(listed(dana, claimed="anybody")) == ["mine", "theirs"]
    assert listed(dana, claimed="nobody") == ["nobodys"]
    page = dana.get("/").content.decode()
    assert 'avatar--you" aria-hidden="true">DR</span>You' in page
    assert '<bdi dir="auto">Tom Oyelaran</bdi>' in page


@pytest.mark.parametrize(
    ("view", "sort", "expected"),
    [
        ("decide", "oldest", ["third", "first", "second"]),
        ("decide", "newest", ["second", "first", "third"]),
        ("decide", "amount", ["third", "second", "first"]),
        ("all", "oldest", ["first", "second", "third"]),
        ("all", "amount", ["third", "second", "first"]),
        ("decide", "sideways", ["first", "second", "third"]),
    ],
)
def test_orders(signed_in: SignIn, view: str, sort: str, expected: list[str]) -> None:
    for order, minutes, since, amount in [
        ("first", 1, 2, 100),
        ("second", 2, 3, 200),
        ("third", 3, 1, 300),
    ]:
        made = row(order, closes=timedelta(minutes=minutes), amount=amount)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(
                "UPDATE operations_operation SET created_at = %s, needs_person_since = %s"
                " WHERE id = %s",
                [
                    NOW + timedelta(minutes=minutes),
                    NOW + timedelta(minutes=since),
                    made.pk,
                ],
            )
            cursor.execute("SET LOCAL session_replication_role = DEFAULT")

    assert listed(signed_in("viewer"), view=view, sort=sort) == expected


@pytest.mark.parametrize("sort", ["urgency", "oldest", "newest", "amount"])
def test_pages_of_every_order_show_every_row_once(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    mixed()
    client = signed_in("viewer")
    whole = listed(client, sort=sort)
    monkeypatch.setattr(queue_module, "PAGE_SIZE", 3)

    seen, address = [], f"/?sort={sort}"
    while address:
        page = client.get(address).content.decode()
        seen += orders(page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following.group(1).replace("&amp;", "&") if following else ""

    assert seen == whole
    assert len(seen) == 8


def test_what_filters_hide_is_looked_through_only_so_far(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "LOOKED_THROUGH", 4)
    for number in range(9):
        row(f"small-{number}", amount=100)
    row("large", amount=99, closes=timedelta(hours=5))
    client = signed_in("viewer")
    seen, address, pages = [], "/?currency=usd&max=0.99", 0

    while address:
        with CaptureQueriesContext(connection) as queries:
            page = client.get(address).content.decode()
        assert len(queries) <= 12
        seen += orders(page)
        pages += 1
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following.group(1).replace("&amp;", "&") if following else ""
        if address:
            assert "Look further" in page

    assert seen == ["large"]
    assert pages == 3


def test_a_view_is_kept_with_its_filters_and_counted(signed_in: SignIn) -> None:
    mixed()
    client = signed_in("viewer")

    asked = {"name": " Conflicts ", "address": "view=decide&attention=conflict&no=1&after=x"}
    # As a browser sends a form: a viewer uploads nothing.
    client.post(
        reverse("save-view"),
        urlencode(asked),
        content_type="application/x-www-form-urlencoded",
    )

    kept = SavedView.objects.get()
    assert (kept.name, kept.query, kept.shared) == (
        "Conflicts",
        "view=decide&attention=conflict",
        False,
    )
    page = client.get(f"/?{kept.query}&saved={kept.pk}").content.decode()
    assert re.search(r'aria-current="page"><bdi>Conflicts</bdi> <span class="count">1</span>', page)
    assert orders(page) == ["flag-soon"]
    assert "<bdi>Conflicts</bdi>" not in signed_in("operator").get("/").content.decode()
    entry = AuditEntry.objects.get(action="view_saved")
    assert entry.after["view"] == "Conflicts"

    client.post(reverse("remove-view", args=[kept.pk]))

    assert not SavedView.objects.exists()
    assert AuditEntry.objects.get(action="view_removed").before["view"] == "Conflicts"


def test_only_some_share_views_and_everybody_sees_them(signed_in: SignIn) -> None:
    asked = {"name": "Large", "address": "view=all", "shared": "1"}
    operator, approver = signed_in("operator"), signed_in("approver")

    refused = operator.post(reverse("save-view"), asked, follow=True)
    assert "Sharing a view needs the role approver." in refused.content.decode()
    assert not SavedView.objects.exists()
    approver.post(reverse("save-view"), asked)
    kept = SavedView.objects.get()

    assert "<bdi>Large</bdi>" in operator.get("/").content.decode()
    operator.post(reverse("remove-view", args=[kept.pk]))
    assert SavedView.objects.count() == 1
    approver.post(reverse("remove-view", args=[kept.pk]))
    assert SavedView.objects.count() == 0


def test_a_queue_page_with_all_its_views_and_filters_takes_no_more_queries(
    signed_in: SignIn,
) -> None:
    mixed()
    client = signed_in("approver")
    for number in range(6):
        asked = {"name": f"View {number}", "address": f"view=all&order=o-{number}"}
        client.post(reverse("save-view"), asked)
        client.post(reverse("save-view"), asked | {"name": f"All {number}", "shared": "1"})
    client.get("/")  # Takes the messages about them out of the session.

    with CaptureQueriesContext(connection) as queries:
        page = client.get(
            "/?currency=usd&min=1&age=15m&claimed=nobody&status=unknown&sort=urgency"
        ).content.decode()

    assert page.count('<span class="count">') == 16
    assert len(queries) <= 12


def test_ids_that_begin_like_others_are_found_all_the_same(signed_in: SignIn) -> None:
    for order in ("re_77", "evt_77", "pi_77", "toolu_77"):
        operation = row(order, fact=Fact.LEFT_UNDECIDED)
        answer = signed_in("viewer", order).get(reverse("search"), {"q": order})
        assert answer["Location"] == reverse("operation", args=[operation.pk])
