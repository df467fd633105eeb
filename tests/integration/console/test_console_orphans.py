"""Orphans and money: what nothing ties to an operation, and where the rest of a total is."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from operations.domain.statuses import Attention, Status
from operations.models import (
    AuditEntry,
    BulkRun,
    Discrepancy,
    MadeOutside,
    Operation,
    Payment,
    Proposal,
    ProviderRefund,
)
from operations.queries.conservation import account_sheets, payment_sheet
from operations.queries.money_counted import count_money, money_counted
from operations.services.adding_up import compare_total
from operations.services.bulk_running import run_bulk
from operations.services.looking_up import look_up
from operations.services.orphans import mark_outside

from .scenes import JOB, Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[..., Client]


def orphan_beside(scenes: Scenes, operation: Operation, **given: Any) -> ProviderRefund:
    """A refund from the dashboard on an operation's payment, seen by a look-up."""
    made = scenes.control.refund_outside(
        operation.payment.charge, **{"amount": operation.amount} | given
    )
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    return ProviderRefund.objects.get(provider_object_id=made)


def link(client: Client, refund: ProviderRefund, to: Operation, **changes: Any) -> Any:
    data = {
        "operation": str(to.pk),
        "revision": fresh(to).revision,
        "note": "Made by Jane in the dashboard for this order.",
    }
    return client.post(f"/orphans/refunds/{refund.pk}/link/", data | changes)


def test_refund_without_a_reference_is_listed_with_its_reason_and_candidate(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    refund = orphan_beside(scenes, operation)

    page = signed_in("viewer").get("/orphans/").content.decode()

    assert "No reference" in page
    assert "Possible, not proven" in page
    assert str(operation.pk)[:8] in page
    assert f"/orphans/refunds/{refund.pk}/" in page
    assert fresh(operation).status == Status.UNKNOWN


def test_linking_closes_an_unknown_operation_by_the_refund_that_was_read_live(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    refund = orphan_beside(scenes, operation)
    client = signed_in("operator", "Dana Ruiz")

    assert link(client, refund, operation).status_code == 302

    after = fresh(operation)
    assert (after.status, after.provider_object_id) == (
        Status.SUCCEEDED,
        refund.provider_object_id,
    )
    refund.refresh_from_db()
    assert refund.operation_id == operation.pk
    entry = AuditEntry.objects.filter(operation_id=operation.pk).latest("number")
    assert (entry.action, entry.actor_name) == ("closed_succeeded", "Dana Ruiz")
    assert "Every refund we saw has its operation" in client.get("/orphans/").content.decode()


def test_linking_above_the_limit_waits_for_a_second_person(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False, amount=2_000_000)
    refund = orphan_beside(scenes, operation)

    link(signed_in("operator"), refund, operation)

    assert fresh(operation).status == Status.UNKNOWN
    assert Proposal.objects.get().evidence_reference == refund.provider_object_id


def test_refund_of_another_amount_is_not_linked(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False)
    refund = orphan_beside(scenes, operation, amount=operation.amount - 1)
    client = signed_in("operator")
    assert "the terms differ" in client.get(f"/orphans/refunds/{refund.pk}/").content.decode()
    before = AuditEntry.objects.count()

    answer = link(client, refund, operation)

    assert answer.status_code == 422
    assert "is another refund" in answer.content.decode()
    assert fresh(operation).status == Status.UNKNOWN
    assert AuditEntry.objects.count() == before


def test_linking_to_an_operation_that_has_its_refund_is_a_duplicate_and_changes_no_outcome(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.succeeded()
    refund = orphan_beside(scenes, operation)

    link(signed_in("operator"), refund, operation)

    after = fresh(operation)
    assert (after.status, after.attention) == (Status.SUCCEEDED, [Attention.DUPLICATE_REFUND])
    assert after.provider_object_id != refund.provider_object_id
    refund.refresh_from_db()
    assert refund.operation_id == operation.pk


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"revision": 1}, 409, "Nothing was linked"),
        ({"note": " "}, 422, "Write a note"),
        ({"operation": "0190b8a0-0000-7000-8000-000000000000"}, 422, "no such operation"),
        ({"operation": "nonsense"}, 422, "Nothing was linked"),
    ],
)
def test_link_that_cant_be_made_changes_nothing(
    scenes: Scenes, signed_in: SignIn, changes: dict[str, Any], status: int, words: str
) -> None:
    operation = scenes.unknown(made=False)
    refund = orphan_beside(scenes, operation)

    answer = link(signed_in("operator"), refund, operation, **changes)

    assert answer.status_code == status
    assert words in answer.content.decode()
    assert fresh(operation).status == Status.UNKNOWN
    refund.refresh_from_db()
    assert refund.operation_id is None


