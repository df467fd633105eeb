"""Many at once in the console: chosen in the queue, looked at, begun, and told what came of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from operations.domain.bulk import BulkLimits
from operations.models import Account, AuditEntry, BulkRun, Claim, Grant, Operation
from operations.queries import queue as queue_module
from operations.services.bulk_running import run_bulk
from operations.services.engine import default_engine
from tests.integration.many import copy_unknown

from .scenes import Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[..., Client]
NOTE = "The provider's incident of the morning."


def choose(client: Client, action: str, *ids: UUID, **more: str) -> Any:
    return client.post(
        reverse("bulk-preview"), {"action": action, "op": [str(pk) for pk in ids], **more}
    )


def preview(client: Client, action: str, *ids: UUID, **more: str) -> BulkRun:
    response = choose(client, action, *ids, **more)
    run = BulkRun.objects.latest("pk")
    assert response["Location"] == reverse("bulk-run", args=[run.pk])
    return run


def begin(client: Client, run: BulkRun, **changes: Any) -> Any:
    said = {
        "count": run.acts,
        "typed": run.acts,
        "note": NOTE,
        "kind": "dashboard",
        "reference": "incident 29",
    }
    return client.post(reverse("bulk-begin", args=[run.pk]), said | changes)


def work(run: BulkRun) -> None:
    """What the worker does."""
    while run_bulk(engine=default_engine(), run_id=run.pk, is_over=lambda: False):
        pass
    run.refresh_from_db()


def page(client: Client, run: BulkRun, query: str = "") -> str:
    return client.get(reverse("bulk-run", args=[run.pk]) + query).content.decode()


def absent(scenes: Scenes, **asked: Any) -> Operation:
    """Unknown, and a fresh look-up found nothing."""
    return scenes.unknown(made=False, looked=1, ago=600, **asked)


def test_what_was_ticked_is_shown_first_then_done_and_told(
    scenes: Scenes, signed_in: SignIn
) -> None:
    first, second = absent(scenes, order="4417"), scenes.unknown(made=False, order="4418")
    settled = scenes.succeeded(order="4419")
    client = signed_in("operator", "Dana Ruiz")
    sent = scenes.control.counts()

    run = preview(client, "close_failed", first.pk, second.pk, settled.pk)
    shown = page(client, run)
    assert "Preview: Close as failed, 3 refunds" in shown
    assert "Nothing is recorded yet." in shown
    assert "it is settled already" in shown
    assert "no complete look-up of the last 15 minutes" in shown
    assert "Close 1 as failed, propose 1" in shown
    assert fresh(first).status == "unknown"

    assert begin(client, run)["Location"] == reverse("bulk-run", args=[run.pk])
    assert "0 of 2 have their result" in page(client, run)
    assert 'data-live="' in page(client, run)
    work(run)

    shown = page(client, run)
    assert "2 of 2 have their result" in shown
    assert 'data-live="/bulk' not in shown
    assert "1 Closed" in shown
    assert "1 Proposed to a second person" in shown
    assert "1 Left as foreseen" in shown
    assert [fresh(row).status for row in (first, second)] == ["failed", "unknown"]
    entry = AuditEntry.objects.get(operation_id=first.pk, action="closed_failed")
    assert (entry.actor_name, entry.actor_address) == ("Dana Ruiz", "127.0.0.1")
    assert (entry.reason, entry.after["bulk_run"]) == (NOTE, run.pk)
    assert scenes.control.counts() == sent
    listed = client.get(reverse("bulk")).content.decode()
    assert reverse("bulk-run", args=[run.pk]) in listed
    assert NOTE.replace("'", "&#x27;") in listed


def test_the_result_can_be_taken_away_with_formulas_made_harmless_and_that_is_logged(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False, order="=1+1")
    client = signed_in("operator", "Dana Ruiz")
    run = preview(client, "claim", operation.pk)
    begin(client, run)
    work(run)

    response = client.get(reverse("bulk-results", args=[run.pk]))
    exported = choose(client, "export", operation.pk)

    answers: list[Any] = [response, exported]
    for each in answers:
        text = b"".join(each.streaming_content).decode("utf-8-sig")
        assert f"{operation.pk},'=1+1," in text
    entries = AuditEntry.objects.filter(action="exported").order_by("pk")
    assert [(row.actor_name, row.after["what"]) for row in entries] == [
        ("Dana Ruiz", "bulk_results"),
        ("Dana Ruiz", "operations"),
    ]
    assert Claim.objects.get().holder_name == "Dana Ruiz"


def test_all_that_match_are_those_that_the_filters_leave(scenes: Scenes, signed_in: SignIn) -> None:
    ours = [scenes.unknown(made=False, order="4417", reference=str(n)) for n in range(3)]
    other = scenes.unknown(made=False, order="4418")
    client = signed_in("operator")

    run = preview(client, "claim", other.pk, all="1", address="view=decide&order=4417")

    assert set(run.lines.values_list("operation_id", flat=True)) == {row.pk for row in ours}
    assert choose(client, "claim", all="1", address="view=decide&status=lost").status_code == 302
    assert BulkRun.objects.count() == 1
    assert "A filter of this list is not understood" in client.get("/").content.decode()


def test_all_that_match_are_the_twelve_that_the_filter_leaves(
    scenes: Scenes, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "PAGE_SIZE", 5)
    first = absent(scenes, amount=500)
    copy_unknown(first, 59, amount="old.amount + n %% 5")
    client = signed_in("operator")
    address = "view=decide&currency=usd&max=5"
    assert client.get(f"/?{address}").content.decode().count('name="op"') == 5

    run = preview(client, "close_failed", all="1", address=address)
    begin(client, run)
    work(run)

    assert (run.rows, run.acts) == (12, 12)
    failed = Operation.objects.filter(status="failed")
    assert set(failed.values_list("amount", flat=True)) == {500}
    assert failed.count() == 12 == Operation.objects.filter(amount=500).count()
    assert Operation.objects.filter(status="unknown").count() == 48


def test_a_preview_that_is_out_of_date_is_shown_anew_with_what_changed(
    scenes: Scenes, signed_in: SignIn
) -> None:
    first, second = absent(scenes, order="4417"), absent(scenes, order="4418")
    client = signed_in("operator")
    run = preview(client, "close_failed", first.pk, second.pk)
    first.change(now=default_engine().clock(), attention=["disputed"])

    response = begin(client, run)

    shown = response.content.decode()
    assert response.status_code == 409
    assert "the preview was not how things stand any more" in shown
    assert "4417" in shown.partition('role="alert"')[2].partition("</ul>")[0]
    assert "something contradicts it: decide it by itself" in shown
    assert NOTE.replace("'", "&#x27;") in shown
    anew = BulkRun.objects.latest("pk")
    assert reverse("bulk-begin", args=[anew.pk]) in shown
    assert (anew.rows, anew.acts) == (2, 1)
    assert begin(client, anew).status_code == 302
    work(anew)
    assert [fresh(row).status for row in (first, second)] == ["unknown", "failed"]


def test_another_number_than_the_page_showed_is_refused_and_nothing_changes(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = absent(scenes)
    client = signed_in("operator")
    run = preview(client, "close_failed", operation.pk)

    assert begin(client, run, typed="2").status_code == 422
    assert begin(client, run, count="2", typed="2").status_code == 409

    run.refresh_from_db()
    assert (run.state, fresh(operation).status) == ("previewed", "unknown")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"note": " "}, "Write a note: why is this done to all of them?"),
        ({"kind": ""}, "Choose what you saw."),
        ({"reference": ""}, "Name the evidence: a case number or an address."),
        ({"typed": ""}, "Type the number to go on."),
    ],
)
def test_what_is_missing_is_said_at_its_field(
    scenes: Scenes, signed_in: SignIn, changes: dict[str, str], words: str
) -> None:
    client = signed_in("operator")
    run = preview(client, "close_failed", absent(scenes).pk)

    response = begin(client, run, **changes)

    assert response.status_code == 422
    assert words in response.content.decode()
    assert 'aria-invalid="true"' in response.content.decode()


def test_a_form_whose_session_has_ended_is_kept_for_the_preview(
    scenes: Scenes, signed_in: SignIn
) -> None:
    run = preview(signed_in("operator"), "claim", scenes.unknown(made=False).pk)

    response = Client().post(
        reverse("bulk-begin", args=[run.pk]),
        f"count=1&note={NOTE}",
        content_type="application/x-www-form-urlencoded",
    )

    assert response.status_code == 401
    assert reverse("bulk-run", args=[run.pk]) in response.content.decode()
    run.refresh_from_db()
    assert run.state == "previewed"


def test_the_same_form_twice_is_one_run(scenes: Scenes, signed_in: SignIn) -> None:
    client = signed_in("operator")
    run = preview(client, "claim", scenes.unknown(made=False).pk)

    answers = [begin(client, run), begin(client, run)]

    assert {answer["Location"] for answer in answers} == {reverse("bulk-run", args=[run.pk])}
    assert AuditEntry.objects.filter(action="bulk_started").count() == 1


@pytest.fixture
def alone(scenes: Scenes, settings: Settings) -> BulkLimits:
    """One person closes one at once."""
    limits = BulkLimits(rows=1, times=1_000)
    settings.RECONCILE = replace(settings.RECONCILE, bulk_alone=limits)
    default_engine.cache_clear()
    return limits


def test_a_large_run_begins_when_an_approver_agrees(
    scenes: Scenes, signed_in: SignIn, alone: BulkLimits
) -> None:
    rows = [absent(scenes), absent(scenes)]
    dana, priya = signed_in("operator", "Dana Ruiz"), signed_in("approver", "Priya Nair")
    run = preview(dana, "close_failed", *(row.pk for row in rows))
    assert run.acts > alone.rows
    assert "A second person has to agree before it begins" in page(dana, run)
    begin(dana, run)
    assert "another person has to answer" in page(dana, run)
    approve = reverse("bulk-approve", args=[run.pk])
    assert dana.post(approve, {"note": "Fine."}).status_code == 403
    assert priya.post(approve, {"note": " "}).status_code == 422
    assert "bulk run waits" in priya.get(reverse("proposals")).content.decode()

    priya.post(approve, {"note": "I checked both."})
    work(run)

    assert (run.state, run.decided_by_name) == ("ended", "Priya Nair")
    assert {fresh(row).status for row in rows} == {"failed"}
    assert "I checked both." in page(dana, run)


def test_who_proposed_a_run_can_take_it_back_and_other_operators_can_not(
    scenes: Scenes, signed_in: SignIn, alone: BulkLimits
) -> None:
    rows = [absent(scenes), absent(scenes)]
    dana, omar = signed_in("operator", "Dana Ruiz"), signed_in("operator", "Omar Haddad")
    run = preview(dana, "close_failed", *(row.pk for row in rows))
    assert run.acts > alone.rows
    begin(dana, run)
    reject = reverse("bulk-reject", args=[run.pk])

    assert omar.post(reject, {"note": "No."}).status_code == 403
    assert dana.post(reject, {"note": "Too many."}).status_code == 302

    assert "It was turned down. Nothing was changed." in page(dana, run)
    assert {fresh(row).status for row in rows} == {"unknown"}


def test_stopping_and_looking_again_at_the_rest(scenes: Scenes, signed_in: SignIn) -> None:
    rows = [scenes.unknown(made=False), scenes.unknown(made=False)]
    client = signed_in("operator", "Dana Ruiz")
    run = preview(client, "claim", *(row.pk for row in rows))
    begin(client, run)

    client.post(reverse("bulk-stop", args=[run.pk]))
    work(run)

    shown = page(client, run)
    assert "2 Stopped before its turn" in shown
    assert "Look again at 2 that were not done" in shown
    response = client.post(reverse("bulk-again", args=[run.pk]))
    again = BulkRun.objects.latest("pk")
    assert response["Location"] == reverse("bulk-run", args=[again.pk])
    assert (again.rows, again.retry_of_id) == (2, run.pk)
    assert client.post(reverse("bulk-stop", args=[run.pk])).status_code == 409


def test_a_viewer_reads_runs_and_begins_none(scenes: Scenes, signed_in: SignIn) -> None:
    operation = absent(scenes)
    run = preview(signed_in("operator", "Dana Ruiz"), "close_failed", operation.pk)
    viewer = signed_in("viewer")
    before = AuditEntry.objects.count()

    assert choose(viewer, "claim", operation.pk).status_code == 403
    for name in ("bulk-begin", "bulk-approve", "bulk-reject", "bulk-stop", "bulk-again"):
        response = viewer.post(reverse(name, args=[run.pk]), {"note": "Mine.", "count": 1})
        assert response.status_code == 403, name

    assert "only they can begin it" in page(viewer, run)
    assert 'name="op"' not in viewer.get("/").content.decode()
    run.refresh_from_db()
    assert (BulkRun.objects.count(), run.state) == (1, "previewed")
    assert AuditEntry.objects.count() == before


def test_choosing_nothing_says_so_in_the_list_it_came_from(signed_in: SignIn) -> None:
    client = signed_in("operator")

    response = choose(client, "claim", address="view=all&order=1")

    assert response["Location"] == "/?view=all&order=1"
    assert "Choose at least one operation." in client.get("/").content.decode()
    assert choose(client, "pay").status_code == 302
    assert client.get(reverse("bulk-run", args=[1])).status_code == 404
    assert "Nothing was done to many at once yet" in client.get(reverse("bulk")).content.decode()


def test_of_another_account_nothing_is_chosen_and_no_run_is_there(
    scenes: Scenes, signed_in: SignIn
) -> None:
    mine = scenes.unknown(made=False, order="4417")
    theirs = Account.objects.create(name="elsewhere", livemode=False, provider_account="acct_2")
    omar = signed_in("", "Omar Haddad")
    Grant.objects.create(
        user=User.objects.get(username="omar"),
        account=theirs,
        role=Group.objects.get(name="operator"),
        granted_at=default_engine().clock(),
    )
    dana = signed_in("operator", "Dana Ruiz")
    run = preview(dana, "claim", mine.pk)
    begin(dana, run)

    assert choose(omar, "claim", mine.pk).status_code == 302
    assert choose(omar, "export", mine.pk).status_code == 302
    assert choose(omar, "claim", all="1", address="view=all").status_code == 302

    assert BulkRun.objects.count() == 1
    assert omar.get(reverse("bulk-run", args=[run.pk])).status_code == 404
    assert omar.get(reverse("bulk-results", args=[run.pk])).status_code == 404
    assert begin(omar, run).status_code == 404
    assert reverse("bulk-run", args=[run.pk]) not in omar.get(reverse("bulk")).content.decode()
