"""The insights page: what it says, by what it is narrowed, and how many queries it takes."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from operations import jobs
from operations.models import Account, Operation
from operations.services.looking_up import look_up

from .scenes import JOB, Scenes

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]


def text_of(client: Client, address: str = "/insights/") -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_before_anything_happened_it_says_so(signed_in: SignIn) -> None:
    client = signed_in("viewer")
    assert "Nothing was counted yet" in text_of(client)

    jobs.sum_up()

    assert "Nothing happened in this range" in text_of(client)


def test_a_duplicate_shows_in_the_ratio_and_beside_it(scenes: Scenes, signed_in: SignIn) -> None:
    scenes.duplicate()
    for _ in range(2):
        scenes.succeeded()
    jobs.sum_up()

    said = text_of(signed_in("viewer"))

    assert '<p class="kpi__value">1.333</p>' in said
    assert "1 duplicate</a>" in said
    assert '<td class="num">1.3333</td><td class="num">1</td>' in said
    assert "chart__dot--bad" in said


def test_without_a_duplicate_the_ratio_is_one(scenes: Scenes, signed_in: SignIn) -> None:
    scenes.succeeded()
    scenes.refused()
    jobs.sum_up()

    said = text_of(signed_in("viewer"))

    assert '<p class="kpi__value">1.000</p><p class="kpi__note">0 duplicates</p>' in said


def test_unknown_money_is_an_interval_a_currency_each(scenes: Scenes, signed_in: SignIn) -> None:
    scenes.unknown(amount=3_800)
    scenes.unknown(amount=1_200)
    scenes.unknown(amount=5_000, currency="jpy")
    jobs.sum_up()

    said = text_of(signed_in("viewer"))

    assert "¥0 to ¥5,000<br>$0.00 to $50.00" in said
    assert "Provider answered 500" in said


def test_what_was_resolved_has_a_time(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(ago=3_600)
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    jobs.sum_up()

    said = text_of(signed_in("viewer"), "/insights/?range=30d")

    assert "of 1 resolved" in said
    assert "1 h" in said


def test_the_filters_stand_in_the_address(scenes: Scenes, signed_in: SignIn) -> None:
    scenes.unknown()
    jobs.sum_up()
    client = signed_in("viewer")
    account = Operation.objects.get().account_id
    other = Account.objects.create(name="other", provider_account="acct_2", livemode=False)

    here = text_of(client, f"/insights/?account={account}&range=1d")
    there = text_of(client, f"/insights/?account={other.pk}&range=1d")
    odd = text_of(client, "/insights/?account=%00&agent=x&range=9y")

    assert f'<option value="{account}" selected>' in here
    assert '<p class="kpi__label">Unknown now</p><p class="kpi__value">1</p>' in here
    assert "Nothing happened in this range" in there
    assert '<option value="7d" selected>' in odd


def test_the_page_takes_as_many_queries_for_much_as_for_little(
    scenes: Scenes, signed_in: SignIn
) -> None:
    client = signed_in("viewer")
    scenes.unknown()
    jobs.sum_up()
    with CaptureQueriesContext(connection) as few:
        client.get("/insights/")
    for number in range(5):
        scenes.unknown(ago=90_000 * number)
        scenes.duplicate(ago=4_000 * number)
    jobs.sum_up()
    with CaptureQueriesContext(connection) as many:
        client.get("/insights/?range=90d")

    assert len(few) == len(many) <= 9
    assert not any("jsonb" in query["sql"] for query in many.captured_queries)