def test_viewer_links_and_marks_nothing(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False)
    refund = orphan_beside(scenes, operation)
    client = signed_in("viewer")

    assert link(client, refund, operation).status_code == 403
    address = f"/orphans/refunds/{refund.pk}/outside/"
    assert client.post(address, {"reason": "So."}).status_code == 403
    assert fresh(operation).status == Status.UNKNOWN
    assert not MadeOutside.objects.exists()


def test_made_outside_keeps_who_and_why_and_goes_on_counting(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    refund = orphan_beside(scenes, operation)
    client = signed_in("operator", "Dana Ruiz")
    address = f"/orphans/refunds/{refund.pk}/outside/"
    before = payment_sheet(operation.payment).balance.by_others

    assert "Say how you know" in client.post(address, {"reason": ""}).content.decode()
    assert client.post(address, {"reason": "Goodwill, by Jane."}).status_code == 302
    assert client.post(address, {"reason": "Again."}).status_code == 422

    found = MadeOutside.objects.get()
    assert (found.reason, found.found_by_name) == ("Goodwill, by Jane.", "Dana Ruiz")
    entry = AuditEntry.objects.filter(chain="system").latest("number")
    assert (entry.action, entry.reason) == ("made_outside", "Goodwill, by Jane.")
    assert payment_sheet(operation.payment).balance.by_others == before == operation.amount
    assert "Goodwill, by Jane." in client.get("/orphans/?view=outside").content.decode()
    assert "Every refund we saw" in client.get("/orphans/").content.decode()


def test_orphans_are_paged_by_key_and_found_by_id(scenes: Scenes, signed_in: SignIn) -> None:
    operation = scenes.unknown(made=False, captured=1_000_000)
    template = orphan_beside(scenes, operation)
    now = template.first_seen_at
    ProviderRefund.objects.bulk_create(
        ProviderRefund(
            account=template.account,
            provider_object_id=f"re_more_{number:03}",
            status="succeeded",
            amount=1,
            currency="usd",
            charge=template.charge,
            first_seen_at=now,
            last_seen_at=now,
        )
        for number in range(60)
    )
    client = signed_in("viewer")

    with CaptureQueriesContext(connection) as queries:
        first = client.get("/orphans/").content.decode()
    next_page = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    second = client.get(next_page).content.decode()

    assert first.count("/orphans/refunds/") == 50
    assert second.count("/orphans/refunds/") == 11
    assert len(queries) <= 16
    found = client.get("/orphans/?find=re_more_007").content.decode()
    assert found.count("/orphans/refunds/") == 1
    assert "Nothing here has the id" in client.get("/orphans/?find=re_none").content.decode()
    assert client.get("/orphans/?after=nonsense").status_code == 200


def test_total_that_no_refund_explains_opens_an_item_and_a_list_that_shows_it_closes_it(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    scenes.control.lag(600)
    scenes.control.refund_outside(operation.payment.charge, amount=1_200)
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    client = signed_in("operator")

    page = client.get("/orphans/?view=totals").content.decode()
    assert "$12.00" in page
    row = Discrepancy.objects.get()
    detail = client.get(f"/orphans/totals/{row.pk}/").content.decode()
    assert "more than the refunds we know" in detail

    scenes.control.lag(0)
    look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)
    row.refresh_from_db()
    assert row.outcome == Discrepancy.EXPLAINED
    assert "Every total adds up" in client.get("/orphans/?view=totals").content.decode()


def test_difference_that_a_person_answered_for_is_not_asked_about_again(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation = scenes.unknown(made=False)
    payment, engine = operation.payment, scenes.engine()
    given: dict[str, Any] = {"payment": payment, "complete": True, "now": engine.clock()}
    row = compare_total(provider_total=1_200, listed_total=0, **given)
    assert row is not None
    client = signed_in("operator", "Dana Ruiz")
    address = f"/orphans/totals/{row.pk}/"

    assert client.post(address, {"reason": " "}).status_code == 422
    assert client.post(address, {"reason": "A chargeback that was settled."}).status_code == 302

    row.refresh_from_db()
    assert (row.outcome, row.closed_by_name) == ("outside", "Dana Ruiz")
    assert compare_total(provider_total=1_200, listed_total=0, **given) is None
    assert compare_total(provider_total=1_300, listed_total=0, **given) is not None
    assert AuditEntry.objects.filter(action="discrepancy_closed").count() == 1
    assert client.get(address).status_code == 200


def test_money_page_and_the_rule_of_one_payment_agree(scenes: Scenes, signed_in: SignIn) -> None:
    first = scenes.unknown(made=False)
    orphan_beside(scenes, first, amount=700)
    scenes.succeeded()
    scenes.processing()
    scenes.conflict()
    scenes.succeeded(currency="eur")
    for operation in Operation.objects.all():
        look_up(engine=scenes.engine(), operation_id=operation.pk, actor=JOB)

    sheets = account_sheets(livemode=False)

    for currency in ("usd", "eur"):
        each = [payment_sheet(row).balance for row in Payment.objects.filter(currency=currency)]
        (in_all,) = [
            row.sheet.balance
            for row in sheets
            if row.sheet.currency == currency and not row.account
        ]
        for part in ("captured", "by_us", "by_others", "unknown", "free", "least_out", "most_out"):
            assert getattr(in_all, part) == sum(getattr(row, part) for row in each), part
        whole = in_all.by_us + in_all.by_others + in_all.unknown + in_all.free
        assert whole == in_all.captured
    page = signed_in("viewer").get("/money/").content.decode()
    assert "All accounts" in page
    assert "€" in page


def test_an_operation_named_by_its_id_is_shown_and_refused_for_another_payment(
    scenes: Scenes, signed_in: SignIn
) -> None:
    operation, other = scenes.unknown(made=False), scenes.unknown(made=False)
    refund = orphan_beside(scenes, operation)
    client = signed_in("operator")

    page = client.get(f"/orphans/refunds/{refund.pk}/?operation={other.pk}").content.decode()

    assert f"/operations/{other.pk}/" in page
    assert "the terms differ" in page
    assert link(client, refund, other).status_code == 422
    unknown = client.get(f"/orphans/refunds/{refund.pk}/?operation=op_none").content.decode()
    assert "No operation of this account has that id" in unknown


def test_many_payments_are_counted_by_a_job_and_never_while_a_page_waits(
    scenes: Scenes, signed_in: SignIn
) -> None:
    scenes.succeeded()
    operation = scenes.unknown(made=False)
    now = scenes.engine().clock()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE operations_payment")
    fresh_count = money_counted(livemode=False)
    assert not money_counted(livemode=False, most_at_once=0).is_counted
    assert not count_money(now=now)

    assert count_money(now=now, most_at_once=0)
    kept = money_counted(livemode=False, most_at_once=0)

    assert kept.at == now
    assert (kept.in_all, kept.by_account) == (fresh_count.in_all, fresh_count.by_account)
    mine = money_counted(livemode=False, accounts=frozenset([operation.account_id]), most_at_once=0)
    assert mine.in_all == kept.in_all
    assert money_counted(livemode=False, accounts=frozenset(), most_at_once=0).in_all == []
    with CaptureQueriesContext(connection) as queries:
        money_counted(livemode=False, most_at_once=0)
    assert not any("operations_providerrefund" in query["sql"] for query in queries)
    assert "Counted at" not in signed_in("viewer").get("/money/").content.decode()
    cache.clear()


def test_many_are_marked_as_made_outside_each_with_its_entry(
    scenes: Scenes, signed_in: SignIn
) -> None:
    found = [orphan_beside(scenes, scenes.unknown(made=False)) for _ in range(3)]
    client = signed_in("operator", "Dana Ruiz")
    assert signed_in("viewer").post("/orphans/choose/", {"all": "1"}).status_code == 403
    listed = {"view": "payments", "refund": [str(row.pk) for row in found[:2]]}
    assert 'name="refund"' in client.get("/orphans/").content.decode()

    run_page = client.post("/orphans/choose/", listed)["Location"]
    run = BulkRun.objects.get()
    assert "2 will be done" in client.get(run_page).content.decode()
    said = {"count": 2, "typed": "2", "note": "Made by the shop's own staff."}
    mark_outside(engine=scenes.engine(), refund_id=found[0].pk, reason="Mine.", actor=JOB)
    assert client.post(f"{run_page}begin/", said).status_code == 409
    again = client.post("/orphans/choose/", {"view": "payments", "all": "1"})["Location"]
    assert client.post(f"{again}begin/", said).status_code == 302
    run = BulkRun.objects.latest("pk")
    while run_bulk(engine=scenes.engine(), run_id=run.pk, is_over=lambda: False):
        pass

    assert list(run.lines.values_list("result", flat=True)) == ["marked", "marked"]
    assert MadeOutside.objects.filter(found_by_name="Dana Ruiz").count() == 2
    entries = AuditEntry.objects.filter(action="made_outside", actor_name="Dana Ruiz")
    assert [entry.after["bulk_run"] for entry in entries] == [run.pk] * 2
    page = client.get(again).content.decode()
    assert "2 Marked as made outside" in page
    assert found[2].provider_object_id in client.get(f"{again}results.csv").getvalue().decode()
    empty = client.post("/orphans/choose/", {"view": "payments", "all": "1"})
    assert empty["Location"].startswith("/orphans/")
