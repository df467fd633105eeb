"""What no webhook told is fetched from the provider's list, once, and counts as no delivery."""

from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from operations.domain.statuses import Status
from operations.models import (
    Account,
    AuditEntry,
    BackfillRun,
    EventHandling,
    InboxItem,
    Operation,
    WebhookEvent,
)
from operations.providers import stripe as stripe_provider
from operations.queries.backfills import changes_of
from operations.services.backfilling import (
    BackfillRefused,
    fetch_events,
    fetch_when_quiet,
    go_on,
    runs_left_lying,
    start_backfill,
)
from operations.services.draining import handle_next_event
from operations.services.guarding import ProviderCallInTransaction
from operations.services.sweeping import claim_due_checks

from .deliveries import deliver
from .stage import ALICE, Stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _webhooks_are_lost(stage: Stage) -> None:
    stage.control.webhook_mode("drop")


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of three, so that a few events are several pages."""
    monkeypatch.setattr(stripe_provider, "_PAGE_SIZE", 3)


def unknown(stage: Stage, **asked: Any) -> Operation:
    """The provider answered 500 and made the refund."""
    stage.control.fault("500", when="after")
    return stage.ask(stage.payment(), **asked)


def begun(stage: Stage, hours: float = 6) -> BackfillRun:
    return start_backfill(
        engine=stage.engine,
        account=stage.ask_for_the_account(),
        since=stage.clock() - timedelta(hours=hours),
        actor=ALICE,
    )


def fetched(stage: Stage, run: BackfillRun | None = None) -> BackfillRun:
    """A run, to its end, and the inbox handled."""
    run = run or begun(stage)
    while fetch_events(engine=stage.engine, run_id=run.pk, is_over=lambda: False):
        pass
    while handle_next_event(engine=stage.engine):
        pass
    run.refresh_from_db()
    return run


def test_an_operation_whose_webhook_was_lost_is_settled(stage: Stage) -> None:
    operation = unknown(stage)

    run = fetched(stage)

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert (run.state, run.read, run.stored) == ("done", 2, 2)
    assert changes_of(run)["applied"] >= 1
    assert sum(changes_of(run).values()) == 2


def test_what_was_fetched_was_not_delivered(stage: Stage) -> None:
    unknown(stage)

    run = fetched(stage)

    assert set(WebhookEvent.objects.values_list("deliveries", "backfill")) == {(0, run.pk)}


def test_an_event_that_came_already_is_not_stored_again(served: Stage) -> None:
    unknown(served)
    first = fetched(served)
    handlings = EventHandling.objects.count()

    again = fetched(served)

    assert (again.read, again.stored) == (2, 0)
    assert WebhookEvent.objects.count() == 2
    assert EventHandling.objects.count() == handlings
    assert set(WebhookEvent.objects.values_list("backfill", flat=True)) == {first.pk}


def test_a_webhook_that_comes_after_all_is_counted_and_handled_no_second_time(
    served: Stage,
) -> None:
    unknown(served)
    fetched(served)
    handlings = EventHandling.objects.count()
    stored = WebhookEvent.objects.get(event_type="refund.created")

    assert deliver(bytes(stored.raw)).status_code == 200

    stored.refresh_from_db()
    assert stored.deliveries == 1
    assert not InboxItem.objects.exists()
    assert EventHandling.objects.count() == handlings


def test_an_event_that_was_delivered_is_known_to_the_run(served: Stage) -> None:
    unknown(served)
    account = served.ask_for_the_account()
    page = served.engine.provider(account).list_events(since=0, after="", account="")
    assert deliver(dict(page.events[0])).status_code == 200

    run = fetched(served)

    assert (run.read, run.stored) == (2, 1)
    stored = WebhookEvent.objects.get(event_id=page.events[0]["id"])
    assert (stored.deliveries, stored.backfill) == (1, None)


@pytest.mark.usefixtures("small_pages")
def test_a_run_reads_page_by_page_and_goes_on_where_it_was(stage: Stage) -> None:
    for order in range(4):
        unknown(stage, order_id=str(order))
    run = begun(stage)

    assert fetch_events(engine=stage.engine, run_id=run.pk, is_over=lambda: True)
    run.refresh_from_db()
    assert (run.pages, run.read, run.state) == (1, 3, "running")
    assert runs_left_lying(engine=stage.engine) == [run.pk]

    run = fetched(stage, run)

    assert (run.pages, run.read, run.stored) == (3, 8, 8)
    assert set(Operation.objects.values_list("status", flat=True)) == {"succeeded"}
    assert WebhookEvent.objects.count() == 8


@pytest.mark.usefixtures("small_pages")
def test_two_runs_at_once_store_each_event_once(stage: Stage) -> None:
    for order in range(4):
        unknown(stage, order_id=str(order))
    one = begun(stage)
    fetch_events(engine=stage.engine, run_id=one.pk, is_over=lambda: True)
    other = begun(stage)
    assert other.pk != one.pk
    fetch_events(engine=stage.engine, run_id=other.pk, is_over=lambda: True)

    one, other = fetched(stage, one), fetched(stage, other)

    assert (one.read, other.read) == (8, 8)
    assert one.stored + other.stored == WebhookEvent.objects.count() == 8


def test_asking_twice_at_once_is_one_run(stage: Stage) -> None:
    assert begun(stage).pk == begun(stage, hours=5).pk
    assert AuditEntry.objects.filter(action="backfill_started").count() == 1


def test_a_run_that_somebody_works_on_is_left_to_them(stage: Stage) -> None:
    run = begun(stage)
    BackfillRun.objects.update(claimed_until=stage.clock() + timedelta(seconds=60))

    assert fetch_events(engine=stage.engine, run_id=run.pk, is_over=lambda: False) is False

    run.refresh_from_db()
    assert run.pages == 0
    assert runs_left_lying(engine=stage.engine) == []
    stage.clock.advance(61)
    assert runs_left_lying(engine=stage.engine) == [run.pk]


def test_a_provider_that_is_down_is_read_again_later(stage: Stage) -> None:
    unknown(stage)
    stage.control.fault("503", endpoint="events.list", times=3)
    run = begun(stage)

    assert fetch_events(engine=stage.engine, run_id=run.pk, is_over=lambda: False) is False

    run.refresh_from_db()
    assert (run.state, run.failures) == ("running", 1)
    assert run.problem != ""
    stage.clock.advance(31)
    assert fetched(stage, run).state == "done"


def test_a_read_that_the_provider_refuses_stops_the_run_until_people_let_it_go_on(
    stage: Stage,
) -> None:
    unknown(stage)
    stage.control.fault("403", endpoint="events.list")
    run = fetched(stage)
    assert run.state == "failed"
    assert "does not have access" in run.problem

    go_on(engine=stage.engine, run_id=run.pk, actor=ALICE)

    assert fetched(stage, run).state == "done"
    with pytest.raises(BackfillRefused):
        go_on(engine=stage.engine, run_id=run.pk, actor=ALICE)


def test_events_that_the_list_still_lacks_are_found_by_the_next_run(stage: Stage) -> None:
    operation = unknown(stage)
    stage.control.lag(3_600, endpoint="events.list")
    assert fetched(stage).read == 0

    stage.control.lag(0, endpoint="events.list")

    fetched(stage)
    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED


def test_no_page_is_read_inside_a_transaction(stage: Stage) -> None:
    run = begun(stage)

    with transaction.atomic(), pytest.raises(ProviderCallInTransaction):
        fetch_events(engine=stage.engine, run_id=run.pk, is_over=lambda: False)


def test_reads_keep_to_the_accounts_rate(stage: Stage) -> None:
    slow = replace(stage, engine=stage.with_contract(reads_per_s=0.001))
    slow.ask_for_the_account()
    fetched(slow)

    run = fetched(slow)

    assert run.state == "running"
    assert "limit for reads" in run.problem


def test_only_events_since_then_are_read(stage: Stage) -> None:
    unknown(stage)
    stage.control.advance_clock(7_200)
    unknown(stage, order_id="4418")
    stage.clock.advance(7_200)

    assert fetched(stage, begun(stage, hours=1)).read == 2


def test_it_starts_by_itself_when_sends_are_followed_by_no_webhook(stage: Stage) -> None:
    operation = unknown(stage)
    quiet = timedelta(minutes=30)
    assert fetch_when_quiet(engine=stage.engine, quiet=quiet) == []

    stage.clock.advance(1_801)
    (run,) = fetch_when_quiet(engine=stage.engine, quiet=quiet)

    assert run.by_itself
    fetched(stage, run)
    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    stage.clock.advance(86_400)
    assert fetch_when_quiet(engine=stage.engine, quiet=quiet) == []
    entry = AuditEntry.objects.get(action="backfill_started")
    assert (entry.actor_name, entry.reason) == ("Sweep", "No webhook came while refunds were sent.")


def test_it_does_not_start_while_webhooks_come(served: Stage) -> None:
    unknown(served)
    fetched(served)
    raw = bytes(WebhookEvent.objects.get(event_type="refund.created").raw)
    deliver(raw.replace(b'"evt_', b'"evt_other_', 1))

    served.clock.advance(1_801)

    assert fetch_when_quiet(engine=served.engine, quiet=timedelta(minutes=30)) == []


def test_an_account_whose_webhooks_died_is_noticed_while_anothers_come(served: Stage) -> None:
    unknown(served)
    fetched(served)
    raw = bytes(WebhookEvent.objects.get(event_type="refund.created").raw)
    quiet = timedelta(minutes=30)
    dead = Account.objects.create(name="dead", provider_account="acct_dead", livemode=False)
    served.ask(served.payment(account="acct_dead"), account=dead.name, order_id="4418")
    deliver(raw.replace(b'"evt_', b'"evt_other_', 1))
    served.clock.advance(1_801)

    begun = fetch_when_quiet(engine=served.engine, quiet=quiet)

    assert [run.account.name for run in begun] == ["dead"]


def command(*arguments: str) -> str:
    said = StringIO()
    call_command("backfill", *arguments, stdout=said, stderr=StringIO())
    return said.getvalue()


def test_the_command_says_what_was_read_new_known_and_changed(served: Stage) -> None:
    operation = unknown(served)

    said = command("--since", "6h")

    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED
    assert "default: 2 events read, 2 new, 0 known." in said
    assert "Matched" in said
    assert "default: 2 events read, 0 new, 2 known." in command("--since", "6h")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--since", "soon"), "neither a time"),
        (("--since", "40d"), "last 30 days"),
        (("--since", "6h", "--account", "nobody"), "There is no account named nobody."),
        (("--run", "99"), "There is no run 99."),
    ],
)
def test_the_command_says_what_is_wrong(
    served: Stage, arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(CommandError) as refused:
        command(*arguments)

    assert words in str(refused.value)
    assert not BackfillRun.objects.exists()


def test_the_command_goes_on_with_a_run_that_was_stopped(served: Stage) -> None:
    unknown(served)
    served.control.fault("403", endpoint="events.list")
    with pytest.raises(CommandError, match="--run"):
        command("--since", "6h")

    said = command("--run", str(BackfillRun.objects.get().pk))

    assert "2 events read, 2 new" in said
    assert claim_due_checks(engine=served.engine) == []
