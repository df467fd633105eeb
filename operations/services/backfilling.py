"""Fetching the provider's own list of events, for what no webhook told us.

What is fetched goes into the same inbox as what is delivered, and so through the same matching. How
far a run is stands in its row, so a run that was killed goes on; two at once do no harm.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from operations.domain.audit import Actor
from operations.domain.backfilling import LONGEST, fetch_since
from operations.domain.sentences import Refusal, say
from operations.models import Account, AuditEntry, BackfillRun, BackfillState, statements
from operations.providers import ReadFailed, ReadRefused
from operations.providers.storable import storable_text
from operations.queries.backfills import silence
from operations.services.actors import SWEEP
from operations.services.engine import Engine
from operations.services.ingesting import STORE_FETCHED, columns_of, read_fetched

#: How long one page may take before somebody else goes on, in seconds.
_LEASE_S = 120
#: The pause after a provider that could not be read, in seconds, and how often that is borne.
_PAUSE_S = 30
_MOST_FAILURES = 10


class BackfillRefused(Refusal):
    """The run can't be started or gone on with; nothing was changed. `str` says why."""


@transaction.atomic
def start_backfill(
    *, engine: Engine, account: Account, since: datetime, actor: Actor, by_itself: bool = False
) -> BackfillRun:
    """Begin to fetch the events made at or after `since`, or answer the run that does so already.

    Raises BackfillRefused.
    """
    now = engine.clock()
    if not now - LONGEST <= since < now:
        raise BackfillRefused(say("The provider lists its events of the last 30 days only."))
    # Two that ask at once: the second waits here, and finds the first one's run.
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    running = BackfillRun.objects.filter(
        account=account, state=BackfillState.RUNNING, since__lte=since, cursor=""
    ).first()
    if running is not None:
        return running
    run = BackfillRun.objects.create(
        account=account,
        since=since,
        by_itself=by_itself,
        started_by=actor.name[:255],
        started_at=now,
    )
    _audit(engine, run, "backfill_started", actor)
    return run


@transaction.atomic
def go_on(*, engine: Engine, run_id: int, actor: Actor) -> BackfillRun:
    """Let a run that was stopped go on where it was. Raises BackfillRefused."""
    run = BackfillRun.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.state != BackfillState.FAILED:
        raise BackfillRefused(say("Only a run that was stopped can go on."))
    run.state = BackfillState.RUNNING
    run.finished_at = None
    run.claimed_until = None
    run.problem = ""
    run.failures = 0
    run.save(update_fields=["state", "finished_at", "claimed_until", "problem", "failures"])
    _audit(engine, run, "backfill_resumed", actor)
    return run


def fetch_events(
    *,
    engine: Engine,
    run_id: int,
    is_over: Callable[[], bool],
    say: Callable[[BackfillRun], None] = lambda run: None,
) -> bool:
    """Fetch on until the end, or until `is_over` after a page. True when there is more to fetch.

    `say` is told after each page how far it is. Call it with no transaction open.
    """
    run = _claim(engine, run_id)
    if run is None:
        return False
    provider = engine.provider(run.account)
    while True:
        try:
            page = provider.list_events(
                since=int(run.since.timestamp()),
                after=run.cursor,
                account=run.account.provider_account,
            )
        except ReadFailed as error:
            _put_off(engine, run, error)
            return False
        stored = _store(engine, run, page.events, page.next_after)
        if stored is None:
            return False
        run = stored
        say(run)
        if run.state != BackfillState.RUNNING:
            return False
        if is_over():
            BackfillRun.objects.filter(pk=run.pk).update(claimed_until=None)
            return True


def _claim(engine: Engine, run_id: int) -> BackfillRun | None:
    now = engine.clock()
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=now)
    rows = BackfillRun.objects.filter(free, pk=run_id, state=BackfillState.RUNNING)
    if not rows.update(claimed_until=now + timedelta(seconds=_LEASE_S)):
        return None
    return BackfillRun.objects.select_related("account").get(pk=run_id)


@transaction.atomic
def _store(
    engine: Engine, run: BackfillRun, events: Sequence[Mapping[str, Any]], next_after: str
) -> BackfillRun | None:
    """Store a page and how far the run is, together; None when somebody else has gone on."""
    now = engine.clock()
    locked = BackfillRun.objects.select_for_update(no_key=True, of=("self",))
    row = locked.select_related("account").get(pk=run.pk)
    if (row.state, row.cursor, row.pages) != (BackfillState.RUNNING, run.cursor, run.pages):
        return None
    account = row.account.provider_account
    read = [read_fetched(event, account=account, now=now) for event in events]
    fetched = {found.key: found for found in read if found is not None}
    if fetched:
        values = [*columns_of(list(fetched.values())), row.pk]
        row.stored += len(statements.run(STORE_FETCHED, values))
    row.read += len(events)
    row.pages += 1
    row.failures = 0
    row.problem = ""
    row.cursor = next_after or row.cursor
    row.claimed_until = now + timedelta(seconds=_LEASE_S)
    if not next_after:
        row.state = BackfillState.DONE
        row.finished_at = now
        row.claimed_until = None
    row.save(
        update_fields=[
            *("stored", "read", "pages", "failures", "problem"),
            *("cursor", "claimed_until", "state", "finished_at"),
        ]
    )
    return row


def _put_off(engine: Engine, run: BackfillRun, error: ReadFailed) -> None:
    """Read again after a pause; what the provider refuses, or keeps failing, is shown to people."""
    now = engine.clock()
    problem = storable_text(str(error) or type(error).__name__)[:500]
    rows = BackfillRun.objects.filter(pk=run.pk, state=BackfillState.RUNNING)
    if isinstance(error, ReadRefused) or run.failures + 1 >= _MOST_FAILURES:
        rows.update(
            state=BackfillState.FAILED, problem=problem, finished_at=now, claimed_until=None
        )
        return
    rows.update(
        failures=F("failures") + 1,
        problem=problem,
        claimed_until=now + timedelta(seconds=_PAUSE_S),
    )


def runs_left_lying(*, engine: Engine) -> list[int]:
    """Runs that nobody works on."""
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=engine.clock())
    rows = BackfillRun.objects.filter(free, state=BackfillState.RUNNING)
    return list(rows.order_by("pk").values_list("pk", flat=True)[:20])


def fetch_when_quiet(*, engine: Engine, quiet: timedelta) -> list[BackfillRun]:
    """Start to fetch by itself where refunds are sent and no webhook comes. The runs begun.

    Each account by itself: the webhooks of one say nothing about another's.
    """
    now = engine.clock()
    runs = []
    for account in Account.objects.filter(livemode=engine.livemode).order_by("pk"):
        since = fetch_since(silence(account), quiet=quiet, now=now)
        if since is not None:
            runs.append(
                start_backfill(
                    engine=engine, account=account, since=since, actor=SWEEP, by_itself=True
                )
            )
    return runs


def _audit(engine: Engine, run: BackfillRun, action: str, actor: Actor) -> None:
    AuditEntry.append(
        operation_id=None,
        actor=actor,
        action=action,
        now=engine.clock(),
        after={
            "run": run.pk,
            "account": run.account.name,
            "since": run.since.isoformat(),
            "by_itself": run.by_itself,
        },
        reason="No webhook came while refunds were sent." if run.by_itself else "Asked for.",
    )
