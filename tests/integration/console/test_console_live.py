"""Regions that keep themselves up to date: an unchanged page costs one query and no body."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from operations.models import WORKER, Heartbeat
from operations.services.looking_up import look_up

from .scenes import JOB, Scenes

pytestmark = pytest.mark.django_db(transaction=True)

#: Who asks: the session, the person, their groups.
WHO_ASKS = 3
HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def _read_anew() -> None:
    cache.clear()


@pytest.fixture(autouse=True)
def _within_a_minute() -> Iterator[None]:
    """The clock goes on from the first second of a minute."""
    with time_machine.travel(datetime.now(UTC).replace(second=1)):
        yield


@pytest.fixture
def operator(signed_in: Callable[[str], Client]) -> Client:
    return signed_in("operator")


def again(client: Client, address: str, mark: str) -> int:
    """The status of a second question, with what the first was answered."""
    return client.get(address, headers=HTMX | {"If-None-Match": mark}).status_code


def test_an_unchanged_queue_answers_304_with_one_query(
    operator: Client,
    scenes: Scenes,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    scenes.unknown(order="4417")
    for address in ("/", "/?view=second", "/?view=all", "/?status=unknown"):
        mark = operator.get(address, headers=HTMX).headers["ETag"]
        with django_assert_num_queries(WHO_ASKS + 1):
            assert again(operator, address, mark) == 304


def test_the_queue_is_answered_anew_when_an_operation_changes(
    operator: Client, scenes: Scenes
) -> None:
    operation = scenes.unknown(order="4417", made=False)
    marks = {view: operator.get(f"/?view={view}", headers=HTMX).headers["ETag"] for view in _VIEWS}

    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)

    assert {view: again(operator, f"/?view={view}", marks[view]) for view in ("decide", "all")} == {
        "decide": 200,
        "all": 200,
    }
    scenes.proposed(operation)
    assert again(operator, "/?view=second", marks["second"]) == 200


_VIEWS = ("decide", "second", "all")


def test_an_operation_is_answered_anew_only_when_it_changes(
    operator: Client,
    scenes: Scenes,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    operation, other = scenes.unknown(made=False), scenes.unknown(made=False)
    address = f"/operations/{operation.pk}/now/"
    page = operator.get(f"/operations/{operation.pk}/")
    mark = page.headers["ETag"]
    look_up(engine=scenes.engine(), operation_id=other.pk, actor=JOB)
    with django_assert_num_queries(WHO_ASKS + 1):
        assert again(operator, address, mark) == 304

    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)

    answer = operator.get(address, headers=HTMX | {"If-None-Match": mark})
    assert answer.status_code == 200
    assert 'id="op-head"' in answer.text
    assert "<html" not in answer.text
    assert "<html" in operator.get(address).text


def test_a_mark_is_one_persons(
    operator: Client, signed_in: Callable[[str], Client], scenes: Scenes
) -> None:
    scenes.unknown()
    mark = operator.get("/", headers=HTMX).headers["ETag"]
    assert again(signed_in("viewer"), "/", mark) == 200


def test_whoever_asks_without_htmx_gets_the_page(operator: Client) -> None:
    mark = operator.get("/", headers=HTMX).headers["ETag"]
    assert operator.get("/", headers={"If-None-Match": mark}).status_code == 200


def test_the_strip_says_how_provider_and_worker_are(operator: Client, scenes: Scenes) -> None:
    assert "No worker has been heard of" in operator.get("/").text
    scenes.unknown(made=False)
    Heartbeat.beat(WORKER, now=datetime.now(UTC) - timedelta(minutes=3))
    text = " ".join(operator.get("/").text.split())
    assert "Worker silent for <b><time>3 m</time></b>" in text
    assert "Provider: <b>1 of the last 1 send</b> without a clear answer" in text
    Heartbeat.beat(WORKER, now=datetime.now(UTC))
    Heartbeat.beat(WORKER, now=datetime.now(UTC) - timedelta(minutes=9))
    assert "Worker is at work" in operator.get("/").text


def test_many_strips_read_the_figures_once(
    operator: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    mark = operator.get("/health-strip/", headers=HTMX).headers["ETag"]
    with django_assert_num_queries(WHO_ASKS):
        assert again(operator, "/health-strip/", mark) == 304


def test_all_keys_are_a_page_and_a_part_of_one(operator: Client) -> None:
    assert "<h1>Keys</h1>" in operator.get("/keys-help/").text
    part = operator.get("/keys-help/", headers=HTMX).text
    assert "<kbd>j</kbd>" in part
    assert "<html" not in part
